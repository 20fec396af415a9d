"""Tests, benchmarks and the programs beside the package import it as its own packages import each other: through the
`__init__` of each package, which lists what others may use. A command is run by `plimsoll.cli.app` and its name."""

import ast
import importlib
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from tests.architecture.contracts import inner_modules
from tests.pages import CHECKOUT

FOLDERS = ("tests", "bench", "demo", "image", "docs", "components", "policies", "stacks", "examples")


@pytest.fixture(scope="module")
def inner() -> set[str]:
    contracts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (fronts,) = (each for each in contracts if each["type"] == "fronts")
    return inner_modules(grimp.build_graph("plimsoll", cache_dir=None), set(fronts["open_packages"]))


def programs() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (CHECKOUT / folder).rglob("*.py"))


def imports(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, module and name; the name is empty where the module itself is imported."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name, "") for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            yield from ((node.lineno, node.module, each.name) for each in node.names)


def beside_fronts(text: str, inner: set[str]) -> list[str]:
    """The imports of inner modules and of private names, each with its line."""
    found = []
    for line, module, name in imports(text):
        if module != "plimsoll" and not module.startswith("plimsoll."):
            continue
        whole = f"{module}.{name}"
        # A package may list a function that is named like its module.
        if module in inner or name.startswith("_") or (whole in inner and not _lists(module, name)):
            found.append(f"{line}: {whole.rstrip('.')}")
    return found


def _lists(package: str, name: str) -> bool:
    return name in getattr(importlib.import_module(package), "__all__", ())


def test_what_is_beside_the_package_imports_its_fronts(inner: set[str]) -> None:
    found = {str(path.relative_to(CHECKOUT)): beside_fronts(path.read_text(), inner) for path in programs()}
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from plimsoll.cli.plan import app",
        "from plimsoll.cli import plan",
        "import plimsoll.kube.connection",
        "def test():\n    from plimsoll.ui.state import States",
        "from plimsoll.stacks.node_overlays import node_overlays",
        "from plimsoll.kube import _private",
    ],
)
def test_an_import_beside_a_front_is_found(text: str, inner: set[str]) -> None:
    assert len(beside_fronts(text, inner)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "from plimsoll import labels",
        "from plimsoll.labels import DEMAND",
        "import plimsoll.kube",
        "from plimsoll.cli.tables.gpus import as_json",
        "from plimsoll.observe.ec2 import ec2_types",
        "from plimsoll.stacks import node_overlays",
        "from plimsolls.kube.connection import Connection",
    ],
)
def test_a_front_and_an_open_package_may_be_imported(text: str, inner: set[str]) -> None:
    assert beside_fronts(text, inner) == []
