"""Reads the models that Workspaces name from a model hub, in addition to the known presets.

Enabled by `modelHub` of the Environment. The data is stored in a ConfigMap, which the Reporter writes, so that later
rounds, processes and commands do not depend on the hub.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import structlog

from plimsoll.kube import Connection, ConnectionFailedError, RequestError
from plimsoll.model import Snapshot
from plimsoll.model.api import MODELS_NAME, MODELS_NAMESPACE, DeclaredPreset, ModelHub, models_of
from plimsoll.observe.model_hub import HubError, read_hub_model
from plimsoll.presets import catalog_of

AGAIN: Final = timedelta(minutes=1)
"""Time until a request to a hub that did not answer is repeated."""
LASTING_AGAIN: Final = timedelta(minutes=10)
"""Time until a model that the hub does not have, or does not permit, is requested again."""
_AT_ONCE: Final = 4
MOST_OF_NAMESPACE: Final = 100
"""Models that are read for the Workspaces of one namespace."""
_UNNAMED_KEPT: Final = 100
"""Models that are remembered though no Workspace names them."""
_REPOSITORY: Final = re.compile(r"(?=.{1,96}\Z)[A-Za-z0-9][-\w.]*/[A-Za-z0-9][-\w.]*", re.ASCII)
_TOKEN: Final = "HF_TOKEN"

log = structlog.get_logger(__name__)


class Refused(NamedTuple):
    """Why the data of a model is not available, and when it is requested again."""

    why: str
    due: datetime


class HubModels:
    """Requests each model once, on threads of its own, and repeats failed requests later."""

    def __init__(
        self,
        connection: Connection | None = None,
        on_answer: Callable[[], None] = lambda: None,
        timeout: float | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`connection` leads to the cluster with the ConfigMap; None: there is none. `on_answer` is called on another
        thread when an answer has arrived. `timeout` is how many seconds `completed` waits for models that it requests
        for the first time; None: until the deadline of the Environment's hub."""
        self._connection = connection
        self._on_answer = on_answer
        self._timeout = timeout
        self._clock = clock
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="model-hub")
        self._lock = threading.Lock()
        self._hub: ModelHub | None = None
        self._answers: dict[str, DeclaredPreset | Refused] = {}
        self._asking: dict[str, Future[None]] = {}
        self._loaded = False
        self.version = 0
        """Grows with every answer."""

    def completed(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the models that its Workspaces name; the same object if the Environment has no hub."""
        hub = snapshot.environment.spec.model_hub
        if hub is None:
            return snapshot
        if hub != self._hub:
            self._hub = hub
            self._forget_refusals()
        warning = self._load()
        names, beyond = _named(snapshot)
        self._forget_refusals(except_of=frozenset(names))
        self._forget_unnamed(frozenset(names))
        self._forget_without_token(hub)
        missing = [name for name in names if hub.allows(name) and name not in self._answers]
        new = [name for name in missing if name not in self._asking]
        wait(
            [self._ask(hub, name) for name in new],
            hub.deadline_seconds if self._timeout is None else min(self._timeout, hub.deadline_seconds),
        )
        found = {name: self._answers.get(name) if hub.allows(name) else None for name in names}
        return snapshot.model_copy(
            update={
                "hub_models": tuple(each for each in found.values() if isinstance(each, DeclaredPreset)),
                "hub_refusals": beyond
                | {
                    name: _why_not(hub, name, each)
                    for name, each in found.items()
                    if not isinstance(each, DeclaredPreset)
                },
                "warnings": (*snapshot.warnings, *warning),
            }
        )

    def refresh(self) -> None:
        """Repeats, on other threads, the failed requests that are due."""
        hub, now = self._hub, self._clock()
        if hub is None:
            return
        for name, answer in list(self._answers.items()):
            if isinstance(answer, Refused) and answer.due <= now:
                self._ask(hub, name)

    def close(self) -> None:
        """Ends the threads without waiting for answers."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _load(self) -> tuple[str, ...]:
        """Reads the ConfigMap once. Returns a warning if it cannot be read."""
        if self._connection is None or self._loaded:
            return ()
        path = f"/api/v1/namespaces/{MODELS_NAMESPACE}/configmaps/{MODELS_NAME}"
        try:
            kept = models_of(self._connection.request("GET", path))
        except RequestError as error:
            # Without the right to read it, no later request has another answer.
            self._loaded = error.code in (403, 404)
            if error.code == 404:
                return ()
            return (f"ConfigMap {MODELS_NAMESPACE}/{MODELS_NAME}: {error.message}: models are read from the hub again",)
        except ConnectionFailedError:
            return ()
        with self._lock:
            self._answers |= {each.name: each for each in kept}
        self._loaded = True
        return ()

    def _forget_refusals(self, except_of: frozenset[str] = frozenset()) -> None:
        """Forgets those of models that no Workspace names, so that they are not asked for again."""
        with self._lock:
            self._answers = {
                name: each
                for name, each in self._answers.items()
                if name in except_of or isinstance(each, DeclaredPreset)
            }

    def _forget_unnamed(self, names: frozenset[str]) -> None:
        """Forgets the oldest of the models that no Workspace names any more: names are chosen by tenants."""
        with self._lock:
            unnamed = [name for name in self._answers if name not in names]
            for name in unnamed[: max(0, len(unnamed) - _UNNAMED_KEPT)]:
                del self._answers[name]

    def _forget_without_token(self, hub: ModelHub) -> None:
        """Forgets models that were read with a token for owners for which there is none now."""
        with self._lock:
            self._answers = {
                name: each
                for name, each in self._answers.items()
                if isinstance(each, Refused) or not each.gated or hub.has_token_for(name)
            }

    def _ask(self, hub: ModelHub, name: str) -> Future[None]:
        with self._lock:
            asking = self._asking.get(name)
            if asking is None:
                asking = self._asking[name] = self._threads.submit(self._read, hub, name)
            return asking

    def _read(self, hub: ModelHub, name: str) -> None:
        answer: DeclaredPreset | Refused
        try:
            answer = read_hub_model(hub, name, os.environ.get(_TOKEN, "") if hub.has_token_for(name) else "")
        except HubError as error:
            hint = f": {error.hint}" if error.hint else ""
            answer = Refused(f"{error.message}{hint}", self._clock() + (LASTING_AGAIN if error.lasting else AGAIN))
        except Exception as error:  # the model must be asked for again, whatever the hub sent
            log.error("unexpected error in reading a model", model=name, exc_info=error)
            answer = Refused(f"{name} at {hub.endpoint}: {type(error).__name__}", self._clock() + LASTING_AGAIN)
        with self._lock:
            self._answers[name] = answer
            del self._asking[name]
            self.version += 1
        self._on_answer()


def _named(snapshot: Snapshot) -> tuple[tuple[str, ...], dict[str, str]]:
    """The models that Workspaces name, and those beyond what one namespace may name, with what to change."""
    by_namespace: dict[str, dict[str, None]] = {}
    for namespace, name in sorted(_unknown(snapshot)):
        by_namespace.setdefault(namespace, {})[name] = None
    names = dict.fromkeys(name for own in by_namespace.values() for name in list(own)[:MOST_OF_NAMESPACE])
    beyond = {
        name: f"namespace {namespace!r} names {len(own)} models of the hub, and {MOST_OF_NAMESPACE} are read for one "
        "namespace: delete Workspaces, or declare the model in presets of the Environment"
        for namespace, own in by_namespace.items()
        for name in list(own)[MOST_OF_NAMESPACE:]
        if name not in names
    }
    return tuple(names), beyond


def _unknown(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """(namespace, name) in Workspaces that are no known preset and may be models of the hub."""
    known = catalog_of(snapshot.environment.spec.presets)
    for workspace in snapshot.workspaces:
        preset = workspace.spec.inference.preset if workspace.spec.inference is not None else None
        if preset is None or preset.parameters is not None or known.find(preset.name) is not None:
            continue
        if is_repository(preset.name) and not known.why_not(preset.name):
            yield workspace.namespace, preset.name


def is_repository(name: str) -> bool:
    """Whether it can be the name of a model on Hugging Face: `org/name`, without `--` and `..`."""
    return _REPOSITORY.fullmatch(name) is not None and "--" not in name and ".." not in name


def _why_not(hub: ModelHub, name: str, answer: Refused | None) -> str:
    if answer is not None:
        return answer.why
    if not hub.allows(name):
        owners = ", ".join(hub.organizations or ()) or "none"
        return f"modelHub.organizations of the Environment allows models of {owners}: name one of them"
    return f"it is being read from {hub.endpoint}"


def with_hub_models(snapshot: Snapshot, connection: Connection | None = None) -> Snapshot:
    """The snapshot with the models that its Workspaces name, for a command; waits until the hub's deadline."""
    models = HubModels(connection)
    try:
        return models.completed(snapshot)
    finally:
        models.close()
