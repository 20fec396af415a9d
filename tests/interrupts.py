"""Interrupts of child processes in tests."""

import signal


def hear_interrupts() -> None:
    """For `preexec_fn`: background processes of a shell, and their children, ignore SIGINT by default."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
