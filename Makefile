# Everything runs inside .venv, which the first target that needs it builds from requirements.lock.
# `make demo` and `make test` need nothing but make and Python 3.11 to 3.14.

PYTHON ?= python3
UV ?= uv

BIN := .venv/bin
READY := .venv/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# One thread per process: runs repeat exactly, and small problems are faster that way.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
# Dozens of processes start here: what they import is compiled once, by the first of them.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo papers test test-all test-fast test-generic golden lint format types notebooks docs dist release lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | awk -F@ '{ printf "%-17s %s\n", $$1, $$2 }'

demo: $(READY)  ## measure a real scan until its error bars say 10 %, compare masks, write a report to demo-run/
	$(BIN)/mri-design demo --out demo-run --overwrite
	@echo "The report: $(CURDIR)/demo-run/report.html"

PART ?=
SIZE ?= small
papers: $(READY)  ## run the five papers' experiments; PART=NAME, SIZE=tiny, small or full, DATA=FOLDER of data sets
	PYTHONPATH=benchmarks $(BIN)/python -m papers $(PART) --size $(SIZE) $(if $(DATA),--data $(DATA))

# Files go to the processes whole, so that what a file's tests share is made once; the longest come first.
test: $(READY)  ## run the tests, in as many processes as there are cores; SHUFFLE=SEED: in a random order
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not thorough" $(if $(SHUFFLE),--shuffle $(SHUFFLE))

test-all: $(READY)  ## run all tests, with those that repeat at length what the others show
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

test-fast: $(READY)  ## run the tests that take no more than a second each, a few cases of each idea
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow and not thorough"

# Vector instructions change last bits, and what hangs by them on one processor falls on another one.
GENERIC := NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Nehalem \
  NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR"
FOLDERS ?= tests/golden tests/design
test-generic: $(READY)  ## run the tests of FOLDERS (designs and images) with the instructions of every x86-64 alone
	$(GENERIC) $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not thorough" $(FOLDERS)

AGAINST ?= HEAD
golden: $(READY)  ## compare every array of the golden runs, bit by bit, with those of a commit: AGAINST, or HEAD
	$(BIN)/python -m tests.golden.record --against $(AGAINST) $(if $(ROUNDING),--rounding $(ROUNDING)) --turns $(or $(TURNS),1) $(RUNS)

lint: $(READY)  ## check style, formatting and which package imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

format: $(READY)  ## mend style and formatting in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)  ## check the types
	$(BIN)/mypy

# Numbered stories, as .py (percent cells); the outputs never reach the tree. One is run again when it, or the package, is newer.
STORIES := $(patsubst %.py,build/%.ipynb,$(wildcard notebooks/*.py))
PACKAGE := $(shell find mri_design phantoms -name __pycache__ -prune -o -type f -print)

build/notebooks/%.ipynb: notebooks/%.py $(PACKAGE) | $(READY)
	@mkdir -p $(@D)
	@echo "$<"
	@MRI_DESIGN_NOTEBOOK_SIZE=small $(BIN)/jupytext --quiet --to ipynb --set-kernel python3 --execute --output $@ $<

notebooks: $(STORIES)  ## run every notebook at its small size

# Warnings are errors; the reference is read from docstrings, the notebooks' pages from their outputs; nothing is fetched.
docs: $(READY) $(STORIES)  ## build the documents: build/docs/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(READY)  ## build the wheel and the source archive in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

# The pins are those of the lock file, so that a release of another package cannot break it; `.ci/run` makes it once.
release: dist  ## install the wheel in an environment of its own, as a user does, and run the demo there
	@sed -n 's/^\([A-Za-z0-9._-]*==[^\]*\) \\$$/\1/p' requirements.lock >dist/constraints.txt
	$(PYTHON) -m venv --clear build/release
	build/release/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint dist/constraints.txt dist/*.whl
	cd build/release && bin/mri-design --version && bin/mri-design demo --out demo-run --overwrite >/dev/null
	@test -s build/release/demo-run/report.html && echo "the wheel installs, and its demo ends with a report"

lock:  ## pin the newest dependencies that fit pyproject.toml (needs uv)
	$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest \
	  --generate-hashes --all-extras --custom-compile-command "make lock" \
	  --output-file requirements.lock pyproject.toml

clean:  ## remove the environment, the caches and the demo's output
	rm -rf .venv build dist demo-run .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The lock file names every dependency: none is looked for.
# Two stamps: a new lock file rebuilds the environment, an edit of pyproject.toml only reinstalls the package.
.venv/.locked: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' || { \
	  echo "mri-design needs Python 3.11 to 3.14, but $(PYTHON) is: $$($(PYTHON) --version 2>&1)"; \
	  echo "Name another one, for example: make $(or $(MAKECMDGOALS),test) PYTHON=python3.12"; exit 1; } >&2
	@test ! -L .venv || { echo ".venv is a link, and what it points to would be emptied: remove the link." >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv || { \
	  echo "$(PYTHON) cannot make virtual environments (Debian and Ubuntu: install python3-venv)." >&2; exit 1; }
	$(PIP) --no-compile "pip>=25" || true # older ones read the index for half a minute longer
	$(PIP) --no-compile --no-deps --require-hashes -r requirements.lock
	@touch $@

$(READY): .venv/.locked pyproject.toml
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@
