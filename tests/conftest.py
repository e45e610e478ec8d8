"""Settings that every test shares: hypothesis gives the same examples in every run, of any speed."""

from hypothesis import settings

settings.register_profile("hadano", deadline=None, derandomize=True, database=None)
settings.load_profile("hadano")
