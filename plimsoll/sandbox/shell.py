"""Environment variables with which commands use a sandbox and nothing else."""

import os
import sys
from pathlib import Path
from typing import Final

from plimsoll.errors import PlimsollError
from plimsoll.sandbox.folder import Folder
from plimsoll.sandbox.state import Settings, State

USERS: Final = ("admin", "controller", "binder", "viewer")


def environ(folder: Folder, settings: Settings, state: State, user: str) -> dict[str, str]:
    """Environment variables for kubectl, helm, pulumi and plimsoll to use the sandbox in `folder` as one of USERS.

    Only variables that differ from the caller's environment. PATH is complete, with the sandbox's programs first.
    """
    if user not in USERS:
        raise PlimsollError(f"There is no user {user!r} in a sandbox.", f"The users are {', '.join(USERS)}.")
    variables = {
        "PLIMSOLL_SANDBOX": folder.name,
        "PLIMSOLL_PROVIDER": settings.provider,
        "PLIMSOLL_WORK_FOLDER": str(folder.path / "work" / user),
        "KUBECONFIG": str(folder.kubeconfig(user)),
        "KUBECACHEDIR": str(folder.path / "kube-cache"),
        **helm_homes(folder),
        "PATH": path(folder),
        "PULUMI_HOME": str(folder.pulumi),
        "PULUMI_BACKEND_URL": f"file://{folder.stacks}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder.passphrase),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
        # With these, the language host and the policy analyzer need no activated virtual environment.
        "PULUMI_PYTHON_CMD": sys.executable,
    }
    if settings.provider == "attached":
        variables["PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION"] = "true"
        # The provider has the admin's permissions; `plimsoll run` serves its own. The empty value, which Pulumi takes
        # as none, replaces that of the admin in a shell which had it.
        port = state.port_of("provider")
        variables["PULUMI_DEBUG_PROVIDERS"] = f"kubernetes:{port}" if user == "admin" else ""
    return variables


def helm_homes(folder: Folder) -> dict[str, str]:
    """helm's folders for downloads and configuration, in the sandbox's folder."""
    return {f"HELM_{kind.upper()}_HOME": str(folder.path / "helm" / kind) for kind in ("cache", "config", "data")}


def path(folder: Folder, language: str = "bin-python") -> str:
    """PATH with the sandbox's programs first. `language` is `bin-policy` for runs with policy packs, see Folder.bin."""
    ours = [str(folder.bin(language)), str(folder.bin()), str(Path(sys.executable).parent)]
    rest = [p for p in os.environ.get("PATH", os.defpath).split(os.pathsep) if p not in ours]
    return os.pathsep.join([*ours, *rest])
