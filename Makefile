# Two commands set everything up on a machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo reproduce test test-fast test-anywhere fuzz lint docs docs-check bench clean

demo: $(VENV)/demo.stamp  ## a model under a constraint, and methods side by side
	$(BIN)/extremal demo

reproduce: $(VENV)/figures.stamp  ## the paper's figures, quickly: fig1 in a minute
	$(BIN)/extremal reproduce fig1 --quick

test: $(VENV)/test.stamp  ## all tests, on all cores
	$(BIN)/python -m pytest -n auto

test-fast: $(VENV)/test.stamp  ## some of every module, in a minute: while working
	$(BIN)/python tests/fast.py -n auto

test-anywhere: $(VENV)/test.stamp  ## the same as on other processors and on a busy machine; some of it with TESTS="tests/moves/test_newton.py"
	$(BIN)/python tests/anywhere.py -n auto $(TESTS)

MINUTES ?= 5
SEED ?= 0
fuzz: $(VENV)/test.stamp  ## random problems, each answer checked in extended precision: MINUTES=5 SEED=0
	$(BIN)/python tests/fuzz/fuzz.py --minutes $(MINUTES) --seed $(SEED)

lint: $(VENV)/lint.stamp  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/docs.stamp  ## the site, with its gallery run: docs/_build/html/index.html
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -j auto -b html docs docs/_build/html

docs-check: docs  ## its snippets, links, spelling and readability, and a look at it in a browser
	$(BIN)/python docs/check.py

bench: $(VENV)/figures.stamp  ## what the methods cost, as ratios: five minutes; more with BENCH="--full --peers"
	$(BIN)/extremal bench --out benchmarks/history $(BENCH)

clean:
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "extremal needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# one stamp for each extra: an environment that has it is not set up again
$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
