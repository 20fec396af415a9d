"""A value that is unknown in a preview, or secret, hides only its own field; the rest is known at once."""

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from plimsoll.components import (
    CapacityGate,
    Environment,
    Foundation,
    GpuDiscovery,
    InvalidArgumentError,
    Monitoring,
    NodePool,
    Queue,
    QueueAdmission,
    ShareBinder,
    TrainingRuntime,
    Workspace,
)
from tests.components.declaring import HIDDEN, declared, manifest
from tests.components.templates import TORCH


def unknown() -> pulumi.Output[Any]:
    """An output of a resource that is known only after the update."""
    return pulumi.Output.from_input(pulumi.UNKNOWN)


def secret(value: Any) -> pulumi.Output[Any]:
    return pulumi.Output.secret(value)


def of(kind: str, program: Callable[[], Any]) -> dict[str, Any]:
    return manifest(declared(program), kind)


def test_an_unknown_amount_of_a_queue() -> None:
    spec = of("Queue", lambda: Queue("q", {"resources": {"gpu": {"quota": unknown(), "limit": 16}}}))["spec"]
    assert spec["resources"]["gpu"] == {"quota": HIDDEN, "overQuotaWeight": 1, "limit": 16}
    assert spec["resources"]["cpu"]["limit"] == -1


def test_a_known_output_is_converted_like_a_plain_value() -> None:
    late: pulumi.Output[Any] = pulumi.Output.from_input({"gpu": {"quota": 2, "over_quota_weight": 3}})
    plain = of("Queue", lambda: Queue("q", {"resources": {"gpu": {"quota": 2, "over_quota_weight": 3}}}))
    assert of("Queue", lambda: Queue("q", {"resources": late})) == plain


@pytest.mark.parametrize(
    "resources",
    [
        {"gpu": {"quota": 2, "limit": pulumi.Output.from_input(None)}},
        pulumi.Output.from_input({"gpu": {"quota": 2, "limit": None}, "cpu": None}),
        {"gpu": {"quota": 2, "limit": None}, "cpu": pulumi.Output.from_input(None)},
        {"gpu": {"quota": 2, "limit": None}},
    ],
)
def test_an_output_of_none_is_an_absent_value(resources: Any) -> None:
    plain = of("Queue", lambda: Queue("q", {"resources": {"gpu": {"quota": 2}}}))
    nothing: pulumi.Output[Any] = pulumi.Output.from_input(None)
    made = of("Queue", lambda: Queue("q", {"resources": resources, "display_name": nothing}))
    assert {key: value for key, value in made["spec"].items() if value is not None} == plain["spec"]


def test_a_field_that_an_output_of_none_adds_is_not_lost() -> None:
    """With `replicas` a NodePool has no field `disruption`; without, it has one with defaults."""
    nothing: pulumi.Output[Any] = pulumi.Output.from_input(None)
    given: Any = {"node_class_ref": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}, "replicas": nothing}
    with pytest.raises(pulumi.RunError, match="disruption: an Output is None"):
        declared(lambda: NodePool("gpu", given))
    given["replicas"] = pulumi.Output.from_input(3)
    assert "disruption" not in of("NodePool", lambda: NodePool("gpu", given))["spec"]


def test_unknown_values_within_lists_and_texts() -> None:
    pool = of(
        "NodePool",
        lambda: NodePool(
            "gpu",
            {
                "node_class_ref": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": unknown()},
                "requirements": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", unknown()]}],
                "labels": {"team": unknown(), "kind": "gpu"},
            },
        ),
    )["spec"]["template"]
    assert pool["metadata"]["labels"] == {"team": HIDDEN, "kind": "gpu"}
    assert pool["spec"]["requirements"][0]["values"] == ["a", HIDDEN]
    assert pool["spec"]["nodeClassRef"]["name"] == HIDDEN
    rules = of("PrometheusRule", lambda: Monitoring("alerts", {"scaling_seconds": unknown()}))["spec"]["groups"][0]
    hidden = [rule["alert"] for rule in rules["rules"] if rule["expr"] == HIDDEN]
    assert hidden == ["PlimsollScalingSlow"]


def test_a_known_output_is_written_into_the_text() -> None:
    late = pulumi.Output.from_input(300)
    plain = of("PrometheusRule", lambda: Monitoring("alerts", {"scaling_seconds": 300}))
    assert of("PrometheusRule", lambda: Monitoring("alerts", {"scaling_seconds": late})) == plain


