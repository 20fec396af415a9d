"""Checks of Queues, and of objects that name queues, before anything is applied. Files, stacks and the controller use
the same rules.

KAI's admission checks little: it accepts a cycle, a limit below the quota and the deletion of a queue in use, and then
work never starts.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from plimsoll.cluster.queues.amount import MILLI, UNITS, Resource
from plimsoll.cluster.queues.fields import faults
from plimsoll.cluster.queues.tree import QueueTree
from plimsoll.cluster.queues.users import KAI, QueueUse, queue_uses
from plimsoll.errors import InvalidObjectError
from plimsoll.model.kai import NODE_POOL_LABEL, NodePoolLabel, Queue
from plimsoll.model.meta import Finding, Severity, identify, in_order, section
from plimsoll.text import shortlist


def check_queues(
    manifests: Iterable[Mapping[str, Any]],
    known: Collection[str] = (),
    deleted: Collection[str] = (),
    label: NodePoolLabel = NODE_POOL_LABEL,
) -> tuple[Finding, ...]:
    """Findings on the Queues among the manifests, and on the objects that name queues.

    `known` are leaf queues that are declared elsewhere; `deleted` are queues to treat as being deleted, like those with
    a deletionTimestamp. Raises InvalidObjectError if an object has no name, or fields of wrong types.
    """
    manifests = list(manifests)
    for manifest in manifests:
        require_object(manifest)
    queues = [_queue(manifest) for manifest in manifests if is_queue(manifest)]
    users = [
        (manifest, use)
        for manifest in manifests
        if not is_queue(manifest) and not _metadata(manifest).get("deletionTimestamp")
        for use in queue_uses(manifest, label)
    ]
    tree = QueueTree(queues, label)
    findings = [*_twice(queues), *_cycles(tree), *_missing_parents(tree, known), *_quotas(tree)]
    for queue in queues:
        findings += (
            _finding(queue.name, fault.field, fault.rule, fault.message, fault.severity) for fault in faults(queue.spec)
        )
    going = {queue.name for queue in queues if queue.deleting} | set(deleted)
    findings += _deletions(tree, going, users)
    findings += _bad_users(tree, known, users)
    findings += _without_nodes(tree, manifests)
    return in_order(findings)


def is_queue(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("kind") == "Queue" and str(manifest.get("apiVersion") or "").startswith(f"{KAI}/")


def use_problem(
    queue: str, tree: QueueTree, known: Collection[str], node_pool: str | None = None
) -> tuple[str, str] | None:
    """The rule that using this queue breaks, with a message; None if it may be used."""
    if queue in known:
        return None
    if queue in tree and node_pool is not None and node_pool != (own := tree.shard_of(queue)):
        labels = [tree.label.shown(pool) for pool in (own, node_pool)]
        return (
            "queue-other-node-pool",
            f"names Queue {queue}, which has {labels[0]}, and its pods {labels[1]}: no scheduler of KAI sees both; "
            "give both the same label",
        )
    if queue not in tree:
        leaves = sorted({name for name in tree if tree.is_leaf(name)} | set(known))
        named = f" (known: {shortlist(leaves)})" if leaves else ""
        return "queue-unknown", f"names Queue {queue}, which is not declared{named}: declare it, or use another"
    if not tree.is_leaf(queue):
        return (
            "queue-not-leaf",
            f"names Queue {queue}, which has child queues ({shortlist(tree.children[queue])}) and schedules nothing "
            "itself: use a leaf queue",
        )
    return None


def _twice(queues: Iterable[Queue]) -> Iterator[Finding]:
    seen: set[str] = set()
    for queue in queues:
        if queue.name in seen:
            yield _finding(
                queue.name, "metadata.name", "queue-duplicate",
                "is declared more than once, and the last one applied would win: keep one",
            )  # fmt: skip
        seen.add(queue.name)


def _cycles(tree: QueueTree) -> Iterator[Finding]:
    for cycle in tree.cycles:
        path = " -> ".join((*cycle, cycle[0]))
        yield _finding(
            cycle[0], "spec.parentQueue", "queue-cycle",
            f"its parents form a cycle, {path}, and none of these queues schedules: remove the parent of one of them",
        )  # fmt: skip


def _missing_parents(tree: QueueTree, known: Collection[str]) -> Iterator[Finding]:
    for name in tree:
        parent = tree.queue(name).parent
        if parent in tree and tree.shard_of(parent) != tree.shard_of(name):
            yield _finding(
                name, "spec.parentQueue", "queue-parent-other-node-pool",
                f"has another label {tree.label.key} than its parent, Queue {parent}, and no scheduler of KAI sees "
                "both: give both the same one",
            )  # fmt: skip
        if not parent or parent in tree or parent in known:
            continue
        below = tree.children.get(name, ())
        also = f" with its children ({shortlist(below)})" if below else ""
        yield _finding(
            name, "spec.parentQueue", "queue-parent-missing",
            f"its parent, Queue {parent}, is not declared: KAI ignores the queue{also}; declare it or use another",
        )  # fmt: skip


def _without_nodes(tree: QueueTree, manifests: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """Queues of a node pool of KAI of which no NodePool has the label, where there are NodePools."""
    templates = [
        section(each, "spec", "template", "metadata", "labels")
        for each in manifests
        if each["kind"] == "NodePool" and str(each["apiVersion"]).startswith("karpenter.sh/")
    ]
    offered = {str(labels.get(tree.label.key) or "") for labels in templates}
    for name in tree if templates else ():
        if tree.is_leaf(name) and tree.shard_of(name) not in offered:
            wanted = tree.shard_of(name)
            lacking = f"has {tree.label.shown(wanted)}, and {'no' if wanted else 'each'} NodePool"
            yield _finding(
                name, "metadata.labels", "queue-without-node-pool",
                f"{lacking} has it in the labels of its template: its pods get no new nodes; set it in a NodePool",
                Severity.WARNING,
            )  # fmt: skip


def _quotas(tree: QueueTree) -> Iterator[Finding]:
    """Quotas of children that exceed the quota of their parent."""
    for parent, children in sorted(tree.children.items()):
        if parent not in tree:
            continue
        for resource in Resource:
            given = tree.amounts(parent, resource).quota
            quotas = {child: tree.amounts(child, resource).quota for child in children}
            limited = [quota for quota in quotas.values() if quota is not None]
            wanted = sum(limited) if len(limited) == len(quotas) else None
            if given is None or (wanted is not None and wanted <= given):
                continue
            shares = shortlist([f"{name}: {_shown(quota)}" for name, quota in quotas.items() if quota != 0])
            yield _finding(
                parent, f"spec.resources.{resource}.quota", "queue-children-over-quota",
                f"its {resource} quota is {_shown(given)} {UNITS[resource]}, and its children's are {_shown(wanted)} "
                f"together ({shares}): raise it or lower theirs",
            )  # fmt: skip


def _deletions(
    tree: QueueTree, going: Collection[str], users: Collection[tuple[Mapping[str, Any], QueueUse]]
) -> Iterator[Finding]:
    for name in sorted(going):
        if name not in tree:
            continue
        children = [child for child in tree.children.get(name, ()) if child not in going]
        if children:
            yield _finding(
                name, "metadata.deletionTimestamp", "queue-deleted-with-children",
                f"is to be deleted and is the parent of {shortlist(children)}: KAI would drop them; delete or move "
                "them first",
            )  # fmt: skip
        work = sorted({_title(manifest) for manifest, use in users if use.queue == name and _is_work(manifest, use)})
        if work:
            yield _finding(
                name, "metadata.deletionTimestamp", "queue-deleted-with-podgroups",
                f"is to be deleted while work uses it ({shortlist(work)}): let it end or move it first",
            )  # fmt: skip


def _is_work(manifest: Mapping[str, Any], use: QueueUse) -> bool:
    """Whether it is the PodGroup, or a pod that has not ended: KAI's podgrouper may not have made its PodGroup yet."""
    if manifest.get("kind") == "PodGroup":
        return use.field == "spec.queue"
    return manifest.get("kind") == "Pod" and section(manifest, "status").get("phase") not in ("Succeeded", "Failed")


