# The contributor's commands. Each installs what it needs into .venv; nothing is done by hand.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check docs bench constraints clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: .venv/study.stamp  ## repeat a part of the paper on handwritten digits, and report on it (two minutes)
	OMP_NUM_THREADS=1 $(BIN)/ganns reproduce digits --methods gann-sparse,gann-dense,ann,ann-d --seeds 3 --jobs 2 --out demo

test: .venv/dev.stamp  ## run the tests and doctests (pass more with ARGS="-k noise")
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup $(ARGS)

check: .venv/dev.stamp  ## lint, format, types, and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

docs: .venv/dev.stamp  ## build the documentation strictly into docs/_build/html
	$(BIN)/python docs/equations.py
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: .venv/dev.stamp  ## print every speed claim as a ratio measured now, on this machine
	for name in step sampling idle fleet tabular; do $(BIN)/python benchmarks/$$name.py || exit 1; done

constraints:  ## pin the developer environment again (needs uv; no address ends up in the file)
	echo "torch==2.13.0" | uv pip compile --universal --python-version 3.11 --no-header --no-annotate \
	  --extra dev --constraint - --upgrade --output-file constraints.txt pyproject.toml

clean:  ## remove everything these commands made
	rm -rf .venv demo docs/_build docs/generated build dist

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ganns needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; echo "On Debian and Ubuntu: apt install python3-venv"; exit 1; }

.venv/%.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[$*]'
	@touch $@
