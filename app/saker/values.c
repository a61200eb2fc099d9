/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the values of settings. */
#include "values_priv.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/falcon/rue.h"
#include "../../lib/rof/rof.h"
#include "../../lib/wire/falcon.h"
#include "../../lib/wire/wire.h"

#define NUMBER_DIGITS 15 /* most digits of a number: they fit into 64 bits */
#define REFUSE(...)   settings_refuse(why, __VA_ARGS__)

const struct conf_word value_idle_words[] = {
	{"poll", ENG_IDLE_POLL}, {"yield", ENG_IDLE_YIELD}, {"sleep", ENG_IDLE_SLEEP}, {NULL, 0}};
static const struct conf_word ordering_words[] = {{"strong", ROF_ORDER_STRONG},
	{"weak", ROF_ORDER_WEAK}, {"none", ROF_ORDER_NONE}, {NULL, 0}};
static const struct conf_word errors_words[] = {
	{"verbs", ROF_ERRORS_VERBS}, {"complete", ROF_ERRORS_COMPLETE}, {NULL, 0}};
static const struct conf_word delay_words[] = {{"full", FA_DELAY_FULL}, {"fabric", FA_DELAY_FABRIC},
	{"forward", FA_DELAY_FORWARD}, {"reverse", FA_DELAY_REVERSE}, {NULL, 0}};
static const struct conf_word level_words[] = {{"error", SK_LOG_ERR}, {"warning", SK_LOG_WARNING},
	{"info", SK_LOG_INFO}, {"debug", SK_LOG_DEBUG}, {NULL, 0}};
static const struct conf_word cc_words[] = {{"cubic", 0}, {"dctcp", 1}, {"none", 2}, {NULL, 0}};
static const struct conf_word rue_words[] = {{"swift", 0}, {"dctcp", 1}, {"fixed", 2}, {NULL, 0}};

