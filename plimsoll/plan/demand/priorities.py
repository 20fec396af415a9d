"""The order in which pods get capacity if limits leave room for only some of them: highest priority first, then
oldest."""

from collections.abc import Callable, Mapping, Sequence

from plimsoll.packing.nodes import PodNeed, Unit
from plimsoll.plan.classes import Gang, in_order
from plimsoll.plan.demand.class_plan import ClassPlan

Order = Callable[[str], tuple[int, str, str]]
"""Sort key of a pod by its UID; the smallest is served first."""


def order_of(class_of: Mapping[str, ClassPlan], uid: str) -> tuple[int, str, str]:
    pod = class_of[uid].members.shares[uid].pod
    return -pod.priority, pod.creation_timestamp, uid


def units_in_order(needs: Sequence[PodNeed], order: Order, gangs: Sequence[Gang]) -> list[Unit]:
    """Pods that get capacity together or not at all, in order: single pods, and the minimum of each gang and
    subgroup."""
    by_name = {need.name: need for need in needs}
    return [Unit([by_name[uid] for uid in pods], after) for pods, after in in_order(by_name, gangs, order)]


def left_out(units: Sequence[Unit], fits: Callable[[Sequence[PodNeed]], bool]) -> set[str]:
    """UIDs of the pods for which there is no room in addition to those before them. `fits` says whether all of the
    given pods fit.

    A pod that does not fit leaves the room to later pods that need less.
    """
    choice = _Choice(fits)
    choice.choose(units)
    return choice.out


class _Choice:
    def __init__(self, fits: Callable[[Sequence[PodNeed]], bool]) -> None:
        self._fits = fits
        self._kept: list[PodNeed] = []
        self.out: set[str] = set()
        self._too_much: set[tuple[object, ...]] = set()
        """Needs of pods that did not fit. They do not fit later either, because the room only shrinks."""

    def choose(self, units: Sequence[Unit]) -> None:
        """Adds all units if they fit together, else the first half and then the second half."""
        units = [unit for unit in units if not self._never_fits(unit)]
        wanted = [need for unit in units for need in unit.pods]
        if not wanted:
            return
        if self._fits([*self._kept, *wanted]):
            self._kept += wanted
        elif len(units) == 1:
            self.out.update(need.name for need in wanted)
            self._too_much.update(need_key(need) for need in wanted if len(wanted) == 1)
        else:
            middle = len(units) // 2
            self.choose(units[:middle])
            self.choose(units[middle:])

    def _never_fits(self, unit: Unit) -> bool:
        too_much = len(unit.pods) == 1 and need_key(unit.pods[0]) in self._too_much
        if too_much or unit.after in self.out:
            self.out.update(need.name for need in unit.pods)
            return True
        return False


def need_key(need: PodNeed) -> tuple[object, ...]:
    """Equal for pods that need the same."""
    return (tuple(sorted(need.milli.items())), need.devices, need.cpu_milli, need.memory_mib, need.scheduler)
