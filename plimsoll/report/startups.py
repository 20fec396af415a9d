"""Measures how long a replica took to start on a new node, from the times that NodeClaim and pod report."""

from plimsoll.labels import INSTANCE_TYPE
from plimsoll.model.api import Startup
from plimsoll.model.cluster import Pod
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import condition_of
from plimsoll.plan.owned import alive, parse_time
from plimsoll.plan.view import Holding


def last_startup(holding: Holding, previous: Startup) -> Startup:
    """Of the newest created node with a serving pod, as its first one had it; the previous one if there is none, or if
    a time of it is not known.

    A pod that comes later finds the images there, so it does not count. Replicas that span nodes are not measured:
    their pods become Ready for different reasons.
    """
    if any(each.size > 1 for each in holding.workloads):
        return previous
    serving = {pod.node_name: pod for pod in holding.pods if pod.ready}
    made = [claim for claim in alive(holding.claims) if claim.node_name in serving]
    newest = max(made, key=lambda claim: (claim.creation_timestamp, claim.name), default=None)
    if newest is None or newest.node_name == previous.node:
        return previous
    return _measured(newest, serving[newest.node_name]) or previous


def _measured(claim: NodeClaim, pod: Pod) -> Startup | None:
    created, placed = claim.creation_timestamp, condition_of(pod.conditions, "PodScheduled")
    there, ready = claim.condition("Ready"), condition_of(pod.conditions, "Ready")
    if placed is None or there is None or ready is None:
        return None
    node = _seconds(created, there.last_transition_time)
    image = _seconds(placed.last_transition_time, pod.started)
    server = _seconds(pod.started, ready.last_transition_time)
    if node is None or image is None or server is None:
        return None
    return Startup(
        node=claim.node_name,
        instance_type=claim.labels.get(INSTANCE_TYPE) or next(iter(claim.instance_types), ""),
        measured=ready.last_transition_time,
        node_seconds=node,
        image_seconds=image,
        server_seconds=server,
    )


def _seconds(begin: str, end: str) -> int | None:
    """None if one of them is no time, or they are not in order."""
    since, until = parse_time(begin), parse_time(end)
    if since is None or until is None or until < since:
        return None
    return round((until - since).total_seconds())
