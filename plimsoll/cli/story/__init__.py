"""The output of `plimsoll explain`."""

from plimsoll.cli.story.as_object import as_json
from plimsoll.cli.story.report import print_story

__all__ = [
    "as_json",
    "print_story",
]
