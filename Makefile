# Every command a developer or a user needs; `make` prints them.
SHELL := /bin/bash
export UV_PYTHON_DOWNLOADS := never
# Certificates are those that the system trusts, as Go takes them; uv would take its own.
export UV_SYSTEM_CERTS := 1
# Without bytecode, each start of a Python program compiles what it imports: a `pulumi up` takes seconds longer.
unexport PYTHONDONTWRITEBYTECODE
UV ?= $(shell command -v uv || echo $(CURDIR)/.uv/bin/uv)
RUN := source .venv/bin/activate &&
# A process for each core and one more, as far as the memory goes (tests/conftest.py).
PYTEST := $(RUN) pytest --numprocesses auto --dist loadgroup
# Limits `make test`, `make test-unit` and `make fuzz`, as in `make test TESTS=tests/packing`.
TESTS ?=
# Of `make image`: any image with Python of that version, or debian: one that is made of Debian packages.
BASE ?= debian
PYTHON ?= 3.11
# release, which is downloaded, or module: built from its Go module.
PLUGIN ?= release
BUILDER ?= buildah
# Of `make fuzz`: examples of each property, and where the random numbers begin, as in `make chaos` and `make mutants`.
EXAMPLES ?= 20000
SEED ?= $(shell echo $$RANDOM)
# Of `make fuzz`: random clusters with a real KAI Scheduler, in tens.
KAI_BATCHES ?= 20
# Of `make fuzz`: cases with random rules of pods about each other, with the default scheduler.
RULE_CASES ?= 200
# Of `make fuzz`: cases with random slices and claims, with the default scheduler.
CLAIM_CASES ?= 300

# Of `make chaos`: how much goes wrong, and where the random numbers begin.
DISTURBANCES ?= 200

# Of `make mutants`: how many changes of the code are tried, and in which packages, as in ROOMS="packing cost".
N ?= 60
ROOMS ?=

# Of `make release`: cuts that release first. Empty: the version that pyproject.toml has. Many machines and jobs have a
# VERSION in the environment: only one on the command line cuts a release.
ifneq ($(origin VERSION),command line)
override VERSION :=
endif

WORKFLOWS = .github $(wildcard plimsoll/project/template/.github/workflows/*.yaml)

.PHONY: cut help install hooks browser demo test test-unit pythons versions fuzz chaos mutants image check format docs release clean

help:
	@echo "make demo       install everything, start two sandboxes, run the main use case"
	@echo "make test       all tests, end-to-end ones on the sandbox and in a browser included; TESTS=FILES_OR_DIRS limits them"
	@echo "make test-unit  the tests that need no sandbox and no browser"
	@echo "make pythons    the demo and tests of the system with each other Python that this machine has"
	@echo "make versions   unit tests with the lowest and the newest versions of packages that pyproject.toml allows"
	@echo "make fuzz       property tests with new examples, 200 random clusters with KAI, and rules and claims of pods with the default scheduler; EXAMPLES=20000 SEED=... TESTS=... KAI_BATCHES=20 RULE_CASES=200 CLAIM_CASES=300"
	@echo "make chaos      kills, cuts, freezes and fills while a cluster changes; DISTURBANCES=200 SEED=..."
	@echo "make mutants    changes the code in random places, and tells what no test finds; N=60 SEED=... ROOMS=..."
	@echo "make image      the container image; BASE=debian PYTHON=3.11 PLUGIN=release|module BUILDER=buildah"
	@echo "make check      format, lint, strict types (tests too), import layers, declared dependencies, workflows"
	@echo "make format     write the format and the fixes of the linter"
	@echo "make install    the virtual environment alone: source .venv/bin/activate"
	@echo "make hooks      run make check before each commit, with pre-commit"
	@echo "make browser    Chromium for the tests of pages, from the packages of Debian or Ubuntu (as root)"
	@echo "make docs       the documentation as a site, in build/site; fails on a dead link"
	@echo "make release    wheel, site, components, SDKs, image, SBOM and notes in dist, verified; VERSION=X.Y.Z cuts it first, IMAGE=none for no image"
	@echo "make clean      remove the virtual environments"

install: .venv/.installed

.venv/.installed: pyproject.toml uv.lock bootstrap.sh $(wildcard tools/*/go.mod)
	./bootstrap.sh "$(UV)"
	@touch $@

hooks: install
	$(UV) tool install --quiet pre-commit
	"$$($(UV) tool dir --bin)/pre-commit" install

# Tests of pages run in it, and are skipped without it. One that is there is taken as it is.
browser:
	@command -v chromium >/dev/null || { apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium fonts-dejavu-core; }

demo: install
	$(RUN) python -m demo

test: install
	$(RUN) plimsoll sandbox install --trainer --kai
	$(PYTEST) --durations 20 --durations-min 20 $(TESTS)

test-unit: install
	$(PYTEST) --ignore tests/e2e $(TESTS)

pythons: install
	.ci/pythons "$(UV)"

versions: install
	.ci/versions "$(UV)"

fuzz: seed := $(SEED)
fuzz: install
	@echo "seed $(seed): again with make fuzz SEED=$(seed)"
	export EXAMPLES=$(EXAMPLES) && $(PYTEST) -m "hypothesis and not e2e" --hypothesis-profile fuzz --hypothesis-seed $(seed) --timeout 0 $(TESTS)
	$(if $(TESTS),,$(RUN) plimsoll sandbox install --kai && SEED=$(seed) KAI_BATCHES=$(KAI_BATCHES) RULE_CASES=$(RULE_CASES) CLAIM_CASES=$(CLAIM_CASES) pytest --timeout 0 tests/e2e/kai/test_random_clusters.py tests/e2e/demand/test_default_scheduler.py tests/e2e/demand/test_claims_as_scheduled.py)

chaos: seed := $(SEED)
chaos: install
	@echo "seed $(seed): again with make chaos SEED=$(seed)"
	$(RUN) plimsoll sandbox install --kai
	$(RUN) CHAOS_DISTURBANCES=$(DISTURBANCES) CHAOS_SEED=$(seed) pytest --capture=no tests/e2e/chaos
	$(RUN) CHAOS_DISTURBANCES=$$(( ($(DISTURBANCES) + 3) / 4 )) CHAOS_SEED=$(seed) CHAOS_BACKEND=s3 pytest --capture=no tests/e2e/chaos
	$(RUN) KAI_SECONDS=300 pytest --timeout 0 tests/e2e/kai/test_consolidation.py

mutants: seed := $(SEED)
mutants: install
	@echo "seed $(seed): again with make mutants N=$(N) SEED=$(seed)"
	$(RUN) python -m tests.mutants --number $(N) --seed $(seed) --rooms $(ROOMS)

# Needs Go, and Debian's buildah and mmdebstrap. Its test, which needs bubblewrap and root too, builds one of its own.
image: install
	$(RUN) UV=$(UV) python -m image --base $(BASE) --python $(PYTHON) --plugin $(PLUGIN) --builder $(BUILDER)

# Tests and tools may import what the groups of development declare, and need not use all that the package declares.
check: install
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) lint-imports --no-cache
	$(RUN) deptry components plimsoll policies stacks
	$(RUN) deptry bench demo docs image tests --exclude '^build/' --ignore DEP002,DEP004
	$(RUN) zizmor --offline --quiet $(WORKFLOWS)

format: install
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

docs: install
	$(RUN) NO_MKDOCS_2_WARNING=1 mkdocs build --strict

cut: install
	.ci/cut "$(UV)" "$(VERSION)"

release: install $(if $(VERSION),cut) check docs
	.ci/release "$(UV)"

clean:
	rm -rf .venv .uv
