"""Settings that all tests share: hypothesis gives the same examples in each run, slow or fast."""

import signal

from hypothesis import settings

settings.register_profile("hadano", deadline=None, derandomize=True, database=None)
settings.load_profile("hadano")

# A shell that starts the tests in the background has them ignore SIGINT, and what they start would
# inherit that: a process that is told to stop would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
