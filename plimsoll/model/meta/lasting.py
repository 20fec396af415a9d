"""Values that change by themselves: times, dates and hashes in labels and annotations.

Python's `re` and RE2 (which CEL uses) read the patterns alike, so that both checks agree.
"""

import re
from typing import Final

from plimsoll.labels import GPU_TIMESTAMP, GROUP

OWN: Final = f"{GROUP}/"
"""Our own keys: the UID of a Workspace does not change during the life of its nodes."""
CHANGING_KEYS: Final = (
    r"(?i)(?:.*[-_./])?(?:time|timestamp|date|hash|checksum|digest|sha[0-9]*|commit|revision|generation"
    r"|(?:restarted|updated|deployed|generated|applied|rendered|synced|built|created)-?at|checksum/.*)"
)
"""Keys whose names indicate times or hashes."""
MOMENTS: Final = (
    r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}[T_ .-]?[0-9]{2}[-:_.]?[0-9]{2}.*"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .*[0-9]{2}:[0-9]{2}.*"
    r"|[0-9]{10}(?:\.[0-9]+)?|[0-9]{13}|[0-9]{16}|[0-9]{19}"
)
"""A date with a time, or seconds to nanoseconds since 1970."""
HASHES: Final = r"(?:sha256[:-])?[0-9a-f]{16,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""Hexadecimal digits or a UUID; with at least one digit and one letter."""


def changes_by_itself(key: str, value: str) -> bool:
    """Whether the entry looks like a time or a hash, which differs each time that it is written."""
    if key.startswith(OWN):
        return False
    return (
        key == GPU_TIMESTAMP
        or re.fullmatch(CHANGING_KEYS, key) is not None
        or re.fullmatch(MOMENTS, value) is not None
        or (
            re.fullmatch(HASHES, value) is not None
            and re.search("[0-9]", value) is not None
            and re.search("[a-f]", value) is not None
        )
    )
