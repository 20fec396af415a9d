"""The engine's operations on one object: create, update, read, delete."""

from typing import Any, Final

import tenacity

from plimsoll.kube import (
    CREATOR,
    SKIP_AWAIT,
    NoSuchKindError,
    NotReadyError,
    Object,
    RequestError,
    annotation,
    awaited,
    id_of,
    kind_of,
    kind_of_type,
    metadata_of,
    name_of,
    namespace_of,
    new_field_manager,
    owned_by_apply,
    parse_id,
    take_over,
)
from plimsoll.provider.comparison import Path, prune
from plimsoll.provider.inputs import declared
from plimsoll.provider.session import Call, Session
from plimsoll.provider.state import API_VERSION, FIELD_MANAGER, InitializationFailedError, State, state_of
from plimsoll.provider.values import LAST_APPLIED, Properties, has_unknowns, mark_secrets, plain

PATCH_FIELD_MANAGER: Final = "pulumi.com/patchFieldManager"
PATCH_FORCE: Final = "pulumi.com/patchForce"
PROPAGATION: Final = "pulumi.com/deletionPropagationPolicy"
_PROPAGATIONS: Final = {"orphan": "Orphan", "background": "Background"}
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")


def create(call: Call, inputs: Properties) -> State:
    """Creates the object and waits until it is ready.

    Raises RequestError with reason AlreadyExists if it exists and the session does not upsert,
    InitializationFailedError if it was created but is not ready, and PlimsollError, before anything is written, if
    its annotation `pulumi.com/waitFor` is invalid.
    """
    obj = _placed(call.session, plain(inputs))
    if call.preview and (has_unknowns(inputs) or not _served(call.session, obj)):
        return State("", inputs)
    awaited(obj)
    manager = annotation(obj, PATCH_FIELD_MANAGER) or new_field_manager()
    try:
        live = _create(call, obj, manager)
    except RequestError as error:
        if call.preview and (error.code in (403, 404) or error.reason == "AlreadyExists"):
            return State("", inputs)
        raise
    if call.preview:
        live.pop("status", None)
        return State("", state_of(live, inputs, manager, obj["apiVersion"]))
    return _ready(call, live, inputs, manager, obj["apiVersion"])


def update(call: Call, old_state: Properties, inputs: Properties, ignored: list[Path]) -> State:
    """Applies the inputs to the existing object and waits until it is ready.

    Raises RequestError (reason Conflict: another field manager owns a field), InitializationFailedError, or as `create`
    for an invalid annotation.
    """
    obj = _placed(call.session, plain(inputs))
    if call.preview and (has_unknowns(inputs) or not _served(call.session, obj)):
        return State("", inputs)
    awaited(obj)
    old = plain(old_state)
    former = old.setdefault(FIELD_MANAGER, new_field_manager())
    manager = annotation(obj, PATCH_FIELD_MANAGER) or str(former)
    api_version = str(old.get(API_VERSION) or obj["apiVersion"])
    try:
        live = _update(call, old, obj, manager, ignored)
    except RequestError as error:
        if call.preview and error.code == 403:
            return State("", inputs)
        raise
    if call.preview:
        return State(id_of(live), state_of(live, inputs, manager, api_version))
    return _ready(call, live, inputs, manager, api_version)


def read(session: Session, token: str, resource_id: str, inputs: Properties, state: Properties) -> State:
    """The live object, with its inputs limited to the declared fields. The id is empty if it does not exist."""
    namespace, name = parse_id(resource_id)
    known = declared(plain(inputs))
    managed = "kind" in known and "apiVersion" in known
    kind = kind_of(known) if managed else kind_of_type(token)
    live = session.objects.get(kind, namespace, name)
    if live is None:
        return State("", {})
    marked = mark_secrets(prune(declared(live), known) if managed else _importable(live), inputs)
    old = plain(state)
    manager = str(old.get(FIELD_MANAGER) or annotation(live, PATCH_FIELD_MANAGER) or new_field_manager())
    api_version = str(old.get(API_VERSION) or kind.api_version)
    return State(resource_id, state_of(live, marked, manager, api_version), marked)


def delete(call: Call, token: str, resource_id: str, state: Properties) -> None:
    """Deletes the object and waits until it is deleted. It is no error if it, or its kind, does not exist.

    Raises InitializationFailedError if it is not deleted.
    """
    old = plain(state)
    objects = call.session.objects
    namespace, name = parse_id(resource_id)
    kind = kind_of(old) if "kind" in old and "apiVersion" in old else kind_of_type(token)
    propagation = _PROPAGATIONS.get(annotation(old, PROPAGATION).lower(), "Foreground")
    live = objects.delete(kind, namespace, name, propagation)
    if live is not None and live.get("kind") == "Status":
        # It is deleted, or finalizers delay it: read it to find out.
        live = objects.get(kind, namespace, name)
    if live is not None and annotation(old, SKIP_AWAIT) != "true":
        try:
            call.waiting.until_gone(live)
        except NotReadyError as error:
            raise InitializationFailedError(str(error), State(resource_id, state)) from None
    if (kind.group, kind.kind) == _DEFINITION:
        objects.forget_served_by(old)


def _ready(call: Call, live: Object, inputs: Properties, manager: str, api_version: str) -> State:
    try:
        live = call.waiting.until_ready(live)
    except NotReadyError as error:
        state = State(id_of(error.live), state_of(error.live, inputs, manager, api_version))
        raise InitializationFailedError(str(error), state) from None
    return State(id_of(live), state_of(live, inputs, manager, api_version))


