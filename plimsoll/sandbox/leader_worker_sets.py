"""LeaderWorkerSet's controller in a sandbox."""

from pathlib import Path
from typing import Final

from plimsoll.sandbox import component_config, webhooks
from plimsoll.sandbox.folder import Folder

READY_PATH: Final = "/validate-leaderworkerset-x-k8s-io-v1-leaderworkerset"
"""Answers as soon as the webhooks are served."""
PODS: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of a set's Pods."""


def configure(folder: Folder, port: int, health_port: int) -> Path:
    """Writes the controller's configuration (config.lws.x-k8s.io/v1alpha1); webhooks are served on `port`."""
    pair = webhooks.link_certificates(folder, folder.path / "lws")
    return component_config.write(
        folder,
        "lws",
        "config.lws.x-k8s.io/v1alpha1",
        ports=(port, health_port),
        certificates="internalCertManagement",
        webhook={"certDir": str(pair)},
    )
