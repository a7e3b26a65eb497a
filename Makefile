# make run: the digits table of the paper's main experiment. make test: all tests
# but the thorough ones. make docs: the site, in build/docs. All set up what they
# need in .venv first.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A file's tests share what they train; the long ones begin early.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: run test fast thorough lint docs clean

run: $(VENV)/installed
	$(BIN)/python -m experiments.synthetic_noise

test: $(VENV)/installed lint
	$(PYTEST) -m 'not thorough'

fast: $(VENV)/installed
	$(PYTEST) -m 'not slow'

thorough: $(VENV)/installed
	$(PYTEST) -m thorough

lint: $(VENV)/installed
	$(BIN)/ruff check .

# Warnings are errors; all of them are shown.
docs: $(VENV)/installed
	$(BIN)/sphinx-build -W --keep-going -q docs build/docs

# The exact versions that were tested, then the package itself.
$(VENV)/installed: requirements.txt setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -r requirements.txt
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info
