"""How `plimsoll explain` tells a story: sections for people, one object for scripts."""

from typing import Any

from rich.table import Table
from rich.text import Text

from plimsoll.cli.output import OUT
from plimsoll.cli.status import phase_of
from plimsoll.model.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT
from plimsoll.model.node_claim import NodeClaim
from plimsoll.plan.estimator import Infeasible, Line
from plimsoll.plan.explaining import NodeStory, Story, Sum
from plimsoll.plan.gpu_offer import Offer
from plimsoll.plan.shortlist import counted


def as_json(story: Story, events: list[dict[str, Any]]) -> dict[str, Any]:
    """`workspace`, `environment`, `asks`, `verdict`, `need`, `nodes`, `nodeClaims`, `workloads`, `limits`, `plan`,
    `conditions`, `events`."""
    verdict = story.verdict
    workspace = story.workspace
    return {
        "workspace": {"namespace": story.ref.namespace, "name": story.ref.name, "uid": story.ref.uid},
        "environment": {
            "name": story.environment.name,
            "nodeAutoProvisioning": story.environment.spec.node_auto_provisioning,
            "provisioner": story.environment.spec.effective_provisioner.value,
        },
        "asks": None if workspace is None else workspace.spec.manifest(),
        "selector": "" if workspace is None else str(workspace.spec.resource.label_selector),
        "verdict": {
            "accepted": verdict.accepted,
            "reason": verdict.reason.value,
            "message": verdict.message,
            "perReplicaNodeCount": verdict.per_replica_node_count,
            "targetNodeCount": verdict.target_node_count,
            "warnings": list(verdict.warnings),
        },
        "need": _need(story),
        "nodes": [_node(each) for each in story.nodes],
        "nodeClaims": [_claim(each) for each in story.claims],
        "workloads": [
            {"kind": each.kind, "name": each.name, "replicas": each.replicas, "readyReplicas": each.ready_replicas}
            for each in story.workloads
        ],
        "limits": list(story.bounds),
        "plan": {
            **{
                name: [
                    {"kind": each.key.kind, "namespace": each.key.namespace, "name": each.key.name, "why": each.reason}
                    for each in operations
                ]
                for name, operations in _operations(story).items()
            },
            "warnings": list(story.warnings),
        },
        "conditions": []
        if workspace is None
        else [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "since": each.last_transition_time,
            }
            for each in workspace.status.conditions
        ],
        "events": events,
    }


def _operations(story: Story) -> dict[str, tuple[Any, ...]]:
    return {"create": story.creations, "update": story.updates, "delete": story.deletions}


def _need(story: Story) -> dict[str, Any] | None:
    need, found = story.need, story.sum
    if need is None:
        return None
    return {
        "of": need.subject,
        "spansNodes": need.spans_nodes,
        "perReplicaNodeCount": need.per_replica,
        "leastMiB": need.least_mib or None,
        "estimate": None if found is None else _sum(found),
    }


def _sum(found: Sum) -> dict[str, Any]:
    outcome = found.outcome
    return {
        "on": found.on,
        "feasible": outcome.feasible,
        "reason": outcome.reason if isinstance(outcome, Infeasible) else None,
        "minGpus": outcome.min_gpus,
        "nodes": outcome.nodes,
        "lines": [
            {"name": each.name, "value": each.value, "unit": each.unit, "sum": each.sum} for each in outcome.lines
        ],
    }


def _node(story: NodeStory) -> dict[str, Any]:
    labels = story.node.labels
    return {
        "name": story.node.name,
        "product": labels.get(GPU_PRODUCT),
        "count": labels.get(GPU_COUNT),
        "memory": labels.get(GPU_MEMORY),
        "instanceType": story.node.instance_type,
        "offers": str(story.offer) if isinstance(story.offer, Offer) else "",
        "usable": not story.problem,
        "why": story.problem,
        "counts": story.counts,
    }


def _claim(claim: NodeClaim) -> dict[str, Any]:
    waiting = next((each for each in claim.conditions if each.status != "True" and each.message), None)
    return {
        "name": claim.name,
        "phase": phase_of(claim),
        "instanceType": ", ".join(claim.instance_types),
        "node": claim.node_name,
        "message": f"{waiting.type}: {waiting.message}" if waiting is not None and not claim.ready else "",
    }


