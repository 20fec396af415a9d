"""Workspaces and the objects that Plimsoll created for them, as text and as JSON."""

from typing import Any

from rich.table import Table
from rich.text import Text

from plimsoll.cli.shared import OUT, print_table
from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.pods import competing_warnings
from plimsoll.cluster.pools import unknown_pools
from plimsoll.cost import Prices, cluster_cost
from plimsoll.model import InvalidObject, Reason, Snapshot
from plimsoll.model.api import ConditionType, Environment, GPUDemand, Workspace
from plimsoll.model.cluster import SERVICE, Workload
from plimsoll.model.karpenter import NodeClaim
from plimsoll.model.meta import condition_of
from plimsoll.plan.owned import phase_of
from plimsoll.text import counted, shortlist


def as_json(snapshot: Snapshot, namespace: str | None = None) -> dict[str, Any]:
    """`environment`, `cost`, `workspaces`, `nodeClaims`, `workloads`, `demands`, `warnings`; Workspaces of one
    namespace."""

    def wanted(name: str) -> bool:
        return namespace is None or name == namespace

    workspaces = [_workspace(each) for each in snapshot.workspaces if wanted(each.namespace)]
    workspaces += [_invalid(each) for each in snapshot.invalid_workspaces if wanted(each.ref.namespace)]
    claims = [_node_claim(each) for each in snapshot.node_claims if all(each.owner[:2]) and wanted(each.owner[0])]
    workloads = [_workload(each) for each in snapshot.workloads if wanted(each.namespace) and each.kind != SERVICE]
    # Without any NodePool, it is not known whether they may be read.
    unknown = unknown_pools(snapshot) if snapshot.node_pools else ()
    return {
        "environment": _environment(snapshot.environment),
        "cost": _cost(snapshot),
        "workspaces": sorted(workspaces, key=lambda each: (each["namespace"], each["name"])),
        "nodeClaims": sorted(claims, key=lambda each: (each["workspace"], each["name"])),
        "workloads": sorted(workloads, key=lambda each: (each["namespace"], each["kind"], each["name"])),
        "demands": sorted(map(_demand, snapshot.gpu_demands), key=lambda each: str(each["name"])),
        "warnings": [*snapshot.warnings, *unknown, *competing_warnings(snapshot.pods)],
    }


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        "name": environment.name,
        "nodeAutoProvisioning": environment.spec.node_auto_provisioning,
        "provisioner": environment.spec.effective_provisioner.value,
        "nodeClaims": environment.status.node_claims,
        "workloads": environment.status.workloads,
    }


def _cost(snapshot: Snapshot) -> dict[str, Any] | None:
    """Prices an hour; None without GPU nodes."""
    cost = cluster_cost(gpu_ledger(snapshot).accounts(), Prices.of(snapshot))
    if not cost.nodes and not cost.unpriced:
        return None
    return {
        "hourly": cost.hourly,
        "idle": cost.idle,
        "nodes": cost.nodes,
        "nodesWithoutPrice": sum(cost.unpriced.values()),
        "typesWithoutPrice": list(cost.unpriced),
        "prices": cost.basis.as_json(),
        "basis": str(cost.basis),
    }


def _workspace(workspace: Workspace) -> dict[str, Any]:
    conditions = workspace.status.conditions
    resource = condition_of(conditions, ConditionType.RESOURCE_READY)
    refusals = {reason.value for reason in Reason if reason is not Reason.ACCEPTED}
    return {
        "namespace": workspace.namespace,
        "name": workspace.name,
        "accepted": None if resource is None else resource.reason not in refusals,
        "reason": resource.reason if resource is not None else "",
        "message": resource.message if resource is not None else "no status yet: check that `plimsoll run` is running",
        "deleting": workspace.deleting,
        "outdated": resource is not None and workspace.status.observed_generation != workspace.generation,
        "instanceType": workspace.type_in_use,
        "queue": workspace.spec.queue,
        "replicas": workspace.replicas,
        "perReplicaNodeCount": workspace.status.per_replica_node_count,
        "targetNodeCount": workspace.status.target_node_count,
        "nodes": list(workspace.status.worker_nodes),
        "conditions": {
            each.type: {"status": each.status, "reason": each.reason, "message": each.message} for each in conditions
        },
    }


def _invalid(invalid: InvalidObject) -> dict[str, Any]:
    return {
        "namespace": invalid.ref.namespace,
        "name": invalid.ref.name,
        "accepted": False,
        "reason": Reason.INVALID_SPEC.value,
        "message": invalid.message,
        "deleting": False,
        "outdated": False,
        "instanceType": None,
        "queue": None,
        "replicas": None,
        "perReplicaNodeCount": None,
        "targetNodeCount": None,
        "nodes": [],
        "conditions": {},
    }


def _node_claim(claim: NodeClaim) -> dict[str, Any]:
    return {
        "name": claim.name,
        "workspace": "/".join(claim.owner[:2]),
        "instanceType": ", ".join(claim.instance_types),
        "phase": phase_of(claim),
        "node": claim.node_name,
    }


def _workload(workload: Workload) -> dict[str, Any]:
    return {
        "kind": workload.kind,
        "namespace": workload.namespace,
        "name": workload.name,
        "readyReplicas": workload.ready_replicas,
        "replicas": workload.replicas,
        "deleting": workload.deleting,
    }


def _demand(demand: GPUDemand) -> dict[str, Any]:
    status = demand.status
    return {
        "name": demand.name,
        "phase": status.phase.value,
        "pods": status.pod_count,
        "gpus": status.gpus,
        "leastGpus": status.least_gpus,
        "objects": status.object_count,
        "deadline": status.deadline,
        "reasons": list(status.reasons),
    }


