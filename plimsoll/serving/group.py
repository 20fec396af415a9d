"""A replica on several nodes: the processes of its pods find each other, and the leader serves."""

from typing import Any, Final

LEADER_INDEX: Final = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
"""Label of the leaders of a LeaderWorkerSet."""
_SERVER_ONLY: Final = ("ports", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle")


def lead(spec: dict[str, Any], patience: int) -> None:
    """Turns the pod that serves the preset on one node into the leader of its group.

    The pods of a group wait `patience` seconds for each other: their nodes may not be launched at the same time.
    """
    [server] = spec["containers"]
    # LeaderWorkerSet sets the variables; vLLM's documentation has the same arguments.
    server["args"] = [
        *server["args"],
        *("--nnodes", "$(LWS_GROUP_SIZE)", "--node-rank", "$(LWS_WORKER_INDEX)"),
        *("--master-addr", "$(LWS_LEADER_ADDRESS)", "--distributed-timeout-seconds", str(patience)),
    ]
    # The address by which vLLM's processes find each other: a pod may have several.
    address = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    server["env"] = [*server.get("env", ()), address]


def follow(spec: dict[str, Any], patience: int) -> None:
    """Turns the pod that serves the preset on one node into a worker with the same files, and no port or probe."""
    lead(spec, patience)
    [server] = spec["containers"]
    server["args"].append("--headless")
    for field in _SERVER_ONLY:
        server.pop(field, None)
