# `make demo` shows the debugger at work and `make test` runs its tests. Each sets up what it needs:
# Python 3.11, 3.12 or 3.13 is enough.

# `make test-system` runs the tests of the whole, which tests/conftest.py marks `system`: the application on a local
# stack, every block of the documentation, the page in a browser. `make test` runs all others; ARGS with a path, that.
SYSTEM_ROOMS := tests/docs tests/e2e tests/infra tests/local_aws tests/reports tests/smoke tests/ui
# Tests that wait for other processes half of the time: three for two cores.
WORKERS = $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
# `make test` and `make test-system` run everything on the oldest version of Python. `make test-version` runs on a later
# one what may differ there. A version between runs what leans on the interpreter: threads, processes, files, imports.
BETWEEN_ROOMS := companion config files saving storage test_import_effects.py
# The newest, which Lambda has, runs the handlers too. ROOMS=tests runs all of `make test`, as each night.
NEWEST_ROOMS := compatibility functions service
# What the oldest PyTorch compiles in pieces, with a hook, keeps it from compiling others in one piece later.
OLDEST_COMPILING := test_compiled.py listening/test_beginning.py
# The oldest PyTorch runs what leans on its interface, not on what is observed and measured.
OLDEST_ROOMS := listening modules observing/test_default_plan.py observing/test_iterations.py \
	test_hook.py test_last_words.py test_modes_and_models.py test_old_scripts.py test_same_bits.py test_start.py \
	test_unchanged.py
BETWEEN ?=
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
SINKS_VENV ?= .venv-sinks
SINKS := $(SINKS_VENV)/bin
SINKS_READY := $(SINKS_VENV)/.ready
LOGGERS_VENV ?= .venv-loggers
LOGGERS := $(LOGGERS_VENV)/bin
LOGGERS_READY := $(LOGGERS_VENV)/.ready
OLDEST_VENV ?= .venv-oldest
OLDEST := $(OLDEST_VENV)/bin
OLDEST_READY := $(OLDEST_VENV)/.ready
PYTHON_3_11 ?= $(shell for p in $(PYTHON) python3.11 $(HOME)/.pyenv/versions/3.11.*/bin/python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$p && break; done)
TESTED_FRAMEWORKS ?= pytorch,tensorflow,xgboost,huggingface,lightning,jax,optuna
TORCH := torch==2.13.0
TORCH_FROM ?=# if pip is not configured to find the CPU build: --index-url https://download.pytorch.org/whl/cpu
SOURCES := layers/smdebug_core/python functions infra local_aws rules tests bench corpus examples book tools
PIP_FLAGS := -q --disable-pip-version-check
# Install pinned packages with checked hashes: $(call install,ENVIRONMENT,PACKAGES). It shows how far it is, and logs to
# ENVIRONMENT/setup.log.
install = $(BIN)/python tools/install_packages.py $(1) --uv $(BIN)/uv -- $(2)
# Pin the packages of requirements/NAME.in for a version of Python and later ones: $(call pin,NAME,VERSION,OPTIONS).
pin = $(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version $(2) $(3) \
	requirements/$(1).in -o requirements/$(1).txt
ARGS ?=
# Keep bytecode: the tests and the local stack start many hundred processes, and compiling takes each 0.1 s and more.
unexport PYTHONDONTWRITEBYTECODE
NPM ?= $(shell command -v npm)
BROWSER ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)
CDK_CLI := 2.1148.1# the version that reads the output of our pinned aws-cdk-lib

.DEFAULT_GOAL := help

# `##` begins the line of a target in `make help`, `##+` in `make help-all`.
help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-18s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

