"""Which devices meet what claims ask for, and how many of a node a pod takes."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, product
from typing import Final, NamedTuple

from plimsoll.cluster.claims.counters import together
from plimsoll.cluster.claims.expression import NotEvaluatedError, SelectorError, selects
from plimsoll.cluster.claims.parts import part_of
from plimsoll.labels import DEVICE_CLASS_PREFIX
from plimsoll.model.dra import (
    GPU_DRIVERS,
    Claimable,
    ClaimRequest,
    DeviceClass,
    DevicePart,
    DeviceRequest,
    Subrequest,
    qualified,
)
from plimsoll.packing import GPU_MILLI, UNBOUNDED, Milli, exact_milli
from plimsoll.quantity import parse_quantity

_PARENT: Final = frozenset({"gpu.nvidia.com/parentUUID"})
"""Attributes by which parts of a device say of which one they are."""
_MOST_PARTS: Final = 8
"""Different parts of a device for one claim: all ways to place them are tried."""
_MOST_WAYS: Final = 64
"""Combinations of alternatives of one pod that are compared."""


class Selection(NamedTuple):
    """How many of a node's devices a pod takes, all of which are alike."""

    number: int = 0
    """0: it cannot run there."""
    milli: Milli = GPU_MILLI
    """Thousandths that it takes of each; below 1000 of devices that claims share."""
    why: str = ""
    """Why not, for messages: what selects the devices, or an error of it."""
    not_planned: str = ""
    """What the claims ask for that is not planned, so that it is not known; empty: it is."""
    order: int = 0
    """How far down the alternatives of the claims (`firstAvailable`) it is, as the scheduler counts that: 0 for the
    first of each request, and one more for each that comes before."""
    ends: bool = False
    """Whether a selector ends in an error on it, with which the scheduler ends its attempt to place the pod at all."""


@lru_cache(maxsize=65_536)
def selection(claims: tuple[ClaimRequest, ...], device: Claimable, on_node: int) -> Selection:
    """What the claims of a pod take of a node that has `on_node` such devices, and no others.

    Of alternatives, the scheduler takes the first for which enough of a node are free, so all that the devices meet
    have to take the same number.
    """
    if device.special:
        return Selection(not_planned=f"devices with {device.special}")
    limits = [_limit(claim, device) for claim in claims]
    if not_planned := next((each.not_planned for each in limits if each.not_planned), ""):
        if all(each.count for claim in claims for each in claim.subrequests):
            return Selection(not_planned=not_planned)
        # The scheduler ends where one of all devices may not be had beside the others.
        return Selection(why=f"ClaimNotPlanned: {not_planned}", ends=True)
    requests = list(chain.from_iterable(claim.requests for claim in claims))
    ways = [list(_met(request.alternatives, device)) for request in requests]
    if refused := _refused([[answer for _, answer in answers] for answers in ways]):
        return refused
    able = [
        [(order, alternative) for order, (alternative, answer) in enumerate(answers) if answer.number]
        for answers in ways
    ]
    found = [_taken(claims, limits, chosen, device, on_node)._replace(order=order) for order, chosen in _ways(able)]
    first = next((taken for taken in found if taken.number or taken.ends or taken.not_planned), found[0])
    if not first.number:
        return first
    if others := next((taken.not_planned for taken in found if taken.not_planned), ""):
        return Selection(not_planned=others)
    if len({(taken.number, taken.milli) for taken in found if taken.number}) > 1:
        return Selection(not_planned="firstAvailable with different numbers of the same devices, or parts of them")
    return first


@lru_cache(maxsize=65_536)
def may_be_gpus(request: DeviceRequest) -> bool:
    """Whether it may ask for GPUs: selectors do not exclude the drivers that publish them."""
    return any(_may_be(each, driver) for each in request.alternatives for driver in GPU_DRIVERS)


def may_serve_gpus(resource: str, classes: Iterable[DeviceClass]) -> bool:
    """Whether an extended resource may stand for GPUs of a DeviceClass; of one that is not there, it may."""
    named = [each for each in classes if resource in (f"{DEVICE_CLASS_PREFIX}{each.name}", each.extended_resource)]
    asked = (DeviceRequest("", (Subrequest(each.name, each.selectors),)) for each in named)
    return any(map(may_be_gpus, asked)) if named else resource.startswith(DEVICE_CLASS_PREFIX)


def _may_be(asked: Subrequest, driver: str) -> bool:
    """Whether the selectors do not exclude a device of which only the driver is known."""
    device = Claimable(driver)
    for expression in asked.selectors:
        try:
            if not selects(expression, device):
                return False
        except (SelectorError, NotEvaluatedError):
            return True
    return True


