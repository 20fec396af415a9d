"""Resource options reach the objects of a component, and its arguments are its inputs."""

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pytest
from google.protobuf.json_format import MessageToDict
from pulumi_kubernetes import Provider

from plimsoll.components import (
    Controller,
    DataCache,
    DataCacheArgs,
    DeviceClass,
    Environment,
    Foundation,
    Monitoring,
    NodePool,
    NodePoolArgs,
    NodeProfile,
    Queue,
    ResourceClaimTemplate,
    ShareBinder,
    TrainingRuntime,
    Workspace,
)
from tests.components.declaring import declared, manifest, requests
from tests.components.templates import TORCH

KWOK: NodePoolArgs = {"node_class_ref": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass"}}
CACHE: DataCacheArgs = {
    "table": {"metadata_location": "s3://m", "schema_name": "s", "table_name": "t"},
    "queue": "research",
    "topology": "racks",
    "level": "rack",
}
DEVICES: Any = {"requests": [{"name": "gpu", "exactly": {"device_class_name": "gpu.nvidia.com"}}]}
SECRET = "4dabf18193072939515e22adb298388d"

Of = tuple[Callable[..., pulumi.ComponentResource], Mapping[str, Any]]
SINGLE: dict[str, Of] = {
    "Queue": (Queue, {"display_name": "q"}),
    "NodePool": (NodePool, {**KWOK}),
    "NodeProfile": (NodeProfile, {"node_pool": "gpu", "instance_type": "g6.xlarge"}),
    "DeviceClass": (DeviceClass, {"extended_resource_name": "example.com/gpu"}),
    "ResourceClaimTemplate": (ResourceClaimTemplate, {"devices": DEVICES}),
    "Workspace": (Workspace, {"inference": {"preset": {"name": "phi-4"}}}),
    "Environment": (Environment, {"limits": {"gpus": 3}}),
    "TrainingRuntime": (TrainingRuntime, {"template": TORCH}),
}
"""The components of one object, with arguments."""


@pytest.mark.parametrize("kind", SINGLE)
def test_options_for_objects_reach_the_object_and_the_others_both(kind: str) -> None:
    component, args = SINGLE[kind]

    def program() -> None:
        provider = Provider("cluster", kubeconfig="none")
        options = pulumi.ResourceOptions(
            protect=True,
            provider=provider,
            ignore_changes=["spec.replicas"],
            custom_timeouts=pulumi.CustomTimeouts(create="1m"),
            import_="of-old",
            aliases=[pulumi.Alias(name="former")],
            retain_on_delete=True,
        )
        component("x", args, options)

    asked = requests(program)
    own, child = asked[f"plimsoll:{kind}::x"], asked[f"kubernetes:{kind}::x"]
    assert own.protect
    assert child.protect
    assert child.provider.endswith("::cluster-id")
    assert (list(own.ignoreChanges), list(child.ignoreChanges)) == ([], ["spec.replicas"])
    assert (own.importId, child.importId) == ("", "of-old")
    assert child.customTimeouts.create == "1m"
    assert [alias.spec.name for alias in own.aliases] == ["former"], "from which the engine infers the object's"
    assert own.retainOnDelete


def test_a_changed_template_of_claims_is_replaced_because_the_cluster_refuses_the_change() -> None:
    asked = requests(lambda: ResourceClaimTemplate("x", {"devices": DEVICES}))["kubernetes:ResourceClaimTemplate::x"]
    assert (list(asked.replaceOnChanges), asked.deleteBeforeReplace) == (["spec"], True)
    options = pulumi.ResourceOptions(import_="default/x")
    imported = requests(lambda: ResourceClaimTemplate("x", {"devices": DEVICES}, options))
    assert list(imported["kubernetes:ResourceClaimTemplate::x"].replaceOnChanges) == []
    other = requests(lambda: DeviceClass("x", {}))["kubernetes:DeviceClass::x"]
    assert (list(other.replaceOnChanges), other.deleteBeforeReplace) == ([], False)


def test_a_transformation_changes_the_object() -> None:
    def relabelled(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if args.type_ != "kubernetes:scheduling.run.ai/v2:Queue":
            return None
        props: dict[str, Any] = dict(args.props)
        props["metadata"] = {**props["metadata"], "labels": {"team": "ml"}}
        return pulumi.ResourceTransformationResult(props, args.opts)

    options = pulumi.ResourceOptions(transformations=[relabelled])
    assert manifest(declared(lambda: Queue("q", {}, options)), "Queue")["metadata"]["labels"] == {"team": "ml"}


def test_a_provider_reaches_every_object_of_a_foundation() -> None:
    def program() -> None:
        Foundation("plimsoll", {}, pulumi.ResourceOptions(providers=[Provider("cluster", kubeconfig="none")]))

    asked = {name: each for name, each in requests(program).items() if each.custom and "Provider" not in each.type}
    assert len(asked) > 20
    objects = [each for each in asked.values() if not each.type.startswith("pulumi:")]
    assert all(each.provider.endswith("::cluster-id") for each in objects)


def test_the_arguments_are_the_inputs_of_the_component() -> None:
    asked = requests(lambda: Queue("q", {"resources": {"gpu": {"quota": 2}}, "priority": 7}))
    inputs = MessageToDict(asked["plimsoll:Queue::q"].object)
    assert inputs == {"resources": {"gpu": {"quota": 2.0}}, "priority": 7.0}


def test_a_secret_makes_only_its_own_field_secret() -> None:
    inference: Any = {"preset": {"name": "phi-4"}, "config": pulumi.Output.secret("tuned"), "replicas": 2}
    spec = MessageToDict(requests(lambda: Workspace("w", {"inference": inference}))["kubernetes:Workspace::w"].object)[
        "spec"
    ]
    assert spec["inference"].pop("config")["value"] == "tuned"
    assert spec == {"inference": {"preset": {"name": "phi-4"}, "replicas": 2.0}}


def test_a_secret_item_of_a_list_makes_only_this_item_secret() -> None:
    args: Any = {
        **KWOK,
        "requirements": [{"key": "zone", "operator": "In", "values": ["a", pulumi.Output.secret("b")]}],
    }
    spec = MessageToDict(requests(lambda: NodePool("gpu", args))["kubernetes:NodePool::gpu"].object)["spec"]
    (requirement,) = spec["template"]["spec"]["requirements"]
    assert requirement.pop("values") == ["a", {SECRET: "1b47061264138c4ac30d75fd1eb44270", "value": "b"}]
    assert requirement == {"key": "zone", "operator": "In"}


def test_a_secret_label_hides_no_output() -> None:
    def program() -> Any:
        hidden: Any = {"team": pulumi.Output.secret("ml")}
        inference: Any = {"preset": {"name": "phi-4"}}
        labelled = Workspace("w", {"inference": inference, "labels": hidden})
        named = Workspace("n", {"inference": inference, "name": pulumi.Output.secret("hidden")})
        foundation = Foundation("plimsoll", {"labels": hidden, "service_account_annotations": hidden})
        shown = [labelled.workspace_name, labelled.namespace, labelled.uid, labelled.pod_labels, named.namespace]
        shown += [foundation.namespace, foundation.service_account, foundation.trigger_namespace]

        async def look() -> None:
            assert [await each.is_secret() for each in shown] == [False] * len(shown)
            assert await named.workspace_name.is_secret(), "the name itself is"
            assert await labelled.workspace.metadata.is_secret(), "as Pulumi makes all of a property"

        return pulumi.Output.from_input(look())

    declared(program)


def test_arguments_of_none_are_absent_and_names_may_be_those_of_a_stack_file() -> None:
    queue = manifest(declared(lambda: Queue("q", {"name": None, "patch_force": None})), "Queue")  # type: ignore[typeddict-item]
    assert queue["metadata"]["name"] == "q"
    args: Any = {"podMonitor": False, "dashboardLabels": {"grafana": "1"}}
    resources = declared(lambda: Monitoring("alerts", args))
    assert {each["type"].rpartition(":")[2] for each in resources} == {"PrometheusRule", "ConfigMap"}
    assert manifest(resources, "ConfigMap")["metadata"]["labels"] == {"grafana": "1"}


def test_objects_and_names_are_available_to_the_rest_of_the_program() -> None:
    def program() -> Any:
        queue = Queue("research", {"name": "of-research"})
        pool = NodePool("gpu", KWOK)
        workspace = Workspace("w", {"inference": {"preset": {"name": "phi-4"}}, "namespace": "serving"})

        def look(known: list[Any]) -> None:
            assert known == [
                "of-research",
                {"kai.scheduler/queue": "of-research"},
                {"karpenter.sh/nodepool": "gpu"},
                {"plimsoll.dev/workspace": "w", "plimsoll.dev/workspace-namespace": "serving"},
                "plimsoll.dev/v1alpha1",
            ]

        return pulumi.Output.all(
            queue.queue_name, queue.pod_labels, pool.node_labels, workspace.pod_labels, workspace.workspace.api_version
        ).apply(look)

    declared(program)


def test_overwriting_fields_of_others_is_a_setting() -> None:
    by_default = manifest(declared(lambda: Queue("q", {})), "Queue")["metadata"]["annotations"]
    assert "pulumi.com/patchForce" not in by_default
    forced = manifest(declared(lambda: Queue("q", {"patch_force": True})), "Queue")["metadata"]["annotations"]
    assert forced["pulumi.com/patchForce"] == "true"


@pytest.mark.parametrize(
    ("component", "args"),
    [
        (Controller, {"image": "a:1", "backend": "s3://b", "passphrase": {"name": "p"}, "ui": {}}),
        (ShareBinder, {"image": "a:1"}),
        (Monitoring, {}),
        (DataCache, CACHE),
    ],
)
def test_no_update_waits_for_pods(component: Callable[..., Any], args: Mapping[str, Any]) -> None:
    """Pulumi waits for the endpoints of a Service and the pods of a Deployment, with the stack locked."""
    kinds = {"Deployment", "Service", "LeaderWorkerSet", "PrometheusRule", "PodMonitor"}
    awaited = [each for each in declared(lambda: component("it", args)) if each["type"].rpartition(":")[2] in kinds]
    assert awaited
    for each in awaited:
        assert each["inputs"]["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true", each["type"]


def test_overwriting_reaches_every_object_of_a_data_cache() -> None:
    for each in declared(lambda: DataCache("cache", {**CACHE, "patch_force": True})):
        assert each["inputs"]["metadata"]["annotations"]["pulumi.com/patchForce"] == "true", each["type"]


def test_empty_values_of_labels_and_annotations_are_written() -> None:
    empty: Any = {"node-role.kubernetes.io/gpu": ""}
    pool = manifest(declared(lambda: NodePool("gpu", {**KWOK, "labels": empty, "annotations": empty})), "NodePool")
    assert pool["spec"]["template"]["metadata"] == {"labels": empty, "annotations": empty}
    bare = manifest(declared(lambda: NodePool("gpu", {**KWOK, "labels": {}})), "NodePool")
    assert "metadata" not in bare["spec"]["template"]
    foundation = declared(lambda: Foundation("plimsoll", {"labels": empty}))
    assert manifest(foundation, "Namespace", "plimsoll-system")["metadata"]["labels"] == empty
