"""`pulumi up` starts here."""

from plimsoll.stacks import run

run()
