"""What the claims of pods ask for, read with the templates, claims and classes that they name."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Final

from plimsoll.cluster.claims.selected import may_be_gpus
from plimsoll.cluster.claims.work import LEAST_WORK, MOST_WORK, work
from plimsoll.model.cluster import Pod
from plimsoll.model.dra import (
    GPU_DRIVERS,
    ClaimedDevices,
    ClaimRequest,
    DeviceClass,
    PodClaim,
    ResourceClaim,
    ResourceClaimTemplate,
    Subrequest,
)
from plimsoll.model.meta import HostRequest

_NOTHING: Final = ClaimedDevices()
_HOST: Final = tuple(each.name for each in fields(HostRequest))
_MOST_WORK: Final = 2 * MOST_WORK
"""Microseconds for each kind of device of the different selectors in the claims of one namespace."""
_MOST_ASKED: Final = 64
"""Requests in the claims of a pod, each alternative (`firstAvailable`) counted: a claim may have 256 of them, and a pod
any number of claims."""
_Key = tuple[str, str]
"""(namespace, name)"""


class PodClaims:
    """Reads the claims of pods from one set of objects."""

    def __init__(
        self,
        classes: Iterable[DeviceClass],
        claims: Iterable[ResourceClaim],
        templates: Iterable[ResourceClaimTemplate],
        pods: Iterable[Pod],
    ) -> None:
        self._classes = {each.name: each for each in classes}
        self._claims = {each.key: each for each in claims}
        made = ((each, each.name_in_pod) for each in self._claims.values())
        self._made = {(each.made_for, name): each.request for each, name in made if name}
        """What those ask for that were made of templates, by the UID of their pod and the name in it."""
        self._templates = {each.key: each for each in templates}
        self._read: dict[ClaimRequest, ClaimedDevices] = {}
        """What was read already: most claims ask for the same."""
        self._selectors = defaultdict[str, set[str]](set)
        """Those that are evaluated, by namespace."""
        self._work = Counter[str]()
        """In microseconds; beyond _MOST_WORK it is at least that."""
        pods = tuple(pods)
        self._sharing: Mapping[_Key, list[Pod]] = _sharing(pods)
        self._on_nodes = {pod.key for pod in pods if pod.node_name and not pod.finished}

    def of(self, pod: Pod) -> ClaimedDevices:
        """What the pod's claims ask for; where it has a node, what they have."""
        own = [self._source(pod, named) for named in pod.resource_claims]
        in_queue = sum(each.request.gpus_in_queue for each in own if each is not None)
        if pod.node_name:
            held = sum(self._held(pod, each) for each in own)
            known = all(isinstance(each, ResourceClaim) and each.allocated and pod.name in each.pods for each in own)
            # Others may use a claim that the pod names itself, later too.
            settled = known and all(named.template for named in pod.resource_claims)
            return ClaimedDevices(held=held, in_queue=in_queue, settled=settled, unmet=0 if known else None)
        if (many := _too_many(own)) is not None:
            return replace(many, in_queue=in_queue, held=sum(self._held(pod, each) for each in own))
        found = [self._one(pod, named) for named in pod.resource_claims]
        requests = tuple(request for one in found for request in one.requests)
        problem = next((one for one in found if one.problem), _NOTHING)
        unmet = [one.unmet for one in found]
        return replace(
            problem,
            requests=requests,
            in_queue=in_queue,
            held=sum(each.held for each in found),
            to_create=tuple(self._to_create(pod)),
            unmet=None if None in unmet else sum(filter(None, unmet)),
        )

    def _held(self, pod: Pod, source: ResourceClaim | ResourceClaimTemplate | None) -> int:
        """GPUs that a pod has by a claim, which the scheduler allocates before the pod has a node; as many as the claim
        asks for while its devices are not seen."""
        if isinstance(source, ResourceClaim) and source.allocated:
            return sum(each.driver in GPU_DRIVERS for each in source.devices) if self._has(pod, source) else 0
        return source.request.gpus_in_queue if source is not None else 0

    def _has(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether the devices of a claim count for this one of its pods: the first by name of those on a node, as
        others may have ended; where none is on a node, the oldest."""
        on_nodes = [name for name in claim.pods if (pod.namespace, name) in self._on_nodes]
        if on_nodes or pod.node_name:
            return min(on_nodes, default=pod.name) == pod.name
        return self._first_of(claim, pod) is None

    def again(self, pod: Pod) -> ClaimedDevices:
        """What the pod's claims would ask for if it were created again elsewhere, without what it has now. A claim that
        other pods use, too, keeps its devices: that is a problem."""
        if (many := _too_many([self._source(pod, named) for named in pod.resource_claims])) is not None:
            return many
        found = [self._anew(pod, named) for named in pod.resource_claims]
        requests = tuple(request for one in found for request in one.requests)
        return replace(next((one for one in found if one.problem), _NOTHING), requests=requests)

    def _anew(self, pod: Pod, named: PodClaim) -> ClaimedDevices:
        if named.template:
            template = self._templates.get((pod.namespace, named.template))
            return (
                self._asked_once(template.request, pod.namespace) if template is not None else _no_template(pod, named)
            )
        claim = self._claims.get((pod.namespace, named.claim))
        if claim is None:
            return _no_claim(pod, named.claim)
        if {*claim.pods, *(other.name for other in self._users(claim))} - {pod.name}:
            return ClaimedDevices(
                problem=f"its ResourceClaim {claim.name} is used by other pods, too, and keeps its devices",
                hint="delete all pods that use it",
                requests=(claim.request,),
            )
        return self._asked_once(claim.request, pod.namespace)

    def _source(self, pod: Pod, named: PodClaim) -> ResourceClaim | ResourceClaimTemplate | None:
        """The ResourceClaim that the pod has by the name, else the template of it."""
        name = named.claim or pod.generated_claims.get(named.name, "")
        claim = self._claims.get((pod.namespace, name)) if name else None
        return claim or self._templates.get((pod.namespace, named.template))

    def _to_create(self, pod: Pod) -> Iterable[ClaimRequest]:
        for named in pod.resource_claims:
            generated = pod.generated_claims.get(named.name)  # empty where Kubernetes needs none
            source = self._source(pod, named) if named.template and generated != "" else None
            # A claim may be seen before the status of its pod names it. Tenants may write one that says so, too.
            if isinstance(source, ResourceClaimTemplate) and self._made.get((pod.uid, named.name)) != source.request:
                yield source.request

    def host(self, pod: Pod) -> HostRequest:
        """What the pod takes of its node, with the pods that wait for the same claims if it is the first of them: the
        others wait for that one."""
        shared = [self._sharing.get((pod.namespace, named.claim), ()) for named in pod.resource_claims if named.claim]
        if pod.node_name or any(users and users[0].key != pod.key for users in shared):
            return pod.host
        beside = {other.key: other for users in shared for other in users}
        beside.pop(pod.key, None)
        if not beside:
            return pod.host
        everyone = [pod.host, *(other.host for other in beside.values())]
        return HostRequest(**{name: sum(getattr(each, name) for each in everyone) for name in _HOST})

    def _one(self, pod: Pod, named: PodClaim) -> ClaimedDevices:
        name = named.claim or pod.generated_claims.get(named.name, "")
        source = self._source(pod, named)
        claim = source if isinstance(source, ResourceClaim) else None
        if claim is not None and claim.allocated:
            return ClaimedDevices(
                problem=f"its ResourceClaim {name} has devices already, and the pod can only run where these are",
                hint="make room on that node, or delete the claim",
                requests=(claim.request,),
                held=self._held(pod, claim),
            )
        if claim is None and not named.template:
            return _no_claim(pod, name)
        if claim is not None and (first := self._first_of(claim, pod)) is not None:
            return ClaimedDevices(
                problem=f"it shares the ResourceClaim {name} with Pod {first.name}, whose place is planned with room "
                "for both",
                hint="wait for that pod",
                requests=(claim.request,),
            )
        if source is None:
            return _no_template(pod, named)
        return self._asked_once(source.request, pod.namespace)

    def _asked_once(self, request: ClaimRequest, namespace: str) -> ClaimedDevices:
        request = self._evaluated(request, namespace)
        if request not in self._read:
            self._read[request] = self._asked(request)
        return self._read[request]

    def _evaluated(self, request: ClaimRequest, namespace: str) -> ClaimRequest:
        """The request, without its selectors and not planned where the namespace has too many."""
        known = self._selectors[namespace]
        new = {text for each in request.subrequests for text in each.selectors} - known
        if self._work[namespace] <= _MOST_WORK:
            # One that takes too long is not evaluated at all.
            self._work[namespace] += sum(each if each <= MOST_WORK else LEAST_WORK for each in map(work, new))
        if self._work[namespace] <= _MOST_WORK or not new:
            known |= new
            return request
        bare = tuple(
            replace(each, alternatives=tuple(replace(asked, selectors=()) for asked in each.alternatives))
            for each in request.requests
        )
        why = f"more different selectors in the claims of namespace {namespace!r} than are evaluated"
        return replace(request, requests=bare, not_planned=request.not_planned or why)

    def _asked(self, request: ClaimRequest) -> ClaimedDevices:
        missing = sorted({each.device_class for each in request.subrequests} - self._classes.keys())
        if missing:
            problem, hint = f"there is no DeviceClass {missing[0]!r}", "create it, or name another in the claim"
            return ClaimedDevices(problem=problem, hint=hint, unmet=_most_gpus(request))
        requests = tuple(
            replace(each, alternatives=tuple(map(self._with_class, each.alternatives))) for each in request.requests
        )
        found = ClaimedDevices((replace(request, requests=requests),), unmet=_most_gpus(ClaimRequest(requests)))
        if request.not_planned:
            return replace(found, problem=f"ClaimNotPlanned: {request.not_planned}", hint="ask without it")
        return found

    def _with_class(self, asked: Subrequest) -> Subrequest:
        return replace(asked, selectors=(*self._classes[asked.device_class].selectors, *asked.selectors))

    def _users(self, claim: ResourceClaim) -> list[Pod]:
        return self._sharing.get(claim.key, [])

    def _first_of(self, claim: ResourceClaim, pod: Pod) -> Pod | None:
        """The pod that asks for the devices of a claim that several use; None if it is this one."""
        first = next(iter(self._users(claim)), pod)
        return None if first.key == pod.key else first


def _too_many(sources: Iterable[ResourceClaim | ResourceClaimTemplate | None]) -> ClaimedDevices | None:
    """What a pod asks for whose claims have more requests than are planned; None if they have not."""
    asked = [each.request for each in sources if each is not None]
    number = sum(len(request.alternatives) for each in asked for request in each.requests)
    if number <= _MOST_ASKED:
        return None
    first = next((each for one in asked for each in one.requests if may_be_gpus(each)), asked[0].requests[0])
    return ClaimedDevices(
        (ClaimRequest((first,)),),
        problem=f"ClaimNotPlanned: {number} requests and alternatives in the claims of one pod, of which at most "
        f"{_MOST_ASKED} are read",
        hint="ask for several devices in one request (count)",
        unmet=None,
    )


def _most_gpus(request: ClaimRequest) -> int | None:
    """The most GPUs that the claim may get; None: as many as a node has."""
    most = 0
    for each in filter(may_be_gpus, request.requests):
        counts = [alternative.count for alternative in each.alternatives]
        if not all(counts):
            return None
        most += max(counts, default=0)
    return most


def _no_claim(pod: Pod, name: str) -> ClaimedDevices:
    return ClaimedDevices(
        problem=f"spec.resourceClaims: there is no ResourceClaim {name!r} in namespace {pod.namespace!r}",
        hint="create it, or name another",
        unmet=None,
    )


def _no_template(pod: Pod, named: PodClaim) -> ClaimedDevices:
    return ClaimedDevices(
        problem=f"spec.resourceClaims: there is no ResourceClaimTemplate {named.template!r} in namespace "
        f"{pod.namespace!r}",
        hint="create it, or name another",
        unmet=None,
    )


def _sharing(pods: Iterable[Pod]) -> dict[_Key, list[Pod]]:
    """The pods that name a ResourceClaim and are on no node, oldest first, by the claim."""
    found = defaultdict[_Key, list[Pod]](list)
    for pod in pods:
        if pod.resource_claims and not pod.node_name and not pod.finished and not pod.deleting:
            for named in pod.resource_claims:
                if named.claim:
                    found[pod.namespace, named.claim].append(pod)
    for users in found.values():
        users.sort(key=lambda pod: (pod.creation_timestamp, pod.name))
    return dict(found)
