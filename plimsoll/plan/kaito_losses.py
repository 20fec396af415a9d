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

    def unknown(self, given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
        """Refuses fields that KAITO's definitions do not have: they were meant as something."""
        for field in sorted(set(given) - set(known)):
            self.refuse(f"{prefix}{field}", "KAITO's definition has no such field", "remove or correct it")
