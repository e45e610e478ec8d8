"""Whatever chance makes, fed to the wire, the doors, the tools and the kernels, for so long.

    python -m tools.fuzz --seconds 3600

Each round has a number; `--first N` begins with the round that failed, `--only FEED` leaves the
other feeds out. What must hold of every round, by the name of its feed:

    wire      JSON-RPC is answered, on one line
    http      so is whatever comes over HTTP, never with a status of 500 or above but 503
    tools     a tool answers JSON with no code but the contract's six, and never E_INTERNAL
    erasure   of a document that was quoted and then deleted or replaced, whatever its text, the
              examiner finds nothing
    index     the ranker, over an index of which bytes were changed, ranks or raises E_INTEGRITY
    eraser    so it is with the eraser, and with the comparison of index and text
    quotes    what was said of a text that is gone is known, and nothing else is
    vectors   the vector of a text is its twin's; by a table that was changed it is another, and
              blocks that were changed give an answer or are refused
    kernels   the other kernels agree with their twins

`tools/sanitized.py` runs it, and the tests, on a core that is compiled with the address and
undefined-behaviour sanitizers.
"""
