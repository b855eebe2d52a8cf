PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint typecheck format clean

## Install what is needed, build the four probe sets with the bundled lists and the two small filtered sets, then train
## four tiny models, two of them with a planted preference, score them and make the report.
demo: $(VENV)/.installed
	$(BIN)/probesieve build unqover all
	$(BIN)/probesieve build aflite digits
	$(BIN)/probesieve build aflite planted-nli
	$(BIN)/probesieve demo

## Install what is needed, then lint, type-check and run every test, files side by side on up to four cores.
test: lint typecheck
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q --numprocesses auto --maxprocesses 4 --dist loadfile

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.installed-dev
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "probesieve needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ $(VENV)/.installed

clean:
	rm -rf build .mypy_cache .pytest_cache .ruff_cache
