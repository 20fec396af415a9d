"""Every benchmark that needs a sandbox completes a small run with its documented command, which starts its own
sandbox."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plimsoll.home import sandboxes
from plimsoll.sandbox import Sandbox
from tests.e2e.cluster.kube import Kube
from tests.pages import CHECKOUT

pytestmark = pytest.mark.e2e

Connect = Callable[..., Kube]


def bench(name: str, *arguments: str) -> dict[str, Any]:
    """The figures of a run; asserts that its sandbox was removed."""
    before = set(sandboxes().glob("*"))
    command = [sys.executable, "-m", f"bench.{name}", *arguments, "--output", "json"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert set(sandboxes().glob("*")) == before
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def test_the_loop_at_rest() -> None:
    figures = bench("rest", "--nodes", "3", "--settled", "3", "--seconds", "2")

    assert figures["nodes"] == 3
    assert figures["requestsUntilRest"] > 0
    assert figures["loopMiB"] > 0
    assert figures["engineMiB"] > 0, "an update is pre-started"


def test_the_observer_at_rest() -> None:
    figures = bench("rest", "--nodes", "3", "--settled", "3", "--seconds", "2", "--only", "observer")

    assert (figures["nodes"], figures["engines"]) == (3, {})
    assert figures["leaseRequests"] == 0


def test_live_nodes() -> None:
    figures = bench("live_nodes", "--nodes", "3", "--times", "1", "--settled", "2", "--seconds", "2")

    assert figures["nodes"] == 3
    assert 0 < figures["secondsToSync"] <= figures["secondsToLease"]
    assert figures["otherRequests"] == 0
    assert figures["loopMiB"] > 0
    for kind in ("verdict", "reaction"):
        assert 0 < figures[kind]["p50"] <= figures[kind]["most"]


def test_a_workspace_to_its_node_claim() -> None:
    figures = bench("reaction", "--times", "1")

    assert set(figures) == {"pre-started", "cold", "plain client"}
    assert figures["plain client"]["ratio"] == 1
    assert all(figures[case]["p50"] > figures[case]["engine"] > 0 for case in ("pre-started", "cold"))


def test_the_takeover_by_a_standby() -> None:
    figures = bench("takeover", "--times", "1", "--lease-duration", "6")

    assert (figures["kills"], figures["leaseDuration"]) == (1, 6)
    lease, verdict = (figures["seconds"][f"from expiry to {what}"]["most"] for what in ("the Lease", "a verdict"))
    assert 0 <= lease < verdict


def test_the_size_of_a_stack() -> None:
    figures = bench("stack", "--resources", "6", "--beside", "2", "--times", "1")

    assert set(figures["ratios"]) == {"create", "delete", "next"}
    assert figures["small"]["create"]["p50"] > 0


def test_the_cost_of_one_writer() -> None:
    figures = bench("fencing", "--writes", "100", "--renewals", "200")

    assert set(figures) == {"write", "renewal"}
    assert figures["write"]["ratio"] > 0


def test_a_burst_of_workspaces() -> None:
    figures = bench("burst", "--workspaces", "3", "--settled", "2")

    ours = figures["plimsoll"]
    assert 0 < ours["secondsToFirstClaim"] <= ours["secondsToHalf"] <= ours["seconds"]
    assert ours["requests"] >= 3
    assert set(figures["plainClient"]) == {"seconds", "requests"}


def test_a_burst_of_workspaces_to_nodes() -> None:
    figures = bench("burst", "--workspaces", "2", "--karpenter", "--settled", "2")

    for side in ("plimsoll", "plainClient"):
        assert figures[side]["secondsToNodesReady"] >= figures[side]["seconds"]


def test_a_burst_of_shares(tmp_path: Path) -> None:
    path = tmp_path / "pods.csv"
    rows = [f"pod-{n},1000,1024,1,{milli}" for n, milli in enumerate([500] * 3 + [900] * 8 + [1000])]
    path.write_text("\n".join(["name,cpu_milli,memory_mib,num_gpu,gpu_milli", *rows]))

    figures = bench("rounds", str(path), "--pods", "2", "--pods", "11")

    of_two, of_all = figures["bursts"]
    assert (of_two["pods"], of_two["leastGpus"], of_two["gpus"]) == (2, 8, 8)
    # One of 500 stands alone, so ten GPUs: more than one node of 8 has.
    assert (of_all["pods"], of_all["leastGpus"], of_all["gpus"]) == (11, 16, 16)
    assert of_all["triggers"] == 2


def test_the_node_scale_adjuster_and_plimsoll() -> None:
    figures = bench("scale_adjuster", "--only", "fragments", "--system", "plimsoll")

    # Two shares of 0.6 fit no GPU.
    (result,) = figures["results"]
    assert (result["bound"], result["gpus"], result["nodes"], result["empty"]) == (3, 3, 3, 0)


def test_one_more_cluster_on_a_backend() -> None:
    figures = bench("fleet", "--clusters", "2", "--deltas", "1", "--others", "20", "--seconds", "3")

    first, second = figures["clusters"]
    assert figures["atRest"]["requests"] == 0
    assert figures["stored"]["objects"] > 20
    assert first["deltas"][0]["writes"] > 0
    for key in ("requests", "bytesRead", "bytesWritten"):
        assert second["start"][key] < 1.5 * first["start"][key], "it reads nothing of 20 others"
        assert second["deltas"][0][key] < 1.5 * first["deltas"][0][key]


def test_a_node_list_as_a_command(byo_sandbox: Sandbox, kube: Connect, tmp_path: Path) -> None:
    """Existing nodes are counted separately; without a terminal no progress bar is drawn."""
    source = tmp_path / "nodes.csv"

    def nodes(number: int) -> str:
        rows = [f"listed-{each},8000,65536,2,T4" for each in range(number)]
        source.write_text("\n".join(["sn,cpu_milli,memory_mib,gpu,model", *rows]))
        command = [sys.executable, "-m", "plimsoll", "sandbox", "nodes"]
        done = subprocess.run(
            [*command, "--name", byo_sandbox.name, "--from", str(source)],
            cwd=CHECKOUT, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stderr
        return done.stdout

    assert nodes(20) == "20 nodes are Ready: 20 created, 0 existed already.\n"
    assert nodes(25) == "25 nodes are Ready: 5 created, 20 existed already.\n"
    for each in range(25):
        kube(byo_sandbox).delete("v1", "Node", f"listed-{each}")
