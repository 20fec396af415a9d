"""The types of options in the help, in plain words: `PATH` and `text|json` for typer's `<path>` and `<text|json>`."""

import re
from typing import Any, Final

_TYPE: Final = re.compile(r"<(?:list\[)?([^>\]]+)\]?>|\[([^\]]*\|[^\]]*)\]")
"""As typer writes it: a type, a list of it, or choices."""
_NUMBERS: Final = ("int", "float")


def write_types_plainly(command: Any) -> None:
    """Changes the left column of the help of this command, and of those below it. An argument has its name only."""
    for parameter in command.params:
        _write_plainly(parameter)
    for below in getattr(command, "commands", {}).values():
        write_types_plainly(below)


def _write_plainly(parameter: Any) -> None:
    written = parameter.get_help_record

    def get_help_record(ctx: Any) -> Any:
        record = written(ctx)
        if record is None:
            return None
        left, text = record
        if parameter.param_type_name == "argument":
            return _TYPE.sub("", left).strip(), text
        return _TYPE.sub(lambda found: _word(found[1] or found[2]), left), text

    parameter.get_help_record = get_help_record


def _word(kind: str) -> str:
    if "|" in kind:
        return kind
    name = kind.split(maxsplit=1)[0].lower()
    return "TEXT" if name == "str" else "NUMBER" if name in _NUMBERS else name.upper()
