"""A writer as a separate process, which a test can kill.

`python -m tests.e2e.applying.writer SETTINGS.json PLAN.json` applies the plan once.
"""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from plimsoll.apply import Applier, ApplySettings
from plimsoll.kube import Connection
from plimsoll.model import Plan


@contextmanager
def writer_process(
    settings: ApplySettings, plan: Plan, folder: Path, hostname: str = ""
) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts the process; it is killed when the context ends. `hostname` is the host name that it uses."""
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(settings.model_dump_json(by_alias=True, exclude_none=True))
    (folder / "plan.json").write_text(plan.model_dump_json())
    command = [
        sys.executable,
        "-m",
        "tests.e2e.applying.writer",
        str(folder / "settings.json"),
        str(folder / "plan.json"),
    ]
    if hostname:
        command = ["unshare", "--uts", "sh", "-c", f'hostname {hostname} && exec "$@"', "sh", *command]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        print((folder / "log").read_text()[-4000:])  # noqa: T201 - pytest shows it where a test fails


def main(settings_file: str, plan_file: str) -> None:
    settings = ApplySettings.model_validate_json(Path(settings_file).read_text())
    plan = Plan.model_validate_json(Path(plan_file).read_text())
    with closing(Connection.open(settings.kubeconfig)) as connection, Applier(settings, connection) as applier:
        stopped = threading.Event()

        def stop(*_: object) -> None:
            applier.interrupt()
            stopped.set()

        signal.signal(signal.SIGTERM, stop)
        applier.start()
        if not plan.empty:
            applier.apply(plan)
        # The signal may have come while the last objects of the plan were applied.
        stopped.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
