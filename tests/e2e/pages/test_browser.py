"""The pages in a real browser: every view, live updates, keys, light and dark themes, screen readers, ten thousand
nodes."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, Route

from bench.large_cluster import Situation, a_cluster
from plimsoll.cluster.pods import IndexedPods
from plimsoll.model import Snapshot
from plimsoll.model.api import DemandProvisioner, GPUDemand
from plimsoll.plan.demand import DemandPlanner
from plimsoll.ui import Feed, create_app, serve
from plimsoll.ui.view import Kind
from tests.awaiting import await_condition
from tests.builders import a_node, a_node_pool, a_queue, a_snapshot, a_waiting_pod, a_workspace
from tests.e2e.pages.browser import Console, accessibility_findings, tab_bytes
from tests.pages import CHECKOUT

pytestmark = pytest.mark.e2e

VIEWS = {
    "cluster": "",
    "node": "nodes/g6-1",
    "queues": "queues",
    "queue": "queues/serving",
    "workspaces": "workspaces",
    "workspace": "workspaces/assistants/assistant",
    "refused": "workspaces/research/embeddings",
    "demand": "demand",
    "plan": "plan",
    "history": "history",
    "new-nodes": "new-nodes",
    "why": "why/workspace/research/embeddings",
    "nothing": "?q=no-such-thing",
}
WITHOUT_TABLE = ("plan", "nothing")
DELTA = {
    "time": "2026-01-01T00:00:00Z",
    "changes": [{"operation": "create", "kind": "NodeClaim", "count": 2, "failure": "Forbidden: no rights"}],
}
THEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
PICTURES = CHECKOUT / "docs" / "pictures"
SHOWN = {"cluster": "light", "queues": "light", "workspace": "light", "plan": "dark", "demand": "light"}
"""Pictures of the documentation, with their theme; PLIMSOLL_UPDATE_PICTURES=1 updates them."""


def changed(snapshot: Snapshot, node: str) -> Snapshot:
    """The same cluster, with one node cordoned."""
    nodes = list(snapshot.nodes)
    at = next(number for number, each in enumerate(nodes) if each.name == node)
    # The others stay the same values, as those that the observer reads.
    nodes[at] = nodes[at].model_copy(update={"unschedulable": True})
    return snapshot.model_copy(update={"nodes": tuple(nodes)})


def opened(page: Page, address: str, view: str = "") -> Page:
    page.goto(address + view)
    page.locator("#live", has_text="live").wait_for()
    return page


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_no_errors_and_no_accessibility_findings(
    browser: Browser, address: str, view: str, tmp_path: Path
) -> None:
    context = browser.new_context(
        viewport={"width": 1200, "height": 860}, color_scheme="light", reduced_motion="reduce"
    )
    page = context.new_page()
    console = Console(page)
    opened(page, address, VIEWS[view])
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        assert accessibility_findings(page) == []
        if SHOWN.get(view) == theme:
            folder = PICTURES if os.environ.get("PLIMSOLL_UPDATE_PICTURES") else tmp_path
            page.screenshot(path=folder / f"ui-{view}.png")
            assert (PICTURES / f"ui-{view}.png").exists(), "PLIMSOLL_UPDATE_PICTURES=1 writes it"
    assert console.errors == []
    assert console.hosts == {address.split("/")[2]}, "something is loaded from another server"
    context.close()


def test_an_unreadable_text_is_found_in_either_theme(browser: Browser, address: str) -> None:
    """So that the check of a theme can fail."""
    context = browser.new_context(color_scheme="light")
    page = opened(context.new_page(), address)
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        rule = "main * { color: #888 !important; background: #999 !important }"
        page.evaluate(
            "rule => document.styleSheets[0].insertRule(rule)", f"@media (prefers-color-scheme: {theme}) {{ {rule} }}"
        )
        assert any(found.startswith("color-contrast: ") for found in accessibility_findings(page))
        page.evaluate("() => document.styleSheets[0].deleteRule(0)")
    context.close()


def test_a_change_is_shown_and_the_focus_stays(
    page: Page, console: Console, feed: Feed, example: Snapshot, address: str
) -> None:
    opened(page, address)
    link = page.get_by_role("link", name="g6-2", exact=True)
    link.focus()
    state = page.locator("#node-g6-3 td").first
    assert state.inner_text() == "Ready"
    feed.publish(changed(example, "g6-3"))
    await_condition(lambda: state.inner_text() == "Cordoned", message="the change is shown")
    feed.publish(example)
    await_condition(lambda: state.inner_text() == "Ready", message="the change back is shown")
    assert page.evaluate("() => document.activeElement.textContent") == "g6-2"
    assert console.errors == []


def test_opened_details_stay_open(page: Page, feed: Feed, example: Snapshot, address: str) -> None:
    opened(page, address, "plan")
    details = page.locator("details").first
    details.locator("summary").click()
    version = page.locator("main").get_attribute("data-version")
    feed.publish(changed(example, "g6-3"))
    await_condition(lambda: page.locator("main").get_attribute("data-version") != version, message="another version")
    assert details.get_attribute("open") is not None
    assert "instance-type" in details.locator("pre").inner_text()


def test_search_and_filter_apply_to_every_view_and_are_kept(page: Page, address: str) -> None:
    opened(page, address)
    clear = page.get_by_role("link", name="Clear")
    assert not clear.is_visible()
    page.keyboard.press("/")
    page.keyboard.type("p5-3")
    page.locator("#node-p5-1").wait_for(state="detached")
    assert page.locator("table.nodes tbody tr").count() == 1
    assert page.url.endswith("/?q=p5-3")
    assert clear.is_visible()
    page.get_by_role("link", name="Queues").click()
    page.wait_for_url("**/queues?q=p5-3")
    opened(page, address)
    page.get_by_label("Queue").select_option("notebooks")
    page.locator("#node-g6-4").wait_for(state="detached")
    assert page.locator("table.nodes tbody tr").count() == 3
    opened(page, address, "workspaces?namespace=research")
    assert page.locator("tbody tr").count() == 1
    page.get_by_role("link", name="Next plan").click()
    page.wait_for_url("**/plan?namespace=research")


def test_views_are_linked_to_each_other(page: Page, address: str) -> None:
    opened(page, address)
    page.get_by_role("link", name="serving").first.click()
    page.get_by_role("heading", name="Queue serving").wait_for()
    page.get_by_role("link", name="p4d-2").first.click()
    page.get_by_role("heading", name="Node p4d-2").wait_for()
    page.get_by_role("link", name="serving").first.click()
    page.get_by_role("link", name="its demand").click()
    page.get_by_role("heading", name="Demand", exact=True).wait_for()
    page.get_by_text("7 pending pods").click()
    assert page.locator("details tbody tr:visible").count() == 7
    page.get_by_role("link", name="in the next plan").click()
    page.get_by_role("link", name="GPUDemand serving").first.click()
    page.get_by_role("heading", name="Demand", exact=True).wait_for()
    opened(page, address, "history")
    page.get_by_role("link", name="Workspace assistants/assistant").first.click()
    page.get_by_role("heading", name="Workspace assistants/assistant").wait_for()


def test_the_keyboard_reaches_everything(page: Page, address: str) -> None:
    opened(page, address)
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("2")
    page.get_by_role("heading", name="Queues", exact=True).wait_for()
    page.locator("#live[data-state=live]").wait_for()  # the page's script, which acts on keys, has run
    page.keyboard.press("j")
    page.wait_for_function("() => document.querySelector('main').contains(document.activeElement)")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    background = "() => getComputedStyle(document.body).backgroundColor"
    page.keyboard.press("t")
    light = page.evaluate(background)
    page.keyboard.press("t")
    assert page.evaluate(background) != light
    page.reload()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def test_a_lost_connection_is_shown_and_restored(page: Page, example: Snapshot) -> None:
    feed = Feed(example)
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        opened(page, address)
        feed.close()
    page.locator("#live", has_text="connection lost").wait_for()
    port = int(address.rstrip("/").rpartition(":")[2])
    feed = Feed(changed(example, "g6-3"))
    with serve(create_app(feed), "127.0.0.1", port):
        page.locator("#live", has_text="live").wait_for()
        feed.close()


def test_an_update_that_fails_is_shown_and_tried_again(page: Page, feed: Feed, example: Snapshot, address: str) -> None:
    opened(page, address)
    page.route("**/*", lambda route: route.abort() if route.request.resource_type == "fetch" else route.continue_())
    feed.publish(changed(example, "g6-4"))
    page.locator("#live", has_text="not updated").wait_for()
    page.unroute("**/*")
    page.locator("#live[data-state=live]").wait_for()
    assert page.locator("#node-g6-4 td").first.inner_text() == "Cordoned"


def test_changes_during_a_failure_add_no_further_tries(page: Page, feed: Feed, example: Snapshot, address: str) -> None:
    tried: list[str] = []

    def fail(route: Route) -> None:
        if route.request.resource_type != "fetch":
            route.continue_()
            return
        tried.append(route.request.url)
        route.abort()

    page.clock.install(time=0)
    opened(page, address)
    page.clock.pause_at(3600)  # so that no try is due however long the changes take
    page.route("**/*", fail)
    for number in range(1, 4):
        feed.publish(changed(example, f"g6-{number}"))
        page.wait_for_event("requestfailed", lambda request: request.resource_type == "fetch")
        await_condition(lambda: page.evaluate("() => loading === null"), message="the next try is due later")
    assert len(tried) == 3
    with page.expect_event("requestfailed", lambda request: request.resource_type == "fetch"):
        page.clock.run_for(5_000)
    page.wait_for_timeout(100)
    assert len(tried) == 4


def test_the_key_for_the_next_link_passes_over_closed_details(page: Page, address: str) -> None:
    opened(page, address, "demand")
    wanted = page.locator("main summary").count() + page.locator("main a:visible").count()
    assert wanted < page.locator("main a, main summary").count(), "closed details have links"
    reached = set()
    for _ in range(wanted):
        page.keyboard.press("j")
        reached.add(page.evaluate("() => [...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    assert len(reached) == wanted


def needing_attention(cluster: Snapshot) -> Snapshot:
    """The cluster with one of everything that needs attention."""
    wrong = cluster.nodes[0].model_copy(update={"labels": {**cluster.nodes[0].labels, "nvidia.com/gpu.count": "1"}})
    broken = ("Pod: the watch is broken",)
    lost = a_waiting_pod("lost", gpu_fraction="0.5", selector={"pool": "lost"})
    pool = a_node_pool("lost", ("g6.xlarge",), group="karpenter.k8s.aws", more_labels={"pool": "lost"})
    (demand,) = DemandPlanner().plan(a_snapshot(lost, pool)).demands
    failed = {"phase": "Failed", "failures": 9, "lastFailure": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
    given_up = GPUDemand.read({"metadata": {"name": demand.name}, "status": failed})
    spec = cluster.environment.spec
    requesting = spec.demand.model_copy(update={"provisioner": DemandProvisioner.TRIGGER_POD, "pause_seconds": 86_400})
    digests = spec.policies.model_validate({"rules": {"image-digest": {"options": {"required": True}}}})
    changes = {
        "environment": cluster.environment.model_copy(
            update={
                "spec": spec.model_copy(update={"policies": digests, "demand": requesting}),
                "status": cluster.environment.status.model_validate({"deltas": [DELTA]}),
            }
        ),
        "nodes": (wrong, *cluster.nodes[1:], a_node("for-serving")),
        "workspaces": (
            a_workspace("refused", selector={"pool": "none"}),
            a_workspace("withheld", preset="phi-4-mini-instruct"),
        ),
        "queues": (*cluster.queues, a_queue("closed", parent="all", limit=0)),
        "node_pools": (*cluster.node_pools, pool),
        "gpu_demands": (given_up,),
        "warnings": broken,
        "stale": broken,
        "pods": IndexedPods.of((*cluster.pods, lost, a_waiting_pod("waiting", gpu_fraction="0.5", queue="closed"))),
    }
    return cluster.model_copy(update=changes)


def test_what_needs_attention_is_first_among_two_thousand_nodes(page: Page, console: Console) -> None:
    cluster = a_cluster(2_000, 6_000, 100, Situation(products=3, queue_limit=100))
    feed = Feed(needing_attention(cluster))
    with serve(create_app(feed), "127.0.0.1", 0) as address:
        page.goto(address)
        page.locator("#live", has_text="last known state").wait_for()
        strip = page.locator("main > section#attention + dl.figures")
        assert strip.count() == 1, "before the capacity"
        kinds = page.locator("#attention li").evaluate_all("found => found.map((each) => each.dataset.kind)")
        assert list(dict.fromkeys(kinds)) == [each.value for each in Kind]
        feed.publish(cluster)
        page.locator("#live[data-state=live]").wait_for()
        page.wait_for_function("() => !document.querySelector('#attention [data-kind=\"Stale data\"]')")
        feed.close()
    assert console.errors == []


def test_rows_are_cards_on_a_narrow_screen(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    for name, view in VIEWS.items():
        opened(page, address, view)
        assert page.evaluate("() => document.documentElement.scrollWidth <= 400"), view
        cut = "found => found.filter((each) => each.scrollWidth > each.clientWidth + 1).length"
        assert page.locator(".scroll").evaluate_all(cut) == 0, view
        if not page.locator("table").count():
            assert name in WITHOUT_TABLE
            continue
        cell = page.locator("table td:not(:empty)").first
        shown = "cell => getComputedStyle(cell, '::before').content + getComputedStyle(cell.closest('tr')).display"
        assert "block" in cell.evaluate(shown), view
        label = cell.get_attribute("data-label") or ""
        assert label, view
        assert label in cell.evaluate(shown), view
        cells = page.get_by_role("cell", include_hidden=True)  # some are in details that are closed
        assert cells.first.count() == 1, "a table is still one to a screen reader"


@pytest.fixture(scope="module")
def large() -> Snapshot:
    snapshot = a_cluster(10_000, 30_000, 500, Situation(products=3, queue_limit=100))
    return snapshot.model_copy(update={"pods": IndexedPods.of(snapshot.pods)})


@pytest.fixture(scope="module")
def large_feed(large: Snapshot) -> Iterator[Feed]:
    feed = Feed(large)
    yield feed
    feed.close()


@pytest.fixture(scope="module")
def large_address(large_feed: Feed) -> Iterator[str]:
    with serve(create_app(large_feed), "127.0.0.1", 0) as address:
        # All that is computed once, after a start: it would slow down the first views by seconds.
        for view in ("queues", "plan"):
            urlopen(address + view).close()
        yield address
        large_feed.close()


def test_ten_thousand_nodes_are_shown_in_groups_first(
    page: Page, console: Console, large_feed: Feed, large_address: str
) -> None:
    page.goto(large_address)
    page.locator("main h3").first.wait_for()
    assert page.locator("dl.figures dd").first.inner_text() == "10,000"
    assert page.locator("table.nodes").count() == 0
    page.get_by_role("link", name="List the").first.click()
    page.locator("table.nodes").wait_for()
    assert page.locator("table.nodes tbody tr").count() == 100
    page.get_by_role("link", name="Next nodes").click()
    page.get_by_text("page 2 of").wait_for()
    assert tab_bytes() < 300 * 2**20
    page.locator("#live", has_text="live").wait_for()
    node = page.locator("table.nodes tbody th").first.inner_text()
    large_feed.publish(changed(large_feed.latest, node))
    page.wait_for_function("id => document.querySelector(`#${id} td`).innerText === 'Cordoned'", arg=f"node-{node}")
    assert console.errors == []


@pytest.mark.parametrize("view", ["queues", "demand", "plan", "workspaces"])
def test_a_change_among_ten_thousand_nodes_is_shown(
    page: Page, large_feed: Feed, large_address: str, view: str
) -> None:
    opened(page, large_address, view)
    version = page.locator("main").get_attribute("data-version")
    large_feed.publish(changed(large_feed.latest, large_feed.latest.nodes[0].name))
    page.wait_for_function("version => document.getElementById('main').dataset.version !== version", arg=version)
