"""The explanation as text, section by section."""

from typing import Any

from rich.table import Table
from rich.text import Text

from plimsoll.cli.explanation.as_object import as_json
from plimsoll.cli.shared import OUT, print_table
from plimsoll.estimating import Line
from plimsoll.explaining import Explanation
from plimsoll.model.cluster import ListPrice
from plimsoll.text import counted


def print_explanation(explanation: Explanation, events: list[dict[str, Any]]) -> None:
    fields = as_json(explanation, events)
    verdict = fields["verdict"]
    for warning in dict.fromkeys([*verdict["warnings"], *fields["plan"]["warnings"]]):
        _say(Text.assemble(("  warning: ", "yellow"), warning))
    _print_request(explanation, fields)
    _print_type(fields["instanceType"])
    _print_need(fields["need"])
    _print_rows(
        "Nodes",
        ("node", "gpu.product", "gpu.count", "gpu.memory", "state"),
        [(each["name"], *_values(each), _state(each)) for each in fields["nodes"]],
    )
    _print_rows(
        "NodeClaims",
        ("claim", "phase", "node", "waits for", "message"),
        [(each["name"], each["phase"], each["node"], _waits(each), each["message"]) for each in fields["nodeClaims"]],
    )
    _print_lines("Attempts", _attempts(fields["attempts"]))
    _print_rows(
        "Workloads",
        ("workload", "ready"),
        [
            (f"{each['kind']} {each['name']}", f"{each['readyReplicas']} of {each['replicas']}")
            for each in fields["workloads"]
        ],
    )
    _print_lines("Limits and access", fields["limits"])
    signs = {"create": "+", "update": "~", "delete": "-"}
    planned = [
        f"{sign} {each['kind']} {each['name']}  ({each['why']})"
        for name, sign in signs.items()
        for each in fields["plan"][name]
    ]
    planned += [f"withheld: {each}" for each in explanation.withheld]
    _print_lines("Plan", planned or ["nothing to do"])
    _print_rows(
        "Conditions",
        ("condition", "status", "reason", "message"),
        [(each["type"], each["status"], each["reason"], each["message"]) for each in fields["conditions"]],
    )
    _print_rows(
        "Events",
        ("time", "type", "reason", "note"),
        [(each["time"], each["type"], each["reason"], each["note"]) for each in events],
    )


def _print_request(explanation: Explanation, fields: dict[str, Any]) -> None:
    environment = fields["environment"]
    lines = [
        f"node auto-provisioning is {environment['nodeAutoProvisioning']} in the Environment {environment['name']}, "
        f"provisioner {environment['provisioner']}"
    ]
    if explanation.workspace is not None:
        resource = explanation.workspace.spec.resource
        lines.append(f"labelSelector: {fields['selector'] or '(empty)'}")
        lines += [f"instanceType: {resource.instance_type}"] if resource.instance_type else []
        lines += [f"instanceTypes: {', '.join(resource.instance_types)}"] if resource.instance_types else []
        lines.append(f"replicas: {explanation.workspace.replicas}")
        verdict = fields["verdict"]
        if verdict["targetNodeCount"] is not None:
            target, each = verdict["targetNodeCount"], verdict["perReplicaNodeCount"]
            lines.append(f"target: {counted(target, 'node')}, {each} per replica")
        lines += [f"queue: {explanation.workspace.spec.queue}"] if explanation.workspace.spec.queue else []
    _print_lines("Request", lines)


def _print_type(offered: dict[str, Any] | None) -> None:
    if offered is None:
        return
    gpus = "its GPUs are not known"
    if offered["gpus"] is not None:
        memory = "memory not known" if offered["gpuMemoryMiB"] is None else f"{offered['gpuMemoryMiB']} MiB"
        gpus = (
            f"{offered['gpus']} x {offered['product']} ({offered['productSource']}) of {memory} "
            f"({offered['memorySource']}) by {offered['source']}"
        )
    pools = f"; allowed by NodePool {', '.join(offered['nodePools'])}" if offered["nodePools"] else ""
    notes = [f"note: {offered['note']}"] if offered["note"] else []
    notes.append(f"price: {_price(offered)}")
    _print_lines("Instance type", [f"{offered['name']}: {gpus}{pools}", *notes, *offered["differences"]])


def _price(offered: dict[str, Any]) -> str:
    if offered["pricePerHour"] is not None:
        return f"{offered['pricePerHour']:g} an hour (catalog.prices of the Environment)"
    return str(ListPrice(**offered["listPrice"])) if offered["listPrice"] else "not known"


def _waits(claim: dict[str, Any]) -> str:
    return f"{claim['waitsFor']} since {claim['since']}, late after {claim['deadline']}" if claim["waitsFor"] else ""


def _attempts(attempts: dict[str, Any] | None) -> list[str]:
    if attempts is None or not (attempts["failures"] or attempts["late"] or attempts["overdue"]):
        return []
    lines = [f"late, to be replaced: {each['why']}" for each in attempts["late"]]
    lines += attempts["overdue"]
    if attempts["failures"]:
        lines.append(
            f"{attempts['failures']} attempts failed in a row, the last at {attempts['lastFailure']}: "
            f"{attempts['reason']}: {attempts['message']}"
        )
        lines += [f"{each['alternative']}: {each['failures']} failed" for each in attempts["alternatives"]]
        if attempts["omittedAlternatives"]:
            lines.append(f"and {attempts['omittedAlternatives']} that it named before")
        lines.append(f"the next attempt is at {attempts['nextAttempt']}")
    return lines


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
    assumed = estimate["settings"]
    _say(
        f"  assumed: utilization {assumed['utilization']}, overhead {assumed['overheadGib']} GiB, factors "
        f"{assumed['activationFactor']} and {assumed['weightFactor']}, {assumed['contextLength']} tokens of "
        f"{assumed['kvValueBytes']} bytes per value"
    )
    if estimate["reason"]:
        _say(f"  {estimate['reason']}")


def _values(node: dict[str, Any]) -> tuple[str, str, str]:
    return (node["product"] or "-", node["count"] or "-", node["memory"] or "-")


def _state(node: dict[str, Any]) -> str:
    usable = f"not usable: {node['why']}" if node["why"] else "usable"
    counts = "; counts" if node["counts"] else ""
    return usable + counts + (f"; used by {', '.join(node['holders'])}" if node["holders"] else "")


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
    print_table(table)


def _say(text: str | Text) -> None:
    OUT.print(text, highlight=False, soft_wrap=True)
