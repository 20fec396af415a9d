"""How many files a pod that shares a GPU, and a Workspace, pass from the watch to the Plan.

A file counts if one of its functions takes or returns the object or a value that is made for it: one that holds its
name, at most three values deep. Values of the whole cluster, such as the Snapshot, do not count.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

from pydantic import BaseModel

import plimsoll
from plimsoll.model import Plan
from plimsoll.observe.cluster import Stores
from plimsoll.plan import plan, validate
from plimsoll.plan.demand import DemandPlanner
from plimsoll.plan.view import ClusterView

MOST: Final = 47
DEPTH: Final = 3
NAME: Final = "followed"
ROOT: Final = str(Path(plimsoll.__file__).parent)
WHOLE_CLUSTER: Final = {"Snapshot", "ClusterView", "DemandInputs", "Stores", "PlanBuilder"}


def environment(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Environment", "metadata": {"name": "test"}, "spec": spec}


NODE_POOL: Final = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "l4"},
    "spec": {
        "template": {
            "spec": {
                "requirements": [
                    {
                        "key": "node.kubernetes.io/instance-type",
                        "operator": "In",
                        "values": ["g6.xlarge", "g6.12xlarge"],
                    }
                ]
            }
        }
    },
}
POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": NAME, "namespace": "team", "annotations": {"gpu-fraction": "0.6"}},
    "spec": {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
    },
    "status": {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    },
}
WORKSPACE: Final = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "Workspace",
    "metadata": {"name": NAME, "namespace": "team"},
    "spec": {
        "resource": {"instanceType": "Standard_NC24ads_A100_v4"},
        "inference": {"preset": {"name": "phi-4-mini-instruct"}},
    },
}


def holds(value: Any, depth: int = 0) -> bool:
    """Whether the value holds the name."""
    if isinstance(value, str):
        return NAME in value
    if depth > DEPTH or type(value).__name__ in WHOLE_CLUSTER:
        return False
    return any(holds(part, depth + 1) for part in parts(value))


def parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        yield from value
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    elif isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        names = type(value).model_fields if isinstance(value, BaseModel) else value.__dataclass_fields__
        yield from (getattr(value, name, None) for name in names)


def arguments(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        value = frame.f_locals.get(name)
        if name != "self" or is_dataclass(value):
            yield value


def crossed(run: Callable[[], Plan]) -> tuple[Plan, set[str]]:
    """The Plan, and the files that the object passes while it is made."""
    files: set[str] = set()
    looking = False

    def look(frame: FrameType, event: str, result: Any) -> None:
        nonlocal looking
        file = frame.f_code.co_filename
        if looking or event not in ("call", "return") or not file.startswith(ROOT) or file in files:
            return
        looking = True
        try:
            if any(map(holds, arguments(frame) if event == "call" else (result,))):
                files.add(file)
        finally:
            looking = False

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        return run(), files
    finally:
        sys.setprofile(before)


def planned_after(objects: Iterable[dict[str, Any]], last: dict[str, Any]) -> tuple[Plan, set[str]]:
    """The Plan of the round after `last` is created in a cluster that has the other objects."""
    stores, planner, now = Stores(), DemandPlanner(), datetime(2026, 1, 1, tzinfo=UTC)
    by_kind = {store.kind.name: store for store in stores}

    def put(obj: dict[str, Any]) -> None:
        store, name = by_kind[obj["kind"]], obj["metadata"]["name"]
        identity = {"uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
        store.put(*store.read({**obj, "metadata": {**obj["metadata"], **identity}}))

    def run() -> Plan:
        view = ClusterView(stores.snapshot())
        return plan(view, validate(view), now, planner)

    def add() -> Plan:
        put(last)
        return run()

    for obj in objects:
        put(obj)
    run()
    return crossed(add)


def test_a_pod_that_shares_a_gpu() -> None:
    settings = environment(demand={"provisioner": "trigger-pod"})
    made, files = planned_after([settings, NODE_POOL], POD)
    assert [each.key.kind for each in made.creations] == ["Pod"]
    assert any("/packing/" in file for file in files)
    assert len(files) <= MOST, sorted(files)


def test_a_workspace() -> None:
    node_class = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    settings = environment(nodeAutoProvisioning="enabled", nodeClaims={"nodeClassRef": node_class})
    made, files = planned_after([settings], WORKSPACE)
    assert [each.key.kind for each in made.creations] == ["NodeClaim"]
    assert len(files) <= MOST, sorted(files)
