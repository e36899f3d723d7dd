# Each target makes the virtual environment it needs, then does its work.
# A stamp file per extra remembers what is installed; editing pyproject.toml renews it.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --disable-pip-version-check

# pip tells all, or nothing for a minute: this keeps a line for each package that comes, with its
# size, and for what takes long. A pipe fails if any part of it does.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
TELL := sed -unE \
  -e 's/^ *(Downloading|Using cached) ([A-Za-z0-9_.]+)-([^-]+)-[^ ]*\.whl \((.*)\)$$/  \2 \3, \4/p' \
  -e 's/^ *Installing build dependencies: started$$/  preparing to build/p' \
  -e 's/^Installing collected packages: .*/  unpacking/p'

# Real graphs, when they lie beside the checkout and nothing else was asked for.
ifeq ($(origin LPMA_DATA),undefined)
ifneq ($(wildcard ../shared/data/.),)
export LPMA_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: help demo quick test integration nightly soak broker docs matrix cuda kernels fence lint bench bench-all clean

# CuPy, CUDA's compiler and its headers, of the last CUDA 12: they need no device to compile for one.
# They lie apart, so that the environment stays one without CuPy, as most are.
CUDA := $(abspath $(VENV))/cuda
CUDA_WHEELS := 'cupy-cuda12x==14.*' 'nvidia-cuda-nvrtc-cu12==12.9.*' \
  'nvidia-cuda-runtime-cu12==12.9.*' 'cuda-pathfinder==1.*'

help:
	@echo "make demo    stream a graph through the log into the store, and analyse it"
	@echo "make test    run the tests, 11 minutes (ARGS='-k name' is passed to pytest)"
	@echo "make quick   run those that start no processes, with fewer examples: 2 minutes"
	@echo "make integration  run those with Kafka, Ray, Chromium, a compiler, kills, power cuts, the pages of docs/"
	@echo "make nightly run millions of rows and records, large graphs; matrix and cuda"
	@echo "make soak    run the long tests, for hours: kills, faults, fuzzing, streams"
	@echo "make docs    build the pages into docs/_build/html; a warning is an error"
	@echo "make matrix  run some with the oldest and the newest versions of all that is needed"
	@echo "make cuda    compile all CUDA kernels, which needs no GPU"
	@echo "make kernels compile them to ship: a wheel that is built after this has them compiled"
	@echo "make fence   run the tests of kernels where reading beside an array ends the process"
	@echo "make lint    run ruff, mypy and the house's rules"
	@echo "make bench   measure the rows of docs/performance.md, 15 minutes (ARGS='updates --quick': an experiment)"
	@echo "make bench-all  run all experiments on the CPU, for hours, into bench-results/"
	@echo "make clean   remove the virtual environment, caches and results"
	@echo "PYTHON=python3.12 picks the interpreter (3.11 or newer) the environment is made with."

demo: $(VENV)/.installed-core
	$(BIN)/lpma demo $(ARGS)

# Tests wait for processes and disks nearly as long as they compute: four keep two cores at work.
PYTEST := $(BIN)/python -m pytest -n 4 --dist worksteal

test: $(VENV)/.installed-test
	$(PYTEST) $(ARGS)

quick: $(VENV)/.installed-test
	LPMA_HYPOTHESIS=quick $(PYTEST) -m 'not system and not integration and not nightly' $(ARGS)

integration: $(VENV)/.installed-test $(VENV)/.installed-docs broker
	$(PYTEST) -m integration $(ARGS)

nightly: $(VENV)/.installed-test broker
	$(MAKE) cuda matrix ARGS=
	$(PYTEST) -m nightly $(ARGS)

broker: $(VENV)/.installed-test
	$(BIN)/python -m tests.support.broker

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --nitpicky $(ARGS) \
	  docs docs/_build/html

matrix: | $(BIN)/python
	PYTHON=$(BIN)/python .ci/matrix $(ARGS)

cuda: $(VENV)/.installed-test $(VENV)/.installed-cuda
	LPMA_REQUIRE=nvrtc PYTHONPATH=$(CUDA) LD_LIBRARY_PATH=$(CUDA)/nvidia/cuda_nvrtc/lib \
	  $(BIN)/python -m pytest -m '' -n 2 --dist worksteal tests/house/test_cuda_sources.py \
	  tests/lpma/test_cuda_archive.py $(ARGS)

kernels: $(VENV)/.installed-core $(VENV)/.installed-cuda
	PYTHONPATH=$(CUDA) LD_LIBRARY_PATH=$(CUDA)/nvidia/cuda_nvrtc/lib \
	  $(BIN)/python -m lpma.backend.cuda.launch.build $(ARGS)

soak: $(VENV)/.installed-test
	LPMA_SOAK=1 $(BIN)/python -m pytest -m soak $(ARGS)

fence: $(VENV)/.installed-test
	LPMA_SOAK=1 LPMA_REQUIRE=cc $(BIN)/python -m pytest -m '' tests/lpma/test_fence.py $(ARGS)

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.house.rules

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(or $(ARGS),headline)

bench-all: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks all --json bench-results/bench.json $(ARGS)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "lpma needs Python 3.11 or newer, as PYTHON=...; $(PYTHON) is:" \
	    "$$($(PYTHON) --version 2>&1)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-core: pyproject.toml | $(BIN)/python
	@echo "installing lpma-graph and what it needs (NumPy, SciPy, Numba, PyArrow, Matplotlib) into"
	@echo "$(VENV): 200 MB to download, 700 MB on disk"
	@# Python compiles the files that it imports, a tenth of all: pip would take 8 s for the rest.
	@$(INSTALL) --no-compile --editable . | $(TELL)
	@echo "installed: the command is $(BIN)/lpma"
	@touch $@

$(VENV)/.installed-cuda: Makefile | $(BIN)/python
	@echo "installing CUDA's compiler into $(CUDA)"
	rm -rf $(CUDA)
	@$(INSTALL) --no-deps --target $(CUDA) $(CUDA_WHEELS) | $(TELL)
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	@echo "installing lpma-graph[$*] into $(VENV)"
	@$(INSTALL) --editable '.[$*]' | $(TELL)
	@touch $@

clean:
	rm -rf $(VENV) bench-results docs/_build docs/reference/generated *.egg-info build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
