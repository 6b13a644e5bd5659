# Every target works on a fresh clone: it makes .venv and installs the project into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: setup test test-slow demo lint bench docs clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[dev]'
	touch $@

test: setup
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: setup
	$(BIN)/python -m pytest -m slow

demo: setup
	$(BIN)/python examples/adding.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python benchmarks/block.py

docs: setup
	$(BIN)/python docs/figures/links.py
	$(BIN)/python -m pytest tests/test_docs.py

clean:
	rm -rf $(VENV) build dist
