"""NodePoolSpec: the declared fields of a Karpenter NodePool (karpenter.sh/v1)."""

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, field_validator, model_validator

from plimsoll.labels import is_label_key
from plimsoll.model.api import DeclaredTaint, NodeClassRef
from plimsoll.model.meta import Declared, Labels, changes_by_itself
from plimsoll.quantity import parse_quantity

Duration = Annotated[str, Field(pattern=r"^([0-9]+(s|m|h))+$")]
DurationOrNever = Annotated[str, Field(pattern=r"^(([0-9]+(s|m|h))+|Never)$")]

_TEMPLATE_FIELDS: Final = (
    "requirements",
    "nodeClassRef",
    "taints",
    "startupTaints",
    "expireAfter",
    "terminationGracePeriod",
)

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]
OPERATORS: Final[tuple[str, ...]] = get_args(Operator)
"""Of Karpenter's requirements."""


class NodeRequirement(Declared):
    """One requirement on the instance types and nodes of a pool."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    min_values: Annotated[int, Field(ge=1, le=50)] | None = None
    """Minimum number of different values among which Karpenter must be able to choose."""

    @model_validator(mode="after")
    def _values_fit(self) -> "NodeRequirement":
        if not is_label_key(self.key):
            raise ValueError(f"key {self.key!r} is not a label key")
        match self.operator:
            case "In" | "NotIn" if not self.values:
                raise ValueError(f"operator {self.operator} needs at least one value")
            case "Exists" | "DoesNotExist" if self.values:
                raise ValueError(f"operator {self.operator} takes no values")
            case "Gt" | "Lt" | "Gte" | "Lte" if len(self.values) != 1 or not self.values[0].isdecimal():
                raise ValueError(f"operator {self.operator} takes one whole number as its value")
        return self


class Budget(Declared):
    """How many nodes may be disrupted at once, and when."""

    nodes: Annotated[str, Field(pattern=r"^((100|[0-9]{1,2})%|[0-9]+)$")] = "10%"
    """A number, or a share such as `10%`."""
    reasons: tuple[Literal["Underutilized", "Empty", "Drifted"], ...] = ()
    schedule: str | None = None
    """When the budget applies, in crontab format; requires `duration`."""
    duration: Annotated[str, Field(pattern=r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$")] | None = None

    @model_validator(mode="after")
    def _schedule_with_duration(self) -> "Budget":
        if (self.schedule is None) != (self.duration is None):
            raise ValueError("schedule and duration go together")
        return self


class Disruption(Declared):
    """When Karpenter may disrupt a node."""

    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] = "WhenEmpty"
    consolidate_after: DurationOrNever = "15m"
    """Time without added or removed pods after which a node may be consolidated. A new node is empty until its driver
    is installed and its GPUs are discovered, which takes minutes; with a shorter time Karpenter deletes it before."""
    budgets: tuple[Budget, ...] = ()


class NodePoolSpec(Declared):
    """A pool of nodes that Karpenter may launch.

    Karpenter compares the template with each node: a change replaces every node of the pool. Labels and annotations
    whose values change by themselves (times, hashes) are therefore refused.
    """

    requirements: tuple[NodeRequirement, ...] = Field(default=(), max_length=100)
    node_class_ref: NodeClassRef
    labels: Labels = Field(default_factory=dict)
    """Labels of the nodes."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations of the nodes."""
    taints: tuple[DeclaredTaint, ...] = ()
    startup_taints: tuple[DeclaredTaint, ...] = ()
    """Taints that are removed, for example by a DaemonSet, when the node is prepared."""
    limits: dict[str, str | int] = Field(default_factory=dict)
    """Quantity of each resource that the pool may hold at most, such as `nvidia.com/gpu: 16`, and `nodes`."""
    disruption: Disruption = Disruption()
    expire_after: DurationOrNever | None = None
    """Age at which a node is replaced; absent: Karpenter's default, 720h."""
    termination_grace_period: Duration | None = None
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """NodePools with a higher weight are tried first."""
    replicas: Annotated[int, Field(ge=0)] | None = None
    """Makes the pool a static one that always holds this many nodes (Karpenter's gate StaticCapacity)."""

    @field_validator("labels", "annotations")
    @classmethod
    def _lasting(cls, texts: dict[str, str]) -> dict[str, str]:
        for key, value in texts.items():
            if not is_label_key(key):
                raise ValueError(f"{key!r} is not a label key")
            if changes_by_itself(key, value):
                raise ValueError(
                    f"{key}: {value!r} looks like a time or a hash; each change of it would replace every node of "
                    "the pool: put it on the NodePool itself, or leave it out"
                )
        return texts

    @field_validator("limits")
    @classmethod
    def _quantities(cls, limits: dict[str, str | int]) -> dict[str, str | int]:
        for resource, amount in limits.items():
            if parse_quantity(amount) < 0:
                raise ValueError(f"{resource}: {amount} is negative")
        return limits

    @model_validator(mode="after")
    def _static_pools(self) -> "NodePoolSpec":
        if self.replicas is not None:
            if self.weight is not None:
                raise ValueError("weight has no effect with replicas: remove one")
            if set(self.limits) - {"nodes"}:
                raise ValueError("a static pool (replicas) can be limited only by 'nodes'")
        return self

    def manifest(self) -> dict[str, Any]:
        """`spec` of the NodePool object."""
        declared = self.complete_manifest()
        template = {name: declared[name] for name in _TEMPLATE_FIELDS if name in declared}
        metadata = {name: declared[name] for name in ("labels", "annotations") if name in declared}
        spec: dict[str, Any] = {
            "template": ({"metadata": metadata} if metadata else {}) | {"spec": {"requirements": []} | template}
        }
        names = ["limits", "weight", "replicas"]
        # Karpenter never consolidates a static pool: of its disruption, only the budgets count, for drift.
        if self.replicas is None or self.disruption.budgets:
            names.insert(0, "disruption")
        return spec | {name: declared[name] for name in names if name in declared}
