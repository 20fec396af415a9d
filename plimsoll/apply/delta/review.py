"""Review: the operations of a part of a Plan, computed from the state and the live objects before any is started."""

import copy
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from plimsoll.apply.delta.outcome import Outcome, Timing
from plimsoll.apply.delta.parts import Part
from plimsoll.apply.engine import DeclaredResource, Operation, Registrations, urn_of
from plimsoll.apply.errors import ClusterUnreachableError, Failure, FailureKind, PlanMismatchError, object_failure
from plimsoll.apply.objects import is_being_deleted, kind_of_key
from plimsoll.apply.state import Manifest, Resource, State, declare, importable
from plimsoll.kube import ConnectionFailedError, Kind, NoSuchKindError, Objects, RequestError
from plimsoll.labels import DEMAND, FIELD_MANAGER, HEADROOM, NODEPOOL, SHARD, WORKSPACE_UID
from plimsoll.model import (
    NO_NODES_FOR,
    Change,
    Deletion,
    DemandRef,
    ObjectKey,
    Owner,
    Reason,
    Refusal,
    is_created,
)
from plimsoll.model.api import WorkspaceRef

_MOST_REQUESTS: Final = 16
"""Maximum number of concurrent requests; each uses a thread."""
_LISTED_FROM: Final = 20
"""From this number of creations of one kind on, one list request checks their names."""
_FORBIDDEN: Final = 403
_CONFLICT: Final = 409
_INVALID: Final = (400, 422)
_MOST_TEXT: Final = 1500
"""Characters of the apiserver's text in a refusal, which may quote whole fields of the object."""
_HELD: Final = Failure(FailureKind.NOT_STARTED, "it stays as long as the change of its owner's workload fails")
_OF_OTHERS: Final = (
    "somebody else has changed these fields: give them the values of `plimsoll plan --output json`, or delete the "
    "object, which is then created again"
)


@dataclass
class Review:
    """The operations to do, the ones that are done already, and the edits that the state needs before."""

    creations: dict[ObjectKey, DeclaredResource] = field(default_factory=dict)
    updates: dict[ObjectKey, DeclaredResource] = field(default_factory=dict)
    deletions: dict[ObjectKey, str] = field(default_factory=dict)
    """UIDs of the objects to delete; empty for one that is terminating or gone, and only leaves the state."""
    done: set[ObjectKey] = field(default_factory=set)
    """Objects that a Plan creates and that exist, because it was made before the result of an earlier one was seen."""
    forgotten: set[ObjectKey] = field(default_factory=set)
    """Deletions whose object no longer exists, or was replaced by another of that name."""
    failed: dict[ObjectKey, Failure] = field(default_factory=dict)
    drop: set[ObjectKey] = field(default_factory=set)
    """Entries of the state whose object no longer exists. They are removed before an object of that name is changed."""
    adopt: dict[ObjectKey, tuple[Manifest, Manifest]] = field(default_factory=dict)
    """Objects of this writer that are missing in the state: (live object, inputs)."""

    @property
    def edits_state(self) -> bool:
        """Whether the state must be edited before an update can reproduce the Plan."""
        return bool(self.drop or self.adopt)

    @property
    def has_work(self) -> bool:
        """Whether there is an operation for the engine, or an edit of the state."""
        return bool(self.edits_state or self.creations or self.updates or self.deletions)

    def held(self, part: Part, failed: Container[ObjectKey]) -> dict[ObjectKey, Failure]:
        """The deletions that wait, as the update of an object of the same owner failed."""
        owners = {update.owner for update in part.updates if update.key in failed}
        return {each.key: _HELD for each in part.deletions if each.owner in owners and each.key in self.deletions}

    def operations(self, state: State) -> dict[ObjectKey, tuple[str, Operation]]:
        """The operations of the engine: URN and operation of each object."""
        created = {key: (urn_of(state.stack, each), Operation.CREATE) for key, each in self.creations.items()}
        updated = {key: (state.resources[key].urn, Operation.UPDATE) for key in self.updates}
        deleted = {key: (state.resources[key].urn, Operation.DELETE) for key in self.deletions}
        return created | updated | deleted

    def registrations(self, state: State) -> Registrations:
        """The resources for the program. Objects without a change are declared exactly as in the state."""
        first = (*self.creations.values(), *self.updates.values())
        moved = self.updates.keys() | self.deletions.keys()
        return Registrations(first, tuple(each.declared for key, each in state.resources.items() if key not in moved))


