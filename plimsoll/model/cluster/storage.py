"""Storage: PersistentVolumes, the claims of pods on them, and StorageClasses, as far as they decide on nodes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.meta import NodeRequirement, ObservedObject, Placement, Terms
from plimsoll.quantity import parse_bytes

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_ZONE: Final = "topology.kubernetes.io/zone"
_OF_DRIVERS: Final = {
    "topology.ebs.csi.aws.com/zone": _ZONE,
    "topology.gke.io/zone": _ZONE,
    "topology.disk.csi.azure.com/zone": _ZONE,
}
"""Labels with the zone that CSI drivers write to nodes: new ones get them later, and Karpenter takes them for zones."""
_OF_VOLUMES: Final = {
    "topology.kubernetes.io/zone": _ZONE,
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels of a volume that its nodes must have, as the scheduler's VolumeZone reads them."""


DISK_DRIVERS: Final = frozenset(
    {"disk.csi.azure.com", "ebs.csi.aws.com", "ebs.csi.eks.amazonaws.com", "pd.csi.storage.gke.io"}
)
"""CSI drivers of disks, which have the size that their volume says. The size of other volumes may say nothing: that of
an EFS file system does not (https://github.com/kubernetes-sigs/aws-efs-csi-driver)."""


class VolumeClaim(NamedTuple):
    """A volume of a pod that is a PersistentVolumeClaim in its namespace."""

    name: str
    """Of the claim; in a pod's spec, of an ephemeral volume instead."""
    ephemeral: bool = False
    """Whether the pod itself has the claim created."""
    storage_class: str | None = None
    """Of an ephemeral volume; None: the cluster's default."""


def read_claims(volumes: Iterable[Mapping[str, Any]]) -> tuple[VolumeClaim, ...]:
    """The claims among volumes as in a pod's spec, without duplicates."""
    return tuple(dict.fromkeys(_claims(volumes)))


def _claims(volumes: Iterable[Mapping[str, Any]]) -> Iterator[VolumeClaim]:
    for volume in volumes:
        if (claim := volume.get("persistentVolumeClaim")) is not None:
            yield VolumeClaim(str(claim.get("claimName") or ""))
        elif (ephemeral := volume.get("ephemeral")) is not None:
            template = (ephemeral.get("volumeClaimTemplate") or {}).get("spec") or {}
            yield VolumeClaim(str(volume.get("name") or ""), True, template.get("storageClassName"))


def _node_affinity(affinity: Any) -> Any:
    if not isinstance(affinity, Mapping):
        return affinity
    required = {"requiredDuringSchedulingIgnoredDuringExecution": affinity.get("required")}
    terms = Placement.read({"affinity": {"nodeAffinity": required}}).affinity
    return tuple(tuple(map(_current, term)) for term in terms)


def _bytes(quantity: Any) -> int | None:
    """None where it is no quantity: who may write a claim is not trusted."""
    try:
        return parse_bytes(quantity)
    except ValueError:
        return None


def _strings(values: Any) -> Any:
    return [each for each in values if isinstance(each, str)] if isinstance(values, list) else ()


def _topologies(topologies: Any) -> Any:
    if not isinstance(topologies, list):
        return topologies
    return tuple(
        tuple(
            _current(NodeRequirement(str(each.get("key") or ""), "In", tuple(map(str, each.get("values") or ()))))
            for each in term.get("matchLabelExpressions") or ()
        )
        for term in topologies
    )


def _current(requirement: NodeRequirement) -> NodeRequirement:
    """With the zone's own label for that of a driver. Azure's is empty for a volume of no zone, which zones are not."""
    if requirement.key in _OF_DRIVERS and "" not in requirement.values:
        return replace(requirement, key=_OF_DRIVERS[requirement.key])
    return requirement


class PersistentVolume(ObservedObject):
    terms: Annotated[Terms, BeforeValidator(_node_affinity)] = Field(
        default=(), validation_alias=AliasPath("spec", "nodeAffinity")
    )
    """The nodes where it is: alternatives, each a list of conditions; empty: all."""
    claim_namespace: str = Field(default="", validation_alias=AliasPath("spec", "claimRef", "namespace"))
    claim_name: str = Field(default="", validation_alias=AliasPath("spec", "claimRef", "name"))
    claim_uid: str = Field(default="", validation_alias=AliasPath("spec", "claimRef", "uid"))
    """The claim that has it, as the cluster says, and not whoever writes a claim."""
    driver: str = Field(default="", validation_alias=AliasPath("spec", "csi", "driver"))
    size: Annotated[int | None, BeforeValidator(_bytes)] = Field(
        default=None, validation_alias=AliasPath("spec", "capacity", "storage")
    )
    """Its capacity, bytes."""

    @property
    def places(self) -> Terms:
        """`terms`, and what its labels say."""
        zones = {
            NodeRequirement(key, "In", tuple(sorted(self.labels[label].split("__"))))
            for label, key in _OF_VOLUMES.items()
            if label in self.labels
        }
        return Placement(affinity=self.terms).within(tuple(sorted(zones))).affinity if zones else self.terms


class PersistentVolumeClaim(ObservedObject):
    volume: str = Field(default="", validation_alias=AliasPath("spec", "volumeName"))
    storage_class: str | None = Field(default=None, validation_alias=AliasPath("spec", "storageClassName"))
    """None: the cluster's default. Empty: none."""

    access_modes: Annotated[tuple[str, ...], BeforeValidator(_strings)] = Field(
        default=(), validation_alias=AliasPath("spec", "accessModes")
    )
    requested: Annotated[int | None, BeforeValidator(_bytes)] = Field(
        default=None, validation_alias=AliasPath("spec", "resources", "requests", "storage")
    )
    """The size that it asks for, bytes."""
    selected_node: str = Field(default="", validation_alias=AliasPath("metadata", "annotations", SELECTED_NODE))
    """The node for which its volume is being provisioned."""

    @property
    def one_pod(self) -> bool:
        """Whether one pod may use it at a time."""
        return "ReadWriteOncePod" in self.access_modes


class StorageClass(ObservedObject):
    provisioner: str = ""
    binding_mode: str = Field(default="Immediate", validation_alias="volumeBindingMode")
    topologies: Annotated[Terms, BeforeValidator(_topologies)] = Field(default=(), validation_alias="allowedTopologies")
    """The nodes for which it provisions volumes, as in a PersistentVolume."""

    @property
    def default(self) -> bool:
        return self.annotations.get(_DEFAULT_CLASS) == "true"
