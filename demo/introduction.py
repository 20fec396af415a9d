"""What is shown while the parts build: two commands that need no cluster, and what their output says."""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.stage import PROJECT
from plimsoll.errors import PlimsollError

WHAT: Final = (
    "Plimsoll provisions the GPU nodes that the workloads of a Kubernetes cluster need: it checks their requests "
    "against the labels of live nodes, creates nodes that are missing, and deletes nodes that are no longer needed. "
    "Each change is an update of a Pulumi stack, with a diff, a history and an owner."
)


@dataclass(frozen=True)
class Explained:
    """A command, what it is about, and `words` on what it prints.

    Each of the words stands before the first line that its regular expression matches.
    """

    command: tuple[str, ...]
    about: str
    words: tuple[tuple[str, str], ...]


PLAN: Final = Explained(
    ("plimsoll", "plan", "-f", "examples/byo"),
    "The input is files, not a cluster: nodes with the labels of GPU Feature Discovery, and Workspaces. A Workspace is "
    "a model to serve and a selector of the nodes that it may use. Which Workspaces would run, and what would change?",
    (
        (
            r"accepted +research/llama",
            "The nodes that it selects have equal GPUs, and a replica of the model fits on one.",
        ),
        (
            r"refused +research/mixed",
            "Its selector matches two GPU models, so it is refused. The message says what to change.",
        ),
        (
            r"accepted +web/captions",
            "This Workspace has a pod template instead of a preset. It states the GPU memory that it needs.",
        ),
        (
            r"refused +web/too-large",
            "The model needs more GPU memory than the node has, which is known before a pod starts.",
        ),
        (
            r" +\+ Deployment",
            "What would be created: only the workloads, because the nodes exist already. With node auto-provisioning, "
            "the NodeClaims of missing nodes are listed here, too.",
        ),
        (r"warning:", "A warning changes nothing in the plan."),
        (r"\d+ to create", "The totals. The exit code is 2 if something is refused, so that a pipeline stops."),
    ),
)
DEMAND: Final = Explained(
    ("plimsoll", "demand", "-f", "examples/demand", "--plot"),
    "These pods request parts of a GPU, which autoscalers do not count. How many nodes do they need together?",
    (
        (
            r" DEMAND +PHASE",
            "The pending pods, grouped into classes that can run on the same nodes. FREE: pods that fit on existing "
            "GPUs. REQUESTED: pods that wait for requested nodes. NEW: pods for which new nodes are requested. "
            "GPUS: their share of the GPUs of those nodes.",
        ),
        (r"  \+ \d+ x", "The nodes to request from Karpenter."),
        (r"  ! \d+ pod", "An invalid request is refused with the name of its pod, and does not affect other pods."),
        (r" GPUS +OF", "The packing: how full each GPU is before and after, and the shares that are planned on it."),
        (r"\d+ GPUs? in use before", "The totals: how many GPUs are in use, and how full they are."),
    ),
)
WITHOUT_CLUSTER: Final = "Two commands that need no cluster: " + ", ".join(
    f"`{' '.join(explained.command)}`" for explained in (PLAN, DEMAND)
)


def show(console: Console) -> None:
    """Runs both commands, which takes seconds, and prints what they say with the words on it.

    Raises PlimsollError where one fails.
    """
    for explained in (PLAN, DEMAND):
        _show(explained, console)


def lines(explained: Explained, width: int) -> list[tuple[str, bool]]:
    """The command's lines in a terminal of that width, and the words between them; True marks the words."""
    program, *arguments = explained.command
    done = subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments],
        cwd=PROJECT,
        env={**os.environ, "COLUMNS": str(width)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    # Both examples have something to refuse.
    if done.returncode != 2:
        raise PlimsollError(
            f"`{' '.join(explained.command)}` ended with exit code {done.returncode}:\n{done.stderr[-3000:]}",
            "Run `make install` again, which makes the Python environment anew.",
        )
    told: list[tuple[str, bool]] = [(explained.about, True)]
    waiting = list(explained.words)
    for line in done.stdout.splitlines():
        for pattern, words in waiting:
            if re.match(pattern, line):
                told.append((words, True))
                waiting.remove((pattern, words))
                break
        if line.strip():
            told.append((line.rstrip(), False))
    return told


def _show(explained: Explained, console: Console) -> None:
    console.print(f"\n[bold]$ {' '.join(explained.command)}")
    for text, is_explanation in lines(explained, console.width):
        shown = textwrap.indent(textwrap.fill(text, console.width - 2), "# ") if is_explanation else text
        console.print(shown, style="cyan" if is_explanation else None, markup=False, highlight=False)
