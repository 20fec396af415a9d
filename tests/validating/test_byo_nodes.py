"""Verdicts on existing nodes (BYO): selector, labels, uniformity, usability, GPU memory."""

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.labels import GPU_COUNT, GPU_MEMORY, GPU_PRODUCT
from plimsoll.model import Reason, Verdict
from plimsoll.model.api import Workspace
from plimsoll.model.cluster import Node
from plimsoll.model.meta import Condition
from plimsoll.plan import plan, validate
from tests.builders import A100, V100, V100_MIB, a_node, a_snapshot, a_template, a_workspace, an_environment
from tests.calls import calls


def verdict_of(*objects: Any, **environment: Any) -> Verdict:
    [verdict] = validate(a_snapshot(*objects, environment=an_environment(**environment)))
    return verdict


def needing(gib: float, **fields: Any) -> Workspace:
    return a_workspace(gpu_memory_gib=gib, **fields)


def requesting(gpus: int) -> dict[str, Any]:
    return a_template(resources={"limits": {"nvidia.com/gpu": str(gpus)}})


def nodes(number: int, **fields: Any) -> list[Node]:
    return [a_node(f"node-{n}", **fields) for n in range(number)]


@pytest.mark.parametrize(
    ("workspace", "existing"),
    [
        pytest.param(needing(16), nodes(1), id="one node of 80 GiB"),
        pytest.param(needing(16), nodes(2, count=2, memory=94 * 1024), id="two like nodes of 2 x 94 GiB"),
        pytest.param(needing(80), nodes(1), id="exactly what is there"),
        pytest.param(needing(32, per_replica=2), nodes(2, memory=16384), id="32 GiB over two nodes of 16"),
        pytest.param(a_workspace(preset="phi-4-mini-instruct", replicas=3), nodes(1), id="fewer nodes than replicas"),
        pytest.param(a_workspace(preset="llama-3.3-70b-instruct"), nodes(3), id="a model that spans three nodes"),
        pytest.param(a_workspace(), nodes(1), id="a template that states no need"),
        pytest.param(a_workspace(inference=False), nodes(1), id="no inference"),
        pytest.param(needing(16), nodes(1, ready=None), id="a manifest without conditions"),
        pytest.param(a_workspace(preset="llama-3.3-70b-instruct"), nodes(2), id="raw weights over two nodes"),
        pytest.param(a_workspace(preset="phi-4"), nodes(1, memory=28 * 1024), id="raw weights on one node"),
    ],
)
def test_accepted(workspace: Workspace, existing: list[Node]) -> None:
    verdict = verdict_of(workspace, *existing)
    assert (verdict.reason, verdict.accepted) == (Reason.ACCEPTED, True), verdict.message
    assert verdict.node_names == tuple(node.name for node in existing)


@pytest.mark.parametrize(
    ("workspace", "existing", "per_replica", "reported"),
    [
        pytest.param(a_workspace(preset="phi-4"), nodes(1, memory=28 * 1024), 1, "2 GPUs, 2 nodes", id="on one node"),
        pytest.param(
            a_workspace(preset="llama-3.3-70b-instruct"), nodes(2), 2, "3 GPUs, 3 nodes", id="as many as there are"
        ),
        pytest.param(
            a_workspace(preset="llama-3.3-70b-instruct", per_replica=2),
            nodes(2),
            2,
            "3 GPUs, 3 nodes",
            id="as declared",
        ),
    ],
)
def test_a_higher_estimate_is_a_warning(
    workspace: Workspace, existing: list[Node], per_replica: int, reported: str
) -> None:
    verdict = verdict_of(workspace, *existing)
    assert (verdict.accepted, verdict.per_replica_node_count) == (True, per_replica), verdict.message
    assert any(reported in warning for warning in verdict.warnings), verdict.warnings


