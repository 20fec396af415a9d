"""`plimsoll probe`: the program in a reservation pod."""

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.shared import only_without
from plimsoll.home import SERVICE_ACCOUNT_FOLDER
from plimsoll.probe import run

app = typer.Typer(add_completion=False)


@app.command()
def probe(  # noqa: PLR0917 - options of a command, each given by name
    ctx: typer.Context,
    show: Annotated[bool, typer.Option("--print", help="print the UUID; requires no cluster")] = False,
    once: Annotated[
        bool, typer.Option("--once", help="exit when the UUID is written, instead of reserving the GPU")
    ] = False,
    root: Annotated[Path, typer.Option(help="folder with proc/driver/nvidia")] = Path("/"),
    account: Annotated[Path, typer.Option(help="folder of the pod's service account")] = SERVICE_ACCOUNT_FOLDER,
    patience: Annotated[float, typer.Option(help="seconds to wait for the GPU")] = 10.0,
) -> None:
    """Find the one GPU of this pod, write its UUID to the pod, and reserve the GPU.

    Exit code 0: written; 1: the pod cannot be written; 3: no GPU; 4: several GPUs; 5: a GPU partitioned by MIG.
    """
    only_without(ctx, "show", "once", "account")
    raise typer.Exit(run(show=show, once=once, root=root, account=account, timeout=patience))
