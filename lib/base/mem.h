/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for tables whose size is fixed at start: zeroed, page-aligned, on transparent huge pages
 * where they help. */
#ifndef SAKER_BASE_MEM_H
#define SAKER_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns `len` bytes, or NULL when `len` is 0 or the kernel has no memory. sk_mem_free() takes the
 * same length. */
void *sk_mem_alloc(size_t len);
void sk_mem_free(void *p, size_t len);
/* Allocates the pages of the `len` bytes at `p`, which are writable memory of this process, so that
 * later accesses cause no page fault. The contents do not change. Returns false when the kernel has
 * no memory. */
bool sk_mem_populate(void *p, size_t len);
/* Chooses whether sk_mem_alloc() populates what it returns to this thread from now on; at first it
 * does not. Returns the previous choice. A data path that must not wait for the kernel has its
 * tables populated; a simulation of many hosts does not need most of them. */
bool sk_mem_populates(bool on);

/* Returns the struct whose field `member` lies at `ptr`. */
#define SK_CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define SK_MIN(a, b)                    ((a) < (b) ? (a) : (b))
#define SK_MAX(a, b)                    ((a) > (b) ? (a) : (b))
#define SK_ARRAY_LEN(a)                 (sizeof(a) / sizeof((a)[0]))

/* Prefetches `lines` cache lines from `at` on. Does nothing if `at` is NULL. */
static inline void
sk_prefetch(const void *at, unsigned lines)
{
	for (unsigned i = 0; at != NULL && i < lines; i++)
		__builtin_prefetch((const char *)at + (size_t)i * 64);
}

/* Fetches a cache line for writing. Compilers turn __builtin_prefetch(line, 1) into a prefetch for
 * reading unless the target surely has the instruction, and the write then fetches the line again.
 * On a processor without the instruction, it does nothing. */
static inline void
sk_prefetch_write(const void *line)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

#endif
