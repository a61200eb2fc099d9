/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for keys. It is excluded from core dumps (MADV_DONTDUMP), lies on pages of its own, and is
 * wiped when it is freed. Objects of up to a page share chunks, so that thousands of them need few
 * mappings; chunks are kept for later objects. Any thread may call these functions.
 */
#ifndef SAKER_BASE_SECRET_H
#define SAKER_BASE_SECRET_H

#include <stddef.h>

#define SK_SECRET_ALIGN 64 /* bytes */

/* Returns `len` zeroed bytes, aligned to SK_SECRET_ALIGN, or NULL when `len` is 0 or memory is
 * exhausted. */
void *sk_secret_alloc(size_t len);
/* Wipes and frees an object of `len` bytes, the length that sk_secret_alloc() received. `p` may be
 * NULL. */
void sk_secret_free(void *p, size_t len);

#endif
