"""FTS5's bytes: varints, position lists, and the growing lists they are read into.

Functions of their arguments alone (fts5_index.c documents the format). They know nothing of pages
or SQLite, and answer -1 or NULL for bytes that break the format.
"""

cdef struct Segment:
    int64_t id
    int64_t first
    int64_t last

# One row of a doclist: `count` occurrences in the columns asked for (0: deleted, or elsewhere).
cdef struct Posting:
    uint32_t row
    uint32_t count

# A row while its phrase is put together. RAW: `at`, `bytes` are the first trigram's position list
# in the byte store, all of it still wanted. STARTS: `at` are `count` phrase starts in the position
# store. `met`: the number of the trigram that the newest segment having this row was last asked.
cdef enum:
    RAW = 0
    STARTS = 1

cdef struct Hit:
    uint32_t row
    uint32_t at
    uint32_t bytes
    uint16_t count
    uint8_t met
    uint8_t form

cdef struct Postings:
    Posting *at
    uint64_t *key
    size_t n
    size_t room

cdef struct Hits:
    Hit *at
    size_t n
    size_t room

cdef struct Positions:
    uint32_t *at
    size_t n
    size_t room

cdef struct Bytes:
    uint8_t *at
    size_t n
    size_t room

# The leaf under the reader's finger. Pointers are into SQLite's own page and hold until the next
# step. `at`..`stop` is what is left of the current doclist on this leaf; `closes` says whether
# the doclist ends there, because another term follows on the same leaf.
cdef struct Leaf:
    sqlite3_stmt *statement
    const uint8_t *bytes
    uint32_t size
    uint32_t total
    uint32_t footer
    uint32_t first_row
    uint32_t first_term
    uint32_t term_at
    uint32_t next_term
    uint32_t at
    uint32_t stop
    bint closes
    int64_t next_id
    int64_t last_id
    uint32_t term_bytes
    uint8_t term[TERM_BYTES_MAX]

cdef inline const uint8_t *varint(
    const uint8_t *at, const uint8_t *stop, uint64_t *value
) noexcept nogil:
    """Read one SQLite varint (big endian, seven bits a byte, nine bytes at most); NULL: cut off."""
    cdef uint64_t sum = 0
    cdef int i
    for i in range(8):
        if at >= stop:
            return NULL
        sum = (sum << 7) | (at[0] & 0x7F)
        at += 1
        if (at - 1)[0] < 0x80:
            value[0] = sum
            return at
    if at >= stop:
        return NULL
    value[0] = (sum << 8) | at[0]
    return at + 1


cdef inline size_t grown(size_t room, size_t need) noexcept nogil:
    return need + (need >> 1) + 64 if need > room else room


cdef int postings_room(Postings *list, size_t need, bint keyed) noexcept nogil:
    cdef size_t room = grown(list.room, need)
    cdef void *moved
    if room != list.room:
        moved = realloc(list.at, room * sizeof(Posting))
        if moved == NULL:
            return NO_MEMORY
        list.at = <Posting *>moved
        moved = realloc(list.key, room * sizeof(uint64_t)) if keyed or list.key != NULL else NULL
        if moved == NULL and (keyed or list.key != NULL):
            return NO_MEMORY
        list.key = <uint64_t *>moved
        list.room = room
    if keyed and list.key == NULL:
        list.key = <uint64_t *>malloc(list.room * sizeof(uint64_t))
        if list.key == NULL:
            return NO_MEMORY
    return MORE


cdef int hits_room(Hits *list, size_t need) noexcept nogil:
    cdef size_t room = grown(list.room, need)
    cdef void *moved
    if room == list.room:
        return MORE
    moved = realloc(list.at, room * sizeof(Hit))
    if moved == NULL:
        return NO_MEMORY
    list.at = <Hit *>moved
    list.room = room
    return MORE


cdef int positions_room(Positions *list, size_t need) noexcept nogil:
    cdef size_t room = grown(list.room, need)
    cdef void *moved
    if room == list.room:
        return MORE
    moved = realloc(list.at, room * sizeof(uint32_t))
    if moved == NULL:
        return NO_MEMORY
    list.at = <uint32_t *>moved
    list.room = room
    return MORE


cdef int bytes_room(Bytes *list, size_t need) noexcept nogil:
    cdef size_t room = grown(list.room, need)
    cdef void *moved
    if room == list.room:
        return MORE
    moved = realloc(list.at, room)
    if moved == NULL:
        return NO_MEMORY
    list.at = <uint8_t *>moved
    list.room = room
    return MORE