class Reviewer:
    """Reads live objects through one connection, several at a time."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def review(self, part: Part, state: State) -> Review:
        """Computes the operations. Raises ClusterUnreachableError, or PlanMismatchError if the engine would do more
        than the Plan contains."""
        if state.foreign:
            raise PlanMismatchError(
                f"stack {state.stack} contains {state.foreign[0]}, which Plimsoll did not declare and would delete",
                "move it to another stack with `pulumi state move`",
            )
        pending_deletion = [str(each.key) for each in state.resources.values() if each.pending_deletion]
        if pending_deletion:
            raise PlanMismatchError(
                f"stack {state.stack}: {pending_deletion[0]} is marked for replacement or deletion in its state",
                "run `pulumi state untaint`, or `pulumi state delete` if the resource no longer exists",
            )
        review = Review()
        absent = self._absent([each.key for each in part.creations])
        for creation in part.creations:
            if creation.key in absent:
                self._creation(review, state, creation, None)
        steps: list[tuple[Callable[..., None], Any]] = [
            *((self._look_and_create, each) for each in part.creations if each.key not in absent),
            *((self._update, each) for each in part.updates),
            *((self._deletion, each) for each in part.deletions),
        ]
        self._all(lambda step: self._take(review, state, *step), steps)
        held = review.held(part, review.failed)
        review.failed |= held
        for key in held:
            del review.deletions[key]
        return review

    def _take(self, review: Review, state: State, step: Callable[..., None], operation: Change | Deletion) -> None:
        """One step. An object that the account must not read fails by itself: others of the stack do not depend on
        it."""
        try:
            step(review, state, operation)
        except RequestError as error:
            if error.code != _FORBIDDEN:
                raise
            review.failed[operation.key] = Failure(FailureKind.REFUSED, f"{error.message}; {_remedy(operation)}")

    def _absent(self, keys: list[ObjectKey]) -> set[ObjectKey]:
        """The keys without an object: many keys of one kind are checked by one list of names, few of them one by
        one."""
        kinds: dict[Kind, list[ObjectKey]] = {}
        for key in keys:
            kinds.setdefault(kind_of_key(key), []).append(key)
        absent: set[ObjectKey] = set()
        for kind, many in kinds.items():
            if len(many) >= _LISTED_FROM:
                namespaces = {key.namespace for key in many}
                try:
                    # Lists one namespace: a cluster may have a hundred thousand pods, and the namespace of trigger pods
                    # a few hundred.
                    existing = self._objects.names(kind, namespaces.pop() if len(namespaces) == 1 else "")
                except ConnectionFailedError as error:
                    raise _unreachable(error) from None
                except RequestError as error:
                    if error.code != _FORBIDDEN:
                        raise
                    continue  # each is read, and fails by itself
                absent.update(key for key in many if (key.namespace, key.name) not in existing)
        return absent

    def live(self, keys: Iterable[ObjectKey]) -> dict[ObjectKey, Manifest | None]:
        """The live objects; None for an object that does not exist. Raises ClusterUnreachableError."""
        found: dict[ObjectKey, Manifest | None] = {}

        def look(key: ObjectKey) -> None:
            found[key] = self._get(key)

        self._all(look, list(keys))
        return found

    def delete(self, deletions: Mapping[ObjectKey, str], require: Callable[[], None]) -> dict[ObjectKey, Failure]:
        """Deletes objects by key and UID; those without a UID are left alone. Returns why which were not deleted.
        `require` is called before each request, and raises if the Lease is lost: a successor may keep the object.

        The engine only records these deletions: Pulumi's plugin deletes whatever object has the name, and waits for
        finalizers, which keep a NodeClaim for as long as its node is drained.
        """
        refused: dict[ObjectKey, Failure] = {}

        def delete(item: tuple[ObjectKey, str]) -> None:
            key, uid = item
            try:
                self._objects.delete(kind_of_key(key), key.namespace, key.name, uid, require)
            except RequestError as error:
                kind = FailureKind.CONFLICT if error.code == _CONFLICT else FailureKind.REFUSED
                refused[key] = Failure(kind, object_failure(str(error)).message)
            except ConnectionFailedError as error:
                refused[key] = Failure(FailureKind.UNREACHABLE, error.message)

        self._all(delete, [(key, uid) for key, uid in deletions.items() if uid])
        return refused

    def labelled(
        self, kinds: Iterable[Kind], stack: str | None = None, *, metadata_only: bool = False
    ) -> list[Manifest]:
        """Live objects of these kinds whose label names the stack, or any stack. Raises ClusterUnreachableError."""
        selector = SHARD if stack is None else f"{SHARD}={stack}"
        try:
            return [
                each for kind in kinds for each in self._objects.labelled(kind, selector, metadata_only=metadata_only)
            ]
        except ConnectionFailedError as error:
            raise _unreachable(error) from None

    def refused(self, workloads: Sequence[Change], stack: str) -> dict[ObjectKey, Refusal]:
        """Which of the workloads the apiserver does not accept in a dry run, and why. `stack` is one that could have
        them. Raises ClusterUnreachableError."""
        refused: dict[ObjectKey, Refusal] = {}

        def ask(workload: Change) -> None:
            manifest = with_shard_label(workload.manifest, stack)
            try:
                self._objects.dry_run(manifest, FIELD_MANAGER)
            except (RequestError, NoSuchKindError) as error:
                code = error.code if isinstance(error, RequestError) else 0
                live = self._get(workload.key) if code == _CONFLICT else None
                # That somebody changed fields of our own object says nothing of its pods.
                if live is None or not is_ours(live, manifest):
                    refused[workload.key] = _refusal(workload.key, code, object_failure(str(error)).message)

        self._all(ask, list(workloads))
        return refused

    def _all(self, work: Callable[[Any], None], items: list[Any]) -> None:
        """Results are stored by key, so that the order in which threads end does not matter."""
        try:
            if len(items) < 2:
                for item in items:
                    work(item)
                return
            with ThreadPoolExecutor(min(_MOST_REQUESTS, len(items)), thread_name_prefix="review") as pool:
                list(pool.map(work, items))
        except ConnectionFailedError as error:
            raise _unreachable(error) from None

    def _get(self, key: ObjectKey) -> Manifest | None:
        return self._objects.get(kind_of_key(key), key.namespace, key.name)

    def _is_served(self, key: ObjectKey) -> bool:
        try:
            self._objects.mapping(kind_of_key(key))
        except NoSuchKindError:
            return False
        return True

    def _look_and_create(self, review: Review, state: State, creation: Change) -> None:
        self._creation(review, state, creation, self._get(creation.key))

    def _creation(self, review: Review, state: State, creation: Change, live: Manifest | None) -> None:
        key, known = creation.key, state.resources.get(creation.key)
        manifest = with_shard_label(creation.manifest, state.stack)
        if live is None and not self._is_served(key):
            review.failed[key] = Failure(
                FailureKind.NO_SUCH_KIND, f"the cluster serves no {key.api_version} {key.kind}"
            )
        elif live is None:
            if known is not None:
                review.drop.add(key)
            review.creations[key] = declare(manifest)
        elif is_being_deleted(live):
            review.failed[key] = Failure(FailureKind.BEING_DELETED, f"{key} is still being deleted")
        elif known is not None and known.uid == live["metadata"]["uid"]:
            review.done.add(key)
        elif is_ours(live, manifest):
            review.adopt[key] = (live, importable(live))
            review.done.add(key)
        else:
            if known is not None:
                review.drop.add(key)
            review.failed[key] = _not_ours(key)

    def _update(self, review: Review, state: State, update: Change) -> None:
        key, known = update.key, state.resources.get(update.key)
        live = self._get(key)
        manifest = with_shard_label(_whole(update, known, live), state.stack)
        if live is None or is_being_deleted(live):
            review.failed[key] = Failure(FailureKind.GONE, f"{key} does not exist any more")
            return
        uid, found = live["metadata"]["uid"], importable(live)
        manifest = with_uid(manifest, uid)
        recorded = known.declared.inputs if known is not None and known.uid == uid else None
        if recorded is None and not is_ours(live, manifest):
            review.failed[key] = _not_ours(key)
        elif (failure := self._dry_run(manifest)) is not None:
            review.failed[key] = failure
        else:
            # The engine leaves an object unchanged that is declared as in the state. The state may not be up to date:
            # an engine that was killed does not record what it changed.
            if recorded is None or with_uid(recorded, uid) == manifest != with_uid(found, uid):
                review.adopt[key] = (live, found)
            review.updates[key] = declare(manifest)

    def _deletion(self, review: Review, state: State, deletion: Deletion) -> None:
        key, known = deletion.key, state.resources.get(deletion.key)
        live = self._get(key)
        if live is None and known is not None:
            review.deletions[key] = ""
        elif live is None or deletion.uid not in ("", live["metadata"]["uid"]):
            if known is not None:
                review.drop.add(key)
            review.forgotten.add(key)
        elif (recorded := known is not None and known.uid == live["metadata"]["uid"]) or is_made_for(
            live, deletion.owner
        ):
            if not recorded:
                review.adopt[key] = (live, importable(live))
            review.deletions[key] = "" if is_being_deleted(live) else live["metadata"]["uid"]
        else:
            review.failed[key] = _not_ours(key)

    def _dry_run(self, manifest: Manifest) -> Failure | None:
        """Why the apiserver would reject the change; None if it accepts it. After a rejection, the engine would replace
        the object instead."""
        try:
            self._objects.dry_run(manifest, FIELD_MANAGER)
        except RequestError as error:
            message = object_failure(str(error)).message
            if error.code != _CONFLICT:
                return Failure(FailureKind.REFUSED, message)
            return Failure(FailureKind.CONFLICT, f"{message}; {_OF_OTHERS}")
        return None


def _refusal(key: ObjectKey, code: int, text: str) -> Refusal:
    """Of a workload for which nodes would be requested. Rights, quotas and webhooks are the cluster's."""
    advice = "; set sideEffects of that webhook to None or NoneOnDryRun" if "does not support dry run" in text else ""
    reason = Reason.INVALID_SPEC if code in _INVALID and not advice else Reason.NOT_ALLOWED
    return Refusal(reason, f"{NO_NODES_FOR} {key.kind} {key.namespace}/{key.name}: {text[:_MOST_TEXT]}{advice}")


