/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a machine's configuration, in one table. */
#include "gateway_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/wire/wire.h"

#define REFUSE(...) (snprintf(err, errlen, __VA_ARGS__), -EINVAL)
#define AT(f)       offsetof(struct gw_vm_config, f)

void
gw_vm_default(struct gw_vm_config *vm)
{
	memset(vm, 0, sizeof(*vm));
	vm->size = 64ull << 20;
	vm->slots = 8;
	vm->timeout_ms = 5000;
	vm->vlan = ETH_NO_VLAN;
	vm->function = GW_FUNCTION_ANY;
	vm->pcid = true;
	vm->qps = 256;
	vm->mrs = 1024;
	vm->mbufs = 4096;
	vm->rates.weight = ENG_WEIGHT;
}

enum key_kind {
	KEY_NAME,
	KEY_PATH,
	KEY_U32,
	KEY_BYTES,
	KEY_GIGA, /* a decimal number, stored multiplied by 10^9 or 10^6 */
	KEY_MEGA,
	KEY_MAC,
	KEY_ADDRS,
	KEY_ADDR,
	KEY_NIC_ADDRS,
	KEY_PREFIX,
	KEY_VLAN,
	KEY_YES
};

static const struct key {
	const char *name;
	enum key_kind kind;
	size_t at;
	uint64_t min, max;
} keys[] = {
	{"name", KEY_NAME, AT(name), 0, 0},
	{"path", KEY_PATH, AT(path), 0, 0},
	{"size", KEY_BYTES, AT(size), GW_BAR_MIN, GW_BAR_MAX},
	{"slots", KEY_U32, AT(slots), 1, SHM_BAR_SLOTS},
	{"timeout", KEY_U32, AT(timeout_ms), SHM_BAR_BEAT_MS, 60000},
	{"doorbell", KEY_PATH, AT(doorbell), 0, 0},
	{"mac", KEY_MAC, AT(mac), 0, 0},
	{"vlan", KEY_VLAN, AT(vlan), 1, 4094},
	{"ip", KEY_ADDRS, 0, 0, 0},
	{"gateway", KEY_ADDR, AT(gateway), 0, 0},
	{"peers", KEY_YES, AT(peers), 0, 0},
	{"function", KEY_U32, AT(function), 0, 0xffffff},
	{"pcid", KEY_YES, AT(pcid), 0, 0},
	{"tunnel", KEY_PREFIX, AT(tunnel), 0, 0},
	{"nic", KEY_PATH, AT(nic), 0, 0},
	{"nic-mac", KEY_MAC, AT(nic_mac), 0, 0},
	{"nic-ip", KEY_NIC_ADDRS, 0, 0, 0},
	{"qps", KEY_U32, AT(qps), 1, 1u << 16},
	{"mrs", KEY_U32, AT(mrs), 1, 1u << 20},
	{"rate", KEY_BYTES, AT(rate), 0, 1ull << 34},
	{"mbufs", KEY_U32, AT(mbufs), 256, 1u << 20},
	{"weight", KEY_U32, AT(rates.weight), 1, ENG_WEIGHT_MAX},
	{"max-gbps", KEY_GIGA, AT(rates.bits), 1, 10000},
	{"max-mops", KEY_MEGA, AT(rates.messages), 1, 10000},
};

/* Parses digits and, if `units`, an optional k, m or g. */
static bool
keys_number(const char *text, bool units, uint64_t *out)
{
	static const char letters[] = "kmg";
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno != 0 || *end == '\0')
		return errno == 0;
	unit = strchr(letters, tolower((unsigned char)*end));
	return units && unit != NULL && end[1] == '\0' &&
	       !__builtin_mul_overflow(*out, 1ull << (10 * (unit - letters + 1)), out);
}

static int
keys_set_number(const struct key *k, const char *text, uint8_t *at, char *err, size_t errlen)
{
	uint64_t v;

	if (!keys_number(text, k->kind == KEY_BYTES, &v) || v < k->min || v > k->max)
		return REFUSE("%s=%s is not within %llu..%llu", k->name, text,
			(unsigned long long)k->min, (unsigned long long)k->max);
	if (k->kind == KEY_BYTES)
		*(uint64_t *)at = v;
	else if (k->kind == KEY_VLAN)
		*(uint16_t *)at = (uint16_t)v;
	else
		*(uint32_t *)at = (uint32_t)v;
	return 0;
}

/* Parses a number with up to six decimals. Sets *out to its millionths. */
static bool
keys_decimal(const char *text, uint64_t *out)
{
	size_t whole = strcspn(text, "."), decimals;
	uint64_t v;

	if (whole == 0 || whole > 9 || strspn(text, "0123456789") != whole)
		return false;
	*out = strtoull(text, NULL, 10) * 1000000;
	if (text[whole] == '\0')
		return true;
	text += whole + 1;
	decimals = strspn(text, "0123456789");
	if (decimals == 0 || decimals > 6 || text[decimals] != '\0')
		return false;
	v = strtoull(text, NULL, 10);
	for (; decimals < 6; decimals++)
		v *= 10;
	*out += v;
	return true;
}

static int
keys_set_decimal(const struct key *k, const char *text, uint64_t *at, char *err, size_t errlen)
{
	uint64_t v;

	if (!keys_decimal(text, &v) || v < k->min || v > k->max * 1000000)
		return REFUSE("%s=%s is not a number within 0.000001..%llu with at most 6 decimals",
			k->name, text, (unsigned long long)k->max);
	*at = k->kind == KEY_GIGA ? v * 1000 : v;
	return 0;
}

