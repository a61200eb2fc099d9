/* SPDX-License-Identifier: BSD-3-Clause */
/* The common functions of the fuzz targets: a claim that ends the run when it does not hold, exact
 * copies, and the bytes of an input. */
#ifndef SAKER_TEST_FUZZ_H
#define SAKER_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLAIM(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			__builtin_trap();                                                          \
		}                                                                                  \
	} while (0)

/* `n` bytes alone on the heap, so that AddressSanitizer sees any byte read behind them; free() it.
 */
static inline uint8_t *
exact_copy(const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n > 0 ? n : 1);

	CLAIM(copy != NULL);
	if (n > 0)
		memcpy(copy, p, n);
	return copy;
}

/* The bytes of an input. */
struct fuzz_input {
	const uint8_t *p;
	size_t len, at;
};

/* Returns the next byte, or 0 behind the end. */
static inline uint8_t
fuzz_byte(struct fuzz_input *in)
{
	return in->at < in->len ? in->p[in->at++] : 0;
}

/* Returns the next `n` bytes as a number, most significant byte first. Bytes behind the end are
 * 0. */
static inline uint32_t
fuzz_take(struct fuzz_input *in, unsigned n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | fuzz_byte(in);
	return v;
}

/* Does the same with up to 8 bytes, but the number ends with the input: of two bytes, of which only
 * the first exists, it has the first in its low byte. */
static inline uint64_t
fuzz_take_rest(struct fuzz_input *in, unsigned n)
{
	uint64_t v = 0;

	for (; n > 0 && in->at < in->len; n--)
		v = v << 8 | in->p[in->at++];
	return v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
