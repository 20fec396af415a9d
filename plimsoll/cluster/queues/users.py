"""Objects that name a queue: by the label on an object or a pod template, or by a field."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.cluster.queues.tree import section
from plimsoll.labels import GROUP, QUEUE

KAI: Final = "scheduling.run.ai"
"""API group of KAI's Queue and PodGroup."""


class QueueUse(NamedTuple):
    """A field of an object that names a queue."""

    field: str
    queue: str


def queue_uses(manifest: Mapping[str, Any]) -> Iterator[QueueUse]:
    """Every place of a manifest that names a queue, at any depth: labels of the object and of its templates,
    `spec.queue` of a PodGroup or Workspace, `kaiScheduler.queue` of a TrainingRuntime."""
    group = str(manifest.get("apiVersion") or "").partition("/")[0]
    if (group, manifest.get("kind")) in ((KAI, "PodGroup"), (GROUP, "Workspace")):
        named = str(section(manifest, "spec").get("queue") or "")
        if named:
            yield QueueUse("spec.queue", named)
    yield from _uses(manifest, "")


def _uses(value: Any, path: str) -> Iterator[QueueUse]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _uses(item, f"{path}[{number}]")
        return
    if not isinstance(value, Mapping):
        return
    for name, item in value.items():
        here = f"{path}.{name}".lstrip(".")
        if name == "metadata":
            named = str(section(item, "labels").get(QUEUE) or "")
            if named:
                yield QueueUse(f"{here}.labels[{QUEUE}]", named)
        elif name == "kaiScheduler":
            named = str(section(value, name).get("queue") or "")
            if named:
                yield QueueUse(f"{here}.queue", named)
        else:
            yield from _uses(item, here)
