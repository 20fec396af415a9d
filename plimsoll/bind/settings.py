"""The settings of `plimsoll bind`, from its file and its options."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from plimsoll.errors import PlimsollError
from plimsoll.model.api import BinderSettings
from plimsoll.model.meta import describe_errors
from plimsoll.yaml_text import problem_of


def read_settings(
    file: Path | None,
    reservation: Mapping[str, str | None],
    scheduler_name: str | None,
    placement: Sequence[str] = (),
) -> BinderSettings:
    """The settings of the file, with the options on top; None: not given. `placement` has NODEPOOL=STRATEGY.

    Raises PlimsollError that names each invalid field.
    """
    try:
        given: Any = yaml.safe_load(file.read_text()) if file is not None else {}
    except yaml.YAMLError as error:
        raise PlimsollError(f"settings {file}: {problem_of(error)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PlimsollError(f"settings {file}: {error}") from None
    if given is None:
        given = {}
    if not isinstance(given, dict) or not isinstance(given.get("reservation") or {}, dict):
        raise PlimsollError(f"settings {file}: a mapping is needed, such as reservation: {{image: ...}}")
    options = {field: value for field, value in reservation.items() if value is not None}
    given = {**given, "reservation": {**(given.get("reservation") or {}), **options}}
    if scheduler_name is not None:
        given = {**given, "schedulerName": scheduler_name}
    if placement:
        given = {**given, "placement": dict(_strategy(each) for each in placement)}
    if not given["reservation"].get("image"):
        raise PlimsollError("no image for reservations", "set --image, or reservation.image in the file of --settings")
    try:
        return BinderSettings.model_validate(given)
    except ValidationError as error:
        where = "settings" if file is None else f"settings {file}"
        fields = ", ".join(field.alias or name for name, field in BinderSettings.model_fields.items())
        raise PlimsollError(f"{where}: {describe_errors(error)}", f"its fields: {fields}") from None


def _strategy(option: str) -> tuple[str, str]:
    node_pool, equals, strategy = option.partition("=")
    if not (node_pool and equals and strategy):
        raise PlimsollError(f"--placement {option}: NODEPOOL=STRATEGY is needed", "such as --placement l4=spread")
    return node_pool, strategy
