"""Changes of pods that wait: of what they request, of where they may run, and of their gang and queue."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from plimsoll.cluster.catalog import Catalog
from plimsoll.cluster.pods import may_be_accelerator
from plimsoll.cluster.pools import PoolProfiles
from plimsoll.cluster.queues import QueueTree, node_pool_of
from plimsoll.explaining.change import Change, Touches, with_changed
from plimsoll.explaining.claim_changes import claim_changes
from plimsoll.explaining.cluster_changes import (
    MOST,
    limit_changes,
    policy_changes,
    queue_changes,
    setting,
    type_changes,
)
from plimsoll.explaining.planned_demand import PlannedDemand
from plimsoll.labels import GPU_PRODUCT, QUEUE
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandProvisioner
from plimsoll.model.cluster import Pod
from plimsoll.model.kai import (
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_SHARE,
    POD_GROUP_NAME,
    PodGroup,
    SchedulingShard,
    is_share_annotation,
)
from plimsoll.model.meta import Placement, Taint, Toleration
from plimsoll.plan.classes import RefusalReason, uid_of
from plimsoll.plan.demand import Demand
from plimsoll.text import counted, nearest

_PREEMPTIBLE: Final = 50
"""The priority of KAI's class `train`."""
_VALUES: Final = 12
"""Values of one label that are tried."""
_NO: Final = "(none)"
_OF_NODES: Final = frozenset(
    {RefusalReason.TOO_LARGE, RefusalReason.CLAIM, RefusalReason.NO_NODE, RefusalReason.BLOCKED, RefusalReason.SURPLUS,
     RefusalReason.GANG, RefusalReason.LIMIT, RefusalReason.NOT_ALLOWED}
)  # fmt: skip
"""Reasons that other nodes, or other demands on nodes, may mend."""


def pod_changes(planned: PlannedDemand, uid: str) -> Iterator[Change]:
    """What may help a pod that waits, and those of its class and namespace, which are of one template."""
    snapshot, demand = planned.snapshot, planned.by_pod[uid]
    pod = next(each for each in snapshot.pods if uid_of(each) == uid)
    alike = _Alike(snapshot, pod, demand)
    why = demand.refused.get(uid) or demand.kept_out.get(uid)
    settings = snapshot.environment.spec.demand
    if settings.provisioner is DemandProvisioner.NONE:
        # Of refused pods, beside what else they need. First: few changes are tried in pairs.
        yield _provisioner(snapshot, [DemandProvisioner.TRIGGER_POD.value])
    if why is None:
        yield from policy_changes(snapshot, planned.withheld_of(demand), planned.now)
        return
    yield from _of_request(snapshot, why.reason, alike)
    if why.reason in (RefusalReason.QUEUE, RefusalReason.GANG):
        yield from _of_queue(snapshot, demand, alike)
    if why.reason is RefusalReason.NOT_ALLOWED:
        yield from _of_access(snapshot, demand, alike)
    if why.reason in (RefusalReason.NOT_ALLOWED, RefusalReason.LIMIT, RefusalReason.GANG):
        yield from limit_changes(snapshot, pod.namespace)
    if why.reason in _OF_NODES:
        yield from _of_place(snapshot, alike)
        yield from _less(alike)
        yield from type_changes(snapshot)
    if why.reason is RefusalReason.LIMIT:
        most = settings.classes_per_namespace
        larger = range(most + 1, min(most + MOST, 10_000) + 1)
        yield setting(snapshot, "demand.classes_per_namespace", larger, "demand.classesPerNamespace", most)
    if why.reason is RefusalReason.SURPLUS:
        more = range(settings.surplus_gpus + 1, 1025)
        yield setting(snapshot, "demand.surplus_gpus", more, "demand.surplusGpus", settings.surplus_gpus)


def _provisioner(snapshot: Snapshot, ways: Sequence[str]) -> Change:
    change = setting(snapshot, "demand.provisioner", [DemandProvisioner(each) for each in ways], "demand.provisioner",
                     DemandProvisioner.NONE.value)  # fmt: skip
    return replace(change, shown=lambda value: str(value.value))


