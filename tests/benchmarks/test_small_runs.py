"""Every benchmark that needs no sandbox completes a small run, with a table and with JSON."""

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bench import (
    ablation,
    audit,
    burst,
    claims,
    fleet,
    interference,
    ledger,
    openb,
    pages,
    plain_pods,
    plan,
    rest,
    rounds,
    scale,
    tick,
    trace,
)
from bench.command import app_of
from bench.large_cluster import GPUS, node_manifest
from plimsoll.packing.nodes import Heuristic, NodePacking, pack_nodes
from plimsoll.plan.demand import DemandPlanner
from tests.pages import CHECKOUT

Main = Callable[..., None]
SHARES = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(f"pod-{n},1000,1024,1,{n}00\n" for n in range(1, 10))
LARGE = ("--nodes", "60", "--pods", "600", "--waiting", "60", "--classes", "3")
SMALL: dict[str, tuple[Main, tuple[str, ...]]] = {
    "plan": (plan.main, ("--nodes", "20", "--workspaces", "4", "--rounds", "1")),
    "ledger": (ledger.main, ("--nodes", "3", "--rounds", "1")),
    "scale": (scale.main, (*LARGE, "--changes", "14")),
    "scale of several products": (scale.main, (*LARGE, "--products", "3", "--free", "300", "--changes", "14")),
    "scale of limited queues": (scale.main, (*LARGE, "--queue-limit", "4", "--changes", "14")),
    "plain_pods": (plain_pods.main, ("--plain", "100", "--nodes", "60", "--pods", "600", "--waiting", "60")),
    "audit": (audit.main, ("--nodes", "20", "--pods", "60", "--waiting", "3", "--plain", "40")),
    "claims": (claims.main, ("--nodes", "20", "--claims", "200", "--waiting", "20", "--changes", "2")),
    "interference": (
        interference.main,
        ("--nodes", "6", "--pods", "60", "--waiting", "6", "--hostile", "30", "--replaced", "3", "--changes", "2"),
    ),
    "pages": (pages.main, ("--nodes", "20", "--pods", "60", "--waiting", "3", "--changes", "2")),
    "tick": (tick.main, (*LARGE, "--workspaces", "4", "--changes", "3")),
}


def run(main: Main, *arguments: str) -> Result:
    return CliRunner().invoke(app_of(main), arguments)


