"""A replica on several nodes: a Ray cluster whose leader serves."""

import shlex
from typing import Any, Final

RAY_PORT: Final = 6379
SHELL: Final = ["/bin/sh", "-c"]
LEADER_INDEX: Final = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
"""Label of the leaders of a LeaderWorkerSet."""
_SERVER_ONLY: Final = ("ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle")

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
    _name_host(server)


def follow(spec: dict[str, Any]) -> None:
    """Turns the pod that serves the preset on one node into a worker with the same files, and no port or probe."""
    [server] = spec["containers"]
    server |= {"command": SHELL, "args": [_WORKER.format(port=RAY_PORT)]}
    for field in _SERVER_ONLY:
        server.pop(field, None)
    _name_host(server)


def _name_host(server: dict[str, Any]) -> None:
    """Sets the address by which vLLM's processes find each other: a pod may have several."""
    address = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    server["env"] = [*server.get("env", ()), address]
