"""The judge of a chaos run finds what it is there for, in logs that are written here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from plimsoll.apply import POD_UID
from tests.e2e.chaos.judge import ACCOUNT, Epoch, Judgement, judge

FIRST, SECOND = (f"host_1_0a1b2c3d.0000000{number}-0000-0000-0000-000000000000" for number in (1, 2))
"""Identities of two holders."""


def at(second: float) -> str:
    return f"2026-01-01T00:00:{second:09.6f}Z"


def pod_of(holder: str) -> str:
    return holder.partition(".")[2]


def event(second: float, verb: str, resource: str, answer: dict[str, Any], code: int = 200, **more: Any) -> Any:
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "requestURI": f"/{resource}",
        "user": {"username": ACCOUNT},
        "objectRef": {"resource": resource, "namespace": "plimsoll-system" if resource == "leases" else ""},
        "responseStatus": {"code": code},
        "responseObject": answer,
        "requestReceivedTimestamp": at(second),
        "stageTimestamp": at(second + 0.1),
        **more,
    }


def lease(second: float, revision: int, holder: str) -> Any:
    metadata = {"name": "plimsoll", "resourceVersion": str(revision)}
    return event(second, "update", "leases", {"metadata": metadata, "spec": {"holderIdentity": holder}})


def by(holder: str) -> dict[str, Any]:
    return {"user": {"username": ACCOUNT, "extra": {POD_UID: [pod_of(holder)]}}}


def deletion(second: float, revision: int, holder: str, name: str = "a") -> Any:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(revision)}
    return event(second, "delete", "nodeclaims", {"metadata": metadata}, **by(holder))


def creation(second: float, holder: str) -> Any:
    """Of patches, the log has no content."""
    about = {"objectRef": {"resource": "nodeclaims", "name": "a"}}
    made = event(second, "patch", "nodeclaims", {}, 201, **by(holder), **about)
    del made["responseObject"]
    return made


def acquired(holder: str) -> Any:
    return {"event": "acquired the Lease", "identity": holder, "timestamp": at(0)}


def deleting(second: float, name: str = "a") -> Any:
    return {"event": "deleting", "uid": f"uid-{name}", "timestamp": at(second)}


def creating(second: float) -> Any:
    return {"event": "creating", "objects": ["Deployment x/a", "NodeClaim a"], "timestamp": at(second)}


def judged(folder: Path, epochs: Sequence[list[Any]], *logs: list[Any]) -> Judgement:
    parts = [b"".join(orjson.dumps(each) + b"\n" for each in events) for events in epochs]
    (folder / "audit.log").write_bytes(b"".join(parts))
    paths = []
    for number, log in enumerate(logs):
        paths.append(folder / f"loop-{number}.log")
        paths[-1].write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in log) + b'{"event": "cut of')
    restored = [Epoch(sum(map(len, parts[:number])), 20) for number in range(1, len(parts))]
    return judge(folder / "audit.log", paths, restored)


def test_what_the_holder_planned_is_right(tmp_path: Path) -> None:
    events = [lease(1, 10, FIRST), creation(3, FIRST), deletion(5, 14, FIRST)]
    found = judged(tmp_path, [events], [acquired(FIRST), creating(2), deleting(4)])
    assert found == Judgement(created=1, deleted=1)


def test_a_former_holder_is_found_by_the_revision_whatever_the_clocks_say(tmp_path: Path) -> None:
    events = [lease(1, 10, FIRST), lease(5, 20, SECOND), deletion(4.9, 21, FIRST)]
    logs = ([acquired(FIRST), deleting(2)], [acquired(SECOND)])
    found = judged(tmp_path, [events], *logs)
    assert "the Lease was held by" in found.wrongful[0] and SECOND in found.wrongful[0]
    assert (len(found.wrongful), found.terms) == (1, 1)
    events[-1] = deletion(5.1, 19, FIRST)
    assert judged(tmp_path, [events], *logs).wrongful == []


def test_what_is_in_no_plan_of_the_holder_is_found(tmp_path: Path) -> None:
    logs = ([acquired(FIRST), deleting(2, "b"), creating(9)], [acquired(SECOND), deleting(2)])
    found = judged(tmp_path, [[lease(1, 10, FIRST), deletion(3, 12, FIRST), creation(8, FIRST)]], *logs)
    assert ["in no plan" in each for each in found.wrongful] == [True, True]


def test_a_plan_of_an_earlier_term_does_not_count(tmp_path: Path) -> None:
    events = [lease(1, 10, FIRST), lease(3, 12, SECOND), lease(5, 14, FIRST), deletion(6, 16, FIRST)]
    logs = ([acquired(FIRST), deleting(2)], [acquired(SECOND)])
    assert "in no plan" in judged(tmp_path, [events], *logs).wrongful[0]


def test_an_object_that_is_removed_at_once_is_held_against_the_time(tmp_path: Path) -> None:
    gone = deletion(3, 0, FIRST) | {"responseObject": {"status": "Success", "details": {"uid": "uid-a"}}}
    log = [acquired(FIRST), deleting(2)]
    assert judged(tmp_path, [[lease(1, 10, FIRST), gone]], log).wrongful == []
    found = judged(tmp_path, [[lease(1, 10, FIRST), lease(2.5, 12, SECOND), gone]], log)
    assert "the Lease was held by" in found.wrongful[0]


def test_only_the_first_deletion_of_an_object_counts(tmp_path: Path) -> None:
    others = deletion(2, 11, FIRST) | {"user": {"username": "karpenter"}}
    found = judged(tmp_path, [[lease(1, 10, FIRST), others, deletion(3, 11, FIRST)]], [acquired(FIRST)])
    assert found == Judgement()


def test_a_restored_etcd_counts_its_revisions_anew(tmp_path: Path) -> None:
    before = [lease(1, 10, FIRST), lease(5, 30, SECOND)]
    after = [deletion(9, 35, FIRST), lease(11, 36, SECOND), deletion(13, 37, SECOND, "b")]
    logs = ([acquired(FIRST), deleting(8)], [acquired(SECOND), deleting(12, "b")])
    assert judged(tmp_path, [before, after], *logs).wrongful == []
    assert len(judged(tmp_path, [before + after], *logs).wrongful) == 1, "taken for one epoch"


def test_refused_writes_and_dry_runs_are_no_writes(tmp_path: Path) -> None:
    message = {"message": "the Lease is held by x: only the holder may write"}
    refused = event(2, "delete", "nodeclaims", message, 403)
    tried = deletion(3, 12, SECOND) | {"requestURI": "/nodeclaims/a?dryRun=All"}
    found = judged(tmp_path, [[lease(1, 10, FIRST), refused, tried]], [acquired(FIRST)])
    assert found == Judgement(fenced=1)
