"""Durations as Go and Kubernetes write them: `90s`, `1h30m`, `1.5h`."""

import re
from decimal import Decimal
from typing import Final

_SECONDS: Final[dict[str, Decimal]] = {
    "ns": Decimal("1e-9"), "us": Decimal("1e-6"), "µs": Decimal("1e-6"), "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600),
}  # fmt: skip
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)")
_LONGEST: Final = 2**63
"""Nanoseconds that Go can count to: some 292 years."""


def parse_duration(text: str) -> float:
    """Seconds; below 0 where the text says so. Raises ValueError, naming the text, where it is no duration."""
    seconds = sum((Decimal(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Decimal(0))
    if not _DURATION.fullmatch(text) or seconds * 10**9 >= _LONGEST:
        raise ValueError(f"{text!r:.60} is no duration such as 30s, 10m or 1h30m")
    return float(-seconds if text.startswith("-") else seconds)
