"""One designed mask, the same data and coil maps: the same image in BART, SigPy, PyLops and SciPy.

    OMP_NUM_THREADS=1 python benchmarks/same_image.py

designs lines of a scene of ellipses with 1 and with 8 coils, writes mask, data and maps as BART's pairs of files by
the package's own `export` and `convert`, and has the image that minimises |X u - y|^2 + weight |u|^2 computed four
times: by `bart pics` and by SigPy's SenseRecon from the same files, and with the package's operators by PyLops's CGLS
and by SciPy's conjugate gradients. It writes same-image.md, same-image.csv and same-image-targets.csv into
results/interoperation. Without BART on the search path its rows are missing, and the target is not met.
"""

from __future__ import annotations
