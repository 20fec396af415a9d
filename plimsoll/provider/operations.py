"""The life of one object as the engine asks for it: check, diff, create, update, read, delete."""

from dataclasses import dataclass, field
from typing import Any, Final

import tenacity

from plimsoll.connection import RequestError
from plimsoll.model.errors import PlimsollError
from plimsoll.provider.awaiting import SKIP_AWAIT, Interruption, NotReadyError, until_gone, until_ready
from plimsoll.provider.diff import Change, changes, covers, declared, parse_property_path, prune
from plimsoll.provider.identity import (
    annotation,
    id_of,
    kind_of,
    kind_of_type,
    metadata_of,
    name_of,
    namespace_of,
    new_field_manager,
    parse_id,
)
from plimsoll.provider.managed_fields import owned_by_apply, take_over
from plimsoll.provider.objects import NoSuchKindError, Object
from plimsoll.provider.replacement import deletes_first, replacing
from plimsoll.provider.session import Session
from plimsoll.provider.values import Properties, has_unknowns, mark_secrets, plain

INPUTS: Final = "__inputs"
API_VERSION: Final = "__initialApiVersion"
FIELD_MANAGER: Final = "__fieldManager"
PATCH_FIELD_MANAGER: Final = "pulumi.com/patchFieldManager"
PATCH_FORCE: Final = "pulumi.com/patchForce"
PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"
_PROPAGATIONS: Final = {"orphan": "Orphan", "background": "Background"}
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


class InitializationFailedError(PlimsollError):
    """The object exists, but is not ready: its state is kept, and the next update tries again."""

    def __init__(self, reason: str, resource_id: str, state: Properties) -> None:
        super().__init__(reason)
        self.id = resource_id
        self.state = state


@dataclass(frozen=True)
class Diff:
    """What an update would do. Nothing where `changed` is empty."""

    changed: list[Change]
    replaced: list[Change] = field(default_factory=list)
    deletes_first: bool = False


@dataclass(frozen=True)
class State:
    """A resource as the engine keeps it. No id: the object does not exist."""

    id: str
    properties: Properties
    inputs: Properties = field(default_factory=dict)


def create(session: Session, inputs: Properties, seconds: float, preview: bool, interruption: Interruption) -> State:
    """Creates the object and waits until it is ready.

    Raises RequestError with reason AlreadyExists where it is there already and the session does not upsert;
    InitializationFailedError where it is made but not ready.
    """
    obj = _placed(session, plain(inputs))
    if preview and (has_unknowns(inputs) or not _served(session, obj)):
        return State("", inputs)
    manager = annotation(obj, PATCH_FIELD_MANAGER) or new_field_manager()
    try:
        live = _create(session, obj, manager, preview, interruption)
    except RequestError as error:
        if preview and (error.code in (403, 404) or error.reason == "AlreadyExists"):
            return State("", inputs)
        raise
    if preview:
        live.pop("status", None)
        return State("", state_of(live, inputs, manager))
    return _ready(session, live, inputs, manager, kind_of(obj).api_version, seconds, interruption)


def update(
    session: Session,
    old_state: Properties,
    inputs: Properties,
    ignored: list[str],
    seconds: float,
    preview: bool,
    interruption: Interruption,
) -> State:
    """Applies the inputs to the existing object and waits until it is ready.

    Raises RequestError (reason Conflict: another field manager owns a field) or InitializationFailedError.
    """
    obj = _placed(session, plain(inputs))
    if preview and (has_unknowns(inputs) or not _served(session, obj)):
        return State("", inputs)
    old = plain(old_state)
    former = str(old.get(FIELD_MANAGER) or new_field_manager())
    manager = annotation(obj, PATCH_FIELD_MANAGER) or former
    api_version = str(old.get(API_VERSION) or obj["apiVersion"])
    try:
        live = _update(session, old, obj, former, manager, ignored, preview)
    except RequestError as error:
        if preview and error.code == 403:
            return State("", inputs)
        raise
    if preview:
        return State(id_of(live), state_of(live, inputs, manager, api_version))
    return _ready(session, live, inputs, manager, api_version, seconds, interruption)


