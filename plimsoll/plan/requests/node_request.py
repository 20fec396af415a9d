"""NodeRequest: the node that an object requests, and its annotation on that object."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Final

import orjson
from pydantic import ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from plimsoll.cluster.nodes import owner_labels
from plimsoll.labels import DEMAND, ENVIRONMENT, GROUP, INSTANCE_TYPE, NODEPOOL, REQUEST, as_label_value
from plimsoll.model import DemandRef
from plimsoll.model.meta import EPHEMERAL_STORAGE, NodeRequirement, Observed, Placement, Terms, Toleration, expression
from plimsoll.plan.demand import Demand, PlannedNode, RequestedNode
from plimsoll.text import shortlist

NODE: Final = f"{GROUP}/node"
"""Annotation: the NodeRequest, as JSON."""
ATTEMPT: Final = f"{GROUP}/attempt"
"""Annotation: number of the attempt; 1 for the first request, one more after each failure. The highest of its
demands."""
REGISTERED: Final = f"{GROUP}/registered-nodes"
"""Annotation: names of the nodes that have registered, as a JSON list."""
LOST: Final = f"{GROUP}/lost"
"""Annotation: names of NodeClaims that failed and are no longer expected, as a JSON list."""
DEMANDS: Final = f"{GROUP}/demands"
"""Annotation: the demands that the node serves, each with the number of its attempt, as a JSON object; at most as many
as fit, largest share first. The label names the first of them."""
GIVEN_UP: Final = f"{GROUP}/given-up"
"""Annotation: number of requested nodes that are no longer expected."""
_GPU_TAINT: Final = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
"""The toleration of the taint that GPU nodes usually have."""
_LEAST_CPU: Final = 100
"""CPU request in millicores if the pods request none."""
_SHORT: Final = 4096
"""Longest annotation that is cached, in characters: anyone may write annotations."""


Requirement = tuple[str, str, tuple[str, ...]]
"""(label, operator, values)"""


class NodeRequest(Observed):
    """A node's whole GPUs, and the CPU, memory and storage of the pods that are planned on it."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, alias_generator=to_camel, populate_by_name=True, str_max_length=253
    )

    instance_types: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)]
    node_pool: str = ""
    gpus: Annotated[int, Field(ge=1, le=1024)]
    kind: str = ""
    """GPU product."""
    cpu_milli: Annotated[int, Field(ge=0)] = 0
    memory_mib: Annotated[int, Field(ge=0)] = 0
    storage_mib: Annotated[int, Field(ge=0)] = 0
    """Ephemeral storage."""
    resource: str = ""
    """Extended resource that its GPUs will be announced as, where that is not the Environment's."""
    counted: bool = False
    """Headroom: whether Karpenter counts that resource, so that it is requested."""
    requires: Annotated[tuple[tuple[Requirement, ...], ...], Field(max_length=50)] = ()
    """What the pods require of labels that the NodePool leaves open: alternatives of conditions."""
    scheduler: str = ""
    """As in PlannedNode."""
    taints: Annotated[tuple[tuple[str, str, str], ...], Field(max_length=50)] = ()
    """Headroom: (key, value, effect) of the NodePool's taints, because there are no pods that tolerate them."""

    @classmethod
    def of(cls, node: PlannedNode) -> "NodeRequest":
        return cls(
            instance_types=(node.instance_type, *node.alternatives),
            node_pool=node.node_pool,
            gpus=node.gpus,
            kind=node.kind,
            cpu_milli=node.cpu_milli,
            memory_mib=node.memory_mib,
            storage_mib=node.storage_mib,
            resource=node.resource,
            requires=tuple(tuple((each.key, each.operator, each.values) for each in term) for term in node.requires),
            scheduler=node.scheduler,
        )

    def requested_node(self, name: str, *, claimed: bool = False, since: str = "") -> RequestedNode:
        """The requested node as supply for the demand planner."""
        return RequestedNode(
            name=name,
            instance_types=self.instance_types,
            node_pool=self.node_pool,
            gpus=self.gpus,
            kind=self.kind,
            requires=self.terms,
            claimed=claimed,
            since=since,
            scheduler=self.scheduler,
        )

    @property
    def terms(self) -> Terms:
        """`requires` as conditions."""
        return tuple(tuple(NodeRequirement(*each) for each in term) for term in self.requires)

    @classmethod
    def from_annotations(cls, annotations: Mapping[str, str]) -> "NodeRequest | None":
        """Reads the annotation; None where it is missing or invalid."""
        text = annotations.get(NODE, "")
        return _read_cached(text) if len(text) < _SHORT else _read(text)

    @property
    def text(self) -> str:
        """The annotation's value."""
        optional = ("counted", "requires", "resource", "scheduler", "storage_mib", "taints")
        left_out = {name for name in optional if not getattr(self, name)}
        fields = self.model_dump(mode="json", by_alias=True, exclude=left_out)
        return orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).decode()

    @property
    def alone(self) -> bool:
        """Whether it is requested without its GPUs, so that only a label keeps the pods of other requests away."""
        return bool(self.resource) and not self.counted

    @property
    def slug(self) -> str:
        """The GPU product as a part of object names."""
        return re.sub(r"[^a-z0-9]+", "-", self.kind.casefold())[:28].strip("-") or "gpu"

    def requests(self, gpu_resource: str) -> dict[str, str]:
        """Resource requests of the pod that stands for the node.

        Without GPUs if these will be allocatable as another resource that Karpenter does not count: it initializes a
        node only when all requested resources are allocatable.
        """
        gpus = {} if self.alone else {self.resource or gpu_resource: str(self.gpus)}
        cpu = {"cpu": f"{self.cpu_milli or _LEAST_CPU}m"}
        memory = {"memory": f"{self.memory_mib}Mi"} if self.memory_mib else {}
        storage = {EPHEMERAL_STORAGE: f"{self.storage_mib}Mi"} if self.storage_mib else {}
        return {**gpus, **cpu, **memory, **storage}


