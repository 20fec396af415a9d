"""Loads the cluster and the credentials of a kubeconfig's context."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    ConfigNode,
    KubeConfigLoader,
    KubeConfigMerger,
)

from plimsoll.kube.account import Account
from plimsoll.kube.exec_plugin import ExecPlugin


@dataclass(frozen=True)
class Credentials:
    """Of a user. `renew` sets them in the configuration again where they have changed or expire soon; its argument is
    whether the apiserver has refused them (401)."""

    account: Account
    renew: Callable[[bool], None] = lambda _: None


class NoSuchContextError(ConfigException):
    """The kubeconfig has no such context; `hint` names those that it has."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"it has no context {name}")
        self.hint = hint


def load_file(configuration: client.Configuration, kubeconfig: Path | None, context: str | None) -> Credentials:
    """As `load_content`, of a file, or of those that the client library reads by default."""
    files = KubeConfigMerger(str(kubeconfig) if kubeconfig else KUBE_CONFIG_DEFAULT_LOCATION or "~/.kube/config")
    if files.config is None:
        raise ConfigException("there is no such file")
    named = [name for content in files.config_files.values() if (name := content.get("current-context"))]
    if named:
        # Of the first file that has one, as kubectl does. The client library takes that of the last.
        files.config.value["current-context"] = named[0]
    return load_content(configuration, files.config, context, files.save_changes)


def load_content(
    configuration: client.Configuration, content: Any, context: str | None, save: Callable[[], None] | None = None
) -> Credentials:
    """Sets the server and the credentials of `configuration`. Those of an exec plugin are to be renewed before they
    expire, and a token in a file as it is replaced.

    `content` has mappings, or the client library's ConfigNodes; `save` is called when that library changes them. Raises
    ConnectionFailedError if an exec plugin returns no credentials, and the errors of the client library.
    """
    config = content if isinstance(content, ConfigNode) else ConfigNode("kubeconfig", content)
    name = context or config["current-context"]
    entry = config["contexts"].get_with_name(name, safe=True)
    if entry is None:
        names = ", ".join(str(each["name"]) for each in config["contexts"].value or ())
        others = f"set --context to one that it has ({names}), or" if names else "it has no contexts: set"
        raise NoSuchContextError(name, f"{others} another file with --kubeconfig")
    cluster = config["clusters"].get_with_name(entry["context"]["cluster"])
    user = entry["context"].safe_get("user") or ""
    settings, rotates = _settings_of(config, user)
    if settings is None:
        loader = KubeConfigLoader(config, name, config_base_path=None, config_persister=save)
        loader.load_and_set(configuration)
        account = Account(f"context {name!r}", user)
        return Credentials(account, lambda _: loader.load_and_set(configuration)) if rotates else Credentials(account)
    account = Account(f"context {name!r}", user, settings["command"])
    folder = Path(cluster.path).absolute().parent if cluster.path else None
    plugin = ExecPlugin(account, settings.value, cluster["cluster"].value, folder)

    def renew(refused: bool) -> None:
        if plugin.due or refused:
            users = [{"name": user, "user": plugin.credentials()}]
            given = ConfigNode("kubeconfig", {"contexts": [entry], "clusters": [cluster], "users": users})
            KubeConfigLoader(given, name, config_base_path=None).load_and_set(configuration)

    renew(False)
    return Credentials(account, renew)


def _settings_of(config: ConfigNode, user: str) -> tuple[ConfigNode | None, bool]:
    """Settings of the user's exec plugin, None where there is none or a token is used in its place; and whether the
    token is read from a file."""
    entry = config["users"].get_with_name(user, safe=True) if user and config.safe_get("users") else None
    if entry is None:
        return None, False
    token, file = map(entry["user"].safe_get, ("token", "tokenFile"))
    settings = None if token or file or "exec" not in entry["user"] else entry["user"]["exec"]
    return settings, bool(file and not token)
