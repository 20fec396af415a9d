"""Objects: discovery, create, apply, replace, delete and watch for objects of any kind.

One request for each verb. Discovery of a group version is cached, and repeated only if a kind is missing.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import orjson
import tenacity
import urllib3

from plimsoll.errors import PlimsollError
from plimsoll.kube.connection import APPLY_PATCH, Connection
from plimsoll.kube.errors import ConnectionFailedError, RequestError
from plimsoll.kube.identity import Kind, kind_of, metadata_of, name_of, namespace_of
from plimsoll.kube.json_text import parse_json

Object = dict[str, Any]
T = TypeVar("T")

_AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
JSON_PATCH: Final = "application/json-patch+json"
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})
_NOT_PROCESSED: Final = frozenset({429, 503})
"""Status codes after which a create certainly did not happen."""


class NoSuchKindError(PlimsollError):
    """The apiserver does not serve the kind, because its CustomResourceDefinition is missing."""

    def __init__(self, kind: Kind) -> None:
        super().__init__(
            f"the cluster serves no {kind}",
            "create its CustomResourceDefinition first, and let this object depend on it",
        )


class Mapping(NamedTuple):
    """The REST path of a kind."""

    prefix: str
    """`/api/v1` or `/apis/<group>/<version>`."""
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        scope = f"/namespaces/{namespace or 'default'}" if self.namespaced else ""
        return f"{self.prefix}{scope}/{self.plural}" + (f"/{name}" if name else "")


class Objects:
    """The objects of one cluster. Safe to share between threads."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._mappings: dict[Kind, Mapping] = {}
        self._declared: dict[tuple[str, str], bool] = {}
        self._lock = threading.Lock()

    def declare(self, definition: Object) -> None:
        """Records the scope of a kind whose CustomResourceDefinition will be applied."""
        spec = definition.get("spec")
        if isinstance(spec, dict):
            names = spec.get("names")
            kind = names.get("kind") if isinstance(names, dict) else None
            self._declared[str(spec.get("group")), str(kind)] = spec.get("scope") == "Namespaced"

    def mapping(self, kind: Kind) -> Mapping:
        """The REST path of a kind. Raises NoSuchKindError if the apiserver does not serve it; this is not cached."""
        known = self._mappings.get(kind)
        if known is not None:
            return known
        with self._lock:
            if kind not in self._mappings:
                self._discover(kind)
            known = self._mappings.get(kind)
        if known is None:
            raise NoSuchKindError(kind)
        return known

    def is_namespaced(self, kind: Kind) -> bool:
        """Whether objects of the kind have a namespace; True for an unknown kind."""
        try:
            return self.mapping(kind).namespaced
        except NoSuchKindError:
            return self._declared.get((kind.group, kind.kind), True)

    def forget_served_by(self, definition: Object) -> None:
        """Drops the cached mappings of a kind whose CustomResourceDefinition was deleted."""
        spec = definition.get("spec") or {}
        with self._lock:
            for kind in [known for known in self._mappings if known.group == spec.get("group")]:
                del self._mappings[kind]

    def capabilities(self) -> tuple[str, list[str]]:
        """The apiserver's version, and what it serves: `v1`, `apps/v1`, `apps/v1/Deployment` (the Capabilities of
        Helm)."""
        version = self._retried(lambda: self.connection.request("GET", "/version"))
        served: set[str] = set()
        for root in ("/api", "/apis"):
            listed = self._retried(partial(self.connection.request, "GET", root, accept=_AGGREGATED))
            for group in listed.get("items", []):
                for entry in group["versions"]:
                    found = Kind(group["metadata"].get("name") or "", entry["version"], "")
                    served.add(found.api_version)
                    for resource in entry.get("resources", []):
                        served.add(f"{found.api_version}/{resource['responseKind']['kind']}")
        return str(version["gitVersion"]), sorted(served)

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The live object; None if it, or its kind, does not exist."""
        return self._existing(lambda: self.connection.request("GET", self.mapping(kind).path(namespace, name)))

    def labelled(self, kind: Kind, selector: str) -> list[Object]:
        """The objects of a kind, in all namespaces, that match a label selector; none if the kind is not served."""
        listed = self._listed(kind, query={"labelSelector": selector})
        # Items of a list have no apiVersion and kind.
        return [{**item, "apiVersion": kind.api_version, "kind": kind.kind} for item in listed]

    def names(self, kind: Kind, namespace: str = "") -> set[tuple[str, str]]:
        """(namespace, name) of every object of a kind, optionally of one namespace, by a list of metadata only; empty
        if the kind is not served."""
        found = (item["metadata"] for item in self._listed(kind, namespace, accept=_METADATA_LIST))
        return {(metadata.get("namespace") or "", metadata["name"]) for metadata in found}

    def _listed(self, kind: Kind, namespace: str = "", **options: Any) -> list[Object]:
        """The items of a list, of one namespace or all; none if the kind is not served."""
        try:
            mapping = self.mapping(kind)
            path = mapping.path(namespace) if namespace else f"{mapping.prefix}/{mapping.plural}"
            return self._retried(lambda: list(self.connection.list_items(path, **options)))
        except NoSuchKindError:
            return []
        except RequestError as error:
            if error.code != 404:
                raise
            with self._lock:  # the kind was deleted after its path was cached
                self._mappings.pop(kind, None)
            return []

    def create(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        """Creates an object. Raises RequestError with reason AlreadyExists if it exists.

        If the response is lost, the existing object is taken as created if only `manager` has written it, as declared.
        """
        kind = kind_of(obj)
        path = self.mapping(kind).path(namespace_of(obj))
        query = {"fieldManager": manager} | _dry(dry_run)
        lost = False  # whether a response was; it stays so where the lookup fails, too

        def attempt() -> Object:
            nonlocal lost
            made = self.get(kind, namespace_of(obj), name_of(obj)) if lost and not dry_run else None
            if made is not None and managers_of(made) == {manager} and _holds(made, obj):
                return made
            try:
                return self.connection.request("POST", path, obj, query=query)
            except ConnectionFailedError:
                lost = True
                raise
            except RequestError as error:
                lost = lost or error.code in _TRANSIENT - _NOT_PROCESSED
                raise

        return self._retried(attempt)

    def apply(self, obj: Object, manager: str, *, force: bool, dry_run: bool = False) -> Object:
        """Server-side apply. Raises RequestError with reason Conflict if others own a field, unless `force` is set."""
        path = self.mapping(kind_of(obj)).path(namespace_of(obj), name_of(obj))
        query = {"fieldManager": manager, "force": "true" if force else "false"} | _dry(dry_run)
        return self._retried(lambda: self.connection.request("PATCH", path, obj, query=query, content_type=APPLY_PATCH))

    def replace(self, obj: Object, manager: str, *, dry_run: bool = False) -> Object:
        """Replaces an object (PUT); `obj` contains the resourceVersion that it replaces."""
        path = self.mapping(kind_of(obj)).path(namespace_of(obj), name_of(obj))
        query = {"fieldManager": manager} | _dry(dry_run)
        return self._retried(lambda: self.connection.request("PUT", path, obj, query=query))

    def patch(self, live: Object, operations: list[Object]) -> Object:
        """Patches a live object with JSON Patch operations."""
        path = self.mapping(kind_of(live)).path(namespace_of(live), name_of(live))
        return self._retried(lambda: self.connection.request("PATCH", path, operations, content_type=JSON_PATCH))

    def delete(self, kind: Kind, namespace: str, name: str, propagation: str) -> Object | None:
        """Deletes an object. None if it, or its kind, does not exist. `propagation` is that of DeleteOptions."""
        options = {"propagationPolicy": propagation}
        return self._existing(
            lambda: self.connection.request("DELETE", self.mapping(kind).path(namespace, name), options)
        )

    def _existing(self, ask: Callable[[], Object]) -> Object | None:
        """The answer; None if the object, or its kind, does not exist."""
        try:
            return self._retried(ask)
        except NoSuchKindError:
            return None
        except RequestError as error:
            if error.code == 404:
                return None
            raise

    @contextmanager
    def watch(self, kind: Kind, namespace: str, name: str, version: str, seconds: int) -> Iterator["Watch"]:
        """Context manager: events of one object after `version` (a resourceVersion), for at most `seconds`."""
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        path = self.mapping(kind).path(namespace)
        with self.connection.stream(path, query=query, read_timeout=seconds + 5.0) as response:
            yield Watch(response)

    def _discover(self, kind: Kind) -> None:
        prefix = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        try:
            listed = self._retried(lambda: self.connection.request("GET", prefix))
        except RequestError as error:
            if error.code == 404:
                return
            raise
        for resource in listed.get("resources", []):
            if "/" not in resource["name"]:
                found = Kind(kind.group, kind.version, resource["kind"])
                self._mappings[found] = Mapping(prefix, resource["name"], bool(resource["namespaced"]))

    def _retried(self, attempt: Callable[[], T]) -> T:
        def transient(error: BaseException) -> bool:
            return isinstance(error, ConnectionFailedError) or (
                isinstance(error, RequestError) and error.code in _TRANSIENT
            )

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(transient),
            stop=tenacity.stop_after_attempt(5),
            wait=tenacity.wait_exponential_jitter(multiplier=0.2, max=3.0, jitter=0.2),
            reraise=True,
        )(attempt)


class Watch:
    """A stream of watch events. `stop` may be called from any thread."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        """(type, object) of each event until the server ends the watch; types are `ADDED`, `MODIFIED`, `DELETED` and
        `ERROR`. Raises ConnectionFailedError for a line that is no event."""
        rest = b""
        for chunk in self._response.stream(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line:
                    yield _event_of(line)

    def stop(self) -> None:
        if isinstance(self._response, urllib3.HTTPResponse):
            self._response.shutdown()


def _event_of(line: bytes) -> tuple[str, Object]:
    try:
        event = parse_json(line)
        return str(event["type"]), event["object"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        raise ConnectionFailedError("the apiserver, or a proxy before it, sent a line that is no watch event") from None


def managers_of(obj: Object) -> set[str]:
    """Field managers of the object, without those of subresources."""
    return {
        str(entry.get("manager"))
        for entry in metadata_of(obj).get("managedFields") or []
        if not entry.get("subresource")
    }


def _holds(live: Any, obj: Any) -> bool:
    """Whether a live object has every field as declared. Further fields are defaults of the apiserver."""
    if isinstance(live, dict) and isinstance(obj, dict):
        return all(key in live and _holds(live[key], value) for key, value in obj.items())
    if isinstance(live, list) and isinstance(obj, list):
        return len(live) == len(obj) and all(_holds(*pair) for pair in zip(live, obj, strict=True))
    return bool(live == obj)


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}
