/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes that need a kind of processor. */
#ifndef SAKER_BASE_CHECK_PRIV_H
#define SAKER_BASE_CHECK_PRIV_H

#include "check.h"
#include "vectors.h"

/*
 * The functions of check_fold.c, for processors of the kind SK_VECTORS_FOLD. `len` is a multiple of
 * SK_FOLD_STEP; it is at least SK_FOLD_MIN where a CRC is computed.
 */
#define SK_FOLD_STEP 64u
#define SK_FOLD_MIN  256u
struct sk_check sk_fold_check(struct sk_check c, const uint8_t *src, size_t len);
struct sk_check sk_fold_check_copy(struct sk_check c, uint8_t *dst, const uint8_t *src, size_t len);
uint64_t sk_fold_sum(uint64_t sum, const uint8_t *src, size_t len);
uint64_t sk_fold_sum_copy(uint64_t sum, uint8_t *dst, const uint8_t *src, size_t len);

#endif