int
settings_refuse(char why[WHY_LEN], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, WHY_LEN, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool
value_number(const char *text, uint32_t *out)
{
	bool hex = text[0] == '0' && (text[1] | 32) == 'x';
	const char *digits = hex ? text + 2 : text;
	size_t n = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");
	uint64_t v;

	if (n == 0 || n > NUMBER_DIGITS || digits[n] != '\0')
		return false;
	v = strtoull(digits, NULL, hex ? 16 : 10);
	if (v > UINT32_MAX)
		return false;
	*out = (uint32_t)v;
	return true;
}

/* Parses a number without or with a unit, from min to max. */
static int
values_quantity(enum conf_kind unit, uint64_t base, uint64_t min, uint64_t max, const char *text,
	uint64_t *out, char *why)
{
	const struct conf_range r = {.kind = unit, .base = base, .min = min, .max = max};

	return conf_number(text, &r, out, why);
}

static int
values_parse_number(
	enum kind kind, uint64_t min, uint64_t max, const char *text, void *at, char *why)
{
	bool bytes = kind == KIND_BYTES || kind == KIND_BYTES32;
	uint64_t v = 0;

	if (values_quantity(bytes ? CONF_BYTES : CONF_COUNT, 1, min, max, text, &v, why) < 0)
		return -EINVAL;
	switch (kind) {
	case KIND_U8:
		*(uint8_t *)at = (uint8_t)v;
		break;
	case KIND_U16:
		*(uint16_t *)at = (uint16_t)v;
		break;
	case KIND_BYTES:
	case KIND_COUNT:
		*(uint64_t *)at = v;
		break;
	case KIND_POWER:
		if ((v & (v - 1)) != 0)
			return REFUSE(
				"is not a power of two within %" PRIu64 "..%" PRIu64, min, max);
		*(uint32_t *)at = (uint32_t)v;
		break;
	default:
		*(uint32_t *)at = (uint32_t)v;
	}
	return 0;
}

static int
parse_time(uint64_t min, uint64_t max, const char *text, uint64_t *at, char *why)
{
	return values_quantity(CONF_TIME, 0, min, max, text, at, why);
}

static int
parse_uid(const char *text, uint32_t *at, char *why)
{
	uint64_t v;

	if (values_quantity(CONF_COUNT, 1, 0, ENG_NO_UID - 1, text, &v, why) < 0)
		return REFUSE("is not a user ID within 0..%u", ENG_NO_UID - 1);
	*at = (uint32_t)v;
	return 0;
}

static int
loops_add(void *arg, const char *item, char *why)
{
	struct loop_list *l = arg;
	uint64_t v;

	if (l->n == ENG_MAX_TRANSPORTS ||
		values_quantity(CONF_COUNT, 1, 0, ENG_MAX_LCORES - 1, item, &v, why) < 0)
		return -EINVAL;
	l->loop[l->n++] = (unsigned)v;
	return 0;
}

static int
parse_loops(const char *text, struct loop_list *out, char *why)
{
	struct loop_list l = {0};

	if (conf_list(text, loops_add, &l, why) < 0)
		return REFUSE("is not a list of loops, such as 0,1,1");
	*out = l;
	return 0;
}

struct priorities {
	unsigned n;
	uint8_t pcp[ENG_PRIORITIES];
};

static int
priorities_add(void *arg, const char *item, char *why)
{
	struct priorities *p = arg;
	uint64_t v;

	if (p->n == ENG_PRIORITIES ||
		values_quantity(CONF_COUNT, 1, 0, ENG_PRIORITIES - 1, item, &v, why) < 0)
		return -EINVAL;
	p->pcp[p->n++] = (uint8_t)v;
	return 0;
}

static int
parse_priorities(const char *text, uint8_t out[ENG_PRIORITIES], char *why)
{
	struct priorities p = {0};

	if (conf_list(text, priorities_add, &p, why) < 0 || p.n != ENG_PRIORITIES)
		return REFUSE("is not a list of %u priorities within 0..%u, such as "
			      "1,0,2,3,4,5,6,7",
			ENG_PRIORITIES, ENG_PRIORITIES - 1);
	memcpy(out, p.pcp, sizeof(p.pcp));
	return 0;
}

static int
parse_idle(const char *text, enum eng_idle *at, char *why)
{
	uint64_t v;

	if (conf_word(text, value_idle_words, &v, why) < 0)
		return -EINVAL;
	*at = (enum eng_idle)v;
	return 0;
}

static int
parse_name(const struct conf_word *words, const char *text, const char **at, char *why)
{
	uint64_t v;

	if (conf_word(text, words, &v, why) < 0)
		return -EINVAL;
	*at = conf_word_name(words, v);
	return 0;
}

const struct conf_word *
value_byte_words(enum kind kind)
{
	switch (kind) {
	case KIND_ORDERING:
		return ordering_words;
	case KIND_ERRORS:
		return errors_words;
	case KIND_ORDERING_CHOICE:
		return shm_ordering_words;
	case KIND_ERRORS_CHOICE:
		return shm_errors_words;
	case KIND_DELAY:
		return delay_words;
	case KIND_LEVEL:
		return level_words;
	default:
		return shm_flows_words;
	}
}

static int
parse_byte_word(enum kind kind, const char *text, uint8_t *at, char *why)
{
	uint64_t v;

	if (conf_word(text, value_byte_words(kind), &v, why) < 0)
		return -EINVAL;
	*at = (uint8_t)v;
	return 0;
}

/* Parses the kinds that are one word of a list. */
static int
parse_word(enum kind kind, const char *text, void *at, char *why)
{
	switch (kind) {
	case KIND_BOOL:
		return conf_bool(text, at, why);
	case KIND_IDLE:
		return parse_idle(text, at, why);
	case KIND_CC:
		return parse_name(cc_words, text, at, why);
	case KIND_RUE:
		return parse_name(rue_words, text, at, why);
	default:
		return parse_byte_word(kind, text, at, why);
	}
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

/* Parses a number from min / 1024 to max / 1024. */
static int
parse_1024ths(uint64_t min, uint64_t max, const char *text, uint32_t *at, char *why)
{
	double v = 0;
	int rc = conf_real(text, (double)min / 1024, (double)max / 1024, &v, why);

	if (rc == 0)
		*at = value_1024ths(v);
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

/* Parses a text. Refuses one that no configuration file can hold: 'save' writes texts that came
 * from options, from the environment and from commands. */
static int
parse_text(uint64_t max, const char *text, char *at, char *why)
{
	size_t len = strlen(text);

	if (len > 0 && (isspace((unsigned char)text[0]) || isspace((unsigned char)text[len - 1])))
		return REFUSE("begins or ends with a blank");
	for (const char *p = text; *p != '\0'; p++)
		if (*p == ';' || iscntrl((unsigned char)*p))
			return REFUSE("has %s, which a configuration file cannot hold",
				*p == ';' ? "a ';'" : "a control character");
	return conf_text(text, max, at, why);
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
		return conf_prefix(text, &out->addr, &out->len, why);
	if (sk_addr_parse(text, &out->addr) < 0)
		return REFUSE("is neither an IPv4 or IPv6 address nor a prefix of addresses");
	out->len = sk_addr_is_v4(&out->addr) ? 32 : 128;
	return 0;
}

static int
parse_vlan(const char *text, uint16_t *at, char *why)
{
	uint64_t v;

	if (values_quantity(CONF_COUNT, 1, 0, 4094, text, &v, why) < 0)
		return REFUSE("is not a VLAN within 1..4094, or 0 for none");
	*at = v == 0 ? ETH_NO_VLAN : (uint16_t)v;
	return 0;
}

int
value_parse(
	enum kind kind, uint64_t min, uint64_t max, const char *text, void *at, char why[WHY_LEN])
{
	struct prefix *p = at;

	switch (kind) {
	case KIND_TIME:
		return parse_time(min, max, text, at, why);
	case KIND_TEXT:
		return parse_text(max, text, at, why);
	case KIND_BOOL:
	case KIND_IDLE:
	case KIND_CC:
	case KIND_RUE:
	case KIND_ORDERING:
	case KIND_ERRORS:
	case KIND_ORDERING_CHOICE:
	case KIND_ERRORS_CHOICE:
	case KIND_FLOWS:
	case KIND_DELAY:
	case KIND_LEVEL:
		return parse_word(kind, text, at, why);
	case KIND_LOOPS:
		return parse_loops(text, at, why);
	case KIND_PRIORITIES:
		return parse_priorities(text, at, why);
	case KIND_ADDR:
		return conf_addr(text, at, why);
	case KIND_PREFIX:
		return conf_prefix(text, &p->addr, &p->len, why);
	case KIND_HOST:
		return conf_host_prefix(text, &p->addr, &p->len, why);
	case KIND_VLAN:
		return parse_vlan(text, at, why);
	case KIND_MODE:
		return conf_octal(text, (uint32_t)min, (uint32_t)max, at, why);
	case KIND_UID:
		return parse_uid(text, at, why);
	case KIND_GIGA:
		return values_quantity(CONF_BITS, 1000000000, min, max, text, at, why);
	case KIND_MEGA:
		return values_quantity(CONF_COUNT, 1000000, min, max, text, at, why);
	case KIND_PSP:
		return shm_psp_parse(text, at, why);
	case KIND_TICKS:
		return parse_ticks(min, max, text, at, why);
	case KIND_1024THS:
		return parse_1024ths(min, max, text, at, why);
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
