# Everything runs from one virtual environment, .venv, which `make` builds when it is needed.
# PYTHON chooses the interpreter, VENV the folder: make test PYTHON=python3.13 VENV=.venv313

PYTHON ?= python3
VENV   ?= .venv
MODEL  ?= smollm2-135m
OPENMP ?= libgomp.so.1
JOBS   ?= 2
RUNS   ?= 500
ARGS   ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip --disable-pip-version-check --no-input install
SAY     := @printf '\n==> %s\n'

# Every project file whose change means "install again".
CORE_FILES   := pyproject.toml agentkit/_version.py
PLUGINS      := bench local postgres redis studio
PLUGIN_FILES := $(PLUGINS:%=plugins/agentkit-%/pyproject.toml)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo demo-picture studio-pictures test test-all lint format types unit meaning coverage bench docs install openmp weights clean \
	test-extras test-faults test-interop test-training test-trl train-demo bench-training training \
	bench-interop servers

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' \
		| while IFS="$$(printf '\t')" read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.runtime openmp  ## see tools repair their definitions: a small local model, no key
	$(SAY) "Fetching the local model $(MODEL) (about 100 MB, once)"
	$(BIN)/agentkit models install $(MODEL)
	$(SAY) "Running the demo"
	$(BIN)/agentkit demo $(ARGS)

demo-picture: $(VENV)/.dev openmp  ## run the demo and record it into docs/images/demo.svg
	$(BIN)/agentkit models install $(MODEL)
	$(BIN)/python docs/images/record.py docs/images/demo.svg --without 5 -- $(BIN)/agentkit demo $(ARGS)

studio-pictures: $(VENV)/.dev  ## play the studio's story in Chromium and keep its pictures in docs/images
	STUDIO_PICTURES=docs/images $(BIN)/pytest plugins/agentkit-studio/tests/test_browser.py -k story_of_a_rule $(ARGS)

test: lint weights types unit meaning  ## lint, check types, run the tests that take seconds

install: $(VENV)/.dev  ## build .venv with the runtime, its plugins and the tools

lint: $(VENV)/.dev  ## ruff: rules and format
	$(SAY) "Linting"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## mypy, strict
	$(SAY) "Checking types"
	$(BIN)/mypy

# llama.cpp is linked to the OpenMP runtime, which a bare Debian may lack.
openmp:
	@$(PYTHON) -c 'import ctypes; ctypes.CDLL("$(OPENMP)")' 2>/dev/null || [ "$$(uname)" != Linux ] || { \
		printf '\n==> Installing libgomp1, the OpenMP runtime of the local model\n'; \
		apt-get install -y -q libgomp1 || { apt-get update -q && apt-get install -y -q libgomp1; } \
		|| { echo "The local model needs $(OPENMP). Run: sudo apt-get install libgomp1"; exit 1; }; }

# Without the weights the tests that need them skip and say so.
weights: $(VENV)/.dev openmp
	$(SAY) "Fetching the local model $(MODEL) for the tests that run it (about 100 MB, once)"
	@$(BIN)/agentkit models install $(MODEL) \
		|| echo "The weights could not be fetched; tests marked 'weights' will skip."

# Tests are shared out to JOBS processes; JOBS=0 runs them in one, which is quicker for a few.
unit: $(VENV)/.dev servers  ## pytest alone; ARGS are passed on: make unit JOBS=0 ARGS="-k store -x"
	$(SAY) "Running the tests"
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not faults and not long and not corpora" $(ARGS)

# What retrieval finds depends on whether word vectors are there: most users start without them, so
# the tests above run without, and these again with. They stay out of the environment itself. The
# local model says the same either way.
MEANING := $(wildcard $(addprefix tests/retrieval/test_, $(addsuffix .py, cascade index_exactness kept_index))) \
	tests/docs/test_pages.py tests/cli/test_tools_command.py tests/agent/test_tool_search.py

meaning: $(VENV)/.vectors  ## what depends on word vectors: retrieval and pages
	$(SAY) "Running the tests of retrieval and of the pages with word vectors"
	PYTHONPATH=$(abspath $(VENV)/vectors) $(BIN)/pytest -o cache_dir=$(VENV)/vectors/.pytest_cache \
		-n $(JOBS) --dist worksteal -m "not weights and not long" $(MEANING) $(ARGS)

# Training has an environment of its own: torch and what stands on it are large, and the runtime is
# to be tested without them. TORCH names a build for the processor alone; take another for a GPU.
TRAINING := $(VENV)/training
TORCH    ?= torch==2.13.0

training: $(TRAINING)/.ready  ## build .venv/training: the runtime, agentkit-training, torch and TRL