help-all: ## list the other targets: measurements, fuzzing, packages, releases
	@awk -F ':.*##[+] ' '/^[a-z-]+:.*##[+] / {printf "%-21s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "smdebug-serverless needs Python 3.11, 3.12 or 3.13 on the PATH, and found none."; \
		echo "Install one, or give its path: make PYTHON=/path/to/python3.13 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c '$(IS_SUPPORTED)' 2>/dev/null || { \
		echo "smdebug-serverless needs Python 3.11, 3.12 or 3.13; $(PYTHON) is $$($(PYTHON) --version 2>&1)"; \
		echo "Give another: make PYTHON=/path/to/python3.13 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot create virtual environments. Install its venv package (Debian: python3-venv)."; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version), once:"
	@echo "about 400 MB, ten seconds to a few minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c '$(IS_SUPPORTED)' || { \
		echo "$(VENV) has $$($(BIN)/python --version 2>&1), which is not supported. Remove it and try again."; exit 1; }
	@date +%s > $(VENV)/.setup-began
	@awk '/^[^ ]/ {ours = /^uv==/} ours' requirements/dev.txt > $(VENV)/uv.txt
	@$(BIN)/python tools/install_packages.py $(VENV) -- -r $(VENV)/uv.txt
	@$(call install,$(VENV),-r requirements/dev.txt)
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-build-isolation --no-deps --no-index -e .
	@echo "$(VENV) is ready after $$(( $$(date +%s) - $$(cat $(VENV)/.setup-began) )) s."
	@rm -f $(VENV)/.setup-began
	@touch $@

setup: $(READY) ## create .venv with everything that the other targets need

demo: $(READY) ## run the whole debugger on this machine: it detects a failing training, alerts and stops it
	@$(BIN)/python examples/demo.py $(ARGS)

test: $(READY) ## run the tests (ARGS="-k trial" for some of them)
	@for shell in zsh fish; do command -v $$shell >/dev/null || \
		echo "$$shell was not found: the test of its completion is skipped."; done
	@$(BIN)/python -m pytest -q -n auto --dist worksteal $(if $(findstring tests/,$(ARGS)),,-m "not system") $(ARGS)

test-system: $(READY) ##+ run the tests of the whole: a local stack, the documentation, the page in a browser
	@$(if $(BROWSER),,echo "Chromium was not found: tests that open the page in a browser are skipped.")
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "system $(if $(BROWSER),,and not browser)" \
		$(SYSTEM_ROOMS) $(ARGS)

test-version: $(READY) ##+ run the tests whose result may depend on the version of Python
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not browser and not system" \
		$(or $(ROOMS),$(patsubst %,tests/%,$(BETWEEN_ROOMS) $(if $(BETWEEN),,$(NEWEST_ROOMS)))) $(ARGS)

$(FRAMEWORKS_READY): requirements/frameworks.txt | $(READY)
	@echo "Setting up $(FRAMEWORKS_VENV); once, a minute ..."
	@test -x $(FRAMEWORKS)/python || $(PYTHON) -m venv $(FRAMEWORKS_VENV)
	@$(call install,$(FRAMEWORKS_VENV),--no-deps -r requirements/frameworks.txt)
	@$(BIN)/python tools/install_packages.py $(FRAMEWORKS_VENV) -- $(TORCH_FROM) $(TORCH)
	@touch $@

$(MXNET_READY): requirements/mxnet.txt | $(READY)
	@test -n "$(PYTHON_3_11)" || { echo "MXNet 1.9.1 needs Python 3.11, which was not found."; exit 1; }
	@test -x $(MXNET)/python || $(PYTHON_3_11) -m venv $(MXNET_VENV)
	@$(call install,$(MXNET_VENV),-r requirements/mxnet.txt)
	@touch $@

$(OLDEST_READY): requirements/oldest.txt | $(READY)
	@test -n "$(PYTHON_3_11)" || { echo "PyTorch 2.1 needs Python 3.11, which was not found."; exit 1; }
	@echo "Setting up $(OLDEST_VENV) with the oldest supported PyTorch; once ..."
	@test -x $(OLDEST)/python || $(PYTHON_3_11) -m venv $(OLDEST_VENV)
	@$(call install,$(OLDEST_VENV),--no-deps -r requirements/oldest.txt)
	@touch $@

$(SINKS_READY): requirements/sinks.txt | $(READY)
	@echo "Setting up $(SINKS_VENV) with MLflow, W&B and others; once ..."
	@test -x $(SINKS)/python || $(PYTHON) -m venv $(SINKS_VENV)
	@$(call install,$(SINKS_VENV),-r requirements/sinks.txt)
	@touch $@

frameworks: $(FRAMEWORKS_READY) ##+ create .venv-frameworks with PyTorch, TensorFlow, XGBoost and others

