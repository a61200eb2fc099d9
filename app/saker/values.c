/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the values of settings. */
#include "values_priv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../lib/falcon/rue.h"
#include "../../lib/rof/rof.h"
#include "../../lib/wire/falcon.h"
#include "../../lib/wire/wire.h"

#define REFUSE(...) settings_refuse(why, __VA_ARGS__)

const struct value_word value_size_units[] = {
	{"k", 1ull << 10}, {"m", 1ull << 20}, {"g", 1ull << 30}, {"", 1}, {NULL, 0}};
const struct value_word value_time_units[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};
static const struct value_word bool_words[] = {{"yes", 1}, {"no", 0}, {"on", 1}, {"off", 0},
	{"true", 1}, {"false", 0}, {"1", 1}, {"0", 0}, {NULL, 0}};
const struct value_word value_idle_words[] = {
	{"poll", ENG_IDLE_POLL}, {"yield", ENG_IDLE_YIELD}, {"sleep", ENG_IDLE_SLEEP}, {NULL, 0}};
/* Strongest first, in the order in which two peers choose. */
const struct value_word value_psp_words[] = {{"gcm256", PSP_AES_GCM_256},
	{"gcm128", PSP_AES_GCM_128}, {"gmac256", PSP_GMAC_256}, {"gmac128", PSP_GMAC_128},
	{"none", PSP_NO_CRYPTO}, {NULL, 0}};
static const struct value_word ordering_words[] = {{"strong", ROF_ORDER_STRONG},
	{"weak", ROF_ORDER_WEAK}, {"none", ROF_ORDER_NONE}, {NULL, 0}};
static const struct value_word errors_words[] = {
	{"verbs", ROF_ERRORS_VERBS}, {"complete", ROF_ERRORS_COMPLETE}, {NULL, 0}};
static const struct value_word flows_words[] = {{"1", 1}, {"4", FA_FLOWS_MAX}, {NULL, 0}};
static const struct value_word cc_words[] = {{"cubic", 0}, {"dctcp", 1}, {"none", 2}, {NULL, 0}};

int
settings_refuse(char why[WHY_LEN], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, WHY_LEN, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static const struct value_word *
word_find(const struct value_word *words, const char *text)
{
	for (; words->name != NULL; words++)
		if (strcasecmp(words->name, text) == 0)
			return words;
	return NULL;
}

/* Parses digits and then a unit of the table (NULL: none). */
static bool
values_number(const char *text, const struct value_word *units, uint64_t *out)
{
	const struct value_word *unit;
	uint64_t v;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0)
		return false;
	*out = v;
	if (units == NULL)
		return *end == '\0';
	unit = word_find(units, end);
	return unit != NULL && !__builtin_mul_overflow(v, unit->value, out);
}

static int
values_parse_number(
	enum kind kind, uint64_t min, uint64_t max, const char *text, void *at, char *why)
{
	const struct value_word *units =
		kind == KIND_BYTES || kind == KIND_BYTES32 ? value_size_units : NULL;
	uint64_t v;

	if (!values_number(text, units, &v) || v < min || v > max)
		return REFUSE("is not %s within %" PRIu64 "..%" PRIu64,
			units != NULL ? "a size" : "a number", min, max);
	switch (kind) {
	case KIND_U8:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case KIND_U16:
		*(uint16_t *)at = (uint16_t)v;
		break;
	case KIND_BYTES:
		*(uint64_t *)at = v;
		break;
	default:
		*(uint32_t *)at = (uint32_t)v;
	}
	return 0;
}

static int
parse_time(uint64_t min, uint64_t max, const char *text, uint64_t *at, char *why)
{
	uint64_t v;

	/* 0 is valid without a unit. */
	if (strcmp(text, "0") == 0 && min == 0) {
		*at = 0;
		return 0;
	}
	if (!values_number(text, value_time_units, &v))
		return REFUSE("is not a time with its unit (ns, us, ms, s)");
	if (v < min || v > max)
		return REFUSE("is not a time within %" PRIu64 "us..%" PRIu64 "us", min / 1000,
			max / 1000);
	*at = v;
	return 0;
}

/* Parses a decimal number with at most six digits behind the point. `min` and `max` apply to its
 * millionths. Stores the number multiplied by `unit`, which is a multiple of 10^6. */
