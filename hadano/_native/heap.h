/* The C library's heap, where it keeps more than one. */
#ifndef HADANO_HEAP_H
#define HADANO_HEAP_H

#include <stdlib.h>

#if defined(__GLIBC__)
#include <malloc.h>
static inline void one_heap_for_all(void) { mallopt(M_ARENA_MAX, 1); }
#else
static inline void one_heap_for_all(void) {}
#endif

#endif
