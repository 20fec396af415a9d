"""Runs the containers of the controller's pods like a kubelet: one process for each existing pod.

A sandbox has no kubelet; KWOK reports each pod as Ready. A process gets what its pod describes: arguments, variables,
host name, the files of its Secret, and a token of its service account. Only the port and the folders differ, because
one host cannot have them twice.
"""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from socket import socket
from threading import Event, Thread
from typing import Any

import yaml

from plimsoll.sandbox import Sandbox
from plimsoll.sandbox.processes import hold_port, port_of
from tests.e2e.cluster.kube import Kube

NAMESPACE = "plimsoll-system"
SELECTOR = "app.kubernetes.io/component=controller"
_POLL_SECONDS = 0.3
_GRACE_SECONDS = 120


class Kubelet:
    """The processes by the names of their pods, until they have ended. The process of a deleted pod is stopped."""

    def __init__(self, sandbox: Sandbox, folder: Path, **environ: str) -> None:
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: dict[str, int] = {}
        """Exit codes of processes, by the names of their pods."""
        self.images: dict[str, str] = {}
        self._sandbox, self._folder, self._environ = sandbox, folder, environ
        self._ports: list[socket] = []
        self._stopping = Event()
        self._failed: list[Exception] = []
        self._thread = Thread(target=self._run, daemon=True)

    def log(self, pod: str) -> str:
        return (self._folder / pod / "log").read_text()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Raises the error that ended the thread before."""
        self._stopping.set()
        self._thread.join()
        for name in list(self.running):
            self._end(name)
        if self._failed:
            raise self._failed[0]

    def _run(self) -> None:
        try:
            self._follow()
        except Exception as error:
            self._failed.append(error)

    def _follow(self) -> None:
        with closing(Kube(self._sandbox.kubeconfig)) as cluster:
            while not self._stopping.wait(_POLL_SECONDS):
                pods = {each["metadata"]["name"]: each for each in cluster.list("v1", "Pod", NAMESPACE, SELECTOR)}
                for name in self.running.keys() - {n for n, pod in pods.items() if not _is_going(pod)}:
                    self._end(name)
                for name, pod in pods.items():
                    if name not in self.running and not _is_going(pod) and pod["spec"].get("nodeName"):
                        self._begin(cluster, name, pod["spec"])

    def _begin(self, cluster: Kube, name: str, spec: dict[str, Any]) -> None:
        secret = cluster.get("v1", "Secret", "plimsoll", NAMESPACE)
        if secret is None:
            return  # A pod's container waits for its volumes.
        folder, container = self._folder / name, spec["containers"][0]
        folder.mkdir()
        for key, value in secret["data"].items():
            (folder / key).write_bytes(base64.b64decode(value))
        config = yaml.safe_load(self._sandbox.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": cluster.token(NAMESPACE, spec["serviceAccountName"])}
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        metrics, probes = hold_port(), hold_port()
        self._ports += [metrics, probes]
        environ = {
            **os.environ,
            **{name: self._sandbox.environ()[name] for name in ("PATH", "PULUMI_HOME")},
            **{each["name"]: each["value"] for each in container["env"]},
            "KUBECONFIG": str(folder / "kubeconfig"),
            "PLIMSOLL_METRICS_HOST": "127.0.0.1",
            "PLIMSOLL_METRICS_PORT": str(port_of(metrics)),
            "PLIMSOLL_HEALTH_PROBE_PORT": str(port_of(probes)),
            "PLIMSOLL_WORK_FOLDER": str(folder / "work"),
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder / "passphrase"),
            **self._environ,
        }
        hosted = ["unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh"]
        command = [*hosted, sys.executable, "-m", "plimsoll", *container["args"]]
        self.images[name] = container["image"]
        with (folder / "log").open("wb") as log:
            self.running[name] = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _end(self, name: str) -> None:
        process = self.running[name]
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        self.ended[name] = process.wait(timeout=_GRACE_SECONDS)
        del self.running[name]


def _is_going(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@contextmanager
def a_kubelet(sandbox: Sandbox, folder: Path, **environ: str) -> Iterator[Kubelet]:
    """`environ` are variables of every process, such as credentials of a cloud."""
    folder.mkdir()
    kubelet = Kubelet(sandbox, folder, **environ)
    kubelet.start()
    try:
        yield kubelet
    finally:
        kubelet.stop()
        for log in folder.glob("*/log"):
            print(log.parent.name, log.read_text()[-3000:])  # noqa: T201 - pytest shows it where a test fails
