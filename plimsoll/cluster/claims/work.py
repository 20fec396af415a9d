"""How much work an expression is to evaluate. Tenants write expressions, and nothing ends an evaluation that was begun:
what the apiserver admits may take minutes here, and more memory than there is."""

import re
from math import prod
from typing import Final

STRING: Final = re.compile(
    r"""[rR](?:\"\"\".*?\"\"\"|'''.*?'''|"[^"]*"|'[^']*')
    |\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT: Final = re.compile(rf"({STRING.pattern})|//[^\r\n]*", re.DOTALL | re.VERBOSE)
_GROWS: Final = re.compile(r"\b(all|exists|exists_one|existsOne|map|filter|bind|replace|join)\s*\(")
"""Calls that evaluate an argument more than once, or whose text may be longer than what it is made of."""
_MATCHES: Final = re.compile(r"\bmatches\s*\(")
_PATTERN: Final = re.compile(rf"\bmatches\s*\(\s*({STRING.pattern})\s*\)", re.DOTALL | re.VERBOSE)
_ENCODED: Final = re.compile(r"\\[xXuU0-7]")
LEAST_WORK: Final = 500
"""What each takes to read."""
_MOST_CALLS: Final = 64
MOST_WORK: Final = 100_000
"""Of an expression that is evaluated."""


def without_comments(expression: str) -> str:
    return _COMMENT.sub(lambda found: found.group(1) or " ", expression)


def without_strings(expression: str) -> str:
    """The expression with spaces for its texts, each part at its place."""
    return STRING.sub(lambda found: " " * len(found.group()), expression)


def work(expression: str) -> int:
    """About how many microseconds an expression takes for a kind of device; beyond MOST_WORK it is at least that."""
    expression = without_comments(expression)
    code = without_strings(expression)
    found = len(code) + sum(_of_pattern(expression, each.start()) for each in _MATCHES.finditer(code))
    longest = len(code) if re.search(r"\bsplit\b", code) else code.count(",") + 1
    for number, call in enumerate(_GROWS.finditer(code)):
        if found > MOST_WORK or number == _MOST_CALLS:
            return found + MOST_WORK
        inside = _inside(code, call.end())
        name, _, body = inside.partition(",")
        if call.group(1) in ("replace", "join"):
            found *= len(inside) + 1
            continue
        uses = len(re.findall(rf"\b{re.escape(name.strip())}\b", body))
        found *= max(1, uses) * (1 if call.group(1) == "bind" else longest)
    return LEAST_WORK + found


def _of_pattern(expression: str, start: int) -> int:
    """A class of characters by a name, or without regard to case, stands for hundreds of ranges; numbers in braces
    repeat it."""
    found = _PATTERN.match(expression, start)
    if found is None or _ENCODED.search(found.group(1)):
        return MOST_WORK
    text = found.group(1)
    numbers = ([int(each) for each in re.findall(r"\d{1,6}", part)] for part in re.findall(r"\{[^}]*", text))
    repeated = prod(max(1, *each) for each in numbers if each)
    named = text.count("\\") + sum(not each.isascii() for each in text)
    return repeated * (5 * len(text) + 1_000 * named) * (3 if "(?" in text else 1)


def _inside(code: str, start: int) -> str:
    """The arguments of a call, from after its parenthesis."""
    depth = 1
    for at in re.finditer(r"[()]", code[start:]):
        depth += 1 if at.group() == "(" else -1
        if not depth:
            return code[start : start + at.start()]
    return code[start:]