def read(session: Session, token: str, resource_id: str, inputs: Properties, state: Properties) -> State:
    """The live object; its inputs cut to what was declared. An empty id where it has gone."""
    namespace, name = parse_id(resource_id)
    known = declared(plain(inputs))
    kind = kind_of(known) if "kind" in known and "apiVersion" in known else kind_of_type(token)
    live = session.objects.get(kind, namespace, name)
    if live is None:
        return State("", {})
    live_inputs = prune(declared(live), known) if "kind" in known else _importable(live)
    old = plain(state)
    manager = str(old.get(FIELD_MANAGER) or annotation(live, PATCH_FIELD_MANAGER) or new_field_manager())
    api_version = str(old.get(API_VERSION) or kind.api_version)
    marked = mark_secrets(live_inputs, inputs)
    return State(resource_id, state_of(live, marked, manager, api_version), marked)


def delete(
    session: Session, resource_id: str, state: Properties, token: str, seconds: float, interruption: Interruption
) -> None:
    """Deletes the object and waits until it has gone; it, or its whole kind, having gone already is success."""
    old = plain(state)
    namespace, name = parse_id(resource_id)
    kind = kind_of(old) if "kind" in old and "apiVersion" in old else kind_of_type(token)
    propagation = _PROPAGATIONS.get(annotation(old, PROPAGATION).lower(), "Foreground")
    answer = session.objects.delete(kind, namespace, name, propagation)
    if answer is None or annotation(old, SKIP_AWAIT) == "true":
        return
    live = answer if "metadata" in answer and answer.get("kind") == kind.kind else old
    if answer.get("kind") == "Status":
        # Deleted at once, or the object is still there with finalizers: only a look tells.
        found = session.objects.get(kind, namespace, name)
        if found is None:
            return
        live = found
    try:
        until_gone(session.objects, live, seconds, interruption)
    except NotReadyError as error:
        raise InitializationFailedError(str(error), resource_id, state) from None
    if (kind.group, kind.kind) == _DEFINITION:
        session.objects.forget_served_by(live)


def diff(session: Session, state: Properties, inputs: Properties, ignored: list[str]) -> Diff:
    """The live object as last seen, cut to the old inputs, against the new inputs."""
    live = plain(state)
    old_inputs = live.pop(INPUTS, None)
    shape = declared(old_inputs) if isinstance(old_inputs, dict) else {}
    new = declared(plain(inputs))
    old = prune(declared(live), shape)
    if name_of(new) and "metadata" in old:
        old["metadata"]["name"] = name_of(live)
    if "metadata" in old and isinstance(new.get("metadata"), dict):
        if session.objects.is_namespaced(kind_of(new)):
            old["metadata"]["namespace"] = namespace_of(live) or "default"
            new["metadata"]["namespace"] = namespace_of(new) or "default"
        else:
            old["metadata"].pop("namespace", None)
            new["metadata"].pop("namespace", None)
    patterns = [parse_property_path(text) for text in ignored]
    found = [change for change in changes(old, new) if not any(covers(p, change.path) for p in patterns)]
    replaced = replacing(found, new, session)
    return Diff(found, replaced, bool(replaced) and deletes_first(new, live))


def state_of(live: Object, inputs: Properties, manager: str, api_version: str | None = None) -> Properties:
    """The plugin's shape of a resource's state: the live object, and beside it what was declared."""
    marked = mark_secrets(live, inputs)
    return marked | {
        INPUTS: mark_secrets(inputs, inputs),
        API_VERSION: api_version or str(live.get("apiVersion") or ""),
        FIELD_MANAGER: manager,
    }


def _ready(
    session: Session,
    live: Object,
    inputs: Properties,
    manager: str,
    api_version: str,
    seconds: float,
    interruption: Interruption,
) -> State:
    try:
        live = until_ready(session.objects, live, seconds, interruption)
    except NotReadyError as error:
        last = error.live or live
        state = state_of(last, inputs, manager, api_version)
        raise InitializationFailedError(str(error), id_of(last), state) from None
    return State(id_of(live), state_of(live, inputs, manager, api_version))


