"""Connection: requests to one cluster by a kubeconfig or the service account of a pod, with raw JSON and typed
errors.

Each Pulumi program imports this module, and few open a connection. So the client library, which takes longer to import
than the rest of the package, is imported when a connection is opened.
"""

import os
import platform
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlencode

import orjson
import urllib3
import yaml

from plimsoll.kube.account import Account
from plimsoll.kube.errors import ConnectionFailedError, RequestError
from plimsoll.kube.json_text import parse_json

if TYPE_CHECKING:
    from kubernetes import client

JSON: Final = "application/json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
CHUNK: Final = 500
"""Objects per response to a list, as in client-go's pager."""
_CONNECT_SECONDS: Final = 5.0
"""Limit of the time until the server accepts a connection, where the request has no shorter one."""
_LIST_SECONDS: Final = 60.0
"""Limit of the time for one chunk."""
_OTHER_KUBECONFIG: Final = "set one with --kubeconfig or KUBECONFIG, or start a sandbox with `plimsoll sandbox up`"
_AUTHORIZATION_SECONDS: Final = 1.0
"""Seconds for which request headers are reused: reading them each time took a fifth of the time of a request."""
_RULES: Final = range(80, 95)
"""OpenSSL's codes for certificates that break RFC 5280 (x509_vfy.h), which Python 3.13 and later let it check."""
_PATIENCE: Final = urllib3.Retry(
    total=None, connect=False, read=False, redirect=False, other=0,
    status=10, status_forcelist=[429], allowed_methods=["GET"], raise_on_status=False,
    backoff_factor=0.2, backoff_max=2.0, retry_after_max=10,
)  # fmt: skip
"""Retries of throttled requests, as often as client-go, each after the seconds of its Retry-After header. A kind that
was just defined returns such a header."""


