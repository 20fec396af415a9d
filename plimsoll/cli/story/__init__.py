"""How `plimsoll explain` prints its report."""
