"""The arguments of components are the fields of the models, and type checkers know them: a wrong word or name is an
error that names it. In nested dictionaries without a class, mypy names the outer argument.

basedpyright is pyright as a package: that of pyright downloads the checker when it runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pulumi
import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from plimsoll import components
from plimsoll.components import PACKAGED
from tests.components import args
from tests.golden import UPDATE
from tests.pages import CHECKOUT
from tests.type_checker import checked_by_mypy

FILE = CHECKOUT / "plimsoll" / "components" / "args.py"
PROGRAM = """
import pulumi
from plimsoll.components import DemandArgs, Environment, EnvironmentArgs, InferenceArgs, LabelRequirementArgs
from plimsoll.components import GpuDiscovery, LimitsArgs, NodePool, PartitionArgs, PresetArgs, ResourceArgs, TaintArgs
from plimsoll.components import Workspace, WorkspaceArgs

given: pulumi.Output[str] = pulumi.Output.from_input("deny")
team: dict[str, str] = {"team": "a"}
"""
RIGHT = """
Environment("e", {"provisioner": "nodeclaim", "admission": given, "demand": {"placement": {"*": "spread"}}})
Environment("e", EnvironmentArgs(demand=pulumi.Output.from_input(DemandArgs(provisioner="trigger-pod"))))
Workspace("w", {"resource": {"capacity_type": "spot", "label_selector": {"match_expressions": [
    {"key": "a", "operator": "In", "values": ["b"]}]}}, "labels": team})
NodePool("p", {"limits": {"nvidia.com/gpu": 8, "memory": "1Ti", "nodes": given}, "labels": team,
    "node_class_ref": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": given}})
"""
WRONG = {
    'Environment("e", {"provisioner": "nodeclam"})': "provisioner",
    'Environment("e", {"admision": "deny"})': "admision",
    'Environment("e", EnvironmentArgs(demand=DemandArgs(provisioner="trigger")))': "provisioner",
    'Environment("e", {"demand": DemandArgs(placement={"*": "scatter"})})': "scatter",
    'Environment("e", {"limits": LimitsArgs(gpu=3)})': '"gpu"',
    'Environment("e", {"limits": {"gpu": 3}})': "limits",
    'Workspace("w", WorkspaceArgs(resource=ResourceArgs(capacity_type="on-demnd")))': "capacity_type",
    'Workspace("w", {"resource": {"partition": PartitionArgs(mode="mg")}})': "mode",
    'Workspace("w", {"inference": InferenceArgs(preset=PresetArgs(nme="phi-4"))})': '"nme"',
    'Workspace("w", {"inference": InferenceArgs(preset=PresetArgs())})': '"name"',
    'args: WorkspaceArgs = {"queue": "a", "inference": InferenceArgs(replicas="two")}': "replicas",
    'LabelRequirementArgs(key="a", operator="Within")': "operator",
    'TaintArgs(key="a", effect="NoSchedul")': "effect",
    'GpuDiscovery("g", {"nfd": given})': "nfd",
}
PYRIGHT_NAMES = {"provisioner": "nodeclam", "limits": "gpu", '"name"': "PresetArgs()", "nfd": "given"}
"""What is wrong in the field, where pyright names that and not the field."""


def test_the_file_has_the_fields_of_the_models() -> None:
    made = args.text()
    if os.environ.get(UPDATE):
        FILE.write_text(made)
    assert FILE.read_text() == made, f"{UPDATE}=1 pytest {Path(__file__).relative_to(CHECKOUT)} writes it anew"


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_programs_are_errors_that_name_what_is_wrong(checker: str, tmp_path: Path) -> None:
    """In one run, because a checker takes seconds to start."""
    program = tmp_path / "program.py"
    lines = [*PROGRAM.splitlines(), *RIGHT.splitlines(), *WRONG]
    program.write_text("\n".join(lines) + "\n")
    said = said_by_mypy(program) if checker == "mypy" else said_by_pyright(program)
    first = len(lines) - len(WRONG) + 1
    assert {number: what for number, what in said.items() if number < first} == {}, "the right program"
    missed = [
        (line, said.get(number, ""))
        for number, (line, name) in enumerate(WRONG.items(), first)
        if not any(each in said.get(number, "") for each in names(checker, name))
    ]
    assert missed == []


def names(checker: str, name: str) -> list[str]:
    return [name] if checker == "mypy" else [name.strip('"'), PYRIGHT_NAMES.get(name, name)]


def said_by_mypy(program: Path) -> dict[int, str]:
    """The errors of each line."""
    said: dict[int, str] = {}
    for found in re.finditer(r"program\.py:(\d+): (.*)", checked_by_mypy([program])):
        said[int(found[1])] = said.get(int(found[1]), "") + found[2]
    return said


def said_by_pyright(program: Path) -> dict[int, str]:
    """The errors of each line, with what they underline: of a wrong name in a call it says no more."""
    (program.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, str(program)]
    done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    lines = program.read_text().splitlines()
    said: dict[int, str] = {}
    for error in json.loads(done.stdout)["generalDiagnostics"]:
        start, end = error["range"]["start"], error["range"]["end"]
        underlined = lines[start["line"]][start["character"] : end["character"]]
        said[start["line"] + 1] = said.get(start["line"] + 1, "") + error["message"] + underlined
    return said


@pytest.mark.parametrize("component", PACKAGED)
def test_component_takes_its_arguments(component: type[pulumi.ComponentResource]) -> None:
    taken = component.__init__.__annotations__["args"]
    assert taken is getattr(components, f"{component.__name__}Args")
    assert component.__name__ in args.COMPONENTS


def test_every_class_is_offered() -> None:
    written = set(re.findall(r"^class (\w+Args)\(", FILE.read_text(), re.MULTILINE))
    assert written <= set(components.__all__)


@pytest.mark.parametrize("component", PACKAGED)
def test_component_has_a_schema(component: type[pulumi.ComponentResource]) -> None:
    """Every output has a description, which editors show, and what the model requires is required."""
    analysis = Analyzer("plimsoll").analyze([component])
    definition = analysis["component_definitions"][component.__name__]
    assert definition.outputs
    assert definition.description
    assert all(output.description for output in definition.outputs.values())
    required = {definition.inputs_mapping[name] for name, field in definition.inputs.items() if not field.optional}
    model = args.COMPONENTS[component.__name__].model
    assert required == {name for name, field in model.model_fields.items() if field.is_required()}