@pytest.mark.parametrize(
    ("workspace", "existing", "reported"),
    [
        pytest.param(needing(16), nodes(1, memory=8192), ["node-0", "8192", "16384"], id="one GPU of 8 GiB"),
        pytest.param(needing(80.5), nodes(4), ["node-0", "81920", "82432"], id="a template cannot span nodes"),
        pytest.param(needing(79.6), nodes(1, memory=81510), ["81510", "81511"], id="no rounding up of memory"),
        pytest.param(needing(32, per_replica=2), nodes(1, memory=16384), ["16384", "32768"], id="one node short"),
        pytest.param(needing(64, per_replica=2), nodes(3, memory=16384), ["16384", "65536"], id="two are too few"),
        pytest.param(a_workspace(preset="phi-4"), nodes(9, memory=24576), ["phi-4", "24576"], id="cannot span"),
        pytest.param(a_workspace(preset="llama-3.3-70b-instruct"), nodes(1), ["81920", "134575"], id="one of two"),
        pytest.param(
            a_workspace(preset="falcon-7b"), nodes(1, count=4, memory=8192), ["split over 1 GPU"], id="it is not split"
        ),
        pytest.param(
            a_workspace(preset="phi-4"), nodes(1, count=3, memory=10240), ["split over 2 GPUs"], id="heads for two"
        ),
        pytest.param(
            a_workspace(preset="phi-4", gpu_memory_gib=25),
            nodes(1, count=3, memory=10240),
            ["split over 2 GPUs"],
            id="heads for two, as declared",
        ),
        pytest.param(
            a_workspace(preset="llama-3.3-70b-instruct"),
            nodes(2, count=3, memory=24576),
            ["147456", "split over 2 GPUs of a node"],
            id="heads for two of each node",
        ),
    ],
)
def test_too_little_gpu_memory(workspace: Workspace, existing: list[Node], reported: list[str]) -> None:
    verdict = verdict_of(workspace, *existing)
    assert verdict.reason is Reason.INSUFFICIENT_GPU_MEMORY, verdict.message
    assert verdict.message.startswith("Insufficient total GPU memory: ")
    assert all(each in verdict.message for each in reported), verdict.message


def test_an_instance_type_is_refused() -> None:
    verdict = verdict_of(a_workspace(instance_type="Standard_NC24ads_A100_v4"), a_node())
    assert verdict.reason is Reason.INSTANCE_TYPE_FORBIDDEN
    known = "instanceType must be empty when node auto-provisioning is disabled (BYO scenario)"
    assert verdict.message.startswith(known)
    assert "Standard_NC24ads_A100_v4" in verdict.message


SMALL: dict[str, Any] = {"product": "NVIDIA-L4", "memory": 23034}


def test_without_a_selector_the_smallest_group_that_serves_is_chosen() -> None:
    nodes = [a_node("large"), a_node("small", **SMALL), a_node("bare", product=None)]
    chosen = verdict_of(a_workspace(selector={}, preset="phi-4-mini-instruct"), *nodes)
    assert (chosen.accepted, chosen.node_names) == (True, ("small",)), chosen.message
    assert dict(chosen.node_labels)["nvidia.com/gpu.product"] == ("NVIDIA-L4",)
    assert verdict_of(a_workspace(selector={}, preset="phi-4"), *nodes).node_names == ("large",)


def test_a_chosen_group_stays_chosen() -> None:
    nodes = [a_node("large"), a_node("small", **SMALL)]
    workspace = a_workspace(selector={}, preset="phi-4-mini-instruct", worker_nodes=["large"])
    assert verdict_of(workspace, *nodes).node_names == ("large",)


def test_all_replicas_count_where_a_group_is_chosen() -> None:
    nodes = [a_node("small", **SMALL), a_node("large-1"), a_node("large-2")]
    chosen = verdict_of(a_workspace(selector={}, preset="phi-4-mini-instruct", replicas=2), *nodes)
    assert chosen.node_names == ("large-1", "large-2")


def test_the_cost_of_a_workspace_without_a_selector_does_not_depend_on_the_number_of_nodes() -> None:
    """A hundred of them on ten thousand nodes took ten seconds of each round."""

    def cost(workspaces: int, nodes: int) -> int:
        several = [a_workspace(f"ws-{number}", selector={}) for number in range(workspaces)]
        snapshot = a_snapshot(*several, *(a_node(f"node-{number:03}") for number in range(nodes)))
        return calls(lambda: validate(snapshot))

    def of_ten_more(nodes: int) -> int:
        return cost(20, nodes) - cost(10, nodes)

    assert of_ten_more(150) - of_ten_more(50) < 10 * 100


