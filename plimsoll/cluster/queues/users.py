"""Objects that name a queue: by the label on an object or a pod template, or by a field."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from plimsoll.labels import GROUP, QUEUE
from plimsoll.model.kai import NODE_POOL_LABEL, NodePoolLabel
from plimsoll.model.meta import section

KAI: Final = "scheduling.run.ai"
"""API group of KAI's Queue and PodGroup."""


class QueueUse(NamedTuple):
    """A field of an object that names a queue."""

    field: str
    queue: str
    node_pool: str | None = None
    """KAI's node pool of the pods, empty for that of the scheduler without a shard; None: it is said elsewhere."""


def queue_uses(manifest: Mapping[str, Any], label: NodePoolLabel = NODE_POOL_LABEL) -> Iterator[QueueUse]:
    """Every place of a manifest that names a queue, at any depth: labels of the object and of its templates,
    `spec.queue` of a PodGroup or Workspace, `kaiScheduler.queue` of a TrainingRuntime."""
    group = str(manifest.get("apiVersion") or "").partition("/")[0]
    kind, own = manifest.get("kind"), str(section(manifest, "metadata", "labels").get(label.key) or "")
    if (group, kind) in ((KAI, "PodGroup"), (GROUP, "Workspace")):
        named = str(section(manifest, "spec").get("queue") or "")
        if named:
            yield QueueUse("spec.queue", named, own if kind == "PodGroup" else _of_workspace(manifest, label))
    yield from _uses(manifest, "", own, label, of_pod=kind in ("Pod", "PodGroup"))


def _of_workspace(manifest: Mapping[str, Any], label: NodePoolLabel) -> str | None:
    """The node pool of a Workspace's pods: by the labels of its template, or of its preset's pods, which those of the
    Environment may complete."""
    inference = section(manifest, "spec", "inference")
    if inference.get("template"):
        return str(section(inference, "template", "metadata", "labels").get(label.key) or "")
    given = section(inference, "pods", "labels").get(label.key)
    return None if given is None else str(given)


def _uses(value: Any, path: str, own: str, label: NodePoolLabel, *, of_pod: bool = True) -> Iterator[QueueUse]:
    """`own` is the node pool by the label of the whole object, which KAI takes before that of a pod; `of_pod`: whether
    the metadata of this object is that of pods."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _uses(item, f"{path}[{number}]", own, label)
        return
    if not isinstance(value, Mapping):
        return
    for name, item in value.items():
        here = f"{path}.{name}".lstrip(".")
        if name == "metadata":
            labels = section(item, "labels")
            named = str(labels.get(QUEUE) or "")
            node_pool = own or (str(labels.get(label.key) or "") if of_pod else None)
            if named:
                yield QueueUse(f"{here}.labels[{QUEUE}]", named, node_pool)
        elif name == "kaiScheduler":
            named = str(section(value, name).get("queue") or "")
            if named:
                yield QueueUse(f"{here}.queue", named)
        else:
            yield from _uses(item, here, own, label)
