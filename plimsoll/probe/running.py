"""Runs the probe."""

import sys
from pathlib import Path

from plimsoll.errors import PlimsollError
from plimsoll.probe.errors import FAILED, ProbeError
from plimsoll.probe.finding import find_gpu, sources
from plimsoll.probe.pod import OwnPod
from plimsoll.stop_request import StopRequest


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
        # Signals without a handler do not end the first process of a container.
        stopping = StopRequest()
        stopping.on_signals()
        uuid = find_gpu(sources(root), timeout)
        pod.reserve(uuid)
    except PlimsollError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code if isinstance(error, ProbeError) else FAILED
    sys.stderr.write(f"{pod.namespace}/{pod.name} holds {uuid}\n")
    sys.stderr.flush()
    if not once:
        stopping.wait()
    return 0
