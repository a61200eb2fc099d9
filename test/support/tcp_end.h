/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records and slices of a test that plays the owner of a TCP stack. The bytes of each are a
 * heap block of exactly their size, so that AddressSanitizer detects an access beyond either end.
 * *live counts the records or slices that have been created and not freed; it must be 0 at the end
 * of a test. A failed allocation aborts.
 */
#ifndef TEST_SUPPORT_TCP_END_H
#define TEST_SUPPORT_TCP_END_H

#include <stdint.h>

#include "../../lib/tcp/tcp.h"

/* Returns a record of `len` bytes: a copy of `data` or, if `data` is NULL, a length only. */
struct tcp_rec *tcp_end_rec(int64_t *live, const uint8_t *data, uint32_t len);
/* Does the work of tcp_ops.rec_split(): cuts *rec at byte `at` and returns a new record with the
 * bytes behind it. */
struct tcp_rec *tcp_end_rec_split(int64_t *live, struct tcp_rec *rec, uint32_t at);
/* Does the work of tcp_ops.rec_free(). */
void tcp_end_rec_free(int64_t *live, struct tcp_rec *chain);

/* Returns a slice of `len` bytes, a copy of `data`. If `data` is NULL, the bytes are zero and the
 * caller fills them in through slice->owner, which points to them. */
struct tcp_slice *tcp_end_slice(int64_t *live, const uint8_t *data, uint32_t len);
/* Does the work of tcp_ops.slice_free(). */
void tcp_end_slice_free(int64_t *live, struct tcp_slice *chain);

#endif
