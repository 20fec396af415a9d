"""Objects: reads and deletes objects of any kind, and tries an apply without doing it.

Discovery of a group version is cached, and repeated only if a kind is missing.
"""

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import tenacity

from plimsoll.errors import PlimsollError
from plimsoll.kube.connection import APPLY_PATCH, Connection
from plimsoll.kube.errors import ConnectionFailedError, RequestError
from plimsoll.kube.identity import Kind, kind_of

Object = dict[str, Any]
T = TypeVar("T")

_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_UNKNOWN_FIELDS: Final = "failed to create typed patch object"
"""In the answer to an apply with fields that are not in the schema, which is no error of the apiserver (500)."""
_TRANSIENT: Final = frozenset({429, 500, 502, 503, 504})


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
        self._lock = threading.Lock()

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

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """The live object; None if it, or its kind, does not exist."""
        try:
            path = self.mapping(kind).path(namespace, name)
            return self._retried(lambda: self.connection.request("GET", path))
        except NoSuchKindError:
            return None
        except RequestError as error:
            if error.code == 404:
                return None
            raise

    def labelled(self, kind: Kind, selector: str, *, metadata_only: bool = False) -> list[Object]:
        """The objects of a kind, in all namespaces, that match a label selector; none if the kind is not served."""
        accept = {"accept": _METADATA_LIST} if metadata_only else {}
        listed = self._listed(kind, query={"labelSelector": selector}, **accept)
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

    def dry_run(self, obj: Object, manager: str) -> Object:
        """The object that a server-side apply would return, without the apply. Fields that the apiserver does not know
        are refused. Raises RequestError, with reason Conflict if others own a field."""
        metadata = obj["metadata"]
        path = self.mapping(kind_of(obj)).path(metadata.get("namespace", ""), metadata["name"])
        query = {"fieldManager": manager, "force": "false", "dryRun": "All", "fieldValidation": "Strict"}

        def attempt() -> Object:
            try:
                return self.connection.request("PATCH", path, obj, query=query, content_type=APPLY_PATCH)
            except RequestError as error:
                if error.code == 500 and _UNKNOWN_FIELDS in error.message:
                    raise RequestError(422, "Invalid", error.message) from None
                raise

        return self._retried(attempt)

    def delete(self, kind: Kind, namespace: str, name: str, uid: str, require: Callable[[], None]) -> None:
        """Deletes the object with this UID, after its dependents; nothing if no object has the name. Returns when the
        apiserver has accepted it: finalizers may keep the object. Raises RequestError, with reason Conflict if another
        object has the name. `require` is called before each request, and may raise to send no more."""

        def request(path: str) -> Object:
            require()
            return self.connection.request("DELETE", path, body)

        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
        body = options | {"preconditions": {"uid": uid}}
        try:
            path = self.mapping(kind).path(namespace, name)
            self._retried(lambda: request(path))
        except NoSuchKindError:
            return
        except RequestError as error:
            if error.code != 404:
                raise

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
