/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses values that are not numbers. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "conf.h"

#define REFUSE(...) (snprintf(why, CONF_WHY, __VA_ARGS__), -EINVAL)

static const struct conf_word words_bool[] = {{"yes", 1}, {"no", 0}, {"on", 1}, {"off", 0},
	{"true", 1}, {"false", 0}, {"1", 1}, {"0", 0}, {NULL, 0}};

static const struct conf_word *
conf_find(const struct conf_word *words, const char *text)
{
	while (words->name != NULL && strcasecmp(words->name, text) != 0)
		words++;
	return words->name != NULL ? words : NULL;
}

int
conf_bool(const char *text, bool *out, char why[CONF_WHY])
{
	const struct conf_word *w = conf_find(words_bool, text);

	if (w == NULL)
		return REFUSE("is neither yes nor no");
	*out = w->value != 0;
	return 0;
}

int
conf_word(const char *text, const struct conf_word *words, uint64_t *out, char why[CONF_WHY])
{
	const struct conf_word *w = conf_find(words, text);
	size_t at;

	if (w != NULL) {
		*out = w->value;
		return 0;
	}
	at = (size_t)snprintf(why, CONF_WHY, "is not one of ");
	for (w = words; w->name != NULL && at < CONF_WHY; w++)
		at += (size_t)snprintf(
			why + at, CONF_WHY - at, "%s%s", w > words ? ", " : "", w->name);
	return -EINVAL;
}

const char *
conf_word_name(const struct conf_word *words, uint64_t value)
{
	while (words->name != NULL && words->value != value)
		words++;
	return words->name != NULL ? words->name : "";
}

int
conf_text(const char *text, size_t size, char *out, char why[CONF_WHY])
{
	if (text[0] == '\0')
		return REFUSE("is empty");
	if (strlen(text) >= size)
		return REFUSE("is longer than %zu bytes", size - 1);
	strcpy(out, text);
	return 0;
}

int
conf_addr(const char *text, struct sk_addr *out, char why[CONF_WHY])
{
	struct sk_addr a;

	if (sk_addr_parse(text, &a) < 0)
		return REFUSE("is not an IPv4 or IPv6 address");
	*out = a;
	return 0;
}

int
conf_prefix(const char *text, struct sk_addr *addr, unsigned *len, char why[CONF_WHY])
{
	const char *slash = strchr(text, '/');
	char copy[SK_ADDR_STRLEN], ignored[CONF_WHY];
	struct conf_range range = {CONF_COUNT, 1, 1, 0, 128};
	struct sk_addr a;
	uint64_t n;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(copy))
		return REFUSE("is not an address with its prefix length, such as 10.0.0.1/24");
	memcpy(copy, text, (size_t)(slash - text));
	copy[slash - text] = '\0';
	if (sk_addr_parse(copy, &a) < 0)
		return REFUSE("is not an IPv4 or IPv6 address with its prefix length");
	range.max = sk_addr_is_v4(&a) ? 32 : 128;
	if (conf_number(slash + 1, &range, &n, ignored) < 0)
		return REFUSE("has a prefix length that is not within 0..%d", (int)range.max);
	*addr = a;
	*len = (unsigned)n;
	return 0;
}

int
conf_mac(const char *text, uint8_t out[6], char why[CONF_WHY])
{
	static const char form[] = "xx:xx:xx:xx:xx:xx";
	unsigned b[6] = {0};
	bool good = strlen(text) == strlen(form);

	for (size_t i = 0; good && form[i] != '\0'; i++)
		good = form[i] == ':' ? text[i] == ':' : isxdigit((unsigned char)text[i]) != 0;
	if (!good ||
		sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) != 6)
		return REFUSE("is not a MAC address, such as 02:00:00:00:00:01");
	if (b[0] & 1)
		return REFUSE("is a multicast MAC address");
	for (unsigned i = 0; i < 6; i++)
		out[i] = (uint8_t)b[i];
	return 0;
}

/* Returns whether all bits of the address from bit `len` of its family on are `ones`. */
static bool
host_bits_are(const struct sk_addr *a, unsigned len, bool ones)
{
	for (unsigned i = len + (sk_addr_is_v4(a) ? 96 : 0); i < 128; i++)
		if (((a->b[i / 8] >> (7 - i % 8)) & 1) != ones)
			return false;
	return true;
}

int
conf_host(const struct sk_addr *addr, unsigned len, char why[CONF_WHY])
{
	bool v4 = sk_addr_is_v4(addr);
	bool whole = len + 1 >= (v4 ? 32 : 128);

	if (sk_addr_is_any(addr))
		return REFUSE("is the unspecified address");
	if (sk_is_loopback(addr))
		return REFUSE("is a loopback address");
	if (sk_addr_is_multicast(addr))
		return REFUSE("is a multicast address");
	if (v4 && addr->b[12] >= 240)
		return REFUSE("is a reserved address");
	/* A network of two addresses has two hosts (RFC 3021, RFC 6164). */
	if (!whole && host_bits_are(addr, len, false))
		return REFUSE("is the address of its network, which no host has");
	if (!whole && v4 && host_bits_are(addr, len, true))
		return REFUSE("is the broadcast address of its network, which no host has");
	return 0;
}

int
conf_host_prefix(const char *text, struct sk_addr *addr, unsigned *len, char why[CONF_WHY])
{
	struct sk_addr a;
	unsigned n;

	if (conf_prefix(text, &a, &n, why) < 0 || conf_host(&a, n, why) < 0)
		return -EINVAL;
	*addr = a;
	*len = n;
	return 0;
}

int
conf_list(const char *text, int (*each)(void *arg, const char *item, char why[CONF_WHY]), void *arg,
	char why[CONF_WHY])
{
	char item[CONF_SHOWN];
	int n = 0, rc = 0;

	for (text += strspn(text, ", \t"); rc == 0 && *text != '\0'; text += strspn(text, ", \t")) {
		size_t len = strcspn(text, ", \t");

		if (len >= sizeof(item))
			return REFUSE("has an item of more than %zu bytes", sizeof(item) - 1);
		memcpy(item, text, len);
		item[len] = '\0';
		text += len;
		rc = each(arg, item, why);
		n++;
	}
	if (n == 0)
		return REFUSE("is an empty list");
	return rc != 0 ? rc : n;
}

const char *
conf_shown(const char *text, char buf[CONF_SHOWN])
{
	size_t n = 0;

	for (; text[n] != '\0' && n < 60; n++)
		buf[n] = isprint((unsigned char)text[n]) ? text[n] : '?';
	strcpy(buf + n, text[n] != '\0' ? "..." : "");
	return buf;
}
