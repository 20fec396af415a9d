"""`pulumi up` starts here."""

from stacks.program import run

run()
