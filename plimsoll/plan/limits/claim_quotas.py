"""What ResourceQuotas leave of claims: their number, and devices by DeviceClass and by extended resources of classes.

Claims count as the apiserver counts them when they are created (`pkg/quota/v1/evaluator/core/resource_claims.go` of
Kubernetes): one beyond a quota is never created, and its pod never runs. All that exist are counted, with devices or
without; `status.used` may still have one that is gone. Quotas with scopes bound no claims.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from plimsoll.labels import DEVICE_CLASS_PREFIX
from plimsoll.model import Snapshot
from plimsoll.model.cluster import CLAIMS, CLASS_DEVICES, Pod, ResourceQuota, amounts_of_claim
from plimsoll.model.dra import ClaimRequest, DeviceClass
from plimsoll.quantity import parse_quantity

_REQUESTS: Final = "requests."


class ClaimQuotas:
    """What the claims of each namespace use of its quotas, and may use."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._resources = {each.name: each.extended_resource for each in snapshot.device_classes}
        self._limits: dict[str, list[tuple[str, str, int]]] = {}
        """(name of the quota, key, what it allows), by namespace."""
        for quota in sorted(snapshot.resource_quotas, key=lambda each: each.key):
            limits = [(quota.name, key, _number(quota.hard[key])) for key in claim_keys(quota, snapshot.device_classes)]
            if limits:
                self._limits.setdefault(quota.namespace, []).extend(limits)
        self._used = Counter(self._counted(snapshot)) if self._limits else Counter[tuple[str, str]]()
        """By namespace and key."""

    @property
    def bounded(self) -> bool:
        """Whether claims are limited in any namespace."""
        return bool(self._limits)

    def copy(self) -> "ClaimQuotas":
        found = object.__new__(ClaimQuotas)
        found._resources, found._limits, found._used = self._resources, self._limits, self._used.copy()
        return found

    def short(self, namespace: str, more: Iterable[ClaimRequest]) -> str:
        """Why the namespace may not have these claims more; empty if it may."""
        if namespace not in self._limits:
            return ""
        asked = self._of_all(more)
        for quota, key, most in self._limits[namespace]:
            used = self._used[namespace, key]
            if asked[key] and used + asked[key] > most:
                return (
                    f"ResourceQuota {quota} of namespace {namespace!r} allows {most} of {key}, {used} are in use by "
                    f"claims, and {asked[key]} more are requested by claims of templates"
                )
        return ""

    def subtract(self, namespace: str, more: Iterable[ClaimRequest]) -> None:
        """Counts these claims as if they existed."""
        if namespace in self._limits:
            for key, amount in self._of_all(more).items():
                self._used[namespace, key] += amount

    def _of_all(self, requests: Iterable[ClaimRequest]) -> Counter[str]:
        found = Counter[str]()
        for each in requests:
            found.update(self._of(each))
        return found

    def _of(self, request: ClaimRequest) -> dict[str, int]:
        """What one claim counts, by the keys of quotas."""
        found = amounts_of_claim(request.in_quotas)
        for name, devices in request.in_quotas.items():
            if resource := self._resources.get(name):
                # Of several classes with one extended resource, the apiserver counts any of them.
                key = f"{_REQUESTS}{resource}"
                found[key] = max(found.get(key, 0), devices)
        return found

    def _counted(self, snapshot: Snapshot) -> dict[tuple[str, str], int]:
        found = Counter[tuple[str, str]]()
        requesting: dict[str, Mapping[str, int]] = {}
        keys = {name: {key for _, key, _ in limits} for name, limits in self._limits.items()}
        for pod in snapshot.pods:
            requests = dict(_requested(pod, keys[pod.namespace])) if pod.namespace in keys else {}
            if requests:
                requesting[pod.uid] = requests
                found.update({(pod.namespace, key): amount for key, amount in requests.items()})
        for claim in snapshot.resource_claims:
            if claim.namespace in keys:
                # What the pod requests counts already.
                of_pod = requesting.get(claim.made_for, {}) if claim.for_extended_resources else {}
                for key, amount in self._of(claim.request).items():
                    found[claim.namespace, key] += max(0, amount - of_pod.get(key, 0))
        return found


def claim_keys(quota: ResourceQuota, classes: Iterable[DeviceClass]) -> list[str]:
    """The keys of a ResourceQuota that count claims, sorted."""
    if quota.told_scopes:
        return []
    names = {CLAIMS, *(f"{_REQUESTS}{each.extended_resource}" for each in classes if each.extended_resource)}
    names |= {f"{_REQUESTS}{DEVICE_CLASS_PREFIX}{each.name}" for each in classes}
    return sorted(key for key in quota.hard if key in names or key.endswith(CLASS_DEVICES))


def _requested(pod: Pod, keys: Iterable[str]) -> Iterator[tuple[str, int]]:
    """What the extended resources of a pod count."""
    if pod.finished or not (resources := pod.extended_resources):
        return
    for resource in resources:
        if (key := f"{_REQUESTS}{resource}") in keys:
            with suppress(ValueError):
                yield key, pod.devices(resource)


def _number(amount: str | float) -> int:
    """A number that cannot be read allows none."""
    try:
        return max(0, int(parse_quantity(amount)))
    except ValueError:
        return 0
