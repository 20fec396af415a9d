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
    "Plimsoll keeps the GPU capacity of a Kubernetes cluster at what its workloads need: it checks what they ask for "
    "against the labels of live nodes, and makes or deletes exactly the nodes that are missing or superfluous. "
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
    "Two files and no cluster: nodes as GPU Feature Discovery labels them, and Workspaces. A Workspace is a model to "
    "serve and a selector of the nodes that it may use. Which of them would run, and what would change?",
    (
        (
            r"accepted +research/llama",
            "The nodes that it selects have equal GPUs, and a replica of the model fits on one.",
        ),
        (
            r"refused +research/mixed",
            "It selects two kinds of GPU, so how it runs would depend on where it runs: refused, with what to change.",
        ),
        (
            r"accepted +web/captions",
            "Not a model that Plimsoll knows but a pod template, which states the GPU memory that it needs.",
        ),
        (
            r"refused +web/too-large",
            "The model needs more GPU memory than the node has, which is known before a pod starts.",
        ),
        (
            r" +\+ Deployment",
            "What would be made: the workloads alone, because people bring these nodes. With node auto-provisioning, "
            "the NodeClaims of missing nodes would stand here too.",
        ),
        (r"warning:", "Nothing to do now, but something to know."),
        (r"\d+ to create", "The sum. The exit code is 2 where something is refused, so that a pipeline stops."),
    ),
)
DEMAND: Final = Explained(
    ("plimsoll", "demand", "-f", "examples/demand", "--plot"),
    "Pods that ask for parts of a GPU, which no autoscaler counts. How many nodes do they need together?",
    (
        (
            r" DEMAND +PHASE",
            "The pods that wait, in classes of pods that may run on the same nodes. FREE of them fit onto GPUs that "
            "are there, REQUESTED wait for nodes that are on their way, and for NEW ones nodes are to be requested. "
            "GPUS: their share of those nodes.",
        ),
        (r"  \+ \d+ x", "The nodes to ask Karpenter for."),
        (r"  ! \d+ pod", "A request that cannot be read is refused by name, and holds up no other."),
        (r" GPUS +OF", "The packing, GPU by GPU: how full each is before and after, and the shares that it takes up."),
        (r"\d+ GPUs? in use before", "The sum: how many GPUs are in use, and how full they are."),
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
