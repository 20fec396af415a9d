"""The README's commands that need no cluster run as they stand there, and print what it shows."""

import re

from tests.guides import CHECKOUT, run_commands


def test_the_readmes_commands_run() -> None:
    text = (CHECKOUT / "README.md").read_text()
    done = run_commands(text, CHECKOUT)
    (shown,) = re.findall(r"```\n(  \+ 3 x g6.*?)```", text, re.DOTALL)
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in shown.splitlines():
        beginning = " ".join(line.split()).removesuffix("...")
        assert any(each.startswith(beginning) for each in printed), line
