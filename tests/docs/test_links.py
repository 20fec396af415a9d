"""The Markdown pages: links have targets, long pages begin with a summary, and each paragraph is one line."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = sorted(page for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md") for page in CHECKOUT.glob(pattern))
MOST_WORDS = 1500
ACTIVATE = "source .venv/bin/activate"
OWN = "python3 -m venv "
"""Stacks of readers who create their own environment."""

_CODE = re.compile(r"^( *)```.*?^ *```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_FIRST_SHELL_BLOCK = re.compile(r"^ *```sh\n *(.*)$", re.MULTILINE)
_OWN_LINE = re.compile(r" *([-*+] |\d+\. |[|#>!]|<)|$")
"""Lines that never continue a paragraph."""


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def prose_of(page: Path) -> str:
    """The text without code blocks."""
    return _CODE.sub("", page.read_text())


def anchors_of(page: Path) -> set[str]:
    """The anchors of headings, as GitHub generates them: https://docs.github.com/en/get-started/writing-on-github."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in _HEADING.findall(prose_of(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors


def faults_of(check: Callable[[Path], Iterable[str]]) -> list[str]:
    """What is wrong, with the page."""
    return [f"{name_of(page)}: {fault}" for page in PAGES for fault in check(page)]


def test_relative_links_lead_to_a_file_and_a_heading() -> None:
    def broken(page: Path) -> Iterator[str]:
        for link in _LINK.findall(prose_of(page)):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                yield f"{link}: no such file"
            elif anchor and anchor not in anchors_of(target):
                yield f"{link}: no such heading"

    assert faults_of(broken) == []


def test_a_long_page_begins_with_a_summary() -> None:
    def too_long(page: Path) -> Iterator[str]:
        text = page.read_text()
        first = next((line for line in text.splitlines() if line.startswith("## ")), "")
        if page.name != "CHANGELOG.md" and len(text.split()) > MOST_WORDS and first != "## Summary":
            yield f"{len(text.split())} words: split the page, or begin with a summary"

    assert faults_of(too_long) == []


def test_a_paragraph_is_one_line() -> None:
    def wrapped(page: Path) -> Iterator[str]:
        for before, line in pairwise(prose_of(page).splitlines()):
            if before.strip() and not re.match(r" *[|#<]", before) and not _OWN_LINE.match(line):
                yield line

    assert faults_of(wrapped) == []


def test_commands_begin_in_the_virtual_environment() -> None:
    def outside(page: Path) -> Iterator[str]:
        first = _FIRST_SHELL_BLOCK.search(page.read_text())
        if first is not None and first[1] != ACTIVATE and not first[1].startswith(OWN):
            yield first[1]

    assert faults_of(outside) == []
