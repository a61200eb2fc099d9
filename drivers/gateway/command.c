/* SPDX-License-Identifier: BSD-3-Clause */
/* Executes the commands for machines, which the prompt and the control socket share. */
#include "gateway_priv.h"

#include <errno.h>
#include <string.h>

#include "../../lib/wire/wire.h"

#define LINE_MAX 1024
#define WHY_MAX  256

/* ---- vm show ---- */

static void
show_bytes(const char *what, const struct gw *g, int port, FILE *to)
{
	struct gw_port_view v;

	if (port < 0)
		return;
	gw_switch_port_view(g->sw, port, &v);
	fprintf(to, "  %-6s sent %llu frames, %llu bytes; received %llu frames, %llu bytes\n", what,
		(unsigned long long)v.frames_in, (unsigned long long)v.bytes_in,
		(unsigned long long)v.frames_out, (unsigned long long)v.bytes_out);
}

static void
show_falcon(const struct gw *g, const struct gw_vm_config *c, FILE *to)
{
	char text[SK_ADDR_STRLEN];

	if (!g->cfg.base->falcon.enabled)
		return;
	fprintf(to, "  falcon function %u%s", c->function, c->pcid ? ", PCID" : "");
	if (!sk_addr_is_any(&c->tunnel.addr))
		fprintf(to, ", tunnel from %s (may be shared)", sk_addr_str(&c->tunnel.addr, text));
	else if (g->cfg.base->falcon.tunnel)
		fprintf(to, ", tunnel from its own addresses");
	fprintf(to, "\n");
}

static void
show_doorbell(const struct gw_vm *vm, FILE *to)
{
	struct gw_doorbell_view v;

	if (vm->doorbell == NULL)
		return;
	gw_doorbell_view(vm->doorbell, &v);
	fprintf(to, "  doorbell %s: %s, rung %llu times\n", vm->cfg.doorbell,
		v.connected ? "connected" : "QEMU not connected", (unsigned long long)v.rings);
}

static void
show_vm(const struct gw *g, const struct gw_vm *vm, FILE *to)
{
	const struct gw_vm_config *c = &vm->cfg;
	char text[SK_ADDR_STRLEN];
	struct gw_bar_view b;
	struct eng_totals t;

	fprintf(to, "%s: %s, mac %02x:%02x:%02x:%02x:%02x:%02x", c->name,
		vm->state == GW_VM_UP ? "up" : "being removed", c->mac[0], c->mac[1], c->mac[2],
		c->mac[3], c->mac[4], c->mac[5]);
	if (c->vlan != ETH_NO_VLAN)
		fprintf(to, ", vlan %u", c->vlan);
	for (unsigned i = 0; i < c->naddrs; i++)
		fprintf(to, ", %s/%u", sk_addr_str(&c->addrs[i].addr, text), c->addrs[i].len);
	fprintf(to, "%s\n", c->peers ? ", peers allowed" : "");
	show_falcon(g, c, to);
	if (vm->e == NULL || vm->bar == NULL)
		return;
	gw_bar_view(vm->bar, &b);
	eng_totals(vm->e, &t);
	/* test/interop/vm.sh parses this line. */
	fprintf(to,
		"  memory %s, %llu bytes: %u of %u slots in use, %llu ever, %llu timed out, "
		"%llu refused%s\n",
		c->path, (unsigned long long)c->size, b.clients, b.slots,
		(unsigned long long)b.attached, (unsigned long long)b.timed_out,
		(unsigned long long)b.refused, b.dead ? "; the file was truncated" : "");
	show_doorbell(vm, to);
	fprintf(to,
		"  holds  %u of %u QPs, %u of %u MRs, %u CQs, %u PDs, %u listeners, "
		"%u connections; mbufs free %u/%u\n",
		t.qps, c->qps, t.mrs, c->mrs, t.cqs, t.pds, t.listeners, t.conns,
		t.rx_mbufs_free + t.tx_mbufs_free, t.rx_mbufs + t.tx_mbufs);
	show_bytes("rdma", g, vm->vport.port, to);
	show_bytes("nic", g, vm->nic.port, to);
}

static void
command_show(struct gw *g, FILE *to)
{
	const uint64_t *counters = gw_switch_counters(g->sw);

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < GW_VMS; i++)
		if (g->vms[i] != NULL)
			show_vm(g, g->vms[i], to);
	fprintf(to, "the switch:\n");
	show_bytes("host", g, g->host.port, to);
	show_bytes("wire", g, g->uplink_port, to);
	for (unsigned r = 1; r < gw_reason_count; r++)
		if (counters[r] != 0)
			fprintf(to, "  %-12s %llu  %s\n", gw_reasons.reasons[r].name,
				(unsigned long long)counters[r], gw_reasons.reasons[r].help);
	pthread_mutex_unlock(&g->lock);
}

/* ---- Commands ---- */

static int
command_add(struct gw *g, char *words, FILE *to)
{
	struct gw_vm_config vm;
	char why[WHY_MAX], *save = NULL, *w = strtok_r(words, " \t", &save);
	int rc = -EINVAL;

	gw_vm_default(&vm);
	snprintf(why, sizeof(why), "usage: vm add NAME KEY=VALUE...");
	if (w != NULL)
		rc = gw_vm_set(&vm, "name", w, why, sizeof(why));
	while (rc == 0 && (w = strtok_r(NULL, " \t", &save)) != NULL) {
		char *value = strchr(w, '=');

		if (value == NULL) {
			snprintf(why, sizeof(why), "'%s' is not KEY=VALUE", w);
			rc = -EINVAL;
			break;
		}
		*value++ = '\0';
		rc = gw_vm_set(&vm, w, value, why, sizeof(why));
	}
	if (rc == 0)
		rc = gw_vm_add(g, &vm, why, sizeof(why));
	if (rc == 0)
		fprintf(to, "Machine %s was added.\n", vm.name);
	else
		fprintf(to, "Refused: %s.\n", why);
	return rc;
}

static int
command_del(struct gw *g, const char *name, FILE *to)
{
	int rc = gw_vm_del(g, name);

	if (rc == 0)
		fprintf(to, "Machine %s is being removed.\n", name);
	else
		fprintf(to, "Refused: there is no machine %s.\n", name);
	return rc;
}

int
gw_command(struct gw *g, const char *line, FILE *to)
{
	char copy[LINE_MAX], *save = NULL, *word, *rest;

	if (snprintf(copy, sizeof(copy), "%s", line) >= (int)sizeof(copy)) {
		fprintf(to, "Refused: the line is longer than %u bytes.\n", LINE_MAX - 1);
		return -EINVAL;
	}
	word = strtok_r(copy, " \t\r\n", &save);
	rest = word == NULL ? NULL : strtok_r(NULL, "\r\n", &save);
	if (word != NULL && strcmp(word, "add") == 0 && rest != NULL)
		return command_add(g, rest, to);
	if (word != NULL && strcmp(word, "del") == 0 && rest != NULL)
		return command_del(g, rest, to);
	if (word != NULL && strcmp(word, "show") == 0) {
		command_show(g, to);
		return 0;
	}
	fprintf(to, "Refused: the commands are vm add NAME KEY=VALUE..., vm del NAME, vm show.\n");
	return -EINVAL;
}
