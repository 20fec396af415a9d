"""Why a pod's request for GPUs is refused. Anyone may write annotations: it refuses that pod only."""

from typing import NamedTuple

_SHOWN = 64


class RequestRefusal(NamedTuple):
    problem: str
    """The field with its value, and what is wrong with it."""
    hint: str
    """What to change."""
    of_claims: bool = False
    """Whether it is what the pod's claims name or ask for, not the request itself."""


class UnreadableError(Exception):
    """A field that cannot be read, or is not planned for. It leaves this package as a RequestRefusal only."""

    def __init__(self, field: str, value: str, problem: str, hint: str) -> None:
        """`problem` continues after the field and its value."""
        self.refusal = RequestRefusal(f"{field} {shown(value)} {problem}", hint)
        super().__init__(self.refusal.problem)


def shown(value: str) -> str:
    """A value in quotes, shortened."""
    return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")


def is_whole_number(text: str) -> bool:
    """Whether KAI reads it as a number too: no spaces, no sign, ASCII digits only."""
    return text.isascii() and text.isdigit()
