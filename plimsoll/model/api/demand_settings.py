"""How capacity is requested for pods that the cluster cannot place: `spec.demand` of an Environment."""

from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from plimsoll.labels import GROUP, is_label_key
from plimsoll.model import tensor_fusion
from plimsoll.model.api.placement_strategy import PlacementByPool
from plimsoll.model.api.shared_devices import NOT_SHARED, DeviceSharing, SharedDevices
from plimsoll.model.meta import Described

MOST_SECONDS: Final = 315_360_000
"""The longest duration of a setting: ten years."""
TRIGGER_NAMESPACE: Final = "plimsoll-triggers"
KAI_NAMESPACES: Final = ("kai-scale-adjust", "kai-resource-reservation", "runai-reservation")
"""KAI's own namespaces: its node-scale-adjuster deletes other pods there, and its binder waits for every unscheduled
pod."""

NAMESPACE_OF_KAI: Final = (
    "is one of KAI's namespaces, where KAI deletes other pods or is blocked by them: use another one"
)
HEADROOM_NEEDS_BUFFERS: Final = "headroom needs the provisioner capacity-buffer: set it, or remove headroom"
SHARING_NEEDS_TRIGGERS: Final = "sharedDevices needs the provisioner trigger-pod: set it, or remove sharedDevices"
_DNS_LABEL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def _not_of_kai(namespace: str) -> str:
    if namespace in KAI_NAMESPACES:
        raise ValueError(NAMESPACE_OF_KAI)
    return namespace


TriggerNamespace = Annotated[str, Field(min_length=1, max_length=63, pattern=_DNS_LABEL), AfterValidator(_not_of_kai)]


class DemandProvisioner(StrEnum):
    """How missing nodes are requested from an autoscaler."""

    NONE = "none"
    TRIGGER_POD = "trigger-pod"
    CAPACITY_BUFFER = "capacity-buffer"
    PROVISIONING_REQUEST = "provisioning-request"


class Headroom(Described):
    """Nodes that are kept ready in advance. The autoscaler replaces them when pods use them."""

    name: str = Field(min_length=1, max_length=40, pattern=_DNS_LABEL)
    node_pool: str = Field(min_length=1, max_length=63)
    instance_type: str = Field(min_length=1, max_length=63)
    gpus: int = Field(ge=1, le=1024)
    """GPU devices of one node."""
    nodes: int = Field(ge=1, le=1000)


