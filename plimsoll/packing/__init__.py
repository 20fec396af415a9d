"""Packing pods onto GPUs and nodes: a library that knows no Kubernetes."""
