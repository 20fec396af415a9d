"""NodePool: the nodes that Karpenter may launch."""

from typing import TypedDict

import pulumi

from plimsoll.components.choices import (
    DeclaredTaintEffect,
)
from plimsoll.components.declaring import Component, ObjectArgs, ObjectType, name_of, uid_of
from plimsoll.labels import NODEPOOL
from plimsoll.model.karpenter import NodePoolSpec


class NodeClassRefArgs(TypedDict, total=False):
    """The cloud's node class that NodeClaims refer to (karpenter.sh/v1 nodeClassRef)."""

    group: pulumi.Input[str]
    kind: pulumi.Input[str]
    name: pulumi.Input[str]


class RequirementArgs(TypedDict, total=False):
    """One requirement on the instance types and nodes of a pool."""

    key: pulumi.Input[str]
    operator: pulumi.Input[str]
    values: pulumi.Input[list[pulumi.Input[str]]]
    min_values: pulumi.Input[int]
    """Minimum number of different values among which Karpenter must be able to choose when it launches a node."""


class TaintArgs(TypedDict, total=False):
    """A taint of nodes."""

    key: pulumi.Input[str]
    value: pulumi.Input[str]
    effect: DeclaredTaintEffect


class BudgetArgs(TypedDict, total=False):
    """How many nodes may be disrupted at once, and when."""

    nodes: pulumi.Input[str]
    """A number, or a share such as `10%`."""
    reasons: pulumi.Input[list[pulumi.Input[str]]]
    schedule: pulumi.Input[str]
    """When the budget applies, in cron syntax; needs `duration`."""
    duration: pulumi.Input[str]


class DisruptionArgs(TypedDict, total=False):
    """When Karpenter may disrupt nodes."""

    consolidation_policy: pulumi.Input[str]
    consolidate_after: pulumi.Input[str]
    """Time after the last pod was added or removed. A new node is empty until its driver runs and its GPUs are
    discovered, which takes minutes; with a shorter time Karpenter deletes it before that."""
    budgets: pulumi.Input[list[pulumi.Input[BudgetArgs]]]


class NodePoolArgs(ObjectArgs, total=False):
    """The nodes that Karpenter may launch, and their number."""

    requirements: pulumi.Input[list[pulumi.Input[RequirementArgs]]]
    node_class_ref: pulumi.Input[NodeClassRefArgs]
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Labels of the nodes."""
    annotations: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Annotations of the nodes."""
    taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    startup_taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    """Taints that another controller removes when the node is ready for pods."""
    limits: pulumi.Input[dict[str, pulumi.Input[str]]]
    """Quantity of each resource that the pool may hold at most, such as `nvidia.com/gpu: 16`, and `nodes`."""
    disruption: pulumi.Input[DisruptionArgs]
    expire_after: pulumi.Input[str]
    """Age at which a node is replaced; absent: Karpenter's default, 720h."""
    termination_grace_period: pulumi.Input[str]
    weight: pulumi.Input[int]
    """Pools of a higher weight are tried first."""
    replicas: pulumi.Input[int]
    """Makes the pool a static one that always holds this many nodes (Karpenter's gate StaticCapacity)."""


class NodePool(Component):
    """A NodePool (karpenter.sh/v1) whose consolidation waits until the GPUs of a new node are discovered.

    `node_pool` is the object. Raises InvalidArgumentError if an argument is invalid, or a label or annotation contains
    a time or a hash.
    """

    node_pool_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    node_labels: pulumi.Output[dict[str, str]]
    """The label that selects its nodes."""

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("NodePool", name, args, opts)
        self.node_pool = self._object(ObjectType("karpenter.sh/v1", "NodePool"), NodePoolSpec, NodePoolSpec.manifest)
        self.node_pool_name = name_of(self.node_pool, args.get("name"))
        self.uid = uid_of(self.node_pool)
        self.node_labels = self.node_pool_name.apply(lambda known: {NODEPOOL: known})
        self.register_outputs({"nodePoolName": self.node_pool_name, "uid": self.uid, "nodeLabels": self.node_labels})