class _Alike:
    """The pod, and the others of its class, namespace and PodGroup: a change of their template changes all."""

    def __init__(self, snapshot: Snapshot, pod: Pod, demand: Demand) -> None:
        group = pod.annotations.get(POD_GROUP_NAME, "")
        members = {*demand.pods, *demand.refused, *demand.kept_out}
        self.pod, self.demand = pod, demand
        self.group = next((each for each in snapshot.pod_groups if group and each.key == (pod.namespace, group)), None)
        self.node_pool = node_pool_of(pod, snapshot.environment.spec.node_pool_label, self.group)
        self.uids = frozenset(
            uid_of(each)
            for each in snapshot.pods
            if uid_of(each) in members
            and each.namespace == pod.namespace
            and each.extended_resources == pod.extended_resources
            and each.resource_claims == pod.resource_claims
            and each.annotations.get(POD_GROUP_NAME, "") == group
        )
        more = len(self.uids) - 1
        self.name = f"Pod {pod.namespace}/{pod.name}" + (f" and {counted(more, 'other')} like it" if more > 0 else "")

    def change(
        self,
        field: str,
        before: str,
        values: Sequence[Any],
        update: Callable[[Pod, Any], dict[str, Any]],
        shown: Callable[[Any], str] = str,
    ) -> Change:
        """`update` has the fields of a pod with the value."""
        return Change(self.name, field, before, values, partial(self._put, update), Touches.WORKLOAD, shown)

    def label(self, key: str, before: str, values: Sequence[str]) -> Change:
        """Another value of a label of the pods, or none. KAI gives it to their PodGroup when it creates that, and never
        changes the queue of one."""
        change = self.change(
            f"metadata.labels[{key}]", before, values, partial(_labelled, key), lambda value: value or _NO
        )
        if self.group is None:
            return change
        return replace(change, obj=f"{self.name}, with a new PodGroup", put=partial(self._grouped, change, key))

    def _grouped(self, change: Change, key: str, snapshot: Snapshot, value: str) -> Snapshot:
        groups = tuple(
            each.model_copy(update={"queue": value} if key == QUEUE else _labelled(key, each, value))
            if self.group is not None and each.key == self.group.key
            else each
            for each in snapshot.pod_groups
        )
        return change.put(snapshot.model_copy(update={"pod_groups": groups}), value)

    def _put(self, update: Callable[[Pod, Any], dict[str, Any]], snapshot: Snapshot, value: Any) -> Snapshot:
        pods = tuple(
            each.model_copy(update=update(each, value)) if uid_of(each) in self.uids else each for each in snapshot.pods
        )
        return snapshot.model_copy(update={"pods": pods})


def _of_queue(snapshot: Snapshot, demand: Demand, alike: _Alike) -> Iterator[Change]:
    queue, pod = demand.demand_class.queue, alike.pod
    yield from queue_changes(snapshot, queue)
    tree = QueueTree.of(snapshot)
    if queue in tree and tree.shard_of(queue) != alike.node_pool:
        yield alike.label(tree.label.key, alike.node_pool, [tree.shard_of(queue)])
    yield from _other_queues(tree, queue, alike)
    if pod.priority >= 100:
        yield alike.change("priority", str(pod.priority), [_PREEMPTIBLE],
                           lambda _, value: {"priority": value, "priority_class": ""})  # fmt: skip


def _other_queues(tree: QueueTree, queue: str, alike: _Alike) -> Iterator[Change]:
    for name in tree:
        if name != queue and tree.is_leaf(name) and not tree.broken_at(name):
            yield replace(alike.label(QUEUE, queue, [name]), names_others=True)


def _of_access(snapshot: Snapshot, demand: Demand, alike: _Alike) -> Iterator[Change]:
    yield from _of_shard(snapshot, demand, alike)
    without_queue = snapshot.environment.spec.demand.without_queue
    yield setting(snapshot, "demand.without_queue", ["allow"], "demand.withoutQueue", without_queue)
    yield alike.change("spec.schedulerName", alike.pod.scheduler_name, [snapshot.environment.spec.queue_scheduler],
                       lambda _, value: {"scheduler_name": value})  # fmt: skip
    if not demand.demand_class.queue:
        yield from _other_queues(QueueTree.of(snapshot), "", alike)