def _create(session: Session, obj: Object, manager: str, preview: bool, interruption: Interruption) -> Object:
    force = session.patch_force or annotation(obj, PATCH_FORCE) == "true"
    objects = session.objects

    def attempt() -> Object:
        if session.upsert:
            return objects.apply(obj, manager, force=force or preview, dry_run=preview)
        return objects.create(obj, manager, dry_run=preview)

    def may_come(error: BaseException) -> bool:
        missing = isinstance(error, NoSuchKindError) or (isinstance(error, RequestError) and error.code == 404)
        return missing and not preview and not interruption.stopped

    # A namespace or definition that the same program makes may be a moment late.
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(may_come),
        stop=tenacity.stop_after_attempt(6),
        wait=tenacity.wait_exponential(multiplier=0.25, max=4.0),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except RequestError as error:
        if error.reason != "AlreadyExists" or preview:
            raise
        leaving = objects.get(kind_of(obj), namespace_of(obj), name_of(obj))
        if leaving is not None and not metadata_of(leaving).get("deletionTimestamp"):
            raise RequestError(
                error.code,
                error.reason,
                f"{kind_of(obj).kind} {id_of(obj)} already exists",
                "import it, rename it, or set upsertExistingObjects on the provider to take it over",
            ) from None
        if leaving is not None:
            until_gone(objects, leaving, 0.0, interruption)
        return retrying(attempt)


def _update(
    session: Session, old: Properties, obj: Object, former: str, manager: str, ignored: list[str], preview: bool
) -> Object:
    objects, kind = session.objects, kind_of(obj)
    force = preview or session.patch_force or annotation(obj, PATCH_FORCE) == "true"
    live: Object | None = None
    if not owned_by_apply(old, manager) or ignored or (kind.group, kind.kind) == _DEFINITION:
        live = objects.get(kind, namespace_of(obj), name_of(obj))
        if live is None:
            raise RequestError(
                404, "NotFound", f"{kind.kind} {id_of(obj)} has gone", "run a refresh, then the update again"
            )
    if (kind.group, kind.kind) == _DEFINITION and live is not None:
        obj["metadata"]["resourceVersion"] = metadata_of(live).get("resourceVersion")
        return objects.replace(obj, manager, dry_run=preview)
    if live is not None:
        for path in map(parse_property_path, ignored):
            _keep(obj, live, path)
        if not preview:
            take_over(objects, live, former, manager)
    else:
        # An apply would bring a deleted object back; with its uid it cannot.
        obj["metadata"]["uid"] = metadata_of(old).get("uid")
    updated = objects.apply(obj, manager, force=force, dry_run=preview)
    if former != manager and not preview:
        empty = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": _place(obj)}
        objects.apply(empty, former, force=False)
    return updated


def _keep(obj: Any, live: Any, path: tuple[str | int, ...]) -> None:
    """Sets a field whose changes are ignored to its live value, so that an apply does not unset it."""
    for step in path[:-1]:
        if not isinstance(obj, dict) or not isinstance(live, dict) or step not in obj or step not in live:
            return
        obj, live = obj[step], live[step]
    if path and isinstance(obj, dict) and isinstance(live, dict) and path[-1] in live:
        obj[path[-1]] = live[path[-1]]


def _place(obj: Object) -> Object:
    return {key: value for key, value in metadata_of(obj).items() if key in ("name", "namespace")}


def _placed(session: Session, obj: Object) -> Object:
    """The object in its namespace, or without one where its kind has none; `core/v1` written as `v1`."""
    kind = kind_of(obj)
    obj["apiVersion"] = kind.api_version
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        if not session.objects.is_namespaced(kind):
            metadata.pop("namespace", None)
        elif not metadata.get("namespace"):
            metadata["namespace"] = session.namespace
    return obj


def _served(session: Session, obj: Object) -> bool:
    try:
        session.objects.mapping(kind_of(obj))
    except NoSuchKindError:
        return False
    return True


def _importable(live: Object) -> Properties:
    inputs = {key: value for key, value in declared(live).items() if key != "status"}
    annotations = metadata_of(inputs).get("annotations")
    if isinstance(annotations, dict):
        for key in ("kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"):
            annotations.pop(key, None)
    return inputs
