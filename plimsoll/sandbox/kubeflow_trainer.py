"""Kubeflow Trainer's controller in a sandbox."""

from pathlib import Path
from typing import Final

import yaml

from plimsoll.sandbox import webhooks
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.ports import LOOPBACK

READY_PATH: Final = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
"""The webhook that is registered last."""


def configure(folder: Folder, port: int, health_port: int) -> Path:
    """Writes the controller's configuration (config.trainer.kubeflow.org/v1alpha1); webhooks are served on `port`."""
    webhooks.link_certificates(folder, _temporary(folder) / "k8s-webhook-server" / "serving-certs")
    configuration = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "certManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": LOOPBACK, "port": port},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health_port}"},
    }
    path = folder.path / "trainer.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path


def environment(folder: Folder) -> dict[str, str]:
    """The configuration has no field for the certificates' folder: they are looked up below the temporary one."""
    return {"TMPDIR": str(_temporary(folder))}


def _temporary(folder: Folder) -> Path:
    return folder.path / "trainer"
