"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Kubeconfig = Annotated[
    Path | None, typer.Option(help="kubeconfig of the cluster; else KUBECONFIG, ~/.kube/config, or the pod's account")
]
Context = Annotated[str | None, typer.Option(help="context of the kubeconfig")]
EnvironmentName = Annotated[
    str | None, typer.Option("--environment", "-e", help="name of the Environment; else the only one of the cluster")
]
Provider = Annotated[
    str,
    typer.Option(
        envvar="PLIMSOLL_PROVIDER", help="Kubernetes provider of the engine: plugin, or attached (the built-in one)"
    ),
]
Backend = Annotated[str, typer.Option(envvar="PULUMI_BACKEND_URL", help="where the state lives, file:// or s3://")]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(envvar="PULUMI_CONFIG_PASSPHRASE_FILE", help="file with the passphrase of the secrets provider"),
]
WorkFolder = Annotated[
    Path | None, typer.Option(envvar="PLIMSOLL_WORK_FOLDER", help="folder of the engine's working files")
]
