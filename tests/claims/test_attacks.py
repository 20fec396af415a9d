"""What a tenant tries in order to get GPUs by claims beside what `access` lets its namespace have."""

import copy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from plimsoll.labels import DEVICE_CLASS_PREFIX, GPU_RESOURCE
from plimsoll.model.api import GATE_REMOVED_REASON
from plimsoll.plan import plan
from tests.calls import calls
from tests.claims.objects import (
    DRIVER,
    Manifest,
    a_claim,
    a_class,
    a_device,
    a_pod,
    a_slice,
    a_template,
    asked,
    snapshot_of,
)
from tests.claims.test_demand import POOL, an_environment
from tests.claims.test_quotas import NODE, limited, planned, reasons

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ALL = {"deviceClassName": DRIVER, "allocationMode": "All"}
OTHER = f"device.attributes['{DRIVER}'].productName == 'NVIDIA H100'"
"""No device of the node is one."""
DEARER = {"firstAvailable": [{"name": "small", **asked(1, OTHER)}, {"name": "large", **asked(4)}]}
"""The first is not to be had, and the second is four devices."""


def requesting(name: str, resource: str, number: int = 1, **fields: Any) -> Manifest:
    """A pod that requests devices as an extended resource."""
    pod = a_pod(name, claim="none", **fields)
    del pod["spec"]["resourceClaims"]
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: str(number)}}
    return pod


def served(folder: Path, most: int, *objects: Manifest) -> set[str]:
    """UIDs of the pods that have a place or get one."""
    found: set[str] = set()
    for demand in planned(folder, limited(most), *NODE, *objects).demands:
        found |= demand.on_new.keys() | {uid for uids in demand.on_nodes.values() for uid in uids}
    return found


ATTACKS: dict[str, tuple[int, tuple[Manifest, ...]]] = {
    "template": (1, (a_pod("a", "one"),)),
    "claim of its own": (1, (a_claim("c", asked(1)), a_pod("a", claim="c"))),
    "two pods with one claim": (1, (a_claim("c", asked(1)), a_pod("a", claim="c"), a_pod("b", claim="c"))),
    "all of a node": (4, (a_template("all", ALL), a_pod("a", "all"))),
    "a later alternative that is dearer": (4, (a_template("dearer", DEARER), a_pod("a", "dearer"))),
    "two claims": (
        3,
        (
            a_template("two", asked(2)),
            a_pod("a", resourceClaims=[{"name": x, "resourceClaimTemplateName": x} for x in ("one", "two")]),
        ),
    ),
    "beside a share": (
        1,
        (a_pod("a", "one"), a_pod("b", "one") | {"metadata": {"name": "b", "namespace": "team", "uid": "b"}}),
    ),
}
"""By name: the least that the namespace must be allowed for one of the pods, and the objects."""


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_claim_gets_no_devices_that_the_namespace_may_not_have(tmp_path: Path, attack: str) -> None:
    least, objects = ATTACKS[attack]
    for most in (0, least - 1):
        found = planned(tmp_path, limited(most), *NODE, *objects)
        assert not served(tmp_path, most, *objects)
        assert not found.nodes, "nothing is bought"
    assert served(tmp_path, least, *objects), "what it may have, it gets"


def test_neither_a_claim_without_a_pod_nor_one_of_another_namespace_gets_anything(tmp_path: Path) -> None:
    alone = a_claim("alone", asked(4))
    theirs = a_claim("theirs", asked(1), namespace="free"), a_template("theirs", asked(1), namespace="free")
    pods = a_pod("a", claim="theirs"), a_pod("b", "theirs")
    for most in (0, 4):
        assert not served(tmp_path, most, alone, *theirs, *pods)
        assert not planned(tmp_path, limited(most), alone, *theirs, *pods).nodes


def test_looking_at_devices_buys_none(tmp_path: Path) -> None:
    """`adminAccess` takes no device where it is, and no node is requested for it."""
    monitor = a_template("monitor", asked(1, adminAccess=True))
    for most in (0, 4):
        assert not planned(tmp_path, limited(most), monitor, a_pod("a", "monitor")).nodes


