"""The pod that serves a preset: vLLM, with its model's files, options and adapters."""

import math
from collections.abc import Mapping, Set
from typing import Any, Final

from plimsoll.model import Serving, Tier
from plimsoll.model.api import Adapter, Environment, Inference, PresetPods, Weights
from plimsoll.presets import ModelPreset
from plimsoll.serving.pod_settings import apply_settings, settings_of

PORT: Final = 8000
HTTP: Final = "http"
"""Name of the port: OpenAI's API, `/health`, and Prometheus metrics under `/metrics`."""
ADAPTERS: Final = "/mnt/adapters"
"""Each adapter is in a directory of its name."""
IMAGE_DATA: Final = "/data"
"""Directory of an adapter's image with its files, as in KAITO."""
OPTIONS: Final = "/mnt/options"
OPTIONS_KEY: Final = "vllm.yaml"
"""Key of the ConfigMap in `inference.config`: options of vLLM without the leading dashes."""
TOKEN: Final = "HF_TOKEN"
"""Key of the Secret, and the variable that Hugging Face's libraries read."""
WEIGHTS: Final = "/mnt/weights"
"""Hugging Face's cache (`HF_HOME`), so that a container that restarts finds the weights that it downloaded."""
SHARED_MEMORY: Final = "/dev/shm"
HOME: Final = "/home/vllm"
"""Of the user `vllm` of vLLM's images."""

_PATIENCE_SECONDS: Final = 1800
"""Time to start besides the download: KAITO's readiness timeout."""
_SECONDS_PER_GIB: Final = 10
"""Time to download and load a GiB: about 100 MiB each second."""
_PERIOD: Final = 10
GRACE_SECONDS: Final = 120
"""Time for requests that run when a pod ends."""
DRAIN_SECONDS: Final = 10
"""Time for Services and gateways to learn that the pod ends, before the server does."""
CPUS_PER_GPU: Final = 1
MEMORY_GIB_PER_GPU: Final = 4
"""What the server requests for each GPU: little, so that it fits every GPU node, which it has for itself."""


def startup_seconds(known: ModelPreset | None, settings: PresetPods) -> int:
    """How long the server may take until it serves, download included."""
    if settings.startup_seconds is not None:
        return settings.startup_seconds
    return _PATIENCE_SECONDS + math.ceil((known.size_gib if known is not None else 0) * _SECONDS_PER_GIB)


def serve_preset(
    template: dict[str, Any],
    inference: Inference,
    serving: Serving,
    known: ModelPreset | None,
    environment: Environment,
) -> None:
    """Adds the container that serves the preset to a pod's template, with its volumes, probes and settings."""
    assert inference.preset is not None
    spec, settings = template.setdefault("spec", {}), settings_of(inference, environment.spec)
    name = inference.preset.name
    # The model comes first: `vllm serve` takes it by its position, and the entrypoint of the image is not the same in
    # each release.
    arguments = [known.repository if known is not None else name, "--served-model-name", name]
    arguments += _options(serving, known, environment)
    server: dict[str, Any] = {
        "name": "inference",
        "image": environment.spec.inference_image,
        "command": ["vllm", "serve"],
        "args": [*arguments, "--port", str(PORT)],
        "ports": [{"name": HTTP, "containerPort": PORT}],
        "env": [],
        "resources": {
            "requests": {"cpu": str(CPUS_PER_GPU * serving.gpus), "memory": f"{MEMORY_GIB_PER_GPU * serving.gpus}Gi"}
        },
        "startupProbe": _probe(math.ceil(startup_seconds(known, settings) / _PERIOD)),
        "readinessProbe": _probe(3),
        "livenessProbe": _probe(6),
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", str(DRAIN_SECONDS)]}}},
    }
    spec["containers"] = [server]
    spec["terminationGracePeriodSeconds"] = GRACE_SECONDS
    # Of a Service named vllm, the kubelet would make VLLM_PORT, which vLLM reads as its own variable.
    spec["enableServiceLinks"] = False
    # The engines of one pod exchange tensors through shared memory, of which a container has 64 MiB otherwise.
    _mount(spec, server, {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}, SHARED_MEMORY)
    _keep_weights(spec, server, inference.weights or environment.spec.weights)
    options = inference.preset.preset_options
    if options is not None and options.model_access_secret is not None:
        reference = {"name": options.model_access_secret, "key": TOKEN}
        server["env"].append({"name": TOKEN, "valueFrom": {"secretKeyRef": reference}})
    if inference.config is not None:
        server["args"] += ["--config", f"{OPTIONS}/{OPTIONS_KEY}"]
        _mount(spec, server, {"name": "options", "configMap": {"name": inference.config}}, OPTIONS)
    if inference.adapters:
        _add_adapters(spec, server, inference.adapters)
    if environment.spec.inference_user:
        _restrict(spec, environment.spec.inference_user, {each["name"] for each in settings.env})
    apply_settings(template, server, settings)