def with_shard_label(manifest: Mapping[str, Any], stack: str) -> Manifest:
    """The manifest with the label of its shard, and with the annotations that tell the plugin not to wait, and as which
    field manager to apply."""
    copied: Manifest = copy.deepcopy(dict(manifest))
    metadata = copied["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), SHARD: stack}
    metadata["annotations"] = {
        **(metadata.get("annotations") or {}),
        "pulumi.com/skipAwait": "true",
        "pulumi.com/patchFieldManager": FIELD_MANAGER,
    }
    return copied


def with_uid(manifest: Mapping[str, Any], uid: str) -> Manifest:
    """The manifest with the UID of the object that it changes: the apiserver applies it to no other of that name, and
    creates none. The plugin sends the metadata as they are declared."""
    return {**manifest, "metadata": {**manifest["metadata"], "uid": uid}}


def _whole(update: Change, known: Resource | None, live: Manifest | None) -> Manifest:
    """The manifest of an update, completed by what was declared before if it is partial."""
    if not update.partial or live is None:
        return update.manifest
    return _merged(known.declared.inputs if known is not None else importable(live), update.manifest)


def _merged(before: Mapping[str, Any], change: Mapping[str, Any]) -> Manifest:
    """The object, with the fields of the change merged recursively."""
    merged = dict(before)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def is_ours(live: Manifest, manifest: Manifest) -> bool:
    """Whether this environment's writer created the live object for the same Workspace or demand."""
    labels = live["metadata"].get("labels") or {}
    wanted = manifest["metadata"]["labels"]
    return SHARD in labels and all(labels.get(key) == wanted.get(key) for key in (WORKSPACE_UID, DEMAND, HEADROOM))


def is_made_for(live: Manifest, owner: Owner) -> bool:
    """Whether a writer of Plimsoll created a live object that the state does not record, or Karpenter created it from
    the Workspace's own NodePool."""
    if not is_created(live["kind"], live["metadata"]["uid"], ()):
        return False
    labels = live["metadata"].get("labels") or {}
    uid = owner.uid if isinstance(owner, WorkspaceRef) else ""
    return SHARD in labels or (NODEPOOL in labels and bool(uid) and labels.get(WORKSPACE_UID) == uid)


def _not_ours(key: ObjectKey) -> Failure:
    return Failure(
        FailureKind.NOT_OURS,
        f"{key} exists and does not belong to Plimsoll: rename the Workspace, or delete the object",
    )


def _remedy(operation: Change | Deletion) -> str:
    """What gives the controller the rights on the object that it lacks."""
    if isinstance(operation.owner, DemandRef):
        return (
            f"deploy the foundation stack with triggerNamespace: {operation.key.namespace}, "
            "or change spec.demand.namespace of the Environment"
        )
    return "deploy the foundation stack of this release, which gives the controller its rights"


def _unreachable(error: ConnectionFailedError) -> ClusterUnreachableError:
    return ClusterUnreachableError(f"{error.message}; nothing was changed", error.hint)


def outcome_of(
    part: Part,
    review: Review,
    failures: Mapping[ObjectKey, Failure] | None = None,
    timing: Timing | None = None,
) -> Outcome:
    """The outcome of a part; `failures` are those of the update."""
    failed = {**review.failed, **(failures or {})}

    def succeeded(keys: Iterable[ObjectKey]) -> tuple[ObjectKey, ...]:
        return tuple(key for key in keys if key not in failed and key not in review.forgotten)

    return Outcome(
        created=succeeded(each.key for each in part.creations),
        updated=succeeded(each.key for each in part.updates),
        deleted=succeeded(each.key for each in part.deletions),
        forgotten=tuple(review.forgotten),
        failed=MappingProxyType(failed),
        timings=(timing,) if timing is not None else (),
    )
