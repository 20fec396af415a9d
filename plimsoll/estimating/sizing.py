"""How many nodes a Workspace needs: the GPU memory that one replica needs, compared with the GPUs of a node."""

import math
from typing import Final, NamedTuple

from plimsoll.estimating.estimates import Estimates
from plimsoll.estimating.estimator import Infeasible, MemoryNeed, ModelNeed, unknown_context
from plimsoll.model import Reason, Refusal, Serving
from plimsoll.model.api import Alternative, Inference, Workspace
from plimsoll.model.cluster import MIB_PER_GIB, Device
from plimsoll.presets import InvalidModelConfigError, ModelCatalog, ModelPreset, ModelShape, with_parameters
from plimsoll.text import counted, did_you_mean


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
    template: bool = False
    """Whether the Workspace runs a template, whose server is not known."""

    @property
    def least_mib(self) -> int:
        """Minimum memory of one replica in MiB: the declared need, or the model's weights."""
        if self.need is None:
            return 0
        gib = self.need.gpu_memory_gib if isinstance(self.need, MemoryNeed) else self.need.size_gib
        return math.ceil(gib * MIB_PER_GIB)

    @property
    def _shape(self) -> ModelShape | None:
        model = self.need.model if isinstance(self.need, MemoryNeed) else self.need
        return model.shape if model is not None else None

    @property
    def most_nodes(self) -> int | None:
        """Nodes over which a replica can be split, as each needs a layer of the model; None if they are not known."""
        return self._shape.layers if self._shape is not None else None

    def usable_gpus(self, gpus: Device) -> int:
        """GPUs of one node over which the model can be split: only as its heads allow."""
        return gpus.count if self._shape is None else self._shape.tensor_sizes(gpus.count)[-1]

    def beyond_heads(self, gpus: Device) -> str:
        """Over how many of a node's GPUs the model is split, for messages; empty where over all."""
        usable = self.usable_gpus(gpus)
        if usable == gpus.count:
            return ""
        return f", and the model's heads let it be split over {counted(usable, 'GPU')} of a node"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not known of the model, and what to set."""
        unknown = unknown_context(self.need, self.context_length) if self.need is not None else ""
        return (f"the context is {unknown}: set inference.contextLength, or complete the config",) if unknown else ()

    def serving(self, gpus: Device, nodes: int, estimates: Estimates) -> Serving | None:
        """How the server of a preset runs a replica on that many nodes; None for a template."""
        if self.template or self.need is None:
            return None
        return estimates.serving(self.need, gpus, nodes, self.context_length)


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
    surge: int | None = None
    """BYO: pods that a rollout may have more than replicas now; None if it has none, or new nodes are for them."""
    devices: int | None = 0
    """Devices that a pod requests for a whole node, or for its part of one; None where they are not known."""
    node_labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """BYO: labels that the pods' nodes must have, each with its values; an empty value: or no such label."""
    resource: str = ""
    """The extended resource of these devices; empty: that of the Environment."""
    serving: Serving | None = None
    """How the server of a preset runs; None for a template."""
    requested: int | None = 0
    """Devices that a pod uses on a node: its template's own number, if that sets one."""
    pods_per_node: int = 0
    """Number of pods per node where pods request part of a node; 0: one pod has the whole node."""
    gpus: int | None = 0
    """GPUs of a node, as limits count them; None where they are not known."""
    alternative: Alternative | None = None
    """What was chosen, where the Workspace names several instance types or ways to pay."""
    move_back_to: Alternative | None = None
    """The first of these, if its replicas run on another and move to it."""
    warnings: tuple[str, ...] = ()

    def pods(self, replicas: int) -> int:
        """Pods of so many replicas."""
        return replicas if self.pods_per_node else replicas * self.per_replica


class ReplicaSize(NamedTuple):
    """What one replica takes."""

    nodes: int
    warning: str = ""
    serving: Serving | None = None
    """How the server of a preset runs there; None for a template."""
    parted: bool = False
    """Whether a replica has part of a node."""

    @property
    def warnings(self) -> tuple[str, ...]:
        unused = _unused(self.serving, self.parted) if self.serving is not None and self.serving.unused else ""
        return tuple(each for each in (self.warning, unused) if each)

    def __str__(self) -> str:
        how = f": {self.serving}" if self.serving is not None else ""
        return f"{counted(self.nodes, 'node')}{how}"


