"""The output of `plimsoll explain`."""

from plimsoll.cli.explanation.as_object import as_json
from plimsoll.cli.explanation.report import print_explanation

__all__ = [
    "as_json",
    "print_explanation",
]
