"""Why no capacity is requested for pods: instance types that failed to launch, constraints that no node can meet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.cluster.nodes import gpu_devices
from plimsoll.cluster.pools import not_ready
from plimsoll.cluster.profiles import NodeProfile, unmet_conditions
from plimsoll.labels import WORKSPACE
from plimsoll.model.api import EnvironmentSpec
from plimsoll.model.cluster import Node
from plimsoll.model.kai import GPUShare, NodePoolLabel, Topology, TopologyConstraint
from plimsoll.model.meta import EPHEMERAL_STORAGE, HostRequest, Placement, PodRules
from plimsoll.packing.nodes import HOST
from plimsoll.plan.classes import Refusal, RefusalReason
from plimsoll.plan.demand.inputs import DemandInputs
from plimsoll.text import shortlist

_AMOUNTS: Final = (("cpu", "m"), ("memory", "Mi"), (EPHEMERAL_STORAGE, "Mi"))
"""The resources of HOST, as pods name them, with the unit in which they are counted."""
BLOCKED: Final = Refusal(
    RefusalReason.BLOCKED,
    "every instance type that could serve it recently failed to launch and is skipped for a while",
    "see status.blocked of its GPUDemand, or let a NodePool offer another type",
)
UNREADABLE: Final = Refusal(RefusalReason.UNREADABLE, "a request for GPUs among them cannot be read")
NO_WHOLE_GPUS: Final = Refusal(
    RefusalReason.NO_NODE, "no node that is known has the whole GPUs that one of them requests"
)


def surplus(gpus: int, enough: float) -> Refusal:
    return Refusal(
        RefusalReason.SURPLUS,
        f"the smaller instance types that could serve it recently failed to launch, and a node with {gpus} GPUs would "
        f"be requested where {enough} are enough",
        "raise spec.demand.surplusGpus of the Environment to allow it, or wait",
    )


def not_planned(obstacle: str) -> Refusal:
    return Refusal(
        RefusalReason.NO_NODE, f"{obstacle}, for which no capacity is planned", "name the namespaces instead"
    )


def selector_ends(share: GPUShare, error: str) -> Refusal:
    """Why a pod is placed nowhere whose claims end in an error on devices that exist."""
    return Refusal(
        RefusalReason.CLAIM,
        f"claims {share}, and an error of a selector on free devices ends each attempt of the scheduler: {error}",
        "test first whether the attribute is there ('name' in device.attributes['domain']), or select other nodes",
    )


def kept_apart(rules: PodRules, levels: Iterable[str]) -> Refusal:
    """Why pods with these rules about other pods find no room, though some node has it. `levels` are those that
    topology constraints of their PodGroup require."""
    by_group = (f"by the topologyConstraint of its PodGroup, in one {level} with its gang" for level in levels)
    required = "; ".join(dict.fromkeys((*map(str, rules), *by_group)))
    why = f"it must be {required}" if required else "anti-affinity of other pods keeps it away"
    return Refusal(
        RefusalReason.NO_NODE,
        f"no node that has room for it is in a domain where it may be: {why}",
        "let NodePools offer more domains (their requirements name the values of such a label), or relax the rule",
    )


def no_level(level: TopologyConstraint, topology: Topology | None) -> Refusal:
    """Why a pod is placed nowhere whose PodGroup requires a level that is not there."""
    if topology is None:
        lacks = f"Topology {level.topology} does not exist"
    else:
        levels = shortlist([each.label for each in topology.levels])
        lacks = f"Topology {topology.name} has no such level (it has {levels or 'none'})"
    return Refusal(
        RefusalReason.NO_NODE,
        f"the topologyConstraint of its PodGroup requires the level {level.required}, and {lacks}: KAI places it "
        "nowhere",
        "name a level of a Topology, or declare the Topology",
    )


def no_shard(label: NodePoolLabel, pool: str) -> Refusal:
    return Refusal(
        RefusalReason.NOT_ALLOWED,
        f"it has {label.shown(pool)}, and no SchedulingShard of KAI has this partitionLabelValue: no scheduler "
        "serves it",
        "correct the label, or create the SchedulingShard",
    )


def other_shard(label: NodePoolLabel, queue: str, of_queue: str, of_pod: str) -> Refusal:
    return Refusal(
        RefusalReason.QUEUE,
        f"QueueDoesNotExist: Queue {queue} has {label.shown(of_queue)}, and the pod {label.shown(of_pod)}: no "
        "scheduler of KAI sees both",
        "give both the same label, or use a queue of the pod's node pool",
    )


def no_node(placement: Placement, host: HostRequest, inputs: DemandInputs) -> Refusal:
    """Why pods of this placement that request this find no room on nodes of the cluster, nor on new ones, whatever
    limits allow."""
    problem, advice = _why_no_node(placement, host, inputs)
    if contradictory := shortlist(_contradictory(placement, inputs), 3):
        problem = f"{problem}; of the nodes that it may run on, {contradictory}"
        advice = f"mend these nodes{f', or {advice}' if advice else ''}"
    return Refusal(RefusalReason.NO_NODE, problem, advice)


def _contradictory(placement: Placement, inputs: DemandInputs) -> list[str]:
    """The nodes that pods of the placement may run on and whose objects contradict each other, with how: the smaller
    figure counts there."""
    return [
        f"{name} contradicts itself ({'; '.join(each.message for each in account.discrepancies)})"
        for name, account in sorted(inputs.cluster.accounts.items())
        if account.discrepancies and _may_run_on(account.node, placement)
    ]


def _may_run_on(node: Node, placement: Placement) -> bool:
    return node.usable and WORKSPACE not in node.labels and placement.admits(node.labels, node.taints, node.name)


def _why_no_node(placement: Placement, host: HostRequest, inputs: DemandInputs) -> tuple[str, str]:
    shapes, pools = inputs.shapes, inputs.cluster.snapshot.node_pools
    if serving := [shape for shape in shapes if shape.serves(placement)]:
        new = "no node that a NodePool offers" if pools else "there is no NodePool, and no node like the existing ones"
        if too_much := " and ".join(_too_much(host, serving)):
            advice = "request less of that, or declare a NodePool of larger nodes"
            return f"no free GPU has room for it, and {new} has the {too_much}", advice
        return (
            f"no free GPU has room for it, and {new} can take it, even if it were empty",
            "request fewer GPUs of one node, or less CPU, memory or ephemeral storage, or declare a NodePool of larger "
            "nodes",
        )
    full = _is_full(placement, inputs)
    here = "no node that it may run on has room for it, and" if full else "no usable node with GPUs fits it, and"
    if fitting := {shape.node_pool for shape in inputs.unready if shape.serves(placement)}:
        unready = [not_ready(pool.name, pool.unready) for pool in pools if pool.name in fitting]
        return f"{here} {shortlist(unready)}", "mend it, or declare another NodePool"
    if divided := sorted({shape.divided for shape in inputs.divided if shape.serves(placement)}):
        return f"{here} {divided[0]}", ""
    if not shapes:
        what = "no NodePool allows an instance type with GPUs that is known" if pools else "there is no NodePool"
        return f"{here} {what}", "declare a NodePool for it"
    selected = [shape for shape in shapes if replace(shape, taints=()).serves(placement)]
    if selected or all(placement.untolerated_taints(shape.taints) for shape in shapes):
        taints = {str(taint) for shape in selected or shapes for taint in placement.untolerated_taints(shape.taints)}
        constrained = placement.node_selector or placement.affinity
        which = "that fits its node selector and affinity" if constrained else "with GPUs"
        tainted = f"the taints of no {'NodePool' if pools else 'node'} {which} ({shortlist(sorted(taints))})"
        return f"{here} it tolerates {tainted}", "add tolerations"
    unmet, hint = unmet_conditions(placement, shapes)
    if not unmet:
        selected_labels = [f"{key}={value}" for key, value in placement.node_selector]
        selected_labels += [" and ".join(map(str, term)) for term in placement.affinity]
        unmet = f"not all of {shortlist(selected_labels)} at once"
    change = "change them, or declare a NodePool that fits"
    return (
        f"{here} no NodePool fits its node selector and affinity: it requires {unmet}",
        f"{hint} {change[0].upper()}{change[1:]}" if hint else change,
    )


def _too_much(host: HostRequest, shapes: Sequence[NodeProfile]) -> Iterator[str]:
    """The resources of which every new node has less, with the most that one has."""
    for name, (resource, unit) in zip(HOST, _AMOUNTS, strict=True):
        wanted, most = getattr(host, name), max(getattr(shape, name) for shape in shapes)
        if wanted > most:
            yield f"{wanted}{unit} of {resource} that it requests (at most {most}{unit} for pods)"


def _is_full(placement: Placement, inputs: DemandInputs) -> bool:
    """Whether there are nodes with GPUs that pods of the placement may run on."""
    environment = inputs.environment
    return any(
        gpu_devices(node, environment.devices_on(node.labels))
        for node in inputs.cluster.snapshot.nodes
        if _may_run_on(node, placement)
    )


def no_allowed_node(namespace: str, spec: EnvironmentSpec) -> Refusal:
    """Why the nodes that could serve a pod are not for its namespace."""
    access = spec.access_of(namespace)
    allowed = [
        f"{what} {shortlist(names) or '(none)'}"
        for what, names in (
            ("NodePools", access.node_pools if access else None),
            ("instance types", access.instance_types if access else None),
        )
        if names is not None
    ]
    return Refusal(
        RefusalReason.NOT_ALLOWED,
        f"access of the Environment allows namespace {namespace!r} the {' and '.join(allowed)} only, and none of "
        "these can serve it",
        "ask for what they have, or change access of the Environment",
        ((repr(namespace), "of the pod"),),
    )
