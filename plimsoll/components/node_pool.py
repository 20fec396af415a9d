"""NodePool: the nodes that Karpenter may launch."""

from typing import Any, TypedDict

import pulumi

from plimsoll.components.component import Component, ObjectArgs, ObjectType, uid_of
from plimsoll.components.specs import NodePoolSpec
from plimsoll.labels import NODEPOOL


class NodeClassRefArgs(TypedDict, total=False):
    group: pulumi.Input[str]
    kind: pulumi.Input[str]
    name: pulumi.Input[str]


class RequirementArgs(TypedDict, total=False):
    key: pulumi.Input[str]
    operator: pulumi.Input[str]
    values: pulumi.Input[list[pulumi.Input[str]]]
    min_values: pulumi.Input[int]


class TaintArgs(TypedDict, total=False):
    key: pulumi.Input[str]
    value: pulumi.Input[str]
    effect: pulumi.Input[str]


class BudgetArgs(TypedDict, total=False):
    nodes: pulumi.Input[str]
    reasons: pulumi.Input[list[pulumi.Input[str]]]
    schedule: pulumi.Input[str]
    duration: pulumi.Input[str]


class DisruptionArgs(TypedDict, total=False):
    consolidation_policy: pulumi.Input[str]
    consolidate_after: pulumi.Input[str]
    budgets: pulumi.Input[list[pulumi.Input[BudgetArgs]]]


class NodePoolArgs(ObjectArgs, total=False):
    """Which nodes Karpenter may launch, and how many."""

    requirements: pulumi.Input[list[pulumi.Input[RequirementArgs]]]
    node_class_ref: pulumi.Input[NodeClassRefArgs]
    labels: pulumi.Input[dict[str, pulumi.Input[str]]]
    annotations: pulumi.Input[dict[str, pulumi.Input[str]]]
    taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    startup_taints: pulumi.Input[list[pulumi.Input[TaintArgs]]]
    limits: pulumi.Input[dict[str, pulumi.Input[str]]]
    disruption: pulumi.Input[DisruptionArgs]
    expire_after: pulumi.Input[str]
    termination_grace_period: pulumi.Input[str]
    weight: pulumi.Input[int]
    replicas: pulumi.Input[int]


class NodePool(Component):
    """A NodePool (karpenter.sh/v1) that gives a new node the time to discover its GPUs.

    `node_pool` is the object. Raises InvalidArgumentError where an argument does not fit, and for labels and
    annotations that change by themselves.
    """

    node_pool_name: pulumi.Output[str]
    """Name of the object."""
    uid: pulumi.Output[str]
    """UID of the object; empty in the preview of its creation."""
    node_labels: pulumi.Output[dict[str, str]]
    """The label of its nodes, to select them by."""

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("NodePool", name, args, opts)
        self.node_pool = self._object(ObjectType("karpenter.sh/v1", "NodePool"), args, NodePoolSpec, _spec)
        self.node_pool_name = self.node_pool.metadata["name"]
        self.uid = uid_of(self.node_pool)
        self.node_labels = self.node_pool_name.apply(lambda known: {NODEPOOL: known})
        self.register_outputs({"nodePoolName": self.node_pool_name, "uid": self.uid, "nodeLabels": self.node_labels})


def _spec(spec: NodePoolSpec) -> dict[str, Any]:
    return spec.manifest()
