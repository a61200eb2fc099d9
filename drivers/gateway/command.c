/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes the commands for machines. */
#include "gateway_priv.h"

#include <errno.h>
#include <string.h>

#include <rte_ether.h>

#include "../../lib/wire/wire.h"

#define LINE_MOST 1024
#define WHY_MAX   256

/* ---- Show ---- */

static void
show_bytes(struct cmd_out *out, const char *what, const struct gw *g, int port)
{
	struct gw_port_view v;

	if (port < 0)
		return;
	gw_switch_port_view(g->sw, port, &v);
	cmd_record(out, what);
	cmd_number(out, "frames_sent", v.frames_in);
	cmd_number(out, "bytes_sent", v.bytes_in);
	cmd_number(out, "frames_received", v.frames_out);
	cmd_number(out, "bytes_received", v.bytes_out);
	cmd_end(out);
}

static void
show_identity(struct cmd_out *out, const struct gw *g, const struct gw_vm_config *c)
{
	char text[SK_ADDR_STRLEN];

	if (!g->cfg.base->falcon.enabled)
		return;
	cmd_number(out, "falcon_function", c->function);
	cmd_flag(out, "pcid", c->pcid);
	if (!sk_addr_is_any(&c->tunnel.addr))
		cmd_text(out, "tunnel", "%s", sk_addr_str(&c->tunnel.addr, text));
	else if (g->cfg.base->falcon.tunnel)
		cmd_text(out, "tunnel", "from its own addresses");
}

static void
show_doorbell(struct cmd_out *out, const struct gw_vm *vm)
{
	struct gw_doorbell_view v;

	if (vm->doorbell == NULL)
		return;
	gw_doorbell_view(vm->doorbell, &v);
	cmd_record(out, "doorbell");
	cmd_text(out, "path", "%s", vm->cfg.doorbell);
	cmd_flag(out, "connected", v.connected);
	cmd_number(out, "rings", v.rings);
	cmd_number(out, "interrupts", v.interrupts);
	cmd_end(out);
}

static void
show_memory(struct cmd_out *out, const struct gw_vm *vm)
{
	struct gw_bar_view b;

	gw_bar_view(vm->bar, &b);
	cmd_record(out, "memory");
	cmd_text(out, "path", "%s", vm->cfg.path);
	cmd_number(out, "bytes", vm->cfg.size);
	cmd_number(out, "slots", b.slots);
	cmd_number(out, "slots_in_use", b.clients);
	cmd_number(out, "attached", b.attached);
	cmd_number(out, "timed_out", b.timed_out);
	cmd_number(out, "refused", b.refused);
	cmd_flag(out, "truncated", b.dead);
	cmd_end(out);
}

static void
show_objects(struct cmd_out *out, const struct gw_vm *vm)
{
	struct eng_totals t;

	eng_totals(vm->e, &t);
	cmd_record(out, "holds");
	cmd_number(out, "qps", t.qps);
	cmd_number(out, "most_qps", vm->cfg.qps);
	cmd_number(out, "mrs", t.mrs);
	cmd_number(out, "most_mrs", vm->cfg.mrs);
	cmd_number(out, "cqs", t.cqs);
	cmd_number(out, "pds", t.pds);
	cmd_number(out, "listeners", t.listeners);
	cmd_number(out, "connections", t.conns);
	cmd_number(out, "mbufs_free", t.rx_mbufs_free + t.tx_mbufs_free);
	cmd_number(out, "mbufs", t.rx_mbufs + t.tx_mbufs);
	cmd_end(out);
}

static void
show_addresses(struct cmd_out *out, const struct gw_vm_config *c)
{
	char text[GW_ADDRS_MAX * (SK_ADDR_STRLEN + 8)] = "", one[SK_ADDR_STRLEN];
	size_t n = 0;

	for (unsigned i = 0; i < c->naddrs; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s/%u", i > 0 ? " " : "",
			sk_addr_str(&c->addrs[i].addr, one), c->addrs[i].len);
	cmd_text(out, "addresses", "%s", text);
}

