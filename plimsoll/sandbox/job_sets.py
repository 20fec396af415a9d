"""JobSet's controller in a sandbox."""

from pathlib import Path
from typing import Final

from plimsoll.sandbox import component_config, webhooks
from plimsoll.sandbox.folder import Folder

READY_PATH: Final = "/validate--v1-pod"
"""The webhook that is registered last."""
PODS: Final = "jobset.sigs.k8s.io/jobset-name"
"""Label of a JobSet's Pods."""


def configure(folder: Folder, port: int, health_port: int) -> Path:
    """Writes the controller's configuration (config.jobset.x-k8s.io/v1alpha1); webhooks are served on `port`."""
    pair = webhooks.link_certificates(folder, folder.path / "jobset")
    return component_config.write(
        folder,
        "jobset",
        "config.jobset.x-k8s.io/v1alpha1",
        ports=(port, health_port),
        certificates="internalCertManagement",
        webhook={"certDir": str(pair)},
    )
