"""CEL expressions that compare labels or annotations before and after an update."""

from collections.abc import Iterable
from typing import Literal

from plimsoll.policy import text, texts


def changed_keys(
    field: Literal["labels", "annotations"],
    keys: Iterable[str],
    prefixes: Iterable[str] = (),
    *,
    others: bool = False,
) -> str:
    """CEL expression: the list of the keys that the request changes, of these and with these prefixes; with `others`,
    of all but these."""
    old, new = (f"{whole}.metadata.?{field}.orValue({{}})" for whole in ("oldObject", "object"))
    meant = f"key in {texts(keys)} || {texts(prefixes)}.exists(prefix, key.startsWith(prefix))"
    which = f"!({meant})" if others else f"({meant})"
    return (
        f"({old}.map(key, key) + {new}.map(key, key))"
        f".filter(key, {which} && {old}[?key].orValue({text('')}) != {new}[?key].orValue({text('')}))"
    )
