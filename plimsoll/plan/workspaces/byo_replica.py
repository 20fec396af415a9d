"""Number of existing nodes that one replica needs: the GPU memory totals of KAITO's proposal, with the estimate as a
warning.

A model that cannot span nodes must fit one node; one that can must fit all matching nodes. There is no minimum number
of nodes. The estimator's formula also counts KV cache and utilization: a higher result becomes a warning, and sets the
number of nodes where a replica may span them.
"""

import math

from plimsoll.cluster.nodes import PodDevices
from plimsoll.estimating import Estimate, Estimates, ReplicaNeed, ReplicaSize, start_doubt, too_long_context
from plimsoll.model import Reason, Refusal
from plimsoll.text import counted, shortlist


def nodes_of_replica(
    need: ReplicaNeed, offer: PodDevices, names: tuple[str, ...], estimates: Estimates
) -> ReplicaSize | Refusal:
    """What one replica takes, with a warning where it may not suffice; `names` are the nodes that match."""
    parted = bool(offer.pods)
    if (need.per_replica or 1) > 1 and (parted or offer.gpus.separate or not need.spans_nodes):
        whose = "its pods request part of a node" if parted else f"{need.subject} runs on one node only"
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.perReplicaNodeCount is {need.per_replica}, but {whose}: remove it, or set it to 1",
        )
    if need.need is None:
        return ReplicaSize(need.per_replica or 1)
    spans = need.spans_nodes and not parted and not offer.gpus.separate
    refusal = _over_all(need, offer, names) if spans else _on_one(need, offer, names[0])
    if refusal is not None:
        return refusal
    outcome = estimates.of(need.need, offer.gpus, need.context_length)
    if offer.gpus.separate and not isinstance(outcome, Estimate):
        return _too_small_slice(need, offer, names[0], outcome.min_gpus, outcome.reason)
    wanted = outcome.nodes
    per_replica = need.per_replica or 1
    if spans and need.per_replica is None:
        least = math.ceil(need.least_mib / _usable_mib(need, offer))
        per_replica = max(least, min(wanted or least, need.most_nodes or len(names), len(names)))
    serving = need.serving(offer.gpus, per_replica, estimates)
    too_long = too_long_context(need, serving, f"{counted(per_replica, 'node')} like {names[0]}")
    if too_long is not None:
        return too_long
    if isinstance(outcome, Estimate) and outcome.nodes <= per_replica:
        return ReplicaSize(per_replica, start_doubt(need, serving), serving, parted)
    warning = "" if isinstance(outcome, Estimate) else f"the estimate says that {outcome.reason}"
    if wanted is not None and outcome.min_gpus is not None and wanted > per_replica:
        gpus = counted(outcome.min_gpus, "GPU")
        warning = f"the estimate says {gpus}, {counted(wanted, 'node')} for one replica"
    used = f"{counted(per_replica, 'node')} {'is' if per_replica == 1 else 'are'} used"
    given = f"inference.perReplicaNodeCount is {need.per_replica}" if need.per_replica else used
    return ReplicaSize(
        per_replica, f"{need.subject} may run out of GPU memory: {warning}, and {given}", serving, parted
    )


def _on_one(need: ReplicaNeed, offer: PodDevices, name: str) -> Refusal | None:
    if _usable_mib(need, offer) >= need.least_mib:
        return None
    return Refusal(
        Reason.INSUFFICIENT_GPU_MEMORY,
        f"Insufficient total GPU memory: {_has(offer, name)}{need.beyond_heads(offer.gpus)}, but {need.subject} "
        f"requires at least {need.least_mib} MiB on one {_place(offer)}; use {_larger(offer)}",
    )


def _over_all(need: ReplicaNeed, offer: PodDevices, names: tuple[str, ...]) -> Refusal | None:
    each, most = _usable_mib(need, offer), need.per_replica or need.most_nodes
    if most is not None and most * each < need.least_mib:
        split = f"over {counted(most, 'node')}; raise inference.perReplicaNodeCount, or use"
        split = split if need.per_replica else f"over at most {counted(most, 'node')}, one for each layer; use"
        return Refusal(
            Reason.INSUFFICIENT_GPU_MEMORY,
            f"Insufficient total GPU memory: {_has(offer, names[0])}{need.beyond_heads(offer.gpus)}, but "
            f"{need.subject} requires at least {need.least_mib} MiB {split} nodes with more GPU memory",
        )
    if len(names) * each < need.least_mib:
        return Refusal(
            Reason.INSUFFICIENT_GPU_MEMORY,
            f"Insufficient total GPU memory: {counted(len(names), 'matching node')} ({shortlist(names)}) has a total "
            f"of {len(names) * _mib(offer)} MiB ({len(names)} x {offer}){need.beyond_heads(offer.gpus)}, but "
            f"{need.subject} requires at least {need.least_mib} MiB; label more nodes, or use larger ones",
        )
    return None


def _too_small_slice(need: ReplicaNeed, offer: PodDevices, name: str, min_gpus: int | None, reason: str) -> Refusal:
    warning = (
        f"the estimate says {min_gpus} of them, and a model is not split over {_place(offer)}s"
        if min_gpus is not None and min_gpus > 1
        else reason
    )
    return Refusal(
        Reason.INSUFFICIENT_GPU_MEMORY,
        f"Insufficient total GPU memory: {_has(offer, name)}, but {need.subject} requires at least {need.least_mib} "
        f"MiB besides runtime memory: {warning}; use {_larger(offer)}",
    )


def _mib(offer: PodDevices) -> int:
    """GPU memory of one pod, MiB."""
    return offer.gpus.count * (offer.gpus.memory_mib or 0)


def _usable_mib(need: ReplicaNeed, offer: PodDevices) -> int:
    """What of it the server can use."""
    return need.usable_gpus(offer.gpus) * (offer.gpus.memory_mib or 0)


def _has(offer: PodDevices, name: str) -> str:
    if offer.gpus.separate:
        return f"one {_place(offer)} of node {name} has a total of {_mib(offer)} MiB ({offer.product})"
    has = f"{offer.gpus.count} x {offer.product} of {offer.memory_mib} MiB each"
    return f"node {name} has a total of {_mib(offer)} MiB ({has})"


def _place(offer: PodDevices) -> str:
    if not offer.gpus.separate:
        return "node"
    return "slice" if offer.gpus.memory_mib == offer.memory_mib else "shared device"


def _larger(offer: PodDevices) -> str:
    if not offer.gpus.separate:
        return "nodes with more GPU memory"
    return "a larger MIG profile, or whole GPUs" if _place(offer) == "slice" else "nodes whose GPUs are not shared"
