"""Writes a small Pulumi project that declares a cluster's GPU capacity."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import yaml

from plimsoll.distribution import NAME, version
from plimsoll.errors import PlimsollError
from plimsoll.project.kinds import ClusterKind, Language
from plimsoll.project.program import python_program

ENVIRONMENT: Final = "stacks/Pulumi.environment.yaml"
"""The file of the stack that differs by the kind of cluster."""

PROGRAM: Final = "__main__.py"
_TYPE_CHECKING: Final = """[mypy]

# Half a million lines of overloads, for which mypy takes more than 20 GB of memory.
[mypy-pulumi_kubernetes.*]
follow_imports = skip
"""
"""`mypy.ini` of a Python program."""
_OF_PROGRAM: Final = """# Declared by `declare` in __main__.py.
config:
  layer: environment
"""
_DESCRIPTION: Final = "GPU capacity on Kubernetes, declared with Plimsoll"
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_KINDS: Final = "kinds"
_RENAMED: Final = {"gitignore": ".gitignore"}
"""Files that would count for this repository under their own names."""


def project_files(
    kind: ClusterKind,
    name: str,
    wheel: str | None = None,
    *,
    demand: bool = True,
    language: Language = Language.YAML,
) -> dict[str, str]:
    """The files of a project by their paths. Its requirement is this version of the package, or the file `wheel` in its
    folder; `demand` is whether nodes are requested for pending pods that share GPUs, where an autoscaler creates nodes.
    Raises PlimsollError where `name` is no name of a project."""
    if not _NAME.fullmatch(name):
        raise PlimsollError(
            f"{name!r} is not a valid project name", "use at most 63 of a-z 0-9 -, such as --name gpu-capacity"
        )
    return _filled_files(kind, name, _DESCRIPTION, wheel, demand=demand, language=language)


def check_wheel(wheel: Path) -> None:
    """Raises PlimsollError where the file is no wheel of this package."""
    if not wheel.is_file() or wheel.suffix != ".whl":
        raise PlimsollError(f"{wheel}: is not a wheel", "give the file that `make release` writes to dist")
    package = wheel.name.partition("-")[0]
    if package != NAME.replace("-", "_"):
        raise PlimsollError(f"{wheel}: is a wheel of {package}", f"give one of {NAME}")


def template_files(kind: ClusterKind, *, demand: bool = True, language: Language = Language.YAML) -> dict[str, str]:
    """The same as a template for `pulumi new`, which asks for the name and the description and fills them in."""
    project = _filled_files(kind, "${PROJECT}", "${DESCRIPTION}", None, demand=demand, language=language)
    described = f"template:\n  description: {_DESCRIPTION}, for {kind.summary}\n"
    return {**project, "Pulumi.yaml": project["Pulumi.yaml"] + described}


def write_project(folder: Path, project: Mapping[str, str], *, replace: bool = False) -> list[Path]:
    """Writes the files and returns their paths. Raises PlimsollError where one is there already, unless `replace`."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise PlimsollError(f"{place}: is not a folder", "use another folder")
    present = [path for path in project if (folder / path).exists()]
    if present and not replace:
        raise PlimsollError(
            f"{folder}: these files exist already: {', '.join(present)}",
            "use another folder, or replace them with --force",
        )
    written = []
    for path, text in project.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        written.append(target)
    return written


def _filled_files(
    kind: ClusterKind, name: str, description: str, wheel: str | None, *, demand: bool, language: Language
) -> dict[str, str]:
    template = files(__package__) / "template"
    extras = ",".join(kind.extras)
    values = {
        "PROJECT_NAME": name,
        "PROJECT_DESCRIPTION": description,
        "PLIMSOLL_OF_POLICIES": f"../{wheel}" if wheel else f"{NAME}=={version()}",
        "PLIMSOLL_REQUIREMENT": f"./{wheel}[{extras}]" if wheel else f"{NAME}[{extras}]=={version()}",
        "KIND_SUMMARY": kind.summary,
        "ENVIRONMENT_FILE": ENVIRONMENT if language is Language.YAML else PROGRAM,
        "DEMAND_PROVISIONER": "trigger-pod" if demand else "none",
        **_of_cloud(kind, template),
    }
    texts = {_RENAMED.get(path, path): _filled(text, values) for path, text in _texts(template)}
    chosen = _filled((template / _KINDS / f"{kind.value}.yaml").read_text(), values)
    if language is Language.YAML:
        return {**texts, ENVIRONMENT: chosen}
    program = python_program(yaml.safe_load(chosen)["config"])
    return {**texts, PROGRAM: program, ENVIRONMENT: _OF_PROGRAM, "mypy.ini": _TYPE_CHECKING}


def _of_cloud(kind: ClusterKind, template: Traversable) -> dict[str, str]:
    """How the CI job signs in, and what has to be in the cluster before."""
    signed_in = (template / _KINDS / "sign_in" / f"{kind.value if kind.node_class else 'secret'}.yaml").read_text()
    id_token = "      id-token: write # signs in at the cloud\n" if kind.node_class else ""
    before = (
        f"Before: the cluster has a NodeClass `default`, by which Karpenter launches nodes with NVIDIA's driver. This "
        f"command fails where it is missing, and so does the CI job:\n\n"
        f"```console\nkubectl get {kind.node_class} default\n```\n\n"
        if kind.node_class
        else ""
    )
    return {"      # SIGN_IN\n": signed_in, "      # ID_TOKEN\n": id_token, "NODE_CLASS_BEFORE\n\n": before}


def _texts(folder: Traversable, at: str = "") -> Iterator[tuple[str, str]]:
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.is_dir() and each.name not in (_KINDS, "__pycache__"):
            yield from _texts(each, f"{at}{each.name}/")
        elif each.is_file():
            yield f"{at}{each.name}", each.read_text()


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
