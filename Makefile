# Every command a developer or a user needs; `make` prints them.
SHELL := /bin/bash
export UV_PYTHON_DOWNLOADS := never
UV ?= $(shell command -v uv || echo $(CURDIR)/.uv/bin/uv)
RUN := $(UV) run --no-sync

.PHONY: help install demo test check format clean

help:
	@echo "make demo    install everything, start two sandboxes, run the main job"
	@echo "make test    all tests, end-to-end ones on the sandbox included"
	@echo "make check   format, lint, strict types, import layers"
	@echo "make format  write the format and the fixes of the linter"
	@echo "make clean   remove the virtual environments"

install: .venv/.installed

.venv/.installed: pyproject.toml uv.lock
	@command -v $(UV) >/dev/null || { echo "installing uv" && python3 -m venv .uv && .uv/bin/pip install --quiet uv; }
	$(UV) sync --locked --quiet
	@touch $@

demo: install
	$(RUN) python -m demo

test: install
	$(RUN) plimsoll sandbox install --trainer
	$(RUN) pytest

check: install
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) mypy
	$(RUN) lint-imports --no-cache

format: install
	$(RUN) ruff format .
	$(RUN) ruff check --fix .

clean:
	rm -rf .venv .uv
