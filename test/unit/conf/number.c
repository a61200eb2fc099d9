/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers: each accepted form with its value, and each refused form with its sentence. */
#include <criterion/criterion.h>

#include <errno.h>
#include <inttypes.h>

#include "../../../lib/conf/conf.h"

#define WITHIN_GIGA "is not a rate in bits per second within 1k..10000g, where 1 stands for 1g"

static const struct conf_range count = {CONF_COUNT, 1, 1, 0, UINT64_MAX};
static const struct conf_range small = {CONF_COUNT, 1, 1, 5, 2000};
static const struct conf_range bytes = {CONF_BYTES, 1, 1, 0, UINT64_MAX};
static const struct conf_range sized = {CONF_BYTES, 1, 1, 4096, 1u << 30};
static const struct conf_range bits = {CONF_BITS, 1, 1, 0, UINT64_MAX};
static const struct conf_range giga = {CONF_BITS, 1000000000, 1, 1000, 10000000000000};
static const struct conf_range mops = {CONF_COUNT, 1000000, 1, 1, 10000000000};
static const struct conf_range span = {CONF_TIME, 0, 1, 0, 60000000000};
static const struct conf_range least = {CONF_TIME, 0, 1, 100000, 60000000000};
static const struct conf_range us = {CONF_TIME, 1000, 1000, 0, 10000000};

Test(conf_number, each_accepted_form_has_its_value)
{
	static const struct {
		const char *text;
		const struct conf_range *range;
		uint64_t value;
	} rows[] = {
		{"0", &count, 0},
		{"007", &count, 7},
		{"18446744073709551615", &count, UINT64_MAX},
		{"0x10", &count, 16},
		{"0XfF", &count, 255},
		{"0xffffffffffffffff", &count, UINT64_MAX},
		{"64k", &count, 64000},
		{"1M", &count, 1000000},
		{"1.5g", &count, 1500000000},
		{"2.000", &count, 2},
		{"64k", &bytes, 65536},
		{"0x10k", &bytes, 16384},
		{"1.5m", &bytes, 1572864},
		{"2G", &bytes, 2ull << 30},
		{"4096", &sized, 4096},
		{"10g", &bits, 10000000000},
		{"2.5", &giga, 2500000000},
		{"500m", &giga, 500000000},
		{"0.000001", &mops, 1},
		{"20k", &mops, 20000},
		{"0", &span, 0},
		{"1ns", &span, 1},
		{"250us", &span, 250000},
		{"1.5ms", &span, 1500000},
		{"60S", &span, 60000000000},
		{"5", &us, 5},
		{"2ms", &us, 2000},
		{"10s", &us, 10000000},
	};
	char why[CONF_WHY];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = 12345;

		cr_assert_eq(conf_number(rows[i].text, rows[i].range, &v, why), 0, "%s: %s",
			rows[i].text, why);
		cr_assert_eq(v, rows[i].value, "%s: %" PRIu64, rows[i].text, v);
	}
}