def test_a_claim_counts_while_a_pod_that_has_it_runs(tmp_path: Path) -> None:
    """Whichever of its pods ends, or is not on its node yet, and whatever their names."""
    devices = [("n1", "gpu-0"), ("n1", "gpu-1")]
    ended = a_pod("a", claim="shared", node="n1")
    ended["status"]["phase"] = "Succeeded"
    for first in (ended, a_pod("a", claim="shared")):
        shared = a_claim("shared", asked(2), devices=devices, pods=["a", "b"])
        objects = (shared, first, a_pod("b", claim="shared", node="n1"), a_pod("more", "one"))
        assert "uid-more" not in served(tmp_path, 2, *objects)
        assert "uid-more" in served(tmp_path, 3, *objects)


_DEVICES = [("n1", f"gpu-{number}") for number in range(4)]
_OWN = a_pod("own", claim="c", node="n1")
_GENERATED = a_pod("own", "four", node="n1")
_GENERATED["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "own-gpu"}]
HIDDEN: dict[str, tuple[Manifest, ...]] = {
    "deleted": (_OWN,),
    "created again": (_OWN, a_claim("c", asked(1))),
    "created again for network cards": (_OWN, a_claim("c", asked(1, of="cards"))),
    "created again, and allocated to another pod": (
        _OWN,
        a_claim("c", asked(1), devices=_DEVICES[:1], pods=["other"]),
        a_pod("other", claim="c", node="n1"),
    ),
    "deleted with its template": (_GENERATED,),
    "deleted, its template for fewer": (_GENERATED, a_template("four", asked(1))),
}
"""By name: a pod on a node with four devices, after the tenant took the finalizer from its claim and deleted it."""


@pytest.mark.parametrize("way", HIDDEN)
def test_a_claim_that_is_deleted_under_its_pod_gives_room_to_none(tmp_path: Path, way: str) -> None:
    """The pod has its devices as long as it runs; it counted as none, and four more were let through."""
    for more in (a_pod("more", "one"), requesting("more", GPU_RESOURCE)):
        assert not served(tmp_path, 9, *HIDDEN[way], more)
    assert released(tmp_path, 9, *HIDDEN[way], a_pod("more", "one", **GATED)) == []
    elsewhere = a_template("one", asked(1), namespace="free"), a_pod("theirs", "one", namespace="free")
    assert served(tmp_path, 9, *HIDDEN[way], *elsewhere) == {"uid-theirs"}
    ended = copy.deepcopy(HIDDEN[way])
    for each in ended:
        if each["kind"] == "Pod":
            each["status"]["phase"] = "Succeeded"
    assert served(tmp_path, 9, *ended, a_pod("more", "one")) == {"uid-more"}


@pytest.mark.parametrize(
    "resource", [GPU_RESOURCE, f"{DEVICE_CLASS_PREFIX}{DRIVER}", f"{DEVICE_CLASS_PREFIX}parts", "example.com/gpus"]
)
def test_devices_by_an_extended_resource_of_a_class_count(tmp_path: Path, resource: str) -> None:
    """The scheduler makes the claim: the pod names none."""
    declared = a_class("whole", extended_resource=GPU_RESOURCE), a_class("all", extended_resource="example.com/gpus")
    running = requesting("running", resource, 2, node="n1")
    made = a_claim("running-1", asked(2), devices=[("n1", "gpu-0"), ("n1", "gpu-1")], pods=["running"])
    objects = (*declared, running, made, a_pod("more", "one"))
    assert not served(tmp_path, 2, *objects)
    assert served(tmp_path, 3, *objects) == {"uid-more"}


def test_network_cards_by_an_extended_resource_are_no_gpus(tmp_path: Path) -> None:
    on_node = a_slice("n1", [a_device(f"card-{number}", {"rdma": True}) for number in range(2)], driver="dra.net")
    cards = a_class("cards", "device.driver == 'dra.net'")
    running = requesting("running", f"{DEVICE_CLASS_PREFIX}cards", 2, node="n1")
    assert served(tmp_path, 1, on_node, cards, running, a_pod("more", "one")) == {"uid-more"}


GATED: dict[str, Any] = {"schedulingGates": [{"name": "plimsoll.dev/capacity"}]}


def released(folder: Path, most: int | None, *objects: Manifest, claims: str = "plan") -> list[str]:
    """Names of the pods whose capacity gate is removed; `most` None: `access` limits nothing."""
    environment = limited(most) if most is not None else an_environment()
    environment["spec"]["demand"]["claims"] = claims
    environment["spec"]["demand"]["schedulers"] = ["default-scheduler"]
    snapshot = snapshot_of(folder, environment, a_class(), *POOL, *NODE, a_template("one", asked(1)), *objects)
    return [each.key.name for each in plan(snapshot, (), NOW).gate_removals]


@pytest.mark.parametrize("number", [1, 40])
def test_the_gate_holds_claims_that_the_namespace_may_not_have(tmp_path: Path, number: int) -> None:
    """However many there are, and though devices are free."""
    pods = [a_pod(f"pod-{each:02}", "one", **GATED) for each in range(number)]
    assert not released(tmp_path, 0, *pods)
    assert len(released(tmp_path, 1, *pods)) == 1


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("allocated", [False, True])
def test_the_gate_holds_others_while_devices_are_being_allocated(tmp_path: Path, bound: bool, allocated: bool) -> None:
    """The claim, and the pod that gets its devices, are seen to change one after the other. Nobody gets more while a
    pod is on a node with devices that are not seen."""
    devices = [("n1", "gpu-0"), ("n1", "gpu-1")] if allocated else []
    claim = a_claim("shared", asked(2), devices=devices, pods=["first"] if allocated else [])
    first = a_pod("first", claim="shared", node="n1" if bound else "")
    gated = [a_pod("own", "one", created="2025-12-31T00:00:00Z", **GATED), a_pod("second", claim="shared", **GATED)]
    assert "own" not in released(tmp_path, 2, claim, first, *gated)
    assert ("own" in released(tmp_path, 3, claim, first, *gated)) is (allocated or not bound)


CLOSED: dict[str, Any] = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"door": "open"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
}
"""A place that the tenant opens later, by the labels of another pod."""
PUSHED = [a_pod(f"high-{each}", "one", priority=1000, **GATED) for each in range(12)]
"""Pods of higher priority, each of a class of its own."""
for at, each in enumerate(PUSHED):
    each["spec"]["tolerations"] = [{"key": f"key-{at}", "operator": "Exists"}]