def _restrict(spec: dict[str, Any], user: int, declared: Set[str]) -> None:
    """Gives the pod a security context that Pod Security's level `restricted` admits. `declared` are variables that
    settings have.

    vLLM's images have the user 2000 with a home that the group 0 may write (https://github.com/vllm-project/vllm,
    pull request 40275). Volumes get a group of the same number, unless their root has it already.
    """
    spec["securityContext"] = {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": 0,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container["securityContext"] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    # Caches of vLLM, torch and Triton are below it. A user that the image does not have has no name either.
    [server] = spec["containers"]
    ours = (("HOME", HOME), ("USER", "vllm"))
    server["env"] += [{"name": name, "value": value} for name, value in ours if name not in declared]


def _probe(failures: int) -> dict[str, Any]:
    get = {"path": "/health", "port": HTTP}
    return {"httpGet": get, "periodSeconds": _PERIOD, "timeoutSeconds": 5, "failureThreshold": failures}


def _options(serving: Serving, known: ModelPreset | None, environment: Environment) -> list[str]:
    """The options that follow from the estimate, and those that the model needs."""
    options = {}
    if serving.tensor > 1 or serving.tier is Tier.DATA:
        options["tensor-parallel-size"] = str(serving.tensor)
    if serving.data > 1:
        options["data-parallel-size"] = str(serving.data)
    if serving.tier is Tier.PIPELINE:
        options["pipeline-parallel-size"] = str(serving.pipeline)
    options["max-model-len"] = str(serving.context_length)
    options["gpu-memory-utilization"] = f"{serving.utilization:g}"
    if environment.spec.estimator.kv_value_bytes == 1:
        options["kv-cache-dtype"] = "fp8"
    options |= known.options if known is not None else {}
    return [part for option, value in options.items() for part in (f"--{option}", *([value] if value else ()))]


def _keep_weights(spec: dict[str, Any], server: dict[str, Any], weights: Weights | None) -> None:
    """Adds the volume with the model's files. A volume that is only read must have them already."""
    source: Mapping[str, Any] = {"emptyDir": {}} if weights is None else weights.volume_source
    _mount(spec, server, {"name": "weights", **source}, WEIGHTS)
    server["env"].append({"name": "HF_HOME", "value": WEIGHTS})
    if weights is not None and weights.read_only:
        server["volumeMounts"][-1]["readOnly"] = True
        server["env"].append({"name": "HF_HUB_OFFLINE", "value": "1"})


def _add_adapters(spec: dict[str, Any], server: dict[str, Any], adapters: tuple[Adapter, ...]) -> None:
    """Adds the adapters: files from images are copied by init containers, volumes are mounted."""
    copied = [adapter for adapter in adapters if adapter.source.image is not None]
    if copied:
        _mount(spec, server, {"name": "adapters", "emptyDir": {}}, ADAPTERS)
        spec["initContainers"] = [
            {
                "name": f"adapter-{position}",
                "image": adapter.source.image,
                "command": ["cp", "-r", f"{IMAGE_DATA}/.", f"{ADAPTERS}/{adapter.source.name}"],
                "volumeMounts": [{"name": "adapters", "mountPath": ADAPTERS}],
            }
            for position, adapter in enumerate(copied)
        ]
        secrets = sorted({secret for adapter in copied for secret in adapter.source.image_pull_secrets})
        if secrets:
            spec["imagePullSecrets"] = [{"name": secret} for secret in secrets]
    for position, adapter in enumerate(adapters):
        if adapter.source.volume_source is not None:
            volume = {"name": f"adapter-{position}", **adapter.source.volume_source}
            _mount(spec, server, volume, f"{ADAPTERS}/{adapter.source.name}")
    server["args"] += ["--enable-lora", "--max-loras", str(len(adapters)), "--lora-modules"]
    server["args"] += [f"{adapter.source.name}={ADAPTERS}/{adapter.source.name}" for adapter in adapters]


def _mount(spec: dict[str, Any], container: dict[str, Any], volume: dict[str, Any], path: str) -> None:
    spec.setdefault("volumes", []).append(volume)
    mount = {"name": volume["name"], "mountPath": path}
    container.setdefault("volumeMounts", []).append(mount)
