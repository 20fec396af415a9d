"""The account that a connection uses, for messages, and the failures of exec plugins, which the client library only
logs."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.config import kube_config

_POD = "the pod's service account"


@dataclass(frozen=True)
class Account:
    """The user of a kubeconfig's context, or the service account of a pod."""

    name: str = "the kubeconfig"
    """Such as `context 'prod'`."""
    plugin: str = ""
    """The command of its exec plugin, as the kubeconfig has it; empty where it has none."""

    @classmethod
    def of_pod(cls) -> "Account":
        return cls(_POD)

    @classmethod
    def of_file(cls, kubeconfig: Path | None, context: str | None) -> "Account":
        """Of a kubeconfig that the client library could load."""
        path = str(kubeconfig) if kubeconfig else kube_config.KUBE_CONFIG_DEFAULT_LOCATION
        return cls.of_content(kube_config.KubeConfigMerger(path).config, context)

    @classmethod
    def of_content(cls, content: Any, context: str | None) -> "Account":
        """Of the content of a kubeconfig that the client library could load: mappings, or its ConfigNodes."""
        name = context or content["current-context"]
        scope = next(each["context"] for each in content["contexts"] if each["name"] == name)
        users = content["users"] if "users" in content and "user" in scope else ()
        user = next((each["user"] for each in users if each["name"] == scope["user"]), None) or {}
        return cls(f"context {name!r}", str(user["exec"]["command"]) if "exec" in user else "")

    @property
    def renewal(self) -> str:
        """What to do about credentials that the apiserver does not accept."""
        if self.plugin:
            return f"log in again, so that the exec plugin {self.plugin!r} returns valid credentials"
        if self.name == _POD:
            return "check that the pod mounts a token of this cluster and for this apiserver's audience"
        return "renew the token or certificate of its user in the kubeconfig"


@contextmanager
def plugin_failures() -> Iterator[list[str]]:
    """What exec plugins failed with on this thread within: the client library logs it, and goes on without a user."""
    handler = _OfThread()
    logging.getLogger().addHandler(handler)
    try:
        yield handler.messages
    finally:
        logging.getLogger().removeHandler(handler)


class _OfThread(logging.Handler):
    """Keeps the errors that its own thread logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.messages.append(" ".join(record.getMessage().removeprefix("exec: ").split()))
