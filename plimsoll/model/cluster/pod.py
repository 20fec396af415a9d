"""A pod, with the fields that planning needs."""

import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.labels import is_device
from plimsoll.model.cluster.storage import VolumeClaim, read_claims
from plimsoll.model.dra import ClaimedDevices, PodClaim
from plimsoll.model.meta import (
    ANYWHERE,
    EPHEMERAL_STORAGE,
    Condition,
    HostRequest,
    ObservedObject,
    Placement,
    PodRules,
    condition_of,
    counted,
    dig,
    read_rules,
)
from plimsoll.quantity import parse_bytes, parse_devices


def _placement(spec: Any) -> Any:
    return Placement.read(spec) if isinstance(spec, Mapping) else spec


def _rules(spec: Any) -> Any:
    return read_rules(spec) if isinstance(spec, Mapping) else spec


def _host_request(spec: Any) -> Any:
    return HostRequest.read(spec) if isinstance(spec, Mapping) else spec


def _with_resources(containers: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    for number, container in enumerate(containers):
        resources = container.get("resources") or {}
        if not isinstance(resources, Mapping):
            raise ValueError(f"container {number}: resources must be an object")
        for part in ("requests", "limits"):
            if not isinstance(resources.get(part) or {}, Mapping):
                raise ValueError(f"container {number}: resources.{part} must be an object")
    return containers


def _devices(amount: str | int | float) -> int:
    count = parse_devices(amount)
    if count < 0:
        raise ValueError(f"{str(amount)!r} is less than 0")
    return count


def _gates(gates: Any) -> Any:
    if not isinstance(gates, list):
        return gates
    return tuple(each.get("name", "") if isinstance(each, Mapping) else each for each in gates)


def _claims(claims: Any) -> Any:
    if not isinstance(claims, list):
        return claims
    return tuple(_claim(each) if isinstance(each, Mapping) else each for each in claims)


def _claim(given: Mapping[str, Any]) -> PodClaim:
    named = (given.get(field) or "" for field in ("name", "resourceClaimName", "resourceClaimTemplateName"))
    return PodClaim(*map(str, named))


def _generated(statuses: Any) -> Any:
    if not isinstance(statuses, list):
        return statuses
    return {str(each["name"]): str(each.get("resourceClaimName") or "") for each in statuses if each.get("name")}


def _volume_claims(volumes: Any) -> Any:
    return read_claims(volumes) if isinstance(volumes, list) else volumes


def _controller_kind(owners: Any) -> Any:
    if not isinstance(owners, list):
        return owners
    kinds = (each.get("kind") for each in owners if isinstance(each, Mapping) and each.get("controller", True))
    return sys.intern(str(next(kinds, "") or ""))


def _started(statuses: Any) -> Any:
    if not isinstance(statuses, list) or any(dig(each, "restartCount") for each in statuses):
        return ""
    running = [dig(each, "state.running.startedAt") for each in statuses]
    return max(map(str, running), default="") if all(running) else ""


_STARTING: Final = ("ContainerCreating", "PodInitializing")
_PULL: Final = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_SHOWN: Final = 300
"""Characters of a message of the kubelet."""


def _halted(status: Any) -> Any:
    """Of all containers that the kubelet tells of, init containers first, the first one that does not run."""
    if not isinstance(status, Mapping):
        return status
    parts = (status.get("initContainerStatuses"), status.get("containerStatuses"))
    every = [each for part in parts if isinstance(part, list) for each in part if isinstance(each, Mapping)]
    return next((text for each in every if (text := _why_halted(each))), "")


def _why_halted(container: Mapping[str, Any]) -> str:
    """Empty if it runs, or starts for the first time. The same while the kubelet tries again and again."""
    name, reason = f"container {container.get('name')}", dig(container, "state.waiting.reason")
    if container.get("ready") is True or reason in _STARTING:
        return ""
    if reason in _PULL:
        return f"{name}: image {container.get('image')} cannot be pulled"
    ended = dig(container, "lastState.terminated")
    if isinstance(ended, Mapping):
        why = f", {ended['reason']}" if ended.get("reason") not in (None, "Error", "Completed") else ""
        return f"{name} ended with exit code {ended.get('exitCode')}{why}, and is started again"
    message = " ".join(str(dig(container, "state.waiting.message") or "").split())[:_SHOWN]
    return f"{name}: {reason}" + (f" ({message})" if message else "") if reason else ""


PlacementOfSpec = Annotated[Placement, BeforeValidator(_placement)]
"""As the spec of a pod says it."""
HostOfSpec = Annotated[HostRequest, BeforeValidator(_host_request)]
"""What the containers in the spec of a pod request together."""
Containers = Annotated[tuple[dict[str, Any], ...], AfterValidator(_with_resources)]


class Pod(ObservedObject):
    node_name: str = Field(default="", validation_alias=AliasPath("spec", "nodeName"))
    nominated_node_name: str = Field(default="", validation_alias=AliasPath("status", "nominatedNodeName"))
    """The node on which a scheduler preempts pods for it."""
    scheduler_name: str = Field(default="default-scheduler", validation_alias=AliasPath("spec", "schedulerName"))
    priority: int = Field(default=0, validation_alias=AliasPath("spec", "priority"))
    priority_class: str = Field(default="", validation_alias=AliasPath("spec", "priorityClassName"))
    owner_kind: Annotated[str, BeforeValidator(_controller_kind)] = Field(
        default="", validation_alias=AliasPath("metadata", "ownerReferences")
    )
    """Kind of the object that controls the pod, such as ReplicaSet; empty: none."""
    scheduling_gates: Annotated[tuple[str, ...], BeforeValidator(_gates)] = Field(
        default=(), validation_alias=AliasPath("spec", "schedulingGates")
    )
    """Names of its scheduling gates."""
    placement: PlacementOfSpec = Field(default=ANYWHERE, validation_alias=AliasPath("spec"))
    rules: Annotated[PodRules, BeforeValidator(_rules)] = Field(default=(), validation_alias=AliasPath("spec"))
    """What it requires of its place relative to other pods."""
    mounted: Annotated[tuple[VolumeClaim, ...], BeforeValidator(_volume_claims)] = Field(
        default=(), validation_alias=AliasPath("spec", "volumes")
    )
    """`volume_claims` as in its spec."""
    host: HostOfSpec = Field(default=HostRequest(), validation_alias=AliasPath("spec"))
    containers: Containers = Field(default=(), validation_alias=AliasPath("spec", "containers"))
    init_containers: Containers = Field(default=(), validation_alias=AliasPath("spec", "initContainers"))
    resource_claims: Annotated[tuple[PodClaim, ...], BeforeValidator(_claims)] = Field(
        default=(), validation_alias=AliasPath("spec", "resourceClaims")
    )
    """Its claims of devices (Dynamic Resource Allocation)."""
    generated_claims: Annotated[dict[str, str], BeforeValidator(_generated)] = Field(
        default_factory=dict, validation_alias=AliasPath("status", "resourceClaimStatuses")
    )
    """Names of the ResourceClaims that were made of templates, by the claim's name within the pod."""
    claimed: ClaimedDevices | None = None
    """What its claims ask for that have no devices yet; None: it has no claims. Whoever observes it, reads it from the
    objects that it names (`plimsoll.cluster.claims`). Of several pods that wait for one claim, the first one asks for
    it, and `host` is that of all, because they run on one node."""
    phase: str = Field(default="", validation_alias=AliasPath("status", "phase"))
    conditions: tuple[Condition, ...] = Field(default=(), validation_alias=AliasPath("status", "conditions"))
    started: Annotated[str, BeforeValidator(_started)] = Field(
        default="", validation_alias=AliasPath("status", "containerStatuses")
    )
    """When the last of its containers started, RFC 3339; empty unless all run, none of them for the second time."""

    halted: Annotated[str, BeforeValidator(_halted)] = Field(default="", validation_alias=AliasPath("status"))
    """Why a container does not run or ended, as the kubelet tells; empty: nothing is told. Of a cluster, it is known of
    pods of Workspaces only."""

    @property
    def volume_claims(self) -> tuple[VolumeClaim, ...]:
        """Its volumes that are PersistentVolumeClaims, by the names of these."""
        return tuple(
            each._replace(name=f"{self.name}-{each.name}") if each.ephemeral else each for each in self.mounted
        )

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        """Whether it serves; known of pods of Workspaces only."""
        condition = condition_of(self.conditions, "Ready")
        return condition is not None and condition.status == "True"

    @property
    def unschedulable(self) -> bool:
        """Whether the scheduler found no node: PodScheduled is False with reason Unschedulable. A manifest without a
        phase is not of a cluster: such a pod was never scheduled."""
        condition = condition_of(self.conditions, "PodScheduled")
        if condition is None:
            return not (self.node_name or self.scheduling_gates or self.phase)
        return not self.node_name and condition.status == "False" and condition.reason == "Unschedulable"

    @property
    def extended_resources(self) -> tuple[str, ...]:
        """The extended resources that its containers name, init containers too, sorted."""
        found: set[str] = set()
        for container in (*self.containers, *self.init_containers):
            resources = container.get("resources")
            if resources:
                for part in ("requests", "limits"):
                    names = resources.get(part) or ()
                    # Most are CPU and memory, which are told apart at once: every pod is read.
                    found.update(name for name in names if isinstance(name, str) and "/" in name and is_device(name))
        return tuple(sorted(found)) if found else ()

    def devices(self, resource: str) -> int:
        """Devices of an extended resource that the scheduler counts for the pod, without overhead.

        Raises ValueError on a quantity that is not a whole number of 0 or more.
        """
        containers, init_containers = self._naming.get(resource, ([], []))
        return counted(containers, init_containers, resource, _devices)

    @cached_property
    def _naming(self) -> Mapping[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
        """The containers and init containers that name each resource. Others have none of it: a pod may have hundreds,
        with a resource each."""
        found = defaultdict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]](lambda: ([], []))
        for at, containers in enumerate((self.containers, self.init_containers)):
            for container in containers:
                resources = container.get("resources") or {}
                for name in {name for part in ("requests", "limits") for name in resources.get(part) or ()}:
                    found[name][at].append(container)
        return dict(found)

    @cached_property
    def other_requests(self) -> dict[str, int]:
        """What the scheduler counts for the pod of resources that `host` does not have, without overhead: bytes of huge
        pages, numbers of extended resources. Amounts that cannot be read are left out."""
        found = {}
        for name in sorted(self._naming.keys() - {"cpu", "memory", EPHEMERAL_STORAGE}):
            with suppress(ValueError):
                found[name] = counted(*self._naming[name], name, parse_bytes)
        return found
