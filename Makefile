# Every target works on a fresh clone: it makes .venv and installs the project into it first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
KERNELS := $(wildcard src/paramixer/ops/csrc/*)
SANITIZED := .venv-sanitize
INTERPRETED := .venv-triton

.PHONY: setup test test-slow test-triton fuzz check-results demo walkthroughs lint bench reproduce docs docs-serve figures sanitize clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt CMakeLists.txt $(KERNELS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --constraint constraints.txt \
		--config-settings=build-dir=build/{wheel_tag} --config-settings=cmake.define.PARAMIXER_TEST_KERNELS=ON --editable '.[dev]'
	touch $@

test: setup
	$(BIN)/python -m pytest -n auto -m "not slow" tests

test-slow: setup
	$(BIN)/python -m pytest -n auto --dist loadscope -m slow tests benchmarks experiments

# The GPU kernels without a GPU: in Triton's interpreter, and compiled. Triton comes into an environment of its own, which
# borrows the rest: it is large, and only these tests need it. The variable must be set before Triton is imported.
test-triton: setup
	test -d $(INTERPRETED) || $(PYTHON) -m venv $(INTERPRETED)
	echo "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" > "$$(echo $(INTERPRETED)/lib/python*/site-packages)/borrowed.pth"
	echo "$(CURDIR)/src" >> "$$(echo $(INTERPRETED)/lib/python*/site-packages)/borrowed.pth"
	$(INTERPRETED)/bin/python -m pip install --quiet --no-deps --constraint constraints.txt triton
	TRITON_INTERPRET=1 $(INTERPRETED)/bin/python -m pytest -n auto tests/ops/triton
	$(INTERPRETED)/bin/python -m pytest -n auto benchmarks/tests/test_gpu_kernels.py

# The property tests with a thousand examples each instead of forty.
fuzz: setup
	PARAMIXER_FUZZ=long $(BIN)/python -m pytest -n auto -m hypothesis tests

# The records under results/ and the pages made from them, apart from the tests of the library.
check-results: setup
	$(BIN)/python -m pytest -n auto -m "not slow" benchmarks experiments

demo: setup
	$(BIN)/python examples/demo.py

# Records those that have no record under results/, about ten minutes each, and writes docs/walkthroughs.md.
walkthroughs: setup
	$(BIN)/python examples/record.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror src/paramixer/ops/csrc/*

bench: setup
	$(BIN)/python -m benchmarks figures

reproduce: setup
	$(BIN)/python -m experiments all --scale cpu

# The site, from disk: build/site/index.html. A warning, such as a link that leads nowhere, is an error.
docs: setup
	$(BIN)/python tools/write_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

docs-serve: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

# Draws the figures of the docs again and runs every snippet and command of the pages.
figures: setup
	for figure in travel protocols network pathfinder; do $(BIN)/python -m experiments figure-$$figure --docs docs || exit 1; done
	$(BIN)/python -m pytest tests/test_docs.py

# A second environment with the CPU backend built under AddressSanitizer and UBSan; the rest is borrowed from the first.
sanitize: setup
	$(PYTHON) -m venv $(SANITIZED)
	echo "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" > "$$(echo $(SANITIZED)/lib/python*/site-packages)/borrowed.pth"
	$(SANITIZED)/bin/python -m pip install --no-deps --no-build-isolation --force-reinstall \
		--config-settings=cmake.define.PARAMIXER_SANITIZE=ON --config-settings=cmake.define.PARAMIXER_TEST_KERNELS=ON \
		--config-settings=build-dir=build/sanitize .
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
		ASAN_OPTIONS=detect_leaks=0 $(SANITIZED)/bin/python -m pytest tests/ops/test_cpu*.py tests/ops/test_dropout.py tests/ops/test_lookup.py tests/ops/test_ngrams.py

clean:
	rm -rf $(VENV) $(SANITIZED) $(INTERPRETED) build dist
