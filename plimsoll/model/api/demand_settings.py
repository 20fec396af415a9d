"""How demand for GPUs that the cluster cannot place becomes capacity: `spec.demand` of an Environment."""

from enum import StrEnum
from typing import Annotated, Final

from pydantic import AfterValidator, Field, field_validator, model_validator

from plimsoll.labels import GROUP, is_label_key
from plimsoll.model.meta import Declared

TRIGGER_NAMESPACE: Final = "plimsoll-triggers"
KAI_NAMESPACES: Final = ("kai-scale-adjust", "kai-resource-reservation", "runai-reservation")
"""KAI's own: its adjuster deletes foreign pods there, and its binder waits for every pod that is not scheduled."""

_DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def _not_of_kai(namespace: str) -> str:
    if namespace in KAI_NAMESPACES:
        raise ValueError("is KAI's own, which blocks its reservations or deletes what is put there: name another")
    return namespace


TriggerNamespace = Annotated[str, Field(min_length=1, max_length=63, pattern=_DNS_LABEL), AfterValidator(_not_of_kai)]


class DemandProvisioner(StrEnum):
    """How the nodes that a demand lacks are asked for."""

    NONE = "none"
    TRIGGER_POD = "trigger-pod"
    CAPACITY_BUFFER = "capacity-buffer"
    PROVISIONING_REQUEST = "provisioning-request"


class Headroom(Declared):
    """Nodes that stand ready though nothing asks for them: taken by the first who comes, and then made again."""

    name: str = Field(min_length=1, max_length=40, pattern=_DNS_LABEL)
    node_pool: str = Field(min_length=1, max_length=63)
    instance_type: str = Field(min_length=1, max_length=63)
    gpus: int = Field(ge=1, le=1024)
    """GPU devices of one node."""
    nodes: int = Field(ge=1, le=1000)


class DemandSettings(Declared):
    provisioner: DemandProvisioner = DemandProvisioner.NONE
    """`none`: demand is planned and reported, and nothing is asked for."""
    schedulers: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        default=("kai-scheduler", "default-scheduler"), min_length=1
    )
    """Whose unschedulable pods are demand."""
    assumed_share_milli: int = Field(default=100, ge=1, le=1000)
    """Thousandths of a GPU that a share in MiB counts for where the memory of no GPU is known."""
    namespace: TriggerNamespace = TRIGGER_NAMESPACE
    """Of trigger pods and of what the other provisioners make; the foundation makes it, with what may be done there."""
    image: str = Field(default="registry.k8s.io/pause:3.9", min_length=1)
    """Of trigger pods, which never run."""
    scheduler_name: str = Field(default="plimsoll-trigger", min_length=1, max_length=63)
    """Scheduler of trigger pods: one that nobody serves, so that they never take the GPUs they ask for."""
    label_prefix: str = Field(default=GROUP, min_length=1, max_length=253)
    """Of the labels and annotations that say what a trigger pod is for."""
    deadline_seconds: int = Field(default=900, ge=1)
    """How long capacity that was asked for is waited for."""
    retries: int = Field(default=3, ge=0, le=100)
    """Times that a demand is asked for again after its capacity did not come in time."""
    retry_seconds: int = Field(default=60, ge=1)
    """How long an instance type that did not come is not asked for; meanwhile others that fit are."""
    pause_seconds: int = Field(default=1800, ge=1)
    """How long a demand rests after its last retry, and then begins anew."""
    retention_seconds: int = Field(default=600, ge=0)
    """How long the GPUDemand of a demand that is over stays."""
    headroom: tuple[Headroom, ...] = ()
    """For the provisioner `capacity-buffer` alone."""

    @field_validator("label_prefix")
    @classmethod
    def _a_prefix(cls, prefix: str) -> str:
        if not is_label_key(f"{prefix}/component"):
            raise ValueError("must be a DNS name, such as plimsoll.dev")
        return prefix

    @model_validator(mode="after")
    def _headroom_fits(self) -> "DemandSettings":
        if self.headroom and self.provisioner is not DemandProvisioner.CAPACITY_BUFFER:
            raise ValueError("headroom is for the provisioner capacity-buffer: set it, or remove headroom")
        names = [each.name for each in self.headroom]
        if len(set(names)) < len(names):
            raise ValueError("headroom: two entries have the same name")
        return self