# The frameworks and the tools together: it installs nothing, and finds both in their own environments.
$(LOGGERS_READY): $(FRAMEWORKS_READY) $(SINKS_READY)
	@$(FRAMEWORKS)/python -m venv --without-pip $(LOGGERS_VENV)
	@for found in $(FRAMEWORKS) $(SINKS); do $$found/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; done \
		> $$($(LOGGERS)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/both.pth
	@touch $@

environments: $(FRAMEWORKS_READY) $(MXNET_READY) $(OLDEST_READY) $(SINKS_READY) ##+ create that of the frameworks and those of MXNet, the oldest PyTorch and the sinks

test-frameworks: test-mxnet test-newest test-oldest ## run the hooks' tests on the real frameworks, and list which ran

test-mxnet: $(MXNET_READY) ##+ run the hooks' tests on MXNet, which needs an environment of its own
	@SMDEBUG_TESTED_FRAMEWORKS=mxnet $(MXNET)/python -m pytest -q -p no:cacheprovider tests/frameworks $(ARGS)

test-newest: $(FRAMEWORKS_READY) ##+ run the hooks' tests on the newest frameworks
	@SMDEBUG_TESTED_FRAMEWORKS=$(TESTED_FRAMEWORKS) \
		OMP_NUM_THREADS=1 $(FRAMEWORKS)/python -m pytest -q -n $(WORKERS) --dist loadfile tests/frameworks $(ARGS)

test-oldest: $(OLDEST_READY) ##+ run the hooks' tests on the oldest supported PyTorch
	@$(OLDEST)/python -m pytest -q $(patsubst %,tests/frameworks/pytorch/%,$(OLDEST_COMPILING)) $(ARGS)
	@SMDEBUG_TESTED_FRAMEWORKS=pytorch \
		OMP_NUM_THREADS=1 $(OLDEST)/python -m pytest -q -n 2 --dist loadfile \
		$(patsubst %,tests/frameworks/pytorch/%,$(OLDEST_ROOMS)) $(ARGS) \
		$(patsubst %,--ignore tests/frameworks/pytorch/%,$(OLDEST_COMPILING) test_stories.py test_own_errors.py)

test-sinks: $(SINKS_READY) $(LOGGERS_READY) ##+ run the tests of sinks on MLflow, W&B and others themselves
	@$(SINKS)/python -m pytest -q -p no:cacheprovider tests/sinks/real $(ARGS)
	@SMDEBUG_TESTED_FRAMEWORKS=loggers OMP_NUM_THREADS=1 \
		$(LOGGERS)/python -m pytest -q -p no:cacheprovider -n 3 tests/frameworks/loggers $(ARGS)

pictures: $(FRAMEWORKS_READY) $(SINKS_READY) ##+ make the pictures of the documentation, with Chromium
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(FRAMEWORKS)/python -m tools.pictures $(ARGS)
	@$(BIN)/python -m tests.ui.pictures $(ARGS)
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(BIN)/python -m tests.service.stopping.pictures
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(SINKS)/python -m tests.sinks.pictures $(ARGS)

notebooks: $(FRAMEWORKS_READY) ##+ run the stories of examples/ as notebooks and store their output
	@$(FRAMEWORKS)/python examples/notebooks.py

lint: $(READY) ## check style and formatting
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(if $(NPM),$(MAKE) -s lint-page,echo "npm was not found: the scripts of the page are not checked.")

node_modules/.ready: package-lock.json
	@npm ci --silent
	@touch $@

lint-page: node_modules/.ready ##+ check the format and the types of the page's scripts, with npm
	@npm run --silent lint
	@npm run --silent types

answer-types: $(READY) ##+ write the types of the server's answers for the page's scripts
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(BIN)/python -m tools.answer_typedefs

format: $(READY) ## fix style and formatting
	@$(BIN)/ruff check --fix $(SOURCES)
	@$(BIN)/ruff format $(SOURCES)
	@$(if $(NPM),$(MAKE) -s node_modules/.ready && npm run --silent format >/dev/null)

types: $(READY) ## check types, strictly
	@$(BIN)/mypy

fuzz: $(READY) ##+ fuzz the readers of files and messages (ARGS="--seconds 600 index")
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(BIN)/python -m tests.fuzz.run $(ARGS)

simulate: $(READY) ##+ run a million fault schedules of the handlers (ARGS=20000 for fewer, ARGS="--seed 7" to trace one)
	@$(BIN)/python -m tests.simulation.many $(or $(ARGS),1000000)

mutants: $(READY) ##+ check that simulation and tests detect every deliberate defect
	@$(BIN)/python -m tests.simulation.many --mutants $(ARGS)

mutate: $(READY) ##+ edit a room of the code and show what its tests do not notice (ROOM=saving, ARGS="--count 200 --seed 3")
	@$(BIN)/python -m tools.mutate $(or $(ROOM),$(error Which room? make mutate ROOM=saving)) $(ARGS)

SCHEDULES ?= 5000
writer-faults: $(READY) ##+ run fault schedules of the writer, and kill 40 processes (SCHEDULES=20000 for more, ARGS="--seed 7" to trace one)
	@$(if $(ARGS),,PYTHONPATH=layers/smdebug_core/python:rules:. $(BIN)/python -m tests.faults.writer.many --kills 40)
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(BIN)/python -m tests.faults.writer.many $(or $(ARGS),$(SCHEDULES))

writer-defects: $(READY) ##+ check that those schedules find every deliberate defect of the writer
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(BIN)/python -m tests.faults.writer.many --defects $(ARGS)

bench-core: $(READY) ##+ compare writing, reading and opening with NumPy and the old library
	@$(BIN)/python -m bench.core $(ARGS)

bench-hooks: $(FRAMEWORKS_READY) ##+ measure the hook's overhead in training, and the old library's
	@$(FRAMEWORKS)/python -m bench.hooks $(ARGS)

bench-ui: $(READY) ##+ measure the page of smdebug ui in Chromium, beside TensorBoard (4 GB; ARGS="--saved-steps 5000" for less)
	@$(BIN)/python -m bench.ui --tensorboard $(BIN)/tensorboard $(ARGS)

bench-cost: $(READY) ##+ compute the cost of a saved step from the handlers' AWS calls
	@$(BIN)/python -m bench.costs.cost $(ARGS)
	@$(BIN)/python -m bench.costs.sweeps

bench-scale: $(READY) ##+ count the cost of ending a long run: a million steps, 1,024 workers
	@$(BIN)/python -m bench.costs.scale $(ARGS)

bench-throughput: $(READY) ##+ count the steps a second of one run that the rules evaluate, by its number of workers
	@$(BIN)/python -m bench.costs.throughput $(ARGS)

bench-cold: $(READY) ##+ time the import of each handler with only the layer installed
	@$(BIN)/python -m bench.cold_start $(ARGS)

bench-kernels: $(READY) ##+ compare the statistics of a tensor with NumPy
	@$(BIN)/python -m bench.kernels $(ARGS)

bench-default-rules: $(READY) ##+ time the default rules over 2,000 saved steps of 200 tensors
	@$(BIN)/python -m bench.default_rules $(ARGS)

bench-corruption: $(FRAMEWORKS_READY) ##+ damage numbers of small trainings, and count what the rules find (ARGS="--tuning 0 --aside 5")
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(FRAMEWORKS)/python -m bench.corruption $(ARGS)

rules-page: $(READY) ## write docs/rules.md from the rule catalog
	@$(BIN)/python -m smdebug_rules.reference > docs/.new && mv docs/.new docs/rules.md

site: $(READY) ## build docs/ as a book in build/site/, and fail on a broken link
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict -f book/mkdocs.yml && echo "The book begins at build/site/index.html"

rules-report: $(READY) ##+ train small failing models and report which rules detect it (ARGS="--seeds 5")
	@$(BIN)/python -m bench.rules $(ARGS)

verdicts: $(FRAMEWORKS_READY) ##+ measure the default rules: false alarms, and faults found (ARGS="--tuning --seeds 1", ARGS="--random 60")
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(FRAMEWORKS)/python -m corpus $(ARGS)

verdicts-agent: $(FRAMEWORKS_READY) ##+ measure a scripted agent that reads `smdebug mcp` alone, on the runs of `make verdicts`
	@PYTHONPATH=layers/smdebug_core/python:rules:. $(FRAMEWORKS)/python -m corpus.measuring.agent $(ARGS)

verdicts-page: $(READY) ##+ write docs/verdicts.md from the results of the last `make verdicts ARGS=--publish`
	@$(BIN)/python -m corpus.measuring.publish > docs/.new && mv docs/.new docs/verdicts.md

bench-report: $(READY) ##+ time the report of a long run: 10,000 steps of 200 tensors
	@$(BIN)/python -m bench.report $(ARGS)

bench-live-share: $(READY) ##+ count how long live runs wait for their events, without and beside a backtest
	@$(BIN)/python -m bench.costs.live_share $(ARGS)

bench-expressions: $(READY) ##+ time an expression on ten series of 5,000 runs, from their index and with their folders
	@$(BIN)/python -m bench.expressions $(ARGS)

bench-backtest-rate: $(READY) ##+ compare the rate of a backtest with processes that only evaluate the runs
	@$(BIN)/python -m bench.backtest_rate $(ARGS)

bench-many-runs: $(READY) ##+ measure the memory of a backtest of a million runs: list them, write their table, plan them (half an hour)
	@$(BIN)/python -m bench.many_runs $(ARGS)

bench-latency: $(READY) ##+ measure the time from the upload of a step to its event
	@$(BIN)/python -W ignore -m bench.latency $(ARGS)

load-test: $(READY) ##+ send many concurrent runs through the local stack (ARGS="--runs 16 --workers 1 --steps 200")
	@$(BIN)/python -W ignore -m bench.load $(ARGS)

wheel: $(READY) ##+ build the wheel into dist/
	@$(BIN)/python -m hatchling build -t wheel -d dist

wheel-check: wheel ##+ install the wheel in an empty environment and use it
	@$(BIN)/python tests/wheel_check.py dist

release: $(READY) ##+ prepare a release: version, changelog, wheel and its check (VERSION=0.2.0)
	@$(BIN)/python -m tools.release "$(VERSION)"

synth: $(READY) ##+ write the CloudFormation template of the application into cdk.out/, and print its path
	@$(BIN)/python -m infra.app

deploy: $(READY) ## deploy into your AWS account (ARGS="-c alert_emails=me@example.org")
	@command -v npx >/dev/null || { echo "The CDK CLI needs npx, which comes with Node.js 22 or newer."; exit 1; }
	npx --yes aws-cdk@$(CDK_CLI) deploy $$($(BIN)/python -m infra.account.quota $(ARGS)) $(ARGS)

take-over: $(READY) ##+ watch a bucket that an earlier stack has left (BUCKET=smdebug-…), and go on with its step index (TABLE=…)
	@test -n "$(BUCKET)" || { echo "Which bucket? make take-over BUCKET=smdebug-…"; exit 1; }
	@$(BIN)/python -m infra.account.take_over "$(BUCKET)"
	@$(MAKE) --no-print-directory deploy ARGS="-c bucket=$(BUCKET) $(if $(TABLE),-c table=$(TABLE)) $(ARGS)"

smoke-aws: $(READY) ##+ try everything in your AWS account, which costs a few cents: deploy, three runs, destroy, again
	@$(BIN)/python -m tests.smoke.on_aws --cdk $(CDK_CLI) $(ARGS)

layer: $(READY) ##+ build the Lambda layer for both processors into build/
	@for a in arm64 x86_64; do $(BIN)/python -m infra.packaging.core_layer $$a build/layer-$$a || exit 1; done

layer-check: layer ##+ build the layer twice: the same sources must give the same bytes
	@$(BIN)/python -m infra.packaging.core_layer arm64 build/layer-again
	@diff -r build/layer-arm64 build/layer-again && echo "The layer is reproducible."

lock: $(READY) ##+ pin the packages of requirements/*.in, with hashes
	@$(call pin,dev,3.11)
	@$(call pin,layer,3.13)
	@$(call pin,frameworks,3.11,--override requirements/frameworks.overrides \
		--no-emit-package torch --no-emit-package nvidia-nccl-cu12)
	@$(call pin,sinks,3.11)
	@$(call pin,mxnet,3.11)
	@$(call pin,oldest,3.11)

clean: ## remove everything that make created
	rm -rf $(VENV) .venv-* dist build cdk.out .pytest_cache .mypy_cache .ruff_cache .hypothesis .demo

.PHONY: mutate lint-page answer-types bench-ui pictures help help-all setup demo test test-version simulate mutants writer-faults writer-defects fuzz frameworks environments test-frameworks test-mxnet test-newest test-oldest test-sinks notebooks bench-hooks lint format types bench-core bench-cost bench-scale bench-throughput bench-report bench-live-share bench-expressions bench-backtest-rate bench-many-runs bench-latency load-test bench-kernels bench-default-rules bench-corruption rules-page site rules-report verdicts verdicts-agent verdicts-page bench-cold wheel wheel-check release synth deploy take-over smoke-aws layer layer-check lock clean
