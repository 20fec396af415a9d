"""`python -m plimsoll`: the command line."""

from plimsoll.cli import main

main()
