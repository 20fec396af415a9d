"""Options that have an effect only with, or only without, another one: refused where they would be ignored.

Options are named as the command's parameters. One that an environment variable sets is not refused: an image may set
it for every command.
"""

from collections.abc import Iterable, Iterator

import typer

from plimsoll.errors import PlimsollError


def only_with(ctx: typer.Context, needed: str, *options: str) -> None:
    """Raises PlimsollError if one of the options is on the command line and the needed one is not set."""
    if not _is_set(ctx, needed):
        for option in _written(ctx, options):
            wanted = _spelled(ctx, needed)
            raise PlimsollError(f"{option} has no effect without {wanted}", f"add {wanted}, or remove {option}")


def only_without(ctx: typer.Context, other: str, *options: str) -> None:
    """Raises PlimsollError if one of the options is on the command line and the other one is set."""
    if _is_set(ctx, other):
        for option in _written(ctx, options):
            raise PlimsollError(f"{option} has no effect with {_spelled(ctx, other)}", "remove one of them")


def none_before_command(ctx: typer.Context) -> None:
    """Raises PlimsollError if an option of a group is on the command line before one of its commands."""
    for option in _written(ctx, ctx.params):
        raise PlimsollError(
            f"{option} has no effect before {ctx.invoked_subcommand}", f"write it after {ctx.invoked_subcommand}"
        )


def _written(ctx: typer.Context, options: Iterable[str]) -> Iterator[str]:
    """Those on the command line, as they are written there."""
    return (_spelled(ctx, name) for name in options if _source(ctx, name) == "COMMANDLINE")


def _is_set(ctx: typer.Context, name: str) -> bool:
    return _source(ctx, name) in ("COMMANDLINE", "ENVIRONMENT")


def _source(ctx: typer.Context, name: str) -> str:
    source = ctx.get_parameter_source(name)
    return "" if source is None else source.name


def _spelled(ctx: typer.Context, name: str) -> str:
    """Such as `--from`; an argument as the help names it, in capitals."""
    param = next(each for each in ctx.command.params if each.name == name)
    written = max(param.opts, key=len)
    return written if written.startswith("-") else str(getattr(param, "metavar", None) or written).upper()
