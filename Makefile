# Two commands do all the set-up: `make demo` and `make test`. Both create .venv, install mixent into it, and run.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test test-slow test-lowest wheel lint bench tables docs clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"mixent needs Python 3.11 or newer, this is {v.major}.{v.minor}; run: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(STAMP)  ## write example files, compare methods on one of them, end in an HTML page
	$(BIN)/mixent demo

test: $(STAMP) lint  ## lint, types, layers and the default tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.installed-docs  ## the long checks
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

.venv-lowest/.installed: pyproject.toml Makefile .ci/lowest.py
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PYTHON) .ci/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --editable ".[all]" polars pytest pytest-xdist hypothesis \
		--constraint .venv-lowest/lowest.txt
	@touch $@

# Left out: pages, examples and benchmarks (they show the present versions); the wheel (it is the same one, and pip
# resolves the newest); the time of imports (ours, not theirs); doctests of src (they too show the present versions).
# Pages in a browser are skipped where there is none, as in `make test`.
# SLSQP of old scipy, which only tests use, says when it steps over a bound by rounding.
LOWEST ?= tests --ignore tests/benchmarks --ignore-glob 'tests/test_docs*' --ignore-glob 'tests/test_package*' \
	--ignore-glob 'tests/wording/test_package*' \
	--ignore tests/test_site.py --ignore tests/test_examples.py --deselect tests/test_public.py::test_import_is_cheap

test-lowest: .venv-lowest/.installed  ## the default tests with the lowest versions that pyproject.toml allows
	.venv-lowest/bin/python -m pip list | grep -iE "$$(sed 's/[=<].*/ /' .venv-lowest/lowest.txt | paste -sd '|')"
	.venv-lowest/bin/python -m pytest -n 2 --dist worksteal -W "ignore:Values in x were outside bounds" $(LOWEST)

wheel: $(STAMP)  ## build dist/: the wheel and the source archive
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

lint: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(STAMP)  ## speed beside scikit-learn (and pomegranate, R mclust when installed), as ratios in one run
	$(BIN)/python -m benchmarks.speed

tables: $(STAMP)  ## the documents' tables beside ours from ../shared/data (hours, resumable), docs/tables.md; QUICK=1: 3 min; SHOW=1: page only
	$(BIN)/python -m benchmarks.tables --all $(if $(QUICK),--quick) $(if $(SHOW),--show)

$(VENV)/.installed-docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable . --group docs
	@touch $@

docs: $(VENV)/.installed-docs  ## build the documentation site, with its gallery of examples (a few minutes the first time)
	@rm -rf docs/api/generated  # a name that is gone would leave its page behind
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs
	@echo "Open build/docs/index.html in a browser; it needs no network."

clean:  ## remove the environment and caches
	rm -rf $(VENV) .venv-lowest docs/gallery docs/api/generated .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
