"""The rule on the fields of Workspaces: Plimsoll's by its schema, KAITO's by fields that exclude each other."""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from plimsoll.labels import GROUP
from plimsoll.model.api import INFERENCE_XOR_TUNING, NEEDS_PRESET_OR_TEMPLATE, PRESET_XOR_TEMPLATE, WorkspaceSpec
from plimsoll.model.meta import section, wrong_fields
from plimsoll.policy.context import PolicyContext
from plimsoll.policy.fields import Manifest, is_kind, join, whole
from plimsoll.policy.rule import Family, Fault, Rule
from plimsoll.policy.workspaces import workspace_of


def _shape(manifest: Manifest, _: PolicyContext, __: Any) -> Iterator[Fault]:
    if is_kind(manifest, GROUP, "Workspace"):
        yield from _of_ours(manifest)
    elif (workspace := workspace_of(manifest)) is not None:
        inference = section(workspace.spec, "inference")
        given = ["preset" in inference, "template" in inference]
        if "inference" in workspace.spec and sum(given) != 1:
            field = join(workspace.path, "inference")
            yield Fault(field, f"{field}: {PRESET_XOR_TEMPLATE if all(given) else NEEDS_PRESET_OR_TEMPLATE}")
        if "inference" in workspace.spec and "tuning" in workspace.spec:
            field = join(workspace.path, "tuning")
            yield Fault(field, f"{field}: {INFERENCE_XOR_TUNING}")


def _of_ours(manifest: Manifest) -> Iterator[Fault]:
    try:
        WorkspaceSpec.model_validate(whole(manifest.get("spec") or {}))
    except ValidationError as error:
        for path, wrong in wrong_fields(error, WorkspaceSpec):
            field = f"spec.{path}".rstrip(".")
            yield Fault(field, f"{field}: {wrong}")


RULES: Final = (
    Rule(
        "workspace-shape",
        Family.MODE,
        "A Workspace has valid fields, and a preset or a template.",
        "Correct the field; the Workspace reference lists the fields.",
        ("Workspace", "InferenceSet"),
        _shape,
        loop=False,
    ),
)