def test_an_unknown_queue_of_a_runtime_is_on_every_pod_template() -> None:
    args: Any = {"pod_group_policy": {"kai_scheduler": {"queue": unknown()}}, "template": TORCH}
    spec = of("TrainingRuntime", lambda: TrainingRuntime("torch", args))["spec"]
    pods = [job["template"]["spec"]["template"] for job in spec["template"]["spec"]["replicatedJobs"]]
    assert all(each["metadata"]["labels"]["kai.scheduler/queue"] == HIDDEN for each in pods)
    assert all(each["spec"]["schedulerName"] == "kai-scheduler" for each in pods)


def test_quantities_of_a_runtime_are_canonical_besides_an_unknown_value() -> None:
    """Trainer writes them back so, and would own the fields that it respells."""
    limits = {"cpu": "2000m", "memory": "2048Mi", "nvidia.com/gpu": unknown()}
    pods = {"spec": {"containers": [{"name": "node", "image": unknown(), "resources": {"limits": limits}}]}}
    args: Any = {"template": {"spec": {"replicated_jobs": [{"name": "n", "template": {"spec": {"template": pods}}}]}}}
    spec = of("TrainingRuntime", lambda: TrainingRuntime("torch", args))["spec"]
    (job,) = spec["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": HIDDEN}


def test_an_unknown_part_that_the_component_must_read_hides_the_whole() -> None:
    args: Any = {"pod_group_policy": unknown(), "template": TORCH}
    assert of("TrainingRuntime", lambda: TrainingRuntime("torch", args))["spec"] == HIDDEN


def test_unknown_values_of_the_chart_and_of_policies() -> None:
    program = lambda: GpuDiscovery("gpu", {"runtime_class_name": unknown(), "image": {"tag": unknown()}})  # noqa: E731
    values = of("Chart", program)["values"]
    assert (values["runtimeClassName"], values["image"]) == (HIDDEN, {"tag": HIDDEN})
    assert values["devicePlugin"] == {"enabled": True}
    admission = of("ValidatingAdmissionPolicy", lambda: QueueAdmission("queues", {"leaves": ["research", unknown()]}))[
        "spec"
    ]
    shown = {each["name"]: each["expression"] for each in admission["variables"]}
    assert shown["leaves"] == HIDDEN
    assert shown["parents"] == "[]"


def test_the_namespace_of_triggers_may_be_known_later() -> None:
    resources = declared(lambda: Foundation("plimsoll", {"trigger_namespace": unknown()}))
    policy = manifest(resources, "ValidatingAdmissionPolicy", "plimsoll-trigger-namespace")["spec"]
    assert policy["matchConstraints"]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] == HIDDEN


def test_errors_besides_an_unknown_value_are_refused_in_the_preview() -> None:
    with pytest.raises(InvalidArgumentError, match=r"Queue q: resources.cpu.quota: must be at least 0"):
        declared(lambda: Queue("q", {"resources": {"gpu": {"quota": unknown()}, "cpu": {"quota": -3}}}))
    with pytest.raises(InvalidArgumentError, match=r"Workspace w: inference.replica: unknown field"):
        misspelled: Any = {"config": unknown(), "replica": 1}
        declared(lambda: Workspace("w", {"inference": misspelled}))


def test_a_known_output_is_checked_besides_an_unknown_one() -> None:
    late = pulumi.Output.from_input(-3)
    args: Any = {"resources": {"gpu": {"quota": unknown()}, "cpu": {"quota": late}}}
    with pytest.raises(InvalidArgumentError, match=r"resources.cpu.quota: must be at least 0"):
        declared(lambda: Queue("q", args))


@pytest.mark.parametrize(
    ("program", "field"),
    [
        (lambda later: CapacityGate("gate", {"namespaces": ["a", later]}), "namespaces"),
        (lambda later: ShareBinder("binder", {"scheduler_name": later}), "scheduler_name"),
        (lambda later: GpuDiscovery("gpu", {"gfd": {"mode": later}}), "gfd.mode"),
        (lambda later: GpuDiscovery("gpu", {"namespace": later}), "namespace"),
    ],
)
def test_outputs_that_determine_the_number_of_objects_are_refused_by_name(
    program: Callable[[Any], Any], field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        declared(lambda: program(unknown()))
    assert f"{field}: is an Output, but it determines which objects are declared" in str(caught.value)


def test_every_value_of_an_environment_may_be_unknown() -> None:
    args: Any = {"limits": {"gpus": unknown()}, "queue_scheduler": unknown(), "node_auto_provisioning": "enabled"}
    spec = of("Environment", lambda: Environment("prod", args))["spec"]
    assert spec == {"limits": {"gpus": HIDDEN}, "queueScheduler": HIDDEN, "nodeAutoProvisioning": "enabled"}