def _of_shard(snapshot: Snapshot, demand: Demand, alike: _Alike) -> Iterator[Change]:
    """Where no scheduler serves its node pool of KAI: another one, with a queue of that, or a scheduler."""
    key, pools = snapshot.environment.spec.node_pool_label_key, {each.node_pool for each in snapshot.scheduling_shards}
    if not key or not pools or alike.node_pool in pools:
        return
    # The scheduler first: few changes are tried in pairs.
    yield Change("SchedulingShard (new)", "spec.partitionLabelValue", "", [alike.node_pool], _with_shard,
                 Touches.CLUSTER, lambda value: value or _NO)  # fmt: skip
    for pool in sorted(pools):
        yield alike.label(key, alike.node_pool, [pool])
    yield from _other_queues(QueueTree.of(snapshot), demand.demand_class.queue, alike)


def _with_shard(snapshot: Snapshot, node_pool: str) -> Snapshot:
    metadata, spec = {"name": node_pool or "default"}, {"partitionLabelValue": node_pool}
    shard = SchedulingShard.read({"metadata": metadata, "spec": spec})
    return snapshot.model_copy(update={"scheduling_shards": (*snapshot.scheduling_shards, shard)})


def _labelled(key: str, obj: Pod | PodGroup, value: str) -> dict[str, Any]:
    labels = {name: each for name, each in obj.labels.items() if name != key}
    return {"labels": labels | ({key: value} if value else {})}


def _of_place(snapshot: Snapshot, alike: _Alike) -> Iterator[Change]:
    """Tolerations of the taints of nodes that there are or may be, and other values of the labels that it selects."""
    placement = alike.pod.placement
    profiles = PoolProfiles(snapshot).every
    tainted = [*(each.taints for each in profiles), *(node.taints for node in snapshot.nodes)]
    taints = {tuple(placement.untolerated_taints(each)) for each in tainted} - {()}
    for missing in sorted(taints, key=str):
        more = tuple(Toleration(key=each.key, value=each.value, effect=each.effect) for each in missing)
        yield alike.change("spec.tolerations", "", [more], _tolerating, partial(_shown_taints, missing))
    offered = [*(each.labels for each in profiles), *(node.labels for node in snapshot.nodes)]
    for key, value in placement.node_selector:
        found = {labels[key] for labels in offered if key in labels} - {value}
        if key == GPU_PRODUCT and not found:
            found = {each.product for each in Catalog.of(snapshot).types} - {value}
        near = [*nearest(value, sorted(found)), *sorted(found)]
        for other in list(dict.fromkeys(near))[:_VALUES]:
            yield alike.change(f"spec.nodeSelector[{key}]", value, [other], partial(_selecting, key))
        yield alike.change(f"spec.nodeSelector[{key}]", value, [""], partial(_selecting, key))
    for key in sorted({each.key for term in placement.affinity for each in term if not each.field}):
        before = " or ".join(str(each) for term in placement.affinity for each in term if each.key == key)
        yield alike.change(f"spec.affinity.nodeAffinity[{key}]", before, [""], partial(_unbound, key))
    if alike.pod.rules:
        before = "; ".join(map(str, alike.pod.rules))
        yield alike.change("spec: rules about other pods", before, [""], lambda _, __: {"rules": ()})
    yield from _of_group(snapshot, alike)


def _shown_taints(taints: Iterable[Taint], _: Any) -> str:
    return "also " + ", ".join(map(str, taints))


def _tolerating(pod: Pod, more: tuple[Toleration, ...]) -> dict[str, Any]:
    tolerations = tuple(sorted((*pod.placement.tolerations, *more), key=repr))
    return {"placement": replace(pod.placement, tolerations=tolerations)}


def _selecting(key: str, pod: Pod, value: str) -> dict[str, Any]:
    selector = {**dict(pod.placement.node_selector), key: value}
    kept = tuple(sorted((name, each) for name, each in selector.items() if name != key or value))
    return {"placement": replace(pod.placement, node_selector=kept)}


def _unbound(key: str, pod: Pod, _: str) -> dict[str, Any]:
    terms = [tuple(each for each in term if each.key != key) for term in pod.placement.affinity]
    placement: Placement = replace(pod.placement, affinity=tuple(terms) if all(terms) else ())
    return {"placement": placement}


