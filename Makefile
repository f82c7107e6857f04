# Two commands do all the set-up: `make demo` and `make test`. Both create .venv, install mixent into it, and run.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow lint bench tables clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"mixent needs Python 3.11 or newer, this is {v.major}.{v.minor}; run: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@

demo: $(STAMP)  ## compare classifiers on a bundled data set, end in an HTML page
	$(BIN)/mixent demo

test: $(STAMP) lint  ## lint, types, layers and the default tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(STAMP)  ## the long checks
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

lint: $(STAMP)  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(STAMP)  ## speed beside scikit-learn (and pomegranate, R mclust when installed), as ratios in one run
	$(BIN)/python -m benchmarks.speed

tables: $(STAMP)  ## accuracy beside scikit-learn on ../shared/data
	$(BIN)/python -m benchmarks.tables

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
