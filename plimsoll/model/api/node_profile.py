"""NodeProfile: what nodes of an instance type in a NodePool offer (plimsoll.dev/v1alpha1, cluster-scoped).

`spec` is declared by people, where no node of the type exists yet. The controller writes `status.learned` from nodes
that exist, so that what is known of them outlives them; deleting the object forgets it.
"""

import hashlib
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from plimsoll.model.api.claim_devices import ClaimDevices
from plimsoll.model.meta import Described, Observed, ObservedObject, checked_labels

Amount = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9]+(\.[0-9]+)?([mkMGTPE]|[KMGTPE]i)?$")]
"""A quantity of Kubernetes."""


class NodeProfileSpec(Described):
    """Nodes of an instance type in a NodePool, as they are declared."""

    node_pool: str = Field(min_length=1, max_length=63)
    instance_type: str = Field(min_length=1, max_length=63)
    labels: Annotated[dict[str, str], Field(max_length=100), AfterValidator(checked_labels)] = Field(
        default_factory=dict
    )
    """Labels that discovery will write on such nodes, such as `nvidia.com/gpu.product`."""
    allocatable: dict[str, Amount] = Field(default_factory=dict, max_length=50)
    """Allocatable amounts of such nodes, such as `cpu`, `memory`, `pods`, `ephemeral-storage`."""
    claim_devices: ClaimDevices | None = None
    """GPUs that pods get by claims (Dynamic Resource Allocation), where no device plugin announces them."""


class LearnedProfile(BaseModel):
    """What was seen on a node."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )

    node: str = ""
    """The node on which it was seen."""
    seen: str = ""
    """When it was first seen like this (RFC 3339)."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of discovery, without those that say how one node runs, such as versions of drivers."""
    allocatable: dict[str, str] = Field(default_factory=dict)
    claim_devices: ClaimDevices | None = None
    """GPUs that pods get by claims, without attributes of one node or one device alone."""
    devices: str = ""
    """The devices, for people."""

    def says(self, other: "LearnedProfile") -> bool:
        """Whether both say the same of such nodes."""
        own = (self.labels, self.allocatable, self.claim_devices)
        return own == (other.labels, other.allocatable, other.claim_devices)


class NodeProfileStatus(BaseModel):
    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )

    learned: LearnedProfile | None = None

    def as_manifest(self) -> dict[str, Any]:
        """`status` as it is written."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class KnownNodeProfile(ObservedObject):
    """The object in the cluster; `plimsoll.cluster.profiles` has what follows from it."""

    spec: NodeProfileSpec
    status: NodeProfileStatus = NodeProfileStatus()

    @property
    def pair(self) -> tuple[str, str]:
        """The NodePool, and the instance type in lower case: clouds differ in case."""
        return self.spec.node_pool, self.spec.instance_type.casefold()


def profile_name(node_pool: str, instance_type: str) -> str:
    """`<pool>.<type>` where that is an object's name as it is, else with ten digits of a hash."""
    plain = f"{node_pool}.{instance_type}"
    name = re.sub(r"[^a-z0-9.-]+", "-", plain.casefold()).strip("-.")
    if name == plain and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name):
        return name
    name = re.sub(r"\.[-.]+|[-.]+\.", ".", name)
    return f"{name}-{hashlib.sha256(plain.encode()).hexdigest()[:10]}"


class ProfileReport(Observed):
    """What was learned of nodes, to be written to the NodeProfile of that name."""

    name: str
    node_pool: str
    instance_type: str
    learned: LearnedProfile
    new: bool
    """Whether the object does not exist yet."""
