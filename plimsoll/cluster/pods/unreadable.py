"""A pod whose request for GPUs cannot be read. Anyone may write annotations: it refuses that pod only."""

from plimsoll.errors import PlimsollError
from plimsoll.model.cluster import Pod

_SHOWN = 64


class UnreadableShareError(PlimsollError):
    """A pod whose request for GPUs cannot be read; the message names pod, field and value."""


def unreadable(pod: Pod, field: str, value: str, problem: str, hint: str) -> UnreadableShareError:
    """`problem` continues after the field and its value."""
    shown = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    return UnreadableShareError(f"Pod {name_of(pod)}: {field} {shown} {problem}", hint)


def name_of(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}" if pod.namespace else pod.name


def is_whole_number(text: str) -> bool:
    """Whether KAI reads it as a number too: no spaces, no sign, ASCII digits only."""
    return text.isascii() and text.isdigit()
