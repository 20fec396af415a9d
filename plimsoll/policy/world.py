"""What objects are judged against beside themselves: the environment's mode, its queues, the instance types."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from plimsoll.labels import GPU_RESOURCE, GROUP
from plimsoll.model.api import EnvironmentSpec, PolicyConfig
from plimsoll.policy.fields import Manifest, is_kind, is_list, name_of, section, text

KAI_SCHEDULER: Final = "kai-scheduler"
KAI_GROUP: Final = "scheduling.run.ai"
_PREFIXES: Final[tuple[str, ...]] = EnvironmentSpec.model_fields["reserved_label_prefixes"].default


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
    """Queues that somebody declares: `leaves` schedule, `parents` only divide."""

    leaves: frozenset[str] = frozenset()
    parents: frozenset[str] = frozenset()

    @classmethod
    def of(cls, manifests: Iterable[Manifest], known: Iterable[str] = ()) -> "Queues":
        """`known` are leaves that are declared elsewhere."""
        declared = {
            name_of(each): text(section(each, "spec"), "parentQueue")
            for each in manifests
            if is_kind(each, KAI_GROUP, "Queue")
        }
        parents = frozenset(declared.values()) - {""}
        return cls(frozenset(declared) - parents | frozenset(known), parents)


@dataclass(frozen=True)
class World:
    mode: Mode | None = None
    """None: not known, and what depends on it is not judged."""
    queues: Queues | None = None
    """None: not known; which queues exist is not judged, and only pods of KAI must name one."""
    queue_scheduler: str = KAI_SCHEDULER
    gpu_resource: str = GPU_RESOURCE
    reserved_prefixes: tuple[str, ...] = _PREFIXES
    tenancy: EnvironmentSpec | None = None
    """Mode and access; None: not known, or not to be read."""
    gpu_limit: int | None = None
    """GPU devices that the Environment may hold; None: no bound."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Of an instance for an hour, by instance type."""

    @classmethod
    def of(cls, environment: Mapping[str, Any] | None, queues: Queues | None = None) -> "World":
        """From an Environment's spec as it is written; None where there is none."""
        if environment is None:
            return cls(queues=queues)
        prefixes = environment.get("reservedLabelPrefixes")
        limit = section(environment, "limits").get("gpus")
        return cls(
            mode=Mode.of(environment),
            queues=queues,
            queue_scheduler=text(environment, "queueScheduler") or KAI_SCHEDULER,
            gpu_resource=text(environment, "gpuResource") or GPU_RESOURCE,
            reserved_prefixes=tuple(str(each) for each in prefixes) if is_list(prefixes) else _PREFIXES,
            tenancy=_tenancy(environment),
            prices={
                name: float(price)
                for name, price in section(environment, "catalog", "prices").items()
                if isinstance(price, int | float)
            },
            gpu_limit=limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        )


def _tenancy(environment: Mapping[str, Any]) -> EnvironmentSpec | None:
    """What is wrong with the Environment itself is for its own kind to say."""
    fields = ("nodeAutoProvisioning", "provisioner", "access")
    try:
        return EnvironmentSpec.model_validate({name: environment[name] for name in fields if name in environment})
    except ValidationError:
        return None


def environment_of(manifests: Iterable[Manifest]) -> Mapping[str, Any] | None:
    """`spec` of the first Environment among manifests."""
    return next((section(each, "spec") for each in manifests if is_kind(each, GROUP, "Environment")), None)


def world_of(manifests: Sequence[Manifest], config: PolicyConfig) -> World:
    """What objects of files are judged against: the environment that is configured, else the one among them."""
    configured = config.environment
    environment = configured.manifest() if configured is not None else environment_of(manifests)
    known = config.rules["queue-unknown"].options.get("queues") if "queue-unknown" in config.rules else None
    named = any(is_kind(each, KAI_GROUP, "Queue") for each in manifests)
    queues = Queues.of(manifests, map(str, known) if is_list(known) else ())
    return World.of(environment, queues if named or known else None)