static int
set_text(const struct key *k, const char *text, uint8_t *at, char *err, size_t errlen)
{
	size_t most = k->kind == KEY_NAME ? GW_NAME_MAX : GW_PATH_MAX;
	bool good = text[0] != '\0' && strlen(text) < most;

	for (const char *p = text; good && *p != '\0'; p++)
		good = k->kind == KEY_NAME ? isalnum((unsigned char)*p) || strchr("-_.", *p) != NULL
					   : isgraph((unsigned char)*p) && *p != ',';
	if (!good)
		return k->kind == KEY_NAME
			       ? REFUSE("name '%s' is not 1..%zu letters, digits, '-', '_' or '.'",
					 text, most - 1)
			       : REFUSE("%s=%s is not a path of 1..%zu printable characters "
					"without commas",
					 k->name, text, most - 1);
	strcpy((char *)at, text);
	return 0;
}

static int
set_mac(const struct key *k, const char *text, uint8_t *at, char *err, size_t errlen)
{
	unsigned b[6];
	int n = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		    &n) != 6 ||
		text[n] != '\0' || (b[0] & 1) != 0)
		return REFUSE("%s=%s is not a unicast MAC address", k->name, text);
	for (unsigned i = 0; i < 6; i++)
		at[i] = (uint8_t)b[i];
	return 0;
}

/* Parses an address with its prefix length, "192.0.2.1/24". Modifies `text`. */
static bool
keys_parse_prefix(char *text, struct gw_prefix *p)
{
	char *slash = strchr(text, '/');
	uint64_t len;

	if (slash != NULL)
		*slash++ = '\0';
	if (slash == NULL || sk_addr_parse(text, &p->addr) != 0 ||
		!keys_number(slash, false, &len) || len > (sk_addr_is_v4(&p->addr) ? 32 : 128))
		return false;
	p->len = (unsigned)len;
	return true;
}

/* Sets "192.0.2.1/24,2001:db8::1/64". */
static int
set_addrs(struct gw_vm_config *vm, const char *text, char *err, size_t errlen)
{
	char copy[GW_ADDRS_MAX * (SK_ADDR_STRLEN + 4)], *save = NULL;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return REFUSE("ip= has more than %u addresses", GW_ADDRS_MAX);
	vm->naddrs = 0;
	for (char *a = strtok_r(copy, ",", &save); a != NULL; a = strtok_r(NULL, ",", &save)) {
		if (vm->naddrs == GW_ADDRS_MAX)
			return REFUSE("ip= has more than %u addresses", GW_ADDRS_MAX);
		if (!keys_parse_prefix(a, &vm->addrs[vm->naddrs]))
			return REFUSE("ip=%s is not ADDRESS/LENGTH,...", text);
		vm->naddrs++;
	}
	return vm->naddrs > 0 ? 0 : REFUSE("ip= is empty");
}

/* Sets "192.0.2.1,2001:db8::1". */
static int
set_nic_addrs(struct gw_vm_config *vm, const char *text, char *err, size_t errlen)
{
	char copy[GW_ADDRS_MAX * SK_ADDR_STRLEN], *save = NULL;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return REFUSE("nic-ip= has more than %u addresses", GW_ADDRS_MAX);
	vm->nnic = 0;
	for (char *a = strtok_r(copy, ",", &save); a != NULL; a = strtok_r(NULL, ",", &save)) {
		if (vm->nnic == GW_ADDRS_MAX)
			return REFUSE("nic-ip= has more than %u addresses", GW_ADDRS_MAX);
		if (sk_addr_parse(a, &vm->nic_addrs[vm->nnic]) != 0)
			return REFUSE("nic-ip=%s is not ADDRESS,...", text);
		vm->nnic++;
	}
	return vm->nnic > 0 ? 0 : REFUSE("nic-ip= is empty");
}

static int
set_tunnel(struct gw_vm_config *vm, const char *text, char *err, size_t errlen)
{
	char copy[SK_ADDR_STRLEN + 4];

	if (snprintf(copy, sizeof(copy), "%s", text) < (int)sizeof(copy) &&
		keys_parse_prefix(copy, &vm->tunnel) && !sk_addr_is_any(&vm->tunnel.addr))
		return 0;
	return REFUSE("tunnel=%s is not ADDRESS/LENGTH", text);
}

static int
set_yes(const struct key *k, const char *text, uint8_t *at, char *err, size_t errlen)
{
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return REFUSE("%s=%s is neither yes nor no", k->name, text);
	*(bool *)at = text[0] == 'y';
	return 0;
}

int
gw_vm_set(struct gw_vm_config *vm, const char *key, const char *value, char *err, size_t errlen)
{
	const struct key *k = keys;
	uint8_t *at;

	while (k < keys + sizeof(keys) / sizeof(keys[0]) && strcmp(k->name, key) != 0)
		k++;
	if (k == keys + sizeof(keys) / sizeof(keys[0]))
		return REFUSE("'%s' is not a key of a machine", key);
	at = (uint8_t *)vm + k->at;
	switch (k->kind) {
	case KEY_NAME:
	case KEY_PATH:
		return set_text(k, value, at, err, errlen);
	case KEY_MAC:
		return set_mac(k, value, at, err, errlen);
	case KEY_ADDRS:
		return set_addrs(vm, value, err, errlen);
	case KEY_ADDR:
		if (sk_addr_parse(value, &vm->gateway) != 0)
			return REFUSE("gateway=%s is not an IPv4 or IPv6 address", value);
		return 0;
	case KEY_NIC_ADDRS:
		return set_nic_addrs(vm, value, err, errlen);
	case KEY_PREFIX:
		return set_tunnel(vm, value, err, errlen);
	case KEY_GIGA:
	case KEY_MEGA:
		return keys_set_decimal(k, value, (uint64_t *)at, err, errlen);
	case KEY_YES:
		return set_yes(k, value, at, err, errlen);
	default:
		return keys_set_number(k, value, at, err, errlen);
	}
}
