"""Folders on this machine: of built parts, of the data of sandboxes, and of a pod's service account."""

import os
from pathlib import Path
from typing import Final

SERVICE_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token, the namespace and the CA certificate of its service account."""


def _base(variable: str, default: str) -> Path:
    """An XDG base folder. A relative path is ignored, as the XDG specification requires."""
    value = Path(os.environ.get(variable, ""))
    return value if value.is_absolute() else Path.home() / default


def cache() -> Path:
    """Folder of the built parts, shared by every sandbox of this user."""
    return _base("XDG_CACHE_HOME", ".cache") / "plimsoll"


def state() -> Path:
    """Folder of Plimsoll's data on this machine: PLIMSOLL_HOME if set, else below XDG_STATE_HOME."""
    home = os.environ.get("PLIMSOLL_HOME")
    return Path(home).expanduser().absolute() if home else _base("XDG_STATE_HOME", ".local/state") / "plimsoll"


def sandboxes() -> Path:
    """Folder with one folder per sandbox."""
    return state() / "sandboxes"


def instance_types() -> Path:
    """Folder of the instance types that a cloud's API has listed, kept between runs."""
    return cache() / "ec2"


def tools() -> Path:
    """Folder of the go.mod files that pin the parts: next to the package in a checkout, inside the package in a
    wheel."""
    package = Path(__file__).resolve().parent
    checkout = package.parent / "tools"
    return checkout if (checkout / "etcd" / "go.mod").is_file() else package / "tools"