cdef int64_t counted_slowly(
    const uint8_t *at, const uint8_t *stop, uint32_t columns
) noexcept nogil:
    """Occurrences in the given columns of one position list, varint by varint; -1: damaged."""
    cdef uint64_t value
    cdef uint32_t inside = columns & 1
    cdef int64_t count = 0
    while at < stop:
        at = varint(at, stop, &value)
        if at == NULL or value == 0:
            return -1
        if value != 1:
            count += inside
            continue
        at = varint(at, stop, &value)
        if at == NULL or value > 31:
            return -1
        inside = (columns >> value) & 1
    return count


cdef inline uint32_t head_of(const uint8_t *at) noexcept nogil:
    """Bytes before the first position: a column's marker, which the first column has none of."""
    return 2 if at[0] == 1 else 0


cdef inline int64_t counted_plain(
    const uint8_t *at, uint32_t n, const uint8_t *readable, uint32_t columns
) noexcept nogil:
    """How many positions a list holds that is of one column; -1: not such one.

    Eight bytes at a time: every byte below 0x80 ends a position. A list with a byte 0x01 past its
    head is not taken, it might be a marker.
    """
    cdef uint64_t word
    cdef int64_t count = 0
    cdef uint32_t head
    if n == 0 or at + n + 8 > readable:
        return -1
    head = head_of(at)
    if n <= head or (head and at[1] > 31) or not (columns >> (at[1] if head else 0)) & 1:
        return -1
    n -= head
    at += head
    while n >= 8:
        word = load_word(at)
        if has_one(word):
            return -1
        count += varint_ends(word)
        at += 8
        n -= 8
    if n:
        word = load_word(at) | (~<uint64_t>0 << (8 * n))
        if has_one(word):
            return -1
        count += varint_ends(word)
    return count


cdef inline int64_t counted(
    const uint8_t *at, uint32_t n, const uint8_t *readable, uint32_t columns
) noexcept nogil:
    """Occurrences in the given columns of one position list; -1: damaged."""
    cdef int64_t count = counted_plain(at, n, readable, columns)
    return count if count >= 0 else counted_slowly(at, at + n, columns)


cdef inline bint same_but_shifted(
    const uint8_t *a, const uint8_t *b, uint32_t n, int32_t shift
) noexcept nogil:
    """Whether two lists of `n` bytes, of one and the same column, differ by a shift of all
    positions.

    Then their bytes are equal but for the first position's. A byte 0x01 among them might begin
    another column: no. Both lists may be read eight bytes past their end.
    """
    cdef uint32_t i = head_of(a)
    cdef int32_t first_a = a[i]
    cdef int32_t first_b = b[i]
    cdef uint64_t word, rest
    if n <= i or head_of(b) != i or (i and a[1] != b[1]):
        return False
    i += 1
    if (first_a | first_b) & 0x80:
        if not first_a & first_b & 0x80 or (a[i] | b[i]) & 0x80:
            return False
        first_a = (first_a << 7) + a[i]
        first_b = (first_b << 7) + b[i]
        i += 1
    if first_b - first_a != shift:
        return False
    while i < n:
        word = load_word(a + i)
        rest = ~<uint64_t>0 >> (64 - 8 * (n - i)) if n - i < 8 else ~<uint64_t>0
        if (word ^ load_word(b + i)) & rest or has_one(word | ~rest):
            return False
        i += 8
    return True


cdef inline int all_held(
    const uint8_t *a, const uint8_t *a_stop, const uint8_t *b, const uint8_t *b_stop, int32_t shift
) noexcept nogil:
    """Whether every position of list `a`, moved by `shift`, is in `b`; -1: not to be told this way.

    Both begin past their head, in the same column, and their stops may be read. A position takes
    one byte or two, which cannot be foretold, so no branch is spent on it.
    """
    cdef int32_t value, two
    cdef int32_t wanted = shift
    cdef int32_t place = -0x40000000
    cdef int32_t moved = 0
    while a < a_stop:
        two = a[0] >> 7
        value = ((a[0] & 0x7F) << (7 * two)) | (a[1] & -two)
        if value < 2 or two & (a[1] >> 7):
            return -1
        a += 1 + two
        wanted += value - 2
        while place < wanted:
            if b >= b_stop:
                return 0
            two = b[0] >> 7
            value = ((b[0] & 0x7F) << (7 * two)) | (b[1] & -two)
            if value < 2 or two & (b[1] >> 7):
                return -1
            b += 1 + two
            moved += value - 2
            place = moved
        if place != wanted:
            return 0
    return 1


