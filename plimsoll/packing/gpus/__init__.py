"""Packing shares onto GPUs: the lower bound and a packing that meets it."""