class _Limit(NamedTuple):
    """What constraints leave of such devices to a claim."""

    most: int = UNBOUNDED
    alike: bool = False
    """Whether more devices than that are not alike; else, they are not different."""
    why: str = ""
    not_planned: str = ""
    groups: tuple[tuple[str, bool, tuple[int, ...]], ...] = ()
    """The constraints whose values only some devices share: as text, whether these match, and the sizes of the
    groups."""
    of_one: bool = False
    """Whether all devices of the claim are parts of one."""
    bare: bool = True
    """Whether there are no other constraints than that, and of what all parts have alike."""

    def not_packed(self, number: int, claims: int) -> str:
        """Why it is not known how many pods with that many claims a node meets, of which this one takes `number`
        devices; empty if it is as many as devices suffice for."""
        if number == 1 or not self.groups:
            return ""
        constraint, matches, sizes = self.groups[0]
        if len(self.groups) > 1:
            return f"{constraint} beside {self.groups[1][0]}"
        if claims > 1:
            return f"{constraint} beside other claims"
        if matches:
            packed = sum(size // number for size in sizes) == sum(sizes) // number
        else:
            packed = number == len(sizes) and sizes[0] == sizes[-1]
        return "" if packed else f"{constraint} of {number} of groups of {', '.join(map(str, sizes))}"


def _limit(claim: ClaimRequest, device: Claimable) -> _Limit:
    """What the constraints of a claim leave of such devices."""
    of_kinds = [{attribute.name for attribute in kind.attributes} for kind, _ in _kinds(device)]
    same, groups = of_kinds[0].intersection(*of_kinds), dict(device.groups)
    parents = {name for name in claim.match if device.parts and qualified(name, device.driver) in _PARENT}
    bare = not claim.distinct and all(name in parents or qualified(name, device.driver) in same for name in claim.match)
    found, several = _Limit(of_one=bool(parents), bare=bare), []
    for constraint, names in (("matchAttribute", claim.match), ("distinctAttribute", claim.distinct)):
        matches = constraint == "matchAttribute"
        for name in (name for name in names if name not in parents or not matches):
            known = qualified(name, device.driver)
            sizes = groups.get(known, ())
            if len(sizes) > 1:
                several.append((f"{constraint} {name}", matches, sizes))
                most, values = (max(sizes), "have the same") if matches else (len(sizes), "have another")
            elif known in same or known in groups:
                most, values = (UNBOUNDED if matches else 1), "is the same"
            elif known in device.distinct:
                most, values = (1 if matches else UNBOUNDED), "is another one"
            else:
                why = f"{constraint} {name}, which is not known to be alike or distinct on them"
                return _Limit(not_planned=why)
            if most < found.most:
                of = f"at most {most} {values}" if len(sizes) > 1 else f"it {values} on each device"
                found = found._replace(most=most, alike=matches, why=f"{constraint} {name}: {of}")
    return found._replace(groups=tuple(several))


def _refused(ways: Sequence[Sequence[Selection]]) -> Selection | None:
    """Why the device meets no alternative of a request; None if it meets one of each. `ways` are the answers to the
    alternatives of each request."""
    for answers in ways:
        first = next((answer for answer in answers if answer.number or answer.ends), None)
        if first is not None and first.ends:
            return first
    if late := next((answer.why for answers in ways for answer in answers if answer.ends), ""):
        # The scheduler comes to it, and ends, while too few devices are free for the alternatives before.
        return Selection(why=f"ClaimNotPlanned: firstAvailable after which comes: {late}", ends=True)
    for answers in ways:
        if not any(answer.number for answer in answers):
            return next((answer for answer in answers if answer.not_planned), answers[0])
    return None


def _met(alternatives: Sequence[Subrequest], device: Claimable) -> Iterable[tuple[Subrequest, Selection]]:
    return ((alternative, _answer(alternative, device)) for alternative in alternatives)


@lru_cache(maxsize=65_536)
def _answer(asked: Subrequest, device: Claimable) -> Selection:
    """Whether a device meets a request: a selection of one, or why not."""
    if device.parts:
        return _of_parts(asked, device)
    for expression in asked.selectors:
        try:
            if not selects(expression, device):
                return Selection(why=f"selector {_short(expression)}")
        except SelectorError as error:
            return Selection(why=f"{error} (selector {_short(expression)})", ends=True)
        except NotEvaluatedError as error:
            return Selection(not_planned=str(error))
    if device.shared:
        part = part_of(device, asked.capacity)
        return Selection(int(part.milli > 0), part.milli, part.why, part.not_planned)
    amounts = dict(device.capacity)
    for name, least in asked.capacity:
        there = amounts.get(qualified(name, device.driver))
        if there is None or parse_quantity(there) < parse_quantity(least):
            return Selection(why=f"capacity {name} of {least}")
    return Selection(1)


def _of_parts(asked: Subrequest, device: Claimable) -> Selection:
    """Which one of a divided device and its parts meets a request: as much of the device as one of these is, if all of
    it were divided in such."""
    kinds = _kinds(device)
    answers = [_answer(asked, kind) for kind, _ in kinds]
    met = _met_kinds(asked, device)
    unknown = next((answer for answer in answers if answer.ends or answer.not_planned), None)
    if unknown is not None and not met:
        return unknown
    if unknown is not None:
        return Selection(not_planned=unknown.not_planned or "a selector that ends in an error on some parts of devices")
    if not met:
        return Selection(why="; ".join(dict.fromkeys(answer.why for answer in answers)))
    if len(met) > 1:
        return Selection(not_planned="requests that several kinds of parts of a device meet")
    return Selection(1, exact_milli(1, met[0].number))


def _kinds(device: Claimable) -> tuple[DevicePart, ...]:
    """A divided device and its parts."""
    return DevicePart(replace(device, parts=()), 1), *device.parts


def _met_kinds(asked: Subrequest, device: Claimable) -> list[DevicePart]:
    return [kind for kind in _kinds(device) if _answer(asked, kind.device).number]


def _ways(able: Sequence[Sequence[tuple[int, Subrequest]]]) -> Iterable[tuple[int, tuple[Subrequest, ...]]]:
    """The combinations of alternatives, first those that the scheduler tries first, with how far down they are."""
    for way in islice(product(*able), _MOST_WAYS):
        yield sum(order for order, _ in way), tuple(alternative for _, alternative in way)


def _taken(
    claims: Sequence[ClaimRequest],
    limits: Sequence[_Limit],
    chosen: Sequence[Subrequest],
    device: Claimable,
    on_node: int,
) -> Selection:
    """What these alternatives of all claims take together.

    Each request has parts of different devices, and two requests may have parts of the same.
    """
    rest, everything = iter(chosen), any(not each.count for each in chosen)
    milli = min((_answer(each, device).milli for each in chosen), default=GPU_MILLI)
    of_same = device.shared and milli < GPU_MILLI
    for claim, limit in zip(claims, limits, strict=True):
        numbers = [each.count or on_node for each in islice(rest, len(claim.requests))]
        number = max(numbers) if of_same and limit.alike else sum(numbers)
        if number > limit.most:  # the scheduler takes it for an error that all devices cannot be had
            return Selection(why=limit.why, ends=everything)
        if not_packed := limit.not_packed(number, len(claims)):
            return Selection(not_planned=not_packed)
    if (device.shared or device.parts) and everything:
        return Selection(not_planned="all of the devices that claims share")
    number = sum(each.count or on_node for each in chosen)
    if device.parts:
        return _parts_taken(limits, chosen, device, number, on_node)
    if milli < GPU_MILLI and len(chosen) > 1:
        return Selection(not_planned="several requests for parts of devices")
    if number > 1 and milli * 2 <= GPU_MILLI:
        # The scheduler takes the first devices, and may leave too few with room for the parts of another pod.
        return Selection(not_planned="parts of several devices, of at most a half each")
    if number > on_node:
        return Selection(why=f"more than the {on_node} of a node")
    return Selection(number, milli)


def _parts_taken(
    limits: Sequence[_Limit], chosen: Sequence[Subrequest], device: Claimable, number: int, on_node: int
) -> Selection:
    """What `number` devices are together that are the whole of a divided device, or parts of it.

    Parts that may be of several devices count as if each were of one, which has to be as many.
    """
    of_each = [_met_kinds(each, device)[0] for each in chosen]
    kinds = list(dict.fromkeys(of_each))
    most, of_one = max(kind.number for kind in kinds), any(limit.of_one for limit in limits)
    if len(kinds) > 1 and of_one and len(limits) == 1 and limits[0].bare and _kinds(device)[0] not in kinds:
        every = [kind for kind, each in zip(of_each, chosen, strict=True) for _ in range(each.count)]
        return _different(every, device)
    if len(kinds) > 1 and (most > 1 or of_one):
        return Selection(not_planned="different parts of a device for one pod")
    if most > 1 and not all(limit.bare for limit in limits):
        return Selection(not_planned="constraints of parts of devices")
    if of_one and len(limits) > 1:
        return Selection(not_planned="parts of one device beside other claims")
    if of_one and kinds[0].device == _kinds(device)[0].device:
        return Selection(why="matchAttribute of what parts of a device have")
    if of_one and number > most:
        return Selection(why=f"more than the {most} that one device has")
    if number > on_node * most:
        return Selection(why=f"more than the {on_node * most} of a node")
    if not of_one and (number % most if number > most else on_node * (most // number) != on_node * most // number):
        return Selection(not_planned=f"{number} parts that may be of several devices, which have {most} each")
    return Selection(1, exact_milli(number, most)) if number < most else Selection(number // most)


def _different(kinds: Sequence[DevicePart], device: Claimable) -> Selection:
    """What a claim for different parts of one device takes of it."""
    if device.placements is None:
        return Selection(not_planned="different parts of a device whose placements are not known")
    if len(kinds) > _MOST_PARTS:
        return Selection(not_planned=f"more than {_MOST_PARTS} different parts of a device")
    number = together(device.placements, tuple(map(device.parts.index, kinds)))
    return Selection(1, exact_milli(1, number)) if number else Selection(why="parts that one device has not together")


def _short(expression: str) -> str:
    words = " ".join(expression.split())
    return repr(words if len(words) <= 80 else f"{words[:80]}…")
