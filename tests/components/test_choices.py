"""Type checkers know the words that arguments may be: a wrong word or name is an error that names it. In nested
dictionaries without a class, it names the outer argument."""

import os
import re
import subprocess
import sys
from pathlib import Path

from plimsoll.model.api import EnvironmentSpec, WorkspaceSpec
from tests.components.choices import choices, text
from tests.golden import UPDATE
from tests.pages import CHECKOUT

FILE = CHECKOUT / "plimsoll" / "components" / "choices.py"
PROGRAM = """
import pulumi
from plimsoll.components import DemandArgs, Environment, EnvironmentArgs, InferenceArgs, LabelRequirementArgs
from plimsoll.components import LimitsArgs, PartitionArgs, PresetArgs, ResourceArgs, Workspace, WorkspaceArgs

given: pulumi.Output[str] = pulumi.Output.from_input("deny")
"""
RIGHT = """
Environment("e", {"provisioner": "nodeclaim", "admission": given, "demand": {"placement": {"*": "spread"}}})
Workspace("w", {"resource": {"capacity_type": "spot", "label_selector": {"match_expressions": [
    {"key": "a", "operator": "In", "values": ["b"]}]}}})
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
    'args: WorkspaceArgs = {"queue": "a", "inference": InferenceArgs(replicas="two")}': "replicas",
    'LabelRequirementArgs(key="a", operator="Within")': "operator",
}


def test_the_file_has_the_words_of_the_models() -> None:
    made = text(choices(EnvironmentSpec, WorkspaceSpec))
    if os.environ.get(UPDATE):
        FILE.write_text(made)
    assert FILE.read_text() == made, f"{UPDATE}=1 pytest {Path(__file__).relative_to(CHECKOUT)} writes it anew"


def test_wrong_programs_are_errors_that_name_what_is_wrong(tmp_path: Path) -> None:
    """In one run, because mypy takes seconds to start."""
    program = tmp_path / "program.py"
    lines = [*PROGRAM.splitlines(), *RIGHT.splitlines()]
    first = len(lines) + 1
    program.write_text("\n".join([*lines, *WRONG]) + "\n")
    cache = CHECKOUT / ".mypy_cache"
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    said: dict[int, str] = {}
    for found in re.finditer(r"program\.py:(\d+): (.*)", done.stdout):
        said[int(found[1])] = said.get(int(found[1]), "") + found[2]
    assert {number: what for number, what in said.items() if number < first} == {}, "the right program"
    missed = [
        (line, said.get(number, ""))
        for number, (line, name) in enumerate(WRONG.items(), first)
        if name not in said.get(number, "")
    ]
    assert missed == [], done.stdout + done.stderr
