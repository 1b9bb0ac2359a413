# `make demo` and `make test`, or `make quick` while you work. Each sets up .venv when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test quick lint types slow docs clean

demo: .venv/installed
	$(BIN)/vcnef demo --out demo

# A process per core with one thread each: most tests are Python's own time. In the order of the files: those with few
# tests, which xdist would leave for the end, are the longest, and one process would be alone with them.
test: .venv/developed lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# Below a minute on two cores: numbers, borders and the house, without the command line, pages, presets and kernels.
QUICK = tests/style tests/metrics tests/nn tests/models tests/pde tests/data $(filter-out $(SLOWER),$(wildcard tests/test_*.py))
SLOWER := tests/models/test_export.py $(addprefix tests/test_,bad_input.py docs.py presets.py readme.py workflow.py)

quick: .venv/developed lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		$(QUICK) $(addprefix --ignore=,$(SLOWER))

lint: .venv/developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/developed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[types]'
	$(BIN)/pyright --pythonpath $(BIN)/python

slow: .venv/developed
	$(BIN)/python -m pytest -m slow

# Fills in what the code knows of itself, then builds site/ with warnings as errors.
docs: .venv/developed
	$(BIN)/python docs/write_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# constraints.txt pins torch so that a set-up today and one next month agree.
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "vcnef needs Python 3.11 or newer; run 'make PYTHON=/path/to/python3.11 ...'." >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[ode]'
	@touch $@

# What tests and documentation need beyond that; the demo does not wait for it.
.venv/developed: .venv/installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[ode,onnx,dev,docs]'
	@touch $@

clean:
	rm -rf .venv demo site
