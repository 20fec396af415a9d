"""The priority of pods in files, as the cluster writes it to a pod when the pod is created."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from plimsoll.model.cluster import Pod, PriorityClass
from plimsoll.text import counted

_OF_EVERY_CLUSTER: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Priorities:
    """The values of PriorityClasses by name."""

    def __init__(self, classes: Iterable[PriorityClass]) -> None:
        known = {each.name: each for each in classes}
        self._values = _OF_EVERY_CLUSTER | {name: each.value for name, each in known.items()}
        # Of several defaults, Kubernetes uses the one with the lowest value.
        defaults = (each for each in known.values() if each.global_default)
        default = min(defaults, key=lambda each: (each.value, each.name), default=None)
        self._default = default.name if default is not None else ""
        self._missing: Counter[str] = Counter()

    def given_to(self, pod: Pod) -> Pod:
        """A copy of a pod that has no priority yet, with that of its class, else of the default."""
        name = pod.priority_class or self._default
        if name and name not in self._values:
            self._missing[name] += 1
        return pod.model_copy(update={"priority": self._values.get(name, 0), "priority_class": name})

    @property
    def warnings(self) -> tuple[str, ...]:
        """On classes that pods named and that are not known."""
        return tuple(
            f"PriorityClass {name} is not in the files: the priority of {counted(number, 'pod')} that "
            f"{'names' if number == 1 else 'name'} it counts as 0: add it"
            for name, number in sorted(self._missing.items())
        )
