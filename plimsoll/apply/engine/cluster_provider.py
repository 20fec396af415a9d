"""The Kubernetes provider of the engines: Pulumi's plugin, which each engine starts."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll.apply.engine.environment import user_home
from plimsoll.apply.errors import ProviderMissingError
from plimsoll.apply.identity import ClusterIdentity
from plimsoll.apply.settings import ApplySettings, plugin_version

_INSTALL_SECONDS: Final = 300
"""Limit of the download of the plugin."""


@dataclass(frozen=True)
class ClusterProvider:
    """A provider: `environment` variables for the engines' processes, `inputs` of the provider resource, `version` of
    the plugin, and the cluster."""

    environment: Mapping[str, str]
    inputs: Mapping[str, str]
    version: str
    cluster: ClusterIdentity


def find_provider(settings: ApplySettings, pulumi: Path, cluster: Callable[[], ClusterIdentity]) -> ClusterProvider:
    """The provider, downloaded if it is not installed. Raises ProviderMissingError if that is not possible; nothing
    replaces it."""
    version = plugin_version()
    _need_plugin(settings, pulumi, version)
    # Existing objects are updated instead of failing, because a killed update may have created them.
    inputs = {"upsertExistingObjects": "true"}
    if settings.context:
        inputs["context"] = settings.context
    return ClusterProvider(_kubeconfig(settings), inputs, version, cluster())


def _kubeconfig(settings: ApplySettings) -> dict[str, str]:
    """The variable with the absolute paths of the kubeconfig's files, because engines run in folders of their own."""
    named = str(settings.kubeconfig or os.environ.get("KUBECONFIG", ""))
    files = [str(Path(each).expanduser().absolute()) for each in named.split(os.pathsep) if each]
    return {"KUBECONFIG": os.pathsep.join(files)} if files else {}


def _need_plugin(settings: ApplySettings, pulumi: Path, version: str) -> None:
    home = user_home(settings)
    if any((home / "plugins").glob(f"resource-kubernetes-v{version}*/pulumi-resource-kubernetes*")):
        return
    command = [str(pulumi), "plugin", "install", "resource", "kubernetes", f"v{version}"]
    try:
        subprocess.run(
            command,
            env={**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=True,
        )
    except subprocess.SubprocessError as error:
        output = getattr(error, "stderr", None)
        reason = (output or str(error)).strip().splitlines()[-1:]
        raise ProviderMissingError(
            f"the kubernetes plugin v{version} is not installed in {home / 'plugins'} and cannot be downloaded: "
            f"{' '.join(reason)}",
            f"run `pulumi plugin install resource kubernetes v{version}` on a machine with network access, and copy "
            "the plugin there",
        ) from None
