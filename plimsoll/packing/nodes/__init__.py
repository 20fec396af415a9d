"""Packing pods onto nodes: GPUs, CPU, memory and pods at once."""
