# Needs Python 3.11 or newer with venv, and make. `make PYTHON=python3.13 test` chooses an interpreter.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUN    := $(VENV)/.installed-run
DEV    := $(VENV)/.installed-dev
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

DEMO   := $(BIN)/onrecord chat examples/booking.py:agent --store demo.db --session demo
TESTS  := $(BIN)/python -m pytest
LOCK   := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
          --no-header --no-annotate --upgrade

WHOLE  := not bench and not live
SAME   := --hypothesis-profile repeatable
COVER  := $(BIN)/python -m coverage run --data-file
# Tests that mostly wait for processes of their own: they run beside the others.
# Those of flows, hosts and stores are with them, so that both halves take about the same time.
APART  := tests/docs tests/gates tests/soak tests/days tests/breaking tests/flows tests/host tests/stores \
          tests/cli/test_killed.py tests/cli/test_worker.py tests/cli/test_streams.py tests/cli/test_chat_terminal.py \
          tests/cli/test_chat_pipe.py

.DEFAULT_GOAL := help
.PHONY: help demo test check thorough soak days docs bench lock snapshots coverage format clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(RUN)  ## a chat with the example agent, kept in demo.db; without a terminal a scripted customer plays it
	@if [ -t 0 ]; then $(DEMO); else $(DEMO) < examples/booking_customer.txt; fi

test: $(DEV)  ## everything: gates, budgets, then all tests
	$(BIN)/python -m gates.run
	@if [ -d tests/bench ]; then $(TESTS) -q -m bench -p no:randomly tests/bench; fi
	@rm -f $(VENV)/.coverage.*; \
	$(COVER)=$(VENV)/.coverage.apart -m pytest -q $(SAME) -m "$(WHOLE)" $(APART) > $(VENV)/apart.txt 2>&1 & apart=$$!; \
	$(COVER)=$(VENV)/.coverage.other -m pytest $(SAME) -m "$(WHOLE)" $(APART:%=--ignore=%); other=$$?; \
	echo "tests of whole processes, run beside these:"; wait $$apart; ended=$$?; tail -n 60 $(VENV)/apart.txt; \
	exit $$((other + ended))
	@$(BIN)/python -m coverage combine -q $(VENV)/.coverage.apart $(VENV)/.coverage.other
	@$(BIN)/python -m coverage json -q -o $(VENV)/coverage.json
	@$(BIN)/python -m gates.coverage_floors $(VENV)/coverage.json

check: $(DEV)  ## the gates alone: types, lint, layers, snapshots, documents
	$(BIN)/python -m gates.run

thorough: $(DEV)  ## the property tests with a thousand examples each, drawn anew
	$(TESTS) -q -p no:randomly --hypothesis-profile thorough \
	  $$(grep -rlE "^@given|RuleBasedStateMachine" tests --include='test_*.py' --exclude-dir=bench)

soak: $(DEV)  ## kills workers 200 times over some minutes and checks every promise (KILLS=, SEED=)
	$(BIN)/python -m tests.soak.run --kills $(or $(KILLS),200) $(if $(SEED),--seed $(SEED))

days: $(DEV)  ## ten days of a shop with flows: a thousand customers, two workers, kills (SESSIONS=, SEED=)
	$(BIN)/python -m tests.days.run --sessions $(or $(SESSIONS),1000) $(if $(SEED),--seed $(SEED))

docs: $(DEV)  ## builds the documentation into site/
	$(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m gates.site_self_contained

bench: $(DEV)  ## the benchmarks, with their tables
	$(BIN)/python -m benchmarks.run

snapshots: $(DEV)  ## rewrites every snapshot; look at the difference before you commit it
	$(BIN)/python -m gates.public_api --write
	$(BIN)/python -m gates.names_snapshot --write
	$(BIN)/python -m gates.help_pages --write
	$(TESTS) -q -m "$(WHOLE)" --write-snapshots || [ $$? -eq 5 ]

lock: $(DEV)  ## resolves the lock files anew
	$(PIP) install uv
	$(LOCK) --extra dev -o requirements/dev.txt pyproject.toml requirements/build.in
	$(LOCK) -c requirements/dev.txt -o requirements/run.txt pyproject.toml requirements/build.in

coverage: $(DEV)  ## which lines and branches no test reaches
	$(BIN)/python -m coverage run -m pytest -q -m "$(WHOLE)"
	$(BIN)/python -m coverage report --show-missing --skip-covered

format: $(DEV)  ## formats the code and mends what can be mended safely
	$(BIN)/python -m ruff check --fix-only --quiet
	$(BIN)/python -m ruff format --quiet

clean:  ## removes the environment, caches and what was built
	rm -rf $(VENV) site build dist .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "onrecord needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(RUN): requirements/run.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes -r requirements/dev.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
