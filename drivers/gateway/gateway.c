/* SPDX-License-Identifier: BSD-3-Clause */
/* The gateway as a whole: its making, its two turns, and how machines come and go beneath a poll
 * that takes no lock. */
#include "gateway_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "../../lib/base/log.h"
#include "../../lib/wire/wire.h"

#define LEAVE_NS   10000000000ull /* most that a machine's end may wait for its programs */
#define FRAME_MIN  2048u
#define HEAD_BYTES 64u

static int
uplink_start(struct gw *g, char *err, size_t errlen)
{
	struct gw_port_config pc = {.kind = GW_WIRE, .tenant = GW_HOST, .vlan = ETH_NO_VLAN};
	struct rte_ether_addr mac;
	int rc;

	g->uplink_port = -1;
	if (g->cfg.uplink < 0)
		return 0;
	pc.device = (uint16_t)g->cfg.uplink;
	rc = gw_device_start(g, pc.device, &pc.multi_seg, err, errlen);
	if (rc != 0)
		return rc;
	g->uplink_started = true;
	if (rte_eth_macaddr_get(pc.device, &mac) == 0 && rte_is_valid_assigned_ether_addr(&mac))
		memcpy(g->mac, mac.addr_bytes, sizeof(g->mac));
	g->uplink_port = gw_switch_add(g->sw, &pc);
	return 0;
}

static int
gateway_gateway_host_start(struct gw *g, char *err, size_t errlen)
{
	struct gw_port_config pc = {.kind = GW_ENGINE, .tenant = GW_HOST, .vlan = ETH_NO_VLAN};
	int rc = gw_vport_make(g, &g->host, "gateway", err, errlen);

	if (rc != 0)
		return rc;
	rte_eth_random_addr(g->mac);
	rc = uplink_start(g, err, errlen);
	if (rc != 0)
		return rc;
	memcpy(pc.mac, g->mac, sizeof(pc.mac));
	pc.in = g->host.in;
	pc.out = g->host.out;
	g->host.port = gw_switch_add(g->sw, &pc);
	return 0;
}

struct gw *
gw_create(const struct gw_config *cfg, char *err, size_t errlen)
{
	static unsigned instances;
	uint32_t frame = (cfg->mtu + ETH_MAX + HEAD_BYTES + 1023) / 1024 * 1024;
	struct gw *g = calloc(1, sizeof(*g));

	if (g == NULL) {
		snprintf(err, errlen, "no memory");
		return NULL;
	}
	g->cfg = *cfg;
	pthread_mutex_init(&g->lock, NULL);
	g->pool = eng_pool_create("gw", __atomic_fetch_add(&instances, 1, __ATOMIC_RELAXED), 0,
		cfg->mbufs, frame < FRAME_MIN ? FRAME_MIN : frame, SOCKET_ID_ANY);
	g->sw = g->pool == NULL ? NULL : gw_switch_create(g->pool);
	if (g->sw == NULL)
		snprintf(err, errlen, "no memory for the gateway's %u mbufs", cfg->mbufs);
	if (g->sw == NULL || gateway_gateway_host_start(g, err, errlen) != 0) {
		gw_destroy(g);
		return NULL;
	}
	return g;
}

/* Takes it out of what is polled. */
static void
unplug(struct gw *g, unsigned i)
{
	struct gw_vm *vm = g->vms[i];

	__atomic_store_n(&g->engines[i], NULL, __ATOMIC_RELEASE);
	gw_switch_del(g->sw, vm->vport.port);
	gw_switch_del(g->sw, vm->nic.port);
	vm->vport.port = vm->nic.port = -1;
	gw_identity_unplug(g, vm);
	vm->state = GW_VM_UNPLUGGED;
	vm->since = gw_switch_turns(g->sw);
}

