"""Settings of a preset's pods that the Environment or the Workspace declares."""

import copy
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from plimsoll.model.api import EnvironmentSpec, Inference, PodResources, PresetPods
from plimsoll.presets import COMPUTED
from plimsoll.text import did_you_mean, nearest

OPTIONS_OF: Final = "v0.32.0"
"""The release of vLLM whose options `vllm_options.txt` lists, one a line: those of its arg_utils.py and cli_args.py."""
_FIXED: Final = re.compile(
    r"(data-parallel-|prefill-context-parallel-|ssl-|master-|headless|host$|uds$|device-ids|kv-cache-memory-bytes).*"
)
"""Options besides COMPUTED that would change how the server is split, or where its probes and Service find it."""
_ENDPOINT: Final = "HF_ENDPOINT"


def settings_of(inference: Inference, environment: EnvironmentSpec) -> PresetPods:
    """The settings of the pods of a Workspace's preset, with the hub of the Environment as their HF_ENDPOINT."""
    own = inference.pods or PresetPods()
    found = own.over(environment.preset_pods)
    hub = environment.model_hub
    if hub is None or not hub.mirrors or any(each["name"] == _ENDPOINT for each in found.env):
        return found
    return found.model_copy(update={"env": ({"name": _ENDPOINT, "value": hub.endpoint}, *found.env)})


def refused_option(options: Mapping[str, str]) -> str:
    """Why `vllm serve` cannot have one of these options, with what to change; empty if it can have them."""
    for option in options:
        if {option, option.removeprefix("no-")} & COMPUTED or _FIXED.fullmatch(option):
            return f"{option!r} follows from the Workspace and the estimate: remove it"
        if option.removeprefix("no-") not in _known():
            near = did_you_mean(nearest(option, sorted(_known())))
            return (
                f"vLLM {OPTIONS_OF} has no option {option!r}"
                + (f" ({near})" if near else "")
                + ": correct it; those of another release can be in the ConfigMap of inference.config"
            )
    return ""


def resources_of(settings: PodResources, ours: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The container's resources; what only has a limit requests that, as in Kubernetes."""
    left = {resource: amount for resource, amount in ours.items() if resource not in settings.limits}
    found = {"requests": {**left, **settings.requests}, "limits": dict(settings.limits)}
    return {part: amounts for part, amounts in found.items() if amounts}


@cache
def _known() -> frozenset[str]:
    return frozenset(resources.files("plimsoll.serving").joinpath("vllm_options.txt").read_text("utf-8").split())


def apply_settings(template: dict[str, Any], server: dict[str, Any], settings: PresetPods) -> None:
    """Adds the settings to the pods' template and the server's container; tolerations are added with others."""
    metadata, spec = template.setdefault("metadata", {}), template["spec"]
    for field, values in (("labels", settings.labels), ("annotations", settings.annotations)):
        if values:
            metadata[field] = {**values, **metadata.get(field, {})}
    for field, name in (
        ("serviceAccountName", settings.service_account_name),
        ("runtimeClassName", settings.runtime_class_name),
        ("priorityClassName", settings.priority_class_name),
    ):
        if name is not None:
            spec[field] = name
    if settings.image_pull_secrets:
        others = [each["name"] for each in spec.get("imagePullSecrets", ())]
        spec["imagePullSecrets"] = [{"name": each} for each in dict.fromkeys((*settings.image_pull_secrets, *others))]
    if settings.node_affinity is not None:
        spec.setdefault("affinity", {})["nodeAffinity"] = copy.deepcopy(settings.node_affinity)
    _secure(spec, settings)
    # Ours come last: of two variables with one name, the last counts.
    server["env"] = [*copy.deepcopy(list(settings.env)), *server["env"]]
    if settings.resources is not None:
        server["resources"] = resources_of(settings.resources, server["resources"]["requests"])
    # One argument each: a value that begins with dashes is no other option.
    server["args"] += [f"--{option}={value}" if value else f"--{option}" for option, value in settings.options.items()]


def _secure(spec: dict[str, Any], settings: PresetPods) -> None:
    """Sets the fields of security contexts, over those of the user that runs the pods."""
    own = copy.deepcopy(settings.security_context)
    if own:
        context = spec.setdefault("securityContext", {})
        if own.get("runAsUser") == 0:  # the kubelet would start no container
            context.pop("runAsNonRoot", None)
        context.update(own)
    if settings.container_security_context:
        for container in (*spec["containers"], *spec.get("initContainers", ())):
            of_container = container.setdefault("securityContext", {})
            of_container.update(copy.deepcopy(settings.container_security_context))
