"""Configuration of the controllers of a sandbox that are built with controller-runtime's component configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.ports import LOOPBACK


def write(
    folder: Folder,
    name: str,
    api_version: str,
    *,
    ports: tuple[int, int],
    certificates: str,
    webhook: Mapping[str, Any],
) -> Path:
    """Writes `name`.yaml: one replica without metrics, certificates from files.

    `ports` are those of the webhooks and of the health probe; `certificates` is the field of the configuration that
    says who makes them, and `webhook` what it has beside host and port.
    """
    port, health_port = ports
    configuration = {
        "apiVersion": api_version,
        "kind": "Configuration",
        certificates: {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": LOOPBACK, "port": port, **webhook},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health_port}"},
    }
    path = folder.path / f"{name}.yaml"
    path.write_text(yaml.safe_dump(configuration))
    return path
