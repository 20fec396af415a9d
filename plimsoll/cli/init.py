"""`plimsoll init`: writes a small Pulumi project."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.shared import OUT, only_without
from plimsoll.errors import PlimsollError
from plimsoll.project import ClusterKind, Language

app = typer.Typer(add_completion=False)


@app.command()
def init(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(help="folder of the project; it may exist, but must not contain these files")
    ],
    on: Annotated[ClusterKind | None, typer.Option(help="where the GPU nodes come from [prompts for it]")] = None,
    demand: Annotated[
        bool | None,
        typer.Option(
            "--demand/--no-demand",
            help="request nodes for pending pods that share GPUs [prompts for it; yes without a terminal]",
        ),
    ] = None,
    language: Annotated[
        Language | None,
        typer.Option(
            help="what declares the environment: settings of its stack, or a typed program "
            "[prompts for it; yaml without a terminal]"
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="name of the project [name of the folder]")] = None,
    template: Annotated[bool, typer.Option("--template", help="Write a template for `pulumi new` instead.")] = False,
    wheel: Annotated[
        Path | None, typer.Option(help="Require this wheel, which is copied into the project, not a published version.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Write a Pulumi project: program, stacks, policies, a CI job and a README.

    The command does not connect to the cluster; a preview of the written stacks needs only a kubeconfig.
    """
    from plimsoll.project import check_wheel, project_files, template_files, write_project

    only_without(ctx, "template", "name", "wheel")
    if wheel is not None:
        check_wheel(wheel)
    kind = on or _ask()
    if demand is not None and not kind.provisions:
        raise PlimsollError("--demand has no effect with --on byo", "remove it: nothing requests nodes there")
    requests = _ask_demand() if demand is None and kind.provisions else bool(demand)
    declared = language or _ask_language()
    named = name or folder.resolve().name
    project = (
        template_files(kind, demand=requests, language=declared)
        if template
        else project_files(kind, named, wheel.name if wheel else None, demand=requests, language=declared)
    )
    for path in write_project(folder, project, replace=force):
        OUT.print(f"wrote {path}", highlight=False, soft_wrap=True)
    chosen = f"--on {kind.value} --language {declared.value}"
    if kind.provisions:
        chosen += " --demand" if requests else " --no-demand"
    OUT.print(f"chosen: {chosen}", highlight=False, soft_wrap=True)
    if wheel is not None:
        shutil.copyfile(wheel, folder / wheel.name)
        OUT.print(f"copied {folder / wheel.name}", highlight=False, soft_wrap=True)
    if template:
        OUT.print(f"next: pulumi new {folder.resolve()} --dir ANOTHER_FOLDER", soft_wrap=True)
    else:
        OUT.print(f"next: read {folder / 'README.md'}", soft_wrap=True)


def _ask() -> ClusterKind:
    if not sys.stdin.isatty():
        raise PlimsollError("--on is missing", f"set it to one of {', '.join(kind.value for kind in ClusterKind)}")
    for kind in ClusterKind:
        OUT.print(f"{kind.value:<8} {kind.summary}", highlight=False)
    return ClusterKind(typer.prompt("Where do the GPU nodes come from?", type=ClusterKind, default=ClusterKind.BYO))


def _ask_language() -> Language:
    if not sys.stdin.isatty():
        return Language.YAML
    question = "What declares the environment: settings (yaml), or a typed program (python)?"
    return Language(typer.prompt(question, type=Language, default=Language.YAML))


def _ask_demand() -> bool:
    if not sys.stdin.isatty():
        return True
    return typer.confirm("Request nodes from Karpenter for pending pods that share GPUs?", default=True)
