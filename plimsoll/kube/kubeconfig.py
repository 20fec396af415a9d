"""Kubeconfig: the content of a kubeconfig, and its context."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from plimsoll.errors import PlimsollError
from plimsoll.kube.connection import Connection

_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields with a path relative to the folder of the kubeconfig."""


class SettingsError(PlimsollError):
    """A kubeconfig that cannot be used."""


@dataclass(frozen=True)
class Kubeconfig:
    """The current context of a kubeconfig."""

    content: dict[str, Any] = field(repr=False)
    context: str

    @classmethod
    def read(cls, text_or_path: str, context: str | None = None) -> "Kubeconfig":
        """Reads YAML or JSON text, or a file.

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
            cluster = next(entry["context"]["cluster"] for entry in content["contexts"] if entry["name"] == name)
            next(entry["cluster"]["server"] for entry in content["clusters"] if entry["name"] == cluster)
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
        return cls(content, name)

    def connect(self) -> Connection:
        """Opens a connection. Raises SettingsError if the user's credentials cannot be loaded, and
        ConnectionFailedError if its exec plugin returns none."""
        from kubernetes import client
        from kubernetes.config import ConfigException

        from plimsoll.kube.credentials import load_content

        configuration = client.Configuration()
        try:
            loaded = load_content(configuration, self.content, self.context)
        except (ConfigException, OSError, ValueError) as error:
            raise SettingsError(f"kubeconfig: {error}", "renew the credentials of its user") from None
        return Connection(configuration, loaded.account, loaded.renew)
