"""The containers that serve a preset: vLLM, on several nodes as a Ray cluster."""

import shlex
from typing import Any, Final

from plimsoll.model import Verdict
from plimsoll.model.api import Adapter, Environment, Inference
from plimsoll.plan.estimating import preset

PORT: Final = 8000
ADAPTERS: Final = "/mnt/adapters"
"""Each adapter is in a directory of its name."""
IMAGE_DATA: Final = "/data"
"""Directory of an adapter's image with its files, as in KAITO."""
OPTIONS: Final = "/mnt/options"
OPTIONS_KEY: Final = "vllm.yaml"
"""Key of the ConfigMap in `inference.config`: options of vLLM without the leading dashes."""
TOKEN: Final = "HF_TOKEN"
"""Key of the Secret, and the variable that Hugging Face's libraries read."""


def serve_preset(spec: dict[str, Any], inference: Inference, verdict: Verdict, environment: Environment) -> None:
    """Adds the container that serves the preset to a pod's spec, with its volumes."""
    assert inference.preset is not None
    name = inference.preset.name
    known = preset(name)
    arguments = ["--model", known.repository if known else name, "--served-model-name", name]
    gpus = verdict.gpus_per_pod or verdict.gpus_per_node or 1
    if gpus > 1:
        arguments += ["--tensor-parallel-size", str(gpus)]
    if inference.context_length is not None:
        arguments += ["--max-model-len", str(inference.context_length)]
    if (verdict.per_replica_node_count or 1) > 1:
        arguments += ["--pipeline-parallel-size", str(verdict.per_replica_node_count)]
    server: dict[str, Any] = {
        "name": "inference",
        "image": environment.spec.inference_image,
        "args": [*arguments, "--port", str(PORT)],
        "ports": [{"name": "http", "containerPort": PORT}],
    }
    spec["containers"] = [server]
    options = inference.preset.preset_options
    if options is not None and options.model_access_secret is not None:
        reference = {"name": options.model_access_secret, "key": TOKEN}
        server["env"] = [{"name": TOKEN, "valueFrom": {"secretKeyRef": reference}}]
    if inference.config is not None:
        server["args"] += ["--config", f"{OPTIONS}/{OPTIONS_KEY}"]
        _mount(spec, server, {"name": "options", "configMap": {"name": inference.config}}, OPTIONS)
    if inference.adapters:
        _add_adapters(spec, server, inference.adapters)


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


RAY_PORT: Final = 6379
SHELL: Final = ["/bin/sh", "-c"]

_LEADER: Final = """\
set -e
ray start --head --port={port}
until python3 -c 'import os, ray; ray.init(address="auto", logging_level="ERROR"); \
alive = sum(node["Alive"] for node in ray.nodes()); raise SystemExit(alive < int(os.environ["LWS_GROUP_SIZE"]))'
do sleep 2; done
exec {serve}
"""
"""The leader waits for all nodes of its group, because vLLM fails if it finds too few GPUs."""
_WORKER: Final = """\
until ray health-check --address "$LWS_LEADER_ADDRESS:{port}"; do sleep 2; done
exec ray start --address="$LWS_LEADER_ADDRESS:{port}" --block
"""
"""The worker waits for its leader: if it ended, the whole group would be recreated."""


def lead(spec: dict[str, Any]) -> None:
    """Turns the pod that serves the preset on one node into the leader of its group."""
    [server] = spec["containers"]
    serve = ["python3", "-m", "vllm.entrypoints.openai.api_server", *server["args"]]
    serve += ["--distributed-executor-backend", "ray"]
    server |= {"command": SHELL, "args": [_LEADER.format(port=RAY_PORT, serve=shlex.join(serve))]}


def follow(spec: dict[str, Any]) -> None:
    """Turns the pod that serves the preset on one node into a worker with the same files and no port."""
    [server] = spec["containers"]
    server |= {"command": SHELL, "args": [_WORKER.format(port=RAY_PORT)]}
    del server["ports"]