def _title(manifest: Mapping[str, Any]) -> str:
    metadata = _metadata(manifest)
    return f"{manifest['kind']} {metadata.get('namespace') or 'default'}/{_name(metadata)}"


def _bad_users(
    tree: QueueTree, known: Collection[str], users: Iterable[tuple[Mapping[str, Any], QueueUse]]
) -> Iterator[Finding]:
    for manifest, use in users:
        problem = use_problem(use.queue, tree, known, use.node_pool)
        if problem is None:
            continue
        rule, message = problem
        metadata = _metadata(manifest)
        yield Finding(
            kind=str(manifest["kind"]),
            namespace=str(metadata.get("namespace") or ""),
            name=str(_name(metadata)),
            field=use.field,
            rule=rule,
            severity=Severity.ERROR,
            message=f"{identify(manifest)} {message}",
        )


def _finding(name: str, field: str, rule: str, message: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("Queue", "", name, field, rule, severity, f"Queue {name}: {message}")


def require_object(manifest: Mapping[str, Any]) -> None:
    """Raises InvalidObjectError if a manifest lacks fields of a Kubernetes object that the checks read."""
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str) or not manifest[field]:
            raise InvalidObjectError(
                f"{identify(manifest)}: {field}: missing or not a string", "it is not a Kubernetes object"
            )
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InvalidObjectError(f"{identify(manifest)}: metadata: must be an object with a name")
    if not isinstance(_name(metadata), str) or not _name(metadata):
        raise InvalidObjectError(f"{identify(manifest)}: metadata.name: missing or not a string", "name the object")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field), Mapping | None):
            raise InvalidObjectError(f"{identify(manifest)}: metadata.{field}: must be an object")
    if is_queue(manifest) and not isinstance(manifest.get("spec", {}), Mapping | None):
        raise InvalidObjectError(f"{identify(manifest)}: spec: must be an object")


def _name(metadata: Mapping[str, Any]) -> Any:
    return metadata.get("name") or metadata.get("generateName")


def _queue(manifest: Mapping[str, Any]) -> Queue:
    """A Queue with the fields that the checks read, without validation."""
    metadata = _metadata(manifest)
    return Queue.model_construct(
        name=metadata["name"],
        labels={str(key): str(value) for key, value in section(metadata, "labels").items()},
        deletion_timestamp=metadata.get("deletionTimestamp"),
        spec=manifest.get("spec") or {},
    )


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = manifest["metadata"]
    return metadata


def _shown(thousandths: int | None) -> str:
    return "unlimited" if thousandths is None else f"{float(thousandths) / MILLI:g}"
