# The only commands a newcomer needs:
#   make demo   build everything, run a benchmark on a private PostgreSQL, write a report
#   make test   install what the tests need, then test
#   make lint · make fix · make fuzz · make bench · make docs · make setup · make clean

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
SOURCES := pyproject.toml Cargo.toml Cargo.lock engine/Cargo.toml $(shell find engine -name '*.rs' -not -path '*/target/*')

.PHONY: setup demo test test-engine test-unit test-pg test-slow lint fix fuzz bench docs clean

setup: $(INSTALLED)

# Installed editable: Python changes count at once, Rust changes make this target run again.
$(INSTALLED): $(SOURCES)
	@PYTHON=$(PYTHON) sh tools/setup.sh
	@touch $@

demo: setup
	@sh tools/demo.sh

test: setup test-engine test-unit test-pg

test-engine:
	cargo test --locked --quiet

test-unit: setup
	$(BIN)/python -m pytest -q -m unit

test-pg: setup
	@sh tools/test-needs.sh
	$(BIN)/python -m pytest -q -m pg

test-slow: setup
	@sh tools/test-needs.sh
	$(BIN)/python -m pytest -q -m slow

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	cargo fmt --check
	cargo clippy --locked --all-targets --quiet -- -D warnings

fix: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	cargo fmt

# Ten seconds for each of the engine's parsers; longer: sh tools/fuzz.sh SECONDS
fuzz:
	sh tools/fuzz.sh 10

bench: setup
	$(BIN)/python benches/load.py
	$(BIN)/python benches/engine.py
	$(BIN)/python benches/drop_in.py

docs: setup
	$(BIN)/python tools/generate_docs.py

clean:
	rm -rf .venv target build *.egg-info
