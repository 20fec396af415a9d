"""Names of KAI's queues, as objects and as the label of Pods."""

import re
from typing import Annotated, Final

from pydantic import AfterValidator

_DNS_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


def _checked(name: str) -> str:
    if len(name) > 63 or not _DNS_NAME.fullmatch(name):
        raise ValueError("not a queue's name: at most 63 of a-z 0-9 - ., the first and the last a letter or a digit")
    return name


QueueName = Annotated[str, AfterValidator(_checked)]
"""A DNS name, as every object's, and short enough for a label."""