LET: dict[str, tuple[Manifest, ...]] = {
    "claim is gone": (a_pod("let", claim="c"),),
    "template is gone": (a_pod("let", "c"),),
    "claim came again": (a_pod("let", claim="c"), a_claim("c", asked(4))),
    "claim for more than a node has": (a_pod("let", claim="c"), a_claim("c", asked(8))),
    "claim for all of a node": (a_pod("let", claim="c"), a_claim("c", ALL)),
    "place is closed": (a_pod("let", "one", **CLOSED),),
    "no such node": (a_pod("let", "one", nodeSelector={"door": "open"}),),
    "others are evicted": (a_pod("let", "one"),),
    "class is pushed out": (a_pod("let", "one"), *PUSHED),
    "whole GPU": (requesting("let", GPU_RESOURCE, nodeSelector={"door": "open"}),),
    "share": (requesting("let", "cpu", nodeSelector={"door": "open"}),),
}
"""By name: a pod whose gate was removed, which its scheduler has not placed, with other objects."""


@pytest.mark.parametrize("reason", ["SchedulingGated", "Unschedulable", "SchedulerError"])
@pytest.mark.parametrize("attack", LET)
def test_a_pod_without_its_gate_counts_until_it_has_a_node(tmp_path: Path, attack: str, reason: str) -> None:
    """Whatever keeps it from its place at the moment: four pods had their gate removed one after the other, and had a
    device each where one was allowed, once the tenant let the scheduler place them."""
    let, *others = copy.deepcopy(LET[attack])
    let["metadata"]["annotations"] = {GATE_REMOVED_REASON: "its GPUs are free on n1"}
    let["status"]["conditions"][0]["reason"] = reason
    if attack == "others are evicted":
        let["status"]["nominatedNodeName"] = "n1"
    if attack == "share":
        let["metadata"]["annotations"]["gpu-fraction"] = "1"
        let["spec"]["containers"][0]["resources"] = {}
    more = a_pod("more", "one", **GATED)
    assert not released(tmp_path, 1, let, *others, more)
    assert released(tmp_path, 1, *others, more), "without it, one may run"


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
@pytest.mark.parametrize("claims", ["plan", "observe", "off"])
def test_the_gate_holds_claims_whoever_plans_for_them(tmp_path: Path, claims: str, scheduler: str) -> None:
    pod = a_pod("pod", "one", **GATED, schedulerName=scheduler)
    assert not released(tmp_path, 0, pod, claims=claims)
    assert released(tmp_path, None, pod, claims="off") == ["pod"]


