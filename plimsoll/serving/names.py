"""Which names a Workspace may have: it names its workload, its Service, and with a suffix their pods."""

import re
from typing import Final

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
