# Two commands do all the set-up: `make demo` shows the thing at work, `make test` proves it.
# They need Python 3.11 or newer, and nothing else.

IS_SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c '$(IS_SUPPORTED)' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FRAMEWORKS_VENV ?= .venv-frameworks
FRAMEWORKS := $(FRAMEWORKS_VENV)/bin
FRAMEWORKS_READY := $(FRAMEWORKS_VENV)/.ready
MXNET_VENV ?= .venv-mxnet
MXNET := $(MXNET_VENV)/bin
MXNET_READY := $(MXNET_VENV)/.ready
OLDEST_VENV ?= .venv-oldest
OLDEST := $(OLDEST_VENV)/bin
OLDEST_READY := $(OLDEST_VENV)/.ready
FUZZ_VENV ?= .venv-fuzz
FUZZ := $(FUZZ_VENV)/bin
FUZZ_READY := $(FUZZ_VENV)/.ready
PYTHON_3_11 ?= $(shell for p in $(PYTHON) python3.11 $(HOME)/.pyenv/versions/3.11.*/bin/python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$p && break; done)
TESTED_FRAMEWORKS ?= pytorch,tensorflow,xgboost,huggingface,lightning,jax
TORCH := torch==2.13.0
TORCH_FROM ?=# where pip is not set up to find a build for the CPU: --index-url https://download.pytorch.org/whl/cpu
SOURCES := layers/smdebug_core/python functions infra local_aws rules tests bench examples book
ARGS ?=
BROWSER ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
CDK_CLI := 2.1148.1# a newer one may not read what our aws-cdk-lib writes

.DEFAULT_GOAL := help

help: ## say what there is to make
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 18

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "smdebug-serverless needs Python 3.11, 3.12 or 3.13 on the PATH, and found none."; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.13 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c '$(IS_SUPPORTED)' 2>/dev/null || { \
		echo "smdebug-serverless needs Python 3.11, 3.12 or 3.13; $(PYTHON) --version says: $$($(PYTHON) --version 2>&1)"; \
		echo "Name another: make PYTHON=/path/to/python3.13 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian: python3-venv)."; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version); once, about a minute ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c '$(IS_SUPPORTED)' || { \
		echo "$(VENV) is of $$($(BIN)/python --version 2>&1), which is not supported: remove it, and try again."; exit 1; }
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps --no-index -e .
	@touch $@

setup: $(READY) ## create .venv with everything that the other targets need

demo: $(READY) ## the whole debugger on this machine: an ill training is found out, told of and stopped
	@$(BIN)/python examples/demo.py $(ARGS)

test: $(READY) ## run the tests (ARGS="-k trial" for some of them)
	@$(if $(BROWSER),,echo "No Chromium here: the tests that look at reports in a browser are left out.")
	@$(BIN)/python -m pytest -q -n auto $(if $(BROWSER),,-m "not browser") $(ARGS)

$(FRAMEWORKS_READY): requirements/frameworks.txt
	@echo "Setting up $(FRAMEWORKS_VENV); once, a few minutes ..."
	@test -x $(FRAMEWORKS)/python || $(PYTHON) -m venv $(FRAMEWORKS_VENV)
	@$(FRAMEWORKS)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/frameworks.txt
	@$(FRAMEWORKS)/python -m pip install -q --disable-pip-version-check $(TORCH_FROM) $(TORCH)
	@touch $@

$(MXNET_READY): requirements/mxnet.txt
	@test -n "$(PYTHON_3_11)" || { echo "MXNet 1.9.1 needs Python 3.11, and there is none."; exit 1; }
	@test -x $(MXNET)/python || $(PYTHON_3_11) -m venv $(MXNET_VENV)
	@$(MXNET)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/mxnet.txt
	@touch $@

$(OLDEST_READY): requirements/oldest.txt
	@test -n "$(PYTHON_3_11)" || { echo "PyTorch 2.1 needs Python 3.11, and there is none."; exit 1; }
	@echo "Setting up $(OLDEST_VENV) with the oldest PyTorch that is promised; once, two minutes ..."
	@test -x $(OLDEST)/python || $(PYTHON_3_11) -m venv $(OLDEST_VENV)
	@$(OLDEST)/python -m pip install -q --disable-pip-version-check --require-hashes --no-deps -r requirements/oldest.txt
	@touch $@

frameworks: $(FRAMEWORKS_READY) ## create .venv-frameworks with PyTorch, TensorFlow, XGBoost and others

test-frameworks: $(FRAMEWORKS_READY) $(MXNET_READY) $(OLDEST_READY) ## run the tests of the hooks on the real frameworks, and say which ran
	@SMDEBUG_TESTED_FRAMEWORKS=mxnet $(MXNET)/python -m pytest -q -p no:cacheprovider tests/frameworks $(ARGS)
	@SMDEBUG_TESTED_FRAMEWORKS=$(TESTED_FRAMEWORKS) \
		$(FRAMEWORKS)/python -m pytest -q -n 2 --dist loadfile tests/frameworks $(ARGS)
	@$(OLDEST)/python -m pytest -q tests/frameworks/pytorch/test_compiled.py $(ARGS)
	@SMDEBUG_TESTED_FRAMEWORKS=pytorch \
		$(OLDEST)/python -m pytest -q -n 2 --dist loadfile tests/frameworks/pytorch $(ARGS) \
		--ignore tests/frameworks/pytorch/test_compiled.py --ignore tests/frameworks/pytorch/test_stories.py

