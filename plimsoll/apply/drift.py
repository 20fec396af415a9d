"""Drift: the differences between the cluster and the states of the capacity stacks. Nothing is written."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from plimsoll.apply.differences import differences, field_path
from plimsoll.apply.identity import ClusterIdentity
from plimsoll.apply.objects import is_being_deleted, kind_of_key
from plimsoll.apply.settings import ApplySettings
from plimsoll.apply.state import OWNED_KINDS, State, require_own
from plimsoll.kube import Objects
from plimsoll.labels import SHARD
from plimsoll.model import ObjectKey

_AUTOSCALED = (("spec", "replicas"),)
"""Fields that an autoscaler may change too."""


class DriftKind(StrEnum):
    """The kind of a difference."""

    GONE = "Gone"
    """The object is in the state, but not in the cluster."""
    REPLACED = "Replaced"
    """The cluster has another object of that name."""
    CHANGED = "Changed"
    """Fields that the stack declares have other values."""
    UNKNOWN = "Unknown"
    """The object has the label of a stack, but is in no state."""


class Drift(NamedTuple):
    """One difference."""

    kind: DriftKind
    key: ObjectKey
    stack: str
    fields: tuple[str, ...] = ()
    """Paths of the fields that differ, for Changed."""


def find_drift(
    settings: ApplySettings, states: Iterable[State], identity: ClusterIdentity, cluster: Objects
) -> list[Drift]:
    """The differences, by stack and object. Raises OtherClusterError, RequestError and ConnectionFailedError."""
    known = list(states)
    for state in known:
        require_own(state, identity)
    found = [each for state in known for each in _of_state(state, cluster)]
    keys = {key for state in known for key in state.resources}
    for kind in OWNED_KINDS:
        for live in cluster.labelled(kind, SHARD):
            key = ObjectKey.of(live)
            if settings.owns(live) and key not in keys and not is_being_deleted(live):
                found.append(Drift(DriftKind.UNKNOWN, key, str(live["metadata"]["labels"][SHARD])))
    return sorted(found, key=lambda each: (each.stack, str(each.key)))


def _of_state(state: State, cluster: Objects) -> Iterator[Drift]:
    for key, resource in state.resources.items():
        live = cluster.get(kind_of_key(key), key.namespace, key.name)
        if live is None:
            yield Drift(DriftKind.GONE, key, state.stack)
        elif resource.uid and live["metadata"]["uid"] != resource.uid:
            yield Drift(DriftKind.REPLACED, key, state.stack)
        elif fields := _changed(dict(resource.declared.inputs), live):
            yield Drift(DriftKind.CHANGED, key, state.stack, fields)


def _changed(declared: dict[str, Any], live: dict[str, Any]) -> tuple[str, ...]:
    """Paths of the declared fields whose live value differs."""
    wanted = {key: value for key, value in declared.items() if key not in ("apiVersion", "kind", "status")}
    wanted["metadata"] = {
        key: value for key, value in (wanted.get("metadata") or {}).items() if key in ("labels", "annotations")
    }
    return tuple(sorted(field_path(each) for each in differences(live, wanted) if each[:2] not in _AUTOSCALED))
