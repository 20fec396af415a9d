"""`plimsoll policy check | list`: the policy rules, without Pulumi and without a cluster."""

import datetime
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from plimsoll.cli.shared import (
    ERR,
    REFUSED,
    SETTLED,
    Files,
    Format,
    print_findings,
    print_json,
    print_table,
    required_files,
)
from plimsoll.distribution import version
from plimsoll.errors import PlimsollError
from plimsoll.policy import Located
from plimsoll.text import counted

app = typer.Typer(add_completion=False)


class Written(StrEnum):
    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"


class Listed(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


@app.callback()
def _policy() -> None:
    """Check manifests against the policy rules, without Pulumi and without a cluster."""


@app.command(short_help="Check manifests against the rules.")
def check(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE_OR_DIR", help="manifests; - is standard input")
    ] = None,
    file: Files = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="YAML with environment, rules and exemptions")
    ] = None,
    date: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="date on which exemptions are checked [today, UTC]")
    ] = None,
    output: Annotated[
        Written, typer.Option("--output", "-o", help="text for people, json for scripts, sarif and junit for CI")
    ] = Written.TEXT,
) -> None:
    """Check manifests against the rules: Pods, NodePools, Queues, Workspaces, and values of charts.

    Objects of kinds that no rule reads are skipped and counted. Exit code 0: no findings; 2: findings; 1: an
    invalid file.
    """
    from plimsoll.observe.files import checked_objects, read_policy_config
    from plimsoll.policy import RULES, Checker, assumes_mode, context_of, with_declared

    paths = required_files(files, file)
    configured = read_policy_config(config)
    objects = checked_objects(paths)
    settings = with_declared(objects.manifests, configured)
    if assumes_mode(objects.manifests, settings):
        ERR.print("no Environment: node auto-provisioning counts as disabled, as in `plimsoll plan`", soft_wrap=True)
    report = Checker(context_of(objects.manifests, settings), settings, _day(date)).check(objects.manifests)
    found = [
        (position, Located(finding, *_place(objects.places[position] if position is not None else None, config)))
        for position, finding in report.findings
    ]
    located = sorted((each for _, each in found), key=lambda each: (each.file, each.line, each.finding))
    match output:
        case Written.SARIF:
            from plimsoll.policy import sarif

            print_json(sarif(located, RULES, version()))
        case Written.JUNIT:
            from plimsoll.policy import cases, junit

            sys.stdout.write(junit(cases(objects.manifests, [place.file for place in objects.places], found)))
        case _:
            # By object, whichever file it is in; the same object of two files is two findings.
            shown = sorted(set(located))
            places = [(each.file, each.line) for each in shown]
            print_findings([each.finding for each in shown], Format(output.value), len(objects.manifests), places)
    _print_summary(objects.passed_over, len(objects.manifests), len(report.exempted))
    raise typer.Exit(REFUSED if found else SETTLED)


@app.command("list")
def list_rules(
    output: Annotated[Listed, typer.Option("--output", "-o", help="json and markdown include the options")] = (
        Listed.TEXT
    ),
) -> None:
    """List the rules, with what each requires and where it is enforced."""
    from plimsoll.policy import RULES, described, markdown

    rules = [described(rule) for rule in RULES.values()]
    if output is Listed.JSON:
        print_json(rules)
        return
    if output is Listed.MARKDOWN:
        sys.stdout.write(markdown())
        return
    table = Table(Column("rule", no_wrap=True), "severity", "requires", "enforced in")
    for rule in rules:
        table.add_row(rule["rule"], rule["severity"], rule["summary"], ", ".join(rule["enforced"]))
    print_table(table)


def _day(text: str | None) -> datetime.date:
    if text is None:
        return datetime.datetime.now(datetime.UTC).date()
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise PlimsollError(f"--date {text}: not a date", "use the format 2027-01-31") from None


def _place(place: Any, config: Path | None) -> tuple[str, int]:
    return (place.file, place.line or 1) if place is not None else (str(config or "settings"), 1)


def _print_summary(passed_over: Mapping[str, int], checked: int, exempted: int) -> None:
    """Prints what is checked and what is not, to standard error."""
    ERR.print(f"{counted(checked, 'object')} checked, {counted(exempted, 'finding')} exempted", soft_wrap=True)
    if passed_over:
        kinds = ", ".join(f"{number} {kind}" for kind, number in passed_over.items())
        ERR.print(f"skipped, because no rule reads them: {kinds}", style="yellow", soft_wrap=True)
