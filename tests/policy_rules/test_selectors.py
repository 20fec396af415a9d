"""Pods with GPUs that select a value of a label which discovery writes, and which no node has."""

from typing import Any

import pytest

from tests.policy_rules.manifests import Manifest, a_deployment, a_node_pool, a_pod, findings, with_path

RULE = "gpu-workload-selects-known-label"
PRODUCT = "nvidia.com/gpu.product"
FAMILY = "nvidia.com/gpu.family"
A100 = "NVIDIA-A100-SXM4-40GB"
POOL = a_node_pool("p4d.24xlarge")


def selecting(key: str, value: str, **changes: Any) -> Manifest:
    return with_path(a_pod(gpus=1), spec__nodeSelector={key: value}, **changes)


def requiring(*terms: tuple[str, str, list[str]]) -> Manifest:
    """A pod whose required affinity has one alternative for each of these conditions."""
    of = [{"matchExpressions": [{"key": key, "operator": how, "values": values}]} for key, how, values in terms]
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": of}}}
    return with_path(a_pod(gpus=1), spec__affinity=required)


def a_node(labels: dict[str, str]) -> Manifest:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}, "status": status}


def a_node_profile(**labels: str) -> Manifest:
    spec = {"nodePool": "gpu", "instanceType": "p4d.24xlarge", "labels": labels}
    kind = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "NodeProfile"}
    return {**kind, "metadata": {"name": "p"}, "spec": spec}


def found(*objects: Manifest) -> list[tuple[str, str]]:
    """Field and message of each finding of the rule."""
    return [(each.field, each.message) for each in findings(*objects) if each.rule == RULE]


@pytest.mark.parametrize(
    ("key", "value"),
    [(PRODUCT, "NVIDIA-H100"), (PRODUCT, "A100"), (FAMILY, "hopper"), ("nvidia.com/mig.config", "all-1g.10gb")],
)
def test_a_value_that_no_node_pool_has_is_found_with_those_there_are(key: str, value: str) -> None:
    ((field, message),) = found(selecting(key, value), POOL)
    assert field == f"spec.nodeSelector[{key}]"
    assert value in message
    if key == PRODUCT:
        assert A100 in message


@pytest.mark.parametrize(
    ("key", "value"), [(PRODUCT, A100), (FAMILY, "ampere"), ("team", "other"), ("topology.kubernetes.io/zone", "x")]
)
def test_values_of_a_node_pool_and_labels_that_others_write_are_no_finding(key: str, value: str) -> None:
    assert not found(selecting(key, value), POOL)


def test_without_node_pools_and_nodes_nothing_can_be_said() -> None:
    assert not found(selecting(PRODUCT, "NVIDIA-H100"))
    assert not found(selecting(PRODUCT, "NVIDIA-H100"), a_node_profile())


def test_labels_of_nodes_and_of_node_profiles_count() -> None:
    wanted = "feature.node.kubernetes.io/cpu-model.family"
    assert found(selecting(wanted, "6"), POOL)
    assert not found(selecting(wanted, "6"), POOL, a_node({wanted: "6"}))
    assert not found(selecting(wanted, "6"), POOL, a_node_profile(**{wanted: "6"}))
    assert found(selecting(wanted, "6"), a_node({wanted: "7"}))


def test_pods_without_gpus_may_run_elsewhere() -> None:
    pod = with_path(a_pod(), spec__nodeSelector={PRODUCT: "NVIDIA-H100"})
    assert not found(pod, POOL)
    share = with_path(a_pod({"gpu-fraction": "0.5"}), spec__nodeSelector={PRODUCT: "NVIDIA-H100"})
    assert found(share, POOL)


@pytest.mark.parametrize(
    ("terms", "number"),
    [
        ([(FAMILY, "In", ["hopper"])], 1),
        ([(FAMILY, "In", ["hopper", "ampere"])], 0),
        ([(FAMILY, "In", ["hopper"]), (FAMILY, "In", ["ampere"])], 0),
        ([(FAMILY, "In", ["hopper"]), (FAMILY, "In", ["volta"])], 2),
        ([(FAMILY, "NotIn", ["ampere"])], 1),
        ([(FAMILY, "Exists", [])], 0),
        ([("team", "In", ["other"])], 0),
    ],
)
def test_each_alternative_of_a_required_affinity_must_be_hopeless(
    terms: list[tuple[str, str, list[str]]], number: int
) -> None:
    assert len(found(requiring(*terms), POOL)) == number


def test_a_template_is_checked_like_its_pods() -> None:
    ((field, _),) = found(a_deployment(selecting(FAMILY, "hopper")), POOL)
    assert field.startswith("spec.template.spec.nodeSelector")


def test_a_static_node_pool_offers_what_its_nodes_have() -> None:
    other = with_path(a_node_pool("g6.xlarge"), metadata__name="other")
    assert found(selecting(FAMILY, "ampere"), other)
    assert not found(selecting(FAMILY, "ampere"), other, with_path(POOL, spec__replicas=2))


def test_near_values_are_named() -> None:
    ((_, message),) = found(selecting(PRODUCT, "NVIDIA-A100-SXM4-80GB"), POOL)
    assert "did you mean" in message


@pytest.mark.parametrize("spec", [{"nodeSelector": "x"}, {"affinity": []}, {"nodeSelector": {PRODUCT: 1}}])
def test_a_selector_that_cannot_be_read_ends_no_check(spec: dict[str, Any]) -> None:
    pod = a_pod(gpus=1)
    found({**pod, "spec": {**pod["spec"], **spec}}, POOL)


def test_beside_an_invalid_node_profile_nothing_can_be_said() -> None:
    """What its nodes have is not known."""
    assert not found(selecting(FAMILY, "hopper"), POOL, with_path(a_node_profile(), spec__labels="x"))
