"""Environment variables with which commands use a sandbox and nothing else."""

import os
import sys
from pathlib import Path
from typing import Final

from plimsoll.errors import PlimsollError
from plimsoll.sandbox.folder import Folder

USERS: Final = ("admin", "controller", "binder", "viewer")


def environ(folder: Folder, user: str) -> dict[str, str]:
    """Environment variables for kubectl, pulumi and plimsoll to use the sandbox in `folder` as one of USERS.

    Only variables that differ from the caller's environment. PATH is complete, with the sandbox's programs first.
    """
    if user not in USERS:
        raise PlimsollError(f"There is no user {user!r} in a sandbox.", f"The users are {', '.join(USERS)}.")
    return {
        "PLIMSOLL_SANDBOX": folder.name,
        "PLIMSOLL_WORK_FOLDER": str(folder.path / "work" / user),
        "KUBECONFIG": str(folder.kubeconfig(user)),
        "KUBECACHEDIR": str(folder.path / "kube-cache"),
        # For the charts of a stack, which Pulumi's Kubernetes plugin renders.
        **{f"HELM_{kind.upper()}_HOME": str(folder.path / "helm" / kind) for kind in ("cache", "config", "data")},
        "PATH": path(folder),
        "PULUMI_HOME": str(folder.pulumi),
        "PULUMI_BACKEND_URL": f"file://{folder.stacks}",
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(folder.passphrase),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        # With these, the language host and the policy analyzer need no activated virtual environment.
        "PULUMI_PYTHON_CMD": sys.executable,
    }


def path(folder: Folder, language: str = "bin-python") -> str:
    """PATH with the sandbox's programs first. `language` is `bin-policy` for runs with policy packs, see Folder.bin."""
    ours = [str(folder.bin(language)), str(folder.bin()), str(Path(sys.executable).parent)]
    rest = [p for p in os.environ.get("PATH", os.defpath).split(os.pathsep) if p not in ours]
    return os.pathsep.join([*ours, *rest])
