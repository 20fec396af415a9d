"""A pod of a Workspace as the admission of the cluster counts it, so that no node is bought for pods that a
ResourceQuota of their namespace would refuse.

The rules are those of pkg/quota/v1/evaluator/core of Kubernetes. What a webhook or a RuntimeClass adds is not known.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from plimsoll.model import Serving
from plimsoll.model.api import Environment, Workspace
from plimsoll.model.cluster import ResourceQuota, amounts_of_claim, part_of_pods
from plimsoll.model.meta import counted, dig, objects_of, section
from plimsoll.plan.workspaces.pod_fields import declared_pods
from plimsoll.plan.workspaces.workload import devices_of_pod, request_gpus
from plimsoll.presets import ModelCatalog
from plimsoll.quantity import parse_quantity

NATIVE: Final = ("cpu", "memory")
"""A quota of one of these refuses pods with a container that does not say how much it takes."""
_NANO: Final = 10**9
"""Nothing is smaller than a part of that many."""
_LISTS: Final = ("containers", "initContainers")
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


class AdmittedPod(NamedTuple):
    """One pod, with the defaults that the apiserver sets."""

    where: str
    """The beginning of a message that says what declares it."""
    spec: Mapping[str, Any]
    apart: bool
    """Whether Plimsoll keeps it apart from pods of all namespaces."""
    claimed: Mapping[str, int] = MappingProxyType({})
    """What the claim that comes with it counts, by keys of `hard`; quotas with scopes count none."""

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        models: ModelCatalog,
        environment: Environment,
        *,
        serving: Serving | None,
        devices: int | None,
        resource: str,
    ) -> "AdmittedPod | None":
        """None of a Workspace without inference. `devices` are those of a node, `resource` is theirs, empty: that of
        the Environment."""
        where, template = declared_pods(workspace, serving, models, environment)
        if not template:
            return None
        spec = dict(section(template, "spec"))
        for part in _LISTS:
            spec[part] = [_defaulted(each) for each in objects_of(spec.get(part))]
        asked, claimed = devices_of_pod(devices, serving), dict[str, int]()
        if not workspace.spec.resource.claims:
            request_gpus(spec["containers"], resource or environment.spec.gpu_resource, asked)
        elif asked:
            claimed = amounts_of_claim({resource: asked})
        return cls(where, spec, workspace.spec.resource.partition is None, claimed)

    def amount(self, key: str) -> Decimal:
        """What it takes of a key of `hard` that `part_of_pods` knows."""
        part, resource = part_of_pods(key) or ("", "")
        if not part:
            return Decimal(1)
        of_pod = dig(self.spec, f"resources.{part}") or {}
        if resource in NATIVE and resource in of_pod:
            return parse_quantity(of_pod[resource])
        parts = (self._only(part, each) for each in _LISTS)
        containers, init_containers = parts
        return Decimal(counted(containers, init_containers, resource, _nano)) / _NANO

    def unsaid(self, quota: ResourceQuota) -> Iterator[str]:
        """The fields without which a quota of CPU or memory refuses it."""
        if section(self.spec, "resources"):
            return
        wanted = dict.fromkeys(pair for key in quota.hard if (pair := part_of_pods(key)) and pair[1] in NATIVE)
        for part, resource in wanted:
            for field, container in self._containers():
                if resource not in section(container, "resources", part):
                    yield f"spec.{field}.resources.{part}.{resource}"

    def counts_in(self, quota: ResourceQuota) -> bool | None:
        """Whether it is in the scopes of the quota; None where only the cluster knows, as of a default priority."""
        found = [self._in_scope(*each) for each in quota.told_terms]
        return False if False in found else None if None in found else True

    def _in_scope(self, scope: str, operator: str, values: tuple[str, ...]) -> bool | None:
        if scope in ("Terminating", "NotTerminating"):
            # The pods of a workload cannot have a deadline.
            return scope == "NotTerminating"
        if scope in ("BestEffort", "NotBestEffort"):
            return self._best_effort() == (scope == "BestEffort")
        if scope == "CrossNamespacePodAffinity":
            return self.apart or self._looks_into_others()
        name = self.spec.get("priorityClassName")
        if scope != "PriorityClass" or not name:
            return None
        by_operator = {"Exists": True, "DoesNotExist": False, "In": name in values, "NotIn": name not in values}
        return by_operator.get(operator)

    def _best_effort(self) -> bool:
        holders = [self.spec, *(container for _, container in self._containers())]
        amounts = (
            parse_quantity(given[resource])
            for each in holders
            for part in ("requests", "limits")
            for resource in NATIVE
            if resource in (given := section(each, "resources", part))
        )
        return not any(amounts)

    def _looks_into_others(self) -> bool:
        for kind in _AFFINITIES:
            terms = objects_of(dig(self.spec, f"affinity.{kind}.{_REQUIRED}"))
            preferred = objects_of(dig(self.spec, f"affinity.{kind}.{_PREFERRED}"))
            for each in (*terms, *(section(term, "podAffinityTerm") for term in preferred)):
                if each.get("namespaces") or each.get("namespaceSelector") is not None:
                    return True
        return False

    def _containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for part in _LISTS:
            for number, each in enumerate(self.spec[part]):
                yield f"{part}[{number}]", each

    def _only(self, part: str, containers: str) -> list[dict[str, Any]]:
        return [
            {"restartPolicy": each.get("restartPolicy"), "resources": {"requests": section(each, "resources", part)}}
            for each in self.spec[containers]
        ]


def _nano(amount: str | int | float) -> int:
    return int((parse_quantity(amount) * _NANO).to_integral_value(ROUND_CEILING))


def _defaulted(container: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with the requests that the apiserver takes from the limits."""
    limits, requests = (
        {name: amount for name, amount in section(container, "resources", part).items() if amount is not None}
        for part in ("limits", "requests")
    )
    resources = {**section(container, "resources"), "requests": {**limits, **requests}, "limits": limits}
    return {**container, "resources": resources}
