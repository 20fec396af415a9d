"""Taints of nodes and tolerations of pods."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from plimsoll.model.meta.base import Observed

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Observed):
    key: str
    value: str = ""
    effect: Effect

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(Observed):
    key: str = ""
    operator: str = "Equal"
    """`Exists`, or `Equal`, also if empty. Others, such as `Lt` of newer releases, tolerate nothing here."""
    value: str = ""
    effect: Effect | Literal[""] = ""
    toleration_seconds: int | None = Field(default=None, validation_alias="tolerationSeconds")

    def tolerates(self, taint: Taint) -> bool:
        """As corev1.Toleration.ToleratesTaint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        equal = self.operator in ("Equal", "") and bool(self.key) and self.value == taint.value
        return equal or self.operator == "Exists"


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> list[Taint]:
    """The taints that these tolerations do not cover (PreferNoSchedule is ignored)."""
    allowed = list(tolerations)
    return [
        taint
        for taint in taints
        if taint.effect != "PreferNoSchedule" and not any(each.tolerates(taint) for each in allowed)
    ]
