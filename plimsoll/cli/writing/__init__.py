"""The writer of an environment, built from options, for `plimsoll run` and `plimsoll destroy`."""

from plimsoll.cli.writing.metrics import serving_metrics
from plimsoll.cli.writing.settling import Settling
from plimsoll.cli.writing.writer import Writer, WriterOptions, open_writer

__all__ = [
    "Settling",
    "Writer",
    "WriterOptions",
    "open_writer",
    "serving_metrics",
]
