/* SPDX-License-Identifier: BSD-3-Clause */
/* What every fuzz target needs: a claim that ends the run when it does not hold, and exact copies.
 */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
