/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The identity of a machine on the wire: the addresses that no other port may have, and for Falcon
 * its Destination Function and the tunnel if the machine has an outer address.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"
#include "gateway_priv.h"

#define REFUSE(rc, ...) (snprintf(err, errlen, __VA_ARGS__), (rc))

#define FUNCTION_MAX 0xffffffu

void
gw_mac_of(const void *p, size_t len, uint8_t mac[6])
{
	const uint8_t *b = p;
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < len; i++)
		h = (h ^ b[i]) * 1099511628211ull;
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)(h >> (8 * i));
	mac[0] = (mac[0] & 0xfc) | 0x02;
}

int
gw_identity_check(const struct gw_vm_config *cfg, char *err, size_t errlen)
{
	bool v4 = sk_addr_is_v4(&cfg->tunnel.addr), family = false;

	if (sk_addr_is_any(&cfg->tunnel.addr))
		return 0;
	if (!cfg->pcid)
		return REFUSE(-EINVAL, "tunnel= requires pcid=yes, which selects the machine");
	for (unsigned i = 0; i < cfg->naddrs; i++) {
		family |= sk_addr_is_v4(&cfg->addrs[i].addr) == v4;
		if (sk_addr_eq(&cfg->addrs[i].addr, &cfg->tunnel.addr))
			return REFUSE(-EINVAL, "tunnel= has the same address as ip=");
	}
	/* Requests for neighbours carry this address as their source. */
	return family ? 0 : REFUSE(-EINVAL, "tunnel= requires an ip= of the same family");
}

/* ---- Addresses and functions ---- */

/* Claims the host's addresses. Its engine's configuration is complete when the first machine is
 * added, but not yet when the gateway is created. An eng_change() passes through the loop that
 * polls the switch, so from one change to the next, the switch has left the array that is filled
 * here. */
static void
claim_host(struct gw *g)
{
	const struct eng_config *c = g->cfg.base;
	struct gw_claim *to = g->host_claims[1 - g->host_side];
	unsigned n = SK_MIN(c->nifs, (unsigned)ENG_MAX_IFS);

	if (g->host.port < 0)
		return;
	memset(to, 0, sizeof(g->host_claims[0]));
	for (unsigned i = 0; i < n; i++) {
		to[i].addr = c->ifs[i].addr;
		to[i].vlan = c->ifs[i].vlan;
	}
	if (n == g->host_nclaims &&
		memcmp(to, g->host_claims[g->host_side], sizeof(g->host_claims[0])) == 0)
		return;
	gw_switch_claim(g->sw, g->host.port, to, n);
	g->host_side = 1 - g->host_side;
	g->host_nclaims = n;
}

void
gw_host_claim(struct gw *g)
{
	pthread_mutex_lock(&g->lock);
	claim_host(g);
	pthread_mutex_unlock(&g->lock);
}

static const struct gw_vm *
function_of(const struct gw *g, uint32_t function)
{
	for (unsigned i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL && g->vms[i]->cfg.function == function)
			return g->vms[i];
	return NULL;
}

/* Chooses the first free function behind the host's own. */
static void
choose_function(const struct gw *g, struct gw_vm_config *cfg)
{
	uint32_t f = g->cfg.base->falcon.function;

	do
		f = (f + 1) & FUNCTION_MAX;
	while (function_of(g, f) != NULL);
	cfg->function = f;
}

/* Returns the machine whose file or socket (the memory, the doorbell, the card) has this path. */
static const struct gw_vm *
path_user(const struct gw *g, const char *path)
{
	for (unsigned i = 0; i < GW_VMS; i++) {
		const struct gw_vm *vm = g->vms[i];

		if (vm != NULL &&
			(strcmp(vm->cfg.path, path) == 0 || strcmp(vm->cfg.doorbell, path) == 0 ||
				strcmp(vm->cfg.nic, path) == 0))
			return vm;
	}
	return NULL;
}

/* Checks that no other machine uses a path of this one. */
static int
identity_paths(const struct gw *g, const struct gw_vm_config *cfg, char *err, size_t errlen)
{
	const char *const keys[] = {"path", "doorbell", "nic"};
	const char *const paths[] = {cfg->path, cfg->doorbell, cfg->nic};

	for (unsigned i = 0; i < 3; i++) {
		const struct gw_vm *vm = paths[i][0] != '\0' ? path_user(g, paths[i]) : NULL;

		if (vm != NULL)
			return REFUSE(-EEXIST, "%s=%s is in use by machine %s", keys[i], paths[i],
				vm->cfg.name);
	}
	return 0;
}

