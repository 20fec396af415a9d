"""The models that are served by name: the built-in catalog, declared ones, and what a `config.json` says."""

from plimsoll.presets.catalog import CatalogModel, InvalidPresetsError, ModelCatalog, read_catalog
from plimsoll.presets.declared import COMPUTED, catalog_of, declared_preset, read_presets, with_parameters
from plimsoll.presets.kaito_catalog import as_csv, from_kaito
from plimsoll.presets.model_config import InvalidModelConfigError, read_model_config, shape_fields
from plimsoll.presets.model_preset import DISK_HEADROOM_GIB, ModelPreset
from plimsoll.presets.shape import ModelShape

__all__ = [
    "COMPUTED",
    "DISK_HEADROOM_GIB",
    "CatalogModel",
    "InvalidModelConfigError",
    "InvalidPresetsError",
    "ModelCatalog",
    "ModelPreset",
    "ModelShape",
    "as_csv",
    "catalog_of",
    "declared_preset",
    "from_kaito",
    "read_catalog",
    "read_model_config",
    "read_presets",
    "shape_fields",
    "with_parameters",
]
