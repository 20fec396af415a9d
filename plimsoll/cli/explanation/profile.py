"""The output of `plimsoll why node-profile`: what a new node offers, each fact with its source."""

from typing import Any

from rich.table import Table
from rich.text import Text

from plimsoll.cli.shared import OUT, print_table
from plimsoll.cluster.pools import Fact, ProfileFacts


def profile_as_json(facts: ProfileFacts) -> dict[str, Any]:
    """The facts as a document: amounts in thousandths of a CPU and MiB, as Kubernetes writes them."""
    profile, known = facts.profile, facts.known
    learned = known.status.learned if known is not None else None
    return {
        "nodePool": profile.node_pool,
        "instanceType": profile.instance_type,
        "devices": {
            **_fact(facts.devices, "resource"),
            "count": profile.device.count,
            "memoryMiB": profile.device.memory_mib,
            "division": profile.device.division.value,
            "replicas": profile.device.replicas,
        },
        "divided": profile.divided,
        "labels": [_fact(each) for each in facts.labels],
        "openLabels": {key: list(conditions) for key, conditions in facts.open.items()},
        "taints": list(map(str, profile.taints)),
        "allocatable": [_fact(each) for each in facts.allocatable],
        "usedByDaemonSets": {
            "cpu": f"{profile.overhead.cpu_milli}m",
            "memory": f"{profile.overhead.memory_mib}Mi",
            "pods": str(profile.overhead.pods),
        },
        "price": None if facts.price is None else _fact(facts.price),
        "nodeProfile": None if known is None else known.name,
        "learned": None if learned is None else {"node": learned.node, "seen": learned.seen},
        "findings": [
            {"node": node, "reason": str(finding.reason), "message": finding.message}
            for node, finding in facts.findings
        ],
    }


def _fact(fact: Fact, named: str = "name") -> dict[str, str]:
    return {named: fact.name, "value": fact.value, "source": fact.source.value, "where": fact.where}


def print_profile(facts: ProfileFacts) -> None:
    fields = profile_as_json(facts)
    devices = fields["devices"]
    OUT.print(Text(f"NodeProfile {fields['nodePool']}/{fields['instanceType']}", style="bold"), soft_wrap=True)
    _say(f"{devices['value']}, requested as {devices['resource']}  ({devices['source']}: {devices['where']})")
    if fields["divided"]:
        _say(f"not shared: {fields['divided']}")
    if fields["price"] is None:
        _say("price: not known")
    else:
        _say(f"price per hour: {fields['price']['value']}  ({fields['price']['where']})")
    _print_facts("Labels", fields["labels"])
    _print_facts("Allocatable", fields["allocatable"])
    used = ", ".join(f"{name} {amount}" for name, amount in fields["usedByDaemonSets"].items())
    _print_lines("Used by DaemonSets", [used])
    _print_lines("Labels left open", [each for conditions in fields["openLabels"].values() for each in conditions])
    _print_lines("Taints", fields["taints"])
    _print_lines("Findings", [f"node {each['node']}: {each['message']}" for each in fields["findings"]])


def _print_facts(title: str, facts: list[dict[str, str]]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("name", "value", "source", "where"):
        table.add_column(name)
    for fact in facts:
        table.add_row(*(Text(fact[name]) for name in ("name", "value", "source", "where")))
    print_table(table, highlight=False)


def _print_lines(title: str, lines: list[str]) -> None:
    if lines:
        OUT.print(Text(title, style="bold"))
        for line in lines:
            _say(line)


def _say(line: str) -> None:
    OUT.print(Text(f"  {line}"), soft_wrap=True)
