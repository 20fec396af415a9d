"""`python -m plimsoll.probe`: the same as `plimsoll probe`, without importing the whole command line."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from plimsoll.home import SERVICE_ACCOUNT_FOLDER
from plimsoll.probe.running import run


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the probe and returns its exit code; see `run`."""
    parser = argparse.ArgumentParser(prog="python -m plimsoll.probe", description=__doc__)
    parser.add_argument("--print", action="store_true", help="print the UUID; needs no cluster")
    parser.add_argument(
        "--once", action="store_true", help="exit when the UUID is written, instead of reserving the GPU"
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help="folder with proc/driver/nvidia")
    parser.add_argument(
        "--account", type=Path, default=SERVICE_ACCOUNT_FOLDER, help="folder of the pod's service account"
    )
    parser.add_argument("--patience", type=float, default=10.0, help="seconds to wait for the GPU")
    options = parser.parse_args(arguments)
    return run(
        show=options.print,
        once=options.once,
        root=options.root,
        account=options.account,
        timeout=options.patience,
    )


if __name__ == "__main__":
    sys.exit(main())
