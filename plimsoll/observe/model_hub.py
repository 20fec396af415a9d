"""Reads one model of a hub from its `config.json` and the index of its safetensors files, within a deadline.

The URLs are those of Hugging Face: `ENDPOINT/ORG/NAME/resolve/main/FILE`. Weights are never downloaded.
"""

import time
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.estimating import BYTES_PER_GIB
from plimsoll.model.api import DeclaredPreset, ModelHub
from plimsoll.observe.public_addresses import NotPublicError, Reachable
from plimsoll.presets import InvalidModelConfigError, read_model_config, shape_fields

MOST_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of a response that is read; the index of a model is much smaller."""
MOST_WEIGHTS: Final = 1_000_000 * BYTES_PER_GIB
_CHUNK: Final = 256 * 1024
_WEIGHTS: Final = ("model.safetensors", "consolidated.safetensors")
"""Names of the weights; with several files, the suffix `.index.json` follows. The second name is Mistral's."""
_TOKEN_NEEDED: Final = (401, 403)
_LINKED_SIZE: Final = "X-Linked-Size"
"""Header of a redirect to a file store: the size of the file, in bytes."""


class HubError(PlimsollError):
    """The data of a model cannot be read from the hub. `lasting` is whether a retry within minutes is useless."""

    def __init__(self, message: str, hint: str = "", *, lasting: bool = False) -> None:
        super().__init__(message, hint)
        self.lasting = lasting


class _TokenNeededError(Exception):
    """The hub denies access to the file, without a token or with this one. The message is the hub's, if it has one."""


def read_hub_model(hub: ModelHub, name: str, token: str = "") -> DeclaredPreset:
    """The model `org/name`. `token` is sent only if the hub denies access without one.

    Raises HubError, which names the model and the hub, after at most `hub.deadline_seconds`.
    """
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise HubError(f"{hub.endpoint} gets no request: HF_TOKEN is not one line of ASCII text", "correct HF_TOKEN")
    until = time.monotonic() + hub.deadline_seconds
    try:
        try:
            return _read(_Files(hub, name, until), gated=False)
        except _TokenNeededError:
            if not token:
                raise
            return _read(_Files(hub, name, until, token), gated=True)
    except _TokenNeededError as error:
        detail = f" ({error})" if str(error) else ""
        whom = "this token" if token else "anonymous users"
        raise HubError(
            f"{hub.endpoint} does not give {name} to {whom}{detail}: it does not exist, is private, or is gated",
            "correct the name, or give a token with access as HF_TOKEN: of the controller, with the owner in "
            "modelHub.tokenOrganizations of the Environment; of your shell for plimsoll estimate; or set "
            "inference.preset.parameters",
            lasting=True,
        ) from None
    except InvalidModelConfigError as error:
        raise HubError(
            f"config.json of {name} at {hub.endpoint}: {error.message}", "set inference.preset.parameters", lasting=True
        ) from None


def _read(files: "_Files", *, gated: bool) -> DeclaredPreset:
    config = files.json("config.json")
    if config is None:
        raise files.error("it has no config.json", lasting=True)
    read_model_config(config)
    return DeclaredPreset(
        name=files.name,
        repository=files.name,
        size_gib=_size(files) / BYTES_PER_GIB,
        config=shape_fields(config),
        gated=gated,
    )


def _size(files: "_Files") -> float:
    """Size of the weights in bytes."""
    for weights in _WEIGHTS:
        index = files.json(f"{weights}.index.json")
        if index is not None:
            metadata = index.get("metadata")
            total = metadata.get("total_size") if isinstance(metadata, dict) else None
            if isinstance(total, bool) or not isinstance(total, int | float) or not 1 <= total < MOST_WEIGHTS:
                raise files.error(f"metadata.total_size of {weights}.index.json is {total!r:.60}", lasting=True)
            return total
        size = files.size(weights)
        if size is not None and 0 < size < MOST_WEIGHTS:
            return size
    raise files.error("it has no safetensors files, so its size is not known", lasting=True)


