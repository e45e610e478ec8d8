"""Settings that all tests share: hypothesis gives the same examples in each run, slow or fast."""

from hypothesis import settings

settings.register_profile("hadano", deadline=None, derandomize=True, database=None)
settings.load_profile("hadano")
