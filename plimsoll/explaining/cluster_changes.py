"""Changes of what pods and Workspaces share: settings of the Environment, NodePools, Queues, ResourceQuotas."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from math import ceil
from typing import Any, Final

from plimsoll.cluster.catalog import Catalog
from plimsoll.cluster.queues import MILLI, QueueTree, Resource
from plimsoll.explaining.change import Change, Touches, at, with_changed
from plimsoll.labels import INSTANCE_TYPE
from plimsoll.model import Snapshot, Withheld
from plimsoll.model.api import Exemption, NamespaceAccess, RuleSetting
from plimsoll.model.cluster import ResourceQuota
from plimsoll.model.kai import Queue
from plimsoll.model.karpenter import NodePool
from plimsoll.model.meta import section
from plimsoll.plan.limits import claim_keys
from plimsoll.quantity import parse_quantity
from plimsoll.text import shortlist

MOST: Final = 4096
"""How much more of a limit is tried."""
_EXEMPT_DAYS: Final = 30
"""How long an exemption that is proposed is valid."""
_STEPS: Final = {Resource.GPU: 1, Resource.CPU: 1000, Resource.MEMORY: 1000}
"""In the units of a Queue: GPUs, millicores, MB."""
_POOL_UNITS: Final = {"cpu": ("", 1), "memory": ("Gi", 2**30)}
"""Suffix and size of what is tried of a NodePool's limit; others are numbers of devices or nodes."""


def setting(snapshot: Snapshot, path: str, values: Any, field: str, before: object) -> Change:
    """A field of the Environment's spec; `path` has Python's names, `field` those of YAML."""
    return Change(
        f"Environment {snapshot.environment.name}", f"spec.{field}", "" if before is None else str(before), values,
        partial(_with_setting, path), Touches.CLUSTER,
    )  # fmt: skip


def _with_setting(path: str, snapshot: Snapshot, value: Any) -> Snapshot:
    return snapshot.model_copy(update={"environment": at(snapshot.environment, f"spec.{path}", value)})


def limit_changes(snapshot: Snapshot, namespace: str) -> Iterator[Change]:
    """More of what the Environment, `access`, ResourceQuotas and NodePools limit."""
    limits, resource = snapshot.environment.spec.limits, snapshot.environment.spec.gpu_resource
    for name, limit in (("gpus", limits.gpus), ("nodes", limits.nodes)):
        if limit is not None:
            yield setting(snapshot, f"limits.{name}", _above(limit), f"limits.{name}", limit)
    yield from _access_changes(snapshot, namespace)
    for quota in snapshot.resource_quotas:
        if quota.namespace != namespace or quota.told_scopes:
            continue
        of_gpus = {f"requests.{resource}"} & quota.hard.keys()
        for field in sorted(of_gpus.union(claim_keys(quota, snapshot.device_classes))):
            yield Change(
                f"ResourceQuota {quota.namespace}/{quota.name}", f"spec.hard[{field}]", str(quota.hard[field]),
                _above(_number(quota.hard[field])), partial(_with_hard, quota, field), Touches.NAMESPACE,
            )  # fmt: skip
    for pool in snapshot.node_pools:
        for name, amount in sorted(pool.limits.items()):
            suffix, size = _POOL_UNITS.get(name, ("", 1))
            values = [f"{each}{suffix}" for each in _above(ceil(parse_quantity(amount) / size))]
            yield Change(
                f"NodePool {pool.name}", f"spec.limits[{name}]", str(amount), values,
                partial(_with_pool_limit, pool, name), Touches.NODE_POOL,
            )  # fmt: skip


def policy_changes(snapshot: Snapshot, withheld: Collection[Withheld], now: datetime) -> Iterator[Change]:
    """An exemption of the objects from the rules that withhold them, or warnings in place of the rules' errors."""
    if not withheld:
        return
    policies, until = snapshot.environment.spec.policies, now.date() + timedelta(days=_EXEMPT_DAYS)
    rules = sorted({finding.rule for each in withheld for finding in each.findings})
    exempt = tuple(
        Exemption(
            rule=rule, kind=each.key.kind, namespace=each.key.namespace or None, name=each.key.name,
            reason="proposed by plimsoll why", until=until,
        )
        for each in withheld
        for rule in sorted({finding.rule for finding in each.findings})
    )  # fmt: skip
    objects = shortlist([str(each.key) for each in withheld])
    change = setting(snapshot, "policies.exemptions", [(*policies.exemptions, *exempt)], "policies.exemptions", None)
    yield replace(change, names_others=True, shown=lambda _: f"{objects} from {shortlist(rules)}, until {until}")
    warning = {
        rule: policies.rules.get(rule, RuleSetting()).model_copy(update={"severity": "warning"}) for rule in rules
    }
    field = f"policies.rules[{shortlist(rules)}].severity"
    change = setting(snapshot, "policies.rules", [{**policies.rules, **warning}], field, "error")
    yield replace(change, shown=lambda _: "warning")


def _above(limit: int, step: int = 1) -> range:
    return range(limit + step, limit + step * MOST + 1, step)


def _number(amount: Any) -> int:
    try:
        return max(0, int(parse_quantity(amount)))
    except ValueError:
        return 0


def _with_hard(quota: ResourceQuota, field: str, snapshot: Snapshot, value: Any) -> Snapshot:
    return with_changed(
        snapshot, "resource_quotas", quota, lambda each: each.model_copy(update={"hard": {**each.hard, field: value}})
    )


