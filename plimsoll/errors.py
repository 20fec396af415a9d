"""Errors with a message for users: what is wrong, and what to change."""


class PlimsollError(Exception):
    """An error with a message for people and, where one is known, a hint on what to change.

    The command line prints both without a traceback and exits with 1.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class InvalidObjectError(PlimsollError):
    """An object whose fields do not fit its kind; the message names the object and each field."""