def _create(call: Call, obj: Object, manager: str) -> Object:
    objects = call.session.objects

    def attempt() -> Object:
        if call.session.upsert:
            return _apply(call, obj, manager)
        return objects.create(obj, CREATOR, dry_run=call.preview)

    def may_appear(error: BaseException) -> bool:
        missing = isinstance(error, NoSuchKindError) or (isinstance(error, RequestError) and error.code == 404)
        return missing and not call.preview and not call.interruption.stopped

    # A namespace or definition of the same program may be created a moment later.
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(may_appear),
        stop=tenacity.stop_after_attempt(10),
        wait=tenacity.wait_exponential(multiplier=0.05, max=2.0),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except RequestError as error:
        if error.reason != "AlreadyExists" or call.preview:
            raise
        existing = objects.get(kind_of(obj), namespace_of(obj), name_of(obj))
        if existing is not None and not metadata_of(existing).get("deletionTimestamp"):
            raise RequestError(
                error.code,
                error.reason,
                f"{kind_of(obj).kind} {id_of(obj)} already exists",
                "import it, rename it, or set upsertExistingObjects on the provider to take it over",
            ) from None
        if existing is not None:
            call.waiting.until_gone(existing)
        return retrying(attempt)


def _update(call: Call, old: Properties, obj: Object, manager: str, ignored: list[Path]) -> Object:
    definition = (kind_of(obj).group, kind_of(obj).kind) == _DEFINITION
    if not definition and not ignored and old[FIELD_MANAGER] == manager and owned_by_apply(old, manager):
        try:
            # One request. An apply would create a deleted object again; with its UID it cannot.
            return _apply(call, obj | {"metadata": obj["metadata"] | {"uid": metadata_of(old).get("uid")}}, manager)
        except RequestError as error:
            if error.code not in (409, 422) or "uid" not in error.message.lower():
                raise

    def is_stale(error: BaseException) -> bool:
        return isinstance(error, RequestError) and error.code == 409 and "has been modified" in error.message

    # Controllers may write to the object between the read and the update.
    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_stale),
        stop=tenacity.stop_after_attempt(8),
        wait=tenacity.wait_random(0.0, 0.1),
        reraise=True,
    )
    return retrying(_update_live, call, old, obj, manager, ignored)


def _update_live(call: Call, old: Properties, obj: Object, manager: str, ignored: list[Path]) -> Object:
    objects, kind, former = call.session.objects, kind_of(obj), old[FIELD_MANAGER]
    live = objects.get(kind, namespace_of(obj), name_of(obj))
    if live is None:
        raise RequestError(
            404, "NotFound", f"{kind.kind} {id_of(obj)} was deleted", "run a refresh, then the update again"
        )
    if (kind.group, kind.kind) == _DEFINITION:
        # As the plugin does, because an apply would merge versions and schemas instead of replacing them.
        version = metadata_of(live).get("resourceVersion")
        whole = obj | {"metadata": obj["metadata"] | {"resourceVersion": version}}
        return objects.replace(whole, manager, dry_run=call.preview)
    for path in ignored:
        _keep(obj, live, path)
    # Ignored changes may have set it, and the apiserver refuses an apply that contains it.
    obj["metadata"].pop("managedFields", None)
    if not call.preview:
        take_over(objects, live, former, manager)
    updated = _apply(call, obj, manager)
    if former != manager and not call.preview:
        place = {key: value for key, value in metadata_of(obj).items() if key in ("name", "namespace")}
        nothing = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": place}
        return objects.apply(nothing, former, force=False)
    return updated


def _apply(call: Call, obj: Object, manager: str) -> Object:
    """Takes over fields of other managers only with force; in a preview always, to show the result."""
    force = call.preview or call.session.patch_force or annotation(obj, PATCH_FORCE) == "true"
    try:
        return call.session.objects.apply(obj, manager, force=force, dry_run=call.preview)
    except RequestError as error:
        if error.code == 409 and "conflict with" in error.message:
            raise RequestError(
                error.code,
                error.reason,
                error.message,
                f'leave the field to its owner, or take it with the annotation {PATCH_FORCE}: "true"',
            ) from None
        raise


def _keep(obj: Any, live: Any, path: Path) -> None:
    """Sets a field with ignored changes to its live value, so that an apply neither removes nor changes it.

    `*` in the path is every key or index. Elements of lists belong together by their index, unless their names differ.
    """
    if not path:
        return
    step, rest = path[0], path[1:]
    if isinstance(obj, dict) and isinstance(live, dict):
        for key in live.keys() if step == "*" else live.keys() & {step}:
            if not rest:
                obj[key] = live[key]
            elif key in obj:
                _keep(obj[key], live[key], rest)
    elif isinstance(obj, list) and isinstance(live, list):
        for index, (ours, theirs) in enumerate(zip(obj, live, strict=False)):
            if step not in ("*", index) or _element_name(ours) != _element_name(theirs):
                continue
            if rest:
                _keep(ours, theirs, rest)
            else:
                obj[index] = theirs


def _element_name(element: Any) -> Any:
    return element.get("name") if isinstance(element, dict) else None


def _placed(session: Session, obj: Object) -> Object:
    """The object with its namespace, or without one if its kind is cluster-scoped; `core/v1` becomes `v1`."""
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
    """The inputs of an object that no program has declared yet, for an import."""
    inputs = {key: value for key, value in declared(live).items() if key != "status"}
    annotations = metadata_of(inputs).get("annotations")
    if isinstance(annotations, dict):
        for key in (LAST_APPLIED, "deployment.kubernetes.io/revision"):
            annotations.pop(key, None)
    return inputs