static int
parse_fraction(uint64_t unit, uint64_t min, uint64_t max, const char *text, uint64_t *at, char *why)
{
	size_t whole = strspn(text, "0123456789"), digits = 0;
	uint64_t v = 0;

	if (whole > 0 && text[whole] == '.')
		digits = strspn(text + whole + 1, "0123456789");
	if (whole > 0 && whole <= 9 && digits <= 6 &&
		text[whole + (digits > 0 ? digits + 1 : 0)] == '\0') {
		for (size_t i = 0; i < whole + 6; i++) {
			const char *d = i < whole ? text + i : text + i + 1;

			v = v * 10 + (i < whole + digits ? (uint64_t)(*d - '0') : 0);
		}
	}
	if (v == 0 || v < min || v > max)
		return REFUSE("is not a number within %g..%g with at most 6 decimals",
			(double)min / 1e6, (double)max / 1e6);
	*at = v * (unit / 1000000);
	return 0;
}

static int
parse_uid(const char *text, uint32_t *at, char *why)
{
	uint64_t v;

	if (!values_number(text, NULL, &v) || v >= ENG_NO_UID)
		return REFUSE("is not a user ID within 0..%u", ENG_NO_UID - 1);
	*at = (uint32_t)v;
	return 0;
}

static int
parse_text(uint64_t max, const char *text, char *at, char *why)
{
	if (text[0] == '\0')
		return REFUSE("is empty");
	if (strlen(text) >= max)
		return REFUSE("is longer than %" PRIu64 " bytes", max - 1);
	strcpy(at, text);
	return 0;
}

static int
parse_loops(const char *text, struct loop_list *out, char *why)
{
	struct loop_list l = {0};
	char copy[NAME_LEN], *save = NULL;
	uint64_t v;

	if (strlen(text) >= sizeof(copy))
		return REFUSE("is longer than %zu characters", sizeof(copy) - 1);
	strcpy(copy, text);
	for (char *t = strtok_r(copy, ", ", &save); t != NULL; t = strtok_r(NULL, ", ", &save)) {
		if (l.n == ENG_MAX_TRANSPORTS || !values_number(t, NULL, &v) || v >= ENG_MAX_LCORES)
			return REFUSE("is not a list of loops, such as 0,1,1");
		l.loop[l.n++] = (unsigned)v;
	}
	if (l.n == 0)
		return REFUSE("is not a list of loops, such as 0,1,1");
	*out = l;
	return 0;
}

static int
parse_prefix(const char *text, struct prefix *out, char *why)
{
	const char *slash = strchr(text, '/');
	char addr[SK_ADDR_STRLEN];
	struct prefix p;
	uint64_t len;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(addr))
		return REFUSE("is not an address with its prefix length, such as 10.0.0.1/24");
	memcpy(addr, text, (size_t)(slash - text));
	addr[slash - text] = '\0';
	if (sk_addr_parse(addr, &p.addr) < 0)
		return REFUSE("is not an IPv4 or IPv6 address with its prefix length");
	if (!values_number(slash + 1, NULL, &len) || len > (sk_addr_is_v4(&p.addr) ? 32 : 128))
		return REFUSE("has a prefix length that is not within 0..%d",
			sk_addr_is_v4(&p.addr) ? 32 : 128);
	p.len = (unsigned)len;
	*out = p;
	return 0;
}

static int
parse_word(enum kind kind, const char *text, void *at, char *why)
{
	const struct value_word *w;

	if (kind == KIND_BOOL) {
		w = word_find(bool_words, text);
		if (w == NULL)
			return REFUSE("is neither yes nor no");
		*(bool *)at = w->value != 0;
		return 0;
	}
	w = word_find(kind == KIND_IDLE ? value_idle_words : cc_words, text);
	if (w == NULL)
		return REFUSE("is not one of %s",
			kind == KIND_IDLE ? "poll, yield, sleep" : "cubic, dctcp, none");
	if (kind == KIND_IDLE)
		*(enum eng_idle *)at = (enum eng_idle)w->value;
	else
		*(const char **)at = w->name;
	return 0;
}

const struct value_word *
value_byte_words(enum kind kind, const char **all)
{
	switch (kind) {
	case KIND_ORDERING:
		*all = "strong, weak, none";
		return ordering_words;
	case KIND_ERRORS:
		*all = "verbs, complete";
		return errors_words;
	default:
		*all = "1, 4";
		return flows_words;
	}
}

static int
parse_byte_word(enum kind kind, const char *text, uint8_t *at, char *why)
{
	const char *all;
	const struct value_word *w = word_find(value_byte_words(kind, &all), text);

	if (w == NULL)
		return REFUSE("is not one of %s", all);
	*at = (uint8_t)w->value;
	return 0;
}

/* Parses the list of PSP versions that a connection may use. */
static int
parse_psps(const char *text, uint16_t *at, char *why)
{
	char copy[NAME_LEN], *save = NULL;
	const struct value_word *w = NULL;
	uint16_t all = 0;

	copy[0] = '\0';
	if (strlen(text) < sizeof(copy))
		strcpy(copy, text);
	for (char *t = strtok_r(copy, ", ", &save); t != NULL; t = strtok_r(NULL, ", ", &save)) {
		w = word_find(value_psp_words, t);
		if (w == NULL)
			break;
		all |= (uint16_t)(1u << w->value);
	}
	if (w == NULL)
		return REFUSE("is not a list of none, gcm128, gcm256, gmac128, gmac256");
	*at = all;
	return 0;
}