def figures(main: Main, *arguments: str) -> Any:
    result = run(main, *arguments, "--output", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def no_traces(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder without traces."""
    monkeypatch.setattr(trace, "TRACES", tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", SMALL)
def test_a_small_run_prints_a_table(name: str) -> None:
    main, arguments = SMALL[name]

    result = run(main, *arguments)

    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) > 2


def test_bench_audit_measures_a_process_that_lists_the_cluster() -> None:
    pages = {"/api/v1/nodes": [b"[" + json.dumps(node_manifest(number)).encode() + b"]" for number in range(3)]}
    audited = audit.audit(pages)
    assert (audited.found["summary"]["nodes"], audited.found["summary"]["gpus"]) == (3, 3 * GPUS)
    assert audited.peak_mib > 10
    assert audited.cpu_seconds > 0


@pytest.mark.parametrize(("seconds", "peak", "missed"), [(61, 100, "seconds 61, aim 60"), (9, 301, "peakMib 301")])
def test_bench_audit_fails_above_its_aims(
    seconds: float, peak: float, missed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "audit", lambda _: audit.Audited(seconds, 5, peak, {}))
    for more in ((), ("--output", "json")):
        result = run(audit.main, "--nodes", "1000", "--pods", "2", "--waiting", "0", "--plain", "0", *more)
        assert (result.exit_code, missed in result.stderr) == (1, True), result.output


def test_bench_plan_measures_each_case_and_number_of_nodes() -> None:
    main, arguments = SMALL["plan"]

    rows = figures(main, *arguments)

    assert [(row["case"], row["nodes"]) for row in rows] == [(case, 20) for case in plan.CASES]
    assert all(row["validate_ms"] > 0 and row["plan_ms"] > 0 for row in rows)
    # Four Workspaces of 3 nodes, of whose claims a half is there.
    assert [row["operations"] for row in rows if row["case"] == "provisioned"] == [6]


def test_bench_ledger_measures_each_way_to_compute_it() -> None:
    found = figures(ledger.main, "--nodes", "3", "--gpus", "2", "--shares", "4", "--rounds", "1")

    assert (found["nodes"], found["pods"]) == (3, 3 * 2 * (1 + 4))
    assert all(found["seconds"][each] > 0 for each in ("build", "pod", "snapshot"))


@pytest.mark.parametrize("name", ["scale", "scale of several products", "scale of limited queues"])
def test_bench_scale_plans_each_kind_of_change_before_and_after_the_request(name: str) -> None:
    main, arguments = SMALL[name]

    found = figures(main, *arguments)

    assert found["gpus"] > 0
    assert sum(each["changes"] for each in found["updateMs"].values()) == 2 * 14
    assert len(found["updateMs"]) == 2 * 7


def test_bench_scale_reports_a_class_without_pods() -> None:
    result = run(scale.main, "--nodes", "10", "--pods", "60", "--waiting", "3", "--classes", "3")

    assert result.exit_code == 1
    assert "more --waiting, or fewer --changes" in result.stderr


@pytest.mark.parametrize("main", [scale.main, plain_pods.main, tick.main])
def test_more_pending_pods_than_pods_are_refused(main: Main) -> None:
    result = run(main, "--nodes", "3", "--pods", "10", "--waiting", "11")

    assert result.exit_code == 1
    assert "11 of 10 pods are to wait" in result.stderr


def test_bench_plain_pods_measures_memory() -> None:
    main, arguments = SMALL["plain_pods"]

    found = figures(main, *arguments)

    assert found["plain"] == 100
    assert min(found["bytesEach"], found["readMicrosecondsEach"], found["planSeconds"], found["updateMs"]) > 0


def test_bench_pages_compares_a_change_with_the_first_page_of_each_view() -> None:
    main, arguments = SMALL["pages"]

    found = figures(main, *arguments)

    assert set(found["seconds"]) == set(pages.VIEWS)
    assert all(min(row["first"], row["changed"], row["ratio"]) > 0 for row in found["seconds"].values())


def test_bench_interference_compares_rounds_beside_a_flood_with_idle_ones() -> None:
    main, arguments = SMALL["interference"]

    row = figures(main, *arguments)

    assert row["nodes"] == 0, "the hostile namespace may have no GPUs"
    for name in ("reaction", "release"):
        for part in ("p50", "p99"):
            assert row[name][f"{part}IdleMs"] > 0
            assert row[name][f"{part}Ratio"] > 0


def test_bench_tick_measures_each_part_of_a_round() -> None:
    main, arguments = SMALL["tick"]

    found = figures(main, *arguments)

    assert set(found["ms"]) == {"one more waits", "one is bound", "one is gone"}
    assert {"snapshot", "validate", "plan", "planner", "rules", "report", "metrics"} < set(found["ms"]["one is gone"])
    assert found["triggers"] > 0


def test_bench_tick_reports_the_peak_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where less is used at the end."""
    main, arguments = SMALL["tick"]
    monkeypatch.setattr(resource, "getrusage", lambda _: SimpleNamespace(ru_maxrss=7 << 30))

    assert figures(main, *arguments)["peakMb"] == 7 << 20


@pytest.mark.parametrize(("workspaces", "shown"), [(1000, True), (200, False)])
def test_bench_burst_compares_with_figures_for_as_many_workspaces(
    monkeypatch: pytest.MonkeyPatch, workspaces: int, shown: bool
) -> None:
    monkeypatch.setattr(burst, "a_cluster", lambda **_: nullcontext(SimpleNamespace(environ=lambda _: {})))
    monkeypatch.setattr(burst, "a_loop", lambda *_: nullcontext())
    monkeypatch.setattr(burst, "by_plain_client", lambda *_, **__: {"seconds": 4.0, "requests": workspaces})
    monkeypatch.setattr(burst, "measure", lambda *_, **__: {"seconds": 8.0, "requests": 2 * workspaces})

    table = run(burst.main, "--workspaces", str(workspaces)).stdout
    found = figures(burst.main, "--workspaces", str(workspaces))

    assert ("139" in table, "3000" in table, "kaito" in found, "aims" in found) == (shown,) * 4


def test_bench_ablation_loads_the_solver_before_it_measures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = tmp_path / "pods.csv", list[str]()
    path.write_text(SHARES)

    def packed(*args: Any, **named: Any) -> NodePacking:
        done.append("packed")
        return pack_nodes(*args, **named)

    monkeypatch.setattr("bench.node_figures.pack", lambda _: done.append("loaded"), raising=False)
    monkeypatch.setattr(ablation, "pack_nodes", packed)

    figures(ablation.main, str(path), "--shape", "2:8000:65536")

    assert done[0] == "loaded"


def test_a_trace_in_the_default_folder_is_the_default(no_traces: Path) -> None:
    (no_traces / trace.DEFAULT_PODS).write_text(SHARES)

    assert figures(openb.main)["shares"] == 9


@pytest.mark.parametrize("main", [openb.main, rounds.main])
def test_a_missing_trace_is_an_error_that_says_where_to_get_it(main: Main, no_traces: Path) -> None:
    result = run(main)

    assert result.exit_code == 1
    assert "No trace is given" in result.stderr
    assert "https://github.com/alibaba/clusterdata" in result.stderr


def test_a_trace_without_shares_is_refused_by_bench_rounds(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text("name,num_gpu,gpu_milli\nwhole,2,1000\n")

    result = run(rounds.main, str(path))

    assert result.exit_code == 1
    assert "no pod asks for a share of a GPU" in result.stderr


def test_bench_ablation_measures_each_heuristic(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    path.write_text(SHARES)
    [row] = figures(ablation.main, str(path), "--shape", "2:8000:65536")
    assert row["bound"] <= row["all"]["gpus"] <= min(row[each.value]["gpus"] for each in Heuristic)


@pytest.mark.parametrize(
    ("main", "arguments", "why"),
    [
        (fleet.main, "--others 5 --clusters 1", "--others has no effect with --clusters 1"),
        (rest.main, "--nodes 5 --nodes-from nodes.csv", "--nodes has no effect with --nodes-from"),
        (rest.main, "--only observer --command sleep", "--only has no effect with --command"),
        (openb.main, "pods.csv --duals", "--duals has no effect without --output json"),
    ],
    ids=["fleet", "rest, nodes", "rest, part", "openb"],
)
def test_an_option_without_effect_is_refused(
    main: Main, arguments: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (fleet, rest):
        monkeypatch.setattr(module, "a_cluster", pytest.fail)

    result = run(main, *arguments.split())

    assert result.exit_code == 1
    assert why in result.stderr


def test_claims_and_shares_that_wait_are_all_demand() -> None:
    """So that what is compared is as much."""
    for cluster in (claims.of_claims(20, 200, 20), claims.of_shares(20, 20)):
        demands = DemandPlanner().plan(cluster.joined()).demands
        assert sum(len(each.pods) for each in demands) == 20


def test_help_has_the_types_of_options_in_plain_words() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale", "--help"], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    assert "--nodes NUMBER" in done.stdout
    assert not re.search(r"<[a-z]", done.stdout)
