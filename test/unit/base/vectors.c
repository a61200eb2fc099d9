/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The choice of code by the processor, and the environment variable that binds it to a lesser one.
 * test/vectors.sh runs these tests with each name, so they take the expected kind from there.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/base/vectors.h"

/* Returns the kind that SAKER_VECTORS names, or the best one without it. */
static enum sk_vectors
expected(void)
{
	const char *name = getenv("SAKER_VECTORS");

	if (name == NULL)
		return sk_vectors_best();
	for (int k = SK_VECTORS_NONE; k < SK_VECTORS_KINDS; k++)
		if (strcmp(name, sk_vectors_name((enum sk_vectors)k)) == 0)
			return SK_MIN((enum sk_vectors)k, sk_vectors_best());
	cr_assert_fail("SAKER_VECTORS=%s names no kind of processor", name);
	return SK_VECTORS_UNKNOWN;
}

Test(vectors, the_choice_is_the_one_that_the_environment_names)
{
	cr_assert_eq(sk_vectors(), expected(), "%s", sk_vectors_name(sk_vectors()));
	cr_log_info("%s", sk_vectors_name(sk_vectors()));
}

Test(vectors, each_name_binds_the_process_to_its_kind)
{
	for (int k = SK_VECTORS_NONE; k < SK_VECTORS_KINDS; k++) {
		enum sk_vectors kind = (enum sk_vectors)k;

		cr_assert_eq(setenv("SAKER_VECTORS", sk_vectors_name(kind), 1), 0);
		sk_vectors_set(SK_VECTORS_UNKNOWN);
		cr_assert_eq(sk_vectors(), SK_MIN(kind, sk_vectors_best()));
	}
	cr_assert_eq(setenv("SAKER_VECTORS", "mmx", 1), 0);
	sk_vectors_set(SK_VECTORS_UNKNOWN);
	cr_assert_eq(sk_vectors(), sk_vectors_best(), "an unknown name binds nothing");
	cr_assert_eq(unsetenv("SAKER_VECTORS"), 0);
	sk_vectors_set(SK_VECTORS_UNKNOWN);
	cr_assert_eq(sk_vectors(), sk_vectors_best());
	sk_vectors_set(SK_VECTORS_NONE);
	cr_assert_eq(sk_vectors(), SK_VECTORS_NONE);
}
