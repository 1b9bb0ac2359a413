# Two commands: `make demo` and `make test`. Each sets up .venv when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint slow clean

demo: .venv/installed
	$(BIN)/vcnef demo --out demo

test: .venv/installed lint
	$(BIN)/python -m pytest

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

slow: .venv/installed
	$(BIN)/python -m pytest -m slow

# constraints.txt pins torch so that a set-up today and one next month agree.
.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "vcnef needs Python 3.11 or newer; run 'make PYTHON=/path/to/python3.11 ...'." >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev,ode]'
	@touch $@

clean:
	rm -rf .venv demo