def _unused(serving: Serving, parted: bool) -> str:
    used, gpus = serving.gpus, serving.unused
    of = "part" if parted else "node"
    stay = f"1 GPU of each {of} stays" if gpus == 1 else f"{gpus} GPUs of each {of} stay"
    advice = f"lower resource.partition.count to {used}" if parted else f"use nodes with {counted(used, 'GPU')}"
    engines = f", and runs {counted(serving.data, 'engine')} of it" if serving.data > 1 else ""
    why = f"vLLM cannot split the model over more than {serving.tensor} (heads, vocabulary, widths){engines}"
    return f"{stay} unused, because {why}: {advice}"


def preset_of(inference: Inference, models: ModelCatalog) -> ModelPreset | Refusal | None:
    """The preset that is served; None for a template, and for an unknown model whose `gpuMemoryGiB` is declared."""
    if inference.preset is None:
        return None
    name, parameters = inference.preset.name, inference.preset.parameters
    known = models.find(name)
    if parameters is not None:
        try:
            return with_parameters(name, parameters, known)
        except InvalidModelConfigError as error:
            return Refusal(
                Reason.INVALID_SPEC,
                f"inference.preset.parameters.config: {error.message}: give the fields of the model's config.json",
            )
    if known is not None or inference.gpu_memory_gib is not None:
        return known
    why = models.why_not(name)
    if why:
        return Refusal(Reason.UNKNOWN_PRESET, f"preset {name!r} is not known, and {why}")
    hint = did_you_mean(models.near(name))
    return Refusal(
        Reason.UNKNOWN_PRESET,
        f"preset {name!r} is not known"
        + (f" ({hint})" if hint else "")
        + ": use a known one, set inference.preset.parameters to the size and the config.json of the model, or set "
        "inference.gpuMemoryGiB to the GPU memory of one replica" + (_HUB if "/" in name else ""),
    )


_HUB: Final = (
    "; modelHub of the Environment would let any model of Hugging Face be named, and `plimsoll estimate ORG/NAME --hub "
    "https://huggingface.co` says what it needs"
)


def replica_need(workspace: Workspace, models: ModelCatalog) -> ReplicaNeed | Refusal | None:
    """The need that the Workspace declares or its preset has; None if it declares no inference."""
    inference = workspace.spec.inference
    if inference is None:
        return None
    declared = inference.gpu_memory_gib
    per_replica = inference.per_replica_node_count
    if inference.preset is None:
        need = None if declared is None else MemoryNeed(declared, spans_nodes=(per_replica or 1) > 1)
        return ReplicaNeed("the template", need, (per_replica or 1) > 1, per_replica, None, template=True)
    known = preset_of(inference, models)
    if isinstance(known, Refusal):
        return known
    refusal = _not_servable(inference, known)
    if refusal is not None:
        return refusal
    model = None
    if known is not None:
        model = ModelNeed(known.size_gib, known.bytes_per_token, known.spans_nodes, known.shape)
    spans = known.spans_nodes if known is not None else (per_replica or 1) > 1
    subject = f"preset {(known.name if known is not None else inference.preset.name)!r}"
    stated: MemoryNeed | ModelNeed | None = model
    if declared is not None:
        stated = MemoryNeed(declared, spans_nodes=spans, model=model)
    assert stated is not None, "an unknown model without gpuMemoryGiB is refused"
    return ReplicaNeed(subject, stated, spans, per_replica, known, inference.context_length)


def _not_servable(inference: Inference, known: ModelPreset | None) -> Refusal | None:
    """Refuses what the server would refuse once its nodes are there."""
    assert inference.preset is not None
    if any(adapter.source.name == inference.preset.name for adapter in inference.adapters):
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.adapters: an adapter has the preset's name {inference.preset.name!r}, by which requests name "
            "the model: give it another source.name",
        )
    if inference.preset.name.startswith("-") or (known is not None and known.repository.startswith("-")):
        return Refusal(
            Reason.INVALID_SPEC, f"preset {inference.preset.name!r}: the server would take the name for an option"
        )
    context_length = inference.context_length
    limit = known.context_limit if known is not None else None
    if known is not None and context_length is not None and limit is not None and context_length > limit:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.contextLength is {context_length}, and preset {known.name!r} supports at most {limit} tokens: "
            "lower it",
        )
    per_replica = inference.per_replica_node_count
    if known is not None and per_replica is not None and per_replica > known.shape.layers:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.perReplicaNodeCount is {per_replica}, and preset {known.name!r} has {known.shape.layers} "
            "layers, of which each node of a replica needs one: lower it",
        )
    return None