def test_a_pod_with_a_number_that_is_none_ends_no_plan(tmp_path: Path) -> None:
    """As a file may have it."""
    pod = requesting("pod", GPU_RESOURCE, **GATED, schedulerName="volcano")
    pod["spec"]["containers"][0]["resources"]["limits"][GPU_RESOURCE] = "1.5"
    assert not released(tmp_path, 0, pod)


@pytest.mark.parametrize("scheduler", ["default-scheduler", "volcano"])
@pytest.mark.parametrize("resource", [f"{DEVICE_CLASS_PREFIX}{DRIVER}", f"{DEVICE_CLASS_PREFIX}gone"])
def test_the_gate_holds_devices_of_classes_where_the_number_is_limited(
    tmp_path: Path, resource: str, scheduler: str
) -> None:
    """No plan counts what is asked for in this way."""
    pod = requesting("pod", resource, **GATED, schedulerName=scheduler)
    assert not released(tmp_path, 0, pod)
    assert not released(tmp_path, 4, pod)
    assert released(tmp_path, None, pod) == ["pod"]


@pytest.mark.parametrize("way", ["claim", "share", "part"])
def test_the_gate_holds_pods_of_another_scheduler_where_the_number_is_limited(tmp_path: Path, way: str) -> None:
    """Their scheduler would place them on devices that are free, beside what the namespace may have."""
    pod = a_pod("pod", "one", **GATED, schedulerName="volcano")
    if way != "claim":
        pod = requesting("pod", "nvidia.com/mig-1g.5gb", **GATED, schedulerName="volcano")
    if way == "share":
        pod["spec"]["containers"][0]["resources"] = {}
        pod["metadata"]["annotations"] = {"gpu-fraction": "0.5"}
    assert not released(tmp_path, 0, pod)
    assert not released(tmp_path, 4, pod)
    assert released(tmp_path, None, pod) == ["pod"]


def test_the_gate_lets_network_cards_pass(tmp_path: Path) -> None:
    cards = a_class("cards", "device.driver == 'dra.net'")
    pod = requesting("pod", f"{DEVICE_CLASS_PREFIX}cards", **GATED)
    assert released(tmp_path, 0, cards, pod) == ["pod"]


@pytest.mark.parametrize("most", [0, 1])
def test_a_network_card_beside_gpus_opens_no_gate(tmp_path: Path, most: int) -> None:
    """As a claim, or as an extended resource of its class."""
    cards = a_class("cards", "device.driver == 'dra.net'"), a_template("card", asked(1, of="cards"))
    whole: dict[str, Any] = {"containers": [{"name": "main", "resources": {"limits": {GPU_RESOURCE: "2"}}}]}
    both = {
        "containers": [
            {"name": "main", "resources": {"limits": {GPU_RESOURCE: "2", f"{DEVICE_CLASS_PREFIX}cards": "1"}}}
        ]
    }
    pods = a_pod("a", "card", **GATED, **whole), requesting("b", "example.com/none", **GATED)
    pods[1]["spec"] |= both
    assert not released(tmp_path, most, *cards, *pods)


def _ladders(requests: int, claims: int) -> tuple[Manifest, ...]:
    """A pod whose claims have requests with eight alternatives each."""
    ladder = {"firstAvailable": [{"name": f"a{each}", **asked(each + 1)} for each in range(8)]}
    names = [{"name": f"c{each}", "resourceClaimTemplateName": "ladders"} for each in range(claims)]
    return a_template("ladders", *[ladder] * requests), a_pod("pod", resourceClaims=names)


@pytest.mark.parametrize(("requests", "claims", "read"), [(8, 1, True), (9, 1, False), (4, 3, False)])
def test_claims_with_hundreds_of_alternatives_are_not_read(
    tmp_path: Path, requests: int, claims: int, read: bool
) -> None:
    """30 pods with 32 claims of 31 requests took a plan 14 seconds."""
    found = _why(tmp_path, *_ladders(requests, claims))
    assert ("requests and alternatives in the claims of one pod" in found) is not read
    template, pod = _ladders(requests, claims)
    assert not released(tmp_path, 0, template, pod | {"spec": pod["spec"] | GATED})


def test_the_cost_of_claims_has_a_bound(tmp_path: Path) -> None:
    def cost(claims: int) -> int:
        snapshot = snapshot_of(tmp_path, an_environment(), a_class(), *POOL, *NODE, *_ladders(32, claims))
        return calls(lambda: plan(snapshot, (), NOW))

    assert cost(32) < 2 * cost(1)