def test_without_a_suitable_group_the_reasons_are_reported() -> None:
    refused = verdict_of(a_workspace(selector={}, preset="phi-4"), a_node("small", **SMALL))
    assert refused.reason is Reason.NO_MATCHING_NODES
    assert "NVIDIA-L4" in refused.message and "Insufficient total GPU memory" in refused.message
    assert verdict_of(a_workspace(selector={}), a_node(product=None)).reason is Reason.NO_MATCHING_NODES


def test_a_node_with_conditions_but_none_of_them_ready_is_not_usable() -> None:
    node = a_node()
    pressure = Condition(type="MemoryPressure", status="False")
    verdict = verdict_of(a_workspace(), node.model_copy(update={"conditions": (pressure,)}))
    assert verdict.reason is Reason.NO_USABLE_NODES


def test_too_few_nodes_for_all_replicas_are_a_warning_or_refused_by_setting() -> None:
    workspace, nodes = a_workspace(replicas=3), [a_node("a"), a_node("b")]
    assert any("2 of 3 replicas can start" in warning for warning in verdict_of(workspace, *nodes).warnings)
    strict = a_snapshot(workspace, *nodes, environment=an_environment(partialReplicas="refuse"))
    [verdict] = validate(strict)
    assert verdict.reason is Reason.NO_FREE_NODES and "2 of 3 replicas can start" in verdict.message


@pytest.mark.parametrize(
    ("workspace", "node", "reported"),
    [
        (a_workspace(), a_node().model_copy(update={"allocatable": {"cpu": "8"}}), "run NVIDIA's device plugin"),
        (
            a_workspace(),
            a_node().model_copy(update={"allocatable": {"cpu": "8", "nvidia.com/gpu.shared": "4"}}),
            "gpuResource of the Environment to nvidia.com/gpu.shared",
        ),
        (
            a_workspace(partition={"mode": "accelerator", "count": 2}),
            a_node(count=4, allocatable=1),
            "lower resource.partition.count",
        ),
        (a_workspace(template=requesting(2)), a_node(allocatable=1), "inference.template requests to 1"),
        (a_workspace(template=requesting(2)), a_node(count=2, allocatable=1), "device plugin reports fewer GPUs"),
        (a_workspace(preset="phi-4"), a_node(taints=["team"]), "nodeClaims.taints"),
        (a_workspace(), a_node(taints=["team"]), "inference.template"),
        (a_workspace(), a_node(cordoned=True), "uncordon"),
        (a_workspace(), a_node(ready=False), "Ready"),
    ],
)
def test_the_advice_says_what_would_fix_it(workspace: Workspace, node: Node, reported: str) -> None:
    verdict = verdict_of(workspace, node)
    assert verdict.reason is Reason.NO_USABLE_NODES, verdict.message
    assert reported in verdict.message.partition("; ")[2], verdict.message


@pytest.mark.parametrize("more", [{}, {"pool": "a"}])
def test_reserved_keys_are_refused_and_named(more: dict[str, str]) -> None:
    verdict = verdict_of(a_workspace(selector={"karpenter.sh/nodepool": "x"} | more), a_node())
    assert verdict.reason is Reason.SELECTOR_RESERVED
    assert "karpenter.sh/nodepool" in verdict.message


def test_reserved_prefixes_are_the_environments() -> None:
    verdict = verdict_of(a_workspace(), a_node(), reservedLabelPrefixes=["pool"])
    assert verdict.reason is Reason.SELECTOR_RESERVED


def test_no_node_matches() -> None:
    verdict = verdict_of(a_workspace(), a_node(pool="b"))
    assert verdict.reason is Reason.NO_MATCHING_NODES
    assert verdict.message.startswith("No nodes found matching the specified label selector 'pool=a'")


