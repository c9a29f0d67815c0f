SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := run
.PHONY: run test oracle drill chaos cluster bench setup check lint types contracts buf protos released image-check lock clean help

PYTHON ?= python3
BIN := .venv/bin
PROTOS := $(sort $(shell find protos -name '*.proto'))
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install
# Nothing but what the lock names, byte for byte.
LOCKED := $(PIP) --require-hashes --only-binary :all: --requirement

run: .venv/.ready ## Set up and run a room; ARGS="--help" shows the options
	@$(BIN)/relance up $(ARGS)

test: .venv/.ready-dev ## Set up and run all tests
	@$(BIN)/pytest -n 2 --dist loadgroup $(ARGS)

oracle: .venv/.ready-dev ## Play random hands against PokerKit; HANDS=5000, ARGS="--game nl-holdem"
	@$(BIN)/python -m tests.poker.oracle --hands $(or $(HANDS),2000) $(ARGS)

drill: .venv/.ready ## Kill a room in the middle of its hands and account for every cent
	@$(BIN)/relance drill $(ARGS)

chaos: .venv/.ready ## Kill random processes at random moments, account for every cent; MINUTES=3
	@$(BIN)/relance chaos --minutes $(or $(MINUTES),3) $(ARGS)

cluster: .venv/.ready-dev ## Run the Kubernetes manifests as processes, do things to pods, account for every hand
	@$(BIN)/relance cluster $(ARGS)

bench: .venv/.ready-dev ## Ratios against a limit measured in the same run
	@$(BIN)/python -m tests.bench $(ARGS)

setup: .venv/.ready-dev ## Set up only

check: lint types contracts buf ## All checks that are no tests

lint: .venv/.ready-dev
	@$(BIN)/ruff check --no-cache
	@$(BIN)/ruff format --check

types: .venv/.ready-dev
	@$(BIN)/mypy

contracts: .venv/.ready-dev
	@$(BIN)/lint-imports --no-logo

buf: .venv/.ready-dev
	@$(BIN)/buf lint
	@$(BIN)/buf breaking --against protos/released.binpb

protos: libs/relance/api/.built ## Build the code of the contract

released: .venv/.ready-dev ## The contract as released: what later changes may not break
	@$(BIN)/buf build --exclude-source-info -o protos/released.binpb

image-check: ## Build the image on a base of its own and try it: needs root, Debian, five minutes
	@deploy/image/check.sh

lock: .venv/.ready-dev ## Make the locks anew from requirements.in and requirements-dev.in
	@for name in requirements requirements-dev; do \
		$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 \
			--no-emit-index-url --no-header $$name.in -o $$name.lock; \
	done

clean: ## Remove everything that set-up made; data stays
	@rm -rf .venv libs/relance/api .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 12

# A stamp is touched last: a step that was interrupted is done again, from its beginning.

.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Relance needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which: make PYTHON=/path/to/python3.11")'
	@echo "setting up .venv"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@touch $@

.venv/.locked: requirements.lock .venv/.made
	@echo "installing what the room runs on, from the hashed lock"
	@$(LOCKED) requirements.lock
	@touch $@

# Code from the contract: never edited, never committed. It appears whole or not at all.
libs/relance/api/.built: $(PROTOS) .venv/.locked
	@echo "building the code of the contract"
	@rm -rf .venv/api && mkdir -p .venv/api
	@$(BIN)/python -m grpc_tools.protoc -Iprotos \
		--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
		--python_out=.venv/api --grpc_python_out=.venv/api --mypy_out=quiet:.venv/api --mypy_grpc_out=quiet:.venv/api $(PROTOS)
	@rm -rf libs/relance/api && mv .venv/api/relance/api libs/relance/api
	@touch $@

.venv/.ready: pyproject.toml .venv/.locked libs/relance/api/.built
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.ready-dev: requirements-dev.lock .venv/.ready
	@echo "installing what tests and checks need, from the hashed lock"
	@$(LOCKED) requirements-dev.lock
	@touch $@
