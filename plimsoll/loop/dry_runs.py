"""Dry runs of the workloads that new nodes are for: no node is requested for one that the apiserver does not accept."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from plimsoll.apply import Applier
from plimsoll.loop.refused_operations import FIRST_PAUSE, LONGEST_PAUSE
from plimsoll.model import Change, ObjectKey, Plan, Refusal, Snapshot


class _Refused(NamedTuple):
    refusal: Refusal
    generations: tuple[int | None, int | None]
    """Of the Workspace and of the Environment, for which it was asked."""
    pause: timedelta
    until: datetime


class DryRuns:
    """What the apiserver answered. A restart forgets it, and asks again before anything is requested.

    A refusal holds for one generation of the Workspace and of the Environment, and is asked again after a pause:
    quotas and webhooks change.
    """

    def __init__(self, applier: Applier) -> None:
        self._applier = applier
        self._accepted: dict[ObjectKey, Mapping[str, Any]] = {}
        """Manifests of workloads whose nodes the last Plan requests."""
        self._refused: dict[str, _Refused] = {}
        """By the UID of the Workspace."""

    def observed(self, snapshot: Snapshot, now: datetime) -> Mapping[str, Refusal]:
        """The refusals that hold now; those of other generations are forgotten."""
        if not self._refused:
            return {}
        now_of = {each.uid: _generations(each.generation, snapshot) for each in snapshot.workspaces}
        self._refused = {uid: each for uid, each in self._refused.items() if now_of.get(uid) == each.generations}
        # A clock that was set back since would make the pause longer.
        held = {uid: each for uid, each in self._refused.items() if each.until - each.pause <= now < each.until}
        return {uid: each.refusal for uid, each in held.items()}

    def ask(self, plan: Plan, snapshot: Snapshot, now: datetime) -> bool:
        """Asks for the workloads of the Plan. Returns whether one is refused, so that the Plan must not be applied.

        Raises ClusterUnreachableError: without an answer nothing may be requested.
        """
        asked = [each for each in plan.dry_runs if self._accepted.get(each.key) != each.manifest]
        answers = self._answers(asked)
        self._accepted = {each.key: each.manifest for each in plan.dry_runs if each.key not in answers}
        generations = {each.uid: each.generation for each in snapshot.workspaces} if asked else {}
        for each in asked:
            uid, refusal = each.owner.uid, answers.get(each.key)
            before = self._refused.pop(uid, None)
            if refusal is not None:
                pause = min(before.pause * 2, LONGEST_PAUSE) if before is not None else FIRST_PAUSE
                of = _generations(generations.get(uid), snapshot)
                self._refused[uid] = _Refused(refusal, of, pause, now + pause)
        return bool(answers)

    def _answers(self, asked: Sequence[Change]) -> Mapping[ObjectKey, Refusal]:
        """The refusals. Of workloads that differ in their Workspace alone, as in a burst, one is asked, and the others
        only if it is refused: each has an answer of its own then."""
        if not asked:
            return {}
        alike: dict[tuple[str, bytes], list[Change]] = {}
        for each in asked:
            alike.setdefault(_but_for_workspace(each), []).append(each)
        answers = dict(self._applier.dry_run([first for first, *_ in alike.values()]))
        others = [each for first, *rest in alike.values() if first.key in answers for each in rest]
        return {**answers, **(self._applier.dry_run(others) if others else {})}

    def due(self, now: datetime) -> datetime | None:
        """When a refused one is asked again next."""
        return min((each.until for each in self._refused.values() if each.until > now), default=None)


def _but_for_workspace(workload: Change) -> tuple[str, bytes]:
    """Namespace and manifest, without the hash and wherever a value is the name or the UID of the Workspace."""
    manifest = dict(workload.manifest)
    manifest["metadata"] = {**manifest["metadata"], "annotations": {}}
    text = orjson.dumps(manifest, option=orjson.OPT_SORT_KEYS)
    for own in (workload.owner.uid, workload.owner.name):
        text = text.replace(b'"%b"' % own.encode(), b'""')
    return workload.key.namespace, text


def _generations(of_workspace: int | None, snapshot: Snapshot) -> tuple[int | None, int | None]:
    return of_workspace, snapshot.environment.generation
