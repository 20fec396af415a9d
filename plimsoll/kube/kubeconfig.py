"""Kubeconfig: the cluster, user and namespace of a kubeconfig."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.errors import PlimsollError
from plimsoll.home import SERVICE_ACCOUNT_FOLDER
from plimsoll.kube.connection import Connection

_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields with a path relative to the folder of the kubeconfig."""


class SettingsError(PlimsollError):
    """A setting of the provider resource that the built-in provider does not support, or cannot use."""


@dataclass(frozen=True)
class Kubeconfig:
    """The current context of a kubeconfig."""

    server: str
    namespace: str
    content: dict[str, Any] = field(repr=False)
    context: str
    in_cluster: bool = False
    """Whether the user is the service account of this pod, whose token rotates."""

    @classmethod
    def ambient(cls, context: str | None = None) -> "Kubeconfig":
        """The default kubeconfig: `KUBECONFIG`, in a pod its service account, else `~/.kube/config`.

        Raises SettingsError if there is none, or more than one.
        """
        named = os.environ.get("KUBECONFIG", "")
        if os.pathsep in named:
            raise SettingsError(f"KUBECONFIG names several files: {named}", "name one")
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if named or not host:
            return cls.read(named or "~/.kube/config", context)
        server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        content = {
            "clusters": [
                {
                    "name": "pod",
                    "cluster": {"server": server, "certificate-authority": str(SERVICE_ACCOUNT_FOLDER / "ca.crt")},
                }
            ],
            "users": [{"name": "pod", "user": {"tokenFile": str(SERVICE_ACCOUNT_FOLDER / "token")}}],
            "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod"}}],
            "current-context": "pod",
        }
        space = SERVICE_ACCOUNT_FOLDER / "namespace"
        return cls(server, space.read_text().strip() if space.exists() else "default", content, "pod", True)

    @classmethod
    def read(cls, text_or_path: str, context: str | None = None, cluster: str | None = None) -> "Kubeconfig":
        """Reads YAML or JSON text, or a file. `cluster` takes the place of the context's cluster.

        Raises SettingsError if it is not a kubeconfig or its context is missing.
        """
        text, folder = text_or_path, Path.cwd()
        if "\n" not in text and not text.lstrip().startswith("{"):
            path = Path(text).expanduser()
            try:
                text, folder = path.read_text(), path.absolute().parent
            except OSError as error:
                raise SettingsError(
                    f"kubeconfig {path}: {error.strerror}", "set the path of an existing file"
                ) from None
        try:
            content = yaml.safe_load(text)
            name = context or content.get("current-context") or ""
            scope = next(entry["context"] for entry in content["contexts"] if entry["name"] == name)
            scope["cluster"] = wanted = cluster or scope["cluster"]
            server = next(entry["cluster"]["server"] for entry in content["clusters"] if entry["name"] == wanted)
        except (yaml.YAMLError, KeyError, TypeError, AttributeError):
            raise SettingsError("the kubeconfig is invalid", "set the text or the path of a kubeconfig") from None
        except StopIteration:
            raise SettingsError(
                f"the kubeconfig has no context {name!r}, or no cluster of that context",
                "set `context` to one that it has",
            ) from None
        try:
            for entry in (*content["clusters"], *(content.get("users") or [])):
                for key in _FILES:
                    settings = entry.get("cluster") or entry.get("user") or {}
                    if settings.get(key):
                        settings[key] = str(folder / settings[key])
        except (TypeError, AttributeError):
            raise SettingsError(
                "the kubeconfig is invalid: its users are not a list, or a file is not text", "give another"
            ) from None
        return cls(str(server).rstrip("/"), scope.get("namespace") or "default", content, name)

    def connect(self) -> Connection:
        """Opens a connection. Raises SettingsError if the user's credentials cannot be loaded, and
        ConnectionFailedError if its exec plugin returns none."""
        if self.in_cluster:
            return Connection.open()
        from kubernetes import client
        from kubernetes.config import ConfigException

        from plimsoll.kube.credentials import load_content

        configuration = client.Configuration()
        try:
            loaded = load_content(configuration, self.content, self.context)
        except (ConfigException, OSError, ValueError) as error:
            raise SettingsError(f"kubeconfig: {error}", "renew the credentials of its user") from None
        return Connection(configuration, loaded.account, loaded.renew)
