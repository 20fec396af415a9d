"""A backup of a sandbox's etcd, and its restoration: what was written since is lost, and revisions are used again.

The backup is the folder of the member while its process is stopped, so it is what a kill at that moment leaves. Unlike
`etcdctl snapshot restore`, the member keeps its identity, which an apiserver does not see. As an administrator would,
the restoration stops the whole control plane: caches of controllers know revisions that do not exist any more.
"""

import base64
import json
import shutil
import ssl
import urllib.request
from pathlib import Path
from typing import NamedTuple

import psutil

from plimsoll.sandbox import AUTHORITY, CERTIFICATE, KEY, Sandbox
from tests.awaiting import await_condition
from tests.e2e.cluster.kube import Kube, Manifest


class Backup(NamedTuple):
    folder: Path
    revision: int
    """It has at least what was written up to this one."""


def back_up(sandbox: Sandbox, cluster: Kube, folder: Path) -> Backup:
    revision, etcd = cluster.revision(), process_of(sandbox, "etcd")
    etcd.suspend()
    try:
        shutil.copytree(sandbox.folder.path / "etcd", folder)
    finally:
        etcd.resume()
    return Backup(folder, revision)


def stop_control_plane(sandbox: Sandbox) -> None:
    """Kills every process of the sandbox, which can be started again with its data."""
    state = sandbox.state()
    assert state is not None
    processes = [psutil.Process(each.pid) for each in state.processes if each.exit_code is None]
    psutil.Process(state.supervisor).kill()  # its processes end with it
    await_condition(lambda: not any(map(_runs, processes)), message="the control plane has ended")


def start_from(sandbox: Sandbox, backup: Backup, cluster: Kube, admitted: Manifest) -> None:
    """Starts the sandbox as `start_again`, with the etcd of the backup."""
    shutil.rmtree(sandbox.folder.path / "etcd")
    shutil.copytree(backup.folder, sandbox.folder.path / "etcd")
    start_again(sandbox, cluster, admitted)


def start_again(sandbox: Sandbox, cluster: Kube, admitted: Manifest) -> None:
    """Starts the sandbox, on the same port, and connects `cluster` again. Other clients must do so too: the
    certificates are new. Returns when the object would be `admitted`: an apiserver finds the kind of a policy's
    parameter up to half a minute after its start, and refuses until then."""
    state, settings = sandbox.state(), sandbox.settings()
    assert state is not None and settings is not None
    options = settings.model_dump() | {"port": state.port_of("kube-apiserver")}
    assert sandbox.up(**options, stop_with_caller=True)
    cluster.reconnect()
    await_condition(lambda: not cluster.refusal(admitted), 120, "the apiserver knows all kinds")


def lose(sandbox: Sandbox, key: str) -> None:
    """Removes one key from etcd, past the apiserver and whatever it would refuse or delete with it."""
    state, keys = sandbox.state(), sandbox.folder.certificates
    assert state is not None
    client = ssl.create_default_context(cafile=str(keys / AUTHORITY))
    client.load_cert_chain(keys / CERTIFICATE, keys / KEY)
    body = json.dumps({"key": base64.b64encode(key.encode()).decode()}).encode()
    url = f"https://127.0.0.1:{state.port_of('etcd')}/v3/kv/deleterange"
    with urllib.request.urlopen(urllib.request.Request(url, body), context=client, timeout=30) as answer:
        assert json.load(answer)["deleted"] == "1", f"there is no {key}"


def process_of(sandbox: Sandbox, name: str) -> psutil.Process:
    state = sandbox.state()
    assert state is not None
    return psutil.Process(next(each.pid for each in state.processes if each.name == name))


def _runs(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
