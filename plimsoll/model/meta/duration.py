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
"""Maximum of Go's durations, in nanoseconds: about 292 years."""


def parse_duration(text: str) -> float:
    """The duration in seconds; may be negative. Raises ValueError, which names the text, if it is not a duration."""
    seconds = sum((Decimal(number) * _SECONDS[unit] for number, unit in _PART.findall(text)), Decimal(0))
    if not _DURATION.fullmatch(text) or seconds * 10**9 >= _LONGEST:
        raise ValueError(f"{text!r:.60} is not a duration such as 30s, 10m or 1h30m")
    return float(-seconds if text.startswith("-") else seconds)
