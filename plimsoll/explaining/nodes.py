"""Why a node is there: who asked for it, who uses it, what it costs, when it goes, and what keeps it."""

from collections.abc import Iterable, Iterator

from plimsoll.cluster.ledger import GpuAccount, gpu_ledger, other_accelerators
from plimsoll.cluster.nodes import owner_in
from plimsoll.cluster.pods import PodRequest, bound_pods, is_reservation, read_request
from plimsoll.cost import Prices, node_cost
from plimsoll.errors import PlimsollError
from plimsoll.explaining.chain import Chain, Link, State, Step, StepReason
from plimsoll.explaining.planned_demand import PlannedDemand
from plimsoll.labels import (
    DO_NOT_DISRUPT,
    HEADROOM,
    NODEPOOL,
    REQUEST,
    WORKSPACE,
    WORKSPACE_NAMESPACE,
)
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Node
from plimsoll.model.kai import NAMESPACES
from plimsoll.model.karpenter import NodeClaim
from plimsoll.plan.owned import phase_of
from plimsoll.text import counted, did_you_mean, figure, nearest, shortlist


def why_node(planned: PlannedDemand, name: str) -> Chain:
    """Raises PlimsollError if there is no such node."""
    snapshot = planned.snapshot
    node = planned.view.index.by_name.get(name)
    claim = next((each for each in snapshot.node_claims if name in (each.name, each.node_name)), None)
    if node is None and claim is None:
        names = sorted(planned.view.index.by_name)
        near = did_you_mean(nearest(name, names)) or f"existing nodes: {shortlist(names) or '(none)'}"
        raise PlimsollError(f"node {name!r} not found", near)
    asked = Link(Step.REQUEST, State.PASSED, asked_by(planned, node, claim))
    if node is None:
        assert claim is not None
        return Chain(f"NodeClaim {claim.name}", (asked, claim_link(claim)))
    links = [asked, *([claim_link(claim)] if claim is not None else []), *node_links(planned, node)]
    return Chain(f"Node {name}", tuple(links))


def asked_by(planned: PlannedDemand, node: Node | None, claim: NodeClaim | None) -> str:
    """Who asked for the node: by the labels of its NodeClaim and itself, and by the NodeClaims of GPUDemands."""
    labels = {**(claim.labels if claim is not None else {}), **(node.labels if node is not None else {})}
    owner = owner_in(labels)
    if any(owner):
        return f"for {'the pods of ' if owner.demand else ''}{owner}"
    if labels.get(HEADROOM):
        return f"headroom {labels[HEADROOM]} of the Environment"
    if labels.get(REQUEST):
        return f"requested by {labels[REQUEST]}"
    demands = [
        name
        for name, status in planned.statuses.items()
        if claim is not None and any(each.name == claim.name for each in status.node_claims)
    ]
    if demands:
        return f"for the pods of GPUDemand {shortlist(sorted(demands))}"
    if claim is not None:
        return f"created by Karpenter from NodePool {claim.labels.get(NODEPOOL) or '(unknown)'}, not for Plimsoll"
    return "not created by Karpenter: it was there, or another autoscaler created it"


def claim_link(claim: NodeClaim) -> Link:
    """What Karpenter says of the NodeClaim."""
    if claim.deleting:
        return Link(Step.ANSWER, State.WAITING, f"NodeClaim {claim.name} is {claim.stays}", StepReason.CLAIM_WAITS)
    phase = phase_of(claim)
    said = next((each for each in claim.conditions if each.status != "True" and each.message), None)
    text = f"NodeClaim {claim.name} is {phase}"
    if claim.ready or said is None:
        state = State.PASSED if claim.ready else State.WAITING
        return Link(Step.ANSWER, state, text, "" if claim.ready else StepReason.CLAIM_WAITS)
    refused = said.reason not in ("", "AwaitingReconciliation")
    text += f": {said.reason or said.type}: {said.message}"
    if refused and not claim.launched:
        return Link(Step.ANSWER, State.BLOCKED, text, StepReason.CLAIM_REFUSED)
    return Link(Step.ANSWER, State.WAITING, text, StepReason.CLAIM_WAITS)


