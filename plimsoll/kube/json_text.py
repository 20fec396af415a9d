"""Reads JSON of an apiserver, in which a value may be nested deeper than the parser allows."""

import re
from typing import Any, Final

import orjson

_DEEPEST: Final = 1_000
"""Levels that are kept. The parser allows 1,024, an apiserver 10,000, in fields that its schema does not describe."""
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def parse_json(text: bytes) -> Any:
    """The value. What is nested deeper than 1,000 levels is null in it, so that one such object does not hide the
    others of a list. Raises orjson.JSONDecodeError."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(_without_deep_values(text))


def _without_deep_values(text: bytes) -> bytes:
    pieces: list[bytes] = []
    kept = depth = 0
    for token in _TOKEN.finditer(text):
        sign = token.group()
        if sign in (b"{", b"["):
            depth += 1
            if depth == _DEEPEST + 1:
                pieces += (text[kept : token.start()], b"null")
        elif sign in (b"}", b"]"):
            if depth == _DEEPEST + 1:
                kept = token.end()
            depth -= 1
    return b"".join((*pieces, text[kept:])) if pieces else text
