"""Which of several instance types and ways to pay the new nodes of a Workspace are of.

All of its nodes are of one alternative, except while replicas move back. It stays while pods of the Workspace are on
nodes. Otherwise the alternative with the fewest failures is used: first that of its NodeClaims, then the last one, then
in the declared order, or by price. What failed is read from the status, so that a restart changes no choice.

With `moveBackSeconds`, replicas that run on another alternative move to the first possible one: once nodes of it are
Ready for all of them, it is the one that is chosen, and a rollout follows.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TypeVar

from plimsoll.cluster.catalog import OfferedTypes
from plimsoll.estimating import Sizing
from plimsoll.labels import CAPACITY_TYPE
from plimsoll.model import Refusal
from plimsoll.model.api import Alternative, Workspace
from plimsoll.model.karpenter import NodeClaim, NodePool
from plimsoll.plan.owned import ClaimProgress
from plimsoll.plan.view import Holding
from plimsoll.text import shortlist

Made = TypeVar("Made", NodeClaim, NodePool)
Judge = Callable[[Workspace], Sizing | Refusal]


def choose(holding: Holding, judge: Judge, types: OfferedTypes, progress: ClaimProgress) -> Sizing | Refusal:
    """What `judge` says of the Workspace with the alternative that is chosen; a refusal if none is possible."""
    workspace = holding.workspace
    declared = workspace.spec.resource.alternatives
    if not declared:
        return judge(workspace)
    possible = _judged(workspace, judge)
    used = _used(holding, declared, types)
    if used is not None and holding.pods:
        stays = (
            () if used in declared else (f"its nodes are of {used}, which it names no more: they stay while in use",)
        )
        first = _first(workspace, possible, types) if workspace.moves_back else None
        if first is None or first == used:
            return _chosen(possible(used), used, stays)
        if _moves(holding, first, possible(first), types, progress):
            return _chosen(possible(first), first, ())
        told = f"its replicas run on {used}, and move to {first} once all nodes of it are Ready"
        running = _chosen(possible(used), used, (*stays, told))
        return running if isinstance(running, Refusal) else running._replace(move_back_to=first)
    order = _ordered(holding, possible, types, used)
    # All are judged, also those after the first possible one: a misspelt type is told before it is needed.
    found = [(each, possible(each)) for each in order]
    refused = [(each, why) for each, why in found if isinstance(why, Refusal)]
    left_out = [f"{each} is not possible: {why.message}" for each, why in refused]
    for each, sizing in found:
        if isinstance(sizing, Sizing):
            return _chosen(sizing, each, left_out)
    reason = refused[0][1]
    same = all(why == reason for _, why in refused)
    return reason if same else reason._replace(message=f"no alternative is possible: {shortlist(left_out)}")


def others(holding: Holding, judge: Judge, types: OfferedTypes, chosen: Alternative) -> Iterator[Sizing]:
    """The Workspace with each other possible alternative, in the order of the choice; none while it has nodes or pods,
    because these stay."""
    if holding.claims or holding.pools or holding.pods:
        return
    possible = _judged(holding.workspace, judge)
    for each in _ordered(holding, possible, types, None):
        found = possible(each) if each != chosen else None
        if isinstance(found, Sizing):
            yield found._replace(alternative=each)


def _judged(workspace: Workspace, judge: Judge) -> Callable[[Alternative], Sizing | Refusal]:
    """What `judge` says of each alternative, judged once: an order by price asks before the choice does."""
    return cache(lambda each: judge(workspace.on(each)))


def _ordered(
    holding: Holding, possible: Callable[[Alternative], Sizing | Refusal], types: OfferedTypes, used: Alternative | None
) -> list[Alternative]:
    """The alternatives that come into question, the best first."""
    workspace, declared = holding.workspace, holding.workspace.spec.resource.alternatives
    # Also while pods are on existing nodes only, which are paid for in no way that a Workspace chooses.
    order = [each for each in declared if used is None and _hosts(holding, each, types)] or list(declared)
    if workspace.spec.resource.by_price:
        order.sort(key=lambda each: _price(each, possible(each), types))
    record = workspace.status.provisioning

    def rank(each: Alternative) -> tuple[int, bool, bool]:
        failures = record.failed(each).failures
        return failures, each != used, bool(failures) or not each.same(record.alternative)

    order.sort(key=rank)
    return order


def _first(
    workspace: Workspace, possible: Callable[[Alternative], Sizing | Refusal], types: OfferedTypes
) -> Alternative | None:
    """The first possible alternative, whatever failed of it."""
    order = list(workspace.spec.resource.alternatives)
    if workspace.spec.resource.by_price:
        order.sort(key=lambda each: _price(each, possible(each), types))
    return next((each for each in order if isinstance(possible(each), Sizing)), None)


def _moves(
    holding: Holding, first: Alternative, sizing: Sizing | Refusal, types: OfferedTypes, progress: ClaimProgress
) -> bool:
    """Whether all of its nodes of the alternative are Ready with GPUs, or its replicas have begun to move there."""
    if isinstance(sizing, Refusal) or holding.workspace.status.provisioning.alternative.same(first):
        return isinstance(sizing, Sizing)
    there = (each for each in split_by_alternative(holding.claims, first, types)[1] if not each.deleting)
    return sum(progress.ready(each) and progress.shows_gpus(each) for each in there) >= sizing.target


def split_by_alternative(
    claims: Iterable[NodeClaim], to: Alternative | None, types: OfferedTypes
) -> tuple[list[NodeClaim], list[NodeClaim]]:
    """Those on which replicas run or are to start, and those of the alternative to which they move back."""
    staying, back = list[NodeClaim](), list[NodeClaim]()
    for each in claims:
        (staying if to is None or not _is_of(each, to, types) else back).append(each)
    return staying, back


def of_others(objs: Iterable[Made], alternative: Alternative | None, types: OfferedTypes) -> list[Made]:
    """Those of another alternative; none where nothing was chosen."""
    return [] if alternative is None else [each for each in objs if not _is_of(each, alternative, types)]


def _chosen(found: Sizing | Refusal, alternative: Alternative, warnings: Iterable[str]) -> Sizing | Refusal:
    if isinstance(found, Refusal):
        return found
    return found._replace(alternative=alternative, warnings=(*found.warnings, *warnings))


def _used(holding: Holding, declared: Iterable[Alternative], types: OfferedTypes) -> Alternative | None:
    """The alternative that the oldest NodeClaim with pods on its node or static NodePool is of, else the oldest; None
    without any. After a move that was given up halfway, the older nodes may be those without pods."""
    made: list[NodeClaim | NodePool] = [*holding.claims, *(pool for pool in holding.pools if pool.replicas)]
    busy = {pod.node_name for pod in holding.pods if pod.node_name}

    def order(each: NodeClaim | NodePool) -> tuple[bool, str, str]:
        return isinstance(each, NodeClaim) and each.node_name not in busy, each.creation_timestamp, each.name

    there = sorted((each for each in made if not each.deleting), key=order)
    if not there or not there[0].instance_types:
        return None
    oldest = there[0]
    paid = oldest.allowed_values.get(CAPACITY_TYPE, ())
    other = Alternative(oldest.instance_types[0], paid[0] if len(paid) == 1 else "")
    return next((each for each in declared if _is_of(oldest, each, types)), other)


def _hosts(holding: Holding, alternative: Alternative, types: OfferedTypes) -> bool:
    """Whether a pod of the Workspace is on a node of the alternative's type."""
    written = alternative.instance_type
    offered = types.find(written)
    named = (written,) if offered is None else offered.spellings(written)
    return any(host is not None and host.instance_type in named for host in holding.hosts)


def _is_of(obj: NodeClaim | NodePool, alternative: Alternative, types: OfferedTypes) -> bool:
    offered = types.find(alternative.instance_type)
    name = alternative.instance_type if offered is None else offered.name
    paid = alternative.capacity_type
    return name.casefold() in {each.casefold() for each in obj.instance_types} and (
        not paid or obj.allowed_values.get(CAPACITY_TYPE) == (paid,)
    )


def _price(alternative: Alternative, found: Sizing | Refusal, types: OfferedTypes) -> float:
    """The price of all nodes for an hour, own or on-demand list price; what has none comes last."""
    kind = types.catalog.lookup(alternative.instance_type)
    price = kind.shown_price if kind is not None else None
    return math.inf if price is None or isinstance(found, Refusal) else price * found.target
