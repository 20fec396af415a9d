"""A working copy of the project's configuration, for trying the stacks out.

`pulumi stack init` writes the salt of the stack's secrets into its file, and `pulumi config set` its changes: in a copy
they stay out of the checkout.
"""

import shutil
import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[1]


def make(folder: Path) -> Path:
    """Makes `folder` a Pulumi project that runs the checkout's program with copies of its stack files.

    Programs run in the environment of this Python. Returns the folder, for `pulumi --cwd`.
    """
    project = yaml.safe_load((CHECKOUT / "Pulumi.yaml").read_text())
    project["main"] = str(CHECKOUT)
    project["runtime"]["options"]["virtualenv"] = sys.prefix
    stacks = folder / project["stackConfigDir"]
    stacks.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))
    for file in (CHECKOUT / project["stackConfigDir"]).glob("Pulumi.*.yaml"):
        shutil.copy(file, stacks)
    return folder