test-training: $(TRAINING)/.ready  ## check types and run the tests of agentkit-training
	$(SAY) "Checking the types of agentkit-training"
	cd training && ../$(TRAINING)/bin/mypy
	$(SAY) "Running the tests of agentkit-training"
	cd training && OMP_NUM_THREADS=1 ../$(TRAINING)/bin/pytest -n $(JOBS) --dist worksteal $(ARGS)

# TRL is promised from its lowest release to its newest; the tests above run with the newest.
LOWEST := $(VENV)/lowest-trl
needs-lowest-trl := "trl==1.0.0" "transformers==4.56.2" "tokenizers==0.22.*" "huggingface-hub==0.36.*" \
	"datasets==4.7.0" "accelerate==1.4.0" "peft==0.15.2"

test-trl: $(LOWEST)/.ready  ## the tests of the engines on the lowest TRL, in an environment of its own
	$(SAY) "Running the tests of the engines with the lowest TRL"
	cd training && OMP_NUM_THREADS=1 ../$(LOWEST)/bin/python -m pytest -n $(JOBS) --dist worksteal \
		-o cache_dir=$(abspath $(LOWEST))/.pytest_cache tests/engines tests/distributed $(ARGS)

train-demo: $(TRAINING)/.ready openmp  ## train a small real model on a CPU, then ask the runtime: ten minutes
	$(TRAINING)/bin/agentkit models install $(MODEL)
	OMP_NUM_THREADS=$(JOBS) $(TRAINING)/bin/agentkit-train demo $(ARGS)

bench-training: $(TRAINING)/.ready  ## measure the lean engine beside plain TRL
	cd training && ../$(TRAINING)/bin/python tests/benchmarks/engines.py $(ARGS)

# Tests of stores start servers of their own; without the programs they skip and say so.
servers:
	@.ci/servers

# The unit tests break things a few times; here it is RUNS times each, which takes a while.
test-faults: $(VENV)/.dev servers  ## kill, cut, fill and restart every store, RUNS=500 times
	$(SAY) "Breaking every store, $(RUNS) times where that is counted"
	AGENTKIT_FAULT_RUNS=$(RUNS) $(BIN)/pytest -m faults --timeout 3600 -n $(JOBS) --dist worksteal $(ARGS)

test-all: test test-training  ## everything, long: races, kills, faults RUNS times, many examples
	$(SAY) "Running every test, with more examples"
	AGENTKIT_EXAMPLES=500 AGENTKIT_PROGRAMS=20000 $(BIN)/pytest -m "not faults" --timeout 3600 -n $(JOBS) --dist worksteal $(ARGS)
	$(SAY) "Fuzzing what strangers can send"
	AGENTKIT_FUZZ_EXAMPLES=2000 $(BIN)/pytest tests/fuzz --timeout 3600 -n $(JOBS) --dist worksteal $(ARGS)
	$(MAKE) test-faults

# Frameworks that our tools are handed to, each in an environment of its own: their pins fight, so
# `make test` runs none of this. The versions are those that docs/interop.md names.
INTEROP := pydantic-ai openai-agents langgraph
needs-pydantic-ai   := "pydantic-ai-slim[openai]==2.68.*"
needs-openai-agents := "openai-agents==0.24.*"
needs-langgraph     := "langgraph==1.2.*" "langchain-core>=1.7,<1.9" "langchain>=1.4,<2" "langchain-openai>=1.7,<2"

# litellm pins what other extras need newer, so that its part of the tests of models has one, too.
needs-litellm := "litellm==1.106.*" "mcp>=1.20" "openai>=2,<4" "anthropic>=2,<3" "aiohttp>=3.10"

test-interop: $(INTEROP:%=$(VENV)/interop/%/.ready) $(VENV)/interop/litellm/.ready  ## our tools in other frameworks, and litellm, each in its own environment
	@for name in $(INTEROP); do \
		printf '\n==> Running the tests of interop with %s\n' $$name; \
		$(VENV)/interop/$$name/bin/python -m pytest tests/interop/frameworks \
			-o cache_dir=$(VENV)/interop/$$name/.pytest_cache $(ARGS) || exit 1; \
	done
	$(SAY) "Running the tests of models with litellm"
	$(VENV)/interop/litellm/bin/python -m pytest tests/models \
		-o cache_dir=$(VENV)/interop/litellm/.pytest_cache $(ARGS)

test-extras: $(VENV)/.dev  ## install each extra alone, in an environment of its own, and make one tool call
	$(SAY) "Making a tool call through each extra alone"
	$(BIN)/python tests/extras/alone.py $(ARGS)

