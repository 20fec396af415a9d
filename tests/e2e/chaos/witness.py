"""Watches a cluster during a whole chaos run, without the proxy, and records the maximum number of objects at once."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.kube import Connection
from plimsoll.labels import DEMAND, WORKSPACE_UID

CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
TRIGGERS = "/api/v1/namespaces/plimsoll-triggers/pods"
_AGAIN_SECONDS = 0.2


class Witness:
    """`most_claims` is, by UID of a Workspace, the maximum number of its NodeClaims at once; `most_triggers` the
    maximum number of trigger pods at once. Objects being deleted do not count."""

    def __init__(self, kubeconfig: Path) -> None:
        self.most_claims: Counter[str] = Counter()
        self.most_triggers = 0
        self.events = 0
        self.blind: list[str] = []
        """Watches that failed or ended: a run with any of these proves nothing."""
        self._kubeconfig = kubeconfig
        self._claims: dict[str, str] = {}
        """Workspace's UID by the claim's."""
        self._triggers: set[str] = set()
        self._stopped = threading.Event()
        self._there = threading.Event()
        """Whether there is an apiserver to watch."""
        self._there.set()
        self._threads = [
            threading.Thread(target=self._watch, args=(path, see), daemon=True)
            for path, see in ((CLAIMS, self._see_claim), (TRIGGERS, self._see_trigger))
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def away(self) -> Iterator[None]:
        """The apiserver is stopped, and may know less afterwards."""
        self._there.clear()
        try:
            yield
        finally:
            self._claims.clear()
            self._triggers.clear()
            self._there.set()

    def _watch(self, path: str, see: Any) -> None:
        try:
            while not self._stopped.is_set():
                if self._there.wait(_AGAIN_SECONDS):
                    self._follow_while_there(path, see)
        except Exception as error:
            self.blind.append(f"{path}: {error!r}")

    def _follow_while_there(self, path: str, see: Any) -> None:
        """Resumes from the last event after each interruption, so that no event is missed."""
        with closing(Connection.open(self._kubeconfig)) as connection:
            version = ""
            while self._there.is_set() and not self._stopped.is_set():
                try:
                    if not version:
                        listed = connection.request("GET", path)
                        for each in listed["items"]:
                            see("ADDED", each)
                        version = listed["metadata"]["resourceVersion"]
                    version = self._follow(connection, path, version, see)
                except PlimsollError as error:
                    if getattr(error, "code", 0) == 410:
                        self.blind.append(f"{path}: {error.message}")
                        version = ""
                    time.sleep(_AGAIN_SECONDS)

    def _follow(self, connection: Connection, path: str, version: str, see: Any) -> str:
        """One watch of some seconds; returns the resource version to resume from."""
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": "5"}
        with connection.stream(path, query=query, read_timeout=30) as lines:
            pending = b""
            for chunk in lines.stream(None):
                *events, pending = (pending + chunk).split(b"\n")
                for event in map(orjson.loads, events):
                    if event["type"] == "ERROR":
                        self.blind.append(f"{path}: {event['object'].get('message')}")
                        return ""
                    self.events += 1
                    if event["type"] != "BOOKMARK":
                        see(event["type"], event["object"])
                    version = event["object"]["metadata"]["resourceVersion"]
        return version

    def _see_claim(self, kind: str, claim: Mapping[str, Any]) -> None:
        metadata = claim["metadata"]
        owner = (metadata.get("labels") or {}).get(WORKSPACE_UID)
        if not owner:
            return
        if kind == "DELETED" or metadata.get("deletionTimestamp"):
            self._claims.pop(metadata["uid"], None)
        else:
            self._claims[metadata["uid"]] = owner
            there = sum(each == owner for each in self._claims.values())
            self.most_claims[owner] = max(self.most_claims[owner], there)

    def _see_trigger(self, kind: str, pod: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        if DEMAND not in (metadata.get("labels") or {}):
            return
        if kind != "DELETED" and not metadata.get("deletionTimestamp") and _asks(pod):
            self._triggers.add(metadata["uid"])
            self.most_triggers = max(self.most_triggers, len(self._triggers))
        else:
            self._triggers.discard(metadata["uid"])


def _asks(pod: Mapping[str, Any]) -> bool:
    text = defaultdict(str, {each["type"]: each.get("reason", "") for each in pod["status"].get("conditions") or ()})
    return text["PodScheduled"] in ("", "Unschedulable")