Test(conf_number, each_refused_form_has_its_sentence)
{
	static const struct {
		const char *text;
		const struct conf_range *range;
		const char *why;
	} rows[] = {
		{"", &small, "is not a number within 5..2000"},
		{"4", &small, "is not a number within 5..2000"},
		{"2001", &small, "is not a number within 5..2000"},
		{"-5", &small, "is not a number within 5..2000"},
		{"+5", &small, "is not a number within 5..2000"},
		{" 5", &small, "is not a number within 5..2000"},
		{"5 ", &small, "is not a number within 5..2000"},
		{"5x", &small, "is not a number within 5..2000"},
		{"0x", &small, "is not a number within 5..2000"},
		{"0xg", &small, "is not a number within 5..2000"},
		{"x5", &small, "is not a number within 5..2000"},
		{"1e3", &small, "is not a number within 5..2000"},
		{"5ms", &small, "is not a number within 5..2000"},
		{".5k", &small, "is not a number within 5..2000"},
		{"5.", &small, "is not a number within 5..2000"},
		{"5.k", &small, "is not a number within 5..2000"},
		{"1.5", &count, "is not a multiple of 1"},
		{"99999999999999999999", &small, "is not a number within 5..2000"},
		{"999999999999999999999", &small, "is not a number within 5..2000"},
		{"18446744073709551616", &count, "is not a number within 0..18446744073709551615"},
		{"18446744073709551615g", &count, "is not a number within 0..18446744073709551615"},
		{"0x10000000000000000", &count, "is not a number within 0..18446744073709551615"},
		{"4095", &sized, "is not a size within 4k..1g"},
		{"2g", &sized, "is not a size within 4k..1g"},
		{"4kk", &sized, "is not a size within 4k..1g"},
		{"0", &giga, WITHIN_GIGA},
		{"1.0000000001", &giga, WITHIN_GIGA},
		{"10001", &mops, "is not a number within 1..10g, where 1 stands for 1m"},
		{"1.0000001", &mops, "is not a multiple of 1"},
		{"10", &least, "is not a time with its unit (ns, us, ms, s)"},
		{"0", &least, "is not a time within 100us..60s"},
		{"10m", &least, "is not a time with its unit (ns, us, ms, s)"},
		{"99us", &least, "is not a time within 100us..60s"},
		{"61s", &least, "is not a time within 100us..60s"},
		{"11s", &us, "is not a time within 0..10s, where 1 stands for 1us"},
		{"500ns", &us, "is not a multiple of 1us"},
	};
	char why[CONF_WHY];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = 12345;

		cr_assert_eq(conf_number(rows[i].text, rows[i].range, &v, why), -EINVAL, "%s",
			rows[i].text);
		cr_assert_str_eq(why, rows[i].why, "%s: %s", rows[i].text, why);
		cr_assert_eq(v, 12345, "what is refused changes nothing");
	}
}

Test(conf_number, what_is_formatted_is_parsed_to_the_same_value)
{
	static const uint64_t values[] = {0, 1, 1000, 1024, 1500, 65536, 1000000, 1048576,
		1500000000, 1ull << 40, UINT64_MAX};
	static const struct conf_range *const ranges[] = {&count, &bytes, &bits};
	char text[32], why[CONF_WHY];
	uint64_t v;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (size_t k = 0; k < 3; k++) {
			conf_format(ranges[k]->kind, values[i], text, sizeof(text));
			cr_assert_eq(conf_number(text, ranges[k], &v, why), 0, "%s", text);
			cr_assert_eq(v, values[i], "%s", text);
		}
	conf_format(CONF_TIME, 1500000, text, sizeof(text));
	cr_assert_str_eq(text, "1500us");
	conf_format(CONF_BYTES, 3 << 20, text, sizeof(text));
	cr_assert_str_eq(text, "3m");
}

Test(conf_number, a_real_number_is_decimal)
{
	static const char *const wrong[] = {
		"", "nan", "inf", "0x1p3", " 1", "1 ", "1x", "-1", "101", "1e", "1,5"};
	char why[CONF_WHY];
	double v = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(conf_real(wrong[i], 0, 100, &v, why), -EINVAL, "%s", wrong[i]);
		cr_assert_str_eq(why, "is not a number within 0..100");
	}
	cr_assert_eq(v, 7);
	cr_assert_eq(conf_real("2.5e-1", 0, 100, &v, why), 0);
	cr_assert_eq(v, 0.25);
	cr_assert_eq(conf_real("100", 0, 100, &v, why), 0);
	cr_assert_eq(v, 100);
}

Test(conf_number, a_mode_is_octal)
{
	static const char *const wrong[] = {
		"", "0560", "4660", "0668", "rw", "-0660", "0x1b0", "66000000000000000000000660"};
	char why[CONF_WHY];
	uint32_t v = 7;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(conf_octal(wrong[i], 0600, 0777, &v, why), -EINVAL, "%s", wrong[i]);
		cr_assert_str_eq(why, "is not an octal mode within 0600..0777");
	}
	cr_assert_eq(v, 7);
	cr_assert_eq(conf_octal("0660", 0600, 0777, &v, why), 0);
	cr_assert_eq(v, 0660);
}
