"""Nodes that Karpenter launches: missing ones are created, those no longer needed are deleted."""

import json

from demo.byo import NAMESPACE
from demo.stage import CommandFailedError, Stage, declare

REPLICAS = 3
"""Of the Workspace in stacks/Pulumi.sandbox-nap.yaml; each has a node of its own."""


def declare_environment(stage: Stage) -> str:
    return declare(stage, "sandbox-nap")


def settle(stage: Stage) -> str:
    """Three NodeClaims of the Workspace's instance type, then the workload."""
    stage.run("plimsoll", "run", "--once", user="controller")
    claims = _claims(stage)
    if len(claims) != REPLICAS:
        raise CommandFailedError(f"{REPLICAS} replicas need as many NodeClaims, and there are: {_names(claims)}")
    lines = [f"NodeClaim {name} -> node {node}" for name, node in sorted(claims.items())]

    def ready() -> bool:
        status = stage.get("deployment", "chat", "-n", NAMESPACE).get("status", {})
        return bool(status.get("readyReplicas") == len(claims))

    stage.wait("the workload runs", ready)
    return "\n".join([f"{len(claims)} NodeClaims, {len(claims)} nodes, {len(claims)} pods ready", *lines])


def scale_down(stage: Stage) -> str:
    """Replicas go from 3 to 1 by `pulumi up`; the next delta deletes two NodeClaims."""
    before = _claims(stage)
    stage.run(
        *("pulumi", "config", "set", "--stack", "sandbox-nap", "--path"),
        *("plimsoll:workspaces.chat.inference.replicas", "1"),
    )
    stage.run("pulumi", "up", "--yes", "--skip-preview", "--stack", "sandbox-nap")
    plan = stage.run("plimsoll", "plan")
    stage.run("plimsoll", "run", "--once", user="controller")
    after = _claims(stage)
    gone = sorted(set(before) - set(after))
    if len(after) != 1 or not set(after) < set(before):
        raise CommandFailedError(f"One of {_names(before)} should be left, and there are: {_names(after)}")
    planned = [line.strip() for line in plan.splitlines() if line.startswith("  - ")]
    return "\n".join([f"{len(before)} NodeClaims -> {len(after)}", *planned, f"deleted: {', '.join(gone)}"])


def refuse_destroy(stage: Stage) -> str:
    """Runs `pulumi destroy` of the foundation while capacity exists; it is refused."""
    stack, denied = "sandbox-nap-foundation", "denied request: "
    before = _declared(stage, stack)
    said = stage.refused("pulumi", "destroy", "--yes", "--skip-preview", "--stack", stack, by=denied)
    deleted = before - _declared(stage, stack)
    if deleted:
        raise CommandFailedError(f"Deleted in spite of the refusal: {', '.join(sorted(deleted))}")
    reason = next(line for line in said.splitlines() if denied in line).partition(denied)[2].strip()
    return f"refused, nothing is deleted\n{reason}"


def destroy(stage: Stage) -> str:
    stage.run("plimsoll", "destroy", "--yes")
    left = stage.run("kubectl", "get", "nodeclaims", "--no-headers", "--ignore-not-found").strip()
    if left:
        raise CommandFailedError(f"NodeClaims are left after `plimsoll destroy`:\n{left}")
    return "NodeClaims left: none"


def _names(claims: dict[str, str]) -> str:
    return ", ".join(sorted(claims)) or "none"


def _declared(stage: Stage, stack: str) -> set[str]:
    """The URNs of what the stack's state has."""
    state = json.loads(stage.run("pulumi", "stack", "export", "--stack", stack))
    return {each["urn"] for each in state["deployment"]["resources"]}


def _claims(stage: Stage) -> dict[str, str]:
    """Node of each NodeClaim that the engine made."""
    claims = stage.get("nodeclaims", "-l", "plimsoll.dev/workspace")["items"]
    return {claim["metadata"]["name"]: claim.get("status", {}).get("nodeName", "") for claim in claims}