def node_links(planned: PlannedDemand, node: Node) -> Iterator[Link]:
    """The node, what it costs, and what keeps it."""
    account = gpu_ledger_of(planned, node.name)
    pool = node.labels.get(NODEPOOL)
    of_pool = f" of NodePool {pool}" if pool else ""
    what, free = _devices(planned.snapshot, account, node)
    text = f"{node.name}: {node.instance_type or 'unknown type'}{of_pool} with {what}"
    problem = _unusable(node)
    if problem:
        yield Link(Step.NODE, State.BLOCKED, f"{text}, {problem}", StepReason.NODE_UNUSABLE)
    else:
        yield Link(Step.NODE, State.PASSED, f"{text}, {free} free" if free else text)
    yield Link(Step.COST, State.PASSED, _cost(account, node, planned.prices))
    yield Link(Step.END, State.PASSED, ending(planned, node))


def _devices(snapshot: Snapshot, account: GpuAccount | None, node: Node) -> tuple[str, str]:
    """What it has: GPUs, else accelerators of others; and how much of that is free, empty without any."""
    if account is not None and account.has_gpus:
        free = figure(float(sum(account.likely_free_milli)) / 1000)
        return f"{account.gpus} x {account.kind or account.vendor_resource or 'GPU'}", free
    others = [each for each in other_accelerators(snapshot) if each.node == node.name]
    what = shortlist([f"{each.allocatable} x {each.resource}" for each in others])
    return what or "no GPUs", shortlist([str(each.free) for each in others])


def gpu_ledger_of(planned: PlannedDemand, name: str) -> GpuAccount | None:
    return gpu_ledger(planned.snapshot).account(name)


def _unusable(node: Node) -> str:
    if node.deleting:
        return "being deleted"
    if node.unschedulable:
        return "cordoned"
    return "not Ready" if node.ready is False else node.unhealthy()


def _cost(account: GpuAccount | None, node: Node, prices: Prices) -> str:
    basis = prices.basis([node.instance_type])
    cost = node_cost(account, prices) if account is not None else None
    if cost is None:
        return f"no price of {node.instance_type or 'its instance type'} is known: set catalog.prices"
    currency = f" {basis.currency}" if basis.currency else ""
    return f"{figure(cost.price)}{currency} an hour, {figure(cost.idle)} of it idle ({basis})"


def keeping(snapshot: Snapshot, node: Node) -> Iterator[str]:
    """What keeps the node."""
    if node.annotations.get(DO_NOT_DISRUPT) == "true":
        yield f"its annotation {DO_NOT_DISRUPT}"
    if node.labels.get(WORKSPACE):
        yield f"Workspace {node.labels.get(WORKSPACE_NAMESPACE, '')}/{node.labels[WORKSPACE]}"
    resource = snapshot.environment.spec.gpu_resource
    for pod in bound_pods(snapshot.pods).get(node.name, ()):
        request = read_request(pod, resource)
        if not (request.uses_gpus or request.has_others) or is_reservation(pod, NAMESPACES):
            continue
        stays = f", {DO_NOT_DISRUPT}" if pod.annotations.get(DO_NOT_DISRUPT) == "true" else ""
        yield f"pod {pod.namespace}/{pod.name} ({_used(request)}{stays})"


def _used(request: PodRequest) -> str:
    """The devices that a pod has."""
    if request.held is not None:
        return str(request.held)
    devices = " and ".join(f"{count} {name}" for name, count in request.devices)
    claimed = f"{counted(request.claimed_gpus, 'GPU')} by claims" if request.claimed_gpus else "an unknown GPU request"
    return devices or claimed


def ending(planned: PlannedDemand, node: Node) -> str:
    """When the node goes, and what keeps it."""
    kept = list(keeping(planned.snapshot, node))
    claim = next((each for each in planned.snapshot.node_claims if each.node_name == node.name), None)
    if claim is not None and claim.deleting:
        left = claim.blocking or kept
        return "Karpenter is deleting it" + (f"; still there: {shortlist(left)}" if left else "")
    expiry = claim.spec.get("expireAfter") if claim is not None else None
    until = f"; it expires {expiry} after its creation" if expiry and expiry != "Never" else ""
    if kept:
        return f"kept by {shortlist(kept)}{until}"
    if claim is not None and not claim.labels.get(WORKSPACE):
        return f"nothing keeps it: Karpenter removes it by the disruption settings of its NodePool{until}"
    return f"nothing keeps it, and nothing removes it by itself{until}"


def nodes_text(names: Iterable[str]) -> str:
    listed = sorted(names)
    return f"{counted(len(listed), 'node')} ({shortlist(listed)})" if listed else "no node"
