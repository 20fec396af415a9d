"""Limits of an Environment, its NodePools and namespaces."""
