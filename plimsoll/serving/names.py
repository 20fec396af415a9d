"""Names: which a Workspace may have, and which its objects have."""

import re
from typing import Final, NamedTuple

from plimsoll.model.api import Workspace
from plimsoll.serving.service import service_name

LABEL_LENGTH: Final = 63
_HASH: Final = 11
"""A StatefulSet appends a dash and a hash of ten characters to its name, as a label's value of its pods
(`controller-revision-hash`)."""
_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


def name_problem(name: str, *, kind: str, replicas: int) -> str:
    """What is wrong with the name for a workload of this kind, with what to change; empty if nothing is.

    The names of Services are DNS-1035 labels (https://kubernetes.io/docs/concepts/overview/working-with-objects/names/).
    A LeaderWorkerSet has a StatefulSet for the workers of each replica, with its number appended.
    """
    if not _LABEL.fullmatch(name):
        return (
            f"metadata.name is {name!r}, and the workload and its Service of this name need a DNS-1035 label: "
            "lower-case letters, digits and dashes, with a letter first; create the Workspace with another name"
        )
    room = 0 if kind == "Deployment" else _HASH
    if kind == "LeaderWorkerSet":
        room += 1 + len(str(max(replicas - 1, 0)))
    if len(name) <= LABEL_LENGTH - room:
        return ""
    return (
        f"metadata.name has {len(name)} characters, and a {kind} of this name may have {LABEL_LENGTH - room}, because "
        "its pods have labels with the name and a suffix: create the Workspace with a shorter name"
    )


class ObjectName(NamedTuple):
    """An object in the Workspace's namespace, or several."""

    kind: str
    name: str
    numbered: int = 0
    """The number of objects that have a dash and their number appended, from 0; 0: one object of this name."""


def object_names(workspace: Workspace, kind: str, replicas: int) -> tuple[ObjectName, ...]:
    """The Services and StatefulSets of a Workspace whose workload is of this kind.

    The controller of a LeaderWorkerSet creates a StatefulSet of its name for the leaders and one for the workers of
    each replica, with its number appended; and a headless Service for all replicas, or for a preset one for each, with
    the same names (https://lws.sigs.k8s.io/docs/concepts/).
    """
    own, name = service_name(workspace), workspace.name
    services = [ObjectName("Service", own)] if own else []
    sets = [ObjectName("StatefulSet", name)] if kind != "Deployment" else []
    if kind == "LeaderWorkerSet":
        inference, groups = workspace.spec.inference, replicas > 0
        for_each = inference is not None and inference.preset is not None
        services += [ObjectName("Service", name, replicas if for_each else 0)] if groups or not for_each else []
        sets += [ObjectName("StatefulSet", name, replicas)] if groups else []
    return (*services, *sets)
