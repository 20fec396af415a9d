"""Terminal output for the example: `top`, prices in `plan`, YAML documents, and the kubectl plugin."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from plimsoll.cli.shared import read_files
from plimsoll.cli.tables.top import WIDTH, Screen
from plimsoll.labels import NODEPOOL
from tests.builders import a_node, a_queue, a_snapshot, an_environment
from tests.command import plimsoll
from tests.demand.node_pools import L4_POOL
from tests.pages import CHECKOUT

EXAMPLE = str(CHECKOUT / "examples" / "cluster")
SCRIPTS = Path(sys.executable).parent


def run(*words: str, code: int | None = None) -> str:
    done = plimsoll(*words, variables={"COLUMNS": "150"})
    assert code is None or done.returncode == code, done.stderr
    return done.stdout


def test_top_shows_nodes_queues_requests_and_deltas() -> None:
    lines = run("top", "-f", EXAMPLE, code=0).splitlines()
    assert any("13 nodes, 62 GPUs, 30 in use  290.87 an hour, 107.61 of it idle" in line for line in lines)
    p5 = next(line for line in lines if "p5.48xlarge" in line)
    assert "╱" * 5 in p5, "a quarter of the GPUs is on a node that is not ready"
    assert any(line.split()[:1] == ["serving"] and "4.2" in line for line in lines)
    assert any("NodeClaim assistant-7f3d2" in line and "Workspace assistants/assistant" in line for line in lines)
    assert any("not done: Refused: NodeClaim quota exceeded" in line for line in lines)


def test_a_plan_shows_its_cost() -> None:
    plan = json.loads(run("plan", "-f", EXAMPLE, "--output", "json", code=2))
    assert plan["cost"] == {
        "added": pytest.approx(55.04 + 4.602 + 6 * 0.805),
        "removed": 0,
        "nodesWithoutPrice": 0,
        "prices": {"currency": None, "own": True, "lists": [], "discountPercent": 0.0},
    }
    assert "+64.47 an hour: 64.47 added, 0.00 released\nPrices: the Environment's own" in run("plan", "-f", EXAMPLE)


WAITING = (
    L4_POOL
    + """apiVersion: plimsoll.dev/v1alpha1
kind: Environment
metadata: {name: test}
spec: {demand: {provisioner: trigger-pod}}
---
apiVersion: v1
kind: Pod
metadata: {name: share, namespace: t, annotations: {gpu-fraction: "0.5"}}
spec: {schedulerName: kai-scheduler, containers: [{name: main}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable}]}
"""
)


def test_a_plan_that_concerns_no_node_shows_no_cost() -> None:
    plan = json.loads(run("plan", "-f", str(CHECKOUT / "examples" / "demand"), "--output", "json"))
    assert plan["cost"] is None


def test_a_plan_without_own_prices_shows_those_of_the_lists(tmp_path: Path) -> None:
    file = tmp_path / "waiting.yaml"
    file.write_text(WAITING)
    plan = json.loads(run("plan", "-f", str(file), "--output", "json"))
    assert plan["cost"]["added"] == 0.8048
    assert plan["cost"]["prices"] == {
        "currency": "USD",
        "own": False,
        "lists": [{"region": "us-east-1", "date": "2026-07-20"}],
        "discountPercent": 0.0,
    }


@pytest.mark.parametrize("words", [("queues",), ("gpus",), ("demand",), ("why", "workspace", "assistant")])
def test_yaml_is_the_same_document_as_json(words: tuple[str, ...]) -> None:
    given = (*words, "-f", EXAMPLE)
    as_yaml, as_json = yaml.safe_load(run(*given, "-o", "yaml")), json.loads(run(*given, "-o", "json"))
    for document in (as_yaml, as_json):
        for demand in document.get("demands", ()):
            del demand["deadline"]  # it depends on the moment of the plan
    assert as_yaml == as_json


def test_the_kubectl_plugin_and_its_completion() -> None:
    def script(name: str, *words: str) -> str:
        return subprocess.run([SCRIPTS / name, *words], capture_output=True, text=True, timeout=60, check=True).stdout

    assert script("kubectl-plimsoll", "--version") == script("plimsoll", "--version")
    words, directive = script("kubectl_complete-plimsoll", "wh").split()
    assert (words, directive) == ("why", ":4")


def test_a_narrow_screen_folds_names_and_cuts_no_figure() -> None:
    kind, pool = "Standard_ND96isr_H100_v5", "gpu-h100-reserved-westeurope-zone-1"
    environment = an_environment(catalog={"prices": {kind: 1234.56}})
    nodes = [
        a_node(f"node-{number}", pool, count=8, allocatable=8, instance_type=kind, more_labels={NODEPOOL: pool})
        for number in range(6)
    ]
    console = Console(width=80, file=StringIO())
    with console.capture() as captured:
        console.print(Screen(whole=False).shown(a_snapshot(*nodes, environment=environment)))
    rows = captured.get().splitlines()
    first = next(number for number, row in enumerate(rows) if row.startswith("6/6"))
    ready, *_, gpus, bar, hourly, idle = rows[first].split()
    assert (ready, gpus, len(bar), hourly, idle) == ("6/6", "48", WIDTH, "7,407.36", "7,407.36")
    at, until = (rows[first - 1].index(column) for column in ("Type", "NodePool"))
    assert kind in "".join(row[at:until].strip() for row in rows[first:])


@pytest.mark.parametrize("width", [79, 60, 40])
def test_no_figure_is_cut_where_a_screen_has_no_room_for_bars(width: int) -> None:
    console = Console(width=width, file=StringIO())
    with console.capture() as captured:
        console.print(Screen(whole=False).shown(read_files([EXAMPLE])))
    rows = captured.get().splitlines()
    groups = [row.split() for row in rows if row[:3] in ("2/3", "3/4", "6/6")]
    assert [(row[0], *row[-2:]) for row in groups] == [
        ("2/3", "65.88", "64.23"),
        ("6/6", "4.83", "2.09"),
        ("3/4", "220.16", "41.28"),
    ]
    assert "GPUs" in next(row for row in rows if row.startswith("Ready"))
    assert "░" * 3 not in captured.get()


def test_top_folds_nothing_in_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # which test processes have
    pool = "a-node-pool-with-a-name-that-is-longer-than-half-of-a-terminal"
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(a_manifest_of_a_node(pool)))
    done = plimsoll("top", "-f", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert pool in done.stdout


def a_manifest_of_a_node(pool: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node", "labels": {NODEPOOL: pool}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }


def test_a_live_screen_says_how_many_rows_it_leaves_out_and_other_output_is_whole() -> None:
    queues = [a_queue(f"queue-{number:02}") for number in range(15)]

    def lines(*, whole: bool) -> list[str]:
        console = Console(width=120, file=StringIO())
        with console.capture() as captured:
            console.print(Screen(whole=whole).shown(a_snapshot(*queues)))
        return [each.strip() for each in captured.get().splitlines()]

    live, printed = lines(whole=False), lines(whole=True)
    assert [sum(each.startswith("queue-") for each in shown) for shown in (live, printed)] == [12, 15]
    assert ("and 3 more" in live, "and 3 more" in printed) == (True, False)


def test_top_prints_every_row_where_its_output_is_no_live_screen(tmp_path: Path) -> None:
    kind = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "spec": {}}
    queues = [kind | {"metadata": {"name": f"queue-{number:02}"}} for number in range(15)]
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump_all(queues))
    assert run("top", "-f", str(tmp_path), code=0).count("queue-") == 15
