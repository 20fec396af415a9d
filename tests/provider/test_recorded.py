"""The provider records the same as the official plugin, and a stack of the plugin is unchanged."""

from typing import Any, get_args

import pytest
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc

from plimsoll.kube import id_of, kind_of
from plimsoll.provider import INPUTS, Diff, Secret, declared, decode, diff, encode, plain
from tests.provider.apiserver import Apiserver
from tests.provider.conftest import Sessions
from tests.provider.recorded import Creation, Recorded, recorded

Engine = provider_pb2_grpc.ResourceProviderStub

ALL = recorded()
CREATIONS: tuple[Creation, ...] = get_args(Creation)
SPELLINGS = ("1000m", "1", 1, "1.0", "1e0", "1000000u")
each = pytest.mark.parametrize("it", ALL, ids=lambda it: it.name)
both_ways = pytest.mark.parametrize("creation", CREATIONS)
PREFIXES = {"": "/api/v1", "apps": "/apis/apps/v1", "rbac.authorization.k8s.io": "/apis/rbac.authorization.k8s.io/v1"}


def path_of(it: Recorded) -> str:
    kind = kind_of(it.inputs)
    return f"{PREFIXES[kind.group]}/namespaces/conformance/{kind.kind.lower()}s/both"


def compared(sessions: Sessions, old: dict[str, Any], new: dict[str, Any]) -> Diff:
    return diff(sessions(), old, new, [])


@pytest.mark.parametrize("cpu", SPELLINGS)
@each
def test_inputs_are_recorded_as_the_plugin_records_them(engine: Engine, it: Recorded, cpu: Any) -> None:
    request = provider_pb2.CheckRequest(type=it.type, name=it.name, news=encode(it.program(cpu)))
    inputs = decode(engine.Check(request).inputs)
    assert plain(inputs) == it.inputs
    assert isinstance(inputs.get("data"), Secret) is it.type.endswith(":Secret")


@pytest.mark.parametrize("cpu", SPELLINGS)
@both_ways
@each
def test_the_same_program_changes_nothing_of_the_plugins_state(
    sessions: Sessions, it: Recorded, creation: Creation, cpu: Any
) -> None:
    assert not compared(sessions, it.outputs(creation), it.program(cpu)).changed


@each
def test_inputs_recorded_as_they_were_given_are_compared_by_value(sessions: Sessions, it: Recorded) -> None:
    state = it.outputs("plain") | {INPUTS: it.program()}
    assert not compared(sessions, state, it.inputs).changed


@pytest.mark.parametrize(("name", "replaced"), [("pod", True), ("deployment", False), ("set", False)])
def test_another_value_is_a_change(sessions: Sessions, name: str, replaced: bool) -> None:
    it = next(each for each in ALL if each.name == name)
    found = compared(sessions, it.outputs("plain"), it.program("1001m"))
    assert [change.path[-2:] for change in found.changed] == [("requests", "cpu")]
    assert bool(found.replaced) is replaced


@both_ways
@each
def test_a_refresh_leaves_the_plugins_state_as_it_is(
    engine: Engine, cluster: Apiserver, it: Recorded, creation: Creation
) -> None:
    cluster.change(path_of(it), it.object(creation))
    outputs = it.outputs(creation)
    outputs["metadata"]["resourceVersion"] = cluster.objects[path_of(it)]["metadata"]["resourceVersion"]
    request = provider_pb2.ReadRequest(
        type=it.type, id=it.id, inputs=encode(outputs[INPUTS]), properties=encode(outputs)
    )
    read = engine.Read(request)
    assert decode(read.properties) == outputs
    assert decode(read.inputs) == outputs[INPUTS]


@both_ways
@each
def test_a_creation_is_recorded_with_the_field_manager_of_the_plugin(
    engine: Engine, it: Recorded, creation: Creation
) -> None:
    upsert = {"kubernetes:config:upsertExistingObjects": str(creation == "upsert").lower()}
    engine.Configure(provider_pb2.ConfigureRequest(variables=upsert))
    inputs = engine.Check(provider_pb2.CheckRequest(type=it.type, name=it.name, news=encode(it.program()))).inputs
    made = engine.Create(provider_pb2.CreateRequest(properties=inputs))
    assert made.id == it.id
    state = decode(made.properties)
    recorded = it.outputs(creation)
    (owner,) = state["metadata"]["managedFields"]
    assert (owner["manager"], owner["operation"]) == (
        it.owner(creation)["manager"],
        it.owner(creation)["operation"],
    )
    own = ("__fieldManager", "__initialApiVersion", "__inputs")
    assert {key: state[key] for key in own} == {key: recorded[key] for key in own}


