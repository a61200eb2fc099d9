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

/* The host's engine is there before the first machine, and as long as somebody tends. */
static int
saker_gateway_wake(void *arg, int fd, bool on)
{
	const struct app *a = arg;

	if (on)
		return eng_wake_on(a->e, fd);
	eng_wake_off(a->e, fd);
	return 0;
}

static bool
running(void *arg)
{
	(void)arg;
	return run_running();
}

static int
saker_gateway_create(struct app *a, int uplink, uint32_t mtu, char why[WHY_LEN])
{
	const struct gw_config cfg = {.base = &a->s.eng,
		.uplink = uplink,
		.mtu = mtu,
		.mbufs = a->s.gateway.mbufs,
		.running = running,
		.wake = a->s.eng.idle == ENG_IDLE_SLEEP ? saker_gateway_wake : NULL,
		.wake_arg = a};

	state.g = gw_create(&cfg, why, WHY_LEN);
	return state.g == NULL ? -EINVAL : 0;
}

int
gateway_prepare(struct app *a, char why[WHY_LEN])
{
	if (!a->s.gateway.enabled || a->s.gateway.uplink[0] != '\0')
		return 0;
	return saker_gateway_create(a, -1, a->s.mtu, why);
}

/* The port of this device; -1: none. */
static int
port_of(const struct eng_config *c, uint16_t device)
{
	for (unsigned i = 0; i < c->nports; i++)
		if (c->ports[i].port_id == device)
			return (int)i;
	return -1;
}

int
gateway_plug(struct app *a, char why[WHY_LEN])
{
	struct eng_config *c = &a->s.eng;
	struct eng_port_config *p;
	uint8_t mac[6];
	uint16_t id;
	int port;

	if (!a->s.gateway.enabled)
		return 0;
	if (state.g == NULL) {
		port = rte_eth_dev_get_port_by_name(a->s.gateway.uplink, &id) == 0 ? port_of(c, id)
										   : -1;
		if (port < 0)
			return refuse_why(why, "[gateway] uplink = %s is no port of this saker",
				a->s.gateway.uplink);
		if (saker_gateway_create(a, id, c->ports[port].mtu, why) < 0)
			return -EINVAL;
		c->ports[port].port_id = gw_host_port(state.g, mac);
	}
	gw_hook(state.g, c);
	port = port_of(c, gw_host_port(state.g, mac));
	if (port < 0)
		return 0;
	p = &c->ports[port];
	memcpy(p->mac, mac, sizeof(p->mac));
	/* Rings have no offloads, whatever the device could do. */
	p->offload_cksum = p->offload_tso = false;
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
