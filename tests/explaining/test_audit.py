"""`audit`: each section finds what it is named after, and nothing in a cluster without faults."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.cli.tables.audit import Audited, as_html
from plimsoll.explaining import Audit, Section, audit, plan_demand
from plimsoll.kube import RequestError
from tests.builders import (
    a_gpu_node,
    a_node_pool,
    a_pod,
    a_queue,
    a_snapshot,
    a_waiting_pod,
    an_environment,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
L4 = "g6.xlarge"
POOL = a_node_pool("l4", (L4,), group="karpenter.k8s.aws")
OF_POOL = {"karpenter.sh/nodepool": "l4"}
ROOT = a_queue("root", parent="")


def audited(*objects: Any, **spec: Any) -> Audit:
    return audit(plan_demand(a_snapshot(*objects, environment=an_environment(**spec)), NOW))


def node(name: str = "n", **more: Any) -> Any:
    return a_gpu_node(name, "NVIDIA-L4", instance_type=L4, more_labels=OF_POOL, **more)


CASES: dict[Section, tuple[tuple[Any, ...], str, str]] = {
    Section.IDLE: ((node(), POOL), "Node n", "1 of 1 GPU free"),
    Section.BLOCKED: ((POOL, a_waiting_pod(gpu_memory="90000")), "1 pod: team/pod", "TooLarge"),
    Section.PACKING: (
        (POOL, *(node(on, gpus=2) for on in ("a", "b")), *(a_pod(f"p{on}", node=on, devices=1) for on in ("a", "b"))),
        "g6.xlarge NVIDIA-L4",
        "1 of 2 nodes could be removed",
    ),
    Section.LABELS: ((POOL, node(), a_pod("x", node="n", devices=2)), "Node n", ""),
    Section.OWNERS: ((a_gpu_node("own", "NVIDIA-L4"),), "Node own", "no NodePool"),
    Section.GATES: (
        (POOL, ROOT, a_queue("a", limit=0), a_waiting_pod(gpus=1, queue="a")),
        "Pod team/pod",
        "nothing keeps it from the autoscaler",
    ),
    Section.QUEUES: ((ROOT, a_queue("a", limit=0), a_queue("b", limit=1)), "Queue a", "limit of a is 0"),
    Section.WOULD: ((POOL, a_waiting_pod(gpu_fraction="0.5")), L4, "request 1 node of NodePool l4 with 1 GPU"),
}


@pytest.mark.parametrize("section", Section)
def test_a_section_has_what_it_is_named_after(section: Section) -> None:
    objects, subject, text = CASES[section]
    assert any((each.subject, text in each.text) == (subject, True) for each in audited(*objects).of(section)), audited(
        *objects
    ).of(section)


def test_a_cluster_without_faults_has_none() -> None:
    found = audited(POOL, node(), a_pod("x", node="n", devices=1), ROOT, a_queue("a"))
    assert (found.findings, found.idle_gpus, found.nodes, found.gpus) == ((), 0.0, 1, 1)


def test_idle_gpus_are_sorted_by_what_they_cost_and_sums_say_what_has_no_price() -> None:
    more = a_gpu_node("big", "NVIDIA-H100-80GB-HBM3", gpus=8, instance_type="p5.48xlarge", more_labels=OF_POOL)
    found = audited(POOL, node(), more, a_gpu_node("own", instance_type="own", more_labels=OF_POOL))
    assert [each.subject for each in found.of(Section.IDLE)] == ["Node big", "Node n", "Node own"]
    assert dict(found.cost.unpriced) == {"own": 1}


def test_findings_are_counted_beyond_those_that_are_listed() -> None:
    found = audited(POOL, *(node(f"n{number}") for number in range(60)))
    assert (found.counts[Section.IDLE], len(found.of(Section.IDLE))) == (60, 50)


def test_names_of_others_are_no_markup_on_the_page() -> None:
    name = "<script>alert(1)</script>"
    page = as_html([Audited(name, audited(a_gpu_node(name, "NVIDIA-L4")))])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page, "the page loads nothing"


def test_the_page_has_the_warnings() -> None:
    page = as_html([Audited("c", audited(), ("Node: the account <may> not list it",))])
    assert "<li>Node: the account &lt;may&gt; not list it" in page
    assert "warnings" not in as_html([Audited("c", audited())])


def test_the_command_writes_text_documents_a_page_and_the_stack_file(tmp_path: Path) -> None:
    stack = tmp_path / "Pulumi.objects.yaml"
    outputs = {}
    for output in ("text", "json", "html"):
        run = ["audit", str(EXAMPLES / "demand"), "-o", output, "--stack", str(stack)]
        done = CliRunner().invoke(app, run, catch_exceptions=False)
        assert done.exit_code == 0
        outputs[output] = done.stdout
    found = json.loads(outputs["json"])
    assert found["summary"]["gpus"] == 1
    assert found["sections"]["Pods without capacity"]["count"] == 1
    assert "team-a/typo" in outputs["text"]
    assert outputs["html"].startswith("<!doctype html>")
    assert set(yaml.safe_load(stack.read_text())["config"]["nodePools"]) == {"a100", "l4"}


class Api:
    """Lists of what a cluster has; 403 for the kinds that the account may not list."""

    def close(self) -> None:
        pass

    def request(self, method: str, path: str) -> Any:
        return {"preferredVersion": {"groupVersion": f"{path.removeprefix('/apis/')}/v1"}}

    def list_items(self, path: str, **_: Any) -> Any:
        if "queues" not in path:
            raise RequestError(403, "Forbidden", f"forbidden: {path}")
        of_stack = {"annotations": {"pulumi.com/patchFieldManager": "plimsoll-stack"}}
        spec = {"resources": {"gpu": {"quota": 2}}}
        return [{"metadata": {"name": "own"}, "spec": spec}, {"metadata": {"name": "of-a-stack", **of_stack}}]


def test_the_stack_file_needs_no_more_rights_than_the_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plimsoll.cli.audit.read_snapshot", lambda *_, **__: a_snapshot())
    monkeypatch.setattr("plimsoll.kube.Connection.open", lambda *_: Api())
    stack = tmp_path / "Pulumi.objects.yaml"
    done = CliRunner().invoke(app, ["audit", "--stack", str(stack)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "may not list nodepools (karpenter.sh)" in done.stderr
    assert "1 object of Pulumi stacks" in done.stderr
    assert set(yaml.safe_load(stack.read_text())["config"]["queues"]) == {"own"}


def test_queues_whose_parents_form_a_cycle_can_run_nothing() -> None:
    found = audited(a_queue("a", parent="b"), a_queue("b", parent="a"), a_queue("leaf", parent="b"))
    of_queues = [each for each in found.findings if each.section is Section.QUEUES]
    assert [each.subject for each in of_queues] == ["Queue a", "Queue b", "Queue leaf"]
    assert all("form a cycle" in each.text for each in of_queues)
