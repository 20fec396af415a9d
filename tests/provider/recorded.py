"""Recordings of the official plugin for a few objects, and the program that it ran."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from plimsoll.kube import id_of
from plimsoll.provider import API_VERSION, FIELD_MANAGER, INPUTS, Properties, mark_secrets

Creation = Literal["plain", "upsert"]
"""Without or with `upsertExistingObjects`: by POST, or by server-side apply."""


@dataclass(frozen=True)
class Recorded:
    """One resource of the plugin's state, secrets unencrypted."""

    type: str
    name: str
    """In Pulumi."""
    inputs: Properties
    live: Properties
    """The object, without managedFields and what differs from one creation to the next."""
    plain: Properties
    """The entry of managedFields after a plain creation, without its time."""
    upsert: Properties

    @property
    def id(self) -> str:
        return id_of(self.inputs)

    def owner(self, creation: Creation) -> Properties:
        return self.plain if creation == "plain" else self.upsert

    def program(self, cpu: str | float = "1000m") -> Properties:
        """The program's resources; `cpu` is the spelling of the CPU quantity."""
        given = copy.deepcopy(self.inputs)
        if self.type.endswith(":Secret"):
            del given["data"]
            given["stringData"] = {"a": "1"}
        spec = given.get("spec", {})
        spec = spec.get("template", {}).get("spec", spec)
        for container in spec.get("containers", ()):
            container["resources"]["requests"]["cpu"] = cpu
        return given

    def object(self, creation: Creation) -> Properties:
        """The live object at the apiserver."""
        metadata = {
            **self.live["metadata"],
            "managedFields": [self.owner(creation)],
            "uid": "u",
            "resourceVersion": "1",
        }
        return copy.deepcopy({**self.live, "metadata": metadata})

    def outputs(self, creation: Creation) -> Properties:
        """The resource's outputs in the state, with its secrets."""
        return mark_secrets(self.object(creation), {}) | {
            INPUTS: mark_secrets(self.inputs, {}),
            API_VERSION: self.inputs["apiVersion"],
            FIELD_MANAGER: "both",
        }


def recorded() -> list[Recorded]:
    """The resources in the order in which Pulumi may create them."""
    entries: list[dict[str, Any]] = yaml.load(
        Path(__file__).with_name("recorded_by_plugin.yaml").read_text(), yaml.CSafeLoader
    )
    return [Recorded(**entry) for entry in entries]
