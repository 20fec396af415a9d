"""The log on standard error."""

import sys


def log_to_stderr() -> None:
    """Text on a terminal, JSON elsewhere; standard output is for results."""
    import structlog  # takes longer than the rest of a command's imports, and most commands write no log

    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        # Evaluated for each line: sys.stderr may change.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )
