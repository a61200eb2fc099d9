/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of processors that the code distinguishes when it starts: for the passes over bytes
 * (check.h, crc32c.h) and for the ciphers (psp.h). Each process uses the best kind that its
 * processor has, unless the environment variable SAKER_VECTORS names a lesser one: so that a test
 * on a new processor runs the code of an older one.
 */
#ifndef SAKER_BASE_VECTORS_H
#define SAKER_BASE_VECTORS_H

enum sk_vectors {
	SK_VECTORS_UNKNOWN, /* not determined yet */
	SK_VECTORS_NONE,    /* "sse4.2", which the whole program requires */
	SK_VECTORS_AVX2,    /* "avx2" */
	SK_VECTORS_FOLD,    /* "avx512", with carry-less multiplication in 512-bit registers */
	SK_VECTORS_KINDS
};

/* Returns the kind that this process uses. */
enum sk_vectors sk_vectors(void);
/* Returns the best kind of this processor. */
enum sk_vectors sk_vectors_best(void);
/* Returns the name of a kind, as in SAKER_VECTORS, or NULL for SK_VECTORS_UNKNOWN. */
const char *sk_vectors_name(enum sk_vectors kind);
/* Sets the kind, for tests; a better one than the processor's stands for that. SK_VECTORS_UNKNOWN:
 * as at the start. */
void sk_vectors_set(enum sk_vectors kind);

#endif
