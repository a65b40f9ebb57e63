# virt-steward. `make help` lists the targets; they write to .venv/, site/ and the user's cache only.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
          --only-binary :all: --no-header --no-strip-extras
LOCKS  := requirements/uv.txt requirements/run.txt requirements/dev.txt requirements/docs.txt controlplane/toolchain.txt
SITE   := $(VENV)/site-builder

.DEFAULT_GOAL := help
.PHONY: help setup demo test stress chaos soak check bench manifests docs lock

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready  ## Create .venv with the pinned dependencies of requirements/

demo: setup  ## Start a local control plane with all controllers, and print what to try
	@$(BIN)/virt-steward demo

test: check  ## Check the code, then run all tests on a real control plane (built on the first run)
	@$(BIN)/virt-steward local assets
	@$(BIN)/python -m tests.tools
	@$(BIN)/pytest -n 3 --dist worksteal $(ARGS)

stress: setup  ## Run the long tests: many kills and freezes, thousands of objects
	@$(BIN)/virt-steward local assets
	@$(BIN)/python -m tests.tools stress
	@$(BIN)/pytest -o addopts="--strict-markers --strict-config -rA -s" tests/stress $(ARGS)

chaos: setup  ## Run seeded faults beside seeded work on all controllers, judged by the audit log
	@$(BIN)/virt-steward local assets
	@$(BIN)/python -m tests.chaos $(ARGS)

soak: setup  ## Run the work of chaos for two hours: memory, descriptors, tasks and metric series stay flat
	@$(BIN)/virt-steward local assets
	@$(BIN)/python -m tests.soak $(ARGS)

check: setup  ## Check formatting, lint, types and import layers
	@$(BIN)/ruff format --quiet --check . || { echo "run '$(BIN)/ruff format .'"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup  ## Measure as ratios to a bare request; DOES=approver AGAINST="COMMAND" compares another operator
	@$(BIN)/virt-steward local assets
	@$(BIN)/python -m tests.bench $(if $(DOES),--does $(DOES)) $(if $(AGAINST),--against '$(AGAINST)') $(ARGS)

manifests: setup  ## Generate deploy/: kustomizations, Helm chart, OLM bundle
	@$(BIN)/virt-steward manifests --for kustomize --into deploy/base
	@$(BIN)/virt-steward manifests --for all-in-one --into deploy/all-in-one
	@$(BIN)/virt-steward manifests --for helm --into deploy/chart
	@$(BIN)/virt-steward manifests --for olm --into deploy/bundle
	@$(BIN)/virt-steward manifests --for prometheus --into deploy/monitoring

docs: setup $(SITE)/.ready  ## Generate docs/reference, and build the documentation as a site in site/
	@$(BIN)/python docs/generate.py
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(SITE) $(BIN)/python -m mkdocs build --strict

lock: setup  ## Pin the newest versions of all dependencies, with hashes, and check that wheels exist
	@cd requirements && ../$(LOCK) --upgrade uv.in -o uv.txt
	@$(LOCK) --upgrade pyproject.toml -o requirements/run.txt
	@$(LOCK) --upgrade pyproject.toml --group dev -o requirements/dev.txt
	@$(LOCK) --upgrade --group docs -o requirements/docs.txt
	@$(LOCK) controlplane/toolchain.in -o controlplane/toolchain.txt
	@set -e; for python in 3.11 3.12 3.13 3.14; do for machine in x86_64 aarch64; do for lock in $(LOCKS); do \
	  $(BIN)/uv pip install --quiet --dry-run --target .venv/none --python-version $$python \
	    --python-platform $$machine-manylinux_2_28 --only-binary :all: --require-hashes -r $$lock; \
	done; done; done

$(VENV)/.ready: pyproject.toml demo/pyproject.toml requirements/uv.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "virt-steward needs Python 3.11 or newer; run 'make PYTHON=/path/to/python3.12 ...' to use another one" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) lacks the venv module; on Debian and Ubuntu run: apt-get install python3-venv" >&2; exit 1; }
	@echo "setting up $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/uv.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all: -r requirements/dev.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable . --editable demo
	@touch $@

$(SITE)/.ready: requirements/docs.txt $(VENV)/.ready
	@rm -rf $(SITE)
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --target $(SITE) --require-hashes --only-binary :all: -r requirements/docs.txt
	@touch $@
