# From a bare Python >= 3.11: each target makes .venv and installs what it needs, once.
# PYTHON=/path/to/python chooses the interpreter; ARGS="..." goes to the program.

BIN := .venv/bin
RUNTIME := .venv/.swecli-runtime
DEV := .venv/.swecli-dev
MINUTES ?= 10
# One more than the processors of a small machine: a test also waits for programs that it has started.
WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: help demo run test check bench soak soak-sessions test-live test-interop docs lock clean

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(RUNTIME): pyproject.toml scripts/setup.sh
	@sh scripts/setup.sh runtime

$(DEV): pyproject.toml requirements-dev.txt scripts/setup.sh
	@sh scripts/setup.sh dev

demo: $(RUNTIME) ## The program on a sample project with a scripted model: no key, no network
	@$(BIN)/swecli demo $(ARGS)

run: $(RUNTIME) ## The program in this folder
	@$(BIN)/swecli $(ARGS)

check: $(DEV) ## Style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# The types are checked beside the tests, as that takes one processor for a minute.
test: $(DEV) ## Everything that CI runs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@mkdir -p build; $(BIN)/basedpyright >build/types.txt 2>&1 & types=$$!; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS); tests=$$?; \
	wait $$types; typed=$$?; cat build/types.txt; test $$tests = 0 -a $$typed = 0

bench: $(DEV) ## Figures as ratios to a bare interpreter and to a minimal Textual app
	@$(BIN)/python -m benchmarks $(ARGS)

soak: $(DEV) ## Random commands under strace (needs bubblewrap, strace), then the tests again and again with new random examples, for MINUTES=10
	@$(BIN)/python scripts/proof_fuzz.py --minutes $(MINUTES)
	@$(BIN)/python scripts/soak.py --minutes $(MINUTES) $(ARGS)

soak-sessions: $(DEV) ## Sessions only, once: 1,000 kills of the program in the middle of turns, 300 random sequences of turn, edit, shell, rewind, undo, fork
	@$(BIN)/python scripts/soak.py --minutes 0 tests/e2e/test_kill.py tests/core/engine/test_rewind_sequences.py $(ARGS)

test-live: $(DEV) ## Four small tasks against the provider whose key is in the environment
	@SWECLI_LIVE=1 $(BIN)/pytest tests/live -rs $(ARGS)

test-interop: $(DEV) ## swecli against the LiteLLM proxy, MCP and language servers, ACP clients, all in build/, and Chromium: no key
	@$(BIN)/python scripts/interop.py $(ARGS)

docs: $(DEV) ## Write what in docs/ is generated
	@$(BIN)/python scripts/generate_docs.py

lock: ## Write requirements-dev.txt anew from pyproject.toml
	@sh scripts/lock.sh

clean: ## Remove .venv and caches
	rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
