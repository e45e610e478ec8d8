/* The few routines of the running SQLite that the ranker calls.
**
** SQLite hands every loadable extension a table of its routines. The table only ever grows at its
** end, so the places below are fixed for good (sqlite3ext.h, struct sqlite3_api_routines); naming
** them here spares the package a copy of SQLite's own two headers, and a second SQLite.
*/
#ifndef HADANO_SQLITE_API_H
#define HADANO_SQLITE_API_H

#include <stdint.h>
#include <string.h>
#if defined(_MSC_VER)
#include <intrin.h>
#endif

typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;

typedef struct sqlite_api {
    void *before_bind_blob[2];
    int (*bind_blob)(sqlite3_stmt *, int, const void *, int, void (*)(void *));
    void *before_bind_int64[2];
    int (*bind_int64)(sqlite3_stmt *, int, int64_t);
    void *before_column_blob[13];
    const void *(*column_blob)(sqlite3_stmt *, int);
    int (*column_bytes)(sqlite3_stmt *, int);
    void *before_column_int64[8];
    int64_t (*column_int64)(sqlite3_stmt *, int);
    void *before_column_type[8];
    int (*column_type)(sqlite3_stmt *, int);
    void *before_finalize[18];
    int (*finalize)(sqlite3_stmt *);
    void *before_get_autocommit[2];
    int (*get_autocommit)(sqlite3 *);
    void *before_libversion_number[6];
    int (*libversion_number)(void);
    void *before_reset[9];
    int (*reset)(sqlite3_stmt *);
    void *before_step[16];
    int (*step)(sqlite3_stmt *);
    void *before_prepare_v3[122];
    int (*prepare_v3)(sqlite3 *, const char *, int, unsigned int, sqlite3_stmt **, const char **);
} sqlite_api;

enum { SQLITE_OK = 0, SQLITE_ROW = 100, SQLITE_DONE = 101, SQLITE_BLOB = 4 };
enum { SQLITE_PREPARE_PERSISTENT = 1 };

#if defined(_WIN32)
#define EXTENSION_ENTRY __declspec(dllexport)
#else
#define EXTENSION_ENTRY __attribute__((visibility("default")))
#endif

/* Written by SQLite when it loads this library, read when a ranker is made. */
static const sqlite_api *sqlite_api_loaded = 0;

/* The entry point that load_extension calls: it only remembers the table. */
EXTENSION_ENTRY int sqlite3_hadano_rank_init(sqlite3 *db, char **message, const void *api);

int sqlite3_hadano_rank_init(sqlite3 *db, char **message, const void *api) {
    (void)db;
    (void)message;
    sqlite_api_loaded = (const sqlite_api *)api;
    return SQLITE_OK;
}

/* How many of eight bytes end a varint (high bit clear). */
static inline unsigned varint_ends(uint64_t word) {
    return (unsigned)((((~word & UINT64_C(0x8080808080808080)) >> 7)
                       * UINT64_C(0x0101010101010101)) >> 56);
}

/* Whether any of eight bytes is 0x01 (Mycroft's test for a zero byte; may err only towards yes). */
static inline int has_one(uint64_t word) {
    uint64_t flipped = word ^ UINT64_C(0x0101010101010101);
    return ((flipped - UINT64_C(0x0101010101010101)) & ~flipped
            & UINT64_C(0x8080808080808080)) != 0;
}

/* The place of the lowest set bit of a word that is not zero. */
static inline unsigned lowest_bit(uint64_t word) {
#if defined(_MSC_VER)
    unsigned long place;
    _BitScanForward64(&place, word);
    return (unsigned)place;
#else
    return (unsigned)__builtin_ctzll(word);
#endif
}

/* Eight bytes, the first of them lowest, whatever order this machine keeps. */
static inline uint64_t load_word(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

#endif
