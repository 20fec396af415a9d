"""Storage: where the volumes of PersistentVolumeClaims are, as the scheduler's VolumeBinding finds them.

A claim that is bound is where its volume is; one that waits for its first consumer is where its StorageClass
provisions. Who writes a claim does not decide what it is bound to: the volume names its claim.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.model import Snapshot
from plimsoll.model.cluster import DISK_DRIVERS, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeClaim
from plimsoll.model.meta import NodeRequirement, Placement, Terms

_MOST: Final = 64
"""Alternatives of several volumes together. More are refused: their number may double with each volume."""
_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


@dataclass(frozen=True, slots=True)
class NoVolume:
    """Why a pod with a claim cannot be placed on any node now."""

    claim: str
    """Name of the claim; empty: of a pod that does not exist yet."""
    problem: str
    advice: str

    def __str__(self) -> str:
        return f"{self.problem}: {self.advice}"


class Storage:
    """The claims, volumes and StorageClasses of one snapshot. Without claims, nothing is known of any: all may be
    anywhere."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.read_from = (snapshot.volume_claims, snapshot.volumes, snapshot.storage_classes)
        claims, volumes, classes = self.read_from
        self._known = claims is not None
        self._claims: Mapping[tuple[str, str], PersistentVolumeClaim] = {each.key: each for each in claims or ()}
        self._volumes: Mapping[str, PersistentVolume] = {each.name: each for each in volumes}
        self._classes: Mapping[str, StorageClass] = {each.name: each for each in classes}
        self._default = next((each.name for each in sorted(classes, key=lambda each: each.name) if each.default), None)

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether it was read from what the snapshot has."""
        now = (snapshot.volume_claims, snapshot.volumes, snapshot.storage_classes)
        return all(before is after for before, after in zip(self.read_from, now, strict=True))

    def narrowed(self, placement: Placement, namespace: str, claims: Iterable[VolumeClaim]) -> Placement | NoVolume:
        """The placement of a pod of the namespace on the nodes where all of its claims are."""
        for claim in claims if self._known else ():
            places = self._places(namespace, claim)
            if isinstance(places, NoVolume):
                return places
            if places:
                placement = placement.within(*_merged(places))
            if len(placement.affinity) > _MOST:
                return NoVolume(
                    claim.name,
                    f"its volumes and its node affinity have more than {_MOST} alternatives of nodes together",
                    "use fewer volumes with alternatives",
                )
        return placement

    def disk_size(self, namespace: str, name: str) -> int | None:
        """Bytes of the disk that the claim has, or that is provisioned for it; None where it is no disk of a known
        driver, or its size is not known."""
        claim = self._claims.get((namespace, name))
        if claim is None:
            return None
        if claim.volume:
            volume = self._volumes.get(claim.volume)
            return None if volume is None or volume.driver not in DISK_DRIVERS else volume.size
        found = self._class_of(claim.storage_class)
        return None if found is None or found.provisioner not in DISK_DRIVERS else claim.requested

    def _places(self, namespace: str, wanted: VolumeClaim) -> Terms | NoVolume:
        claim = self._claims.get((namespace, wanted.name))
        if claim is None:
            if wanted.ephemeral:  # the cluster creates it with the pod
                return self._provisioned(wanted.name, wanted.storage_class)
            return NoVolume(wanted.name, f"its {_named(wanted.name)} does not exist", "create it")
        if claim.deleting:
            return NoVolume(wanted.name, f"its {_named(wanted.name)} is being deleted", "use another one")
        if claim.volume:
            return self._bound(claim)
        if claim.selected_node:
            return ((NodeRequirement("metadata.name", "In", (claim.selected_node,), field=True),),)
        return self._provisioned(claim.name, claim.storage_class)

    def _bound(self, claim: PersistentVolumeClaim) -> Terms | NoVolume:
        volume = self._volumes.get(claim.volume)
        if volume is None or not _has(volume, claim):
            # Whether another claim has the volume is not said: anyone may name any volume.
            problem = f"its {_named(claim.name)} is not bound to the volume that it names"
            return NoVolume(claim.name, problem, "wait until it is, or correct spec.volumeName")
        return volume.places

    def _class_of(self, storage_class: str | None) -> StorageClass | None:
        return self._classes.get((self._default if storage_class is None else storage_class) or "")

    def _provisioned(self, claim: str, storage_class: str | None) -> Terms | NoVolume:
        name = self._default if storage_class is None else storage_class
        if not name:
            return NoVolume(claim, f"its {_named(claim)} is not bound and has no StorageClass", "bind it to a volume")
        found = self._class_of(storage_class)
        if found is None:
            return NoVolume(claim, f"StorageClass {name} of its {_named(claim)} does not exist", "create it")
        if found.binding_mode != "WaitForFirstConsumer":
            problem = f"its {_named(claim)} is not bound yet, and StorageClass {name} does not wait for the pod's node"
            return NoVolume(claim, problem, "see the events of the claim")
        if found.provisioner == _NO_PROVISIONER:
            problem = f"its {_named(claim)} waits for a local volume of StorageClass {name}, and new nodes have none"
            return NoVolume(claim, problem, "create a volume, or use a StorageClass with a provisioner")
        return found.topologies


def conditions_of(placement: Placement) -> tuple[NodeRequirement, ...] | None:
    """The conditions of the placement on labels of nodes; None if it has alternatives, or needs a node by name."""
    if len(placement.affinity) > 1 or any(each.field for term in placement.affinity for each in term):
        return None
    return placement.affinity[0] if placement.affinity else ()


def _has(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names the claim, and not an earlier one of this name."""
    same = not (volume.claim_uid and claim.uid) or volume.claim_uid == claim.uid
    return (volume.claim_namespace, volume.claim_name) == claim.key and same


def _merged(terms: Terms) -> Terms:
    """Alternatives that are values of one label, as one condition."""
    keys = {tuple((each.key, each.operator, each.field) for each in term) for term in terms}
    if len(keys) != 1 or len(next(iter(keys))) != 1 or next(iter(keys))[0][1] != "In":
        return terms
    [(key, operator, field)] = next(iter(keys))
    values = sorted({value for term in terms for each in term for value in each.values})
    return ((NodeRequirement(key, operator, tuple(values), field),),)


def _named(claim: str) -> str:
    return f"PersistentVolumeClaim {claim!r}" if claim else "PersistentVolumeClaim"
