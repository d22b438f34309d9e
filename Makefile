# `make run` checks the project's own suites, `make test` runs the quick tests. Either sets up .venv by itself.
.POSIX:
.DELETE_ON_ERROR:
.PHONY: help run kernels modules corpus test test-all check bench agreement docs nightly clean

PYTHON ?= python3
BIN = .venv/bin
COMPILERS ?= $(BIN)/python
JOBS ?= 2
ARGS ?=
PYODIDE ?= 314

# litmus/kernels is left to `make kernels`: its sketches are too wide for the engines that enumerate whole executions.
SUITES = litmus/atomics litmus/barriers litmus/bulk litmus/classic litmus/coherence litmus/cp-async litmus/fences \
	litmus/liveness litmus/mbarrier litmus/multimem litmus/proxies litmus/reduce litmus/scopes litmus/tensor litmus/undefined \
	litmus/warps

help:
	@echo "make run    run the litmus suites of this project   (ARGS='--model ptx-9.3' adds options)"
	@echo "make kernels  the kernel sketches, as a table       (ARGS='--only B01,P15' selects some)"
	@echo "make modules  the PTX modules of tests/simt/corpus and their twins, as a table"
	@echo "make corpus   compiles these modules again; COMPILERS=… is a Python that has the compilers"
	@echo "make test   run the quick tests and a share of others  (ARGS='-k name' adds options)"
	@echo "make test-all  run all tests                        (likewise)"
	@echo "make check  formatting, lint and types"
	@echo "make bench  the peers' suites and the scalable families, timed (see benchmarks/)"
	@echo "make docs   the documentation with the pages of all suites, in site/"
	@echo "make agreement  the engines on 20,000 random programs, and bugs planted in a model (ARGS='--programs 500')"
	@echo "make nightly  all tests with the wheel, with the lowest and with the newest dependencies (PYTHON=python3.13)"
	@echo "make clean  remove the virtual environment and all caches"

run: .venv/.ready
	$(BIN)/mcheck run $(SUITES) --warnings-as-errors $(ARGS)

kernels: .venv/.ready
	$(BIN)/python -m benchmarks.kernels $(ARGS)

modules: .venv/.ready
	$(BIN)/python -m benchmarks.modules $(ARGS)

corpus: .venv/.ready
	PYTHONPATH=. $(COMPILERS) -m benchmarks.corpus $(ARGS)

# Tests are rewritten by pytest before they run: bytecode keeps that for the next run, of each worker too.
test: .venv/.ready
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --tier quick $(ARGS)

test-all: .venv/.ready
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --tier all $(ARGS)

check: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: .venv/.ready
	$(BIN)/python -m benchmarks.compat
	$(BIN)/python benchmarks/executor.py
	$(BIN)/python -m benchmarks.families $(ARGS)
	$(BIN)/python -m benchmarks.width

agreement: .venv/.ready
	$(BIN)/python benchmarks/mutations.py
	$(BIN)/python -m benchmarks.agreement $(ARGS)

docs: .venv/.ready
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[docs]'
	rm -rf site
	$(BIN)/python -m mkdocs build --strict --site-dir site
	if npm install --no-save --no-fund --no-audit --prefix build/npm pyodide@$(PYODIDE); \
	then $(BIN)/mcheck playground -o site/playground --pyodide build/npm/node_modules/pyodide --home ../index.html; \
	else echo "no playground: it takes npm's package pyodide"; fi
	$(BIN)/mcheck doc litmus -o site/outcomes --playground ../playground --timeout 120 # a test without an answer stops make

nightly: .venv/.ready
	$(BIN)/python -m benchmarks.installed --python $(PYTHON) --lowest --tests
	$(BIN)/python -m benchmarks.installed --python $(PYTHON) --tests

.venv/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mcheck needs Python 3.11 or later; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --editable '.[dev]'
	@$(BIN)/python -m compileall -q mcheck # as of an installed one: each start would, where Python is told to write no bytecode
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
