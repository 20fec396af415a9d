"""Runs the probe."""

import signal
import sys
import threading
from pathlib import Path
from typing import Final

from plimsoll.errors import PlimsollError
from plimsoll.probe.errors import FAILED, ProbeError
from plimsoll.probe.finding import find_gpu, sources
from plimsoll.probe.pod import OwnPod

_WAIT_SECONDS: Final = 0.5


def run(*, show: bool, once: bool, root: Path, account: Path, timeout: float) -> int:
    """Finds the GPU, then prints its UUID (`show`), or writes it to the pod and holds the GPU until the process is
    terminated.

    Returns the exit code: 0, or that of the error, which is printed on standard error.
    """
    try:
        if show:
            sys.stdout.write(find_gpu(sources(root), timeout) + "\n")
            return 0
        pod = OwnPod.from_environment(account=account)
        ended = _end_on_signal()
        uuid = find_gpu(sources(root), timeout)
        pod.reserve(uuid)
    except PlimsollError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code if isinstance(error, ProbeError) else FAILED
    sys.stderr.write(f"{pod.namespace}/{pod.name} holds {uuid}\n")
    sys.stderr.flush()
    if not once:
        # A signal that comes just before a wait is handled after it only.
        while not ended.wait(_WAIT_SECONDS):
            pass
    return 0


def _end_on_signal() -> threading.Event:
    """Installs signal handlers, because signals without a handler do not end the first process of a container."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    return ended
