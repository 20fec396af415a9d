"""Test tables of KAI for resource division, capacity policy and reclaim hold for Plimsoll, too."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cluster.queues import (
    Amount,
    Claim,
    QueuedPod,
    QueueGate,
    QueueLoad,
    QueueTree,
    QueueUsage,
    Reclaim,
    Resource,
    divide,
)
from plimsoll.model.kai import Queue
from tests.builders import a_waiting_pod
from tests.queues.manifests import amounts, queue

G = 1000
TABLES: dict[str, list[dict[str, Any]]] = yaml.load(
    (Path(__file__).parent / "kai_tables.yaml").read_text(), yaml.CSafeLoader
)


def cases(table: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in TABLES[table]]


def milli(*amounts_of: float) -> Amount:
    return Amount(*(round(each * G) for each in amounts_of))


@pytest.mark.parametrize("case", cases("division"))
def test_resource_division(case: dict[str, Any]) -> None:
    claims = []
    for name, given in case["queues"].items():
        whole = [*given, *(1, -1, 100)[len(given) - 2 :]]
        quota, requested, weight, limit, priority = whole
        wanted = requested if limit == -1 else min(requested, limit)
        claims.append(Claim(name, round(min(quota, wanted) * G), round(wanted * G), weight, priority))
    shares = divide(round(case["total"] * G), claims)
    assert {name: share / G for name, share in shares.items()} == case["shares"]


@pytest.mark.parametrize("case", cases("limits"))
def test_limits(case: dict[str, Any]) -> None:
    resources = {each: amounts(0, case["limit"][at]) for at, each in enumerate(Resource)}
    gate = QueueGate([Queue.read(queue("q", resources=resources))], {"q": QueueLoad(milli(*case["allocated"]))})
    why = gate.why_not("q", milli(*case["requested"]), preemptible=True)
    assert (f"spec.resources.{case['over']}.limit" in why and why.startswith("OverLimit")) if case["over"] else not why


@pytest.mark.parametrize("case", cases("quotas"))
def test_quotas_of_non_preemptible_work(case: dict[str, Any]) -> None:
    resources = {each: amounts(case["quota"][at]) for at, each in enumerate(Resource)}
    used = milli(*case["allocated"])
    gate = QueueGate([Queue.read(queue("q", resources=resources))], {"q": QueueLoad(used, used)})
    why = gate.why_not("q", milli(*case["requested"]), preemptible=False)
    expected = f"spec.resources.{case['over']}.quota"
    assert (expected in why and why.startswith("NonPreemptibleOverQuota")) if case["over"] else not why
    assert not gate.why_not("q", milli(*case["requested"]), preemptible=True)


@pytest.mark.parametrize("case", cases("reclaim"))
def test_reclaim(case: dict[str, Any]) -> None:
    usage, victims = _usage_and_victims(case)
    wanted = QueuedPod(a_waiting_pod("wanted"), case["reclaimer"], milli(1), case.get("preemptible", True))
    assert Reclaim(usage, wanted).allows(victims) is case["reclaimed"]


def test_a_second_victim_is_added_if_one_does_not_suffice() -> None:
    case = next(each for each in TABLES["reclaim"] if "second victim" in each["name"])
    usage, victims = _usage_and_victims(case)
    wanted = QueuedPod(a_waiting_pod("wanted"), case["reclaimer"], milli(1), preemptible=True)
    reclaim = Reclaim(usage, wanted)
    assert reclaim.victims(victims[:1]) == ()
    assert reclaim.victims(victims) == tuple(victims)
    needless = QueuedPod(a_waiting_pod("needless"), "right-leaf", milli(0.1), preemptible=True)
    assert reclaim.victims([needless, *victims]) == tuple(victims)


def _usage_and_victims(case: dict[str, Any]) -> tuple[QueueUsage, list[QueuedPod]]:
    """The queues of the case without free GPUs, and the pods that would be reclaimed."""
    given = {name: (*each, 0)[:5] for name, each in case["queues"].items()}
    nothing = amounts(0)
    tree = QueueTree(
        Queue.read(
            queue(
                name,
                parent or None,
                amounts(quota),
                resources={"gpu": amounts(quota), "cpu": nothing, "memory": nothing},
            )
        )
        for name, (parent, quota, *_) in given.items()
    )
    usage = QueueUsage(
        tree=tree,
        totals={"": milli(0)},
        allocated={name: milli(each[3]) for name, each in given.items()},
        non_preemptible={name: milli(each[4]) for name, each in given.items()},
        fair={name: milli(each[2]) for name, each in given.items()},
    )
    victims = [
        QueuedPod(a_waiting_pod(f"v{at}", node="n"), name, milli(gpus), preemptible=True)
        for at, (name, gpus) in enumerate(case["victims"])
    ]
    return usage, victims
