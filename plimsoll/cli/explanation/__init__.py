"""The output of `plimsoll why`."""

from plimsoll.cli.explanation.as_object import as_json
from plimsoll.cli.explanation.chain import print_chain
from plimsoll.cli.explanation.profile import print_profile, profile_as_json
from plimsoll.cli.explanation.report import print_explanation

__all__ = [
    "as_json",
    "print_chain",
    "print_explanation",
    "print_profile",
    "profile_as_json",
]
