"""Changes of what pods claim: the objects that they name, and the devices that these ask for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from plimsoll.cluster.claims import PodClaims
from plimsoll.explaining.change import Change, Touches, with_changed
from plimsoll.model import Snapshot
from plimsoll.model.cluster import Pod
from plimsoll.model.dra import ClaimRequest, PodClaim, ResourceClaim, ResourceClaimTemplate, Subrequest
from plimsoll.text import nearest

Source = ResourceClaim | ResourceClaimTemplate
_CLASSES: Final = 8
"""DeviceClasses and templates that are tried in one place."""


def claim_changes(snapshot: Snapshot, pod: Pod, of_pods: Callable[..., Change]) -> Iterator[Change]:
    """Other templates where the pod names one that does not exist, else less of what its claims ask for, or other
    devices. `of_pods` makes a change of the pod and those like it, of field, value before, values and update."""
    templates = {each.key: each for each in snapshot.resource_claim_templates}
    claims = {each.key: each for each in snapshot.resource_claims}
    for named in pod.resource_claims:
        claim = claims.get((pod.namespace, named.claim or pod.generated_claims.get(named.name, "")))
        source: Source | None = templates.get((pod.namespace, named.template)) if named.template else claim
        if source is not None:
            yield from _of_source(snapshot, source)
        elif named.template:
            known = [each.name for each in snapshot.resource_claim_templates if each.namespace == pod.namespace]
            for name in _near(named.template, known):
                field = f"spec.resourceClaims[{named.name}].resourceClaimTemplateName"
                yield of_pods(field, named.template, [name], partial(_naming, _reader(snapshot), named))


def _near(name: str, known: Sequence[str]) -> list[str]:
    others = sorted(set(known) - {name})
    return list(dict.fromkeys([*nearest(name, others), *others]))[:_CLASSES]


def _of_source(snapshot: Snapshot, source: Source) -> Iterator[Change]:
    kind = "ResourceClaimTemplate" if isinstance(source, ResourceClaimTemplate) else "ResourceClaim"
    path = "spec.spec" if isinstance(source, ResourceClaimTemplate) else "spec"
    classes = [each.name for each in snapshot.device_classes]
    for number, request in enumerate(source.request.requests):
        for place, asked in enumerate(request.alternatives):

            def change(
                field: str, before: str, values: Sequence[Any], at: tuple[int, int, str], where: str = request.name
            ) -> Change:
                return Change(
                    f"{kind} {source.namespace}/{source.name}", f"{path}.devices.requests[{where}].{field}", before,
                    values, partial(_asking, source, at), Touches.WORKLOAD,
                    lambda value: "" if isinstance(value, tuple) else str(value),
                )  # fmt: skip

            for name in _near(asked.device_class, classes):
                yield change("deviceClassName", asked.device_class, [name], (number, place, "device_class"))
            if asked.count > 1:
                fewer = range(asked.count - 1, 0, -1)
                yield change("count", str(asked.count), fewer, (number, place, "count"))
            if asked.selectors:
                yield change("selectors", " && ".join(asked.selectors), [()], (number, place, "selectors"))
            if asked.capacity:
                least = ", ".join(f"{name}: {amount}" for name, amount in asked.capacity)
                yield change("capacity", least, [()], (number, place, "capacity"))


def _asking(source: Source, at: tuple[int, int, str], snapshot: Snapshot, value: Any) -> Snapshot:
    """With another claim or template, and the pods that wait as they are read with it."""
    number, place, field = at

    def change(each: Source) -> Source:
        requests = list(each.request.requests)
        ways: list[Subrequest] = list(requests[number].alternatives)
        ways[place] = replace(ways[place], **{field: value})
        requests[number] = replace(requests[number], alternatives=tuple(ways))
        request: ClaimRequest = replace(each.request, requests=tuple(requests))
        return each.model_copy(update={"request": request})

    kind = "resource_claim_templates" if isinstance(source, ResourceClaimTemplate) else "resource_claims"
    changed = with_changed(snapshot, kind, source, change)
    reader = _reader(changed)
    pods = tuple(
        each.model_copy(update={"claimed": reader.of(each)})
        if each.resource_claims and not each.node_name and each.namespace == source.namespace
        else each
        for each in snapshot.pods
    )
    return changed.model_copy(update={"pods": pods})


def _naming(reader: PodClaims, named: PodClaim, pod: Pod, template: str) -> dict[str, Any]:
    claims = tuple(each._replace(template=template) if each == named else each for each in pod.resource_claims)
    return {"resource_claims": claims, "claimed": reader.of(pod.model_copy(update={"resource_claims": claims}))}


def _reader(snapshot: Snapshot) -> PodClaims:
    claiming = [each for each in snapshot.pods if each.resource_claims]
    return PodClaims(snapshot.device_classes, snapshot.resource_claims, snapshot.resource_claim_templates, claiming)
