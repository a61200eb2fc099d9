/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual machines in the launcher. The gateway takes over the port that is its uplink, the host's
 * engine gets a port of the gateway instead, and a thread tends the machines' programs. Without
 * [gateway] enabled, saker creates none of this.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "../../lib/base/log.h"
#include "saker.h"

#define TEND_US 2000 /* interval of gw_tend(): delay until an attaching program is served */

static struct {
	struct gw *g;
	pthread_t thread;
	bool tending, stop; /* stop: atomic */
	bool plugged;       /* the gateway has an uplink */
	unsigned index;     /* of the port in eng_config.ports that is the uplink's */
	uint16_t uplink;    /* its DPDK port */
	/* NULL, or the settings that have machines which wait until others have left. */
	struct settings *later;
} state;

/* Implements gw_config.wake. The host's engine exists before the first machine does, and until the
 * thread that tends has ended. */
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
		.wake_arg = a,
		.keeper = {notify_keep, notify_forget, notify_kept}};

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

/* Returns the index of the engine's port with this device, or -1. */
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
			return settings_refuse(why,
				"[gateway] uplink = %s is not a port of this saker",
				a->s.gateway.uplink);
		if (saker_gateway_create(a, id, c->ports[port].mtu, why) < 0)
			return -EINVAL;
		state.plugged = true;
		state.index = (unsigned)port;
		state.uplink = id;
		c->ports[port].port_id = gw_host_port(state.g, mac);
	}
	gw_hook(state.g, c);
	port = port_of(c, gw_host_port(state.g, mac));
	if (port < 0)
		return 0;
	p = &c->ports[port];
	memcpy(p->mac, mac, sizeof(p->mac));
	/* The rings of the gateway's port support no offloads, even if the uplink does. */
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

/* Makes the configuration of the machine [vm N]. */
static int
saker_gateway_machine(const struct settings *s, unsigned n, struct gw_vm_config *vm, char *why)
{
	const struct vm_setting *v = &s->vms[n];
	char reason[WHY_LEN / 2];
	int rc = 0;

	gw_vm_default(vm);
	for (unsigned k = 0; k < VM_KEYS && rc == 0; k++)
		if (v->value[k][0] != '\0')
			rc = gw_vm_set(
				vm, settings_vm_keys[k], v->value[k], reason, sizeof(reason));
	if (rc == 0)
		rc = gw_vm_check(vm, reason, sizeof(reason));
	return rc == 0 ? 0 : settings_refuse_section(s, "vm", n, why, "is wrong: %s", reason);
}

int
gateway_check(const struct settings *s, char why[WHY_LEN])
{
	struct gw_vm_config vm;
	int rc = 0;

	for (unsigned i = 0; i < VM_MAX && rc == 0; i++)
		if (s->vms[i].present)
			rc = saker_gateway_machine(s, i, &vm, why);
	return rc;
}

/* Adds the machines of the sections [vm N]. */
static int
saker_gateway_add_machines(const struct settings *s, char why[WHY_LEN])
{
	char reason[WHY_LEN / 2];
	struct gw_vm_config vm;

	for (unsigned i = 0; i < VM_MAX; i++) {
		if (!s->vms[i].present)
			continue;
		if (saker_gateway_machine(s, i, &vm, why) < 0)
			return -EINVAL;
		if (gw_vm_add(state.g, &vm, reason, sizeof(reason)) < 0)
			return settings_refuse_section(
				s, "vm", i, why, "cannot be added: %s", reason);
	}
	return 0;
}

int
gateway_start(struct app *a, char why[WHY_LEN])
{
	int rc;

	if (state.g == NULL)
		return 0;
	rc = saker_gateway_add_machines(&a->s, why);
	if (rc < 0)
		return rc;
	notify_forget_rest();
	rc = rte_ctrl_thread_create(&state.thread, "saker-vms", NULL, tend, state.g);
	state.tending = rc == 0;
	return rc == 0 ? 0
		       : settings_refuse(why,
				 "the thread that tends machines cannot be created: %s",
				 strerror(-rc));
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
	free(state.later);
	state.later = NULL;
}

/* ---- Commands ---- */

void
gateway_each(struct app *a, gw_visit *each, void *arg)
{
	each(arg, "-", a->e);
	if (state.g != NULL)
		gw_each(state.g, each, arg);
}

/* Returns the N of the section [vm N] that names the machine, or VM_MAX. */
static unsigned
section_of(const struct vm_setting *vms, const char *name)
{
	unsigned n = 0;

	while (n < VM_MAX && (!vms[n].present || strcmp(vms[n].value[VM_NAME], name) != 0))
		n++;
	return n;
}

/* Deletes the machines that `next` does not name, and gives the others its numbers. */
static void
machines_delete(struct app *a, const struct vm_setting *next, struct vm_setting *kept)
{
	for (unsigned i = 0; i < VM_MAX; i++) {
		const struct vm_setting *vm = &a->s.vms[i];
		unsigned n = vm->present ? section_of(next, vm->value[VM_NAME]) : VM_MAX;

		if (n < VM_MAX) {
			kept[n] = *vm;
			kept[n].by_command = next[n].by_command;
		} else if (vm->present) {
			gw_vm_del(state.g, vm->value[VM_NAME]);
		}
	}
	memcpy(a->s.vms, kept, sizeof(a->s.vms));
}

/* Adds the machine [vm N] of the settings. Returns 0, -EAGAIN when it must wait for a machine that
 * is leaving, or another -errno with a sentence. */
