"""Options that several commands share."""

import os
from pathlib import Path
from typing import Annotated

import typer


def contexts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Completes the names of the contexts of the kubeconfig, or of all files of KUBECONFIG; none of a file that cannot
    be read."""
    import yaml

    given = ctx.params.get("kubeconfig") or os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config"
    names: dict[str, bool] = {}  # in order, and each once
    for path in filter(None, str(given).split(os.pathsep)):
        try:
            config = yaml.safe_load(Path(path).read_text())
            names |= {each["name"]: True for each in config["contexts"] if each["name"].startswith(incomplete)}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
            continue
    return list(names)


Kubeconfig = Annotated[
    Path | None, typer.Option(help="kubeconfig file [KUBECONFIG, ~/.kube/config, or the pod's service account]")
]
Files = Annotated[
    list[str] | None,
    typer.Option("--file", "-f", metavar="FILE_OR_DIR", help="manifests instead of a cluster; - is standard input"),
]
Paths = Annotated[
    list[str] | None, typer.Argument(metavar="FILE_OR_DIR", help="the same as --file", show_default=False)
]
"""Of a command with `Files`; `named_files` are both."""
Context = Annotated[str | None, typer.Option(help="context of the kubeconfig", autocompletion=contexts)]
EnvironmentName = Annotated[
    str | None, typer.Option("--environment", "-e", help="name of the Environment [the only one of the cluster]")
]
Backend = Annotated[
    str, typer.Option(envvar="PULUMI_BACKEND_URL", help="backend of the Pulumi state, file:// or s3://")
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(envvar="PULUMI_CONFIG_PASSPHRASE_FILE", help="file with the passphrase of the secrets provider"),
]
WorkFolder = Annotated[
    Path | None, typer.Option(envvar="PLIMSOLL_WORK_FOLDER", help="folder for working files of the Pulumi engine")
]
SecretsProvider = Annotated[
    str,
    typer.Option(
        envvar="PLIMSOLL_SECRETS_PROVIDER",
        help="secrets provider of new stacks: passphrase, or the URL of a key: awskms://, azurekeyvault://, gcpkms://, "
        "hashivault://",
    ),
]
PolicyPacks = Annotated[
    list[Path] | None,
    typer.Option("--policy-pack", help="folder of a policy pack that every update must pass; may be repeated"),
]
LeaseDuration = Annotated[
    float,
    typer.Option(
        envvar="PLIMSOLL_LEASE_DURATION", help="seconds after the last renewal until another controller takes the Lease"
    ),
]
LeaseRenewDeadline = Annotated[
    float,
    typer.Option(envvar="PLIMSOLL_LEASE_RENEW_DEADLINE", help="seconds without renewal until the Lease counts as lost"),
]
LeaseRetryPeriod = Annotated[float, typer.Option(envvar="PLIMSOLL_LEASE_RETRY_PERIOD", help="seconds between renewals")]
WatchSilence = Annotated[
    float,
    typer.Option(
        min=5,
        envvar="PLIMSOLL_WATCH_SILENCE",
        help="seconds without an event, a bookmark or an end after which a watch has failed",
    ),
]
