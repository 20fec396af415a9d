"""The data of the pages is computed once for each version of the cluster, for any number of browsers."""

from datetime import UTC, datetime, timedelta
from functools import partial

from bench.large_cluster import Situation, a_cluster
from plimsoll.cluster.pods import IndexedPods
from plimsoll.model import Snapshot
from plimsoll.ui import Feed, States
from tests.builders import NC24, a_claim, a_snapshot, a_workspace
from tests.calls import calls

NOW = datetime(2026, 11, 22, 9, 13, tzinfo=UTC)


def test_a_page_is_rendered_once_for_each_version(example: Snapshot) -> None:
    feed, rendered = Feed(example), []
    states = States(feed, lambda: NOW)

    versions: list[str] = []

    def page(address: str) -> str:
        versions.append(states.latest().version)

        def render() -> str:
            rendered.append(address)
            return f"{address} of version {len(set(versions))}"

        return states.latest().page(address, render)

    assert [page("/?"), page("/?"), page("/?q=p5")] == ["/? of version 1"] * 2 + ["/?q=p5 of version 1"]
    feed.publish(example.model_copy())
    assert page("/?") == "/? of version 2"
    assert rendered == ["/?", "/?q=p5", "/?"]


def test_a_plan_is_computed_again_at_its_deadline_without_a_change() -> None:
    workspace = a_workspace(selector={}, instance_type=NC24)
    snapshot = a_snapshot(workspace, a_claim("c", workspace, created="2026-11-22T09:12:30Z"), nap=True)
    now = [NOW]
    states = States(Feed(snapshot), lambda: now[0])
    deadline = states.latest().plan.next_deadline
    assert deadline is not None
    before = states.latest()
    now[0] = deadline
    assert states.latest() is before
    now[0] = deadline + timedelta(seconds=1)
    assert states.latest() is not before
    assert [each.key.kind for each in states.latest().plan.deletions] == ["NodeClaim"], "it did not register in time"


def test_a_plan_is_one_for_the_moment_at_which_it_is_shown() -> None:
    workspace = a_workspace(selector={}, instance_type=NC24)
    snapshot = a_snapshot(workspace, a_claim("c", workspace, created="2026-11-22T09:12:30Z"), nap=True)
    now = [NOW]
    states = States(Feed(snapshot), lambda: now[0])
    state = states.latest()
    now[0] += timedelta(hours=1)
    assert [each.key.name for each in state.explanation(workspace.ref).deletions] == ["c"]
    assert [each.key.name for each in state.plan.deletions] == ["c"]


def test_two_processes_have_no_version_in_common(example: Snapshot) -> None:
    """So that a browser loads a page anew after a restart, or from another replica."""
    feed = Feed(example)
    assert States(feed).latest().version != States(feed).latest().version


def test_a_change_of_one_node_costs_a_small_part_of_what_the_first_view_does() -> None:
    """Of each part that a view may need, and that is not the same for every number of nodes."""
    parts = ("nodes", "usage", "plan")
    snapshot = a_cluster(500, 1_500, 25, Situation(products=3, queue_limit=40))
    feed = Feed(snapshot.model_copy(update={"pods": IndexedPods.of(snapshot.pods)}))
    states = States(feed, lambda: NOW)

    def cost() -> list[int]:
        return [calls(partial(getattr, states.latest(), part)) for part in parts]

    first = cost()
    states.prepare()
    nodes = list(snapshot.nodes)
    nodes[7] = nodes[7].model_copy(update={"unschedulable": True})
    feed.publish(feed.latest.model_copy(update={"nodes": tuple(nodes)}))
    assert [part for part, now, then in zip(parts, cost(), first, strict=True) if now > then / 5] == []
