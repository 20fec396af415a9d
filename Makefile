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
PROVIDER ?= plugin
BUILDER ?= buildah
# Of `make fuzz`: examples of each property, and where the random numbers begin, as in `make chaos`.
EXAMPLES ?= 20000
SEED ?= $(shell echo $$RANDOM)

# Of `make chaos`: how much goes wrong, and where the random numbers begin.
DISTURBANCES ?= 100

.PHONY: help install hooks browser demo test test-unit fuzz chaos image check format docs release clean

help:
	@echo "make demo       install everything, start two sandboxes, run the main use case"
	@echo "make test       all tests, end-to-end ones on the sandbox and in a browser included; TESTS=FILES_OR_DIRS limits them"
	@echo "make test-unit  the tests that need no sandbox and no browser"
	@echo "make fuzz       property tests with new examples; EXAMPLES=20000 SEED=... TESTS=..."
	@echo "make chaos      kills, cuts, freezes and fills while a cluster changes; DISTURBANCES=100 SEED=..."
	@echo "make image      the container image; BASE=debian PYTHON=3.11 PROVIDER=plugin|attached BUILDER=buildah"
	@echo "make check      format, lint, strict types (tests too), import layers"
	@echo "make format     write the format and the fixes of the linter"
	@echo "make install    the virtual environment alone: source .venv/bin/activate"
	@echo "make hooks      run make check before each commit, with pre-commit"
	@echo "make browser    Chromium for the tests of pages, from the packages of Debian or Ubuntu (as root)"
	@echo "make docs       the documentation as a site, in build/site; fails on a dead link"
	@echo "make release    wheel, site, image and release notes in dist, verified; IMAGE=none for no image"
	@echo "make clean      remove the virtual environments"

install: .venv/.installed

.venv/.installed: pyproject.toml uv.lock
	@command -v $(UV) >/dev/null || { echo "installing uv" && python3 -m venv .uv && .uv/bin/pip install --quiet --disable-pip-version-check uv; }
	$(UV) sync --locked --quiet
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
	$(RUN) plimsoll sandbox install --trainer
	$(PYTEST) --durations 20 --durations-min 20 $(TESTS)

test-unit: install
	$(PYTEST) --ignore tests/e2e $(TESTS)

fuzz: seed := $(SEED)
fuzz: install
	@echo "seed $(seed): again with make fuzz SEED=$(seed)"
	export EXAMPLES=$(EXAMPLES) && $(PYTEST) -m "hypothesis and not e2e" --hypothesis-profile fuzz --hypothesis-seed $(seed) --timeout 0 $(TESTS)

chaos: seed := $(SEED)
chaos: install
	@echo "seed $(seed): again with make chaos SEED=$(seed)"
	$(RUN) plimsoll sandbox install
	$(RUN) CHAOS_DISTURBANCES=$(DISTURBANCES) CHAOS_SEED=$(seed) pytest --capture=no tests/e2e/chaos

image: install
	$(RUN) UV=$(UV) python -m image --base $(BASE) --python $(PYTHON) --provider $(PROVIDER) --builder $(BUILDER)

check: install
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) lint-imports --no-cache

format: install
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

docs: install
	$(RUN) NO_MKDOCS_2_WARNING=1 mkdocs build --strict

release: install check docs
	.ci/release "$(UV)"

clean:
	rm -rf .venv .uv
