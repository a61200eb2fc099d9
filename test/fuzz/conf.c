/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files and values: whatever the bytes are, a refusal is one printable line, an
 * accepted number is in its range, and its formatted form has the same value. */
#include <ctype.h>
#include <stdio.h>

#include "../../lib/conf/conf.h"
#include "fuzz.h"

static void
claim_sentence(const char *why, size_t size)
{
	size_t n = strnlen(why, size);

	CLAIM(n > 5 && n < size);
	for (size_t i = 0; i < n; i++)
		CLAIM(isprint((unsigned char)why[i]));
}

static void
one_number(const char *text, const struct conf_range *r)
{
	char why[CONF_WHY], buf[32];
	uint64_t v, again;

	if (conf_number(text, r, &v, why) < 0) {
		claim_sentence(why, sizeof(why));
		return;
	}
	CLAIM(v >= r->min && v <= r->max);
	if (r->base != 1 || r->quantum != 1)
		return;
	conf_format(r->kind, v, buf, sizeof(buf));
	CLAIM(conf_number(buf, r, &again, why) == 0 && again == v);
}

static int
each_item(void *arg, const char *item, char why[CONF_WHY])
{
	CLAIM(item[0] != '\0' && strpbrk(item, ", \t") == NULL);
	return 0;
}

static int
on_entry(void *arg, const struct conf_place *at, const char *key, const char *value,
	char why[CONF_SENTENCE])
{
	static const struct conf_word words[] = {{"poll", 1}, {"sleep", 2}, {NULL, 0}};
	static const struct conf_range ranges[] = {{CONF_COUNT, 1, 1, 0, UINT64_MAX},
		{CONF_BYTES, 1, 1, 1, 1ull << 40}, {CONF_BITS, 1000000000, 1, 1, 1ull << 50},
		{CONF_TIME, 0, 1, 0, 60000000000}, {CONF_TIME, 1000, 1000, 0, 10000000}};
	char reason[CONF_WHY], text[20];
	struct sk_addr a;
	uint8_t mac[6];
	uint64_t v;
	double d;
	unsigned len;
	uint32_t m;
	bool b;

	CLAIM(at->section != NULL && value[0] != '\0');
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		one_number(value, &ranges[i]);
	if (conf_real(value, 0, 1, &d, reason) == 0)
		CLAIM(d >= 0 && d <= 1);
	if (conf_octal(value, 0600, 0777, &m, reason) == 0)
		CLAIM(m >= 0600 && m <= 0777);
	if (conf_prefix(value, &a, &len, reason) == 0) {
		CLAIM(len <= (sk_addr_is_v4(&a) ? 32 : 128));
		conf_host(&a, len, reason);
	}
	if (conf_word(value, words, &v, reason) == 0)
		CLAIM(v == 1 || v == 2);
	if (conf_text(value, sizeof(text), text, reason) == 0)
		CLAIM(strlen(text) < sizeof(text));
	conf_bool(value, &b, reason);
	conf_mac(value, mac, reason);
	conf_list(value, each_item, NULL, reason);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct conf_reader reader = {.entry = on_entry};
	char why[CONF_SENTENCE], *copy = malloc(size + 1);

	CLAIM(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	if (conf_read_text(copy, size, "file", &reader, NULL, why, sizeof(why)) < 0)
		claim_sentence(why, sizeof(why));
	free(copy);
	return 0;
}
