/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and formats numbers with units. */
#include "conf.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define REFUSE(...)  (snprintf(why, CONF_WHY, __VA_ARGS__), -EINVAL)
#define DIGITS       "0123456789"
#define MAX_WHOLE    20 /* digits before the point: those of UINT64_MAX */
#define MAX_DECIMALS 9

typedef unsigned __int128 wide;

static const struct conf_word units_1000[] = {
	{"k", 1000}, {"m", 1000000}, {"g", 1000000000}, {NULL, 0}};
static const struct conf_word units_1024[] = {
	{"k", 1ull << 10}, {"m", 1ull << 20}, {"g", 1ull << 30}, {NULL, 0}};
static const struct conf_word units_time[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};

static const struct conf_word *
units_of(enum conf_kind kind)
{
	return kind == CONF_TIME ? units_time : kind == CONF_BYTES ? units_1024 : units_1000;
}

/* A number as it is written: digits / 10^decimals. */
struct written {
	wide digits;
	unsigned decimals;
	const char *unit;
};

static bool
parse_hex(const char *text, struct written *w)
{
	char *end;

	if (!isxdigit((unsigned char)text[2]))
		return false;
	errno = 0;
	w->digits = strtoull(text + 2, &end, 16);
	w->unit = end;
	return errno == 0;
}

static bool
parse_written(const char *text, struct written *w)
{
	size_t whole = strspn(text, DIGITS), decimals = 0;

	*w = (struct written){0};
	if (text[0] == '0' && (text[1] | 32) == 'x')
		return parse_hex(text, w);
	if (whole == 0 || whole > MAX_WHOLE)
		return false;
	for (size_t i = 0; i < whole; i++)
		w->digits = w->digits * 10 + (unsigned)(text[i] - '0');
	w->unit = text + whole;
	if (*w->unit != '.')
		return true;
	decimals = strspn(++w->unit, DIGITS);
	if (decimals == 0 || decimals > MAX_DECIMALS)
		return false;
	for (; w->decimals < decimals; w->decimals++)
		w->digits = w->digits * 10 + (unsigned)(*w->unit++ - '0');
	return true;
}

/* Returns the multiplier of the number's unit, or 0 if there is no such unit. */
static uint64_t
multiplier(const struct written *w, const struct conf_range *r)
{
	const struct conf_word *u = units_of(r->kind);

	if (*w->unit == '\0')
		return r->base == 0 && w->digits == 0 ? 1 : r->base;
	while (u->name != NULL && strcasecmp(u->name, w->unit) != 0)
		u++;
	return u->value;
}

static int
refuse_range(const struct conf_range *r, uint64_t quantum, char why[CONF_WHY])
{
	static const char *const what[] = {"number", "size", "rate in bits per second", "time"};
	char min[32], max[32], one[32] = "";
	bool plain = r->kind == CONF_COUNT && r->base == 1 && quantum == 1;

	conf_format(r->kind, r->min * quantum, min, sizeof(min));
	conf_format(r->kind, r->max * quantum, max, sizeof(max));
	if (r->base > 1)
		conf_format(r->kind, r->base, one, sizeof(one));
	if (plain)
		return REFUSE("is not a number within %" PRIu64 "..%" PRIu64, r->min, r->max);
	return REFUSE("is not a %s within %s..%s%s%s", what[r->kind], min, max,
		one[0] != '\0' ? ", where 1 stands for " : "", one);
}

int
conf_number(const char *text, const struct conf_range *r, uint64_t *out, char why[CONF_WHY])
{
	uint64_t quantum = r->quantum != 0 ? r->quantum : 1, scale = 1, unit;
	struct written w;
	wide v;

	if (!parse_written(text, &w) || (unit = multiplier(&w, r)) == 0)
		return r->kind == CONF_TIME && r->base == 0
			       ? REFUSE("is not a time with its unit (ns, us, ms, s)")
			       : refuse_range(r, quantum, why);
	for (unsigned i = 0; i < w.decimals; i++)
		scale *= 10;
	/* At most 29 digits times 2^30 fit into 128 bits. */
	v = w.digits * unit;
	if (v / scale / quantum > r->max || v / scale / quantum < r->min)
		return refuse_range(r, quantum, why);
	if (v % ((wide)scale * quantum) != 0) {
		char one[32];

		conf_format(r->kind, quantum, one, sizeof(one));
		return REFUSE("is not a multiple of %s", one);
	}
	*out = (uint64_t)(v / scale / quantum);
	return 0;
}

int
conf_real(const char *text, double min, double max, double *out, char why[CONF_WHY])
{
	char *end;
	double v;

	/* strtod() also accepts hexadecimal numbers, spaces, infinities and NaN. */
	if (text[0] == '\0' || text[strspn(text, DIGITS ".e+-")] != '\0')
		return REFUSE("is not a number within %g..%g", min, max);
	v = strtod(text, &end);
	if (*end != '\0' || !(v >= min && v <= max))
		return REFUSE("is not a number within %g..%g", min, max);
	*out = v;
	return 0;
}

int
conf_octal(const char *text, uint32_t min, uint32_t max, uint32_t *out, char why[CONF_WHY])
{
	size_t n = strspn(text, "01234567");
	unsigned long v;

	errno = 0;
	v = strtoul(text, NULL, 8);
	if (n == 0 || text[n] != '\0' || errno != 0 || v < min || v > max)
		return REFUSE("is not an octal mode within 0%" PRIo32 "..0%" PRIo32, min, max);
	*out = (uint32_t)v;
	return 0;
}

void
conf_format(enum conf_kind kind, uint64_t v, char *buf, size_t len)
{
	const struct conf_word *best = NULL;

	for (const struct conf_word *u = units_of(kind); v != 0 && u->name != NULL; u++)
		if (v % u->value == 0)
			best = u;
	if (best == NULL)
		snprintf(buf, len, "%" PRIu64, v);
	else
		snprintf(buf, len, "%" PRIu64 "%s", v / best->value, best->name);
}
