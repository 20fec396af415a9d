"""A kubernetes plugin as a process of its own, which the engine starts and ends like the official one.

`python -m tests.e2e.applying.plugin` serves with the built-in provider. Like the official plugin, it aborts running
requests when it is cancelled, and does not check whether its engine is running. From the creation with the number
`HOLDS_FROM` on, it delays each creation until it is cancelled, so that a test can interrupt an update in the middle.
"""

import itertools
import os
import signal
import sys
import time
from pathlib import Path
from typing import Final

import structlog

from plimsoll.apply import plugin_version
from plimsoll.errors import PlimsollError
from plimsoll.provider import Call, Properties, State, create, serve

HOLDS_FROM: Final = "PLUGIN_HOLDS_FROM"
_POLL_SECONDS: Final = 0.01


def install_plugin(pulumi_home: Path) -> None:
    """Installs it where an engine with this home finds the kubernetes plugin."""
    folder = pulumi_home / "plugins" / f"resource-kubernetes-v{plugin_version()}"
    folder.mkdir(parents=True)
    program = folder / "pulumi-resource-kubernetes"
    here = Path(__file__).parents[3]
    program.write_text(f'#!/bin/sh\nPYTHONPATH={here} exec {sys.executable} -m tests.e2e.applying.plugin "$@"\n')
    program.chmod(0o755)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # the engine reads the port
    numbers = itertools.count(1)
    holds_from = int(os.environ.get(HOLDS_FROM, sys.maxsize))

    def create_or_hold(call: Call, inputs: Properties) -> State:
        if next(numbers) < holds_from:
            return create(call, inputs)
        while not call.interruption.stopped:
            time.sleep(_POLL_SECONDS)
        raise PlimsollError("client rate limiter Wait returned an error: context canceled")

    with serve(create=create_or_hold) as served:
        sys.stdout.write(f"{served.port}\n")
        sys.stdout.flush()
        served.wait()


if __name__ == "__main__":
    main()
