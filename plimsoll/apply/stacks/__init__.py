"""The capacity stacks of an environment, each with a thread of its own."""