def test_nodes_being_deleted_do_not_match_and_are_named() -> None:
    verdict = verdict_of(a_workspace(), a_node("leaving", deleting=True))
    assert verdict.reason is Reason.NO_MATCHING_NODES
    assert "leaving" in verdict.message


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ({"key": "pool", "operator": "In", "values": ["a", "c"]}, Reason.ACCEPTED),
        ({"key": "pool", "operator": "NotIn", "values": ["a"]}, Reason.NO_MATCHING_NODES),
        ({"key": "pool", "operator": "Exists"}, Reason.ACCEPTED),
        ({"key": "pool", "operator": "DoesNotExist"}, Reason.NO_MATCHING_NODES),
        ({"key": "gone", "operator": "DoesNotExist"}, Reason.ACCEPTED),
    ],
)
def test_match_expressions_are_applied(expression: dict[str, Any], reason: Reason) -> None:
    verdict = verdict_of(a_workspace(selector={}, expressions=[expression]), a_node())
    assert verdict.reason is reason


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({"product": None}, GPU_PRODUCT),
        ({"count": None}, GPU_COUNT),
        ({"memory": None}, GPU_MEMORY),
        ({"count": "two"}, GPU_COUNT),
        ({"count": 0}, GPU_COUNT),
        ({"memory": -1}, GPU_MEMORY),
    ],
)
def test_wrong_labels_name_node_and_label(labels: dict[str, Any], named: str) -> None:
    verdict = verdict_of(a_workspace(), a_node("good"), a_node("wrong", **labels))
    assert verdict.reason is Reason.GPU_LABELS_INVALID
    assert verdict.message.startswith("Failed to get GPU config from nvidia labels on node wrong: ")
    assert named in verdict.message


def test_a_node_that_nvidias_charts_skip_is_explained() -> None:
    verdict = verdict_of(a_workspace(), a_node(product=None))
    assert "feature.node.kubernetes.io/pci-10de.present" in verdict.message
    present = verdict_of(a_workspace(), a_node(product=None, more_labels={"nvidia.com/gpu.present": "true"}))
    assert "pci-10de" not in present.message


@pytest.mark.parametrize(
    ("other", "differing"),
    [
        ({"product": V100, "memory": V100_MIB}, "product and memory"),
        ({"count": 2}, "count"),
        ({"product": V100, "count": 2, "memory": V100_MIB}, "product, count and memory"),
        ({"memory": 40960}, "memory"),
    ],
)
@pytest.mark.parametrize("state", [{}, {"ready": False}, {"cordoned": True}])
def test_non_uniform_nodes_are_named_with_their_values(
    other: dict[str, Any], differing: str, state: dict[str, Any]
) -> None:
    verdict = verdict_of(a_workspace(), a_node("one"), a_node("two"), a_node("other", **other, **state))
    assert verdict.reason is Reason.NON_UNIFORM_NODES
    assert verdict.message.startswith("Non-uniform GPU product/count/memory: ")
    assert f"differ in {differing}:" in verdict.message
    assert "on one, two;" in verdict.message
    assert "on other:" in verdict.message
    assert A100 in verdict.message


def test_long_lists_of_nodes_are_shortened() -> None:
    existing = [a_node(f"node-{n:04}") for n in range(1000)]
    verdict = verdict_of(a_workspace(), *existing, a_node("other", count=2))
    assert "and 995 more" in verdict.message
    assert len(verdict.message) < 1000


@pytest.mark.parametrize(
    ("state", "reported"),
    [
        ({"ready": False}, "not Ready"),
        ({"cordoned": True}, "cordoned"),
        ({"allocatable": 0}, "0 nvidia.com/gpu"),
        ({"taints": ["own"]}, "tainted own:NoSchedule"),
    ],
)
def test_a_workspace_with_only_unusable_nodes_is_refused_with_their_problems(
    state: dict[str, Any], reported: str
) -> None:
    verdict = verdict_of(a_workspace(), a_node("down", **state))
    assert verdict.reason is Reason.NO_USABLE_NODES
    assert f"down ({reported}" in verdict.message


def test_an_unusable_node_without_labels_is_skipped_with_a_warning() -> None:
    verdict = verdict_of(a_workspace(), a_node("up"), a_node("booting", ready=False, product=None, count=None))
    assert verdict.accepted
    assert verdict.node_names == ("up",)
    assert any("booting" in warning for warning in verdict.warnings)


