"""Prints the findings of checks of manifests."""

from collections.abc import Iterable, Mapping
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
    findings: "Iterable[Finding]", output: Format, checked: int, places: "Mapping[Finding, str] | None" = None
) -> int:
    """Prints the findings in their order, in JSON as a list, and returns the exit code: 0 without findings, else 2.
    `checked` is the number of objects that were checked; `places` has the place of each in a file, for text output."""
    from plimsoll.model.meta import in_order

    found = in_order(findings)
    if output.document:
        print_document([finding.as_json() for finding in found], output)
    else:
        for finding in found:
            place = (places or {}).get(finding, "")
            where = "".join(f"  {each}" for each in (finding.subject, finding.field, place) if each)
            sign = (f"{finding.severity:<7}", _STYLES[finding.severity])
            OUT.print(Text.assemble(sign, f"  {finding.rule}", (where, "dim")), soft_wrap=True)
            OUT.print(Padding(Text(finding.message, overflow="fold"), (0, 0, 0, 9)))
        none = "nothing found" if checked else "nothing checked"
        OUT.print(Text(counted(len(found), "finding") if found else none, style="bold"))
    return REFUSED if found else SETTLED
