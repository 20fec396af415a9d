"""What is lost where an object of KAITO's is converted."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple


class Loss(NamedTuple):
    field: str
    """Path in KAITO's object; empty for the object as a whole."""
    why: str
    remedy: str = ""
    refused: bool = False
    """Nothing is converted while it stands."""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.why}" + (f"; {self.remedy}" if self.remedy else "")


class Losses:
    """Collected in the order in which they were found."""

    def __init__(self) -> None:
        self.found: list[Loss] = []

    @property
    def refused(self) -> bool:
        return any(loss.refused for loss in self.found)

    def warn(self, field: str, why: str, remedy: str = "") -> None:
        """What is left out or means something else; the rest is converted."""
        self.found.append(Loss(field, why, remedy))

    def refuse(self, field: str, why: str, remedy: str) -> None:
        """What must not be left out."""
        self.found.append(Loss(field, why, remedy, refused=True))

    def object(self, parent: Mapping[str, Any], key: str, prefix: str = "") -> Mapping[str, Any]:
        """The object at the key, an empty one where there is none; what is no object is refused."""
        value = parent.get(key)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.refuse(f"{prefix}{key}", f"an object is wanted, not {value!r:.40}", "correct it in KAITO's manifest")
        return {}

    def items(self, parent: Mapping[str, Any], key: str, prefix: str = "") -> list[Any]:
        """The list at the key, an empty one where there is none; what is no list is refused."""
        value = parent.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self.refuse(f"{prefix}{key}", f"a list is wanted, not {value!r:.40}", "correct it in KAITO's manifest")
        return []

    def unknown(self, given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
        """Refuses fields that KAITO's definitions do not have: they were meant as something."""
        for field in sorted(set(given) - set(known)):
            self.refuse(f"{prefix}{field}", "KAITO's definition has no such field", "remove or correct it")
