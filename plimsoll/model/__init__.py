"""The words of Plimsoll as values: what people declare, what the cluster holds, what a plan says.

Nothing here reads a clock, a network or a file.
"""
