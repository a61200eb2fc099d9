/* SPDX-License-Identifier: BSD-3-Clause */
/* Byte strings for the tests of headers. They are hex text, so they do not depend on the code under
 * test. */
#ifndef SAKER_TEST_WIRE_VECTOR_H
#define SAKER_TEST_WIRE_VECTOR_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/wire/wire.h"
#include "../../support/addr.h"

struct bytes {
	size_t len;
	uint8_t b[256];
};

static inline struct bytes
hex(const char *s)
{
	struct bytes v = {0};

	for (; *s != '\0'; s++) {
		unsigned byte;

		if (*s == ' ')
			continue;
		cr_assert_eq(sscanf(s, "%2x", &byte), 1);
		cr_assert_lt(v.len, sizeof(v.b));
		v.b[v.len++] = (uint8_t)byte;
		s++;
	}
	return v;
}

/* Copies the first `n` bytes alone to the heap: a sanitizer detects each read behind them. */
static inline uint8_t *
exact(const struct bytes *v, size_t n)
{
	uint8_t *p = malloc(n > 0 ? n : 1);

	cr_assert_not_null(p);
	memcpy(p, v->b, n);
	return p;
}

/* Checks that each length below `need` is refused with `reason`, and that `need` bytes are
 * enough. */
#define ASSERT_REFUSES_SHORT(parse, record, vec, need, reason)                                     \
	do {                                                                                       \
		for (size_t n_ = 0; n_ <= (size_t)(need); n_++) {                                  \
			uint8_t *p_ = exact(&(vec), n_);                                           \
			int r_ = parse(&(record), p_, n_);                                         \
                                                                                                   \
			cr_assert_eq(r_, n_ < (size_t)(need) ? -(int)(reason) : (int)(need),       \
				"%s of %zu bytes: %d", #parse, n_, r_);                            \
			free(p_);                                                                  \
		}                                                                                  \
	} while (0)

/* Checks that `emit` writes exactly the bytes of `vec`. */
#define ASSERT_EMITS(emit, record, vec)                                                            \
	do {                                                                                       \
		uint8_t out_[256];                                                                 \
		unsigned n_;                                                                       \
                                                                                                   \
		memset(out_, 0xa5, sizeof(out_));                                                  \
		n_ = emit(out_, &(record));                                                        \
		cr_assert_eq(n_, (vec).len, "%u bytes", n_);                                       \
		for (unsigned i_ = 0; i_ < n_; i_++)                                               \
			cr_assert_eq(out_[i_], (vec).b[i_], "byte %u: %02x", i_, out_[i_]);        \
		cr_assert_eq(out_[n_], 0xa5);                                                      \
	} while (0)

static inline bool
addr_is(const struct sk_addr *a, const char *text)
{
	struct sk_addr want = addr(text);

	return sk_addr_eq(a, &want);
}

#endif
