"""Sessions: the settings of the provider resource that an attached engine has configured."""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from weakref import WeakSet

import orjson

from plimsoll.errors import PlimsollError
from plimsoll.kube import Interruption, Kubeconfig, Objects, SettingsError, Waiting

_MOST_SESSIONS: Final = 256
_MOST_CONNECTIONS: Final = 16
"""Connections that are kept for further sessions: a kubeconfig with a new token is a new user."""
_PREFIX: Final = "kubernetes:config:"
_REFUSED: Final = {
    "renderYamlToDirectory": "rendering YAML to a directory",
    "alwaysRender": "rendering YAML to a directory",
}


class Session:
    """One engine with one of its provider resources."""

    def __init__(self, objects: Objects, kubeconfig: Kubeconfig, settings: "Settings") -> None:
        self.objects = objects
        self.kubeconfig = kubeconfig
        self.namespace = settings.get("namespace") or kubeconfig.namespace
        """Namespace of objects that set none."""
        self.settings = settings
        self.upsert = settings.flag("upsertExistingObjects", "PULUMI_K8S_UPSERT_EXISTING_OBJECTS")
        self.patch_force = settings.flag("enablePatchForce", "PULUMI_K8S_ENABLE_PATCH_FORCE")
        self.config_map_mutable = settings.flag("enableConfigMapMutable", "PULUMI_K8S_ENABLE_CONFIGMAP_MUTABLE")
        self.secret_mutable = settings.flag("enableSecretMutable", "PULUMI_K8S_ENABLE_SECRET_MUTABLE")
        self._lock = threading.Lock()
        self._cancelled = False
        self._interruptions: WeakSet[Interruption] = WeakSet()

    def renewed(self) -> "Session":
        """A session with the same settings that is not cancelled."""
        return Session(self.objects, self.kubeconfig, self.settings)

    def interruption(self) -> Interruption:
        """The interruption of one call; `cancel` stops it, also if it was called before."""
        interruption = Interruption()
        with self._lock:
            self._interruptions.add(interruption)
            cancelled = self._cancelled
        if cancelled:
            interruption.stop()
        return interruption

    def cancel(self) -> None:
        """Ends the waits of all current and later calls."""
        with self._lock:
            self._cancelled = True
            present = list(self._interruptions)
        for interruption in present:
            interruption.stop()


class Sessions:
    """The sessions of the engines' connections; there is one connection for each provider resource of a program."""

    def __init__(self) -> None:
        self._by_peer: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, peer: str, session: Session) -> None:
        with self._lock:
            self._by_peer[peer] = session
            self._by_peer.move_to_end(peer)
            while len(self._by_peer) > _MOST_SESSIONS:
                self._by_peer.popitem(last=False)

    def get(self, peer: str) -> Session:
        """The session of a connection. Raises PlimsollError if the connection was not configured, and others have
        different settings.

        After half an hour without calls, an engine opens a new connection without configuring it again.
        """
        with self._lock:
            found = self._by_peer.get(peer)
            if found is not None:
                return found
            known = {session.settings.fingerprint: session for session in self._by_peer.values()}
        if len(known) != 1:
            raise PlimsollError("the engine has not configured this provider", "run the update again")
        found = next(iter(known.values())).renewed()
        self.put(peer, found)
        return found

    def cancel(self, peer: str) -> None:
        with self._lock:
            session = self._by_peer.get(peer)
        if session is not None:
            session.cancel()


@dataclass(frozen=True)
class Call:
    """One call of an engine, with its session and its timeout, and whether it is a preview."""

    session: Session
    interruption: Interruption
    seconds: float = 0.0
    """The resource's custom timeout in seconds; 0 if it has none."""
    preview: bool = False

    @property
    def waiting(self) -> Waiting:
        return Waiting(self.session.objects, self.interruption, self.seconds)


class Settings(Mapping[str, str]):
    """The `kubernetes:config:*` variables of a provider resource, with the environment variables of the plugin as
    defaults."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._values = {key.removeprefix(_PREFIX): value for key, value in variables.items() if value != ""}

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def fingerprint(self) -> str:
        """A fingerprint: equal for equal settings, and without their values."""
        return hashlib.sha256(orjson.dumps(self._values, option=orjson.OPT_SORT_KEYS)).hexdigest()

    def flag(self, name: str, environment: str, default: bool = False) -> bool:
        value = self._values.get(name, os.environ.get(environment))
        return default if value is None else value == "true"

    def refuse_uncovered(self) -> None:
        """Raises SettingsError, which names the setting, for settings that only the plugin supports."""
        for name, what in _REFUSED.items():
            if self._values.get(name, "false") != "false":
                raise SettingsError(
                    f"{name}: {what} is not supported by the built-in provider",
                    "use the kubernetes plugin for this stack (provider: plugin)",
                )
        if not self.flag("enableServerSideApply", "PULUMI_K8S_ENABLE_SERVER_SIDE_APPLY", default=True):
            raise SettingsError(
                "enableServerSideApply: false is not supported by the built-in provider",
                "leave it on, or use the kubernetes plugin for this stack (provider: plugin)",
            )


class Cluster:
    """The served cluster, with a connection for each user: the latest, and those of present sessions."""

    def __init__(self, served: Kubeconfig) -> None:
        self.served = served
        self._lock = threading.Lock()
        self._by_user: dict[bytes, Objects] = {}
        self.objects_of(served)

    def objects_of(self, kubeconfig: Kubeconfig) -> Objects:
        """The objects by the credentials of a kubeconfig. Raises SettingsError if these cannot be loaded."""
        key = orjson.dumps([kubeconfig.content, kubeconfig.context], option=orjson.OPT_SORT_KEYS)
        digest = hashlib.sha256(key).digest()
        with self._lock:
            found = self._by_user.pop(digest, None) or Objects(kubeconfig.connect())
            self._by_user[digest] = found  # the latest is the last
            if len(self._by_user) > _MOST_CONNECTIONS:
                # Its sessions may go on to use it, and open what they need.
                self._by_user.pop(next(iter(self._by_user))).connection.close()
            return found

    def close(self) -> None:
        with self._lock:
            for objects in self._by_user.values():
                objects.connection.close()

    def configure(self, settings: "Settings") -> Session:
        """A session for the settings, with their credentials if they have some.

        Raises SettingsError for settings that are not supported, or that select another cluster than the served one.
        """
        settings.refuse_uncovered()
        context, cluster = settings.get("context"), settings.get("cluster")
        chosen = self.served
        if "kubeconfig" in settings:
            chosen = Kubeconfig.read(_kubeconfig_text(settings["kubeconfig"]), context, cluster)
        elif context or cluster:
            chosen = Kubeconfig.read(orjson.dumps(chosen.content).decode(), context, cluster)
        if chosen.server != self.served.server:
            raise SettingsError(
                f"the program's kubeconfig is for {chosen.server}, but the built-in provider serves "
                f"{self.served.server}",
                "start it with that kubeconfig and context, or use the kubernetes plugin (provider: plugin)",
            )
        return Session(self.objects_of(chosen), chosen, settings)


def _kubeconfig_text(value: str) -> str:
    """A kubeconfig object arrives as JSON; a kubeconfig text may be a JSON string."""
    if value.startswith('"'):
        try:
            unquoted = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        return str(unquoted)
    return value
