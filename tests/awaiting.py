"""Waits for conditions of a cluster."""

from collections.abc import Callable
from typing import Literal, TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_exponential

T = TypeVar("T")


def await_condition(predicate: Callable[[], T | Literal[False] | None], timeout: float = 120, message: str = "") -> T:
    """Returns the first true value of `predicate`, which is called at once, then at growing intervals of at most 0.3 s.
    AssertionError after `timeout` s."""
    last: list[T | Literal[False] | None] = []

    def ask() -> T | Literal[False] | None:
        last[:] = [predicate()]
        return last[0]

    try:
        found = Retrying(
            stop=stop_after_delay(timeout),
            wait=wait_exponential(multiplier=0.01, max=0.3),
            retry=retry_if_result(lambda value: not value),
        )(ask)
    except RetryError:
        raise AssertionError(f"not within {timeout} s: {message or predicate}; last seen: {last[0]!r}") from None
    assert found
    return found