class DemandSettings(Described):
    """Capacity for pods that share GPUs."""

    provisioner: DemandProvisioner = DemandProvisioner.NONE
    """`none`: demand is planned and reported, and no capacity is requested."""
    claims: Literal["plan", "observe", "off"] = "plan"
    """Pods that claim GPUs (Dynamic Resource Allocation): `plan` requests nodes for them, unless Karpenter plans claims
    itself; `observe` only reports them; `off` ignores them."""
    schedulers: tuple[Annotated[str, Field(min_length=1, max_length=253)], ...] = Field(
        default=("kai-scheduler", "default-scheduler", tensor_fusion.SCHEDULER), min_length=1
    )
    """Schedulers whose unschedulable pods are planned for."""
    without_queue: Literal["refuse", "allow"] = "refuse"
    """Whether capacity is provided for pods without a queue in a cluster that declares Queues: those of schedulers that
    know none."""
    classes_per_namespace: int = Field(default=100, ge=1, le=10_000)
    """Classes of pods (by node selector, affinity, tolerations, queue and scheduler) of one namespace that capacity is
    planned for. The pods of further ones are refused, so that one namespace does not make plans slow for all."""
    assumed_share_milli: int = Field(default=100, ge=1, le=1000)
    """Thousandths of a GPU that a share in MiB counts as, if the memory of no GPU is known."""
    gpu_tflops: dict[str, Annotated[float, Field(gt=0, le=1_000_000)]] = Field(default_factory=dict)
    """TFLOPS (FP16, dense) of one GPU by product, where they differ from the built-in table or are not in it. Shares
    in TFLOPS are fractions of it."""
    surplus_gpus: int = Field(default=0, ge=0, le=1024)
    """Most GPUs that may be requested with one node beyond what smaller instance types would need, while those failed
    to launch and are skipped."""
    grace_seconds: int = Field(default=0, ge=0, le=86400)
    """How long a pod must be unschedulable before a node is requested for it. A rolling update that frees GPUs in the
    meantime then requests none."""
    wait_seconds: int = Field(default=300, ge=0, le=86400)
    """How long a pod waits for requested nodes that suffice for all pods, if they were requested after it was created;
    then a node is requested for it anyway."""
    namespace: TriggerNamespace = TRIGGER_NAMESPACE
    """Namespace of trigger pods and of the other provisioners' objects; the foundation creates it with its admission
    rules."""
    image: str = Field(default="registry.k8s.io/pause:3.9", min_length=1)
    """Image of trigger pods, which never run."""
    scheduler_name: str = Field(default="plimsoll-trigger", min_length=1, max_length=63)
    """Scheduler name of trigger pods: no scheduler may use it, so that trigger pods are never bound."""
    label_prefix: str = Field(default=GROUP, min_length=1, max_length=253)
    """Prefix of the labels and annotations that describe a trigger pod."""
    deadline_seconds: int = Field(default=900, ge=1, le=MOST_SECONDS)
    """How long the nodes of a request may take to register."""
    retries: int = Field(default=3, ge=0, le=100)
    """Number of new requests after the capacity for a demand failed to arrive in time."""
    retry_seconds: int = Field(default=60, ge=1, le=MOST_SECONDS)
    """How long an instance type that failed to launch is skipped; others that fit are requested meanwhile."""
    pause_seconds: int = Field(default=1800, ge=1, le=MOST_SECONDS)
    """How long no capacity is requested for a demand after its last retry; then it starts again."""
    retention_seconds: int = Field(default=600, ge=0, le=MOST_SECONDS)
    """How long the GPUDemand of a completed demand is kept."""
    placement: PlacementByPool = Field(default_factory=dict, max_length=256)
    """How schedulers place pods on the nodes of a NodePool, by its name: `binpack`, or `spread`, breadth first; `*` for
    all others. Plans promise the places that such a scheduler leaves, and request nodes accordingly. It configures no
    scheduler."""
    headroom: tuple[Headroom, ...] = ()
    """Only for the provisioner `capacity-buffer`."""
    shared_devices: tuple[SharedDevices, ...] = Field(default=(), max_length=256)
    """Devices by time-slicing, MPS or MIG for which capacity is requested, by NodePool; only with the provisioner
    `trigger-pod`. The environment stack writes them where it declares no NodeOverlays."""

    @field_validator("label_prefix")
    @classmethod
    def _a_prefix(cls, prefix: str) -> str:
        if not is_label_key(f"{prefix}/component"):
            raise ValueError("must be a DNS name, such as plimsoll.dev")
        return prefix

    @model_validator(mode="after")
    def _headroom_fits(self) -> "DemandSettings":
        if self.headroom and self.provisioner is not DemandProvisioner.CAPACITY_BUFFER:
            raise ValueError(HEADROOM_NEEDS_BUFFERS)
        if self.shared_devices and self.provisioner not in (DemandProvisioner.NONE, DemandProvisioner.TRIGGER_POD):
            raise ValueError(SHARING_NEEDS_TRIGGERS)
        names = [each.name for each in self.headroom]
        if len(set(names)) < len(names):
            raise ValueError("headroom: two entries have the same name")
        return self

    @model_validator(mode="after")
    def _devices_once(self) -> "DemandSettings":
        seen: dict[str, set[str]] = {}
        for each in self.shared_devices:
            types = seen.setdefault(each.node_pool, set())
            if types and (not each.instance_types or "" in types or types.intersection(each.instance_types)):
                raise ValueError(f"sharedDevices: two entries are for the same nodes of NodePool {each.node_pool}")
            types.update(each.instance_types or ("",))
        return self

    def sharing_of(self, node_pool: str, instance_type: str) -> DeviceSharing:
        """How the GPUs of such nodes are announced."""
        for each in self.shared_devices:
            if each.node_pool == node_pool and instance_type in (each.instance_types or (instance_type,)):
                return each.sharing
        return NOT_SHARED

    @property
    def device_resources(self) -> tuple[str, ...]:
        """The extended resources of shared devices, sorted."""
        return tuple(sorted({each.resource for each in self.shared_devices}))