void
gw_destroy(struct gw *g)
{
	if (g == NULL)
		return;
	gw_control_close(g);
	g->cfg.wake = NULL; /* nobody sleeps any more */
	for (unsigned i = 0; i < GW_VMS; i++) {
		struct gw_vm *vm = g->vms[i];

		if (vm == NULL)
			continue;
		if (vm->state != GW_VM_UNPLUGGED)
			unplug(g, i);
		g->vms[i] = NULL;
		gw_vm_free(vm);
	}
	if (g->uplink_started)
		rte_eth_dev_stop((uint16_t)g->cfg.uplink);
	gw_vport_free(&g->host);
	gw_switch_destroy(g->sw);
	if (g->pool != NULL)
		eng_pool_free(g->pool);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

uint16_t
gw_host_port(const struct gw *g, uint8_t mac[6])
{
	memcpy(mac, g->mac, sizeof(g->mac));
	return g->host.device;
}

/* The next engine from *i on, which moves behind it; NULL: that was all. */
static struct eng *
next_engine(const struct gw *g, uint32_t *i)
{
	while (*i < __atomic_load_n(&g->last, __ATOMIC_ACQUIRE)) {
		struct eng *e = __atomic_load_n(&g->engines[(*i)++], __ATOMIC_ACQUIRE);

		if (e != NULL)
			return e;
	}
	return NULL;
}

bool
gw_poll(struct gw *g, uint64_t now)
{
	bool work = gw_switch_poll(g->sw, now);
	uint32_t i = 0;

	for (struct eng *e; (e = next_engine(g, &i)) != NULL;)
		work |= eng_poll(e, 0, now);
	return work;
}

static bool
hook(void *arg, uint64_t now)
{
	return gw_poll(arg, now);
}

static void
hook_sleep(void *arg, bool sleeps)
{
	uint32_t i = 0;

	for (struct eng *e; (e = next_engine(arg, &i)) != NULL;)
		eng_sleeps(e, sleeps);
}

static bool
hook_rung(void *arg)
{
	uint32_t i = 0;

	for (struct eng *e; (e = next_engine(arg, &i)) != NULL;)
		if (eng_rung(e))
			return true;
	return false;
}

void
gw_hook(struct gw *g, struct eng_config *c)
{
	c->hook = hook;
	c->hook_sleep = hook_sleep;
	c->hook_rung = hook_rung;
	c->hook_arg = g;
}

/* ---- Machines ---- */

static int
gateway_gateway_find(const struct gw *g, const char *name)
{
	for (int i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL && strcmp(g->vms[i]->cfg.name, name) == 0)
			return i;
	return -ENOENT;
}

static int
gateway_gateway_add(struct gw *g, struct gw_vm_config *cfg, char *err, size_t errlen)
{
	struct gw_vm *vm;
	unsigned i = 0;
	int rc;

	if (gateway_gateway_find(g, cfg->name) >= 0) {
		snprintf(err, errlen, "there is a machine %s already", cfg->name);
		return -EEXIST;
	}
	while (i < GW_VMS && g->vms[i] != NULL)
		i++;
	if (i == GW_VMS) {
		snprintf(err, errlen, "there are %u machines already", GW_VMS);
		return -ENOSPC;
	}
	rc = gw_identity_settle(g, cfg, err, errlen);
	if (rc != 0)
		return rc;
	rc = gw_vm_make(g, i + 1, cfg, &vm, err, errlen);
	g->vms[i] = vm;
	if (rc != 0) {
		if (vm != NULL)
			unplug(g, i);
		return rc;
	}
	__atomic_store_n(&g->engines[i], vm->e, __ATOMIC_RELEASE);
	if (i >= g->last)
		__atomic_store_n(&g->last, i + 1, __ATOMIC_RELEASE);
	sk_log(SK_LOG_INFO, "machine %s comes", cfg->name);
	return 0;
}

int
gw_vm_add(struct gw *g, const struct gw_vm_config *cfg, char *err, size_t errlen)
{
	struct gw_vm_config whole = *cfg;
	int rc = gw_vm_check(&whole, err, errlen);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&g->lock);
	rc = gateway_gateway_add(g, &whole, err, errlen);
	pthread_mutex_unlock(&g->lock);
	return rc;
}

int
gw_vm_del(struct gw *g, const char *name)
{
	int i;

	pthread_mutex_lock(&g->lock);
	i = gateway_gateway_find(g, name);
	if (i >= 0 && g->vms[i]->state == GW_VM_UP) {
		gw_bar_stop(g->vms[i]->bar);
		g->vms[i]->state = GW_VM_LEAVING;
		g->vms[i]->since = eng_clock();
	}
	pthread_mutex_unlock(&g->lock);
	return i < 0 ? i : 0;
}

unsigned
gw_vms(struct gw *g)
{
	unsigned n = 0;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < GW_VMS; i++)
		n += g->vms[i] != NULL;
	pthread_mutex_unlock(&g->lock);
	return n;
}

/* The turn that was under way when it was unplugged, and the one after, are over. */
static bool
gateway_gateway_quiet(const struct gw *g, const struct gw_vm *vm)
{
	return g->cfg.running == NULL || !g->cfg.running(g->cfg.running_arg) ||
	       gw_switch_turns(g->sw) >= vm->since + 2;
}

static void
tend_vm(struct gw *g, unsigned i, uint64_t now)
{
	struct gw_vm *vm = g->vms[i];

	/* A QEMU that ends need not wait for its programs' heartbeats to be missed. */
	if (vm->doorbell != NULL && gw_doorbell_tend(vm->doorbell))
		gw_bar_vacate(vm->bar);
	switch (vm->state) {
	case GW_VM_UP:
		gw_bar_poll(vm->bar, now);
		break;
	case GW_VM_LEAVING:
		gw_bar_poll(vm->bar, now);
		if (gw_bar_idle(vm->bar) || now - vm->since > LEAVE_NS)
			unplug(g, i);
		break;
	case GW_VM_UNPLUGGED:
		if (!gateway_gateway_quiet(g, vm))
			break;
		sk_log(SK_LOG_INFO, "machine %s has gone", vm->cfg.name);
		g->vms[i] = NULL;
		gw_vm_free(vm);
		break;
	}
}

void
gw_tend(struct gw *g, uint64_t now)
{
	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL)
			tend_vm(g, i, now);
	pthread_mutex_unlock(&g->lock);
	if (g->control != NULL)
		gw_control_tend(g, now);
}
