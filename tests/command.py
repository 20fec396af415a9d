"""`plimsoll` as a user runs it, without waiting for its start: in children of one process that has imported it.

A shell starts it in tests/plan_from_files/test_streams.py, tests/docs and tests/e2e.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NoReturn

_IMPORTED = ("plimsoll.observe.files", "plimsoll.plan", "plimsoll.ui", "rich.table", "structlog", "typer")
"""What is imported once. The modules of the command line look at the environment, so that each command imports them."""
_PATIENCE_SECONDS = 60


def plimsoll(
    *arguments: str, given: str = "", variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command with `given` as its standard input, and with these variables of the environment or with this
    process's. One that takes longer than a minute is killed."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "0").write_text(given)
        environ = dict(os.environ if variables is None else variables)
        request = {"arguments": arguments, "cwd": str(Path.cwd()), "environ": environ, "streams": folder}
        parent = _parent()
        assert parent.stdin is not None
        assert parent.stdout is not None
        print(json.dumps(request), file=parent.stdin, flush=True)
        code = int(parent.stdout.readline())
        printed, reported = ((Path(folder) / name).read_text() for name in ("1", "2"))
    return subprocess.CompletedProcess(["plimsoll", *arguments], code, printed, reported)


@cache
def _parent() -> subprocess.Popen[str]:
    """The process that has imported the commands. It ends with this one, which closes its standard input."""
    command = [sys.executable, "-m", __name__]
    checkout = Path(__file__).resolve().parents[1]
    return subprocess.Popen(command, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _serve() -> None:
    """Runs a command for each line of standard input, and writes its exit code as a line."""
    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(**json.loads(line))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


def _run(arguments: list[str], cwd: str, environ: dict[str, str], streams: str) -> NoReturn:
    signal.alarm(_PATIENCE_SECONDS)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(f"{streams}/{number}", flags), number)
    sys.argv = ["plimsoll", *arguments]

    from plimsoll.cli import main

    try:
        main()
    except SystemExit as ended:
        # What it has printed is written. Python would now free all that is imported, which takes longer than a command.
        os._exit(int(ended.code or 0))
    raise AssertionError("a command ends with an exit code")


if __name__ == "__main__":
    _serve()
