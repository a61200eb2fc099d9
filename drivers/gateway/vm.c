/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates and frees one machine: its engine with its quotas, its memory and its switch ports. */
#include "gateway_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"

#define LISTENERS 64

/* Sets the limits of the machine's engine to the machine's quotas. */
static void
quotas(struct eng_limits *l, const struct gw_vm_config *vm)
{
	l->clients = SHM_BAR_SLOTS * 2; /* clients that are leaving still count */
	l->qps = l->client_qps = vm->qps;
	l->cqs = l->client_cqs = vm->qps * 2;
	l->mrs = l->client_mrs = vm->mrs;
	l->mws = l->client_mws = SK_MIN(l->mws, vm->mrs);
	l->pds = SK_MIN(l->pds, vm->qps);
	l->srqs = SK_MIN(l->srqs, vm->qps);
	l->listeners = SK_MIN(l->listeners, LISTENERS);
	l->conns = vm->qps * 2;
	l->rx_mbufs = l->tx_mbufs = vm->mbufs;
	/* The machine may use all of its quotas: no other user shares this engine. */
	l->users = l->user_min = 0;
}

static void
engine_config(const struct gw *g, const struct gw_vm *vm, struct eng_config *c)
{
	*c = *g->cfg.base;
	snprintf(c->name, sizeof(c->name), "%s", vm->cfg.name);
	c->nports = 1;
	c->ports[0] = (struct eng_port_config){.port_id = vm->vport.device, .mtu = g->cfg.mtu};
	memcpy(c->ports[0].mac, vm->cfg.mac, sizeof(c->ports[0].mac));
	c->nifs = vm->cfg.naddrs;
	for (unsigned i = 0; i < vm->cfg.naddrs; i++)
		c->ifs[i] = (struct eng_if_config){.vlan = vm->cfg.vlan,
			.addr = vm->cfg.addrs[i].addr,
			.prefix = vm->cfg.addrs[i].len};
	gw_identity_engine(g, vm, c);
	c->nroutes = 0;
	if (!sk_addr_is_any(&vm->cfg.gateway))
		c->routes[c->nroutes++] = (struct eng_route_config){.gateway = vm->cfg.gateway};
	/* One loop runs all stages, called from the loop of the host's engine. */
	c->nloops = c->ntransports = c->nstages = 1;
	c->control_loop = c->transport_loop[0] = c->stage_loop[0] = 0;
	c->idle = ENG_IDLE_POLL;
	c->hook = NULL;
	c->hook_sleep = NULL;
	c->hook_rung = NULL;
	quotas(&c->limits, &vm->cfg);
	c->all_rates = vm->cfg.rates;
	c->falcon.stack.max_conns = SK_MIN(c->falcon.stack.max_conns, c->limits.conns);
}

static int
engine_start(struct gw *g, struct gw_vm *vm, char *err, size_t errlen)
{
	struct eng_config *c = malloc(sizeof(*c));
	struct gw_port_config pc = {.kind = GW_ENGINE,
		.tenant = vm->number,
		.vlan = vm->cfg.vlan,
		.peers = vm->cfg.peers,
		.rate = vm->cfg.rate};
	int rc = c == NULL ? -ENOMEM : gw_vport_make(g, &vm->vport, NULL, err, errlen);

	if (rc == 0) {
		engine_config(g, vm, c);
		vm->e = eng_create(c, err, errlen);
		rc = vm->e == NULL ? -EINVAL : 0;
	}
	free(c);
	if (rc != 0)
		return rc;
	memcpy(pc.mac, vm->cfg.mac, sizeof(pc.mac));
	pc.claims = vm->claims;
	pc.nclaims = vm->cfg.naddrs;
	pc.tunnel = vm->cfg.tunnel.addr;
	pc.function = vm->cfg.function;
	pc.in = vm->vport.in;
	pc.out = vm->vport.out;
	rc = vm->vport.port = gw_switch_add(g->sw, &pc);
	if (rc == -EEXIST)
		snprintf(err, errlen, "machine %s: another port of the VLAN has the MAC address",
			vm->cfg.name);
	return rc < 0 ? rc : 0;
}