def test_tolerated_taints_do_not_exclude_a_node() -> None:
    tolerant = a_template()
    tolerant["spec"]["tolerations"] = [{"key": "own", "operator": "Exists"}]
    assert verdict_of(a_workspace(template=tolerant), a_node(taints=["own", "nvidia.com/gpu"])).accepted
    assert not verdict_of(a_workspace(), a_node(taints=["own"])).accepted
    taints = {"nodeClaims": {"taints": [{"key": "own"}]}}
    assert verdict_of(a_workspace(), a_node(taints=["own"]), **taints).accepted


def test_an_invalid_toleration_tolerates_nothing() -> None:
    wrong = a_template()
    wrong["spec"]["tolerations"] = [{"operator": "Perhaps"}, "all"]
    assert verdict_of(a_workspace(template=wrong), a_node(taints=["own"])).reason is Reason.NO_USABLE_NODES


def test_bytes_are_read_as_mib_with_a_warning() -> None:
    verdict = verdict_of(needing(80), a_node(memory=80 * 2**30))
    assert verdict.accepted
    assert any("in bytes" in warning for warning in verdict.warnings)


def test_a_node_with_fewer_allocatable_devices_than_a_pod_requests_is_not_used() -> None:
    worn = a_node("worn", count=8, allocatable=7)
    refused = verdict_of(a_workspace(), worn)
    assert refused.reason is Reason.NO_USABLE_NODES
    assert "worn (7 nvidia.com/gpu allocatable, 8 requested)" in refused.message
    accepted = verdict_of(a_workspace(), worn, a_node("whole", count=8, allocatable=8))
    assert accepted.node_names == ("whole",)
    assert any("worn (7" in warning for warning in accepted.warnings)
    modest = a_workspace(template=a_template(resources={"limits": {"nvidia.com/gpu": 4}}))
    assert verdict_of(modest, worn).accepted


def test_an_unknown_preset_is_refused_with_similar_names() -> None:
    verdict = verdict_of(a_workspace(preset="phi-4-mini-instuct"), a_node())
    assert verdict.reason is Reason.UNKNOWN_PRESET
    assert "phi-4-mini-instruct" in verdict.message


def test_an_unknown_preset_with_a_declared_need_is_checked_by_it() -> None:
    assert verdict_of(a_workspace(preset="our-own-model", gpu_memory_gib=80), a_node()).accepted
    refused = verdict_of(a_workspace(preset="our-own-model", gpu_memory_gib=81), a_node())
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY


def test_several_nodes_per_replica_are_refused_for_a_model_that_cannot_span() -> None:
    verdict = verdict_of(a_workspace(preset="phi-4", per_replica=2), a_node())
    assert verdict.reason is Reason.INVALID_SPEC
    assert "perReplicaNodeCount" in verdict.message


def test_verdicts_are_sorted_and_independent() -> None:
    snapshot = a_snapshot(
        a_workspace("b"),
        a_workspace("a", selector={"pool": "none"}),
        a_workspace("z", namespace="a"),
        a_node("one"),
        a_node("two"),
    )
    verdicts = validate(snapshot)
    assert [(str(verdict.workspace), verdict.accepted) for verdict in verdicts] == [
        ("a/z", True),
        ("default/a", False),
        ("default/b", True),
    ]


def test_a_relabelled_node_changes_the_verdict() -> None:
    workspace = a_workspace()
    assert verdict_of(workspace, a_node("one"), a_node("two")).accepted
    assert not verdict_of(workspace, a_node("one"), a_node("two", product=V100)).accepted


def test_a_deprecated_count_is_a_warning() -> None:
    template = verdict_of(a_workspace(count=4), a_node())
    assert (template.target_node_count, len([w for w in template.warnings if "resource.count" in w])) == (4, 1)
    used = verdict_of(a_workspace(count=3, inference=False), a_node())
    assert used.target_node_count == 3


NARROWED: dict[str, Any] = {"byoInstanceType": "narrow"}
P4D, P5 = "p4d.24xlarge", "p5.48xlarge"


