"""Access to the probe's own pod with its service account. It uses plain HTTP, because importing the Kubernetes client
takes half a second."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import urllib3
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from plimsoll.home import SERVICE_ACCOUNT_FOLDER
from plimsoll.labels import RESERVED_GPU
from plimsoll.probe.errors import ProbeError


class _PassingError(ProbeError):
    """A transient error; the next attempt may succeed."""


@dataclass(frozen=True)
class OwnPod:
    """The pod in which the process runs."""

    namespace: str
    name: str
    server: str
    account: Path
    """Folder of the service account: `token`, which rotates, and `ca.crt`."""

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] = os.environ, account: Path = SERVICE_ACCOUNT_FOLDER
    ) -> "OwnPod":
        """Raises ProbeError, which names what the pod's manifest lacks."""
        names = ("POD_NAMESPACE", "POD_NAME", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
        missing = [name for name in names if not environ.get(name)]
        if missing:
            raise ProbeError(
                f"not in a reservation: {', '.join(missing)} not set",
                "POD_NAME and POD_NAMESPACE come from the downward API; outside of a pod use --print",
            )
        host = environ["KUBERNETES_SERVICE_HOST"]
        host = f"[{host}]" if ":" in host else host
        return cls(
            environ["POD_NAMESPACE"],
            environ["POD_NAME"],
            f"https://{host}:{environ['KUBERNETES_SERVICE_PORT']}",
            account,
        )

    def reserve(self, uuid: str, timeout: float = 60.0) -> None:
        """Writes the UUID to the pod; writing the same value again changes nothing. Transient errors are retried for
        `timeout` seconds. Raises ProbeError."""
        retrying = Retrying(
            retry=retry_if_exception_type(_PassingError),
            stop=stop_after_delay(timeout),
            wait=wait_random_exponential(multiplier=0.1, max=5.0),
            reraise=True,
        )
        retrying(self._annotate, uuid)

    def _annotate(self, uuid: str) -> None:
        path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        body = json.dumps({"metadata": {"annotations": {RESERVED_GPU: uuid}}})
        headers = {"Content-Type": "application/merge-patch+json", "Authorization": f"Bearer {self._token()}"}
        try:
            with urllib3.PoolManager(ca_certs=str(self.account / "ca.crt"), retries=False) as pool:
                answer = pool.request("PATCH", self.server + path, body=body, headers=headers, timeout=10.0)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _PassingError(f"the apiserver at {self.server} cannot be reached: {error}") from None
        if answer.status < 300:
            return
        message = (
            f"the apiserver refuses to annotate {self.namespace}/{self.name}: {answer.status} {_error_text(answer)}"
        )
        if answer.status in (401, 409, 429) or answer.status >= 500:  # 401: a token that was just rotated
            raise _PassingError(message)
        hint = "the service account of reservations may patch pods of its namespace" if answer.status == 403 else None
        raise ProbeError(message, hint)

    def _token(self) -> str:
        try:
            return (self.account / "token").read_text().strip()
        except OSError as error:
            raise ProbeError(
                f"no token of a service account: {error}", "leave automountServiceAccountToken at its default"
            ) from None


def _error_text(answer: urllib3.BaseHTTPResponse) -> str:
    try:
        return str(json.loads(answer.data)["message"])[:300]
    except (ValueError, KeyError, TypeError):
        return str(answer.reason or "")