def _of_group(snapshot: Snapshot, alike: _Alike) -> Iterator[Change]:
    """Fewer pods of its gang that start together."""
    name = alike.pod.annotations.get(POD_GROUP_NAME, "")
    group = next((each for each in snapshot.pod_groups if each.key == (alike.pod.namespace, name)), None)
    least = group.own_min_member if group is not None else None
    if group is not None and least is not None and least > 1:
        yield Change(
            f"PodGroup {group.namespace}/{group.name}", "spec.minMember", str(least), range(least - 1, 0, -1),
            partial(_with_least, group), Touches.WORKLOAD,
        )  # fmt: skip


def _with_least(group: PodGroup, snapshot: Snapshot, value: int) -> Snapshot:
    return with_changed(snapshot, "pod_groups", group, lambda each: each.model_copy(update={"own_min_member": value}))


def _less(alike: _Alike) -> Iterator[Change]:
    """Less of what it requests: memory of a GPU, GPUs of one node, CPU and memory of the host."""
    pod = alike.pod
    for name, step in ((GPU_MEMORY_SHARE, 100), (GPU_FRACTION_DEVICES, 1)):
        asked = pod.annotations.get(name, "")
        if asked.isdecimal() and 0 < int(asked) < 10**7:
            smaller = range(int(asked) - step, 0, -step)
            yield alike.change(f"metadata.annotations[{name}]", asked, smaller, partial(_annotated, name))
    cpu, memory = pod.host.cpu_milli, pod.host.memory_bytes
    if cpu:
        yield alike.change("CPU requests", f"{cpu}m", range(max(0, cpu - 100), -1, -100),
                           lambda each, value: {"host": replace(each.host, cpu_milli=value)},
                           lambda value: f"{value}m")  # fmt: skip
    if memory:
        gib = memory // 2**30
        yield alike.change("memory requests", f"{memory / 2**30:g}Gi", range(max(0, gib - 1), -1, -1),
                           lambda each, value: {"host": replace(each.host, memory_bytes=value * 2**30)},
                           lambda value: f"{value}Gi")  # fmt: skip


def _of_request(snapshot: Snapshot, reason: RefusalReason, alike: _Alike) -> Iterator[Change]:
    if reason is RefusalReason.UNREADABLE:
        yield from _one_of_two(alike)
    if reason is RefusalReason.CLAIM:
        yield from claim_changes(snapshot, alike.pod, alike.change)


def _one_of_two(alike: _Alike) -> Iterator[Change]:
    """Of what it requests in several forms, or of several vendors, one less."""
    pod = alike.pod
    annotations = [name for name in pod.annotations if is_share_annotation(name)]
    resources = [name for name in pod.extended_resources if may_be_accelerator(name)]
    if len(annotations) + len(resources) < 2:
        return
    for name in annotations:
        yield alike.change(f"metadata.annotations[{name}]", pod.annotations[name], [""], partial(_unannotated, name))
    for name in resources:
        amount = str(pod.other_requests.get(name, ""))
        yield alike.change(f"resources[{name}]", amount, [""], partial(_without_resource, name))


def _unannotated(name: str, pod: Pod, _: str) -> dict[str, Any]:
    return {"annotations": {key: value for key, value in pod.annotations.items() if key != name}}


def _without_resource(name: str, pod: Pod, _: str) -> dict[str, Any]:
    def without(container: dict[str, Any]) -> dict[str, Any]:
        parts = container.get("resources") or {}
        kept = {
            part: {key: value for key, value in amounts.items() if key != name}
            if isinstance(amounts, dict)
            else amounts
            for part, amounts in parts.items()
        }
        return {**container, "resources": kept}

    return {
        "containers": tuple(map(without, pod.containers)),
        "init_containers": tuple(map(without, pod.init_containers)),
        # It is kept with the pod once it was asked for.
        "other_requests": {key: amount for key, amount in pod.other_requests.items() if key != name},
    }


def _annotated(name: str, pod: Pod, value: int) -> dict[str, Any]:
    return {"annotations": {**pod.annotations, name: str(value)}}
