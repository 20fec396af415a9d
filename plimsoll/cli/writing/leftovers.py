"""Workspaces that are left when the environment's stack is destroyed."""

from plimsoll.errors import PlimsollError
from plimsoll.model import Snapshot
from plimsoll.text import shortlist


def refuse_leftovers(snapshot: Snapshot) -> None:
    """Refuses to go on while Workspaces exist that no stack declares: deleting the CRDs would delete them.

    Raises PlimsollError that names them, those that cannot be read too.
    """
    left = [str(each.ref) for each in snapshot.workspaces if not each.deleting]
    left += [str(each.ref) for each in snapshot.invalid_workspaces if not each.deleting]
    if left:
        raise PlimsollError(
            f"Workspaces exist that the environment's stack does not declare: {shortlist(left)}",
            "their capacity is deleted; delete them with kubectl, then run `plimsoll destroy` again",
        )
