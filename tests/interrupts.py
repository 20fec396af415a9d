"""Interrupts of child processes in tests."""

import sys


def hearing_interrupts(program: str) -> list[str]:
    """A command for a Python program. Background processes of a shell, and their children, ignore SIGINT by default.

    This is not done in a `preexec_fn`: gRPC, which other tests of the same process load, may abort a fork.
    """
    return [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {program}"]