int
gw_identity_settle(struct gw *g, struct gw_vm_config *cfg, char *err, size_t errlen)
{
	char text[SK_ADDR_STRLEN];
	int rc = identity_paths(g, cfg, err, errlen);

	if (rc < 0)
		return rc;
	claim_host(g);
	for (unsigned i = 0; i < cfg->naddrs; i++)
		if (gw_switch_claimed(g->sw, &cfg->addrs[i].addr, cfg->vlan))
			return REFUSE(-EEXIST, "ip=%s is in use by another port",
				sk_addr_str(&cfg->addrs[i].addr, text));
	for (unsigned i = 0; i < cfg->nnic; i++)
		if (gw_switch_claimed(g->sw, &cfg->nic_addrs[i], cfg->vlan))
			return REFUSE(-EEXIST, "nic-ip=%s is in use by another port",
				sk_addr_str(&cfg->nic_addrs[i], text));
	if (!sk_addr_is_any(&cfg->tunnel.addr) && !g->cfg.base->falcon.enabled)
		return REFUSE(-EINVAL, "tunnel= requires Falcon, which is not enabled");
	if (cfg->function == GW_FUNCTION_ANY)
		choose_function(g, cfg);
	else if (function_of(g, cfg->function) != NULL)
		return REFUSE(-EEXIST, "machine %s has function %u already",
			function_of(g, cfg->function)->cfg.name, cfg->function);
	return 0;
}

void
gw_identity_claims(struct gw_vm *vm)
{
	const struct gw_vm_config *c = &vm->cfg;

	for (unsigned i = 0; i < c->naddrs; i++)
		vm->claims[i] = (struct gw_claim){c->addrs[i].addr, c->vlan};
	for (unsigned i = 0; i < c->nnic; i++)
		vm->nic_claims[i] = (struct gw_claim){c->nic_addrs[i], c->vlan};
}

void
gw_identity_engine(const struct gw *g, const struct gw_vm *vm, struct eng_config *c)
{
	const struct eng_falcon_config *host = &g->cfg.base->falcon;

	c->falcon.function = vm->cfg.function;
	c->falcon.pcid = vm->cfg.pcid;
	c->falcon.tunnel = host->tunnel || vm->tunnel != NULL;
	/* The machine must not inherit the host's outer address. */
	c->falcon.tunnel_source = (struct sk_addr){0};
	if (vm->tunnel == NULL)
		return;
	c->falcon.tunnel_source = vm->cfg.tunnel.addr;
	c->ifs[c->nifs++] = (struct eng_if_config){.vlan = vm->cfg.vlan,
		.addr = vm->cfg.tunnel.addr,
		.prefix = vm->cfg.tunnel.len,
		.shared = true};
}

/* ---- Tunnels ---- */

int
gw_identity_plug(struct gw *g, struct gw_vm *vm, char *err, size_t errlen)
{
	const struct sk_addr *addr = &vm->cfg.tunnel.addr;

	if (sk_addr_is_any(addr))
		return 0;
	for (unsigned i = 0; i < GW_VMS && vm->tunnel == NULL; i++) {
		const struct gw_vm *other = g->vms[i];

		if (other != NULL && other->tunnel != NULL && other->cfg.vlan == vm->cfg.vlan &&
			other->state != GW_VM_UNPLUGGED &&
			sk_addr_eq(gw_tunnel_addr(other->tunnel), addr))
			vm->tunnel = other->tunnel;
	}
	if (vm->tunnel == NULL)
		vm->tunnel = gw_tunnel_create(g->sw, addr, vm->cfg.vlan, g->cfg.mtu, err, errlen);
	return vm->tunnel == NULL ? -EADDRINUSE : 0;
}

void
gw_identity_unplug(struct gw *g, struct gw_vm *vm)
{
	bool shared = false;

	for (unsigned i = 0; i < GW_VMS; i++)
		shared |= g->vms[i] != NULL && g->vms[i] != vm && g->vms[i]->tunnel == vm->tunnel;
	if (vm->tunnel != NULL && !shared)
		gw_tunnel_unplug(vm->tunnel);
	else
		vm->tunnel = NULL;
}