def _with_pool_limit(pool: NodePool, name: str, snapshot: Snapshot, value: Any) -> Snapshot:
    return with_changed(
        snapshot, "node_pools", pool, lambda each: each.model_copy(update={"limits": {**each.limits, name: value}})
    )


def _access_changes(snapshot: Snapshot, namespace: str) -> Iterator[Change]:
    spec = snapshot.environment.spec
    try:
        entry = spec.access_of(namespace)
    except KeyError:
        added = (*spec.access, NamespaceAccess(namespaces=(namespace,)))
        change = setting(snapshot, "access", [added], "access", f"no entry for {namespace}")
        yield replace(change, shown=lambda _: f"an entry for {namespace}")
        return
    if entry is None:
        return
    named = shortlist(entry.namespaces)
    if entry.gpus is not None:
        yield _entry_change(snapshot, entry, "gpus", f"access[{named}].gpus", list(_above(entry.gpus)))
    if entry.node_pools is not None:
        for pool in sorted({each.name for each in snapshot.node_pools} - {*entry.node_pools}):
            wider = [(*entry.node_pools, pool)]
            yield _entry_change(snapshot, entry, "node_pools", f"access[{named}].nodePools", wider)
    if entry.instance_types is not None:
        offered = {name for pool in snapshot.node_pools for name in pool.instance_types}
        for name in sorted(offered - {*entry.instance_types}):
            wider = [(*entry.instance_types, name)]
            yield _entry_change(snapshot, entry, "instance_types", f"access[{named}].instanceTypes", wider)
    if entry.queues is not None:
        for name in sorted({each.name for each in snapshot.queues} - {*entry.queues}):
            yield _entry_change(snapshot, entry, "queues", f"access[{named}].queues", [(*entry.queues, name)])


def _entry_change(snapshot: Snapshot, entry: NamespaceAccess, name: str, field: str, values: list[Any]) -> Change:
    position = snapshot.environment.spec.access.index(entry)
    before, shared = _list_text(getattr(entry, name)), len(entry.namespaces) > 1 or name == "queues"
    change = setting(snapshot, "access", values, field, before)
    put = partial(_with_entry, position, name)
    return replace(change, put=put, shown=_list_text, names_others=shared)


def _with_entry(position: int, name: str, snapshot: Snapshot, value: Any) -> Snapshot:
    access = list(snapshot.environment.spec.access)
    access[position] = access[position].model_copy(update={name: value})
    return _with_setting("access", snapshot, tuple(access))


def _list_text(value: object) -> str:
    return ", ".join(map(str, value)) or "(none)" if isinstance(value, tuple) else str(value)


def queue_changes(snapshot: Snapshot, queue: str) -> Iterator[Change]:
    """More of the limits and quotas of the queue and of those above it."""
    tree = QueueTree.of(snapshot)
    for name in tree.path_to_root(queue) if queue in tree else ():
        for resource in Resource:
            amounts = tree.amounts(name, resource)
            for part, amount in (("limit", amounts.limit), ("quota", amounts.quota)):
                if amount is not None:
                    yield Change(
                        f"Queue {name}", f"spec.resources.{resource}.{part}", f"{amount / MILLI:g}",
                        _above(amount // MILLI, _STEPS[resource]),
                        partial(_with_amount, tree.queue(name), resource, part), Touches.QUEUE,
                    )  # fmt: skip


def _with_amount(queue: Queue, resource: Resource, part: str, snapshot: Snapshot, value: int) -> Snapshot:
    def change(each: Queue) -> Queue:
        before = section(each.spec, "resources")
        resources = {**before, resource.value: {**section(before, resource.value), part: value}}
        return each.model_copy(update={"spec": {**each.spec, "resources": resources}})

    return with_changed(snapshot, "queues", queue, change)


def type_changes(snapshot: Snapshot) -> Iterator[Change]:
    """An instance type more in each NodePool that names its types: the cheapest first, those without a price last."""
    catalog = Catalog.of(snapshot)
    for pool in snapshot.node_pools:
        named = {name.casefold() for name in pool.instance_types}
        others = [
            each
            for each in catalog.launched_by(pool.node_class_group)
            if named and each.nvidia and each.name.casefold() not in named
        ]
        others.sort(key=lambda each: (each.shown_price is None, each.shown_price or 0.0, each.gpus, each.name))
        # All of the cheaper ones with it: whether a list helps is then monotone; the last one alone is what counts.
        lists = [tuple(each.name for each in others[: number + 1]) for number in range(len(others))]
        if lists:
            yield Change(
                f"NodePool {pool.name}", f"requirement {INSTANCE_TYPE}", shortlist(pool.instance_types), lists,
                partial(_with_types, pool), Touches.NODE_POOL, lambda names: f"with {names[-1]}",
                lambda names: names[-1:],
            )  # fmt: skip


def _with_types(pool: NodePool, snapshot: Snapshot, names: tuple[str, ...]) -> Snapshot:
    def change(each: NodePool) -> NodePool:
        requirements = [
            {**item, "values": [*(item.get("values") or ()), *names]}
            if item.get("key") == INSTANCE_TYPE and item.get("operator") == "In"
            else item
            for item in each.requirements
        ]
        return each.model_copy(update={"template_spec": {**each.template_spec, "requirements": requirements}})

    return with_changed(snapshot, "node_pools", pool, change)
