"""What rules know in addition to the object: the environment's provisioning mode, its queues, its prices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from plimsoll.labels import GPU_RESOURCE, GROUP
from plimsoll.model.api import EnvironmentSpec, PolicyConfig
from plimsoll.model.kai import NODE_POOL_LABEL, NodePoolLabel
from plimsoll.model.meta import section
from plimsoll.policy.fields import Manifest, is_kind, is_list, name_of, text

KAI_SCHEDULER: Final = "kai-scheduler"
KAI_GROUP: Final = "scheduling.run.ai"
_PREFIXES: Final[tuple[str, ...]] = EnvironmentSpec.model_fields["reserved_label_prefixes"].default
_NODE_LABELS: Final[tuple[str, ...]] = EnvironmentSpec.model_fields["node_label_prefixes"].default


class Mode(NamedTuple):
    auto_provisioning: bool
    provisioner: str

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Mode":
        """From an Environment's spec, or from options with the same two fields."""
        provisioner = text(spec, "provisioner")
        enabled = text(spec, "nodeAutoProvisioning") == "enabled" or (
            not text(spec, "nodeAutoProvisioning") and provisioner not in ("", "byo")
        )
        return cls(enabled, provisioner or ("nodeclaim" if enabled else "byo"))


class Queues(NamedTuple):
    """Declared queues: pods can use `leaves`; `parents` only divide resources."""

    leaves: frozenset[str] = frozenset()
    parents: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manifests: Iterable[Manifest], known: Iterable[str] = ()) -> "Queues":
        """`known` are leaf queues that are declared elsewhere."""
        declared = {
            name_of(each): text(section(each, "spec"), "parentQueue")
            for each in manifests
            if is_kind(each, KAI_GROUP, "Queue")
        }
        parents = frozenset(declared.values()) - {""}
        return cls(frozenset(declared) - parents | frozenset(known), parents)


@dataclass(frozen=True)
class PolicyContext:
    mode: Mode | None = None
    """None: not known; what depends on it is not checked."""
    queues: Queues | None = None
    """None: not known; whether a queue exists is not checked, and only pods that KAI schedules must have one."""
    queue_scheduler: str = KAI_SCHEDULER
    node_pool_label: NodePoolLabel = NODE_POOL_LABEL
    gpu_resource: str = GPU_RESOURCE
    reserved_prefixes: tuple[str, ...] = _PREFIXES
    node_label_prefixes: tuple[str, ...] = _NODE_LABELS
    tenancy: EnvironmentSpec | None = None
    """Mode and access; None: not known, or invalid."""
    byo_type_narrows: bool = False
    """Whether an instance type may narrow the choice of existing (BYO) nodes."""
    gpu_limit: int | None = None
    """The Environment's limit of GPU devices; None: unlimited."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Price of an instance per hour, by instance type."""

    @classmethod
    def of(cls, environment: Mapping[str, Any] | None, queues: Queues | None = None) -> "PolicyContext":
        """From an Environment's spec as written in its manifest; None if there is none."""
        if environment is None:
            return cls(queues=queues)
        prefixes = environment.get("reservedLabelPrefixes")
        on_nodes = environment.get("nodeLabelPrefixes")
        limit = section(environment, "limits").get("gpus")
        return cls(
            mode=Mode.of(environment),
            queues=queues,
            queue_scheduler=text(environment, "queueScheduler") or KAI_SCHEDULER,
            node_pool_label=NodePoolLabel.declared(environment),
            gpu_resource=text(environment, "gpuResource") or GPU_RESOURCE,
            reserved_prefixes=tuple(str(each) for each in prefixes) if is_list(prefixes) else _PREFIXES,
            node_label_prefixes=tuple(str(each) for each in on_nodes) if is_list(on_nodes) else _NODE_LABELS,
            tenancy=_tenancy(environment),
            byo_type_narrows=text(environment, "byoInstanceType") == "narrow",
            prices={
                name: float(price)
                for name, price in section(environment, "catalog", "prices").items()
                if isinstance(price, int | float)
            },
            gpu_limit=limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        )


def _tenancy(environment: Mapping[str, Any]) -> EnvironmentSpec | None:
    """Errors in the Environment itself are reported elsewhere, by the schema of its kind."""
    fields = ("nodeAutoProvisioning", "provisioner", "byoInstanceType", "access", "nodePoolLabelKey")
    try:
        return EnvironmentSpec.model_validate({name: environment[name] for name in fields if name in environment})
    except ValidationError:
        return None


def environment_of(manifests: Iterable[Manifest]) -> Mapping[str, Any] | None:
    """`spec` of the first Environment among manifests."""
    return next((section(each, "spec") for each in manifests if is_kind(each, GROUP, "Environment")), None)


def assumes_mode(manifests: Sequence[Manifest], config: PolicyConfig) -> bool:
    """Whether Workspaces are checked without an Environment: as planning does, existing nodes (BYO) are assumed."""
    if config.environment is not None or environment_of(manifests) is not None:
        return False
    return any(is_kind(each, GROUP, "Workspace") for each in manifests)


def context_of(manifests: Sequence[Manifest], config: PolicyConfig) -> PolicyContext:
    """The environment for checking the objects of files: the configured one, or the one among the objects."""
    configured = config.environment
    environment = configured.manifest() if configured is not None else environment_of(manifests)
    if assumes_mode(manifests, config):
        environment = {}
    known = config.rules["queue-unknown"].options.get("queues") if "queue-unknown" in config.rules else None
    named = any(is_kind(each, KAI_GROUP, "Queue") for each in manifests)
    queues = Queues.of(manifests, map(str, known) if is_list(known) else ())
    return PolicyContext.of(environment, queues if named or known else None)