bench-interop: $(INTEROP:%=$(VENV)/interop/%/.ready)  ## what our tools cost in other frameworks, beside their own
	@for name in $(INTEROP); do \
		$(VENV)/interop/$$name/bin/python -W ignore tests/benchmarks/interop/overhead.py $(ARGS) || exit 1; \
	done

coverage: $(VENV)/.dev  ## pytest with branch coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

# PEERS: a folder of virtual environments (pydantic_ai, openai_agents; smolagents, monty) to measure
# beside ours.
# CORPORA: folders with tools.jsonl.gz and retrieval.jsonl.gz to measure retrieval on.
bench: $(VENV)/.dev  ## measure runtime and composites (and retrieval, with CORPORA="..."); see docs/benchmarks.md
	$(SAY) "Measuring the runtime"
	$(BIN)/python tests/benchmarks/runtime/overhead.py $(if $(PEERS),--peers-venvs $(PEERS)) $(ARGS)
	$(SAY) "Measuring composites"
	$(BIN)/python tests/benchmarks/composites/overhead.py $(if $(PEERS),--peers-venvs $(PEERS))
ifdef CORPORA
	$(SAY) "Measuring retrieval"
	for folder in $(CORPORA); do \
	  $(BIN)/agentkit bench retrieval --by name --catalogue $$folder/tools.jsonl.gz \
	    --queries $$folder/retrieval.jsonl.gz \
	    --output docs/benchmarks/retrieval-$$(basename $$folder).jsonl || exit 1; \
	done
endif

docs: $(VENV)/.dev  ## write the generated pages, run every block of the documentation
	$(SAY) "Writing the generated parts"
	$(BIN)/cog -I docs -r docs/cli.md docs/reference.md
	$(SAY) "Running every block"
	$(BIN)/pytest tests/docs $(ARGS)

clean:  ## remove .venv and everything that was built or cached here
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis demo-output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name '*.egg-info' -type d -prune -exec rm -rf {} +

# --- the environment; a stamp file tells what is installed ----------------------------------------

$(VENV)/.created:
	$(SAY) "Creating $(VENV) with $$($(PYTHON) --version 2>&1)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "agentkit needs Python 3.11 or newer; choose one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
		echo "This Python cannot create environments with pip. On Debian run:"; \
		echo "    apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.created $(CORE_FILES) $(PLUGIN_FILES)
	$(SAY) "Installing the runtime, the local model and the benchmarks"
	$(PIP) -e . -e plugins/agentkit-local -e plugins/agentkit-bench
	@touch $@

$(VENV)/.dev: $(VENV)/.created $(CORE_FILES) $(PLUGIN_FILES)
	$(SAY) "Installing the runtime, its plugins and the tools for development"
	$(PIP) -e '.[dev]' $(PLUGINS:%=-e plugins/agentkit-%)
	@touch $(VENV)/.runtime $@

$(VENV)/.vectors: $(VENV)/.dev
	$(SAY) "Fetching the word vectors, beside the environment"
	rm -rf $(VENV)/vectors
	$(PIP) --quiet --no-deps --target $(VENV)/vectors "wordllama>=0.4" tokenizers
	@touch $@

$(TRAINING)/.ready: $(CORE_FILES) training/pyproject.toml
	$(SAY) "Installing agentkit-training, torch and TRL into $(TRAINING) (several hundred MB, once)"
	@[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --no-input install --quiet $(TORCH)
	$(@D)/bin/python -m pip --disable-pip-version-check --no-input install --quiet \
		-e . -e plugins/agentkit-local -e plugins/agentkit-bench -e 'training[dev]'
	$(TRAINING)/bin/python -m pip install --quiet --no-deps "wordllama>=0.4"  # its two data files
	@touch $@

# Environments that share torch with that of training, and have the rest for themselves.
PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))
define beside-training
@[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
@printf 'import site; site.addsitedir("%s")\n' "$$($(TRAINING)/bin/python -c '$(PURELIB)')" \
	> "$$($(@D)/bin/python -c '$(PURELIB)')/training.pth"
endef

$(LOWEST)/.ready: $(TRAINING)/.ready
	$(SAY) "Installing the lowest TRL beside agentkit-training"
	$(beside-training)
	$(@D)/bin/python -m pip --disable-pip-version-check --no-input install --quiet --no-deps $(needs-lowest-trl)
	@touch $@

$(VENV)/interop/%/.ready: $(CORE_FILES) Makefile
	$(SAY) "Installing agentkit beside $*"
	@[ -x $(@D)/bin/python ] || $(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check --no-input install --quiet -e . $(needs-$*) \
		hypothesis pytest pytest-asyncio pytest-timeout
	@touch $@