static int
parse_ticks(uint64_t min, uint64_t max, const char *text, uint32_t *at, char *why)
{
	uint64_t v = 0;
	int rc = parse_time(min, max, text, &v, why);

	if (rc == 0)
		*at = fa_ticks_near(v);
	return rc;
}

static int
parse_window(uint64_t min, uint64_t max, const char *text, uint32_t *at, char *why)
{
	uint32_t packets = 0;
	int rc = values_parse_number(KIND_U32, min, max, text, &packets, why);

	if (rc == 0)
		*at = packets * FA_CWND_ONE;
	return rc;
}

static int
parse_rnr(const char *text, uint8_t *at, char *why)
{
	uint64_t v = 0;
	int rc = parse_time(wire_rnr_ns(1), wire_rnr_ns(0), text, &v, why);

	if (rc == 0)
		*at = wire_rnr_code(v);
	return rc;
}

/* Parses the name of a file or of a credential. */
static int
parse_source(uint64_t max, const char *text, char *at, char *why)
{
	size_t prefix = strlen(CREDENTIAL);
	const char *name = text + prefix;

	if (text[0] != '/' && (strncmp(text, CREDENTIAL, prefix) != 0 || name[0] == '\0' ||
				      name[0] == '.' || strchr(name, '/') != NULL))
		return REFUSE("is neither the path of a file (/...) nor credential:NAME");
	return parse_text(max, text, at, why);
}

static int
parse_range(const char *text, struct prefix *out, char *why)
{
	if (strchr(text, '/') != NULL)
		return parse_prefix(text, out, why);
	if (sk_addr_parse(text, &out->addr) < 0)
		return REFUSE("is neither an IPv4 or IPv6 address nor a prefix of addresses");
	out->len = sk_addr_is_v4(&out->addr) ? 32 : 128;
	return 0;
}

static int
parse_vlan(const char *text, uint16_t *at, char *why)
{
	uint64_t v;

	if (!values_number(text, NULL, &v) || v > 4094)
		return REFUSE("is not a VLAN within 1..4094, or 0 for none");
	*at = v == 0 ? ETH_NO_VLAN : (uint16_t)v;
	return 0;
}

static int
parse_mode(uint64_t min, uint64_t max, const char *text, uint32_t *at, char *why)
{
	size_t n = strspn(text, "01234567");
	unsigned long v = strtoul(text, NULL, 8);

	if (n == 0 || text[n] != '\0' || v < min || v > max)
		return REFUSE("is not an octal mode within 0%" PRIo64 "..0%" PRIo64, min, max);
	*at = (uint32_t)v;
	return 0;
}

int
value_parse(
	enum kind kind, uint64_t min, uint64_t max, const char *text, void *at, char why[WHY_LEN])
{
	switch (kind) {
	case KIND_TIME:
		return parse_time(min, max, text, at, why);
	case KIND_TEXT:
		return parse_text(max, text, at, why);
	case KIND_BOOL:
	case KIND_IDLE:
	case KIND_CC:
		return parse_word(kind, text, at, why);
	case KIND_LOOPS:
		return parse_loops(text, at, why);
	case KIND_ADDR:
		return sk_addr_parse(text, at) == 0 ? 0 : REFUSE("is not an IPv4 or IPv6 address");
	case KIND_PREFIX:
		return parse_prefix(text, at, why);
	case KIND_VLAN:
		return parse_vlan(text, at, why);
	case KIND_MODE:
		return parse_mode(min, max, text, at, why);
	case KIND_UID:
		return parse_uid(text, at, why);
	case KIND_GIGA:
		return parse_fraction(1000000000, min, max, text, at, why);
	case KIND_MEGA:
		return parse_fraction(1000000, min, max, text, at, why);
	case KIND_PSP:
		return parse_psps(text, at, why);
	case KIND_TICKS:
		return parse_ticks(min, max, text, at, why);
	case KIND_WINDOW:
		return parse_window(min, max, text, at, why);
	case KIND_ORDERING:
	case KIND_ERRORS:
	case KIND_FLOWS:
		return parse_byte_word(kind, text, at, why);
	case KIND_RNR:
		return parse_rnr(text, at, why);
	case KIND_SOURCE:
		return parse_source(max, text, at, why);
	case KIND_RANGE:
		return parse_range(text, at, why);
	default:
		return values_parse_number(kind, min, max, text, at, why);
	}
}
