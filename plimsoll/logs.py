"""The log on standard error."""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenacity import RetryCallState


def log_to_stderr() -> None:
    """Text on a terminal, JSON elsewhere; standard output is for results. Tracebacks have no values of variables, which
    may be secrets."""
    import structlog  # takes longer than the rest of a command's imports, and most commands write no log

    terminal = sys.stderr.isatty()
    renderer = (
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        if terminal
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if terminal else [structlog.processors.format_exc_info]),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        # Evaluated for each line: sys.stderr may change.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


def log_retry(state: "RetryCallState") -> None:
    """Writes that a round failed and is tried again; for `before_sleep` of tenacity."""
    import structlog

    error = state.outcome.exception() if state.outcome is not None else None
    structlog.get_logger(__name__).error(
        "round failed: trying again", error=str(error), attempt=state.attempt_number, next_seconds=state.upcoming_sleep
    )
