"""The software bill of materials of the image, as CycloneDX: https://cyclonedx.org/docs/1.6/json/"""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

Component = dict[str, Any]


def write_sbom(path: Path, site: Path, programs: Iterable[Path], pulumi_home: Path) -> None:
    """Of the Python packages in `site`, of Pulumi's plugins below `pulumi_home`, and of the Go modules and the Go
    standard library in the plugins and in each of the programs.

    The packages of the base are the base's to tell.
    """
    plugins = [each for each in sorted(pulumi_home.glob("plugins/*")) if each.is_dir()]
    of_plugins = [program for each in plugins for program in sorted(each.glob("pulumi-*"))]
    modules = [*_go([*programs, *of_plugins])]
    found = {each["purl"]: each for each in (*_python(site), *_releases(plugins, modules), *modules)}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "plimsoll"}},
        "components": [found[purl] for purl in sorted(found)],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")


def _python(site: Path) -> Iterator[Component]:
    for each in distributions(path=[str(site)]):
        name = re.sub(r"[-_.]+", "-", each.metadata["Name"]).lower()
        told = each.metadata.json
        text = str(told.get("license_expression") or told.get("license") or "")
        licences = [{"license": {"name": text}}] if text and len(text) < 80 else []
        yield _component(name, each.version, f"pkg:pypi/{name}@{each.version}", licences)


def _releases(plugins: Iterable[Path], modules: Iterable[Component]) -> Iterator[Component]:
    """Plugins by the names that Pulumi gives their folders, because their releases leave their own module without a
    version. One that is built here is among `modules`, with its version."""
    for folder in plugins:
        name, _, version = folder.name.removeprefix("resource-").rpartition("-v")
        if not any(each["name"].startswith(f"github.com/pulumi/pulumi-{name}/") for each in modules):
            yield _component(f"pulumi-{name}", f"v{version}", f"pkg:github/pulumi/pulumi-{name}@v{version}", [])


def _go(programs: Iterable[Path]) -> Iterator[Component]:
    """By what the Go toolchain writes into each program."""
    for program in programs:
        told = subprocess.run(["go", "version", "-m", program], capture_output=True, text=True, check=True).stdout
        toolchain = re.match(r".*: go(\S+)", told)
        if toolchain is not None:
            version = toolchain[1]
            yield _component("stdlib", version, f"pkg:golang/stdlib@{version}", [])
        for kind, name, version in re.findall(r"^\t(mod|dep)\t(\S+)\t(\S+)", told, re.MULTILINE):
            if not (kind == "mod" and version == "(devel)"):
                yield _component(name, version, f"pkg:golang/{name}@{version}", [])


def _component(name: str, version: str, purl: str, licences: list[Any]) -> Component:
    known: Component = {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
    return {**known, "licenses": licences} if licences else known
