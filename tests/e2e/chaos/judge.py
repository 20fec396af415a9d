"""Judges a chaos run by the audit log of the apiserver: each NodeClaim that the controllers' account created or deleted
is held against the plan of the Lease's holder at that moment.

Who held the Lease is what its writes in the audit log say, and the moment is an etcd revision: the Lease and NodeClaims
share them, so that no clock decides. A restored etcd counts its revisions anew from the restored one, which begins
another epoch. What the holder had planned is in its log, which has a plan before it is applied.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from plimsoll.apply import POD_UID

ACCOUNT = "system:serviceaccount:plimsoll-system:plimsoll"
LEASE = "plimsoll"


@dataclass(frozen=True)
class Held:
    """A write of the Lease: from this revision on, `holder` has it, whose term began with a request at `since`."""

    revision: int
    holder: str
    since: str


@dataclass(frozen=True)
class Write:
    """A NodeClaim that was created or deleted. Times are those of the request, RFC 3339 in UTC."""

    deletes: bool
    name: str
    uid: str
    user: str
    pod: str
    """UID of the pod whose token was used."""
    revision: int
    """0: the object was removed at once, or applied, and the event has none."""
    began: str
    ended: str

    def __str__(self) -> str:
        done = "deleted" if self.deletes else "created"
        return f"{self.began}: NodeClaim {self.name} ({self.uid}) {done} at {self.revision} by the pod {self.pod}"


@dataclass(frozen=True)
class Planned:
    """What the log of one controller says that it was about to do."""

    holder: str
    at: str
    created: frozenset[str]
    """Names of NodeClaims."""
    deleted: frozenset[str]
    """Their UIDs."""

    def has(self, write: Write) -> bool:
        return write.uid in self.deleted if write.deletes else write.name in self.created


class Epoch(NamedTuple):
    """After an older etcd was restored."""

    offset: int
    """Size of the audit log then."""
    revision: int
    """The etcd's."""


@dataclass
class Judgement:
    created: int = 0
    deleted: int = 0
    terms: int = 0
    """How often the Lease changed hands."""
    fenced: int = 0
    """Writes of NodeClaims by a former holder that the apiserver refused."""
    wrongful: list[str] = field(default_factory=list)


def judge(audit_log: Path, logs: Iterable[Path], epochs: Sequence[Epoch] = (), since: int = 0) -> Judgement:
    """`logs` are those of the controllers; `epochs` those after the first; `since` the size of the audit log when the
    first began."""
    found, held = Judgement(), list[Held]()
    planned = [each for log in logs for each in plans(log)]
    for restored, events in _epochs(audit_log, epochs, since):
        writes = _writes(events)
        held = _terms([each for each in held if each.revision <= restored], _holders(events))
        found.fenced += sum(_is_fenced(event) for event in events)
        taken = (after for before, after in pairwise(held) if after.holder not in ("", before.holder))
        found.terms += sum(each.revision > restored for each in taken)
        for write in _effective(writes):
            if write.user != ACCOUNT:
                continue
            found.deleted += write.deletes
            found.created += not write.deletes
            if fault := _fault(write, held, planned):
                found.wrongful.append(f"{write}: {fault}")
    return found


def _fault(write: Write, held: Sequence[Held], planned: Iterable[Planned]) -> str:
    """Why the write is wrongful; empty if it is not."""
    terms = _terms_of(write, held)
    holders = {each.holder for each in terms}
    terms = [each for each in terms if each.holder.endswith(f".{write.pod}")]
    if not terms:
        return f"the Lease was held by {holders or 'nobody'}"
    for term in terms:
        if any(
            each.holder == term.holder and term.since <= each.at <= write.ended and each.has(write) for each in planned
        ):
            return ""
    return f"it was in no plan of {holders}"


def _terms_of(write: Write, held: Sequence[Held]) -> list[Held]:
    """The Lease at the write's revision; without one, each state of it while the request ran."""
    if write.revision:
        at = bisect_right(held, write.revision, key=attrgetter("revision"))
        return [held[at - 1]] if at else []
    before = [each for each in held if each.since <= write.began]
    return before[-1:] + [each for each in held if write.began < each.since <= write.ended]


