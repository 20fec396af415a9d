"""ResourceQuotas of claims: no node is requested for a pod whose claim the apiserver would refuse to create."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.model import Snapshot
from plimsoll.plan.classes import RefusalReason
from plimsoll.plan.demand import DemandPlan, DemandPlanner
from plimsoll.plan.limits import NamespaceBudget
from plimsoll.plan.view import ClusterView
from tests.claims.objects import DRIVER, Manifest, a_claim, a_class, a_pod, a_template, asked, snapshot_of
from tests.claims.test_demand import FOUR, POOL, an_environment
from tests.command import plimsoll

OTHER, RESOURCE = "other.example.com", "example.com/gpu"
"""A second class of the same devices, and the extended resource that stands for it."""
COUNT = "count/resourceclaims.resource.k8s.io"
ALL = {"deviceClassName": DRIVER, "allocationMode": "All"}
NONE = f"device.driver != '{DRIVER}'"
"""Selects no device: alternatives with it count all the same."""
CLASSES = (a_class(), a_class(OTHER, f"device.driver == '{DRIVER}'", extended_resource=RESOURCE))


def devices_of(name: str) -> str:
    return f"{name}.deviceclass.resource.k8s.io/devices"


def a_quota(hard: dict[str, Any], name: str = "devices", namespace: str = "team", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def made(pod: Manifest, request: Manifest, *, told: bool = True, annotation: str = "pod-claim-name") -> Manifest:
    """The claim that Kubernetes made for a pod; `told`: the pod's status names it already."""
    name = f"{pod['metadata']['name']}-gpu"
    claim = a_claim(name, request)
    owner = {"apiVersion": "v1", "kind": "Pod", "uid": pod["metadata"]["uid"], "controller": True, "name": "any"}
    value = "gpu" if annotation == "pod-claim-name" else "true"
    annotations = {f"resource.kubernetes.io/{annotation}": value}
    claim["metadata"] |= {"annotations": annotations, "ownerReferences": [owner]}
    if told:
        pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": name}]
    return claim


def either(*requests: Manifest) -> Manifest:
    return {"firstAvailable": [{"name": f"n{number}", **each} for number, each in enumerate(requests)]}


def planned(snapshot: Snapshot) -> DemandPlan:
    return DemandPlanner().plan(snapshot, namespaces=NamespaceBudget(ClusterView(snapshot)))


def refused(found: DemandPlan) -> dict[str, str]:
    """What is said of the pods that their namespace may not have, by UID."""
    every = [(uid, why) for demand in found.demands for uid, why in demand.refused.items()]
    return {uid: why.problem for uid, why in every if why.reason is RefusalReason.NOT_ALLOWED}


def served(found: DemandPlan) -> set[str]:
    return {uid for demand in found.demands for uid in demand.on_new}


REQUESTS = {
    "two": (asked(2), devices_of(DRIVER), 2),
    "all": (ALL, devices_of(DRIVER), 32),
    "other": (asked(1, of=OTHER), devices_of(OTHER), 1),
    "most of a class": (either(asked(1), asked(3, NONE)), devices_of(DRIVER), 3),
    "each class": (either(asked(1), asked(2, NONE, of=OTHER)), devices_of(OTHER), 2),
    "all or one": (either({**ALL, "selectors": [{"cel": {"expression": NONE}}]}, asked(1)), devices_of(DRIVER), 32),
    "number": (asked(4), COUNT, 1),
    "by the name of the class": (asked(2), f"requests.deviceclass.resource.kubernetes.io/{DRIVER}", 2),
    "by the resource of the class": (asked(2, of=OTHER), f"requests.{RESOURCE}", 2),
}


@pytest.mark.parametrize(("request_", "key", "counted"), REQUESTS.values(), ids=REQUESTS)
def test_a_claim_to_be_created_counts_as_the_apiserver_counts_it(
    tmp_path: Path, request_: Manifest, key: str, counted: int
) -> None:
    objects = (an_environment(), *CLASSES, *POOL, a_template("t", request_), a_pod("pod", "t"))
    enough = planned(snapshot_of(tmp_path, *objects, a_quota({key: str(counted)})))
    assert (served(enough), len(enough.nodes)) == ({"uid-pod"}, 1)
    short = planned(snapshot_of(tmp_path, *objects, a_quota({key: counted - 1})))
    (why,) = refused(short).values()
    assert not short.nodes
    for words in ("ResourceQuota devices", "'team'", f"allows {counted - 1} of {key}", f"{counted} more"):
        assert words in why


