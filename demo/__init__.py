"""The main job on real parts, from nothing to nothing: `make demo`."""