class _Redirects(HTTPRedirectHandler):
    """Follows a redirect with the same method, and with the token only on the same server: the hub redirects to other
    paths for renamed models, and to file stores, which must not get the token."""

    def redirect_request(  # noqa: PLR0917
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        if req.get_method() == "HEAD" and headers.get(_LINKED_SIZE):
            return None  # the answer itself says what is asked for
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            following.method = req.get_method()
            token = req.unredirected_hdrs.get("Authorization")
            if token and _server(newurl) == _server(req.full_url):
                following.add_unredirected_header("Authorization", token)
        return following


def _host(url: str) -> str:
    """Empty where it has none: the request says what is wrong."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _server(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


class _Files:
    """The files of one model, until a deadline in seconds of the monotonic clock."""

    def __init__(self, hub: ModelHub, name: str, until: float, token: str = "") -> None:
        self.name = name
        self._hub = hub
        self._until = until
        self._token = token
        reachable = Reachable(hub.private_networks, _host(hub.endpoint))
        self._opener = build_opener(_Redirects, *reachable.handlers)

    def json(self, file: str) -> dict[str, Any] | None:
        """The JSON object in a file; None if the model has no such file."""
        text = self._request(file, "GET")
        if text is None:
            return None
        try:
            content = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            raise self.error(f"{file} is not JSON: {error}", lasting=True) from None
        if not isinstance(content, dict):
            raise self.error(f"{file} is not a JSON object", lasting=True)
        return content

    def size(self, file: str) -> int | None:
        """Size of a file in bytes; None if the model has no such file, or the hub does not report its size."""
        text = self._request(file, "HEAD")
        return int(text) if text and text.isdigit() else None

    def error(self, problem: str, *, lasting: bool = False) -> HubError:
        return HubError(
            f"{self.name} at {self._hub.endpoint}: {problem}", "set inference.preset.parameters", lasting=lasting
        )

    def _request(self, file: str, method: str) -> bytes | None:
        """The body of the response; for HEAD its Content-Length. None if there is no such file."""
        address = f"{self._hub.endpoint.rstrip('/')}/{quote(self.name)}/resolve/main/{file}"
        headers = {"User-Agent": "plimsoll", "Accept-Encoding": "identity"}
        try:
            request = Request(address, method=method, headers=headers)
            if self._token:
                request.add_unredirected_header("Authorization", f"Bearer {self._token}")
            with self._opener.open(request, timeout=self._left()) as answer:
                if method == "HEAD":
                    return str(answer.headers.get("Content-Length") or "").encode()
                return self._body(answer, file)
        except HTTPError as error:
            with error:
                return self._of_status(error, file)
        except ValueError as error:
            raise self.error(f"modelHub.endpoint is not a URL: {error}", lasting=True) from None
        except (OSError, HTTPException) as error:
            cause = getattr(error, "reason", None) or error
            if isinstance(cause, NotPublicError):
                raise self.error(f"{file}: {cause}", lasting=True) from None
            late = isinstance(error, TimeoutError) or time.monotonic() >= self._until or "timed out" in str(error)
            if late:
                raise self._late() from None
            raise self.error(f"{file}: {cause}") from None

    def _of_status(self, error: HTTPError, file: str) -> bytes | None:
        """What an answer says that is not the file: the size of the file that is elsewhere, or None for no file."""
        if error.code == 404:
            return None
        if error.code < 400 and error.headers.get(_LINKED_SIZE):
            return str(error.headers[_LINKED_SIZE]).encode()
        if error.code in _TOKEN_NEEDED:
            raise _TokenNeededError(error.headers.get("X-Error-Code") or "") from None
        raise self.error(f"{file}: the answer is {error.code} {error.reason}") from None

    def _body(self, answer: Any, file: str) -> bytes:
        parts: list[bytes] = []
        length = 0
        while part := answer.read1(_CHUNK):
            parts.append(part)
            length += len(part)
            if length > MOST_BYTES:
                raise self.error(f"{file} is larger than {MOST_BYTES} bytes", lasting=True)
            self._left()
        return b"".join(parts)

    def _left(self) -> float:
        """Seconds that are left until the deadline."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def _late(self) -> HubError:
        return self.error(f"no answer within {self._hub.deadline_seconds} seconds (modelHub.deadlineSeconds)")