def print_status(shown: dict[str, Any], *, wide: bool) -> None:
    environment = shown["environment"]
    OUT.print(
        Text.assemble(
            ("Environment ", "bold"),
            f"{environment['name']}: node auto-provisioning {environment['nodeAutoProvisioning']}, "
            f"provisioner {environment['provisioner']}",
        )
    )
    if shown["cost"] is not None:
        _print_cost(shown["cost"])
    if shown["workspaces"]:
        _print_workspaces(shown["workspaces"], wide=wide)
    else:
        OUT.print("no Workspaces")
    if shown["nodeClaims"]:
        _print_node_claims(shown["nodeClaims"])
    if shown["workloads"]:
        _print_workloads(shown["workloads"])
    if shown["demands"]:
        _print_demands(shown["demands"])
    for warning in shown["warnings"]:
        OUT.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)


def _print_cost(cost: dict[str, Any]) -> None:
    unpriced = cost["nodesWithoutPrice"]
    more = f"; {counted(unpriced, 'node')} without a price" if unpriced else ""
    if not cost["nodes"]:
        OUT.print(f"the cost is not known: {counted(unpriced, 'GPU node')} without a price")
        return
    currency = f" {cost['prices']['currency']}" if cost["prices"]["currency"] else ""
    OUT.print(f"GPU nodes cost {cost['hourly']:,.2f}{currency} an hour, {cost['idle']:,.2f} of it idle{more}")
    OUT.print(cost["basis"], highlight=False, soft_wrap=True)


def _print_workspaces(workspaces: list[dict[str, Any]], *, wide: bool) -> None:
    more_columns = ("Replicas", "Instance type", "Queue") if wide else ()
    table = _table(
        "Workspace", "Verdict", *more_columns, *(kind.value.removesuffix("Ready") for kind in ConditionType), "On"
    )
    for workspace in workspaces:
        states = [_state(workspace["conditions"].get(kind.value)) for kind in ConditionType]
        target = workspace["targetNodeCount"]
        wanted = [f"{target} wanted"] if target is not None and target != len(workspace["nodes"]) else []
        more_cells = [str(workspace[key] or "-") for key in ("replicas", "instanceType", "queue")] if wide else []
        on = ": ".join([*wanted, *_shown(workspace["nodes"])])
        table.add_row(_name(workspace), _verdict(workspace), *more_cells, *states, on)
    print_table(table)
    for workspace in workspaces:
        failing = [found for found in workspace["conditions"].values() if found["status"] != "True"]
        if workspace["accepted"] is not True or workspace["outdated"]:
            _say(workspace, workspace["message"])
        elif failing:
            _say(workspace, failing[0]["message"])


def _print_node_claims(claims: list[dict[str, Any]]) -> None:
    table = _table("NodeClaim", "Workspace", "Instance type", "Phase", "Node")
    for claim in claims:
        style = {"Ready": "green", "Deleting": "red"}.get(claim["phase"], "yellow")
        row = (claim["name"], claim["workspace"], claim["instanceType"])
        table.add_row(*map(Text, row), Text(claim["phase"], style=style), Text(claim["node"]))
    print_table(table)


def _print_workloads(workloads: list[dict[str, Any]]) -> None:
    table = _table("Workload", "Ready")
    for workload in workloads:
        deleting = ", being deleted" if workload["deleting"] else ""
        ready = f"{workload['readyReplicas']} of {workload['replicas']}{deleting}"
        table.add_row(Text(f"{workload['kind']} {workload['namespace']}/{workload['name']}"), Text(ready))
    print_table(table)


def _print_demands(demands: list[dict[str, Any]]) -> None:
    table = _table("Demand", "Phase", "Pods", "New GPUs", "At least", "Requests", "Until")
    for demand in demands:
        style = {"Refused": "red", "Failed": "red", "Expired": "red", "Completed": "green"}.get(
            demand["phase"], "yellow"
        )
        counts = [str(demand[key]) for key in ("pods", "gpus", "leastGpus", "objects")]
        table.add_row(Text(demand["name"]), Text(demand["phase"], style=style), *counts, demand["deadline"])
    print_table(table)
    for demand in demands:
        for reason in demand["reasons"]:
            OUT.print(Text.assemble((f"  {demand['name']}: ", "bold"), reason), soft_wrap=True)


def _table(*columns: str) -> Table:
    OUT.print()
    return Table(*columns, box=None, pad_edge=False, header_style="bold")


def _shown(nodes: list[str]) -> list[str]:
    return [shortlist(nodes, 3)] if nodes else []


def _name(shown: dict[str, Any]) -> Text:
    return Text(f"{shown['namespace']}/{shown['name']}", style="dim" if shown["deleting"] else "")


def _verdict(shown: dict[str, Any]) -> Text:
    if shown["accepted"] is None:
        return Text("no status yet", style="yellow")
    if shown["outdated"]:
        return Text("outdated", style="yellow")
    return Text("Accepted", style="green") if shown["accepted"] else Text(shown["reason"], style="red")


def _state(condition: dict[str, str] | None) -> Text:
    if condition is None:
        return Text("-", style="dim")
    return Text(condition["status"], style="green" if condition["status"] == "True" else "yellow")


def _say(shown: dict[str, Any], message: str) -> None:
    OUT.print(Text.assemble((f"  {shown['namespace']}/{shown['name']}: ", "bold"), message), soft_wrap=True)