def _read(text: str) -> NodeRequest | None:
    try:
        return NodeRequest.model_validate(orjson.loads(text))
    except (orjson.JSONDecodeError, ValidationError):
        return None


_read_cached = lru_cache(maxsize=1024)(_read)
"""Cached, because thousands of requests have few different annotations."""


def pod_placement(node_request: NodeRequest, placement: Placement, name: str) -> dict[str, Any]:
    """Node selector, affinity and tolerations of a pod that requests the node by the object of this name.

    NodePool and instance types decide most of what the pods require; `placement` is that of one of them, which
    tolerates the taints of the NodePool. Headroom has no pods, and tolerates its own `taints`.
    """
    selector: dict[str, str] = {}
    type_terms = []
    if len(node_request.instance_types) == 1:
        selector[INSTANCE_TYPE] = node_request.instance_types[0]
    else:
        type_terms.append(expression(INSTANCE_TYPE, "In", *node_request.instance_types))
    if node_request.node_pool:
        selector[NODEPOOL] = node_request.node_pool
    if node_request.alone:
        # Its own value for a label that the NodePool leaves open: no other pod shares the node that Karpenter plans.
        selector[REQUEST] = name
    terms = list(node_request.terms)
    if len(terms) == 1 and all(condition.operator == "In" and len(condition.values) == 1 for condition in terms[0]):
        selector |= {condition.key: condition.values[0] for condition in terms.pop()}
    spec: dict[str, Any] = {"nodeSelector": selector, "tolerations": _tolerations(node_request, placement)}
    if terms or type_terms:
        expressions = [
            [*(expression(condition.key, condition.operator, *condition.values) for condition in term), *type_terms]
            for term in terms or ((),)
        ]
        required = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": conditions} for conditions in expressions]
            }
        }
        spec["affinity"] = {"nodeAffinity": required}
    return spec


def demand_names(demands: Sequence[str]) -> str:
    """Names of the demands of a request, for messages."""
    return f"demand{'s' if len(demands) > 1 else ''} {shortlist(demands)}"


def attempt_annotations(attempts: Mapping[str, int]) -> dict[str, str]:
    """The annotations with the demands of a request, and their attempts."""
    kept: dict[str, int] = {}
    for name, attempt in attempts.items():
        if len(orjson.dumps({**kept, name: attempt})) > _SHORT:
            break
        kept[name] = attempt
    return {ATTEMPT: str(max(attempts.values())), DEMANDS: orjson.dumps(kept).decode()}


def demand_labels(owner: DemandRef, environment: str, owners: Mapping[str, str]) -> dict[str, str]:
    """Labels that identify the object's demand and environment, and say for whom it requests nodes (`owners_of`)."""
    return {DEMAND: as_label_value(owner.name), ENVIRONMENT: as_label_value(environment), **owners}


def owners_of(nodes: Iterable[PlannedNode], demands: Mapping[str, Demand]) -> dict[str, str]:
    """The labels with namespace and queue of the pods that are planned on these nodes; `demands` by name."""
    served = [
        (demand.pods[uid].pod.namespace, demand.demand_class.queue)
        for node in nodes
        for demand in map(demands.__getitem__, node.demands)
        for uid in node.pods
        if uid in demand.pods
    ]
    return owner_labels((namespace for namespace, _ in served), (queue for _, queue in served))


def _tolerations(node_request: NodeRequest, placement: Placement) -> list[dict[str, Any]]:
    tainted = (Toleration(key=key, value=value, effect=effect) for key, value, effect in node_request.taints)
    tolerations = [
        {
            name: value
            for name, value in (
                ("key", toleration.key),
                ("operator", toleration.operator),
                ("value", toleration.value),
                ("effect", toleration.effect),
                ("tolerationSeconds", toleration.toleration_seconds),
            )
            if value not in ("", None)
        }
        for toleration in (*placement.tolerations, *tainted)
    ]
    return tolerations if _GPU_TAINT in tolerations else [*tolerations, _GPU_TAINT]
