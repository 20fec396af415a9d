"""`plimsoll probe`: what runs in a reservation."""

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.probe import ACCOUNT, run

app = typer.Typer(add_completion=False)


@app.command()
def probe(
    show: Annotated[bool, typer.Option("--print", help="print the UUID; needs no cluster")] = False,
    once: Annotated[bool, typer.Option("--once", help="end when it is written, rather than hold the GPU")] = False,
    root: Annotated[Path, typer.Option(help="folder that has proc/driver/nvidia")] = Path("/"),
    account: Annotated[Path, typer.Option(help="folder of the pod's service account")] = ACCOUNT,
    patience: Annotated[float, typer.Option(help="seconds in which the GPU may appear")] = 10.0,
) -> None:
    """Find the one GPU that this pod was given, write its UUID on the pod, and hold it.

    Exit code 0: written; 1: the pod or the cluster refuses; 3: no GPU; 4: several GPUs; 5: a GPU cut by MIG.
    """
    raise typer.Exit(run(show=show, once=once, root=root, account=account, patience=patience))
