"""KAI's queues: the tree, its checks, usage, admission and fair share."""