def nodes_per_replica(need: ReplicaNeed, gpus: Device, node: str, estimates: Estimates) -> ReplicaSize | Refusal:
    """What one replica takes, with a warning where it may not suffice; `node` names such a node in messages.

    `inference.perReplicaNodeCount` is used if it is set. A value below the estimate causes a warning; it is refused
    only if not even the weights fit, or if the model cannot span nodes.
    """
    total_mib = gpus.count * (gpus.memory_mib or 0)
    has = (
        f"{node} has a total of {total_mib} MiB ({gpus.count} x {gpus.memory_mib} MiB {gpus.product})"
        f"{need.beyond_heads(gpus)}"
    )
    requires = f"but {need.subject} requires at least {need.least_mib} MiB"
    if need.per_replica is not None and need.per_replica > 1 and not need.spans_nodes:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.perReplicaNodeCount is {need.per_replica}, but {need.subject} runs on one node only: remove "
            "it, or set it to 1",
        )
    if need.need is None:
        return ReplicaSize(need.per_replica or 1)
    outcome = estimates.of(need.need, gpus, need.context_length)
    if need.per_replica is None:
        if isinstance(outcome, Infeasible):
            return Refusal(
                Reason.INSUFFICIENT_GPU_MEMORY, f"Insufficient total GPU memory: {has}, {requires}; {outcome.reason}"
            )
        serving = need.serving(gpus, outcome.nodes, estimates)
        too_long = too_long_context(need, serving, node)
        return too_long or ReplicaSize(outcome.nodes, start_doubt(need, serving), serving)
    if need.per_replica * need.usable_gpus(gpus) * (gpus.memory_mib or 0) < need.least_mib:
        return Refusal(
            Reason.INSUFFICIENT_GPU_MEMORY,
            f"Insufficient total GPU memory: {has}, {requires} over {counted(need.per_replica, 'node')}; raise "
            "inference.perReplicaNodeCount, or use nodes with more GPU memory",
        )
    serving = need.serving(gpus, need.per_replica, estimates)
    too_long = too_long_context(need, serving, node)
    if too_long is not None:
        return too_long
    needed = outcome.nodes
    warning = ""
    if needed is None or needed > need.per_replica:
        warning = (
            f"inference.perReplicaNodeCount is {need.per_replica}, but the estimate for {need.subject} on such nodes "
            + (f"is {needed}" if needed else f"says: {outcome.reason}" if isinstance(outcome, Infeasible) else "")
            + "; it may run out of GPU memory"
        )
    return ReplicaSize(need.per_replica, warning or start_doubt(need, serving), serving)


def too_long_context(need: ReplicaNeed, serving: Serving | None, node: str) -> Refusal | None:
    """A refusal of the context that the Workspace sets, where its KV cache does not fit: the server would not start."""
    context_length = need.context_length
    fits = None if serving is None else serving.longest
    if context_length is None or serving is None or fits is None or fits >= context_length:
        return None
    return Refusal(
        Reason.INSUFFICIENT_GPU_MEMORY,
        f"inference.contextLength is {context_length}, and beside the weights of {need.subject} the KV cache of "
        f"{counted(fits, 'token')} fits {node} ({serving.tier.value} parallelism): lower it, or use nodes with "
        "more GPU memory",
    )


def start_doubt(need: ReplicaNeed, serving: Serving | None) -> str:
    """A warning where a model of declared memory may not start: its figures are not known, or say that it is too little
    for the context that is served."""
    if serving is None:
        return ""
    fits = serving.longest
    if fits is None:
        gpus = serving.gpus * serving.pipeline
        split = f"that vLLM can split it over {counted(gpus, 'GPU')} nor " if gpus > 1 else ""
        return (
            f"the layers and heads of {need.subject} are not known, so it is not checked {split}that a context of "
            f"{serving.context_length} tokens fits, which it serves: set inference.preset.parameters"
        )
    if fits >= serving.context_length:
        return ""
    return (
        f"{need.subject} may run out of GPU memory: beside its weights the KV cache of {counted(fits, 'token')} fits, "
        f"and the context is {serving.context_length}: raise inference.gpuMemoryGiB or perReplicaNodeCount"
    )


def nodes_in_all(workspace: Workspace, per_replica: int) -> tuple[int, tuple[str, ...]]:
    """Total number of nodes, with warnings on the deprecated `resource.count`, which counts for no preset."""
    count = workspace.spec.resource.count
    nodes = workspace.replicas * per_replica
    if workspace.spec.inference is None:
        used = () if count is None else (f"resource.count is deprecated: {count} is used as the number of nodes",)
        return count or 1, used
    if count is None:
        return nodes, ()
    instead = "set inference.replicas and inference.perReplicaNodeCount, and remove it"
    effect = "has no effect with a preset" if workspace.template is None else f"makes {counted(count, 'node')} at least"
    return nodes, (f"resource.count is deprecated and {effect}: {instead}",)
