"""Checks of Queues, and of what names them, before anything is applied: one set of rules for files, stacks and loop.

KAI itself checks little: a cycle, a limit below the quota or the deletion of a queue that is in use pass its admission
and show as work that never starts.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from plimsoll.errors import InvalidObjectError
from plimsoll.model.kai import Queue
from plimsoll.model.meta import Finding, Severity, identify, in_order
from plimsoll.plan.queues.fields import UNITS, faults
from plimsoll.plan.queues.tree import MILLI, QueueTree, Resource
from plimsoll.plan.queues.users import KAI, QueueUse, queue_uses
from plimsoll.text import shortlist


def check_queues(
    manifests: Iterable[Mapping[str, Any]], known: Collection[str] = (), deleted: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What is wrong with the Queues among the manifests, and with the objects that name queues.

    `known` are leaf queues that somebody else declares; `deleted` are queues to be judged as if they were being
    deleted, as those with a deletionTimestamp are. Raises InvalidObjectError where an object has no name, or parts of
    other types than those of any Kubernetes object.
    """
    manifests = list(manifests)
    for manifest in manifests:
        require_object(manifest)
    queues = [_queue(manifest) for manifest in manifests if is_queue(manifest)]
    users = [
        (manifest, use)
        for manifest in manifests
        if not is_queue(manifest) and not _metadata(manifest).get("deletionTimestamp")
        for use in queue_uses(manifest)
    ]
    tree = QueueTree(queues)
    findings = [*_twice(queues), *_cycles(tree), *_missing_parents(tree, known), *_quotas(tree)]
    for queue in queues:
        findings += (
            _finding(queue.name, fault.field, fault.rule, fault.message, fault.severity) for fault in faults(queue.spec)
        )
    going = {queue.name for queue in queues if queue.deleting} | set(deleted)
    findings += _deletions(tree, going, users)
    findings += _bad_users(tree, known, users)
    return in_order(findings)


def is_queue(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("kind") == "Queue" and str(manifest.get("apiVersion") or "").startswith(f"{KAI}/")


def use_problem(queue: str, tree: QueueTree, known: Collection[str]) -> tuple[str, str] | None:
    """The rule that naming this queue breaks, with what is wrong; None where it may be named."""
    if queue in known:
        return None
    if queue not in tree:
        leaves = sorted({name for name in tree if tree.is_leaf(name)} | set(known))
        named = f" (known: {shortlist(leaves)})" if leaves else ""
        return "queue-unknown", f"names Queue {queue}, which nobody declares{named}: declare it, or name another"
    if not tree.is_leaf(queue):
        return (
            "queue-not-leaf",
            f"names Queue {queue}, which has child queues ({shortlist(tree.children[queue])}) and schedules nothing "
            "itself: name a leaf",
        )
    return None


def _twice(queues: Iterable[Queue]) -> Iterator[Finding]:
    seen: set[str] = set()
    for queue in queues:
        if queue.name in seen:
            yield _finding(
                queue.name, "metadata.name", "queue-duplicate",
                "is declared more than once: the last one applied would win; keep one",
            )  # fmt: skip
        seen.add(queue.name)


def _cycles(tree: QueueTree) -> Iterator[Finding]:
    for cycle in tree.cycles:
        path = " -> ".join((*cycle, cycle[0]))
        yield _finding(
            cycle[0], "spec.parentQueue", "queue-cycle",
            f"the parents go in a cycle, {path}: none of these queues schedules; let one of them have no parent",
        )  # fmt: skip


def _missing_parents(tree: QueueTree, known: Collection[str]) -> Iterator[Finding]:
    for name in tree:
        parent = tree.queue(name).parent
        if not parent or parent in tree or parent in known:
            continue
        below = tree.children.get(name, ())
        also = f" with its children ({shortlist(below)})" if below else ""
        yield _finding(
            name, "spec.parentQueue", "queue-parent-missing",
            f"its parent, Queue {parent}, is not declared: KAI drops the queue{also}; declare {parent} or name another",
        )  # fmt: skip


def _quotas(tree: QueueTree) -> Iterator[Finding]:
    """Guarantees that a parent cannot keep."""
    for parent, children in sorted(tree.children.items()):
        if parent not in tree:
            continue
        for resource in Resource:
            given = tree.amounts(parent, resource).quota
            quotas = {child: tree.amounts(child, resource).quota for child in children}
            wanted = None if None in quotas.values() else sum(quota or 0 for quota in quotas.values())
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
        groups = sorted(
            f"{_metadata(manifest).get('namespace') or 'default'}/{_name(_metadata(manifest))}"
            for manifest, use in users
            if manifest.get("kind") == "PodGroup" and use == QueueUse("spec.queue", name)
        )
        if groups:
            yield _finding(
                name, "metadata.deletionTimestamp", "queue-deleted-with-podgroups",
                f"is to be deleted while PodGroups are in it ({shortlist(groups)}): let them end or move them first",
            )  # fmt: skip


def _bad_users(
    tree: QueueTree, known: Collection[str], users: Iterable[tuple[Mapping[str, Any], QueueUse]]
) -> Iterator[Finding]:
    for manifest, use in users:
        problem = use_problem(use.queue, tree, known)
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
    """Raises InvalidObjectError where a manifest lacks the parts of a Kubernetes object that the checks read."""
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str) or not manifest[field]:
            raise InvalidObjectError(f"{identify(manifest)}: {field}: missing or no text", "it is no Kubernetes object")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InvalidObjectError(f"{identify(manifest)}: metadata: must be an object with a name")
    if not isinstance(_name(metadata), str) or not _name(metadata):
        raise InvalidObjectError(f"{identify(manifest)}: metadata.name: missing or no text", "name the object")
    for field in ("labels", "annotations"):
        if not isinstance(metadata.get(field), Mapping | None):
            raise InvalidObjectError(f"{identify(manifest)}: metadata.{field}: must be an object")
    if is_queue(manifest) and not isinstance(manifest.get("spec", {}), Mapping | None):
        raise InvalidObjectError(f"{identify(manifest)}: spec: must be an object")


def _name(metadata: Mapping[str, Any]) -> Any:
    return metadata.get("name") or metadata.get("generateName")


def _queue(manifest: Mapping[str, Any]) -> Queue:
    """Only what the checks read: nothing else of it can be in the way."""
    metadata = _metadata(manifest)
    return Queue.model_construct(
        name=metadata["name"],
        deletion_timestamp=metadata.get("deletionTimestamp"),
        spec=manifest.get("spec") or {},
    )


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata: Mapping[str, Any] = manifest["metadata"]
    return metadata


def _shown(thousandths: int | None) -> str:
    return "unlimited" if thousandths is None else f"{thousandths / MILLI:g}"
