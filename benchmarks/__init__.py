"""What asv measures, commit by commit.

    asv check                                      every benchmark can be found and set up
    asv run --quick --bench 'At1000\\.|kernels|ours' HEAD^!
                                                   the quick look that .ci/run takes
    asv run --bench 'At1000\\.|At10000\\.|kernels|quality' HEAD^!
    asv run HEAD^!                                 all, 100,000 documents among them
    asv continuous --interleave-rounds -f 1.3 --bench 'SearchAt10000\\.|kernels' HEAD^ HEAD
                                                   the gate of a change of the hot path
    asv publish && asv preview                     the graphs

Texts come from `hadano._bench.corpus`, the same for ever; each class builds its store once a
commit, in `setup_cache`. The sizes are classes and not parameters, so that a small one can be run
without the large one being built.

Four programs print a table each and are no part of asv: `spawn.py` of the start of a server,
`notes.py` of searching and storing real notes, `session.py` of both by turns, `vectors.py` of what
vectors cost and find.
"""
