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

#endif
