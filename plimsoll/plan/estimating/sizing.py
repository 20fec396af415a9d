"""How many nodes a Workspace needs: the GPU memory that one replica needs, compared with the GPUs of a node."""

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
    """Name for messages, such as `preset 'phi-4'`."""
    need: ModelNeed | MemoryNeed | None
    """None where it is not declared: a template without `gpuMemoryGiB`."""
    spans_nodes: bool
    per_replica: int | None
    """`inference.perReplicaNodeCount`."""
    preset: ModelPreset | None
    context_length: int | None = None
    """`inference.contextLength`, tokens."""

    @property
    def least_mib(self) -> int:
        """Minimum memory of one replica in MiB: the declared need, or the model's weights."""
        if self.need is None:
            return 0
        gib = self.need.gpu_memory_gib if isinstance(self.need, MemoryNeed) else self.need.size_gib
        return math.ceil(gib * MIB_PER_GIB)


class Sizing(NamedTuple):
    """The nodes of an accepted Workspace."""

    per_replica: int
    target: int
    """Total number of nodes."""
    message: str
    node_names: tuple[str, ...] = ()
    """BYO: usable nodes, sorted."""
    allocated: tuple[str, ...] = ()
    """BYO: nodes that are allocated to it, sorted."""
    startable: int | None = None
    """Replicas that have their nodes; None if it does not matter."""
    devices: int | None = 0
    """Devices that a pod requests for a whole node, or for its part of one; None where they are not known."""
    resource: str = ""
    """The extended resource of these devices; empty: that of the Environment."""
    parallel: int | None = None
    """GPUs over which a pod splits its model; None: as many as its devices."""
    requested: int | None = 0
    """Devices that a pod uses on a node: its template's own number, if that sets one."""
    pods_per_node: int = 0
    """Number of pods per node where pods request part of a node; 0: one pod has the whole node."""
    gpus: int | None = 0
    """GPUs of a node, as limits count them; None where they are not known."""
    warnings: tuple[str, ...] = ()


def replica_need(workspace: Workspace) -> ReplicaNeed | Refusal | None:
    """The need that the Workspace declares or its preset has; None if it declares no inference."""
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
            + ": use a known one, or set inference.gpuMemoryGiB to the GPU memory of one replica",
        )
    spans = known.spans_nodes if known is not None else (per_replica or 1) > 1
    if declared is not None:
        stated = MemoryNeed(declared, spans_nodes=spans)
        return ReplicaNeed(f"preset {inference.preset.name!r}", stated, spans, per_replica, known)
    assert known is not None
    return ReplicaNeed(f"preset {known.name!r}", known.need, spans, per_replica, known, inference.context_length)


def nodes_per_replica(need: ReplicaNeed, gpus: NodeGpus, node: str, estimates: Estimates) -> tuple[int, str] | Refusal:
    """Number of nodes that one replica needs, and a warning or an empty text; `node` names such a node in messages.

    `inference.perReplicaNodeCount` is used if it is set. A value below the estimate causes a warning; it is refused
    only if not even the weights fit, or if the model cannot span nodes.
    """
    total_mib = math.floor(gpus.count * gpus.memory_mib)
    has = f"{node} has a total of {total_mib} MiB ({gpus.count} x {math.floor(gpus.memory_mib)} MiB {gpus.product})"
    requires = f"but {need.subject} requires at least {need.least_mib} MiB"
    if need.per_replica is not None and need.per_replica > 1 and not need.spans_nodes:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.perReplicaNodeCount is {need.per_replica}, but {need.subject} runs on one node only: remove "
            "it, or set it to 1",
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
            "inference.perReplicaNodeCount, or use nodes with more GPU memory",
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
    """Total number of nodes, with warnings on the deprecated `resource.count`, which counts only without inference."""
    count = workspace.spec.resource.count
    if workspace.spec.inference is None:
        used = () if count is None else (f"resource.count is deprecated: {count} is used as the number of nodes",)
        return count or 1, used
    ignored = (
        ()
        if count is None
        else (
            "resource.count is deprecated and has no effect: set inference.replicas and inference.perReplicaNodeCount",
        )
    )
    return workspace.replicas * per_replica, ignored
