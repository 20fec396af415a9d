"""What programs do not import when they start, because each import delays every start."""

import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PRINT_MODULES = "\nprint(*sys.modules, file=sys.stderr)"


def started(program: str) -> tuple[set[str], str]:
    """What a program has imported at its end, and what it has printed."""
    command = [sys.executable, "-c", f"import sys\n{program}{PRINT_MODULES}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stderr.split()), done.stdout


def test_completing_commands_and_options_imports_no_package_of_planning() -> None:
    program = """
from plimsoll.cli import complete
for words in [""], ["plan", "--out"], ["status", "--wa"], ["why", "workspace", "--con"]:
    sys.argv = ["plimsoll", *words]
    complete()
"""
    modules, printed = started(program)
    assert {"savings", "--output", "--watch", "--context"} <= set(printed.split())
    assert {"plimsoll.cli.plan", "plimsoll.cli.status", "plimsoll.cli.why"} <= modules
    assert not modules & {"plimsoll.cli.savings", "plimsoll.model", "plimsoll.kube", "plimsoll.plan", "plimsoll.cost"}
    assert not modules & {"numpy", "structlog", "yaml", "urllib3"}  # typer itself imports pydantic here


def test_the_version_is_printed_without_models() -> None:
    program = """
from plimsoll.cli import app
app(["--version"], standalone_mode=False)
"""
    modules, printed = started(program)
    assert printed.startswith("plimsoll ")
    assert not modules & {"plimsoll.model", "pydantic", "yaml", "structlog"}


def test_a_plan_of_files_imports_neither_engine_nor_client_nor_log() -> None:
    program = """
from plimsoll.cli import app
app(["plan", "-f", "examples/byo"], standalone_mode=False)
"""
    modules, printed = started(program)
    assert "+ Deployment research/llama" in printed
    assert not modules & {"plimsoll.kube", "pulumi", "kubernetes", "grpc", "boto3", "urllib3", "structlog", "asyncio"}


def test_a_pulumi_program_imports_no_client_before_it_makes_requests() -> None:
    modules, _ = started("import plimsoll.stacks")
    assert "pulumi" in modules
    assert not modules & {"plimsoll.kube", "plimsoll.plan", "urllib3", "tenacity", "structlog", "numpy", "kubernetes"}
