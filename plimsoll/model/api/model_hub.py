"""ModelHub: a hub whose models Workspaces may name as `org/name`, and what was read from it."""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from plimsoll.model.api.model_parameters import DeclaredPreset
from plimsoll.model.meta import Described

MODELS_NAMESPACE: Final = "plimsoll-system"
MODELS_NAME: Final = "plimsoll-models"
"""The ConfigMap with the models that were read from the hub."""

Organization = Annotated[str, Field(min_length=1, max_length=96)]


class ModelHub(Described):
    """The hub from which the controller reads models, with Hugging Face's URL layout."""

    endpoint: str = Field(
        default="https://huggingface.co", max_length=1024, pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$"
    )
    """Address of the hub, or of a mirror (Hugging Face's HF_ENDPOINT)."""
    organizations: tuple[Organization, ...] | None = Field(default=None, max_length=256)
    """Owners of the models that may be named, the part before the slash; absent: all."""
    deadline_seconds: int = Field(default=30, ge=1, le=600)
    """How long reading one model may take."""

    def allows(self, name: str) -> bool:
        """Whether models of that owner may be named."""
        owner = name.partition("/")[0].casefold()
        return self.organizations is None or owner in {each.casefold() for each in self.organizations}


def models_config_map(models: Iterable[DeclaredPreset]) -> dict[str, Any]:
    """The ConfigMap that keeps these models, one a key: `org--name`, as in Hugging Face's own cache."""
    data = {each.name.replace("/", "--"): json.dumps(each.manifest(), sort_keys=True) for each in models}
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
