"""Fields of a Workspace that are refused by name, or cause a warning."""

import re
from collections.abc import Iterator
from typing import Final

from plimsoll.cluster.nodes import may_be_spot
from plimsoll.estimating import preset_of, template_gpus
from plimsoll.model import Reason, Refusal
from plimsoll.model.api import PARTITION_FORBIDDEN, EnvironmentSpec, Workspace
from plimsoll.model.cluster import NVIDIA, VENDOR_RESOURCES
from plimsoll.model.dra import GPU_DRIVERS
from plimsoll.model.meta import dig
from plimsoll.plan.workspaces.gpu_claim import CLAIM
from plimsoll.presets import ModelCatalog, ModelPreset
from plimsoll.serving import refused_option
from plimsoll.text import shortlist

_VLLM_IMAGE: Final = re.compile(
    r"(?:^|/)vllm-openai:v?(\d{1,4}\.\d{1,4}\.\d{1,4})(?:-(?:x86_64|aarch64|cu\d{2,4}|ubuntu\d{4}))*(?:@.*)?$", re.ASCII
)
"""vLLM's own images of a release: tags with other endings are builds between releases."""
MOST_CONDITIONS: Final = 64
"""Of a selector of new nodes. Karpenter takes 100 requirements of a NodeClaim (maxItems of its definition), with those
of the NodePool and Plimsoll's own."""


