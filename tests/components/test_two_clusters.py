"""One program declares two clusters with two providers: URNs are unique, and former names are aliases."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest
import yaml

from plimsoll.components import (
    CapacityGate,
    Controller,
    ControllerArgs,
    Environment,
    Foundation,
    Monitoring,
    Queue,
    QueueAdmission,
    ShareBinder,
    Workspace,
)
from plimsoll.kube import Connection
from plimsoll.stacks import stack_cluster
from tests.components.declaring import declared, requests


def both(declare: Callable[[str, pulumi.ResourceOptions], Any]) -> Callable[[], None]:
    def program() -> None:
        for name in ("east", "west"):
            provider = k8s.Provider(name, context=name)
            declare(name, pulumi.ResourceOptions(providers={"kubernetes": provider}))

    return program


CONTROLLER: ControllerArgs = {"image": "a:1", "backend": "s3://states", "passphrase": {"name": "plimsoll"}}


@pytest.mark.parametrize(
    "declare",
    [
        lambda name, opts: Foundation(name, {}, opts),
        lambda name, opts: Controller(name, CONTROLLER, opts),
        lambda name, opts: Environment(name, {"name": "prod"}, opts),
        lambda name, opts: Queue(name, {"name": "research"}, opts),
        lambda name, opts: Workspace(name, {"name": "phi", "inference": {"preset": {"name": "phi-4"}}}, opts),
        lambda name, opts: Monitoring(name, {}, opts),
        lambda name, opts: CapacityGate(name, {"namespaces": ["a", "b"]}, opts),
        lambda name, opts: CapacityGate(name, {"queues": ["a"]}, opts),
        lambda name, opts: ShareBinder(name, {}, opts),
        lambda name, opts: QueueAdmission(name, {"leaves": ["a"]}, opts),
    ],
    ids=[
        "Foundation",
        "Controller",
        "Environment",
        "Queue",
        "Workspace",
        "Monitoring",
        "Gate",
        "GateOfQueues",
        "Binder",
        "Admission",
    ],
)
def test_two_of_each_component_have_different_urns_and_the_same_objects(
    declare: Callable[[str, pulumi.ResourceOptions], Any],
) -> None:
    made = [each for each in declared(both(declare)) if not each["type"].startswith("pulumi:")]
    assert made
    urns = Counter((each["type"], each["name"]) for each in made)
    assert [urn for urn, number in urns.items() if number > 1] == []
    objects = Counter(
        (each["type"], json.dumps(each["inputs"].get("spec"), default=str, sort_keys=True)) for each in made
    )
    assert all(number % 2 == 0 for number in objects.values()), "each is declared in both clusters"


def test_a_stack_of_the_last_release_knows_the_foundations_children_by_their_aliases() -> None:
    found = requests(lambda: Foundation("plimsoll", {}))
    children = {key: each for key, each in found.items() if key.startswith("kubernetes:")}
    assert len(children) > 10
    for key, request in children.items():
        old = {alias.spec.name for alias in request.aliases if alias.spec.name}
        assert old == {request.name.removeprefix("plimsoll-")}, key


def test_look_ups_go_to_the_cluster_of_the_stack() -> None:
    kubeconfig = {
        "current-context": "a",
        "contexts": [{"name": each, "context": {"cluster": each, "user": "u"}} for each in "ab"],
        "clusters": [{"name": each, "cluster": {"server": f"https://{each}.example"}} for each in "ab"],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    opened: list[Connection] = []
    config = {"kubernetes:kubeconfig": yaml.safe_dump(kubeconfig), "kubernetes:context": "b"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", "/nowhere")
        declared(lambda: opened.append(stack_cluster()()), config=config)
    assert [each.server for each in opened] == ["https://b.example"]
