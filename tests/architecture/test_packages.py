"""The architecture's table of packages is what the code imports."""

import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
_ROW = re.compile(r"^\| `plimsoll/(\w+)` \|.*\| ([^|]*) \|$", re.MULTILINE)


def documented() -> dict[str, set[str]]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    return {name: set() if imports == "none" else set(imports.split(", ")) for name, imports in _ROW.findall(text)}


def imported() -> dict[str, set[str]]:
    """The packages that each package imports, without the modules beside them."""
    graph = grimp.build_graph("plimsoll", cache_dir=None)
    packages = {name for name in graph.find_children("plimsoll") if graph.find_children(name)}
    found: dict[str, set[str]] = {}
    for package in packages:
        modules = {package, *graph.find_descendants(package)}
        names = {name for module in modules for name in graph.find_modules_directly_imported_by(module)}
        others = {".".join(name.split(".")[:2]) for name in names} & packages - {package}
        found[package.removeprefix("plimsoll.")] = {other.removeprefix("plimsoll.") for other in others}
    return found


def test_the_table_of_packages_is_what_they_import() -> None:
    assert documented() == imported()


def test_the_table_has_the_order_of_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["name"] == "Packages import in one direction")
    order = [name for layer in layers for name in layer.split(" | ")]
    listed = list(documented())
    assert sorted(listed, key=order.index) == listed
