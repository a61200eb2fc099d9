/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a machine's configuration, in one table. */
#include "gateway_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/conf/conf.h"
#include "../../lib/wire/wire.h"

#define REFUSE(...) (snprintf(why, CONF_WHY, __VA_ARGS__), -EINVAL)
#define AT(f)       offsetof(struct gw_vm_config, f)
#define MS          1000000 /* in ns */
#define GIGA        1000000000ull
#define MEGA        1000000ull

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
	KEY_U64,
	KEY_MAC,
	KEY_ADDRS,
	KEY_ADDR,
	KEY_NIC_ADDRS,
	KEY_TUNNEL,
	KEY_VLAN,
	KEY_YES
};

#define PLAIN(least, most)                                                                         \
	{                                                                                          \
		CONF_COUNT, 1, 1, least, most                                                      \
	}
#define BYTES(least, most)                                                                         \
	{                                                                                          \
		CONF_BYTES, 1, 1, least, most                                                      \
	}

static const struct key {
	const char *name;
	enum key_kind kind;
	size_t at;
	struct conf_range range;
} keys[] = {
	{"name", KEY_NAME, AT(name)},
	{"path", KEY_PATH, AT(path)},
	{"size", KEY_U64, AT(size), BYTES(GW_BAR_MIN, GW_BAR_MAX)},
	{"slots", KEY_U32, AT(slots), PLAIN(1, SHM_BAR_SLOTS)},
	/* in ms, also without a unit */
	{"timeout", KEY_U32, AT(timeout_ms), {CONF_TIME, MS, MS, SHM_BAR_BEAT_MS, 60000}},
	{"doorbell", KEY_PATH, AT(doorbell)},
	{"mac", KEY_MAC, AT(mac)},
	{"vlan", KEY_VLAN, AT(vlan), PLAIN(1, 4094)},
	{"ip", KEY_ADDRS},
	{"gateway", KEY_ADDR, AT(gateway)},
	{"peers", KEY_YES, AT(peers)},
	{"function", KEY_U32, AT(function), PLAIN(0, 0xffffff)},
	{"pcid", KEY_YES, AT(pcid)},
	{"tunnel", KEY_TUNNEL},
	{"nic", KEY_PATH, AT(nic)},
	{"nic-mac", KEY_MAC, AT(nic_mac)},
	{"nic-ip", KEY_NIC_ADDRS},
	{"qps", KEY_U32, AT(qps), PLAIN(1, 1u << 16)},
	{"mrs", KEY_U32, AT(mrs), PLAIN(1, 1u << 20)},
	{"rate", KEY_U64, AT(rate), BYTES(0, 1ull << 34)},
	{"mbufs", KEY_U32, AT(mbufs), PLAIN(256, 1u << 20)},
	{"weight", KEY_U32, AT(rates.weight), PLAIN(1, ENG_WEIGHT_MAX)},
	{"max-gbps", KEY_U64, AT(rates.bits), {CONF_BITS, GIGA, 1, 1000, 10000ull * GIGA}},
	{"max-mops", KEY_U64, AT(rates.messages), {CONF_COUNT, MEGA, 1, 1, 10000ull * MEGA}},
};

static int
keys_set_number(const struct key *k, const char *text, void *at, char why[CONF_WHY])
{
	uint64_t v;

	if (conf_number(text, &k->range, &v, why) < 0)
		return -EINVAL;
	if (k->kind == KEY_U64)
		*(uint64_t *)at = v;
	else if (k->kind == KEY_VLAN)
		*(uint16_t *)at = (uint16_t)v;
	else
		*(uint32_t *)at = (uint32_t)v;
	return 0;
}

static int
set_text(const struct key *k, const char *text, char *at, char why[CONF_WHY])
{
	size_t most = k->kind == KEY_NAME ? GW_NAME_MAX : GW_PATH_MAX;

	for (const char *p = text; *p != '\0'; p++) {
		if (k->kind == KEY_NAME && !isalnum((unsigned char)*p) && strchr("-_.", *p) == NULL)
			return REFUSE("does not consist of letters, digits, '-', '_' and '.'");
		if (!isgraph((unsigned char)*p) || *p == ',' || *p == ';')
			return REFUSE("has a comma, a semicolon, a blank or a character that is "
				      "not printable");
	}
	return conf_text(text, most, at, why);
}

static int
keys_add_addr(void *arg, const char *item, char why[CONF_WHY])
{
	struct gw_vm_config *vm = arg;
	struct gw_prefix *p = &vm->addrs[vm->naddrs];

	if (vm->naddrs == GW_ADDRS_MAX)
		return REFUSE("has more than %u addresses", GW_ADDRS_MAX);
	if (conf_host_prefix(item, &p->addr, &p->len, why) < 0)
		return -EINVAL;
	vm->naddrs++;
	return 0;
}

static int
keys_add_nic_addr(void *arg, const char *item, char why[CONF_WHY])
{
	struct gw_vm_config *vm = arg;

	if (vm->nnic == GW_ADDRS_MAX)
		return REFUSE("has more than %u addresses", GW_ADDRS_MAX);
	if (conf_addr(item, &vm->nic_addrs[vm->nnic], why) < 0)
		return -EINVAL;
	vm->nnic++;
	return 0;
}

static int
keys_set(struct gw_vm_config *vm, const struct key *k, const char *value, char why[CONF_WHY])
{
	void *at = (uint8_t *)vm + k->at;

	switch (k->kind) {
	case KEY_NAME:
	case KEY_PATH:
		return set_text(k, value, at, why);
	case KEY_MAC:
		return conf_mac(value, at, why);
	case KEY_ADDRS:
		vm->naddrs = 0;
		return conf_list(value, keys_add_addr, vm, why);
	case KEY_ADDR:
		return conf_addr(value, at, why);
	case KEY_NIC_ADDRS:
		vm->nnic = 0;
		return conf_list(value, keys_add_nic_addr, vm, why);
	case KEY_TUNNEL:
		return conf_host_prefix(value, &vm->tunnel.addr, &vm->tunnel.len, why);
	case KEY_YES:
		return conf_bool(value, at, why);
	default:
		return keys_set_number(k, value, at, why);
	}
}

int
gw_vm_set(struct gw_vm_config *vm, const char *key, const char *value, char *err, size_t errlen)
{
	char why[CONF_WHY], shown[CONF_SHOWN];

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].name, key) != 0)
			continue;
		if (keys_set(vm, &keys[i], value, why) >= 0)
			return 0;
		snprintf(err, errlen, "%s=%s %s", key, conf_shown(value, shown), why);
		return -EINVAL;
	}
	snprintf(err, errlen, "'%s' is not a key of a machine", conf_shown(key, shown));
	return -EINVAL;
}
