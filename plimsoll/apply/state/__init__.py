"""The states of capacity stacks, and the backends that store them."""

from plimsoll.apply.state.backend import Backend, FolderBackend, S3Backend, open_backend
from plimsoll.apply.state.state import (
    OWNED_KINDS,
    Manifest,
    OwnedResource,
    Resource,
    State,
    declare,
    importable,
    owned,
    owner_of,
    require_own,
)

__all__ = [
    "OWNED_KINDS",
    "Backend",
    "FolderBackend",
    "Manifest",
    "OwnedResource",
    "Resource",
    "S3Backend",
    "State",
    "declare",
    "importable",
    "open_backend",
    "owned",
    "owner_of",
    "require_own",
]
