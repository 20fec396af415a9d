"""Errors of requests to an apiserver."""

from plimsoll.errors import PlimsollError


class ConnectionFailedError(PlimsollError):
    """There is no usable response: no kubeconfig, no credentials, no server, or a broken connection."""


class RequestError(PlimsollError):
    """An error response of the apiserver.

    `code` is the HTTP status; `reason` is that of metav1.Status, such as `AlreadyExists`.
    """

    def __init__(self, code: int, reason: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.code = code
        self.reason = reason
