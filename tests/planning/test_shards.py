"""Workspaces whose pods KAI schedules get the nodes that the scheduler of their node pool sees."""

from typing import Any

import pytest

from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.kai import NODE_POOL
from plimsoll.plan import validate
from tests.builders import NC24, a_node, a_queue, a_snapshot, a_template, a_workspace, an_environment
from tests.planning.test_node_claims import created, planned

KEY = "example.com/pool"


def of_shard(key: str, pool: str | None, queue: str | None = "q", **fields: Any) -> Workspace:
    metadata = {"metadata": {"labels": {key: pool}}} if pool is not None else {}
    return a_workspace(queue=queue, template={**a_template(), **metadata}, **fields)


def a_queue_of(key: str, pool: str) -> Any:
    return a_queue("q", parent="").model_copy(update={"labels": {key: pool} if pool else {}})


def verdict_of(*objects: Any, **environment: Any) -> Verdict:
    (found,) = validate(a_snapshot(*objects, environment=an_environment(**environment)))
    return found


@pytest.mark.parametrize("key", [NODE_POOL, KEY])
def test_existing_nodes_of_its_shard(key: str) -> None:
    nodes = [a_node("plain"), a_node("north", pool="a", more_labels={key: "north"})]
    for pool, expected in ((None, "plain"), ("north", "north")):
        found = verdict_of(*nodes, a_queue_of(key, pool or ""), of_shard(key, pool), nodePoolLabelKey=key)
        assert found.node_names == (expected,)
    elsewhere = verdict_of(*nodes, a_queue_of(key, "south"), of_shard(key, "south"), nodePoolLabelKey=key)
    assert elsewhere.reason is Reason.NO_USABLE_NODES
    assert "not in KAI's node pool" in elsewhere.message


def test_pods_of_another_scheduler_are_of_no_shard() -> None:
    nodes = [a_node("north", pool="a", more_labels={NODE_POOL: "north"})]
    assert verdict_of(*nodes, of_shard(NODE_POOL, None, queue=None)).accepted
    assert verdict_of(*nodes, of_shard(NODE_POOL, None), queueScheduler="default-scheduler").accepted


def test_a_queue_of_another_shard_is_refused_by_name() -> None:
    for pool, of_queue in ((None, "north"), ("north", "")):
        found = verdict_of(a_node("n"), a_queue_of(NODE_POOL, of_queue), of_shard(NODE_POOL, pool))
        assert (found.accepted, found.reason) == (False, Reason.NOT_ALLOWED)
        assert "no scheduler of KAI sees both" in found.message


def test_new_nodes_get_the_label() -> None:
    def required(*objects: Any, **environment: Any) -> list[Any]:
        plan = planned(*objects, **environment)
        assert created(plan)
        requirements = [claim["spec"]["requirements"] for claim in created(plan)]
        return [each for own in requirements for each in own if each["key"] in (NODE_POOL, KEY)]

    north = of_shard(NODE_POOL, "north", instance_type=NC24)
    expected = [{"key": NODE_POOL, "operator": "In", "values": ["north"]}]
    assert required(north, a_queue_of(NODE_POOL, "north")) == expected
    assert not required(north, nodePoolLabelKey=KEY), "a label that is not KAI's"
    sharded = [a_queue_of(NODE_POOL, ""), a_node("n", more_labels={NODE_POOL: "north"})]
    assert not required(of_shard(NODE_POOL, None, instance_type=NC24), *sharded), "a label that nobody gives them"


def test_the_settings_of_a_presets_pods() -> None:
    served = a_workspace(preset="phi-4", instance_type=NC24, queue="q")
    pods = {"labels": {NODE_POOL: "north"}}
    requirements = created(planned(served, a_queue_of(NODE_POOL, "north"), presetPods=pods))[0]["spec"]["requirements"]
    assert {"key": NODE_POOL, "operator": "In", "values": ["north"]} in requirements
