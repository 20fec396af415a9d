"""Pulumi components: what people declare, as objects of a cluster."""
