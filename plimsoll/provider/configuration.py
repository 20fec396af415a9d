"""The provider resource: checks its settings, and compares them when they change."""

from typing import Any

import orjson

from plimsoll.kube import Kubeconfig, SettingsError
from plimsoll.provider.session import Settings
from plimsoll.provider.values import Properties, has_unknowns, is_unknown, plain


def check_config(news: Properties) -> list[dict[str, str]]:
    """Failures (`property`, `reason`) for settings that the built-in provider does not support."""
    values = {key: _text(value) for key, value in plain(news).items() if not has_unknowns(value)}
    try:
        Settings(values).refuse_uncovered()
    except SettingsError as error:
        return [{"property": error.message.partition(":")[0], "reason": str(error)}]
    return []


def diff_config(olds: Properties, news: Properties) -> tuple[list[str], list[str]]:
    """Names of the settings that changed, and of those that select another cluster and so replace all objects."""
    old, new = plain(olds), plain(news)
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    place = [key for key in ("kubeconfig", "context", "cluster") if key in changed]
    identifiers = old.get("clusterIdentifier"), new.get("clusterIdentifier")
    if all(identifiers):
        return changed, ["clusterIdentifier"] if identifiers[0] != identifiers[1] else []
    if any(is_unknown(new.get(key)) for key in place):
        return changed, place
    before, after = _server(old), _server(new)
    return changed, place if before and after and before != after else []


def _server(settings: dict[str, Any]) -> str | None:
    if not settings.get("kubeconfig"):
        return None
    try:
        return Kubeconfig.read(_text(settings["kubeconfig"]), settings.get("context"), settings.get("cluster")).server
    except SettingsError:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
