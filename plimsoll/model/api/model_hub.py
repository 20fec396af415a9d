"""ModelHub: a hub whose models Workspaces may name as `org/name`, and what was read from it."""

import json
from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationError

from plimsoll.model.api.model_parameters import DeclaredPreset
from plimsoll.model.meta import Described

PUBLIC: Final = "https://huggingface.co"
MODELS_NAMESPACE: Final = "plimsoll-system"
MODELS_NAME: Final = "plimsoll-models"
"""The ConfigMap with the models that were read from the hub."""

MOST_MODELS_BYTES: Final = 900_000
"""Most that the ConfigMap keeps; the apiserver accepts 1 MiB."""


def _network(text: str) -> str:
    ip_network(text)
    return text


Organization = Annotated[str, Field(min_length=1, max_length=96)]


class ModelHub(Described):
    """The hub from which the controller reads models, with Hugging Face's URL layout."""

    endpoint: str = Field(default=PUBLIC, max_length=1024, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")
    """Address of the hub, or of a mirror (Hugging Face's HF_ENDPOINT)."""
    organizations: tuple[Organization, ...] | None = Field(default=None, max_length=256)
    """Owners of the models that may be named, the part before the slash; absent: all."""
    token_organizations: tuple[Organization, ...] = Field(default=(), max_length=256)
    """Owners of the gated and private models that are read with the controller's HF_TOKEN. Who may create a Workspace
    learns the size and shape of any of their models by naming it; absent: none."""
    deadline_seconds: int = Field(default=30, ge=1, le=600)
    """How long reading one model may take."""

    private_networks: tuple[Annotated[str, Field(max_length=64), AfterValidator(_network)], ...] = Field(
        default=(), max_length=64
    )
    """Networks (CIDR) besides public addresses that the hub's name, and what the hub redirects to, may be in, such as
    that of a mirror in the cluster. An endpoint that is an address itself is asked there."""

    @property
    def mirrors(self) -> bool:
        """Whether it is another than Hugging Face's own, from which pods download without being told."""
        return self.endpoint.rstrip("/") != PUBLIC

    def allows(self, name: str) -> bool:
        """Whether models of that owner may be named."""
        return self.organizations is None or _is_of(self.organizations, name)

    def has_token_for(self, name: str) -> bool:
        """Whether models of that owner are read with the controller's token."""
        return _is_of(self.token_organizations, name)


def _is_of(organizations: Iterable[str], name: str) -> bool:
    return name.partition("/")[0].casefold() in {each.casefold() for each in organizations}


def models_config_map(models: Iterable[DeclaredPreset]) -> dict[str, Any]:
    """The ConfigMap that keeps these models, one a key: `org--name`, as in Hugging Face's own cache. Those for which it
    has no room are read from the hub again."""
    data: dict[str, str] = {}
    left = MOST_MODELS_BYTES
    for each in models:
        key, text = each.name.replace("/", "--"), json.dumps(each.manifest(), sort_keys=True)
        left -= len(key) + len(text.encode())
        if left < 0:
            break
        data[key] = text
    metadata = {"name": MODELS_NAME, "namespace": MODELS_NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def models_of(config_map: Mapping[str, Any]) -> tuple[DeclaredPreset, ...]:
    """The models that the ConfigMap keeps; entries that cannot be read are left out, to be read from the hub again."""
    found = []
    for text in (config_map.get("data") or {}).values():
        try:
            found.append(DeclaredPreset.model_validate_json(text))
        except ValidationError:
            continue
    return tuple(found)