def test_a_claim_that_exists_is_in_use_and_asks_for_nothing_more(tmp_path: Path) -> None:
    """Its pod gets a node although the quota is used up; the next pod gets none, whatever node has room."""
    pod, other = a_pod("a", "one"), a_pod("b", "one")
    objects = (an_environment(), *CLASSES, *POOL, a_template("one", asked(1)), pod, other)
    quota = a_quota({devices_of(DRIVER): "1"})
    found = planned(snapshot_of(tmp_path, *objects, made(pod, asked(1)), quota))
    assert (served(found), set(refused(found))) == ({"uid-a"}, {"uid-b"})


def test_a_claim_counts_once_before_the_status_of_its_pod_names_it(tmp_path: Path) -> None:
    pod = a_pod("a", "one")
    objects = (an_environment(), *CLASSES, *POOL, a_template("one", asked(1)), pod)
    claim, quota = made(pod, asked(1), told=False), a_quota({devices_of(DRIVER): "1"})
    assert served(planned(snapshot_of(tmp_path, *objects, claim, quota))) == {"uid-a"}
    of_another = made(pod, asked(1, of=OTHER), told=False)
    assert not served(planned(snapshot_of(tmp_path, *objects, of_another, a_quota({devices_of(DRIVER): "0"}))))
    pod["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": "not-seen-yet"}]
    assert served(planned(snapshot_of(tmp_path, *objects, quota))) == {"uid-a"}


def test_a_claim_for_extended_resources_counts_beside_what_its_pod_requests(tmp_path: Path) -> None:
    """The pod requests two devices by the extended resource: they count by it once, and by the class once the scheduler
    has made the claim."""
    running = a_pod("running", "none", node="n1")
    running["spec"].pop("resourceClaims")
    running["spec"]["containers"][0]["resources"] = {"limits": {RESOURCE: "2"}}
    claim = made(running, asked(2, of=OTHER), annotation="extended-resource-claim", told=False)
    pod = a_pod("pod", "one")
    objects = (an_environment(), *CLASSES, *POOL, a_template("one", asked(1, of=OTHER)), running, pod)

    def gets(claims: tuple[Manifest, ...], key: str, hard: int) -> bool:
        return bool(served(planned(snapshot_of(tmp_path, *objects, *claims, a_quota({key: hard})))))

    for claims in ((), (claim,)):
        assert [gets(claims, f"requests.{RESOURCE}", hard) for hard in (2, 3)] == [False, True]
    assert [gets((), devices_of(OTHER), hard) for hard in (0, 1)] == [False, True]
    assert [gets((claim,), devices_of(OTHER), hard) for hard in (2, 3)] == [False, True]


@pytest.mark.parametrize(
    "quota",
    [
        a_quota({devices_of(DRIVER): "0"}, namespace="elsewhere"),
        a_quota({devices_of(OTHER): "0"}),
        a_quota({"requests.example.com/fpga": "0", "count/pods": "0"}),
        a_quota({devices_of(DRIVER): "0"}, scopes=["NotTerminating"]),
    ],
    ids=["other namespace", "other class", "no claims", "scopes"],
)
def test_other_quotas_bound_nothing(tmp_path: Path, quota: Manifest) -> None:
    objects = (an_environment(), *CLASSES, *POOL, a_template("one", asked(1)), a_pod("pod", "one"), quota)
    assert served(planned(snapshot_of(tmp_path, *objects))) == {"uid-pod"}


def test_a_gang_whose_claims_are_not_all_created_gets_nothing(tmp_path: Path) -> None:
    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "team"}, "spec": {"minMember": 2},
    }  # fmt: skip
    pods = [a_pod(name, "two") for name in ("a", "b")]
    for pod in pods:
        pod["metadata"]["annotations"] = {"pod-group-name": "gang"}
    objects = (an_environment(), *CLASSES, *POOL, a_template("two", asked(2)), group, *pods)
    found = planned(snapshot_of(tmp_path, *objects, a_quota({devices_of(DRIVER): "3"})))
    assert (served(found), len(refused(found))) == (set(), 2)
    assert len(served(planned(snapshot_of(tmp_path, *objects, a_quota({devices_of(DRIVER): "4"}))))) == 2


