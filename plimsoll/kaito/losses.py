"""What is lost when an object of another system is converted."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple


class Loss(NamedTuple):
    field: str
    """Path in the object; empty for the object as a whole."""
    why: str
    remedy: str = ""
    refused: bool = False
    """Whether it prevents the conversion."""

    def __str__(self) -> str:
        where = f"{self.field}: " if self.field else ""
        return f"{where}{self.why}" + (f"; {self.remedy}" if self.remedy else "")


class Losses:
    """Losses in the order in which they were found."""

    def __init__(self) -> None:
        self.found: list[Loss] = []

    @property
    def refused(self) -> bool:
        return any(loss.refused for loss in self.found)

    def warn(self, field: str, why: str, remedy: str = "") -> None:
        """Records a field that is left out or changes its meaning; the rest is converted."""
        self.found.append(Loss(field, why, remedy))

    def refuse(self, field: str, why: str, remedy: str) -> None:
        """Records a field that prevents the conversion."""
        self.found.append(Loss(field, why, remedy, refused=True))

    def object(self, parent: Mapping[str, Any], key: str, prefix: str = "") -> Mapping[str, Any]:
        """The object at the key, an empty one if it is missing; refuses other types."""
        value = parent.get(key)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.refuse(f"{prefix}{key}", f"must be an object, not {value!r:.40}", "correct it in KAITO's manifest")
        return {}

    def items(self, parent: Mapping[str, Any], key: str, prefix: str = "") -> list[Any]:
        """The list at the key, an empty one if it is missing; refuses other types."""
        value = parent.get(key)
        if value is None or isinstance(value, list):
            return value or []
        self.refuse(f"{prefix}{key}", f"must be a list, not {value!r:.40}", "correct it in KAITO's manifest")
        return []

    def count(self, parent: Mapping[str, Any], key: str, prefix: str = "") -> int:
        """The number at the key, 1 if it is missing; refuses others than whole numbers from 1."""
        value = parent.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            return value or 1
        why = f"must be a whole number of at least 1, not {value!r:.40}"
        self.refuse(f"{prefix}{key}", why, "correct it in KAITO's manifest")
        return 1

    def unknown(self, given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
        """Refuses fields that KAITO's definitions do not have."""
        for field in sorted(set(given) - set(known)):
            self.refuse(f"{prefix}{field}", "KAITO's definition has no such field", "remove or correct it")
