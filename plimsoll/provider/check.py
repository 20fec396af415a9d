"""The engine's Check call: names the object, sets its namespace, and rejects unsupported types."""

from typing import Any, Final

from pulumi.runtime.proto import provider_pb2

from plimsoll.errors import PlimsollError
from plimsoll.kube import kind_of, kind_of_type, metadata_of, namespace_of
from plimsoll.provider.autonaming import adopt_autoname, autoname
from plimsoll.provider.inputs import declared
from plimsoll.provider.session import Session
from plimsoll.provider.values import Properties, decode, is_unknown, mark_secrets, plain

_PLUGIN: Final = "use the kubernetes plugin for this stack (provider: plugin)"
_RELEASE: Final = "kubernetes:helm.sh/v3:Release"


def check(session: Session, request: provider_pb2.CheckRequest) -> Properties:
    """The inputs to record and to pass to Create or Update, with their secrets.

    Raises PlimsollError, which names the type, for unsupported types.
    """
    refuse_uncovered(request.type)
    news = decode(request.news)
    inputs = declared(plain(news))
    if metadata_of(inputs).get("generateName"):
        raise PlimsollError(
            f"{request.name}: metadata.generateName has no meaning with server-side apply",
            "set metadata.name, or omit both for an automatic name",
        )
    olds = plain(decode(request.olds))
    if olds:
        adopt_autoname(inputs, olds)
    autoname(inputs, request.name, request.randomSeed, _proposed(request))
    kind = kind_of(inputs) if "kind" in inputs and "apiVersion" in inputs else kind_of_type(request.type)
    metadata = inputs.get("metadata")
    if isinstance(metadata, dict) and not namespace_of(inputs) and session.objects.is_namespaced(kind):
        metadata["namespace"] = session.namespace
    if kind.kind == "CustomResourceDefinition" and not is_unknown(inputs.get("spec")):
        session.objects.declare(inputs)
    return mark_secrets(inputs, news)


def refuse_uncovered(token: str) -> None:
    """Raises PlimsollError for a type that only the plugin supports."""
    if token == _RELEASE:
        what = "Helm releases (declare a helm.v4.Chart)"
    elif token.endswith("Patch"):
        what = "patches of objects that others own"
    elif token.endswith("List"):
        what = "lists of objects (declare each object by itself)"
    else:
        return
    raise PlimsollError(f"{token}: {what}: not supported by the built-in kubernetes provider", _PLUGIN)


def _proposed(request: Any) -> str | None:
    if not request.HasField("autonaming"):
        return None
    modes = provider_pb2.CheckRequest.AutonamingOptions.Mode
    if request.autonaming.mode == modes.DISABLE:
        if not metadata_of(decode(request.news)).get("name"):
            raise PlimsollError(
                f"{request.name}: automatic naming is disabled, and metadata.name is not set", "set metadata.name"
            )
        return None
    return str(request.autonaming.proposed_name) or None
