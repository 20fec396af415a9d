"""Simulates the device plugin for reservations: assigns each a GPU, and runs the real probe on files like those of a
driver."""

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from plimsoll.labels import RESERVED_GPU
from plimsoll.model.kai import NAMESPACE
from plimsoll.sandbox import AUTHORITY, Sandbox
from tests.e2e.cluster.kube import Kube
from tests.probing.driver_files import a_gpu

PLAYED = "sandbox.plimsoll.dev/probe"
"""Annotation with which the sandbox does not simulate the probe of a reservation."""


class DevicePlugin:
    """The GPUs of each node, and the reservation that has each."""

    def __init__(self, sandbox: Sandbox, cluster: Kube, folder: Path, gpus: dict[str, int]) -> None:
        self._cluster = cluster
        self._folder = folder
        self._account = folder / "account"
        self._account.mkdir()
        (self._account / "ca.crt").write_bytes((sandbox.folder.certificates / AUTHORITY).read_bytes())
        (self._account / "token").write_text(cluster.token(NAMESPACE, NAMESPACE))
        host, _, port = cluster.server.removeprefix("https://").rpartition(":")
        self._server = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
        self.gpus = {node: [f"GPU-{uuid.uuid4()}" for _ in range(count)] for node, count in gpus.items()}
        self.given: dict[str, str] = {}
        """GPU by the reservation's UID."""

    def play(self) -> bool:
        """Assigns GPUs to the reservations that have none, as far as there are any. Always returns True, so that it can
        be used in a condition."""
        pods = self._cluster.list("v1", "Pod", NAMESPACE)
        there = {pod["metadata"]["uid"] for pod in pods}
        for pod in pods:
            uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
            held = {gpu for holder, gpu in self.given.items() if holder in there}
            free = [gpu for gpu in self.gpus.get(node, ()) if gpu not in held]
            if uid not in self.given and free and pod["status"]["phase"] == "Running":
                self.given[uid] = free[0]
                self._probe(pod, free[0])
        return True

    def _probe(self, pod: dict[str, Any], gpu: str) -> None:
        root = self._folder / pod["metadata"]["uid"]
        a_gpu(root, gpu)
        names = {"POD_NAME": pod["metadata"]["name"], "POD_NAMESPACE": pod["metadata"]["namespace"]}
        subprocess.run(
            [sys.executable, "-m", "plimsoll.probe", "--once", "--root", str(root), "--account", str(self._account)],
            env={**os.environ, **self._server, **names},
            check=True,
            timeout=120,
        )


def reserved_gpu(pod: dict[str, Any]) -> str:
    return str(pod["metadata"].get("annotations", {}).get(RESERVED_GPU, ""))
