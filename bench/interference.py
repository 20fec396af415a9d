"""What a hostile namespace costs others: reaction to a pod of another tenant and its release, beside a flood and idle.

    python -m bench.interference [--nodes 200] [--hostile 2000] [--gpus 0] [--changes 30] [--output json]

The cluster is that of `bench.tick`. `reaction` is the CPU time of the round after a pod of a tenant was created,
`release` that after it was deleted: a busy machine does not change them. The hostile namespace may have no GPUs, or
`--gpus`. Its pods request shares with a class each, and some of them are replaced before each round. Idle and beside
the flood, rounds take turns, so that both are measured at the same time. `nodes` are those that it bought.
"""

import statistics
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.command import run_benchmark
from bench.large_cluster import waiting_manifest
from bench.stored_cluster import StoredCluster, a_stored_cluster, pod_group, stored_pod
from bench.tick import Rounds, settle
from plimsoll.cli.shared import Format, Output, print_json
from plimsoll.garbage import collect_rarely

HOSTILE = "hostile"
AIM = 1.2
"""The most that a flood may make of the time of others."""


def main(
    nodes: Annotated[int, typer.Option(help="nodes with 8 GPUs", min=1)] = 200,
    pods: Annotated[int, typer.Option(help="pods of others in all", min=1)] = 2_000,
    waiting: Annotated[int, typer.Option(help="of them, pods that wait for shares", min=1)] = 100,
    hostile: Annotated[int, typer.Option(help="hostile pods, each of a class of its own", min=1)] = 2_000,
    replaced: Annotated[int, typer.Option(help="hostile pods that are replaced before each round")] = 20,
    gpus: Annotated[int, typer.Option(help="GPUs that the hostile namespace may have", min=0)] = 0,
    changes: Annotated[int, typer.Option(help="pods of a tenant that are created and deleted", min=1)] = 30,
    output: Output = Format.TEXT,
) -> None:
    """The time of other tenants' rounds beside a hostile namespace, as a ratio to idle."""
    collect_rarely()  # as the controller
    idle, flooded = (_cluster(nodes, pods, waiting, hostile=number, gpus=gpus) for number in (0, hostile))
    found: dict[str, tuple[list[float], list[float]]] = {"reaction": ([], []), "release": ([], [])}
    for number in range(changes):
        for side, rounds in enumerate((idle, flooded)):
            if side:
                _replace(rounds.cluster, number * replaced, replaced, hostile)
            reaction, release = _change(rounds, number)
            found["reaction"][side].append(reaction)
            found["release"][side].append(release)
    row: dict[str, Any] = {name: _compared(*seconds) for name, seconds in found.items()}
    row["nodes"] = _bought(flooded) - _bought(idle)
    row["aim"] = AIM
    for rounds in (idle, flooded):
        rounds.close()
    if output is Format.JSON:
        print_json(row)
        return
    table = Table("ms of CPU", "idle p50", "flood p50", "ratio", "idle p99", "flood p99", "ratio", box=None)
    for name in found:
        table.add_row(name, *(f"{value:g}" for value in row[name].values()))
    Console().print(table)
    Console().print(f"nodes that the hostile namespace bought: {row['nodes']}")


def _cluster(nodes: int, pods: int, waiting: int, *, hostile: int, gpus: int) -> Rounds:
    cluster = a_stored_cluster(nodes, pods, waiting, 20, 20, 24)
    access = [{"namespaces": [HOSTILE], "gpus": gpus}, {"namespaces": ["*"]}]
    environment = cluster.stores.environments.values()[0]
    spec = {**environment.spec.manifest(), "access": access}
    cluster.put("Environment", {"metadata": {"name": environment.name}, "spec": spec})
    for number in range(hostile):
        cluster.put("Pod", _hostile_pod(number))
    rounds = Rounds(cluster)
    settle(rounds)
    return rounds


def _hostile_pod(number: int) -> dict[str, Any]:
    manifest = waiting_manifest(20_000_000 + number, 0)
    tolerations = [{"key": f"key-{number}", "operator": "Exists"}]
    metadata = {**manifest["metadata"], "namespace": HOSTILE}
    return {
        **manifest,
        "metadata": metadata,
        "spec": {**manifest["spec"], "tolerations": tolerations, "priority": 1000},
    }


def _replace(cluster: StoredCluster, first: int, number: int, hostile: int) -> None:
    """Replaces the oldest hostile pods by others of new classes."""
    for each in range(first, first + number):
        cluster.delete("Pod", HOSTILE, _hostile_pod(each)["metadata"]["name"])
        cluster.put("Pod", _hostile_pod(each + hostile))


def _change(rounds: Rounds, number: int) -> tuple[float, float]:
    """Seconds of CPU of the rounds after a pod of a tenant was created, and after it was deleted."""
    cluster, seconds = rounds.cluster, []
    manifest = stored_pod(waiting_manifest(10_000_000 + number, number % 20))
    name = manifest["metadata"]["name"]
    cluster.put("PodGroup", pod_group(name))
    cluster.put("Pod", manifest)
    seconds.append(_round(rounds))
    cluster.delete("PodGroup", "team", f"pg-{name}")
    cluster.delete("Pod", "team", name)
    seconds.append(_round(rounds))
    return seconds[0], seconds[1]


def _round(rounds: Rounds) -> float:
    plan = rounds.run_round()
    seconds = rounds.parts["cpu"]
    rounds.cluster.take(plan)
    rounds.flush()
    return seconds


def _bought(rounds: Rounds) -> int:
    """Nodes, and requests for nodes."""
    pods = rounds.cluster.stores.pods.values()
    return len(rounds.cluster.stores.nodes.values()) + sum(pod.namespace == "plimsoll-triggers" for pod in pods)


def _compared(idle: Sequence[float], flooded: Sequence[float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, of in (("p50", 0.5), ("p99", 0.99)):
        before, beside = (_at(each, of) for each in (idle, flooded))
        found |= {f"{name}IdleMs": round(before * 1000, 2), f"{name}FloodMs": round(beside * 1000, 2)}
        found[f"{name}Ratio"] = round(beside / before, 2)
    return found


def _at(seconds: Sequence[float], part: float) -> float:
    ordered = sorted(seconds)
    return statistics.median(ordered) if part == 0.5 else ordered[round(part * (len(ordered) - 1))]


if __name__ == "__main__":
    run_benchmark(main)