static int
machine_add(struct app *a, const struct settings *next, unsigned n, char why[WHY_LEN])
{
	unsigned leaving = gw_vms_leaving(state.g);
	char reason[WHY_LEN / 2];
	struct gw_vm_config vm;
	int rc = saker_gateway_machine(next, n, &vm, why);

	if (rc < 0)
		return rc;
	rc = gw_vm_add(state.g, &vm, reason, sizeof(reason));
	if (rc == 0)
		a->s.vms[n] = next->vms[n];
	else
		settings_refuse_section(next, "vm", n, why, "cannot be added: %s", reason);
	return rc < 0 && leaving > 0 ? -EAGAIN : rc;
}

/* Adds the machines of `next` that do not exist. `out` may be NULL. Returns whether some must wait
 * for machines that are leaving. */
static bool
machines_add_missing(struct app *a, const struct settings *next, struct cmd_out *out)
{
	bool wait = false;
	char why[WHY_LEN];
	int rc;

	for (unsigned i = 0; i < VM_MAX; i++) {
		if (!next->vms[i].present || a->s.vms[i].present)
			continue;
		rc = machine_add(a, next, i, why);
		wait |= rc == -EAGAIN;
		if (rc < 0 && rc != -EAGAIN)
			sk_log(SK_LOG_ERR, "%s", why);
		if (rc < 0 && out != NULL)
			cmd_text(out, rc == -EAGAIN ? "added_later" : "not_added", "%s", why);
	}
	return wait;
}

void
gateway_change(struct app *a, const struct settings *next, struct cmd_out *out)
{
	struct vm_setting *kept = calloc(VM_MAX, sizeof(*kept));

	if (state.g != NULL && kept == NULL)
		cmd_text(out, "not_changed", "the machines: memory is exhausted");
	if (state.g == NULL || kept == NULL) {
		free(kept);
		return;
	}
	machines_delete(a, next->vms, kept);
	free(kept);
	gw_host_claim(state.g);
	free(state.later);
	state.later = NULL;
	if (!machines_add_missing(a, next, out))
		return;
	state.later = malloc(sizeof(*state.later));
	if (state.later != NULL)
		*state.later = *next;
}

void
gateway_look(struct app *a)
{
	if (state.later == NULL || machines_add_missing(a, state.later, NULL))
		return;
	free(state.later);
	state.later = NULL;
}

/* Returns the last [vm N] that neither of the settings has, or VM_MAX. */
static unsigned
free_section(const struct settings *a, const struct settings *b)
{
	unsigned i = VM_MAX;

	while (i > 0 && (a->vms[i - 1].present || b->vms[i - 1].present))
		i--;
	return i > 0 ? i - 1 : VM_MAX;
}

void
gateway_keep(struct app *a, struct settings *next)
{
	for (unsigned i = 0; i < VM_MAX; i++) {
		unsigned to = i;

		if (!a->s.vms[i].present || !a->s.vms[i].by_command ||
			section_of(next->vms, a->s.vms[i].value[VM_NAME]) < VM_MAX)
			continue;
		if (next->vms[i].present)
			to = free_section(&a->s, next);
		if (to == VM_MAX)
			continue;
		next->vms[to] = a->s.vms[i];
		if (to != i) {
			a->s.vms[to] = a->s.vms[i];
			a->s.vms[i] = (struct vm_setting){0};
		}
	}
}

/* Enters a machine that a command has added in the settings, so that they can be saved. */
static void
machine_enter(struct app *a, const char *words)
{
	char section[NAME_LEN], copy[CMD_LINE], why[WHY_LEN], *save = NULL, *word;
	unsigned i = free_section(&a->s, state.later != NULL ? state.later : &a->s);

	if (i == VM_MAX)
		return;
	snprintf(section, sizeof(section), "vm %u", i);
	snprintf(copy, sizeof(copy), "%s", words);
	word = strtok_r(copy, " ", &save);
	settings_set(&a->s, section, "name", word, FROM_COMMAND, why);
	a->s.vms[i].by_command = true;
	while ((word = strtok_r(NULL, " ", &save)) != NULL) {
		char *value = strchr(word, '=');

		if (value == NULL)
			continue;
		*value = '\0';
		settings_set(&a->s, section, word, value + 1, FROM_COMMAND, why);
	}
}

static void
machine_remove(struct app *a, const char *name)
{
	for (unsigned i = 0; i < VM_MAX; i++)
		if (a->s.vms[i].present && strcmp(a->s.vms[i].value[VM_NAME], name) == 0)
			a->s.vms[i] = (struct vm_setting){0};
}

/* Checks that there is a gateway. */
static int
gateway_present(struct cmd_out *out)
{
	return state.g != NULL
		       ? 0
		       : cmd_refuse(out, "there is no gateway; set [gateway] enabled = yes");
}

int
gateway_attach(unsigned index, char why[WHY_LEN])
{
	if (!state.plugged || index != state.index)
		return -ENOENT;
	return gw_uplink_attach(state.g, &state.uplink, why, WHY_LEN);
}

int
gateway_show(void *app, const char *arg, struct cmd_out *out)
{
	int rc = gateway_present(out);

	if (rc == 0)
		gw_command_show(state.g, out);
	return rc;
}

int
gateway_add(void *app, const char *arg, struct cmd_out *out)
{
	int rc = gateway_present(out);

	if (rc == 0)
		rc = gw_command_add(state.g, arg, out);
	if (rc == 0)
		machine_enter(app, arg);
	return rc;
}

int
gateway_del(void *app, const char *arg, struct cmd_out *out)
{
	int rc = gateway_present(out);

	if (rc == 0)
		rc = gw_command_del(state.g, arg, out);
	if (rc == 0)
		machine_remove(app, arg);
	return rc;
}
