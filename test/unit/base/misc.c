/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory, logs, and counters of reasons. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "../../../lib/base/be.h"
#include "../../../lib/base/log.h"
#include "../../../lib/base/mem.h"
#include "../../../lib/base/reason.h"

Test(mem, is_zeroed_aligned_and_writable_to_its_end)
{
	static const size_t lens[] = {1, 4095, 4096, 4097, (2 << 20) - 1, 2 << 20, (5 << 20) + 3};

	for (unsigned i = 0; i < SK_ARRAY_LEN(lens); i++) {
		uint8_t *p = sk_mem_alloc(lens[i]);

		cr_assert_not_null(p);
		cr_assert_eq((uintptr_t)p % 4096, 0);
		if (lens[i] >= 2 << 20)
			cr_assert_eq((uintptr_t)p % (2 << 20), 0);
		for (size_t at = 0; at < lens[i]; at++)
			if (p[at] != 0)
				cr_assert_fail("byte %zu of %zu", at, lens[i]);
		memset(p, 0xff, lens[i]);
		sk_mem_free(p, lens[i]);
	}
}

static unsigned
resident(void *p, size_t len)
{
	unsigned char page[64] = {0};
	unsigned n = 0;

	cr_assert_eq(mincore(p, len, page), 0);
	for (size_t i = 0; i < len / 4096; i++)
		n += page[i] & 1;
	return n;
}

Test(mem, is_resident_when_populated)
{
	size_t len = 64 * 4096;
	uint8_t *p = sk_mem_alloc(len);

	cr_assert_eq(resident(p, len), 0);
	p[4096 * 9] = 7;
	cr_assert(sk_mem_populate(p + 100, len - 200));
	cr_assert_eq(resident(p, len), 64);
	cr_assert_eq(p[4096 * 9], 7, "the contents do not change");
	sk_mem_free(p, len);
	cr_assert_not(sk_mem_populates(true));
	p = sk_mem_alloc(len);
	cr_assert(sk_mem_populates(false));
	cr_assert_eq(resident(p, len), 64);
	sk_mem_free(p, len);
}

Test(mem, what_cannot_be_had_is_null)
{
	cr_assert_null(sk_mem_alloc(0));
	cr_assert_null(sk_mem_alloc(SIZE_MAX));
	cr_assert_null(sk_mem_alloc(SIZE_MAX / 2 + 1));
	cr_assert_null(sk_mem_alloc((size_t)1 << 60));
	sk_mem_free(NULL, 4096);
}

static unsigned lines;
static enum sk_log_level last_level;
static char last_line[1024];

static void
sink(enum sk_log_level level, const char *line)
{
	lines++;
	last_level = level;
	strncpy(last_line, line, sizeof(last_line) - 1);
}

Test(log, lines_up_to_the_level_reach_the_sink)
{
	sk_log_set(SK_LOG_WARNING, sink);
	sk_log(SK_LOG_WARNING, "port %d: %s", 3, "down");
	cr_assert_eq(lines, 1);
	cr_assert_eq(last_level, SK_LOG_WARNING);
	cr_assert_str_eq(last_line, "port 3: down");
	sk_log(SK_LOG_INFO, "not this one");
	cr_assert_eq(lines, 1);
	sk_log(SK_LOG_ERR, "this one");
	cr_assert_eq(lines, 2);
}

Test(log, long_line_is_cut_off_and_stays_one_line)
{
	char big[5000];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	sk_log_set(SK_LOG_DEBUG, sink);
	sk_log(SK_LOG_DEBUG, "%s", big);
	cr_assert_eq(lines, 1);
	cr_assert_gt(strlen(last_line), 400);
	cr_assert_lt(strlen(last_line), 1000);
}

#define TOY_REASONS(X)                                                                             \
	X(TOY_LATE, SK_NOTICE, "too late")                                                         \
	X(TOY_BROKEN, SK_FATAL, "broken")
SK_REASONS_DECLARE(toy, TOY_NONE, TOY_REASONS)
SK_REASONS_DEFINE(toy, TOY_NONE, TOY_REASONS)

Test(reason, one_list_gives_enum_table_and_counters)
{
	uint64_t counters[toy_reason_count] = {0};

	cr_assert_eq(toy_reason_count, 3);
	cr_assert_eq(TOY_BROKEN, 2);
	cr_assert_str_eq(toy_reasons.layer, "toy");
	cr_assert_eq(toy_reasons.count, 3);
	cr_assert_str_eq(toy_reasons.reasons[TOY_BROKEN].name, "TOY_BROKEN");
	cr_assert_eq(toy_reasons.reasons[TOY_BROKEN].severity, SK_FATAL);
	cr_assert_str_eq(toy_reasons.reasons[TOY_LATE].help, "too late");
	sk_count(counters, TOY_LATE);
	sk_count_n(counters, TOY_LATE, 4);
	cr_assert_eq(counters[TOY_LATE], 5);
	cr_assert_eq(counters[TOY_BROKEN], 0);
}

Test(be, fields_stand_in_network_order)
{
	static const uint8_t want[14] = {
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 1, 2, 3, 4, 5, 6, 7, 8};
	struct {
		be16 a;
		be32 b;
		be64 c;
	} s = {be16_of(0x0102), be32_of(0x03040506), be64_of(0x0102030405060708)};

	cr_assert_eq(sizeof(s), 14);
	cr_assert_eq(memcmp(&s, want, 14), 0);
	cr_assert_eq(be16_get(s.a), 0x0102);
	cr_assert_eq(be32_get(s.b), 0x03040506);
	cr_assert_eq(be64_get(s.c), 0x0102030405060708);
}