notebooks: $(FRAMEWORKS_READY) ## run the stories of examples/ as notebooks, and keep what their cells show
	@$(FRAMEWORKS)/python examples/notebooks.py

lint: $(READY) ## check style and formatting
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)

format: $(READY) ## put style and formatting right
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)

types: $(READY) ## check types, strictly
	@$(BIN)/mypy

$(FUZZ_READY): requirements/fuzz.txt
	@test -x $(FUZZ)/python || $(PYTHON) -m venv $(FUZZ_VENV)
	@$(FUZZ)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	@touch $@

fuzz: $(FUZZ_READY) ## feed the readers of files and messages with nonsense (ARGS="--seconds 600 index")
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(FUZZ)/python -m tests.fuzz.run $(ARGS)

simulate: $(READY) ## try a million schedules of the handlers (ARGS=20000 for fewer, ARGS="--seed 7" for the story of one)
	@$(BIN)/python -m tests.simulation.many $(or $(ARGS),1000000)

mutants: $(READY) ## break the handlers on purpose, in each way: the simulation has to notice
	@$(BIN)/python -m tests.simulation.many --mutants $(ARGS)

bench-core: $(READY) ## measure writing, reading and opening against numpy and the old library
	@$(BIN)/python -m bench.core $(ARGS)

bench-hooks: $(FRAMEWORKS_READY) ## measure what the hook adds to a training, against the old library's
	@$(FRAMEWORKS)/python -m bench.hooks $(ARGS)

bench-cost: $(READY) ## count what a saved step costs, from the calls that the handlers make
	@$(BIN)/python -m bench.cost $(ARGS)

bench-cold: $(READY) ## time the import of each handler, with the layer alone
	@$(BIN)/python -m bench.cold_start $(ARGS)

bench-kernels: $(READY) ## measure the statistics of a tensor against numpy
	@$(BIN)/python -m bench.kernels $(ARGS)

rules-page: $(READY) ## write docs/rules.md from the catalog of the rules
	@$(BIN)/python -m smdebug_rules.reference > docs/rules.md

site: $(READY) ## make a book of docs/ in build/site/, if every link in it leads somewhere
	@$(BIN)/python -m mkdocs build --quiet --strict -f book/mkdocs.yml && echo "The book begins at build/site/index.html"

rules-report: $(READY) ## train small models that go wrong, and see which rules notice (ARGS="--seeds 5")
	@$(BIN)/python -m bench.rules $(ARGS)

bench-report: $(READY) ## measure the report of a long run: 10,000 steps of 200 tensors
	@$(BIN)/python -m bench.report $(ARGS)

bench-latency: $(READY) ## measure how long it takes from the upload of a step to the event
	@$(BIN)/python -W ignore -m bench.latency $(ARGS)

load-test: $(READY) ## put many runs through the local stack at once (ARGS="--runs 16 --workers 1 --steps 200")
	@$(BIN)/python -W ignore -m bench.load $(ARGS)

wheel: $(READY) ## build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel -d dist

wheel-check: wheel ## install the wheel alone, elsewhere, and use it
	@$(BIN)/python tests/wheel_check.py dist

synth: $(READY) ## write the CloudFormation template of the application into cdk.out/
	@$(BIN)/python -m infra.app

deploy: $(READY) ## deploy into your AWS account (ARGS="-c alert_emails=me@example.org")
	@command -v npx >/dev/null || { echo "The CDK CLI needs npx, which comes with Node.js 22 or newer."; exit 1; }
	npx --yes aws-cdk@$(CDK_CLI) deploy $(ARGS)

layer: $(READY) ## build the Lambda layer for both processors into build/
	@for a in arm64 x86_64; do $(BIN)/python -m infra.core_layer $$a build/layer-$$a || exit 1; done

layer-check: layer ## build it once more: the same sources have to give the same bytes
	@$(BIN)/python -m infra.core_layer arm64 build/layer-again
	@diff -r build/layer-arm64 build/layer-again && echo "The layer is reproducible."

lock: $(READY) ## pin what requirements/*.in ask for, with hashes
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
		requirements/dev.in -o requirements/dev.txt
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.13 \
		requirements/layer.in -o requirements/layer.txt
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
		--override requirements/frameworks.overrides --no-emit-package torch --no-emit-package nvidia-nccl-cu12 \
		requirements/frameworks.in -o requirements/frameworks.txt
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
		requirements/mxnet.in -o requirements/mxnet.txt
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
		requirements/oldest.in -o requirements/oldest.txt
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.11 \
		requirements/fuzz.in -o requirements/fuzz.txt

clean: ## remove everything that was made
	rm -rf $(VENV) .venv-* dist build cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis .demo

.PHONY: help setup demo test simulate mutants fuzz frameworks test-frameworks notebooks bench-hooks lint format types bench-core bench-cost bench-report bench-latency load-test bench-kernels rules-page site rules-report bench-cold wheel wheel-check synth deploy layer layer-check lock clean
