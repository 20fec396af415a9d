"""`pulumi up` starts here."""

from plimsoll.stacks.program import run

run()
