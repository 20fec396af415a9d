"""One delta: its parts for the stacks, what they come to, and what became of them."""
