"""A preset that spans nodes: the pods of one replica form a Ray cluster, and vLLM serves from its leader.

LeaderWorkerSet sets LWS_LEADER_ADDRESS, LWS_GROUP_SIZE and LWS_WORKER_INDEX in every container of a group.
"""

import shlex
from typing import Any, Final

PORT: Final = 6379
SHELL: Final = ["/bin/sh", "-c"]

_LEADER: Final = """\
set -e
ray start --head --port={port}
until python3 -c 'import os, ray; ray.init(address="auto", logging_level="ERROR"); \
alive = sum(node["Alive"] for node in ray.nodes()); raise SystemExit(alive < int(os.environ["LWS_GROUP_SIZE"]))'
do sleep 2; done
exec {serve}
"""
"""The leader waits for all nodes of its group: an engine that finds fewer GPUs than it needs gives up."""
_WORKER: Final = """\
until ray health-check --address "$LWS_LEADER_ADDRESS:{port}"; do sleep 2; done
exec ray start --address="$LWS_LEADER_ADDRESS:{port}" --block
"""
"""A worker that ended because its leader is not up yet would have the whole group made anew."""


def lead(spec: dict[str, Any]) -> None:
    """Turns the pod that serves the preset on one node into its group's leader."""
    [server] = spec["containers"]
    serve = ["python3", "-m", "vllm.entrypoints.openai.api_server", *server["args"]]
    serve += ["--distributed-executor-backend", "ray"]
    server |= {"command": SHELL, "args": [_LEADER.format(port=PORT, serve=shlex.join(serve))]}


def follow(spec: dict[str, Any]) -> None:
    """Turns the pod that serves the preset on one node into a worker: it reads the same files, and serves nobody."""
    [server] = spec["containers"]
    server |= {"command": SHELL, "args": [_WORKER.format(port=PORT)]}
    del server["ports"]
