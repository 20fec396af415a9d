"""ResourceClaim: devices that pods ask for, and those that they got (`resource.k8s.io/v1`)."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BeforeValidator, Field
from pydantic.aliases import AliasPath

from plimsoll.model.dra.attribute import read_capacity
from plimsoll.model.dra.claim_request import ClaimRequest, read_claim
from plimsoll.model.meta import ObservedObject


class PodClaim(NamedTuple):
    """A claim that a pod names: a ResourceClaim, or a template of which the pod gets its own."""

    name: str
    """Within the pod."""
    claim: str = ""
    """Name of the ResourceClaim; empty while there is none."""
    template: str = ""
    """Name of the ResourceClaimTemplate; empty where the pod names the claim itself."""


class Allocated(NamedTuple):
    """A device that a claim has for itself, or a part of one."""

    driver: str
    pool: str
    device: str
    consumed: tuple[tuple[str, str], ...] | None = None
    """(name with its domain, quantity) that it has of the device, sorted; None: all of it."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.driver, self.pool, self.device


def _results(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return tuple(
        Allocated(str(each.get("driver")), str(each.get("pool")), str(each.get("device")), _consumed(each))
        for each in given
        if isinstance(each, Mapping) and not each.get("adminAccess")
    )


def _consumed(result: Mapping[str, Any]) -> tuple[tuple[str, str], ...] | None:
    if not result.get("shareID"):
        return None
    return read_capacity(result.get("consumedCapacity") or {}, str(result.get("driver")))


def _request(given: Any) -> Any:
    return read_claim(given) if isinstance(given, Mapping) else given


def _present(given: Any) -> Any:
    return given is not None and given is not False


def _users(given: Any) -> Any:
    if not isinstance(given, list):
        return given
    return tuple(sorted(str(each.get("name")) for each in given if each.get("resource") == "pods"))


def _pod(owners: Any) -> Any:
    if not isinstance(owners, list):
        return owners
    pods = (each for each in owners if isinstance(each, Mapping) and each.get("controller"))
    return next((str(each.get("uid") or "") for each in pods if each.get("kind") == "Pod"), "")


_POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
_FOR_EXTENDED: Final = "resource.kubernetes.io/extended-resource-claim"


class ResourceClaim(ObservedObject):
    request: Annotated[ClaimRequest, BeforeValidator(_request)] = Field(
        default=ClaimRequest(), validation_alias=AliasPath("spec")
    )
    allocated: Annotated[bool, BeforeValidator(_present)] = Field(
        default=False, validation_alias=AliasPath("status", "allocation")
    )
    devices: Annotated[tuple[Allocated, ...], BeforeValidator(_results)] = Field(
        default=(), validation_alias=AliasPath("status", "allocation", "devices", "results")
    )
    """Those that it has; without those that it only administers (`adminAccess`), which stay free."""
    pods: Annotated[tuple[str, ...], BeforeValidator(_users)] = Field(
        default=(), validation_alias=AliasPath("status", "reservedFor")
    )
    """Names of the pods that use it, which are of its namespace."""
    made_for: Annotated[str, BeforeValidator(_pod)] = Field(
        default="", validation_alias=AliasPath("metadata", "ownerReferences")
    )
    """UID of the pod for which Kubernetes made it; empty: none."""

    @property
    def name_in_pod(self) -> str:
        """The name of the claim within the pod for which it was made of a template; empty: it was not."""
        return self.annotations.get(_POD_CLAIM, "") if self.made_for else ""

    @property
    def for_extended_resources(self) -> bool:
        """Whether the scheduler made it for extended resources that its pod requests."""
        return bool(self.made_for) and self.annotations.get(_FOR_EXTENDED) == "true"


class ResourceClaimTemplate(ObservedObject):
    request: Annotated[ClaimRequest, BeforeValidator(_request)] = Field(
        default=ClaimRequest(), validation_alias=AliasPath("spec", "spec")
    )
