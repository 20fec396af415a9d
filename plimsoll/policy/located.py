"""Findings with the places that they are about, for reports that point into files."""

from typing import NamedTuple

from plimsoll.model.meta import Finding


class Located(NamedTuple):
    finding: Finding
    file: str
    """As it was given on the command line; that of the settings where they are what is wrong."""
    line: int
    """From 1 on: where the object begins."""
