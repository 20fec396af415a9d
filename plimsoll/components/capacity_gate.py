"""CapacityGate: a scheduling gate on pods with GPU shares or claims, until their GPUs are allocatable."""

from collections.abc import Sequence
from typing import Any, Final

import pulumi

from plimsoll.components.access import NAMESPACE
from plimsoll.components.admission import SHARED, MutationPolicy, declare_mutation, sample_pod
from plimsoll.components.args import CapacityGateArgs
from plimsoll.components.declaring import Component, fields_of, known, valid
from plimsoll.labels import DEVICE_CLASS_PREFIX, GPU_RESOURCE, NAMESPACE_NAME, QUEUE
from plimsoll.model.api import CAPACITY_GATE, KAI_NAMESPACES, CapacityGateSpec
from plimsoll.model.cluster import VENDOR_RESOURCES
from plimsoll.policy import text, texts

GATE_NAME: Final = "plimsoll-capacity-gate"
"""Prefix of the policies' names."""

_SCHEDULER: Final = "kai-scheduler"
"""Scheduler of the sample pods, with which they break no policy rule on queues."""
_LIMITS: Final = (
    "(object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : []))"
    ".exists(c, has(c.resources) && has(c.resources.limits) && "
)
"""CEL expression, to be continued: about the limits of any container."""
_WHOLE: Final = f"{_LIMITS}{texts((GPU_RESOURCE, *VENDOR_RESOURCES))}.exists(name, name in c.resources.limits))"
"""CEL expression: the pod requests whole GPUs."""
_CLAIMS: Final = (
    "(has(object.spec.resourceClaims) && size(object.spec.resourceClaims) > 0)"
    f" || {_LIMITS}c.resources.limits.exists(name, name.startsWith({text(DEVICE_CLASS_PREFIX)})))"
)
"""CEL expression: the pod claims devices, or the scheduler claims them for it."""
_GATE: Final = (
    f'Object{{spec: Object.spec{{schedulingGates: [Object.spec.schedulingGates{{name: "{CAPACITY_GATE}"}}]}}}}'
)


def gate_policies(spec: CapacityGateSpec) -> dict[str, MutationPolicy]:
    """By name: one policy for the namespaces and one for the queues, if any are given."""
    made: dict[str, MutationPolicy] = {}
    if spec.namespaces:
        made[f"{GATE_NAME}-namespaces"] = _policy(
            f"{GATE_NAME}-namespaces",
            spec,
            [],
            "In",
            spec.namespaces,
            tuple(sample_pod(each, _SCHEDULER, {}) for each in spec.namespaces),
        )
    if spec.queues:
        label = f"object.metadata.labels['{QUEUE}']"
        named = ", ".join(f"'{queue}'" for queue in spec.queues)
        condition = f"has(object.metadata.labels) && '{QUEUE}' in object.metadata.labels && {label} in [{named}]"
        own = ("kube-system", NAMESPACE, *KAI_NAMESPACES)
        made[f"{GATE_NAME}-queues"] = _policy(
            f"{GATE_NAME}-queues",
            spec,
            [("queue", condition)],
            "NotIn",
            own,
            tuple(sample_pod("default", _SCHEDULER, {QUEUE: each}) for each in spec.queues),
        )
    return made


class CapacityGate(Component):
    """MutatingAdmissionPolicies (Kubernetes 1.36) that add the gate. The controller removes it. Without a
    running controller, gated pods stay pending. Raises InvalidArgumentError if an argument is invalid."""

    policy_names: pulumi.Output[list[str]]
    """Names of the MutatingAdmissionPolicies."""

    def __init__(self, name: str, args: CapacityGateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("CapacityGate", name, args, opts)
        known("CapacityGate", name, args, *CapacityGateArgs.__annotations__)
        spec = valid(CapacityGateSpec, "CapacityGate", name, fields_of(args))
        self.mutations = [declare_mutation(each, made, self) for each, made in gate_policies(spec).items()]
        self.policy_names = pulumi.Output.all(*(each.binding.spec["policy_name"] for each in self.mutations))
        self.register_outputs({"policyNames": self.policy_names})


def _policy(  # noqa: PLR0917
    name: str,
    spec: CapacityGateSpec,
    conditions: list[tuple[str, str]],
    operator: str,
    namespaces: Sequence[str],
    samples: tuple[dict[str, Any], ...],
) -> MutationPolicy:
    # A pod that sets nodeName is not scheduled, and a scheduling gate would make it invalid.
    conditions = [
        ("share", " || ".join((f"({SHARED})", _CLAIMS, *((_WHOLE,) if spec.whole_gpus else ())))),
        ("unbound", "!has(object.spec.nodeName) || object.spec.nodeName == ''"),
        *conditions,
    ]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    selector = {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": operator, "values": list(namespaces)}]}
    return MutationPolicy(
        policy={
            # If an expression fails, the pod is created without the gate, and is pending like any other pod.
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": each, "expression": expression} for each, expression in conditions],
            "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": _GATE}}],
        },
        binding={"policyName": name, "matchResources": {"namespaceSelector": selector}},
        samples=samples,
        adds=CAPACITY_GATE,
    )
