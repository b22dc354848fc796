# The command mri-design in a container, with the versions of requirements.lock:
#   docker build --tag mri-design .
#   docker run --rm --volume "$PWD:/data" mri-design design scan.h5 --lines 64 --out run
FROM python:3.11-slim

WORKDIR /opt/mri-design
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY phantoms ./phantoms
COPY mri_design ./mri_design
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation .

# compiled loops and matplotlib's fonts are kept where any user may write
ENV OMP_NUM_THREADS=1 MPLBACKEND=Agg MPLCONFIGDIR=/tmp/matplotlib NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /data
ENTRYPOINT ["mri-design"]
CMD ["--help"]
