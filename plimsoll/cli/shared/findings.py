"""Prints the findings of checks of manifests."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.padding import Padding
from rich.text import Text

from plimsoll.cli.shared.output import OUT, REFUSED, SETTLED, Format, print_document
from plimsoll.text import counted

if TYPE_CHECKING:
    from plimsoll.model.meta import Finding

_STYLES: Final = {"error": "red", "warning": "yellow"}
"""By severity."""


def print_findings(
    found: "Sequence[Finding]", output: Format, checked: int, places: "Sequence[tuple[str, int]]" = ()
) -> int:
    """Prints the findings in their order, in JSON as a list, and returns the exit code: 0 without findings, else 2.
    `checked` is the number of objects that were checked; `places` are file and line of each finding, if it is of a
    file."""
    wheres = [{"file": file, "line": line} for file, line in places] or [{}] * len(found)
    if output.document:
        print_document([{**each.as_json(), **where} for each, where in zip(found, wheres, strict=True)], output)
    else:
        for finding, where in zip(found, wheres, strict=True):
            place = ":".join(map(str, where.values()))
            beside = "".join(f"  {each}" for each in (finding.subject, finding.field, place) if each)
            sign = (f"{finding.severity:<7}", _STYLES[finding.severity])
            OUT.print(Text.assemble(sign, f"  {finding.rule}", (beside, "dim")), soft_wrap=True)
            OUT.print(Padding(Text(finding.message, overflow="fold"), (0, 0, 0, 9)))
        none = "nothing found" if checked else "nothing checked"
        OUT.print(Text(counted(len(found), "finding") if found else none, style="bold"))
    return REFUSED if found else SETTLED
