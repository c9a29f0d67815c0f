.PHONY: run test lint types contracts protos buf lock bench drill check clean
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
PROTOS := $(shell find protos -name '*.proto')

run: .venv/.ready ## Set up and run the room
	$(BIN)/relance up $(ARGS)

test: .venv/.ready-dev ## Set up and pass the tests
	$(BIN)/pytest -n 2 --dist loadgroup $(ARGS)

drill: .venv/.ready
	$(BIN)/relance drill $(ARGS)

bench: .venv/.ready-dev
	$(BIN)/python -m tests.bench $(ARGS)

check: lint types contracts buf

lint: .venv/.ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: .venv/.ready-dev
	$(BIN)/mypy

contracts: .venv/.ready-dev
	$(BIN)/lint-imports

buf: .venv/.ready-dev
	$(BIN)/buf lint
	$(BIN)/buf breaking --against protos/released.binpb

# Code from the contract: never edited, never committed.
libs/relance/api/.built: $(PROTOS)
	rm -rf libs/relance/api && mkdir -p libs/relance/api
	$(BIN)/python -m grpc_tools.protoc -Iprotos \
		--plugin=protoc-gen-mypy=$(BIN)/protoc-gen-mypy --plugin=protoc-gen-mypy_grpc=$(BIN)/protoc-gen-mypy_grpc \
		--python_out=libs --grpc_python_out=libs --mypy_out=quiet:libs --mypy_grpc_out=quiet:libs $(PROTOS)
	touch $@

protos: libs/relance/api/.built

.venv/.locked: requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	touch $@

.venv/.ready: .venv/.locked libs/relance/api/.built pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv/.ready-dev: .venv/.ready requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-dev.lock
	touch $@

lock: ## Make the locks anew from requirements.in and requirements-dev.in
	for name in requirements requirements-dev; do \
		$(BIN)/uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-emit-index-url --no-header $$name.in -o $$name.lock || exit 1; \
	done

clean:
	rm -rf .venv libs/relance/api .mypy_cache .ruff_cache .pytest_cache
