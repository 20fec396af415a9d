"""Lifetime: child processes that end with their parent process."""

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None, use_errno=True)


def dies_with(parent: int) -> Callable[[], None]:
    """Returns a function to run in the child before its program: the kernel then kills the child when the thread that
    created it ends. `parent` is a process id."""

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        # The parent may have ended before this call.
        if os.getppid() != parent:
            os._exit(1)

    return prepare
