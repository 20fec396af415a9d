"""Properties are about what is planned; how long that takes is the bench's to say."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
