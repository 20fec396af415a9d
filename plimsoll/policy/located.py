"""Findings with file and line, for reports that refer to files."""

from typing import NamedTuple

from plimsoll.model.meta import Finding


class Located(NamedTuple):
    finding: Finding
    file: str
    """As given on the command line; the file of the settings if the finding is about them."""
    line: int
    """The first line of the object, counted from 1."""
