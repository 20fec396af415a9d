"""What the objects of a cluster say: requests of pods, GPUs of nodes, queues, NodePools, instance types. Pure.

Import its subpackages, not the package itself.
"""