static int
nic_start(struct gw *g, struct gw_vm *vm, char *err, size_t errlen)
{
	struct gw_port_config pc = {.kind = GW_NIC,
		.tenant = vm->number,
		.vlan = vm->cfg.vlan,
		.peers = vm->cfg.peers,
		.rate = vm->cfg.rate};
	int rc;

	if (vm->cfg.nic[0] == '\0')
		return 0;
	rc = gw_nic_make(g, &vm->nic, vm->cfg.nic, &pc.multi_seg, err, errlen);
	if (rc != 0)
		return rc;
	memcpy(pc.mac, vm->cfg.nic_mac, sizeof(pc.mac));
	pc.claims = vm->nic_claims;
	pc.nclaims = vm->cfg.nnic;
	pc.device = vm->nic.device;
	rc = vm->nic.port = gw_switch_add(g->sw, &pc);
	if (rc == -EEXIST)
		snprintf(err, errlen,
			"machine %s: another port of the VLAN has the MAC address of the card",
			vm->cfg.name);
	return rc < 0 ? rc : 0;
}

int
gw_vm_check(struct gw_vm_config *cfg, char *err, size_t errlen)
{
	static const uint8_t none[6];
	const char *missing = cfg->name[0] == '\0'   ? "a name"
			      : cfg->path[0] == '\0' ? "path="
			      : cfg->naddrs == 0     ? "ip="
						     : NULL;

	if (missing != NULL) {
		snprintf(err, errlen, "the machine lacks %s", missing);
		return -EINVAL;
	}
	if (memcmp(cfg->mac, none, 6) == 0)
		gw_mac_of(cfg->name, strlen(cfg->name), cfg->mac);
	if (memcmp(cfg->nic_mac, none, 6) == 0) {
		memcpy(cfg->nic_mac, cfg->mac, 6);
		cfg->nic_mac[3] ^= 0x01;
	}
	return gw_identity_check(cfg, err, errlen);
}

/* Adds the eventfd of a machine's doorbell to the poller's wake-ups, or removes it. */
static void
vm_wake(void *arg, int fd, bool on)
{
	const struct gw *g = arg;

	if (g->cfg.wake != NULL)
		g->cfg.wake(g->cfg.wake_arg, fd, on);
}

int
gw_vm_make(struct gw *g, unsigned number, const struct gw_vm_config *cfg, struct gw_vm **out,
	char *err, size_t errlen)
{
	struct gw_vm *vm = calloc(1, sizeof(*vm));
	int rc;

	*out = vm;
	snprintf(err, errlen, "out of memory for machine %s", cfg->name);
	if (vm == NULL)
		return -ENOMEM;
	vm->cfg = *cfg;
	vm->number = number;
	vm->vport.port = vm->nic.port = -1;
	gw_identity_claims(vm);
	rc = gw_identity_plug(g, vm, err, errlen);
	if (rc == 0)
		rc = engine_start(g, vm, err, errlen);
	if (rc == 0) {
		const struct gw_bar_config bc = {.path = vm->cfg.path,
			.size = vm->cfg.size,
			.slots = vm->cfg.slots,
			.timeout_ms = vm->cfg.timeout_ms};

		vm->bar = gw_bar_create(vm->e, &bc, err, errlen);
		rc = vm->bar == NULL ? -EINVAL : nic_start(g, vm, err, errlen);
	}
	if (rc == 0 && vm->cfg.doorbell[0] != '\0') {
		const struct gw_doorbell_config dc = {.path = vm->cfg.doorbell,
			.name = vm->cfg.name,
			.memory = gw_bar_fd(vm->bar),
			.nvectors = vm->cfg.slots,
			.wake = vm_wake,
			.arg = g,
			.keeper = g->cfg.keeper};

		vm->doorbell = gw_doorbell_create(&dc, err, errlen);
		rc = vm->doorbell == NULL ? -EINVAL : 0;
		if (rc == 0)
			gw_bar_wakes(vm->bar, gw_doorbell_wakes(vm->doorbell));
	}
	return rc;
}

void
gw_vm_free(struct gw_vm *vm)
{
	gw_doorbell_destroy(vm->doorbell);
	gw_nic_free(&vm->nic);
	if (vm->e != NULL)
		eng_destroy(vm->e);
	gw_bar_destroy(vm->bar);
	gw_vport_free(&vm->vport);
	gw_tunnel_destroy(vm->tunnel);
	free(vm);
}