def print_story(story: Story, events: list[dict[str, Any]]) -> None:
    told = as_json(story, events)
    verdict = told["verdict"]
    word = (
        Text("accepted", style="green") if verdict["accepted"] else Text(f"refused: {verdict['reason']}", style="red")
    )
    _say(Text.assemble((f"Workspace {story.ref}  ", "bold"), word))
    _say(f"  {verdict['message']}")
    for warning in dict.fromkeys([*verdict["warnings"], *told["plan"]["warnings"]]):
        _say(Text.assemble(("  warning: ", "yellow"), warning))
    _print_asks(story, told)
    _print_need(told["need"])
    _print_rows(
        "Nodes",
        ("node", "gpu.product", "gpu.count", "gpu.memory", "state"),
        [(each["name"], *_values(each), _state(each)) for each in told["nodes"]],
    )
    _print_rows(
        "NodeClaims",
        ("claim", "phase", "node", "says"),
        [(each["name"], each["phase"], each["node"], each["message"]) for each in told["nodeClaims"]],
    )
    _print_rows(
        "Workloads",
        ("workload", "ready"),
        [
            (f"{each['kind']} {each['name']}", f"{each['readyReplicas']} of {each['replicas']}")
            for each in told["workloads"]
        ],
    )
    _print_lines("Limits and access", told["limits"])
    signs = {"create": "+", "update": "~", "delete": "-"}
    planned = [
        f"{sign} {each['kind']} {each['name']}  ({each['why']})"
        for name, sign in signs.items()
        for each in told["plan"][name]
    ]
    _print_lines("Plan", planned or ["nothing to do for it"])
    _print_rows(
        "Conditions",
        ("condition", "status", "reason", "message"),
        [(each["type"], each["status"], each["reason"], each["message"]) for each in told["conditions"]],
    )
    _print_rows(
        "Events",
        ("time", "type", "reason", "note"),
        [(each["time"], each["type"], each["reason"], each["note"]) for each in events],
    )


def _print_asks(story: Story, told: dict[str, Any]) -> None:
    environment = told["environment"]
    lines = [
        f"node auto-provisioning is {environment['nodeAutoProvisioning']} in the Environment {environment['name']}, "
        f"provisioner {environment['provisioner']}"
    ]
    if story.workspace is not None:
        resource = story.workspace.spec.resource
        lines.append(f"labelSelector: {told['selector'] or '(empty)'}")
        lines += [f"instanceType: {resource.instance_type}"] if resource.instance_type else []
        lines.append(f"replicas: {story.workspace.replicas}")
        verdict = told["verdict"]
        if verdict["targetNodeCount"] is not None:
            target, each = verdict["targetNodeCount"], verdict["perReplicaNodeCount"]
            lines.append(f"target: {counted(target, 'node')}, {each} a replica")
        lines += [f"queue: {story.workspace.spec.queue}"] if story.workspace.spec.queue else []
    _print_lines("Asked for", lines)


def _print_need(need: dict[str, Any] | None) -> None:
    if need is None:
        return
    spans = "may span nodes" if need["spansNodes"] else "runs on one node"
    least = f", at least {need['leastMiB']} MiB of GPU memory" if need["leastMiB"] else ", no GPU memory is declared"
    _print_lines("Need of one replica", [f"{need['of']}: {spans}{least}"])
    estimate = need["estimate"]
    if estimate is None:
        return
    lines = [Line(**each) for each in estimate["lines"]]
    _print_rows(
        f"Estimate on {estimate['on']}",
        ("what", "value", "how"),
        [
            (each.name, f"{each.value:.2f} GiB" if each.unit == "GiB" else f"{each.value:.0f}", each.sum)
            for each in lines
        ],
    )
    if estimate["reason"]:
        _say(f"  {estimate['reason']}")


def _values(node: dict[str, Any]) -> tuple[str, str, str]:
    return (node["product"] or "-", node["count"] or "-", node["memory"] or "-")


def _state(node: dict[str, Any]) -> str:
    usable = f"not usable: {node['why']}" if node["why"] else "usable"
    return f"{usable}; counts" if node["counts"] else usable


def _print_lines(title: str, lines: list[str]) -> None:
    if lines:
        _say(Text(f"\n{title}", style="bold"))
        for line in lines:
            _say(f"  {line}")


def _print_rows(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    if not rows:
        return
    _say(Text(f"\n{title}", style="bold"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    OUT.print(table)


def _say(text: str | Text) -> None:
    OUT.print(text, markup=False, highlight=False, soft_wrap=True)
