/* SPDX-License-Identifier: BSD-3-Clause */
/* Adds, removes and tends the virtual machines of a gateway. gw_poll() takes no lock: it reads
 * `engines` and the switch's ports, and a machine is freed only after two turns of the switch have
 * passed since it was removed from both. */
#include "gateway_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/base/log.h"

#define LEAVE_NS 10000000000ull /* a removed machine waits so long for its programs at most */

/* Removes a machine from the engines and ports that are polled. */
static void
machines_unplug(struct gw *g, unsigned i)
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

static int
machines_find(const struct gw *g, const char *name)
{
	for (int i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL && strcmp(g->vms[i]->cfg.name, name) == 0)
			return i;
	return -ENOENT;
}

static int
machines_add(struct gw *g, struct gw_vm_config *cfg, char *err, size_t errlen)
{
	struct gw_vm *vm;
	unsigned i = 0;
	int rc;

	if (machines_find(g, cfg->name) >= 0) {
		snprintf(err, errlen, "machine %s exists already", cfg->name);
		return -EEXIST;
	}
	while (i < GW_VMS && g->vms[i] != NULL)
		i++;
	if (i == GW_VMS) {
		snprintf(err, errlen, "the gateway has its maximum of %u machines", GW_VMS);
		return -ENOSPC;
	}
	rc = gw_identity_settle(g, cfg, err, errlen);
	if (rc != 0)
		return rc;
	rc = gw_vm_make(g, i + 1, cfg, &vm, err, errlen);
	g->vms[i] = vm;
	if (rc != 0) {
		if (vm != NULL)
			machines_unplug(g, i);
		return rc;
	}
	__atomic_store_n(&g->engines[i], vm->e, __ATOMIC_RELEASE);
	if (i >= g->last)
		__atomic_store_n(&g->last, i + 1, __ATOMIC_RELEASE);
	sk_log(SK_LOG_INFO, "machine %s was added", cfg->name);
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
	rc = machines_add(g, &whole, err, errlen);
	pthread_mutex_unlock(&g->lock);
	return rc;
}

int
gw_vm_del(struct gw *g, const char *name)
{
	int i;

	pthread_mutex_lock(&g->lock);
	i = machines_find(g, name);
	if (i >= 0 && g->vms[i]->state == GW_VM_UP) {
		gw_bar_stop(g->vms[i]->bar);
		g->vms[i]->state = GW_VM_LEAVING;
		g->vms[i]->since = eng_clock();
	}
	pthread_mutex_unlock(&g->lock);
	return i < 0 ? i : 0;
}

unsigned
gw_vms_leaving(struct gw *g)
{
	unsigned n = 0;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < GW_VMS; i++)
		n += g->vms[i] != NULL && g->vms[i]->state != GW_VM_UP;
	pthread_mutex_unlock(&g->lock);
	return n;
}

static void
machines_tend_one(struct gw *g, unsigned i, uint64_t now)
{
	struct gw_vm *vm = g->vms[i];

	/* When QEMU ends, its programs are detached without waiting for their heartbeat timeout. */
	if (vm->doorbell != NULL && gw_doorbell_tend(vm->doorbell))
		gw_bar_vacate(vm->bar);
	switch (vm->state) {
	case GW_VM_UP:
		gw_bar_poll(vm->bar, now);
		break;
	case GW_VM_LEAVING:
		gw_bar_poll(vm->bar, now);
		/* gw_vm_del() may have read its clock after the caller of this turn. */
		if (gw_bar_idle(vm->bar) || (now > vm->since && now - vm->since > LEAVE_NS))
			machines_unplug(g, i);
		break;
	case GW_VM_UNPLUGGED:
		if (!gw_quiet(g, vm->since))
			break;
		sk_log(SK_LOG_INFO, "machine %s was removed", vm->cfg.name);
		g->vms[i] = NULL;
		gw_doorbell_end(vm->doorbell);
		gw_vm_free(vm);
		break;
	}
}

void
gw_machines_tend(struct gw *g, uint64_t now)
{
	for (unsigned i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL)
			machines_tend_one(g, i, now);
}

void
gw_machines_free(struct gw *g)
{
	for (unsigned i = 0; i < GW_VMS; i++) {
		struct gw_vm *vm = g->vms[i];

		if (vm == NULL)
			continue;
		if (vm->state != GW_VM_UNPLUGGED)
			machines_unplug(g, i);
		g->vms[i] = NULL;
		gw_vm_free(vm);
	}
}
