/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats the values of settings as text. */
#include <inttypes.h>
#include <stdlib.h>

#include "../../lib/wire/falcon.h"
#include "../../lib/wire/wire.h"
#include "values_priv.h"

static void
format_loops(const struct loop_list *l, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < l->n && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%u", i > 0 ? "," : "", l->loop[i]);
}

static void
format_priorities(const uint8_t pcp[ENG_PRIORITIES], char *buf, size_t len)
{
	size_t at = 0;

	for (unsigned i = 0; i < ENG_PRIORITIES && at < len; i++)
		at += (size_t)snprintf(buf + at, len - at, "%s%u", i > 0 ? "," : "", pcp[i]);
}

static void
format_psps(uint16_t all, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (const struct conf_word *w = shm_psp_words; w->name != NULL && at < len; w++)
		if (all & 1u << w->value)
			at += (size_t)snprintf(
				buf + at, len - at, "%s%s", at > 0 ? "," : "", w->name);
}

/* Formats the kinds that are a plain number. */
static void
format_number(enum kind kind, const void *at, char *buf, size_t len)
{
	uint32_t v;

	switch (kind) {
	case KIND_U8:
		v = *(const uint8_t *)at;
		break;
	case KIND_U16:
		v = *(const uint16_t *)at;
		break;
	case KIND_VLAN:
		v = *(const uint16_t *)at == ETH_NO_VLAN ? 0 : *(const uint16_t *)at;
		break;
	default:
		v = *(const uint32_t *)at;
	}
	snprintf(buf, len, "%" PRIu32, v);
}

/* Formats a number of 1024ths with as few decimals as it needs. */
static void
format_1024ths(uint32_t v, char *buf, size_t len)
{
	for (int decimals = 0; decimals <= 4; decimals++) {
		snprintf(buf, len, "%.*f", decimals, v / 1024.0);
		if (value_1024ths(strtod(buf, NULL)) == v)
			return;
	}
}

/* Formats a number of millionths without trailing zeros; nothing for 0. */
static void
format_millionths(uint64_t v, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%" PRIu64 ".%06" PRIu64, v / 1000000, v % 1000000);

	while (n > 0 && buf[n - 1] == '0')
		buf[--n] = '\0';
	if (n > 0 && buf[n - 1] == '.')
		buf[n - 1] = '\0';
	if (v == 0)
		buf[0] = '\0';
}

/* Formats the kinds that have a unit. */
static void
format_quantity(enum kind kind, const void *at, char *buf, size_t len)
{
	switch (kind) {
	case KIND_BYTES:
		conf_format(CONF_BYTES, *(const uint64_t *)at, buf, len);
		break;
	case KIND_BYTES32:
		conf_format(CONF_BYTES, *(const uint32_t *)at, buf, len);
		break;
	case KIND_COUNT:
		conf_format(CONF_COUNT, *(const uint64_t *)at, buf, len);
		break;
	case KIND_TICKS:
		conf_format(
			CONF_TIME, (uint64_t) * (const uint32_t *)at * FA_TICK_PS / 1000, buf, len);
		break;
	case KIND_RNR:
		conf_format(CONF_TIME, wire_rnr_ns(*(const uint8_t *)at), buf, len);
		break;
	default:
		conf_format(CONF_TIME, *(const uint64_t *)at, buf, len);
	}
}

/* Returns the text of the kinds that are a text or one word. */
static const char *
format_text(enum kind kind, const void *at)
{
	switch (kind) {
	case KIND_BOOL:
		return *(const bool *)at ? "yes" : "no";
	case KIND_TEXT:
	case KIND_SOURCE:
		return at;
	case KIND_IDLE:
		return conf_word_name(value_idle_words, *(const enum eng_idle *)at);
	case KIND_CC:
	case KIND_RUE:
		return *(const char *const *)at;
	default:
		return conf_word_name(value_byte_words(kind), *(const uint8_t *)at);
	}
}

/* Formats the kinds that are a list. */
static void
format_list(enum kind kind, const void *at, char *buf, size_t len)
{
	switch (kind) {
	case KIND_LOOPS:
		format_loops(at, buf, len);
		break;
	case KIND_PRIORITIES:
		format_priorities(at, buf, len);
		break;
	default:
		format_psps(*(const uint16_t *)at, buf, len);
	}
}

/* Formats the kinds that are an address with the length of its prefix. */
static void
format_prefix(const struct prefix *p, char *buf, size_t len)
{
	char addr[SK_ADDR_STRLEN];

	snprintf(buf, len, "%s/%u", sk_addr_str(&p->addr, addr), p->len);
}

void
value_format(enum kind kind, const void *at, char *buf, size_t len)
{
	char addr[SK_ADDR_STRLEN];

	switch (kind) {
	case KIND_U8:
	case KIND_U16:
	case KIND_U32:
	case KIND_UINT:
	case KIND_POWER:
	case KIND_VLAN:
		format_number(kind, at, buf, len);
		break;
	case KIND_1024THS:
		format_1024ths(*(const uint32_t *)at, buf, len);
		break;
	case KIND_UID:
		if (*(const uint32_t *)at == ENG_NO_UID)
			buf[0] = '\0';
		else
			format_number(kind, at, buf, len);
		break;
	case KIND_GIGA:
		format_millionths(*(const uint64_t *)at / 1000, buf, len);
		break;
	case KIND_MEGA:
		format_millionths(*(const uint64_t *)at, buf, len);
		break;
	case KIND_BYTES:
	case KIND_BYTES32:
	case KIND_COUNT:
	case KIND_TIME:
	case KIND_TICKS:
	case KIND_RNR:
		format_quantity(kind, at, buf, len);
		break;
	case KIND_MODE:
		snprintf(buf, len, "0%" PRIo32, *(const uint32_t *)at);
		break;
	case KIND_LOOPS:
	case KIND_PRIORITIES:
	case KIND_PSP:
		format_list(kind, at, buf, len);
		break;
	case KIND_ADDR:
		snprintf(buf, len, "%s", sk_addr_str(at, addr));
		break;
	case KIND_PREFIX:
	case KIND_HOST:
	case KIND_RANGE:
		format_prefix(at, buf, len);
		break;
	default:
		snprintf(buf, len, "%s", format_text(kind, at));
	}
}