def unsupported(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    """A refusal for the first field that is not supported, with what to use instead."""
    spec, auto_provisioning = workspace.spec, environment.auto_provisioning
    if spec.tuning is not None:
        count = spec.resource.count or 1
        if count > 1:
            return Refusal(
                Reason.INVALID_SPEC, f"tuning runs on one node, and resource.count is {count}: remove resource.count"
            )
        return Refusal(
            Reason.NOT_SUPPORTED,
            "tuning is not implemented: declare this Workspace with resource only, for which one node is provisioned, "
            f"and run the tuning as a Job with the nodeSelector plimsoll.dev/workspace: {workspace.name}"
            if auto_provisioning
            else "tuning is not implemented: run it as a Job on the nodes that resource.labelSelector matches",
        )
    if spec.resource.partition is not None and auto_provisioning:
        return Refusal(Reason.INVALID_SPEC, PARTITION_FORBIDDEN)
    conditions = len(spec.resource.label_selector.match_expressions)
    if auto_provisioning and conditions > MOST_CONDITIONS:
        return Refusal(
            Reason.INVALID_SPEC,
            f"resource.labelSelector.matchExpressions has {conditions} conditions, each of which is a requirement of "
            f"new nodes, and NodeClaims have at most {MOST_CONDITIONS} of them: remove some",
        )
    if spec.resource.claims and (by_claim := _of_template(workspace, environment)) is not None:
        return by_claim
    for adapter in spec.inference.adapters if spec.inference is not None else ():
        where = f"inference.adapters: adapter {adapter.source.name!r}"
        if adapter.source.urls:
            return Refusal(
                Reason.NOT_SUPPORTED,
                f"{where} uses source.urls, which is not supported: use an image or a volumeSource",
            )
        if adapter.strength is not None and float(adapter.strength) != 1:
            return Refusal(
                Reason.NOT_SUPPORTED,
                f"{where} has strength {adapter.strength}, but vLLM serves adapters at full strength only: remove "
                "it, and scale the adapter's own weights",
            )
    return None


def _of_template(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    """A refusal of a template that asks for GPUs itself, besides the claim that its pods get."""
    requested = template_gpus(workspace, environment)
    if isinstance(requested, Refusal):
        return requested
    if requested:
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.template requests {shortlist(sorted(requested))}, and resource.devices is claim: remove the "
            "request, and its pods claim the GPUs of their node",
        )
    claims = dig(workspace.template or {}, "spec.resourceClaims") or ()
    if any(isinstance(each, dict) and each.get("name") == CLAIM for each in claims):
        return Refusal(
            Reason.INVALID_SPEC,
            f"inference.template has a claim {CLAIM!r} in spec.resourceClaims, the name of the one that its pods get "
            "by resource.devices: rename it",
        )
    return None


def other_vendor(workspace: Workspace, resource: str) -> Refusal | None:
    """A refusal of a preset on GPUs of a driver or an extended resource other than NVIDIA's, for which its server is
    built; empty: that of the Environment."""
    inference = workspace.spec.inference
    vendor = (GPU_DRIVERS | VENDOR_RESOURCES).get(resource, "" if workspace.spec.resource.claims else NVIDIA)
    if inference is None or inference.preset is None or vendor == NVIDIA:
        return None
    return Refusal(
        Reason.NOT_SUPPORTED,
        f"preset {inference.preset.name!r} is served by an image for NVIDIA GPUs, and its nodes have those of "
        f"{resource}: use inference.template with an image for them",
    )


def refused_settings(workspace: Workspace, environment: EnvironmentSpec) -> Refusal | None:
    """A refusal of settings of a preset's pods with which the server could not start."""
    inference = workspace.spec.inference
    if inference is None or inference.preset is None:
        return None
    for field, settings in (
        ("inference.pods", inference.pods),
        ("presetPods of the Environment", environment.preset_pods),
    ):
        problem = refused_option(settings.options) if settings is not None else ""
        if problem:
            return Refusal(Reason.INVALID_SPEC, f"{field}: options: {problem}")
    return None


def missing_token(workspace: Workspace, environment: EnvironmentSpec, models: ModelCatalog) -> Refusal | None:
    """A refusal of a model that needs a token to be downloaded, and no Secret has one."""
    inference = workspace.spec.inference
    if inference is None or inference.preset is None:
        return None
    known, options = preset_of(inference, models), inference.preset.preset_options
    if not isinstance(known, ModelPreset) or not known.gated:
        return None
    weights = inference.weights or environment.weights
    if (weights is not None and weights.read_only) or (options is not None and options.model_access_secret):
        return None
    return Refusal(
        Reason.INVALID_SPEC,
        f"preset {known.name!r} is gated: Hugging Face gives {known.repository} only to those who accepted its "
        "license; set inference.preset.presetOptions.modelAccessSecret to a Secret with their token as HF_TOKEN",
    )


def older_image(workspace: Workspace, environment: EnvironmentSpec, models: ModelCatalog) -> Refusal | None:
    """A refusal of a model whose architecture the image's release of vLLM is known not to have: its server would end.

    The release is that of vLLM's own images by their tag, also in another registry. Others say nothing of it.
    """
    inference = workspace.spec.inference
    release = _VLLM_IMAGE.search(environment.inference_image)
    known = None if inference is None else preset_of(inference, models)
    if release is None or not isinstance(known, ModelPreset) or not known.newer_than:
        return None
    if _numbers(release[1]) > _numbers(known.newer_than):
        return None
    return Refusal(
        Reason.NOT_SUPPORTED,
        f"inferenceImage of the Environment is {environment.inference_image!r}, and vLLM {known.newer_than} does not "
        f"have the architecture of preset {known.name!r} yet: use an image of a newer release",
    )


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def unread(workspace: Workspace, environment: EnvironmentSpec) -> Iterator[str]:
    """Warnings on fields that have no effect: deprecated ones, and those that are for nodes that are provisioned."""
    resource = workspace.spec.resource
    field, paid = "capacityType", repr(resource.capacity_type) if resource.capacity_type else ""
    if resource.capacity_types:
        field, paid = "capacityTypes", shortlist(resource.capacity_types)
    if paid and not environment.auto_provisioning:
        tolerated = (
            " it only lets pods tolerate the taint of spot nodes," if may_be_spot(workspace, environment) else ""
        )
        yield (
            f"resource.{field} is {paid}, and existing nodes (BYO) are not chosen by it:{tolerated} so select "
            "the nodes by resource.labelSelector, or remove it"
        )
    idle, most = resource.idle_seconds or 0, environment.node_claims.idle_seconds
    if idle > most or (idle and not environment.auto_provisioning):
        why = f"nodeClaims.idleSeconds of the Environment is {most}, which counts"
        none = "only nodes that are created for it go with its replicas"
        yield f"resource.idleSeconds is {idle}, and {why if environment.auto_provisioning else none}"
    rollout = workspace.spec.inference.rollout if workspace.spec.inference is not None else None
    if rollout is not None and rollout.strategy == "Recreate" and rollout.max_surge is not None:
        yield (
            f"inference.rollout.maxSurge is {rollout.max_surge}, and has no effect with the strategy Recreate: set "
            "strategy to Surge, or remove it"
        )
    if resource.move_back_seconds is not None and not (workspace.moves_back and environment.auto_provisioning):
        surge = f"all {workspace.replicas} replicas move at once: set inference.rollout.strategy to Surge and maxSurge "
        surge += f"to {workspace.replicas} or more, or remove it"
        why = surge if environment.auto_provisioning else "it is for provisioned nodes: remove it"
        yield f"resource.moveBackSeconds has no effect: {why}"
    preferred = resource.preferred_nodes
    if preferred:
        yield (
            f"resource.preferredNodes is deprecated and has no effect ({shortlist(preferred)}): select the nodes by "
            "resource.labelSelector"
        )