def _terms(before: list[Held], own: Sequence[Held]) -> list[Held]:
    """All of them by revision. A renewal continues the term."""
    held = list(before)
    for each in sorted(own, key=attrgetter("revision")):
        same = bool(held) and held[-1].holder == each.holder
        held.append(Held(each.revision, each.holder, held[-1].since if same else each.since))
    return held


def plans(log: Path) -> Iterator[Planned]:
    """The plans in the log of a controller, which may have been restarted."""
    holder = ""
    for line in log.read_bytes().splitlines():
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:  # the last line of a killed process
            continue
        match entry.get("event"):
            case "acquired the Lease":
                holder = entry["identity"]
            case "creating":
                names = frozenset(each.removeprefix("NodeClaim ") for each in entry["objects"])
                yield Planned(holder, entry["timestamp"], names, frozenset())
            case "deleting":
                yield Planned(holder, entry["timestamp"], frozenset(), frozenset([entry["uid"]]))


def _epochs(audit_log: Path, epochs: Sequence[Epoch], since: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """The revision with which each epoch begins, and its events that concern the Lease or NodeClaims."""
    begins = [0, *(each.revision for each in epochs)]
    ends = [*(each.offset for each in epochs), audit_log.stat().st_size]
    with audit_log.open("rb") as lines:
        lines.seek(since)
        for begin, end in zip(begins, ends, strict=True):
            events = []
            while lines.tell() < end and (line := lines.readline()):
                # Most lines are about other kinds, and reading JSON takes longer.
                if b'"resource":"leases"' in line or b'"resource":"nodeclaims"' in line:
                    events.append(orjson.loads(line))
            yield begin, [event for event in events if _counts(event)]


def _counts(event: Mapping[str, Any]) -> bool:
    about = event.get("objectRef") or {}
    return event["stage"] == "ResponseComplete" and "dryRun=" not in event["requestURI"] and "subresource" not in about


def _holders(events: Iterable[Mapping[str, Any]]) -> list[Held]:
    found = []
    for event in events:
        about = event["objectRef"]
        changed = about["resource"] == "leases" and event["verb"] in ("create", "update", "patch")
        if changed and about["namespace"] == "plimsoll-system" and event["responseStatus"]["code"] in (200, 201):
            lease = event["responseObject"]
            holder = lease["spec"].get("holderIdentity") or ""
            if lease["metadata"]["name"] == LEASE:
                began = event["requestReceivedTimestamp"]
                found.append(Held(int(lease["metadata"]["resourceVersion"]), holder, began))
    return found


def _writes(events: Iterable[Mapping[str, Any]]) -> list[Write]:
    """NodeClaims that were created or deleted, by whomever."""
    found = []
    for event in events:
        about, code = event["objectRef"], event["responseStatus"]["code"]
        deletes = event["verb"] == "delete" and code in (200, 202)
        if about["resource"] != "nodeclaims" or not (deletes or code == 201):
            continue
        answer = event.get("responseObject") or {}
        metadata = answer.get("metadata") or {}
        found.append(
            Write(
                deletes,
                metadata.get("name") or about.get("name", ""),
                # The answer to the deletion of an object without finalizers is a Status.
                metadata.get("uid") or (answer.get("details") or {}).get("uid", ""),
                event["user"]["username"],
                (event["user"].get("extra", {}).get(POD_UID) or [""])[0],
                int(metadata.get("resourceVersion") or 0),
                event["requestReceivedTimestamp"],
                event["stageTimestamp"],
            )
        )
    return found


def _effective(writes: Iterable[Write]) -> Iterator[Write]:
    """Without deletions of what was being deleted."""
    done: set[str] = set()
    for write in sorted(writes, key=attrgetter("ended")):
        if not write.deletes:
            yield write
        elif write.uid not in done:
            done.add(write.uid)
            yield write


def _is_fenced(event: Mapping[str, Any]) -> bool:
    ours = event["objectRef"]["resource"] == "nodeclaims" and event["user"]["username"] == ACCOUNT
    said = event["responseStatus"]["code"] == 403 and (event["responseStatus"], event.get("responseObject"))
    return ours and "only the holder" in str(said)
