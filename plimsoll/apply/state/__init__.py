"""States of capacity stacks, and where they lie."""
