"""Names and labels of the objects that the controller creates for a Workspace."""

import hashlib
from collections.abc import Collection, Iterator
from itertools import count

from plimsoll.labels import ENVIRONMENT, MANAGED_BY, WORKSPACE, WORKSPACE_NAMESPACE, WORKSPACE_UID, as_label_value
from plimsoll.model.api import Environment, Workspace, WorkspaceRef

NAME_LENGTH = 63
"""A NodeClaim's name is also the value of its node's hostname label."""


def ownership_labels(workspace: Workspace | WorkspaceRef) -> dict[str, str]:
    """Labels that identify the Workspace's objects, nodes and pods; the same after the Workspace is created again."""
    return {
        WORKSPACE: as_label_value(workspace.name),
        WORKSPACE_NAMESPACE: as_label_value(workspace.namespace),
    }


def object_labels(workspace: Workspace, environment: Environment) -> dict[str, str]:
    """The labels of every object that the controller creates for the Workspace."""
    labels = ownership_labels(workspace)
    if workspace.uid:
        labels[WORKSPACE_UID] = as_label_value(workspace.uid)
    labels[ENVIRONMENT] = as_label_value(environment.name)
    labels[MANAGED_BY] = "plimsoll"
    return labels


def claim_names(workspace: Workspace, used: Collection[str], tries: int = 0, of: str = "") -> Iterator[str]:
    """Names for the Workspace's NodeClaims, smallest free ordinal first, without those in use.

    A name depends only on the Workspace, the number of failed attempts, what they are attempts `of`, and the ordinal.
    Therefore a repeated plan names the same objects, and a replacement never has the name of the NodeClaim that failed.
    """
    identity = workspace.uid or f"{workspace.namespace}/{workspace.name}"
    generation = (f"\n{of}" if of else "") + (f"\ntry {tries}" if tries else "")
    head = workspace.name[: NAME_LENGTH - 11].rstrip("-.")
    for ordinal in count():
        digest = hashlib.sha256(f"{identity}\n{ordinal}{generation}".encode()).hexdigest()[:10]
        name = f"{head}-{digest}"
        if name not in used:
            yield name
