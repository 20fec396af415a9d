"""What the objects of a cluster say: requests of pods, GPUs of nodes, queues, NodePools, instance types. Pure.

Its rooms are imported one by one.
"""
