"""Series of costs by owner: their number is bounded, whatever tenants write in labels of their pods."""

from collections.abc import Iterable

from plimsoll.cluster.ledger import gpu_ledger
from plimsoll.cluster.nodes import SEVERAL
from plimsoll.labels import OWNER_NAMESPACE, OWNER_QUEUE, as_label_value
from plimsoll.model.cluster import Node
from plimsoll.report import Metrics
from tests.builders import a_gpu_node, a_queue, a_snapshot, an_environment
from tests.metrics.test_metrics import at

PRICES = {"large": 2.0, "small": 1.0}


def costs(nodes: Iterable[Node], queues: Iterable[str] = ()) -> dict[tuple[str, str], float]:
    """The values of all series, by namespace and queue."""
    snapshot = a_snapshot(*nodes, *map(a_queue, queues), environment=an_environment(catalog={"prices": PRICES}))
    metrics = Metrics()
    metrics.seen(snapshot, at(0), list(gpu_ledger(snapshot).accounts()))
    return {
        (sample.labels["namespace"], sample.labels["queue"]): sample.value
        for family in metrics.registry.collect()
        if family.name == "plimsoll_cost_by_owner_per_hour"
        for sample in family.samples
    }


def a_node_for(namespace: str, queue: str, *, instance_type: str = "small") -> Node:
    name = f"node-{namespace}-{queue}".lower()
    labels = {OWNER_NAMESPACE: namespace, OWNER_QUEUE: queue}
    return a_gpu_node(name, instance_type=instance_type, more_labels=labels)


def test_queues_that_nobody_declared_are_one_series_of_their_namespace() -> None:
    forged = [a_node_for("hostile", f"made-up-{number}") for number in range(30)]
    ordinary = [a_node_for("team", "declared"), a_node_for("team", SEVERAL)]
    assert costs([*forged, *ordinary], ["declared"]) == {
        ("", ""): 0.0,
        ("hostile", "Other"): 30.0,
        ("team", "declared"): 1.0,
        ("team", SEVERAL): 1.0,
    }


def test_a_queue_whose_name_is_longer_than_a_label_is_declared_too() -> None:
    name = f"{'q' * 70}.team"
    label = as_label_value(name)
    assert costs([a_node_for("team", label)], [name])["team", label] == 1.0


def test_a_namespace_has_the_series_of_its_costliest_queues() -> None:
    queues = [f"queue-{number:02}" for number in range(40)]
    cheap = [a_node_for("team", queue) for queue in queues[:30]]
    dear = [a_node_for("team", queue, instance_type="large") for queue in queues[30:]]
    found = costs([*cheap, *dear, a_node_for("other-team", "queue-00")], queues)
    assert {queue for namespace, queue in found if namespace == "team"} == {*queues[:10], *queues[30:], "Other"}
    assert found["team", "Other"] == 20.0
    assert found["other-team", "queue-00"] == 1.0


def test_all_series_together_are_bounded_and_no_cost_is_lost() -> None:
    found = costs([a_node_for(f"team-{number:04}", "q") for number in range(1_200)], ["q"])
    assert len(found) == 1_002
    assert found["Other", "Other"] == 200.0
    assert sum(found.values()) == 1_200.0