cdef inline int64_t decoded(
    const uint8_t *at, const uint8_t *stop, uint32_t columns, uint32_t *out
) noexcept nogil:
    """Write the positions of a list as column << 16 | offset; answer how many, -1: damaged."""
    cdef uint64_t value
    cdef uint32_t two
    cdef uint64_t offset = 0
    cdef uint32_t column = 0
    cdef uint32_t inside = columns & 1
    cdef int64_t n = 0
    while at < stop:
        if stop - at > 1 and at[0] & at[1] < 0x80:
            # One byte or two, without a branch on which: it cannot be foretold.
            two = at[0] >> 7
            value = ((at[0] & 0x7F) << (7 * two)) | (at[1] & -two)
            at += 1 + two
        else:
            at = varint(at, stop, &value)
            if at == NULL:
                return -1
        if value >= 2:
            offset += value - 2
            if offset > ROW_TOKENS_MAX or value > ROW_TOKENS_MAX + 2:
                return -1
            if inside:
                out[n] = column | <uint32_t>offset
                n += 1
            continue
        if value == 0:
            return -1
        at = varint(at, stop, &value)
        if at == NULL or value > 31:
            return -1
        column = <uint32_t>value << 16
        inside = (columns >> value) & 1
        offset = 0
    return n


cdef inline int64_t kept(
    const uint8_t *at, const uint8_t *stop, uint32_t *starts, uint32_t n, uint32_t offset
) noexcept nogil:
    """Keep those phrase starts that have the trigram `offset` tokens on; -1: damaged."""
    cdef uint64_t value
    cdef uint32_t two
    cdef uint64_t place = 0
    cdef uint32_t column = 0
    cdef uint32_t i = 0
    cdef uint32_t kept_n = 0
    cdef uint32_t here
    cdef uint32_t wanted = starts[0] + offset
    while at < stop:
        if stop - at > 1 and at[0] & at[1] < 0x80:
            # One byte or two, without a branch on which: it cannot be foretold.
            two = at[0] >> 7
            value = ((at[0] & 0x7F) << (7 * two)) | (at[1] & -two)
            at += 1 + two
        else:
            at = varint(at, stop, &value)
            if at == NULL:
                return -1
        if value >= 2:
            place += value - 2
            if place > ROW_TOKENS_MAX or value > ROW_TOKENS_MAX + 2:
                return -1
            here = column | <uint32_t>place
            if here < wanted:
                continue
            while here > wanted:
                i += 1
                if i == n:
                    return kept_n
                wanted = starts[i] + offset
            if here == wanted:
                starts[kept_n] = starts[i]
                kept_n += 1
                i += 1
                if i == n:
                    return kept_n
                wanted = starts[i] + offset
            continue
        if value == 0:
            return -1
        at = varint(at, stop, &value)
        if at == NULL or value > 31:
            return -1
        column = <uint32_t>value << 16
        place = 0
    return kept_n


cdef int merged(Postings *newer, Postings *older, Postings *out, bint keyed) noexcept nogil:
    """Merge two ordered lists; where both have a row (of a term), the newer one's entry holds."""
    cdef size_t i = 0, j = 0, n = 0
    cdef uint64_t a = 0, b = 0
    if postings_room(out, newer.n + older.n, keyed) != MORE:
        return NO_MEMORY
    while i < newer.n or j < older.n:
        if keyed and i < newer.n and j < older.n:
            a = newer.key[i]
            b = older.key[j]
        if i == newer.n:
            pass
        elif j == older.n or a < b or (a == b and newer.at[i].row <= older.at[j].row):
            if j < older.n and a == b and newer.at[i].row == older.at[j].row:
                j += 1
            out.at[n] = newer.at[i]
            if keyed:
                out.key[n] = newer.key[i]
            i += 1
            n += 1
            continue
        out.at[n] = older.at[j]
        if keyed:
            out.key[n] = older.key[j]
        j += 1
        n += 1
    out.n = n
    return MORE


cdef int merged_hits(Hits *newer, Hits *older, Hits *out) noexcept nogil:
    """As merged, for hits."""
    cdef size_t i = 0, j = 0, n = 0
    if hits_room(out, newer.n + older.n) != MORE:
        return NO_MEMORY
    while i < newer.n or j < older.n:
        if j == older.n or (i < newer.n and newer.at[i].row <= older.at[j].row):
            if j < older.n and newer.at[i].row == older.at[j].row:
                j += 1
            out.at[n] = newer.at[i]
            i += 1
        else:
            out.at[n] = older.at[j]
            j += 1
        n += 1
    out.n = n
    return MORE


