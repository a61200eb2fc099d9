/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual machines in the launcher: the gateway takes over the port that is to be the uplink, the
 * host's engine finds the wire at one of the gateway's, and a thread tends the machines' programs.
 * Without [gateway] enabled nothing of this is there.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "../../lib/base/log.h"
#include "saker.h"

#define TEND_US 2000 /* how soon a program that comes, or has died, is noticed */

static struct {
	struct gw *g;
	pthread_t thread;
	bool tending, stop; /* stop: atomic */
} state;

static bool
hook(void *arg, uint64_t now)
{
	return gw_poll(arg, now);
}

static bool
running(void *arg)
{
	(void)arg;
	return run_running();
}

/* The engine's port that is the uplink; -1: none was named. -2: there is no such port. */
static int
uplink_find(const struct settings *s)
{
	uint16_t id;

	if (s->gateway.uplink[0] == '\0')
		return -1;
	if (rte_eth_dev_get_port_by_name(s->gateway.uplink, &id) != 0)
		return -2;
	for (unsigned i = 0; i < s->eng.nports; i++)
		if (s->eng.ports[i].port_id == id)
			return (int)i;
	return -2;
}

int
gateway_prepare(struct app *a, char why[WHY_LEN])
{
	struct eng_config *c = &a->s.eng;
	struct gw_config cfg = {.base = c,
		.uplink = -1,
		.mtu = a->s.mtu,
		.mbufs = a->s.gateway.mbufs,
		.running = running};
	int port;

	if (!a->s.gateway.enabled)
		return 0;
	port = uplink_find(&a->s);
	if (port == -2)
		return refuse_why(
			why, "[gateway] uplink = %s is no port of this saker", a->s.gateway.uplink);
	if (port >= 0) {
		cfg.uplink = c->ports[port].port_id;
		cfg.mtu = c->ports[port].mtu;
	}
	state.g = gw_create(&cfg, why, WHY_LEN);
	if (state.g == NULL)
		return -EINVAL;
	if (port >= 0) {
		struct eng_port_config *p = &c->ports[port];

		/* Rings have no offloads, whatever the device could do. */
		p->port_id = gw_host_port(state.g, p->mac);
		p->offload_cksum = p->offload_tso = false;
	}
	c->hook = hook;
	c->hook_arg = state.g;
	return 0;
}

static void *
tend(void *arg)
{
	while (!__atomic_load_n(&state.stop, __ATOMIC_ACQUIRE)) {
		gw_tend(arg, eng_clock());
		usleep(TEND_US);
	}
	return NULL;
}

/* The sections [vm N]. */
static int
machines_add(const struct settings *s, char why[WHY_LEN])
{
	for (unsigned i = 0; i < GW_VMS; i++) {
		const struct vm_setting *v = &s->vms[i];
		char reason[WHY_LEN / 2];
		struct gw_vm_config vm;
		int rc = 0;

		if (!v->present)
			continue;
		gw_vm_default(&vm);
		for (unsigned k = 0; k < VM_KEYS && rc == 0; k++)
			if (v->value[k][0] != '\0')
				rc = gw_vm_set(
					&vm, vm_keys[k], v->value[k], reason, sizeof(reason));
		if (rc == 0)
			rc = gw_vm_add(state.g, &vm, reason, sizeof(reason));
		if (rc != 0)
			return refuse_why(why, "[vm %u]: %s", i, reason);
	}
	return 0;
}

int
gateway_start(struct app *a, char why[WHY_LEN])
{
	int rc;

	if (state.g == NULL)
		return 0;
	rc = machines_add(&a->s, why);
	if (rc == 0 && a->s.gateway.control[0] != '\0')
		rc = gw_control_open(state.g, a->s.gateway.control, why, WHY_LEN);
	if (rc < 0)
		return rc;
	rc = rte_ctrl_thread_create(&state.thread, "saker-vms", NULL, tend, state.g);
	state.tending = rc == 0;
	return rc == 0 ? 0 : refuse_why(why, "no thread for the machines: %s", strerror(-rc));
}

void
gateway_stop(void)
{
	if (state.tending) {
		__atomic_store_n(&state.stop, true, __ATOMIC_RELEASE);
		pthread_join(state.thread, NULL);
	}
	state.tending = false;
}

void
gateway_free(void)
{
	gw_destroy(state.g);
	state.g = NULL;
}

void
vm_command(struct app *a, const char *arg)
{
	(void)a;
	if (state.g == NULL)
		printf("There is no gateway: set [gateway] enabled = yes.\n");
	else
		gw_command(state.g, arg, stdout);
}

void
show_vms(struct app *a, const char *arg)
{
	(void)arg;
	vm_command(a, "show");
}
