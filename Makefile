# One command each. `make check` is what CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PARTS := core schemas producer relay processor console local cli
CODE := $(PARTS) tests bench examples docs
STAMP := $(VENV)/.installed
export UV_PYTHON_DOWNLOADS = never

.DEFAULT_GOAL := help
# Tests and demo start Python some hundred times; without its caches each start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install browser test check quick format format-check lint types imports demo lock reference screenshots clean

help: ## Say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

install: $(STAMP) ## Make .venv and install the locked dependencies and the checkout into it

$(STAMP): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing pinned packages into $(VENV): up to 165 MB, half a minute or more"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

browser: $(STAMP) ## Get a Chromium for the tests of pages, unless one is there
	$(BIN)/python -m tests.support.chromium

test: $(STAMP) ## Run all tests, on a real Kafka, Postgres and registry (started if none is named)
	@-$(BIN)/python -m tests.support.chromium
	$(BIN)/python -m pytest $(T)

quick: $(STAMP) ## Run the tests that need no services
	$(BIN)/python -m pytest tests/unit tests/simulation $(T)

check: format-check lint types imports test ## Everything that CI runs

format: $(STAMP) ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix --exit-zero --quiet $(CODE)
	$(BIN)/ruff format $(CODE)

format-check: $(STAMP)
	$(BIN)/ruff format --check $(CODE)

lint: $(STAMP) ## Find faults by reading
	$(BIN)/ruff check $(CODE)

types: $(STAMP) ## Check the types, of the public surface as a user sees it too
	$(BIN)/mypy

imports: $(STAMP) ## Check that imports go one way and drivers stay in adapters
	$(BIN)/lint-imports

demo: $(STAMP) ## Carry 20,000 real flights from their transactions to verified figures (ARGS=--all: the year; SERVE=1: goes on, with the console)
	$(BIN)/python -m examples.flights $(if $(filter-out 0,$(SERVE)),--serve) $(ARGS)

reference: $(STAMP) ## Write docs/reference from the commands and settings
	$(BIN)/python docs/reference/generate.py

screenshots: $(STAMP) ## Take the pictures of the console in docs/console anew, on the demo (six minutes)
	@-$(BIN)/python -m tests.support.chromium
	$(BIN)/python -m docs.console.take

lock: $(STAMP) ## Pin the dependencies anew, with hashes and without addresses (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml --output-file requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		pyproject.toml --extra dev --group build --group test --group lint --output-file requirements-dev.lock

clean: ## Remove what was made here; downloads in the user's cache stay
	rm -rf $(VENV) .packhorse .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
