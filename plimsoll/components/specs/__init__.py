"""Specs of what the components declare, and the CustomResourceDefinitions made from the models."""
