"""A small cluster in memory that executes the binder's steps. A device plugin assigns GPUs to reservations."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plimsoll.bind.planning import (
    Bind,
    BindPlan,
    BindPlanner,
    BindStep,
    Claim,
    DeleteReservation,
    Evict,
    MarkUnknown,
    Reserve,
    SetUnscheduled,
    Unclaim,
    claimed,
    reservation_manifest,
    unclaim_patch,
)
from plimsoll.labels import GPU_RESOURCE, RESERVED_GPU, UNKNOWN_GPU, VISIBLE_DEVICES
from plimsoll.model.api import BinderSettings
from plimsoll.model.cluster import Node, Pod, SharePod
from plimsoll.model.kai import GPU_FRACTION, GPU_FRACTION_DEVICES, GPU_MEMORY_SHARE, ReservationSettings
from plimsoll.model.meta import Condition
from tests.builders import a_node, metadata

SETTINGS = BinderSettings(reservation=ReservationSettings(image="example/plimsoll:1"))


def a_gpu_node(
    name: str = "n1",
    gpus: int = 2,
    cpu: str = "16",
    pods: int = 110,
    more: Mapping[str, str] | None = None,
    **fields: Any,
) -> Node:
    """`more`: allocatable amounts of other resources."""
    node = a_node(name, count=gpus, allocatable=gpus, **fields)
    host = {"cpu": cpu, "memory": "64Gi", "pods": str(pods), **(more or {})}
    return node.model_copy(update={"allocatable": {**node.allocatable, **host}})


def a_plain_pod(
    name: str, node: str = "n1", phase: str = "Running", gpus: int = 0, cpu: str = "0", storage: str = "0"
) -> Pod:
    """A pod without shares that another scheduler has placed."""
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    container = {
        "name": "main",
        "resources": {"limits": limits, "requests": {"cpu": cpu, "ephemeral-storage": storage}},
    }
    manifest = {"metadata": metadata(name, "other", uid=f"uid-{name}")}
    return Pod.read({**manifest, "spec": {"nodeName": node, "containers": [container]}, "status": {"phase": phase}})


def a_share(
    name: str,
    fraction: str | None = "0.5",
    *,
    memory: str | None = None,
    devices: int = 1,
    cpu: str = "0",
    more: Mapping[str, str] | None = None,
    priority: int = 0,
    scheduler: str = "plimsoll",
    selector: dict[str, str] | None = None,
    obstacle: str = "",
    labels: dict[str, str] | None = None,
) -> SharePod:
    """A share pod that is waiting for the binder; `more`: requests of other resources."""
    asked = {
        GPU_FRACTION: fraction,
        GPU_MEMORY_SHARE: memory,
        GPU_FRACTION_DEVICES: str(devices) if devices > 1 else None,
    }
    return SharePod.read(
        {
            "kind": "Pod",
            "metadata": metadata(
                name,
                "team",
                uid=f"uid-{name}",
                labels=labels,
                annotations={key: value for key, value in asked.items() if value is not None},
            ),
            "spec": {
                "schedulerName": scheduler,
                "priority": priority,
                "nodeSelector": selector or {},
                "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, **(more or {})}}}],
            },
            "status": {"phase": "Pending"},
            "obstacle": obstacle,
        }
    )


@dataclass
class Cluster:
    """The objects that a binder reads and writes. Each write gives the pod a new version."""

    nodes: list[Node]
    settings: BinderSettings = SETTINGS
    pods: dict[tuple[str, str], Pod] = field(default_factory=dict)
    given: dict[tuple[str, str], str] = field(default_factory=dict)
    """GPU that the device plugin has given to each reservation, by node and UID; in order of their numbers."""
    bound: list[str] = field(default_factory=list)
    messages: dict[str, str] = field(default_factory=dict)
    evicted: list[str] = field(default_factory=list)
    now: float = 0.0
    lost: set[tuple[str, str]] = field(default_factory=set)
    """(node, GPU) that the device plugin no longer assigns."""
    disruption_budget: bool = False
    """Whether a PodDisruptionBudget keeps every pod from being evicted."""
    _versions: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.planner = BindPlanner(self.settings)

    def add(self, *pods: Pod) -> None:
        for pod in pods:
            self._put(pod)

    def restart(self) -> None:
        """Replaces the binder by a new one without memory."""
        self.planner = BindPlanner(self.settings)

    def plan(self) -> BindPlan:
        return self.planner.plan(self.nodes, list(self.pods.values()), self.now)

    def round(self, most: int | None = None) -> list[BindStep]:
        """Runs one round and executes at most this many of its steps. Returns the planned steps."""
        steps = list(self.plan().steps)
        for step in steps[:most]:
            self.carry_out(step)
        return steps

    def settle(self, kubelet: bool = True, rounds: int = 50) -> list[BindStep]:
        """Runs rounds until there is nothing left to do now. Returns the executed steps."""
        done: list[BindStep] = []
        for _ in range(rounds):
            steps = self.round()
            done += steps
            if not (kubelet and self.play_kubelet()) and not steps:
                return done
        raise AssertionError(f"no end of steps: {steps}")

    def play_kubelet(self) -> bool:
        """Assigns the first free GPU to each new reservation and writes its UUID; without a free GPU the reservation
        fails. Returns whether there was a new reservation."""
        played = False
        for pod in [each for each in self.reservations() if not each.annotations.get(RESERVED_GPU)]:
            if pod.finished:
                continue
            played = True
            node = next(each for each in self.nodes if each.name == pod.node_name)
            held = {gpu for (name, uid), gpu in self.given.items() if name == node.name and self._there(uid)}
            gpus = [f"GPU-{node.name}-{number}" for number in range(node.allocatable_devices("nvidia.com/gpu") or 0)]
            free = [gpu for gpu in gpus if gpu not in held and (node.name, gpu) not in self.lost]
            if not free:
                self._put(pod.model_copy(update={"phase": "Failed"}))
                continue
            self.given[(node.name, pod.uid)] = free[0]
            self.annotate(pod, free[0])
        return played

    def annotate(self, reservation: Pod, gpu: str) -> None:
        self._put(reservation.model_copy(update={"annotations": {**reservation.annotations, RESERVED_GPU: gpu}}))

    def delete(self, pod: Pod) -> None:
        self.pods.pop(pod.key, None)

    def reservations(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.namespace == self.settings.reservation.namespace]

    def pod(self, name: str) -> Pod:
        return self.pods[("team", name)]

    def gpus_of(self, name: str) -> str:
        return self.pod(name).annotations[VISIBLE_DEVICES]

    def carry_out(self, step: BindStep) -> None:
        """Executes a step as the apiserver would: a step on an object that has changed since does nothing."""
        match step:
            case Claim(pod, assignment):
                if self._same(pod):
                    self._put(claimed(pod, assignment))
            case Unclaim(pod):
                if self._same(pod):
                    gone = unclaim_patch(pod)["metadata"]
                    kept = {part: _without(getattr(pod, part), gone[part]) for part in ("labels", "annotations")}
                    self._put(pod.model_copy(update=kept))
            case Reserve(node, group, pod, attempt):
                manifest = reservation_manifest(
                    self.settings.reservation, node, group, pod.placement.tolerations, attempt
                )
                made = Pod.read({**manifest, "status": {"phase": "Pending"}})
                if made.key not in self.pods:
                    self._put(made.model_copy(update={"uid": f"uid-{next(self._versions)}"}))
            case MarkUnknown(reservation):
                if self._same(reservation):
                    self.annotate(reservation, UNKNOWN_GPU)
            case Bind(pod, node, gpus):
                there = self.pods.get(pod.key)
                if there is not None and there.uid == pod.uid and not there.node_name:
                    self.bound.append(pod.name)
                    annotations = {**there.annotations, VISIBLE_DEVICES: ",".join(gpus)}
                    bound = {"node_name": node, "annotations": annotations, "phase": "Running"}
                    self._put(there.model_copy(update=bound))
            case SetUnscheduled(pod, reason, message):
                self.messages[pod.name] = message
                condition = Condition(type="PodScheduled", status="False", reason=reason.value, message=message)
                self._put(self.pods[pod.key].model_copy(update={"conditions": (condition,)}))
            case DeleteReservation(reservation):
                if self._same(reservation):
                    self.delete(reservation)
            case Evict(pod) if not self.disruption_budget:
                self.evicted.append(pod.name)
                self.delete(pod)

    def _same(self, pod: Pod) -> bool:
        there = self.pods.get(pod.key)
        return there is not None and (there.uid, there.resource_version) == (pod.uid, pod.resource_version)

    def _there(self, uid: str) -> bool:
        return any(pod.uid == uid for pod in self.pods.values())

    def _put(self, pod: Pod) -> None:
        self.pods[pod.key] = pod.model_copy(update={"resource_version": str(next(self._versions))})


def _without(values: dict[str, str], gone: dict[str, Any]) -> dict[str, str]:
    return {key: value for key, value in values.items() if key not in gone}