def test_an_instance_type_narrows_where_the_environment_allows_it() -> None:
    existing = [a_node("old", instance_type=P4D), a_node("new", instance_type=P5, product="NVIDIA-H100-80GB-HBM3")]
    workspace = a_workspace(instance_type="P5.48xlarge")
    assert verdict_of(workspace, *existing).reason is Reason.INSTANCE_TYPE_FORBIDDEN
    assert verdict_of(a_workspace(), *existing).reason is Reason.NON_UNIFORM_NODES
    verdict = verdict_of(workspace, *existing, **NARROWED)
    assert verdict.accepted and verdict.node_names == ("new",)
    snapshot = a_snapshot(workspace, *existing, environment=an_environment(**NARROWED))
    [workload, *_] = plan(snapshot, [verdict], datetime(2026, 1, 1, tzinfo=UTC)).creations
    affinity = workload.manifest["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [P5]} in term["matchExpressions"]


def test_kaitos_spelling_of_a_type_matches_the_clouds_name() -> None:
    existing = a_node("old", instance_type="Standard_ND96asr_v4")
    assert verdict_of(a_workspace(instance_type="standard_nd96asr_a100_v4"), existing, **NARROWED).accepted


def test_an_instance_type_alone_narrows_all_nodes() -> None:
    existing = [a_node("old", instance_type=P4D), a_node("new", instance_type=P5)]
    assert verdict_of(a_workspace(instance_type=P4D, selector={}), *existing, **NARROWED).node_names == ("old",)


def test_a_type_that_no_node_has_matches_none() -> None:
    verdict = verdict_of(a_workspace(instance_type="g6.xlarge"), a_node("old", instance_type=P4D), **NARROWED)
    assert verdict.reason is Reason.NO_MATCHING_NODES
    assert "node.kubernetes.io/instance-type in (g6.xlarge)" in verdict.message


def test_a_namespace_may_narrow_by_its_own_types_only() -> None:
    access = [{"namespaces": ["*"], "instanceTypes": [P5]}]
    verdict = verdict_of(a_workspace(instance_type=P4D), a_node("old", instance_type=P4D), access=access, **NARROWED)
    assert verdict.reason is Reason.NOT_ALLOWED


def serving_context(tokens: int | None, **node: Any) -> Verdict:
    inference = {"preset": {"name": "phi-4-mini-instruct"}, **({} if tokens is None else {"contextLength": tokens})}
    resource = {"labelSelector": {"matchLabels": {"pool": "a"}}}
    metadata = {"name": "ws", "namespace": "default"}
    return verdict_of(
        Workspace.read({"metadata": metadata, "spec": {"resource": resource, "inference": inference}}), a_node(**node)
    )


def test_a_context_that_does_not_fit_is_refused_with_the_longest_that_does() -> None:
    longest = serving_context(None, memory=24576).serving
    assert longest is not None and longest.context_length < 131072
    refused = serving_context(131072, memory=24576)
    assert refused.reason is Reason.INSUFFICIENT_GPU_MEMORY
    assert "contextLength is 131072" in refused.message and str(longest.cache_tokens) in refused.message
    assert serving_context(longest.context_length, memory=24576).accepted
    assert serving_context(131072).accepted


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ({}, "none"),
        ({"bogus": {}}, "'bogus' is not a type of volume"),
        ({"name": "weights", "hostPath": {"path": "/x"}}, "'name' is not a type of volume"),
        ({"hostPath": {"path": "/x"}, "nfs": {}}, "hostPath, nfs"),
        ({"hostPath": "/x"}, "hostPath must be an object"),
        ({"hostPath": {}}, "hostPath.path: None"),
        ({"hostPath": {"path": "../x"}}, "hostPath.path: '../x'"),
        ({"persistentVolumeClaim": {"claimName": "W_x"}}, "persistentVolumeClaim.claimName: 'W_x'"),
        ({"persistentVolumeClaim": {}}, "persistentVolumeClaim.claimName: None"),
        ({"emptyDir": {"sizeLimit": "-1Gi"}}, "emptyDir.sizeLimit: '-1Gi'"),
        ({"emptyDir": {"sizeLimit": "1e3Gi"}}, "not a Kubernetes quantity"),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}, "requests.storage"),
        ({"ephemeral": {}}, "accessModes"),
    ],
)
def test_an_unusable_volume_is_refused(source: dict[str, Any], text: str) -> None:
    weights = {"weights": {"volumeSource": source}}
    adapters = {"adapters": [{"source": {"name": "law", "volumeSource": source}}]}
    for inference, environment in ((weights, {}), (adapters, {}), ({}, weights)):
        workspace = reading(preset={"name": "phi-4"}, **inference)
        verdict = verdict_of(workspace, a_node(), **environment)
        assert verdict.reason is Reason.INVALID_SPEC and text in verdict.message
        assert verdict_of(reading(preset={"name": "phi-4"}, replicas=0, **inference), a_node(), **environment).accepted


