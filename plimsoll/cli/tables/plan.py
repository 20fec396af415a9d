"""The output of `plimsoll plan`: the next Plan as text and as JSON."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from rich.padding import Padding
from rich.text import Text

from plimsoll.cli.shared import OUT, REFUSED, SETTLED, Format, print_document
from plimsoll.cli.tables.queues import next_as_json, next_line
from plimsoll.cluster.queues import NextGpu
from plimsoll.cost import PlannedCost, Prices, planned_cost
from plimsoll.model import Change, Plan, Snapshot, Verdict
from plimsoll.model.cluster import SERVICE
from plimsoll.model.meta import dig
from plimsoll.plan.classes import WholeGpus, whole_gpus
from plimsoll.plan.requests import NodeRequest
from plimsoll.text import counted
from plimsoll.yaml_text import write_yaml

_SIGNS: Final = {"In": "", "NotIn": "not ", "Gt": "> ", "Gte": ">= ", "Lt": "< ", "Lte": "<= "}
"""Of the operators of requirements that have values."""


def render(plan: Plan, output: Format, following: NextGpu | None = None, snapshot: Snapshot | None = None) -> int:
    """Prints the plan, with the pod of a queue that would be placed next where one is given, and what the plan costs
    in the cluster of a snapshot.

    Returns the exit code: 0, or 2 if a Workspace is refused or an object is withheld by a policy.
    """
    cost = _cost(plan, snapshot)
    whole = WholeGpus() if snapshot is None else whole_gpus(snapshot)
    if output.document:
        more = {"nextGpu": next_as_json(following), "cost": cost and _cost_json(cost), "wholeGpus": _whole_json(whole)}
        print_document(as_json(plan) | more, output)
    else:
        _print_text(plan, whole)
        if cost is not None:
            unpriced = f"; {counted(cost.unpriced, 'node')} without a price" if cost.unpriced else ""
            added, removed = cost.added, cost.removed
            unit = f" {cost.basis.currency}" if cost.basis.currency else ""
            OUT.print(f"{added - removed:+,.2f}{unit} an hour: {added:,.2f} added, {removed:,.2f} released{unpriced}")
            OUT.print(str(cost.basis), highlight=False, soft_wrap=True)
            if cost.reserved:
                of = counted(cost.reserved, "node")
                note = (
                    f"{of} of reserved capacity counted at the on-demand price: what a reservation costs is not known"
                )
                OUT.print(note, highlight=False, soft_wrap=True)
        if following is not None:
            OUT.print(Text(next_line(following)), soft_wrap=True)
    return REFUSED if plan.refusals or plan.withheld else SETTLED


def _cost(plan: Plan, snapshot: Snapshot | None) -> PlannedCost | None:
    """What the plan changes an hour; None where it concerns no node."""
    if snapshot is None:
        return None
    cost = planned_cost(plan, snapshot, Prices.of(snapshot))
    return cost if cost.added or cost.removed or cost.unpriced else None


def _cost_json(cost: PlannedCost) -> dict[str, Any]:
    return {
        "added": cost.added,
        "removed": cost.removed,
        "nodesWithoutPrice": cost.unpriced,
        "prices": cost.basis.as_json(),
    }


def as_json(plan: Plan) -> dict[str, Any]:
    """`verdicts`, whole manifests to `create` and to `update`, keys to `delete`, `signals`, findings that withhold
    objects as `withheld`, and `warnings`.
    """
    return {
        "verdicts": [_verdict(each) for each in plan.verdicts],
        "create": [each.manifest for each in plan.creations],
        "update": [each.manifest for each in plan.updates],
        "delete": [
            {
                "kind": each.key.kind,
                "namespace": each.key.namespace,
                "name": each.key.name,
                "apiVersion": each.key.api_version,
                "reason": each.reason,
            }
            for each in plan.deletions
        ],
        "signals": [
            {"pod": str(each.key), "reason": each.reason.value, "message": each.message} for each in plan.signals
        ],
        "withheld": [finding.as_json() for each in plan.withheld for finding in each.findings],
        "warnings": list(plan.warnings),
    }


def _whole_json(whole: WholeGpus) -> dict[str, Any] | None:
    return {"pods": whole.waiting_pods, "gpus": whole.waiting, "note": whole.note} if whole.note else None


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "namespace": verdict.workspace.namespace,
        "name": verdict.workspace.name,
        "accepted": verdict.accepted,
        "reason": verdict.reason.value,
        "message": verdict.message,
        "perReplicaNodeCount": verdict.per_replica_node_count,
        "targetNodeCount": verdict.target_node_count,
        "nodes": list(verdict.node_names),
        "allocatedNodes": list(verdict.allocated_nodes),
        "warnings": list(verdict.warnings),
    }


def _print_text(plan: Plan, whole: WholeGpus) -> None:
    for verdict in plan.verdicts:
        sign, style = ("accepted", "green") if verdict.accepted else ("refused ", "red")
        if verdict.deleting:
            sign, style = "deleting", "yellow"
        reason = "" if verdict.accepted else f"  {verdict.reason.value}"
        OUT.print(Text.assemble((sign, style), f"  {verdict.workspace}", (reason, style)), soft_wrap=True)
        OUT.print(Padding(Text(verdict.message, overflow="fold"), (0, 0, 0, 10)))
    if plan.verdicts:
        OUT.print()
    for creation in plan.creations:
        _print_change("+", "green", creation)
    for update in plan.updates:
        _print_change("~", "yellow", update)
    for deletion in plan.deletions:
        _print_line("-", "red", f"{deletion.key}", deletion.reason)
    for signal in plan.signals:
        _print_line("!", "cyan", str(signal.key), f"{signal.reason.value}: {signal.message}")
    if not plan.empty or plan.signals:
        OUT.print()
    _print_notes(plan, whole)
    OUT.print(Text(_summary(plan, whole), style="bold"))


def _print_notes(plan: Plan, whole: WholeGpus) -> None:
    for withheld in plan.withheld:
        OUT.print(Text.assemble(("withheld: ", "red"), str(withheld)), soft_wrap=True)
    for warning in plan.warnings:
        OUT.print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
    if whole.note:
        OUT.print(Text(whole.note), soft_wrap=True)


def _print_change(sign: str, style: str, change: Change) -> None:
    _print_line(sign, style, str(change.key), change.reason)
    spec = write_yaml(_telling(change.manifest), width=110)
    for line in spec.splitlines():
        OUT.print(Text(f"      {line}", style="dim"), soft_wrap=True)


def _telling(manifest: dict[str, Any]) -> dict[str, Any]:
    """The fields that distinguish objects of a kind."""
    ask = NodeRequest.from_annotations(manifest["metadata"].get("annotations") or {})
    if ask is not None:
        return {
            "instanceTypes": ", ".join(ask.instance_types),
            "nodePool": ask.node_pool,
            "gpus": ask.gpus,
            "replicas": manifest.get("spec", {}).get("replicas", 1),
        }
    spec = manifest["spec"]
    if manifest["kind"] == "NodeClaim":
        return _conditions(spec["requirements"])
    if manifest["kind"] == SERVICE:
        return {"ports": ", ".join(f"{each['name']} {each['port']}" for each in spec["ports"])}
    if manifest["kind"] == "ResourceClaimTemplate":
        asked = [each["exactly"] for each in dig(spec, "spec.devices.requests")]
        return {"devices": ", ".join(f"{each['count']} {each['deviceClassName']}" for each in asked)}
    template = spec.get("template") or dig(spec, "leaderWorkerTemplate.workerTemplate")
    containers = dig(template, "spec.containers") or []
    images = ", ".join(str(each["image"]) for each in containers if each.get("image"))
    return {"replicas": spec.get("replicas"), **({"images": images} if images else {})}


def _conditions(requirements: Iterable[dict[str, Any]]) -> dict[str, str]:
    """What all requirements on each label allow together: of values, those that each of them has."""
    told: dict[str, dict[tuple[str, ...], tuple[str, ...]]] = {}
    for each in requirements:
        operator, values = each["operator"], tuple(each.get("values") or ())
        of_label = told.setdefault(each["key"], {})
        same = (operator,) if operator in ("In", "NotIn") else (operator, *values)
        before = of_label.get(same, values)
        if operator == "In":
            of_label[same] = tuple(value for value in before if value in values)
        else:
            of_label[same] = tuple(dict.fromkeys((*before, *values)))
    return {
        key: " and ".join(_allowed(operator, values) for (operator, *_), values in of_label.items())
        for key, of_label in told.items()
    }


def _allowed(operator: str, values: Sequence[str]) -> str:
    """What a requirement allows, such as `> 0`."""
    return _SIGNS.get(operator, f"{operator} ") + ", ".join(values) if values else operator


def _print_line(sign: str, style: str, what: str, why: str) -> None:
    OUT.print(Text.assemble((f"  {sign} {what}", style), (f"  ({why})", "dim")), soft_wrap=True)


def _summary(plan: Plan, whole: WholeGpus) -> str:
    operations = (
        ("nothing else to do" if whole.note else "nothing to do")
        if plan.empty
        else f"{len(plan.creations)} to create, {len(plan.updates)} to update, {len(plan.deletions)} to delete"
    )
    refused = len(plan.refusals)
    return f"{operations}; {counted(len(plan.verdicts) - refused, 'Workspace')} accepted, {refused} refused"
