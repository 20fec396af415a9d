"""Rules on Kubeflow Trainer: TrainJobs have a queue, and fields of the early proposal are replaced."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from plimsoll.labels import GPU_RESOURCE, QUEUE
from plimsoll.model.meta import Finding, Severity, section
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, items, join, labels_of, name_of, namespace_of, text
from plimsoll.policy.pod_templates import pod_templates
from plimsoll.policy.rule import Family, Fault, Needs, NoOptions, Rule
from plimsoll.quantity import parse_devices

TRAINER: Final = "trainer.kubeflow.org"
RUNTIMES: Final = ("TrainingRuntime", "ClusterTrainingRuntime")
JOB_RULE: Final = "train-job-names-queue"

_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_SUPERSEDED: Final = "scheduling.kai.io/"


class Training(NamedTuple):
    """What a TrainJob requests, in its own spec and by its runtime."""

    nodes: int
    gpus: int
    """GPUs of each node."""
    queue: str


class Runtimes:
    """The training runtimes among some manifests, to which TrainJobs refer."""

    def __init__(self, manifests: Sequence[Manifest]) -> None:
        self._found = {(each["kind"], _namespace(each), name_of(each)): each for each in manifests if is_runtime(each)}

    def training(self, job: Manifest, resource: str = GPU_RESOURCE) -> Training:
        """What a TrainJob requests. The fields of its runtime count if the runtime is among the manifests."""
        spec = section(job, "spec")
        reference, trainer = section(spec, "runtimeRef"), section(spec, "trainer")
        kind = text(reference, "kind") or "ClusterTrainingRuntime"
        namespace = namespace_of(job) or "default" if kind == "TrainingRuntime" else ""
        runtime = self._found.get((kind, namespace, text(reference, "name")), {})
        nodes = trainer.get("numNodes", section(runtime, "spec", "mlPolicy").get("numNodes"))
        per_node = section(trainer, "resourcesPerNode")
        own = _devices(per_node, resource)
        templates = [each for each in pod_templates(runtime) if _trains(runtime, each.path)]
        gpus = own if own is not None else sum(_of_containers(each.spec, resource) for each in templates)
        overrides = [
            text(section(each, "metadata", "labels"), QUEUE) for _, each in items(spec, "podTemplateOverrides")
        ]
        named = [text(labels_of(job), QUEUE), *overrides, _kai_queue(runtime), *(each.queue for each in templates)]
        return Training(nodes if isinstance(nodes, int) else 1, gpus, next(filter(None, named), ""))


def is_runtime(manifest: Manifest) -> bool:
    return is_kind(manifest, TRAINER, *RUNTIMES)


def is_train_job(manifest: Manifest) -> bool:
    return is_kind(manifest, TRAINER, "TrainJob")


def _unnamed(manifests: Sequence[Manifest], context: PolicyContext, _: Any) -> Iterator[Finding]:
    if context.queues is None or not (context.queues.leaves or context.queues.parents):
        return
    runtimes = Runtimes(manifests)
    for job in filter(is_train_job, manifests):
        if not runtimes.training(job).queue:
            name, namespace = name_of(job), namespace_of(job)
            yield Finding(
                "TrainJob",
                namespace,
                name,
                join("metadata", "labels", QUEUE),
                JOB_RULE,
                Severity.ERROR,
                f"TrainJob {namespace}/{name} has no queue: set the label {QUEUE} of it to a leaf queue, or "
                "podGroupPolicy.kaiScheduler.queue of its runtime",
            )


def _superseded(manifest: Manifest, _context: PolicyContext, _options: Any) -> Iterator[Fault]:
    if not (is_train_job(manifest) or is_runtime(manifest) or is_kind(manifest, "jobset.x-k8s.io", "JobSet")):
        return
    policy = section(manifest, "spec", "podGroupPolicy", "kai")
    if policy:
        queue = text(policy, "queueName") or text(policy, "queue")
        yield Fault(
            "spec.podGroupPolicy.kai",
            f"podGroupPolicy.kai is of an early proposal, and Trainer has no such field: write "
            f"podGroupPolicy.kaiScheduler.queue: {queue or 'QUEUE'}",
        )
    for path, key, value in _keys(manifest, ""):
        if key.startswith(_SUPERSEDED):
            remedy = (
                f"set the label {QUEUE}: {value}"
                if key.endswith("/queue")
                else "remove it: KAI creates PodGroups itself"
            )
            yield Fault(path, f"KAI does not read {key}: {remedy}")


def _keys(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    """Every label and annotation, of the object and of all templates in it."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            here = join(path, str(name))
            if name in ("labels", "annotations") and isinstance(item, Mapping):
                yield from ((join(here, str(key)), str(key), each) for key, each in item.items())
            else:
                yield from _keys(item, here)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _keys(item, join(path, number))


def _namespace(runtime: Manifest) -> str:
    return namespace_of(runtime) or "default" if runtime["kind"] == "TrainingRuntime" else ""


def _kai_queue(runtime: Mapping[str, Any]) -> str:
    return text(section(runtime, "spec", "podGroupPolicy", "kaiScheduler"), "queue")


def _trains(runtime: Mapping[str, Any], path: str) -> bool:
    """Whether the pods at a path run the training itself, and not a step before it."""
    for number, job in items(section(runtime, "spec", "template", "spec"), "replicatedJobs"):
        if f"replicatedJobs[{number}]" in path:
            step = text(section(job, "template", "metadata", "labels"), _STEP)
            return step in ("", "trainer")
    return False


def _of_containers(spec: Mapping[str, Any], resource: str) -> int:
    return sum(_devices(section(container, "resources"), resource) or 0 for _, container in items(spec, "containers"))


def _devices(resources: Mapping[str, Any], resource: str) -> int | None:
    """Number of devices in the limits, otherwise in the requests; None if neither sets it."""
    for part in ("limits", "requests"):
        amount = section(resources, part).get(resource)
        try:
            if amount is not None:
                return parse_devices(amount)
        except (ValueError, ArithmeticError):
            return None
    return None


RULES: Final = (
    Rule(
        JOB_RULE,
        Family.QUEUES,
        "A TrainJob has a queue, itself or by its runtime, if queues are declared.",
        f"Set the label {QUEUE} of the TrainJob, or podGroupPolicy.kaiScheduler.queue of its runtime.",
        ("TrainJob", *RUNTIMES),
        check_all=_unnamed,
        needs=Needs.ENVIRONMENT,
    ),
    Rule(
        "superseded-queue-field",
        Family.QUEUES,
        "TrainJobs, JobSets and runtimes name their queue by fields that KAI and Trainer read.",
        f"Replace podGroupPolicy.kai and scheduling.kai.io/* by the label {QUEUE} or podGroupPolicy.kaiScheduler.",
        ("TrainJob", "JobSet", *RUNTIMES),
        _superseded,
        options=NoOptions,
        loop=False,
    ),
)