def test_a_secret_is_encoded_as_the_apiserver_encodes_it() -> None:
    def data_of(**fields: Any) -> Any:
        return declared({"apiVersion": "v1", "kind": "Secret", **fields}).get("data")

    assert data_of(data={"a": "TVE9\nPQ=="}) == {"a": "TVE9PQ=="}
    assert data_of(data={"a": "MQ=="}, stringData={"a": "2", "b": "3"}) == {"a": "Mg==", "b": "Mw=="}
    assert data_of(data={"a": "not base64"}) == {"a": "not base64"}
    assert data_of(stringData={"a": 5}) is None, "the apiserver refuses it, and says so"


def test_a_secret_whose_text_is_not_known_yet_stays_unknown(engine: Engine) -> None:
    unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    news = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": unknown, "b": "2"}}
    request = provider_pb2.CheckRequest(type="kubernetes:core/v1:Secret", name="s", news=encode(news))
    assert decode(engine.Check(request).inputs)["data"] == Secret({"a": unknown, "b": "Mg=="})


@pytest.mark.parametrize(
    ("obj", "path", "spelled"),
    [
        ({"kind": "Deployment", "apiVersion": "apps/v1"}, "spec.template.spec.containers[].resources.limits.x", True),
        ({"kind": "Pod", "apiVersion": "v1"}, "spec.volumes[].emptyDir.sizeLimit", True),
        ({"kind": "Pod", "apiVersion": "v1"}, "spec.overhead.x", True),
        ({"kind": "Pod", "apiVersion": "v1"}, "spec.containers[].env[].valueFrom.resourceFieldRef.divisor", True),
        ({"kind": "Pod", "apiVersion": "v1"}, "spec.nodeSelector.capacity", False),
        ({"kind": "Pod", "apiVersion": "v1"}, "metadata.labels.limits", False),
        ({"kind": "CronJob", "apiVersion": "batch/v1"}, "spec.jobTemplate.spec.template.spec.overhead.x", True),
        ({"kind": "ResourceQuota", "apiVersion": "v1"}, "spec.hard.x", True),
        ({"kind": "LimitRange", "apiVersion": "v1"}, "spec.limits[].default.x", True),
        ({"kind": "LimitRange", "apiVersion": "v1"}, "spec.limits[].type", False),
        ({"kind": "PersistentVolume", "apiVersion": "v1"}, "spec.capacity.storage", True),
        ({"kind": "StatefulSet", "apiVersion": "apps/v1"}, "spec.volumeClaimTemplates[].resources.requests.s", True),
        ({"kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2"}, "spec.metrics[].pods.target.value", True),
        ({"kind": "RuntimeClass", "apiVersion": "node.k8s.io/v1"}, "overhead.podFixed.x", True),
        ({"kind": "ConfigMap", "apiVersion": "v1"}, "data.requests", False),
        ({"kind": "NodeClaim", "apiVersion": "karpenter.sh/v1"}, "spec.resources.requests.x", False),
    ],
)  # fmt: skip
def test_quantities_are_canonical_in_kubernetes_kinds(obj: dict[str, Any], path: str, spelled: bool) -> None:
    def with_value(value: str) -> dict[str, Any]:
        nested: Any = value
        for step in reversed(path.split(".")):
            nested = {step.removesuffix("[]"): [nested] if step.endswith("[]") else nested}
        return {**obj, **nested}

    assert declared(with_value("1000m")) == with_value("1" if spelled else "1000m")


def test_a_custom_resource_is_recorded_as_given_and_compared_by_value(sessions: Sessions) -> None:
    def a_pool(cpu: str) -> dict[str, Any]:
        metadata = {"name": "one", "labels": {"capacity": cpu}}
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": metadata,
            "spec": {"limits": {"cpu": cpu}},
        }

    old, new = a_pool("1"), a_pool("1000m")
    assert declared(new) == new
    found = compared(sessions, {**old, INPUTS: old}, new)
    assert [change.path for change in found.changed] == [("metadata", "labels", "capacity")]


def test_fields_of_a_crd_that_the_apiserver_drops_are_omitted() -> None:
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {"group": "g"}}
    given = crd | {"spec": {"group": "g", "preserveUnknownFields": False}, "status": {"conditions": []}}
    assert declared(given) == crd
    assert given["spec"] == {"group": "g", "preserveUnknownFields": False}


def test_empty_labels_are_omitted() -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {}, "annotations": {}}}
    assert declared(made)["metadata"] == {"name": "x"}
    assert id_of(declared(made)) == "x"
