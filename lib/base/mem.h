/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is sized at start: zeroed, page-aligned, on transparent huge pages where that pays.
 */
#ifndef SAKER_BASE_MEM_H
#define SAKER_BASE_MEM_H

#include <stddef.h>

/* NULL when the kernel refuses. */
void *sk_mem_alloc(size_t len);
void sk_mem_free(void *p, size_t len);

/* The struct that holds `member` at `ptr`. */
#define SK_CONTAINER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define SK_MIN(a, b)                    ((a) < (b) ? (a) : (b))
#define SK_MAX(a, b)                    ((a) > (b) ? (a) : (b))
#define SK_ARRAY_LEN(a)                 (sizeof(a) / sizeof((a)[0]))

/* Asks for a cache line that is going to be written. Compilers make a prefetch for reading of it
 * unless the target is known to have the instruction, and the line has to be asked for twice; where
 * it does not exist it does nothing. */
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
