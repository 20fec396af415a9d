"""`plimsoll adopt`: objects of a cluster become settings of a stack, or are left out with a message."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from plimsoll.cli import app
from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection, RequestError
from plimsoll.project import adopt
from plimsoll.stacks import run, settings_of
from tests.components.declaring import declared, manifest


def pool(node: dict[str, Any] | None = None, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A NodePool as the apiserver returns it, with its defaults; `node` and `labels` are those of the template."""
    of_node = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}}
    defaults = {"disruption": {"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized"}}
    template = {"metadata": {"labels": labels or {}}, "spec": {**of_node, "requirements": [], **(node or {})}}
    return {"kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {"template": template, **defaults, **spec}}


def kaito(namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "kaito.sh/v1beta1",
        "kind": "Workspace",
        "metadata": {"name": "phi", "namespace": namespace},
        "inference": {"preset": {"name": "phi-4"}},
        "status": {"conditions": []},
    }


class Queues:
    """A connection to a cluster that has one queue, and no other kind."""

    def __init__(self, queue: dict[str, Any]) -> None:
        self._answers: dict[str, dict[str, Any]] = {
            "/apis/scheduling.run.ai": {"preferredVersion": {"groupVersion": "scheduling.run.ai/v2"}},
            "/apis/scheduling.run.ai/v2/queues": {"items": [queue]},
        }

    def request(self, _method: str, path: str) -> dict[str, Any]:
        if path not in self._answers:
            raise RequestError(404, "NotFound", path)
        return self._answers[path]

    def list_items(self, path: str, **_: Any) -> Iterator[dict[str, Any]]:
        yield from self.request("GET", path)["items"]

    def close(self) -> None:
        pass


def test_the_written_settings_are_valid() -> None:
    queue = {"kind": "Queue", "metadata": {"name": "research"}, "spec": {"resources": {"gpu": {"quota": 4}}}}
    found = adopt([pool(weight=5), queue, kaito("a"), kaito("b")])
    assert found.left_out == []
    settings = settings_of({"layer": "objects", **found.settings})
    assert settings.node_pools["gpu"].weight == 5
    assert set(settings.kaito_workspaces) == {"phi", "b-phi"}
    every = [*settings.node_pools.values(), *settings.queues.values(), *settings.kaito_workspaces.values()]
    assert all(each.import_ for each in every)


def node_profile(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A NodeProfile with what the controller learned."""
    pair = {"nodePool": "gpu", "instanceType": "g6.xlarge"}
    learned = {"node": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-L4"}}
    return {
        "kind": "NodeProfile",
        "metadata": {"name": "l4"},
        "spec": {**pair, **({"labels": labels} if labels is not None else {}), **spec},
        "status": {"learned": learned},
    }


def test_declared_node_profiles_are_written_without_what_was_learned() -> None:
    found = adopt([node_profile({"nvidia.com/gpu.replicas": "4"}, allocatable={"cpu": "3500m"})])
    assert found.left_out == []
    settings = settings_of({"layer": "objects", **found.settings})
    assert settings.node_profiles["l4"].import_
    assert (
        settings.node_profiles["l4"].manifest().items()
        >= {
            "nodePool": "gpu",
            "instanceType": "g6.xlarge",
            "labels": {"nvidia.com/gpu.replicas": "4"},
            "allocatable": {"cpu": "3500m"},
        }.items()
    )
    assert "learned" not in str(found.settings)
    assert set(adopt([node_profile(allocatable={"cpu": "3"})]).settings) == {"nodeProfiles"}


@pytest.mark.parametrize("spec", [{}, {"labels": {}}, {"allocatable": {}}])
def test_node_profiles_that_declare_nothing_stay_the_controllers(spec: dict[str, Any]) -> None:
    assert adopt([node_profile(**spec)]) == ({}, [])


def test_a_node_profile_that_a_stack_would_refuse_is_left_out() -> None:
    found = adopt([node_profile({"a": "no value"}), node_profile({"a": "b"}, devices=2)])
    assert found.settings == {}
    assert [line.partition(":")[0] for line in found.left_out] == ["NodeProfile l4", "NodeProfile l4"]


def test_a_node_profile_that_declares_devices_for_claims_is_written() -> None:
    found = adopt([node_profile(claimDevices={"driver": "gpu.nvidia.com"})])
    assert settings_of({"layer": "objects", **found.settings}).node_profiles["l4"].claim_devices is not None


def claims(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    named = {"name": "gpus", **({"namespace": "team"} if kind == "ResourceClaimTemplate" else {}), **metadata}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": named, "spec": spec}


CLASS: dict[str, Any] = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]}
CLAIMED: dict[str, Any] = {
    "metadata": {"labels": {"team": "ml"}},
    "spec": {
        "devices": {
            "requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "gpus", "allocationMode": "ExactCount", "count": 2}}
            ]
        }
    },
}
"""As the apiserver returns them, with its defaults."""


def test_classes_and_templates_of_claims_are_declared_as_they_are() -> None:
    found = adopt([claims("DeviceClass", CLASS), claims("ResourceClaimTemplate", CLAIMED)])
    assert found.left_out == []
    made = declared(
        run,
        config={f"plimsoll:{name}": json.dumps(value) for name, value in found.settings.items()}
        | {"plimsoll:layer": "objects"},
    )
    assert manifest(made, "DeviceClass")["spec"] == CLASS
    template = manifest(made, "ResourceClaimTemplate")
    assert (template["metadata"]["namespace"], template["spec"]) == ("team", CLAIMED)


@pytest.mark.parametrize(
    "by_others",
    [
        {"annotations": {"meta.helm.sh/release-name": "dra-driver"}},
        {"labels": {"plimsoll.dev/workspace": "chat"}},
        {"ownerReferences": [{"kind": "ComputeDomain"}]},
    ],
)
def test_classes_and_templates_of_charts_and_controllers_stay_theirs(by_others: dict[str, Any]) -> None:
    kinds = {"DeviceClass": CLASS, "ResourceClaimTemplate": CLAIMED}
    assert adopt([claims(kind, spec, **by_others) for kind, spec in kinds.items()]) == ({}, [])


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("apiVersion", {**claims("ResourceClaimTemplate", CLAIMED), "apiVersion": "resource.k8s.io/v1beta1"}),
        ("spec.other", claims("DeviceClass", {**CLASS, "other": 1})),
        ("spec.spec.other", claims("ResourceClaimTemplate", {"spec": {**CLAIMED["spec"], "other": 1}})),
        ("devices.requests", claims("ResourceClaimTemplate", {"spec": {"devices": {"requests": []}}})),
    ],
)
def test_classes_and_templates_that_a_stack_would_refuse_or_change_are_left_out(
    field: str, given: dict[str, Any]
) -> None:
    found = adopt([given])
    assert found.settings == {}
    assert field in found.left_out[0]


def test_labels_of_queues_and_templates_of_claims_are_declared() -> None:
    """They stay once `import` is removed, and the queue stays in its node pool of KAI."""
    labels = {"kai.scheduler/node-pool": "a100", "team": "ml"}
    queue = {"kind": "Queue", "metadata": {"name": "q", "labels": labels}, "spec": {}}
    found = adopt([queue, claims("ResourceClaimTemplate", CLAIMED, labels=labels), pool()])
    assert found.left_out == []
    settings = settings_of({"layer": "objects", **found.settings})
    assert settings.queues["q"].labels == settings.resource_claim_templates["gpus"].labels == labels
    for kind, name in (("queues", "q"), ("resourceClaimTemplates", "gpus")):
        del found.settings[kind][name]["import"]
    made = declared(
        run,
        config={f"plimsoll:{name}": json.dumps(value) for name, value in found.settings.items()}
        | {"plimsoll:layer": "objects"},
    )
    for kind in ("Queue", "ResourceClaimTemplate"):
        assert manifest(made, kind)["metadata"]["labels"] == labels


@pytest.mark.parametrize("labels", [None, {}, [], "a"])
def test_a_queue_without_labels_declares_none(labels: object) -> None:
    queue = {"kind": "Queue", "metadata": {"name": "q", "labels": labels}, "spec": {}}
    assert "labels" not in adopt([queue]).settings["queues"]["q"]


def test_workspaces_of_the_same_name_are_all_written() -> None:
    joined = kaito("a")
    joined["metadata"]["name"] = "b-phi"
    found = adopt([kaito("a"), kaito("b"), joined])
    places = [(each["namespace"], each["name"]) for each in found.settings["kaitoWorkspaces"].values()]
    assert sorted(places) == [("a", "b-phi"), ("a", "phi"), ("b", "phi")]


def test_an_object_that_is_being_deleted_is_left_out() -> None:
    leaving = pool()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert adopt([leaving]) == ({}, ["NodePool gpu: metadata.deletionTimestamp: is being deleted"])


@pytest.mark.parametrize("content", [{}, {"spec": {"reclaimMinRuntime": ""}}, {"spec": {"resources": {"tpu": {}}}}])
def test_a_queue_that_a_stack_would_refuse_or_change_is_left_out(content: dict[str, Any]) -> None:
    found = adopt([{"kind": "Queue", "metadata": {"name": "q"}, **content}])
    assert found.settings == {}
    assert len(found.left_out) == 1


@pytest.mark.parametrize(
    ("field", "parts"),
    [
        ("spec.disruption.consolidationPolicy", {"disruption": {"consolidateAfter": "0s"}}),
        ("disruption.budgets[0]", {"disruption": {"budgets": [{"nodes": "1", "schedule": "@daily"}]}}),
        ("disruption.budgets[0].comment", {"disruption": {"budgets": [{"nodes": "1", "comment": "x"}]}}),
        ("limits.cpu", {"limits": {"cpu": 1.5}}),
        ("weight", {"weight": 0}),
        ("labels: commit", {"labels": {"commit": "0123456789abcdef0123456789abcdef01234567"}}),
        ("requirements[0].minimum", {"node": {"requirements": [{"key": "a", "operator": "Exists", "minimum": 1}]}}),
        ("taints[0].timeAdded", {"node": {"taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "x"}]}}),
        ("spec.template.spec.taints[0].effect", {"node": {"taints": [{"key": "a"}]}}),
    ],
)
def test_a_node_pool_that_a_stack_would_refuse_or_change_is_left_out(field: str, parts: dict[str, Any]) -> None:
    found = adopt([pool(**parts)])
    assert found.settings == {}
    assert found.left_out[0].startswith(f"NodePool gpu: {field}")


def test_undeclared_fields_of_a_node_pool_stay() -> None:
    found = adopt([pool(replicas=2, limits={"nodes": "4"}), pool(limits={}, labels={"team": "ml"})])
    assert found.left_out == []


@pytest.mark.parametrize("text", ["1e3", "16e0", "0o7", "1000m", ".5", "-1", "text", "true", ""])
def test_strings_stay_strings_in_yaml_1_1_and_1_2(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = {"metadata": {"name": "q"}, "spec": {"displayName": text}}
    monkeypatch.setattr(Connection, "open", lambda *_: Queues(queue))
    (tmp_path / "Pulumi.yaml").write_text("name: gpu-capacity")
    done = CliRunner().invoke(app, ["adopt", str(tmp_path)])
    assert done.exit_code == 0, done.output
    written = (tmp_path / "Pulumi.objects.yaml").read_text()
    assert yaml.safe_load(written)["config"]["queues"]["q"]["displayName"] == text
    assert (f"displayName: '{text}'" in written) == (text not in ("text", "1000m")), "what no reader takes for a number"


def test_an_object_with_an_unsupported_field_is_left_out_by_name() -> None:
    found = adopt([pool(novelty=1), {"kind": "Queue", "metadata": {"name": "q"}, "spec": {"share": 1}}])
    assert found.settings == {}
    assert [line.partition(": not")[0] for line in found.left_out] == [
        "NodePool gpu: spec.novelty",
        "Queue q: spec.share",
    ]


def test_absent_amounts_of_a_queue_stay_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    from plimsoll.components import Queue

    args: Any = {"resources": {"gpu": {"quota": 4}}, "write_all_amounts": False}
    spec = manifest(declared(lambda: Queue("q", args)), "Queue")["spec"]
    assert spec == {"resources": {"gpu": {"quota": 4}}}


def test_a_project_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_bytes(b"\xff\xfe\x00")
    error = CliRunner().invoke(app, ["adopt", str(tmp_path)]).exception
    assert isinstance(error, PlimsollError)
    assert error.message.startswith(str(tmp_path / "Pulumi.yaml"))