def reading(name: str = "ws", **inference: Any) -> Workspace:
    resource = {"labelSelector": {"matchLabels": {"pool": "a"}}}
    metadata = {"name": name, "namespace": "default"}
    return Workspace.read({"metadata": metadata, "spec": {"resource": resource, "inference": inference}})


def test_two_workspaces_have_two_services() -> None:
    named = reading("a", preset={"name": "phi-4"}, service={"name": "b"})
    own = reading("b", preset={"name": "phi-4"})
    verdicts = validate(a_snapshot(named, own, a_node("m"), a_node("n"), environment=an_environment()))
    assert [each.reason for each in verdicts] == [Reason.INVALID_SPEC, Reason.ACCEPTED]
    assert "Workspace default/b has the Service" in verdicts[0].message
    off = reading("a", preset={"name": "phi-4"}, service={"name": "b", "enabled": False})
    verdicts = validate(a_snapshot(off, own, a_node("m"), a_node("n"), environment=an_environment()))
    assert all(each.accepted for each in verdicts)


def test_an_adapter_with_the_name_of_the_preset_is_refused() -> None:
    adapters = [{"source": {"name": "phi-4", "image": "registry/law:1"}}]
    spec = {
        "resource": {"labelSelector": {"matchLabels": {"pool": "a"}}},
        "inference": {"preset": {"name": "phi-4"}, "adapters": adapters},
    }
    verdict = verdict_of(Workspace.read({"metadata": {"name": "ws", "namespace": "default"}, "spec": spec}), a_node())
    assert verdict.reason is Reason.INVALID_SPEC
    assert "adapter has the preset's name" in verdict.message


@pytest.mark.parametrize(
    ("partition", "advice"),
    [
        ({"mode": "accelerator", "count": 3}, "resource.partition.count to at most 2"),
        ({"mode": "mig", "profile": "1g.10gb"}, "remove resource.partition"),
    ],
)
def test_the_advice_on_a_partition_fixes_it(partition: dict[str, Any], advice: str) -> None:
    verdict = verdict_of(a_workspace(partition=partition), a_node(count=2))
    assert not verdict.accepted and advice in verdict.message
    assert "MIG configuration" not in verdict.message and "GPU Feature Discovery" not in verdict.message


def test_a_gated_model_needs_no_token_if_its_files_exist() -> None:
    llama: dict[str, Any] = {"preset": {"name": "llama-3.1-8b-instruct"}}
    held: dict[str, Any] = {"weights": {"volumeSource": {"hostPath": {"path": "/models"}}, "readOnly": True}}
    empty: dict[str, Any] = {"weights": {"volumeSource": {"hostPath": {"path": "/models"}}}}
    assert "gated" in verdict_of(reading(**llama), a_node()).message
    assert "gated" in verdict_of(reading(**llama, **empty), a_node()).message
    assert verdict_of(reading(**llama, **held), a_node()).accepted
    assert verdict_of(reading(**llama), a_node(), **held).accepted
    assert "gated" in verdict_of(reading(**llama, **empty), a_node(), **held).message


@pytest.mark.parametrize("preset", ["no-such-model", "phi-2"])
def test_an_unknown_model_is_refused_as_such_where_no_nodes_are_selected(preset: str) -> None:
    """Not as nodes that do not serve it, one reason for each group of them."""
    nodes = a_node("a"), a_node("b", product="Tesla-T4", memory=15360)
    [verdict] = validate(a_snapshot(a_workspace(selector={}, preset=preset), *nodes))
    assert verdict.reason is Reason.UNKNOWN_PRESET
    assert "Tesla-T4" not in verdict.message