def test_of_many_pods_with_one_claim_the_first_alone_is_planned_with_all(tmp_path: Path) -> None:
    """The sum for each of 5,000 took every round of the controller nine seconds."""
    pods = [a_pod(f"pod-{number}", claim="c", cpu="2") for number in range(5)]
    snapshot = snapshot_of(tmp_path, a_class(), a_claim("c", asked(1)), *pods)
    assert [pod.host.cpu_milli for pod in snapshot.pods] == [10_000, 2_000, 2_000, 2_000, 2_000]
    demands = planned(tmp_path, limited(1), a_claim("c", asked(1)), *pods).demands
    assert [uid for demand in demands for uid in demand.on_new] == ["uid-pod-0"]


def test_new_nodes_for_claims_are_bounded_too(tmp_path: Path) -> None:
    """Each pod has a claim of its own, and no node is there yet."""
    pods = [a_pod(f"pod-{number}", "one") for number in range(9)]
    found = planned(tmp_path, limited(3), *pods)
    assert sum(len(demand.on_new) for demand in found.demands) == 3
    assert len(found.nodes) == 1
    assert reasons(found)


def _why(folder: Path, *objects: Manifest) -> str:
    found = planned(folder, limited(9), *NODE, *objects)
    return str([why for demand in found.demands for why in demand.refused.values()])


def _looping(within: int) -> str:
    expression = "x0 != 99"
    for each in reversed(range(within)):
        expression = f"[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(x{each}, {expression})"
    return expression


SLOW = {
    "loops in loops": _looping(4),
    "twice the text each time": "['text']" + ".map(x, x + x)" * 14 + "[0].size() > 0",
    "twice the list each time": "['text']" + ".map(x, [x, x])" * 14 + "[0].size() > 0",
    "names for twice the text": "cel.bind(a, 'text', " + "cel.bind(a, a + a, " * 14 + "a.size() > 0" + ")" * 15,
    "replaced by more": "'text'" + ".replace('t', 'tttttttt')" * 4 + ".size() > 0",
    "a pattern of many classes": r"''.matches('\\w{90}') || true",
    "a pattern without case": "''.matches('(?i)" + "[à-ž]" * 18 + "') || true",
    "a pattern in pieces": r"''.matches('\\w' + '{90}') || true",
    "a pattern in other letters": r"''.matches('\\w\x7b90}') || true",
    "between texts": r"r'\' == '' || " + _looping(4) + r" || '' == r'\'",
    "between comments": "true // '\n && " + _looping(4) + " // '",
}
"""Selectors that the apiserver admits, or more of the same."""


@pytest.mark.parametrize("form", SLOW)
def test_selectors_that_may_take_long_are_not_evaluated(tmp_path: Path, form: str) -> None:
    """32 loops took a plan four seconds, and a template may have thousands; a pattern of 21 letters took a tenth, for
    each kind of device; ten names more took all memory."""
    assert "that may take long" in _why(tmp_path, a_template("slow", asked(1, SLOW[form])), a_pod("slow", "slow"))


@pytest.mark.parametrize(
    "expression", [_looping(1), "cel.bind(a, 'text', a + a == 'texttext')", "'a // b'.contains('//')"]
)
def test_selectors_of_an_honest_size_are_evaluated(tmp_path: Path, expression: str) -> None:
    own = a_template("own", asked(1, expression)), a_pod("own", "own")
    assert not reasons(planned(tmp_path, limited(9), *NODE, *own))


def test_the_selectors_of_one_namespace_take_no_time_of_others(tmp_path: Path) -> None:
    texts = [" && ".join(f"{at} != 1{number:03}" for number in range(600)) for at in range(25)]
    objects = [a_template(f"t-{at}", asked(1, text)) for at, text in enumerate(texts)]
    objects += [a_pod(f"pod-{at}", f"t-{at}", created=f"2026-01-01T00:00:{at:02}Z") for at in range(25)]
    assert "more different selectors in the claims of namespace 'team'" in _why(tmp_path, *objects)
    assert "different selectors" not in _why(tmp_path, *objects[:4], *objects[25:29])
    other = a_template("own", asked(1, texts[-1]), namespace="free"), a_pod("own", "own", namespace="free")
    assert "uid-own" in served(tmp_path, 9, *objects, *other)
