"""How many nodes a Workspace takes: GPU memory that one replica needs against the GPUs of a node."""

import math
from typing import NamedTuple

from plimsoll.model import Reason, Refusal
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import MIB_PER_GIB, NodeGpus
from plimsoll.plan.estimating.estimates import Estimates
from plimsoll.plan.estimating.estimator import Infeasible, MemoryNeed, ModelNeed
from plimsoll.plan.estimating.known_models import ModelPreset, near, preset
from plimsoll.text import counted


class ReplicaNeed(NamedTuple):
    """What one replica of a Workspace needs."""

    subject: str
    """What needs it, for messages: `preset 'phi-4'`."""
    need: ModelNeed | MemoryNeed | None
    """None where nothing says it: a template without `gpuMemoryGiB`."""
    spans_nodes: bool
    per_replica: int | None
    """`inference.perReplicaNodeCount`."""
    preset: ModelPreset | None
    context_length: int | None = None
    """`inference.contextLength`, tokens."""

    @property
    def least_mib(self) -> int:
        """MiB that one replica takes at the very least: the declared need, or the model's weights."""
        if self.need is None:
            return 0
        gib = self.need.gpu_memory_gib if isinstance(self.need, MemoryNeed) else self.need.size_gib
        return math.ceil(gib * MIB_PER_GIB)


class Sizing(NamedTuple):
    """An accepted Workspace in nodes."""

    per_replica: int
    target: int
    """Nodes in all."""
    message: str
    node_names: tuple[str, ...] = ()
    """Brought nodes that are usable, sorted."""
    allocated: tuple[str, ...] = ()
    """Brought nodes that are given to it, sorted."""
    startable: int | None = None
    """Replicas that have their nodes; None where it does not matter."""
    devices: int | None = 0
    """Devices that a pod asks for to have a whole node, or its part of one; None where nobody knows them."""
    resource: str = ""
    """The extended resource of these devices; empty for the environment's."""
    parallel: int | None = None
    """GPUs over which a pod splits its model; None: its devices."""
    requested: int | None = 0
    """Devices that a pod takes of a node: its template's own number, where that states one."""
    pods_per_node: int = 0
    """Where pods ask for a part of a node, how many it takes; 0: one pod has the whole node."""
    gpus: int | None = 0
    """GPUs of a node, as limits count them; None where nobody knows them."""
    warnings: tuple[str, ...] = ()


def replica_need(workspace: Workspace) -> ReplicaNeed | Refusal | None:
    """The need that the Workspace declares or its preset has; None where it declares no inference."""
    inference = workspace.spec.inference
    if inference is None:
        return None
    declared = inference.gpu_memory_gib
    per_replica = inference.per_replica_node_count
    if inference.preset is None:
        need = None if declared is None else MemoryNeed(declared, spans_nodes=(per_replica or 1) > 1)
        return ReplicaNeed("the template", need, (per_replica or 1) > 1, per_replica, None)
    known = preset(inference.preset.name)
    if known is None and declared is None:
        meant = near(inference.preset.name)
        return Refusal(
            Reason.UNKNOWN_PRESET,
            f"preset {inference.preset.name!r} is not known"
            + (f" (did you mean {' or '.join(meant)}?)" if meant else "")
            + ": name a known one, or say what one replica needs by inference.gpuMemoryGiB",
        )
    spans = known.spans_nodes if known is not None else (per_replica or 1) > 1
    if declared is not None:
        stated = MemoryNeed(declared, spans_nodes=spans)
        return ReplicaNeed(f"preset {inference.preset.name!r}", stated, spans, per_replica, known)
    assert known is not None
    return ReplicaNeed(f"preset {known.name!r}", known.need, spans, per_replica, known, inference.context_length)


def nodes_per_replica(need: ReplicaNeed, gpus: NodeGpus, node: str, estimates: Estimates) -> tuple[int, str] | Refusal:
    """Nodes that one replica takes, and a warning or an empty text; `node` names such a node in messages.

    `inference.perReplicaNodeCount` counts where it is set: below what the estimate says it is warned of, and refused
    only where not even the weights fit, or where the model cannot span nodes.
    """
    total_mib = math.floor(gpus.count * gpus.memory_mib)
    has = f"{node} has a total of {total_mib} MiB ({gpus.count} x {math.floor(gpus.memory_mib)} MiB {gpus.product})"
    requires = f"but {need.subject} requires at least {need.least_mib} MiB"
    if need.per_replica is not None and need.per_replica > 1 and not need.spans_nodes:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.perReplicaNodeCount is {need.per_replica}, but {need.subject} runs on one node only: leave it "
            "out, or set it to 1",
        )
    if need.need is None:
        return need.per_replica or 1, ""
    outcome = estimates.of(need.need, gpus, need.context_length)
    if need.per_replica is None:
        if isinstance(outcome, Infeasible):
            return Refusal(
                Reason.INSUFFICIENT_GPU_MEMORY, f"Insufficient total GPU memory: {has}, {requires}; {outcome.reason}"
            )
        return outcome.nodes, ""
    if need.per_replica * total_mib < need.least_mib:
        return Refusal(
            Reason.INSUFFICIENT_GPU_MEMORY,
            f"Insufficient total GPU memory: {has}, {requires} over {counted(need.per_replica, 'node')}; raise "
            "inference.perReplicaNodeCount, or take nodes with more GPU memory",
        )
    needed = outcome.nodes
    if needed is None or needed > need.per_replica:
        return need.per_replica, (
            f"inference.perReplicaNodeCount is {need.per_replica}, but the estimate for {need.subject} on such nodes "
            + (f"is {needed}" if needed else f"says: {outcome.reason}" if isinstance(outcome, Infeasible) else "")
            + "; it may run out of GPU memory"
        )
    return need.per_replica, ""


def nodes_in_all(workspace: Workspace, per_replica: int) -> tuple[int, tuple[str, ...]]:
    """Nodes in all, with warnings on the deprecated `resource.count`: it counts only where no inference is declared."""
    count = workspace.spec.resource.count
    if workspace.spec.inference is None:
        used = () if count is None else (f"resource.count is deprecated: {count} taken as the number of nodes",)
        return count or 1, used
    ignored = (
        ()
        if count is None
        else ("resource.count is deprecated and not read: inference.replicas and perReplicaNodeCount count",)
    )
    return workspace.replicas * per_replica, ignored
