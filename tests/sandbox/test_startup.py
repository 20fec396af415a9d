import asyncio
import errno
import json
import os
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from plimsoll.sandbox import Folder, Settings, write_certificates
from plimsoll.sandbox.processes import Supervisor


@pytest.mark.parametrize("first", ["etcd", "kwok"])
def test_a_disk_that_fills_during_the_start_is_an_error_with_what_to_do(
    first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where several processes start at once."""
    full = []

    async def start(_: object, process: Any) -> None:
        full.append(process.name)
        if first in full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"{process.name}.log")

    async def nothing(*_: object) -> None:
        pass

    monkeypatch.setenv("PLIMSOLL_HOME", str(tmp_path))
    monkeypatch.setattr("plimsoll.sandbox.processes.startup.identities.write_kubeconfigs", lambda *_, **__: None)
    monkeypatch.setattr("plimsoll.sandbox.processes.startup.Startup._start", start)
    monkeypatch.setattr("plimsoll.sandbox.processes.startup.Startup._install_objects", nothing)
    folder = Folder("one")
    folder.create()
    write_certificates(folder.certificates)
    ours, theirs = socket.socketpair()
    # Not by asyncio.run, which leaves the thread without an event loop; Pulumi's mocks take the thread's.
    with ours, theirs, closing(asyncio.new_event_loop()) as loop:
        supervisor = Supervisor(folder, Settings(), theirs, stop_with_caller=True)
        assert loop.run_until_complete(supervisor.run()) is False
        failed = json.loads(ours.recv(4096))

    assert "No space left on device" in failed["message"]
    assert "PLIMSOLL_HOME" in failed["hint"]
