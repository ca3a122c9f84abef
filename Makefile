# `make search` and `make test` set up what they need in .venv; nothing but Python 3.11 or newer and make must be there.
# `make search DATA=photos/ BUDGET=20m` searches on images of your own.
PYTHON ?= python3
DATA ?= digits
BUDGET ?= 3m
PIP = .venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: search test test-all lint format clean

search: .venv/core
	.venv/bin/theta0 search --data $(DATA) --budget $(BUDGET)

test: .venv/test
	.venv/bin/python -m pytest -n auto -m "not slow"

test-all: .venv/test
	.venv/bin/python -m pytest -n auto

lint: .venv/lint
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

format: .venv/lint
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "theta0 needs Python 3.11 or newer; $$($(PYTHON) --version) was found; set PYTHON=python3.12, say" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/core: pyproject.toml constraints.txt | .venv/bin/python
	@echo "setting up .venv (about a minute, once)"
	$(PIP) -e .
	@touch $@

.venv/test .venv/lint: .venv/%: .venv/core
	$(PIP) -e '.[$*]'
	@touch $@