def test_the_pod_is_told_and_why_proposes_more(tmp_path: Path) -> None:
    """From files: no node is planned; the quota that suffices is proven by a plan."""
    objects = (
        an_environment(), *CLASSES, *POOL, a_template("two", asked(2)), a_pod("pod", "two"),
        a_quota({devices_of(DRIVER): "1"}),
    )  # fmt: skip
    file = tmp_path / "objects.yaml"
    file.write_text("\n---\n".join(map(json.dumps, objects)))
    demand = plimsoll("demand", "-f", str(file)).stdout
    assert f"team/pod: ResourceQuota devices of namespace 'team' allows 1 of {devices_of(DRIVER)}" in demand
    assert FOUR not in demand + plimsoll("plan", "-f", str(file)).stdout
    why = plimsoll("why", "pod", "pod", "-n", "team", "-f", str(file), "--output", "json")
    assert f"spec.hard[{devices_of(DRIVER)}]" in why.stdout, why.stdout


def counted(requests: list[Manifest]) -> Counter[str]:
    """What claims of one request each count, read from their manifests."""
    found: Counter[str] = Counter()
    for request in requests:
        ways = request.get("firstAvailable", [request])
        found[COUNT] += 1
        for name in {way["deviceClassName"] for way in ways}:
            of_class = [way for way in ways if way["deviceClassName"] == name]
            most = max(32 if way.get("allocationMode") == "All" else way.get("count", 1) for way in of_class)
            found[devices_of(name)] += most
            found[f"requests.deviceclass.resource.kubernetes.io/{name}"] += most
            if name == OTHER:
                found[f"requests.{RESOURCE}"] += most
    return found


def some(*selectors: str) -> st.SearchStrategy[Manifest]:
    numbers, classes = st.integers(1, 4), st.sampled_from([DRIVER, OTHER])
    return st.builds(lambda count, of: asked(count, *selectors, of=of), numbers, classes)


requests_ = st.one_of(some(), st.just(ALL), st.builds(either, some()), st.builds(either, some(NONE), some()))
keys = st.sampled_from(sorted(counted([asked(1), asked(1, of=OTHER)])))


@given(
    st.lists(st.tuples(st.lists(requests_, min_size=1, max_size=2), st.booleans()), max_size=7),
    st.dictionaries(keys, st.integers(0, 40), min_size=1, max_size=3),
)
def test_the_claims_of_pods_with_nodes_are_within_the_quotas_and_no_other_would_be(
    given_pods: list[tuple[list[Manifest], bool]], hard: dict[str, int]
) -> None:
    """Pods have claims of one or two templates, which exist already or do not. What is counted is independent of the
    plan."""
    objects: list[Manifest] = [an_environment(), *CLASSES, *POOL, a_quota(hard)]
    existing: list[Manifest] = []
    asks: dict[str, list[Manifest]] = {}
    for number, (requests, exists) in enumerate(given_pods):
        named = [{"name": f"c{at}", "resourceClaimTemplateName": f"t{number}-{at}"} for at in range(len(requests))]
        pod = a_pod(f"pod-{number}", resourceClaims=named)
        objects += [a_template(f"t{number}-{at}", request) for at, request in enumerate(requests)]
        objects.append(pod)
        asks[pod["metadata"]["uid"]] = [] if exists else requests
        if exists:
            names = [f"made-{number}-{at}" for at in range(len(requests))]
            objects += [a_claim(name, request) for name, request in zip(names, requests, strict=True)]
            existing += requests
            pod["status"]["resourceClaimStatuses"] = [
                {"name": f"c{at}", "resourceClaimName": name} for at, name in enumerate(names)
            ]
    with TemporaryDirectory() as folder:
        found = planned(snapshot_of(Path(folder), *objects))
    with_nodes, barred = served(found), refused(found)
    assert not with_nodes & barred.keys()
    assert not any(not asks[uid] for uid in barred)
    used = counted(existing)
    created = counted([each for uid in with_nodes for each in asks[uid]])
    assert all(used[key] + created[key] <= most for key, most in hard.items() if created[key])
    for uid in barred:
        more = counted(asks[uid])
        assert any(more[key] and used[key] + created[key] + more[key] > most for key, most in hard.items())
