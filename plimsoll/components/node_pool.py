"""NodePool: the nodes that Karpenter may launch."""

from typing import Any, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource

from plimsoll.components.declaration import checked, child_of, fields_of, metadata
from plimsoll.components.specs import NodePoolSpec


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


class NodePoolArgs(TypedDict, total=False):
    """The fields of plimsoll.model.node_pool_spec.NodePoolSpec, where they are explained."""

    name: pulumi.Input[str]
    """Name of the object; absent: that of the resource."""
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


class NodePool(pulumi.ComponentResource):
    """A NodePool (karpenter.sh/v1) that gives a new node the time to discover its GPUs.

    Raises InvalidObjectError where an argument does not fit, and for labels and annotations that change by themselves.
    """

    node_pool_name: pulumi.Output[str]

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("plimsoll:index:NodePool", name, {}, opts)
        pool = CustomResource(
            name,
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=metadata(args.get("name", name), skip_await=True),
            spec=checked(NodePoolSpec, "NodePool", name, fields_of(args, "name"), _spec),
            opts=child_of(self),
        )
        self.node_pool_name = pool.metadata["name"]
        self.register_outputs({"node_pool_name": self.node_pool_name})


def _spec(spec: NodePoolSpec) -> dict[str, Any]:
    return spec.manifest()
