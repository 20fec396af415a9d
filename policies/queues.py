"""Every workload with GPUs names a queue that exists and schedules."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from pulumi_policy import (
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from plimsoll.model.labels import QUEUE
from policies.resources import QUEUE_TYPE, WORKSPACE, object_name, pod_templates, section

_CONFIG: Final[dict[str, dict[str, Any]]] = {"queues": {"type": "array", "items": {"type": "string"}}}
"""Leaf queues of the cluster that other stacks declare."""


class Queues(NamedTuple):
    """Queues that a stack knows: `leaves` schedule, `parents` only divide."""

    leaves: frozenset[str]
    parents: frozenset[str]

    @classmethod
    def of(cls, resources: Iterable[PolicyResource], configured: Iterable[str]) -> "Queues":
        declared = {
            object_name(each.props, each.name): str(section(each.props, "spec").get("parentQueue") or "")
            for each in resources
            if each.resource_type == QUEUE_TYPE
        }
        parents = frozenset(declared.values()) - {""}
        return cls(frozenset(declared) - parents | frozenset(configured), parents)


def policies() -> list[Policy]:
    return [
        ResourceValidationPolicy(
            name="gpu-workload-names-queue",
            description="Every workload with GPUs names a queue.",
            validate=gpu_workload_names_queue,
        ),
        StackValidationPolicy(
            name="gpu-workload-queue-known",
            description="The queue of every workload with GPUs is a leaf that this stack, or the configuration, knows.",
            validate=queues_are_known,
            config_schema=PolicyConfigSchema(properties=_CONFIG),
        ),
    ]


def gpu_workload_names_queue(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
    for where, queue in _queues_wanted(args.resource_type, args.props):
        if not queue:
            report_violation(f"{_kind(args.resource_type)} {object_name(args.props, args.name)}: set {where}", args.urn)


def queues_are_known(args: StackValidationArgs, report_violation: ReportViolation) -> None:
    known = Queues.of(args.resources, args.get_config().get("queues") or ())
    for resource in args.resources:
        for where, queue in _queues_wanted(resource.resource_type, resource.props):
            problem = _problem(queue, known)
            if queue and problem:
                what = f"{_kind(resource.resource_type)} {object_name(resource.props, resource.name)}"
                report_violation(f"{what}: {where} is {queue!r}, {problem}", resource.urn)


def _problem(queue: str, known: Queues) -> str | None:
    if queue in known.leaves:
        return None
    leaves = f" (known: {', '.join(sorted(known.leaves))})" if known.leaves else ""
    if queue in known.parents:
        return f"which has child queues and schedules nothing itself: name a leaf{leaves}"
    return f"which nobody declares{leaves}: declare it, or list it in the policy's configuration 'queues'"


def _queues_wanted(resource_type: str, props: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The field and the queue of each workload with GPUs; an empty queue where none is named."""
    if resource_type == WORKSPACE:
        yield "spec.queue", str(section(props, "spec").get("queue") or "")
        return
    if not resource_type.startswith("kubernetes:"):
        return
    # KAI takes the label of the top owner, then the pod's.
    owner = str(section(props, "metadata", "labels").get(QUEUE) or "")
    for template in pod_templates(props):
        if template.wants_gpus:
            yield f"the label {QUEUE}", owner or template.queue


def _kind(resource_type: str) -> str:
    return resource_type.rpartition(":")[2]
