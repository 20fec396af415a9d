"""The writer of an environment, built from options, for `plimsoll run` and `plimsoll destroy`."""

from plimsoll.cli.writing.leftovers import refuse_leftovers
from plimsoll.cli.writing.settling import Settling
from plimsoll.cli.writing.writer import Writer, WriterOptions, apply_settings, check_options, check_project, writer_of

__all__ = [
    "Settling",
    "Writer",
    "WriterOptions",
    "apply_settings",
    "check_options",
    "check_project",
    "refuse_leftovers",
    "writer_of",
]
