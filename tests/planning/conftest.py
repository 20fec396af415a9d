"""Property tests of planning have no deadline; benchmarks measure the time."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
