"""LeaderWorkerSet's controller in a sandbox."""

from pathlib import Path
from typing import Final

import yaml

from plimsoll.sandbox import webhooks
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.ports import LOOPBACK

READY_PATH: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
"""Answers as soon as the webhooks are served."""
PODS: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of a set's Pods."""


def configure(folder: Folder, port: int, health_port: int) -> Path:
    """Writes the controller's configuration (config.lws.x-k8s.io/v1alpha1); webhooks are served on `port`."""
    pair = webhooks.link_certificates(folder, folder.path / "lws")
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": LOOPBACK, "port": port, "certDir": str(pair)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health_port}"},
    }
    path = folder.path / "lws.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path
