"""Profiles of the property tests: the same examples in every run, or many new ones."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pages import CHECKOUT


def examples() -> list[list[int]]:
    taken = []

    @settings(settings.get_profile("fixed"))
    @given(st.lists(st.integers()))
    def take(numbers: list[int]) -> None:
        taken.append(numbers)

    take()
    return taken


def load(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def test_examples_are_the_same_in_every_process(tmp_path: Path) -> None:
    before = examples()
    (tmp_path / "full_of_numbers.py").write_text(f"NUMBERS = {[*range(10**6, 10**6 + 1000)]}")
    load(tmp_path / "full_of_numbers.py")
    try:
        assert examples() == before
    finally:
        del sys.modules["full_of_numbers"]


def fuzzed(folder: Path, program: str, seed: int) -> list[str]:
    """What the program's test prints on lines with `took`, with 50 examples of the fuzzing profile."""
    (folder / "test_one.py").write_text(program)
    command = [sys.executable, "-m", "pytest", "-s", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}", str(folder)]
    environ = {**os.environ, "EXAMPLES": "50", "HYPOTHESIS_STORAGE_DIRECTORY": str(folder)}
    done = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "took" in line]


def test_the_fuzzing_profile_has_more_examples_and_depends_on_the_seed(tmp_path: Path) -> None:
    program = (
        "from hypothesis import given, settings, strategies as st\n"
        "@settings(max_examples=2, derandomize=True)\n"
        "@given(st.integers())\n"
        "def test_one(number): print('took', number)\n"
    )
    first, again, other = (fuzzed(tmp_path, program, seed) for seed in (1, 1, 2))
    assert len(first) == 50
    assert first == again != other


def test_the_fuzzing_profile_has_more_examples_of_a_state_machine(tmp_path: Path) -> None:
    program = (
        "from hypothesis import settings\n"
        "from hypothesis.stateful import RuleBasedStateMachine, initialize, rule\n"
        "class Machine(RuleBasedStateMachine):\n"
        "    @initialize()\n"
        "    def begin(self): print('took one')\n"
        "    @rule()\n"
        "    def step(self): pass\n"
        "TestMachine = Machine.TestCase\n"
        "TestMachine.settings = settings(max_examples=2)\n"
    )
    assert len(fuzzed(tmp_path, program, 1)) >= 40  # equal sequences of steps are not run twice


def test_no_other_profile_is_loaded_while_tests_are_collected() -> None:
    assert settings.get_current_profile_name() in {"fixed", "fuzz"}
