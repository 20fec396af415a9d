"""Processes that tests interrupt."""

import signal


def hear_interrupts() -> None:
    """For `preexec_fn`: what a shell runs in the background ignores SIGINT, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
