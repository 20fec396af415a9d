"""Manifests and other files on this machine."""

from plimsoll.observe.files.checked import checked_objects
from plimsoll.observe.files.documents import ManifestError, read_documents
from plimsoll.observe.files.manifests import READ, objects_of, snapshot_from_files
from plimsoll.observe.files.model_files import ModelFilesError, read_model_files, read_preset_file
from plimsoll.observe.files.policy_config import read_policy_config
from plimsoll.observe.files.price_list import InvalidPriceListError, read_prices
from plimsoll.observe.files.tool_files import tool_file

__all__ = [
    "READ",
    "InvalidPriceListError",
    "ManifestError",
    "ModelFilesError",
    "checked_objects",
    "objects_of",
    "read_documents",
    "read_model_files",
    "read_policy_config",
    "read_preset_file",
    "read_prices",
    "snapshot_from_files",
    "tool_file",
]
