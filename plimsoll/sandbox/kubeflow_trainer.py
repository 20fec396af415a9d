"""Kubeflow Trainer's controller in a sandbox."""

from pathlib import Path
from typing import Final

from plimsoll.sandbox import component_config, webhooks
from plimsoll.sandbox.folder import Folder

READY_PATH: Final = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
"""The webhook that is registered last."""


def configure(folder: Folder, port: int, health_port: int) -> Path:
    """Writes the controller's configuration (config.trainer.kubeflow.org/v1alpha1); webhooks are served on `port`."""
    webhooks.link_certificates(folder, _temporary(folder) / "k8s-webhook-server" / "serving-certs")
    return component_config.write(
        folder,
        "trainer",
        "config.trainer.kubeflow.org/v1alpha1",
        ports=(port, health_port),
        certificates="certManagement",
        webhook={},
    )


def environment(folder: Folder) -> dict[str, str]:
    """The configuration has no field for the certificates' folder: they are looked up below the temporary one."""
    return {"TMPDIR": str(_temporary(folder))}


def _temporary(folder: Folder) -> Path:
    return folder.path / "trainer"