static void
show_vm(struct cmd_out *out, const struct gw *g, const struct gw_vm *vm)
{
	const struct gw_vm_config *c = &vm->cfg;
	char mac[RTE_ETHER_ADDR_FMT_SIZE];

	cmd_record(out, NULL);
	cmd_text(out, "machine", "%s", c->name);
	cmd_text(out, "state", "%s", vm->state == GW_VM_UP ? "up" : "being removed");
	rte_ether_format_addr(mac, sizeof(mac), (const struct rte_ether_addr *)c->mac);
	cmd_text(out, "mac", "%s", mac);
	if (c->vlan != ETH_NO_VLAN)
		cmd_number(out, "vlan", c->vlan);
	show_addresses(out, c);
	cmd_flag(out, "peers", c->peers);
	show_identity(out, g, c);
	if (vm->e != NULL && vm->bar != NULL) {
		show_memory(out, vm);
		show_doorbell(out, vm);
		show_objects(out, vm);
		show_bytes(out, "rdma", g, vm->vport.port);
		show_bytes(out, "nic", g, vm->nic.port);
	}
	cmd_end(out);
}

static void
show_switch(struct cmd_out *out, const struct gw *g)
{
	const uint64_t *counters = gw_switch_counters(g->sw);

	cmd_record(out, "switch");
	show_bytes(out, "host", g, g->host.port);
	show_bytes(out, "wire", g, g->uplink.port);
	if (g->uplink.port >= 0)
		cmd_flag(out, "wire_removed", eng_device_is_removed(&g->uplink.dev));
	cmd_list(out, "counters");
	for (unsigned r = 1; r < gw_reason_count; r++) {
		if (counters[r] == 0)
			continue;
		cmd_record(out, NULL);
		cmd_text(out, "name", "%s", gw_reasons.reasons[r].name);
		cmd_number(out, "value", counters[r]);
		cmd_text(out, "meaning", "%s", gw_reasons.reasons[r].help);
		cmd_end(out);
	}
	cmd_end(out);
	cmd_end(out);
}

void
gw_command_show(struct gw *g, struct cmd_out *out)
{
	pthread_mutex_lock(&g->lock);
	cmd_list(out, "machines");
	for (unsigned i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL)
			show_vm(out, g, g->vms[i]);
	cmd_end(out);
	show_switch(out, g);
	pthread_mutex_unlock(&g->lock);
}

void
gw_each(struct gw *g, gw_visit *each, void *arg)
{
	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL && g->vms[i]->e != NULL &&
			g->vms[i]->state != GW_VM_UNPLUGGED)
			each(arg, g->vms[i]->cfg.name, g->vms[i]->e);
	pthread_mutex_unlock(&g->lock);
}

/* ---- Add and remove ---- */

/* Sets the keys of a machine from the words of the command. */
static int
command_keys(struct gw_vm_config *vm, char *words, char why[WHY_MAX])
{
	char *save = NULL, *w = strtok_r(words, " \t", &save), *value;
	int rc = -EINVAL;

	snprintf(why, WHY_MAX, "a machine needs a name");
	if (w != NULL)
		rc = gw_vm_set(vm, "name", w, why, WHY_MAX);
	while (rc == 0 && (w = strtok_r(NULL, " \t", &save)) != NULL) {
		value = strchr(w, '=');
		if (value == NULL) {
			snprintf(why, WHY_MAX, "'%s' is not KEY=VALUE", w);
			return -EINVAL;
		}
		*value++ = '\0';
		rc = gw_vm_set(vm, w, value, why, WHY_MAX);
	}
	return rc;
}

int
gw_command_add(struct gw *g, const char *words, struct cmd_out *out)
{
	struct gw_vm_config vm;
	char copy[LINE_MOST], why[WHY_MAX];
	int rc;

	if (snprintf(copy, sizeof(copy), "%s", words) >= (int)sizeof(copy))
		return cmd_refuse(out, "the line is longer than %u bytes", LINE_MOST - 1);
	gw_vm_default(&vm);
	rc = command_keys(&vm, copy, why);
	if (rc == 0)
		rc = gw_vm_add(g, &vm, why, sizeof(why));
	if (rc == 0)
		return cmd_say(out, "Machine %s was added.", vm.name);
	cmd_refuse(out, "%s", why);
	return rc;
}

int
gw_command_del(struct gw *g, const char *name, struct cmd_out *out)
{
	if (gw_vm_del(g, name) == 0)
		return cmd_say(out, "Machine %s is being removed.", name);
	cmd_refuse(out, "there is no machine %s", name);
	return -ENOENT;
}