cdef uint32_t lowest_row(const Postings *list, size_t first) noexcept nogil:
    """The least row from posting `first` on; CHUNK_ID_MAX: none is left."""
    cdef uint32_t row = CHUNK_ID_MAX
    cdef size_t i
    for i in range(first, list.n):
        row = min(row, list.at[i].row)
    return row


cdef uint32_t highest_row(const Postings *list, size_t first) noexcept nogil:
    cdef uint32_t row = 0
    cdef size_t i
    for i in range(first, list.n):
        row = max(row, list.at[i].row)
    return row


cdef inline Hit *first_from(Hit *hit, Hit *last, uint64_t row) noexcept nogil:
    """The first hit of `row` or beyond: by steps that double, then by halves."""
    cdef size_t step = 1
    cdef size_t n = last - hit
    if n == 0 or hit.row >= row:
        return hit
    while step < n and hit[step].row < row:
        hit += step
        n -= step
        step *= 2
    n = min(step, n - 1)
    while n:
        step = (n + 1) >> 1
        if hit[step].row < row:
            hit += step
            n -= step
        else:
            n = step - 1
    return hit + 1


cdef inline uint64_t suffix(const uint8_t *at, uint32_t n) noexcept nogil:
    """Up to eight bytes as a number that orders as they do."""
    cdef uint64_t key = 0
    cdef uint32_t i
    for i in range(8):
        key = key << 8 | (at[i] if i < n else 0)
    return key


cdef inline uint32_t trigram(
    const uint8_t *text, const uint32_t *heads, uint32_t i, uint8_t *key
) noexcept nogil:
    """Write the index key of trigram i of a text; answer its bytes."""
    cdef uint32_t n = heads[i + 3] - heads[i]
    key[0] = text[0]
    memcpy(key + 1, text + heads[i], n)
    return n + 1


cdef inline int64_t next_in_cover(
    const int64_t *total, int64_t i, int64_t end, int step
) noexcept nogil:
    """Of the three trigrams from `i` towards `end` the one whose cover goes on cheapest."""
    cdef int64_t best = i + step
    cdef int64_t j = best
    while j != end and j != i + 3 * step:
        j += step
        if total[j] < total[best]:
            best = j
    return best


cdef void cover_costs(
    const int64_t *cost, int64_t *total, int64_t first, int64_t n, int step
) noexcept nogil:
    """For each of `n` trigrams, from `first` by `step`: the least cost of those, it among them,
    that leave no codepoint uncovered between `first` and it."""
    cdef int64_t i = first
    total[i] = cost[i]
    for _ in range(n - 1):
        i += step
        total[i] = cost[i] + total[next_in_cover(total, i, first, -step)]


cdef inline int64_t cover_cost(
    const int64_t *cost, const int64_t *left, const int64_t *right, uint32_t i
) noexcept nogil:
    """What a cover costs that begins with the rows of trigram i."""
    return left[i] + right[i] + (ROW_CHECK_COST - 1) * cost[i]


cdef void pass_over(
    int64_t *cost, const int64_t *total, int64_t i, int64_t end, int step
) noexcept nogil:
    """Mark what the cheapest cover from trigram i to `end` leaves out."""
    cdef int64_t next
    while i != end:
        next = next_in_cover(total, i, end, step)
        i += step
        while i != next:
            cost[i] = LEFT_OUT - cost[i]
            i += step


cdef int64_t left_of_cover(const int64_t *cost, uint32_t n) noexcept nogil:
    """What there is left to read of a cover."""
    cdef int64_t sum = 0
    cdef uint32_t i
    for i in range(n):
        sum += max(cost[i], <int64_t>0)
    return sum


cdef uint32_t cheapest(const int64_t *cost, uint32_t n, int64_t most) noexcept nogil:
    """The cheapest trigram left to read of a cover, or one that it does without where that costs
    less, and no more than `most`."""
    cdef uint32_t i
    cdef uint32_t best = n
    cdef int64_t least = 0
    cdef int64_t of_it
    for i in range(n):
        of_it = cost[i] if cost[i] >= 0 else LEFT_OUT - cost[i]
        if of_it < 0 or (cost[i] < 0 and of_it > most):
            continue
        if best == n or of_it < least:
            best = i
            least = of_it
    return best