class Connection:
    """Requests to one apiserver. Safe to share between threads."""

    def __init__(
        self,
        configuration: "client.Configuration",
        account: Account | None = None,
        renew: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`account` is only for messages. `renew` is called before credentials are read again, by one thread at a
        time; its argument is whether the apiserver has refused them."""
        self._account = account or Account()
        configuration.connection_pool_maxsize = 64
        configuration.keep_alive = True  # ends a watch within minutes if the server has vanished
        self._configuration = configuration
        self._renew = renew
        self._renewing = threading.Lock()
        self._pool = self._new_pool()
        self.server: str = configuration.host
        self._known: tuple[dict[str, str], float] = ({}, 0.0)
        self.requests = 0
        """Requests made so far, watches included; one that was put off and sent again counts once."""

    @classmethod
    def open(cls, kubeconfig: Path | None = None, context: str | None = None) -> "Connection":
        """Connects by a kubeconfig (argument, `KUBECONFIG`, `~/.kube/config`) or, in a pod, by its service account.

        Makes no request. Raises ConnectionFailedError if there is no configuration, or an exec plugin returns no
        credentials.
        """
        from kubernetes import client, config
        from kubernetes.config import ConfigException

        from plimsoll.kube.credentials import Credentials, NoSuchContextError, load_file

        configuration = client.Configuration()
        in_pod = kubeconfig is None and not os.environ.get("KUBECONFIG") and "KUBERNETES_SERVICE_HOST" in os.environ
        try:
            if in_pod:
                config.load_incluster_config(client_configuration=configuration)
                loaded = Credentials(Account.of_pod())
            else:
                loaded = load_file(configuration, kubeconfig, context)
            if not configuration.host:
                raise ValueError("its cluster has no server")
            connection = cls(configuration, loaded.account, loaded.renew)
        except (TypeError, LookupError, AttributeError):
            raise _unusable(kubeconfig, "it is not a kubeconfig, or a field has the wrong type") from None
        except ImportError as error:
            raise _unusable(kubeconfig, f"its proxy-url needs a package that is not installed: {error}") from None
        except NoSuchContextError as error:
            raise _unusable(kubeconfig, str(error), error.hint) from None
        except (ConfigException, OSError, ValueError, yaml.YAMLError) as error:
            raise _unusable(kubeconfig, " ".join(str(error).split())) from None
        if not configuration.verify_ssl:
            import structlog

            # One warning here instead of one by urllib3 for every request.
            structlog.get_logger(__name__).warning(
                "the kubeconfig disables the verification of the server's certificate", server=configuration.host
            )
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        return connection

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
        retry_throttled: bool = False,
    ) -> dict[str, Any]:
        """Sends one request and returns the parsed JSON. `timeout` is in seconds, for each
        attempt: until the connection is made, and then for the response.

        With `retry_throttled`, a GET that the apiserver rejects with 429 (Too Many Requests) is sent again after the
        seconds of its Retry-After header, up to ten times. Callers that retry by themselves leave it off.

        Raises RequestError for a status of 300 or more, ConnectionFailedError for no response or one that is not JSON.
        """
        with self._send(
            method,
            path,
            body,
            query=query,
            content_type=content_type,
            accept=accept,
            timeout=timeout,
            preload=True,
            retries=_PATIENCE if retry_throttled else False,
        ) as response:
            text = response.data or b"{}"
        try:
            parsed = parse_json(text)
        except orjson.JSONDecodeError:
            raise ConnectionFailedError(
                f"{method} {path}: the answer of {self.server} is not JSON",
                "check that the address in the kubeconfig is that of a Kubernetes apiserver",
            ) from None
        return parsed if isinstance(parsed, dict) else {}

    def list_chunks(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        accept: str = JSON,
        retry_throttled: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """The responses to a list, in chunks, so that neither side holds the text of a large cluster at once.

        No resource version is requested, which returns the most recent state. Raises as `request`; RequestError of code
        410: the list took longer than the apiserver keeps old versions.
        """
        asked = {"limit": str(CHUNK), **(query or {})}
        while True:
            answer = self.request(
                "GET", path, query=asked, accept=accept, timeout=_LIST_SECONDS, retry_throttled=retry_throttled
            )
            yield answer
            following = (answer.get("metadata") or {}).get("continue")
            if not following:
                return
            asked["continue"] = following

    def list_items(self, path: str, **options: Any) -> Iterator[dict[str, Any]]:
        """The objects in the responses of `list_chunks`, to which `options` go; as in any list without apiVersion and
        kind."""
        for chunk in self.list_chunks(path, **options):
            yield from chunk.get("items") or ()

    @contextmanager
    def stream(
        self, path: str, *, query: Mapping[str, str], read_timeout: float, accept: str = JSON
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """Context manager: a GET whose body is read as it arrives (a watch). The connection is closed at the end."""
        with self._send(
            "GET", path, None, query=query, content_type=JSON, accept=accept, timeout=read_timeout, preload=False
        ) as response:
            yield response

    def close(self) -> None:
        self._pool.clear()

    def _authorization(self) -> dict[str, str]:
        """Authorization headers. Credentials are read again after a short time, because tokens and certificates are
        replaced before they expire."""
        headers, until = self._known
        if time.monotonic() < until:
            return headers
        with self._renewing:
            headers, until = self._known
            if time.monotonic() >= until:
                headers = self._renewed()
                self._known = headers, time.monotonic() + _AUTHORIZATION_SECONDS
        return headers

    def _replaced(self, refused: Mapping[str, str], pool: urllib3.PoolManager) -> bool:
        """Whether there are other credentials than those that the apiserver has refused: those without a time of
        expiry are in use until then."""
        with self._renewing:
            if self._known[0] == refused and self._pool is pool:
                self._known = self._renewed(refused=True), time.monotonic() + _AUTHORIZATION_SECONDS
            return self._known[0] != refused or self._pool is not pool

    def _renewed(self, *, refused: bool = False) -> dict[str, str]:
        from kubernetes.config import ConfigException

        configuration = self._configuration
        certificate = configuration.cert_file, configuration.key_file
        try:
            self._renew(refused)
            settings: dict[str, Any] = dict(configuration.auth_settings())
            if certificate != (configuration.cert_file, configuration.key_file):
                self._pool = self._new_pool()
        except (ConfigException, OSError, ValueError) as error:
            raise ConnectionFailedError(
                f"the cluster at {self.server} gets no request: the credentials of {self._account.name} cannot be "
                f"read: {' '.join(str(error).split())}",
                self._account.renewal,
            ) from None
        headers = {setting["key"]: setting["value"] for setting in settings.values()}
        if not all(value.isprintable() for value in headers.values()):
            raise ConnectionFailedError(
                f"the cluster at {self.server} gets no request: the token of {self._account.name} is more than one "
                "line",
                self._account.renewal,
            )
        return headers

    def _new_pool(self) -> urllib3.PoolManager:
        """A pool reads the certificate of the client once."""
        from kubernetes.client import ApiClient

        pool: urllib3.PoolManager = ApiClient(self._configuration).rest_client.pool_manager
        return pool

    @contextmanager
    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        query: Mapping[str, str] | None,
        content_type: str,
        accept: str,
        timeout: float,
        preload: bool,
        retries: urllib3.Retry | Literal[False] = False,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        headers = {"Accept": accept, "User-Agent": "plimsoll"}
        if body is not None:
            headers["Content-Type"] = content_type
        url = self.server + path + (f"?{urlencode(query)}" if query else "")
        content = None if body is None else orjson.dumps(body)
        limits = urllib3.Timeout(connect=min(_CONNECT_SECONDS, timeout), read=timeout)

        def ask(pool: urllib3.PoolManager, authorization: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
            self.requests += 1
            return pool.request(
                method,
                url,
                body=content,
                headers={**headers, **authorization},
                timeout=limits,
                preload_content=preload,
                retries=retries,
            )

        authorization, pool = self._authorization(), self._pool
        response: urllib3.BaseHTTPResponse | None = None
        try:
            response = ask(pool, authorization)
            if response.status == 401 and self._replaced(authorization, pool):
                response.close()
                response = ask(self._pool, self._known[0])
            if response.status >= 300:
                raise self._refusal(response, method, path)
            yield response
        except urllib3.exceptions.HTTPError as error:
            raise self._failure(error) from None
        finally:
            if response is not None and not preload:
                response.close()

    def _failure(self, error: urllib3.exceptions.HTTPError) -> ConnectionFailedError:
        cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
        where = f"the cluster at {self.server} ({self._account.name})"
        if isinstance(cause, urllib3.exceptions.SSLError):
            return ConnectionFailedError(
                f"{where} has no certificate that can be verified: {cause}",
                f"issue the certificates of the cluster by RFC 5280, whose rules Python {platform.python_version()} "
                "enforces, or run Plimsoll with Python 3.12 or 3.11"
                if _breaks_rules(cause)
                else "set certificate-authority-data of the cluster in the kubeconfig to the CA of this apiserver, and "
                "check its address and tls-server-name",
            )
        return ConnectionFailedError(
            f"{where} cannot be reached: {cause}",
            "check that it runs, that the address in the kubeconfig is right, and that no firewall or proxy blocks the "
            "connection",
        )

    def _refusal(self, response: urllib3.BaseHTTPResponse, method: str, path: str) -> RequestError:
        text = response.data
        try:
            status = orjson.loads(text)
        except orjson.JSONDecodeError:
            status = {}
        if not isinstance(status, dict):
            status = {}
        said = str(status.get("message") or " ".join(text[:200].decode(errors="replace").split()) or "no message")
        message, hint = f"{method} {path}: {said}", None
        if response.status == 401:
            message = f"the cluster at {self.server} does not accept the credentials of {self._account.name}: {message}"
            hint = self._account.renewal
        elif response.status == 403 and "denied request" not in said:
            # Of an admission policy, the message says what to change.
            hint = "the account lacks this permission: deploy the foundation stack, or use another account"
        return RequestError(response.status, str(status.get("reason") or ""), message, hint)


def _breaks_rules(error: urllib3.exceptions.SSLError) -> bool:
    """Whether a certificate is refused for what it is, not for who signed it."""
    causes = [cause for cause in error.args if isinstance(cause, ssl.SSLCertVerificationError)]
    return any(cause.verify_code in _RULES for cause in causes)


def _unusable(kubeconfig: Path | None, why: str, hint: str = _OTHER_KUBECONFIG) -> ConnectionFailedError:
    source = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG") or "~/.kube/config"
    return ConnectionFailedError(f"cannot connect to a cluster: kubeconfig {source}: {why}", hint)
