/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory for keys: no core dump contains it, and it is wiped when it is freed. */
#include "../../../lib/base/secret.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1 /* each object is then one of malloc() */
#else
#define SANITIZED 0
#endif

/* Returns whether the mapping of `p` has the flag "dd" (do not dump) in /proc/self/smaps. */
static bool
never_dumped(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	bool in = false, found = false;
	char line[512];
	unsigned long from, to;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			in = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (in && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, " dd") != NULL;
	}
	fclose(f);
	return found;
}

static bool
zeroed(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static const size_t sizes[] = {1, 64, 65, 700, 4096, 4097, 100000};
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

Test(base_secret, memory_is_zeroed_aligned_and_not_dumped)
{
	uint8_t *p[NSIZES], *plain = malloc(64);

	for (unsigned i = 0; i < NSIZES; i++) {
		p[i] = sk_secret_alloc(sizes[i]);
		cr_assert_not_null(p[i]);
		cr_assert_eq((uintptr_t)p[i] % SK_SECRET_ALIGN, 0);
		cr_assert(zeroed(p[i], sizes[i]));
		memset(p[i], 0xa5, sizes[i]);
		if (!SANITIZED) {
			cr_assert(never_dumped(p[i]), "%zu bytes", sizes[i]);
			cr_assert(never_dumped(p[i] + sizes[i] - 1), "%zu bytes", sizes[i]);
		}
	}
	cr_assert_not(never_dumped(plain));
	for (unsigned i = 0; i < NSIZES; i++)
		sk_secret_free(p[i], sizes[i]);
	free(plain);
	cr_assert_null(sk_secret_alloc(0));
	sk_secret_free(NULL, 5);
}

Test(base_secret, a_freed_object_is_wiped_and_used_again)
{
	uint8_t *p, *again;

	if (SANITIZED)
		cr_skip_test("each object is one of malloc()");
	p = sk_secret_alloc(200);
	cr_assert_not_null(p);
	memset(p, 0xa5, 200);
	sk_secret_free(p, 200);
	/* The first bytes belong to the list of unused objects. */
	cr_assert(zeroed(p + sizeof(void *), 200 - sizeof(void *)));
	again = sk_secret_alloc(250); /* of the same number of units */
	cr_assert_eq(again, p);
	cr_assert(zeroed(again, 250));
	sk_secret_free(again, 250);
}

Test(base_secret, objects_do_not_overlap)
{
	enum { N = 500 };
	static uint8_t *p[N];

	for (unsigned i = 0; i < N; i++) {
		p[i] = sk_secret_alloc(1 + i * 13 % 1500);
		cr_assert_not_null(p[i]);
		memset(p[i], (int)(i % 251 + 1), 1 + i * 13 % 1500);
	}
	for (unsigned i = 0; i < N; i++)
		for (unsigned k = 0; k < 1 + i * 13 % 1500; k++)
			cr_assert_eq(p[i][k], i % 251 + 1);
	for (unsigned i = 0; i < N; i++)
		sk_secret_free(p[i], 1 + i * 13 % 1500);
}

static void *
churn(void *arg)
{
	uint8_t mark = *(const uint8_t *)arg;

	for (unsigned i = 0; i < 20000; i++) {
		uint8_t *p = sk_secret_alloc(100);

		if (p == NULL || !zeroed(p, 100))
			return arg;
		memset(p, mark, 100);
		for (unsigned k = 0; k < 100; k++)
			if (p[k] != mark)
				return arg;
		sk_secret_free(p, 100);
	}
	return NULL;
}

Test(base_secret, threads_share_it)
{
	static uint8_t mark[3] = {1, 2, 3};
	pthread_t thread[3];

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, churn, &mark[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		void *bad;

		cr_assert_eq(pthread_join(thread[i], &bad), 0);
		cr_assert_null(bad);
	}
}
