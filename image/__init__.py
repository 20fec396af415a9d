"""Builds the container image of the controller: `make image`."""
