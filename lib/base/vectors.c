/* SPDX-License-Identifier: BSD-3-Clause */
#include "vectors.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static enum sk_vectors vectors_kind;

static const char *const names[SK_VECTORS_KINDS] = {
	[SK_VECTORS_NONE] = "sse4.2",
	[SK_VECTORS_AVX2] = "avx2",
	[SK_VECTORS_FOLD] = "avx512",
};

const char *
sk_vectors_name(enum sk_vectors kind)
{
	return names[kind];
}

enum sk_vectors
sk_vectors_best(void)
{
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
		__builtin_cpu_supports("vpclmulqdq"))
		return SK_VECTORS_FOLD;
	return __builtin_cpu_supports("avx2") ? SK_VECTORS_AVX2 : SK_VECTORS_NONE;
}

/* Returns the kind that the environment names, or the best one. */
static enum sk_vectors
vectors_wanted(void)
{
	const char *name = secure_getenv("SAKER_VECTORS");

	for (int k = SK_VECTORS_NONE; name != NULL && k < SK_VECTORS_KINDS; k++)
		if (strcmp(name, names[k]) == 0)
			return (enum sk_vectors)k;
	return SK_VECTORS_FOLD;
}

void
sk_vectors_set(enum sk_vectors kind)
{
	enum sk_vectors best = sk_vectors_best();

	if (kind == SK_VECTORS_UNKNOWN)
		kind = vectors_wanted();
	__atomic_store_n(&vectors_kind, kind < best ? kind : best, __ATOMIC_RELAXED);
}

enum sk_vectors
sk_vectors(void)
{
	enum sk_vectors kind = __atomic_load_n(&vectors_kind, __ATOMIC_RELAXED);

	if (__builtin_expect(kind == SK_VECTORS_UNKNOWN, 0)) {
		sk_vectors_set(SK_VECTORS_UNKNOWN);
		kind = __atomic_load_n(&vectors_kind, __ATOMIC_RELAXED);
	}
	return kind;
}
