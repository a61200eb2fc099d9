/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_ring.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/common/mbuf.h"
#include "../../../lib/rof/exchange.h"
#include "../../support/psk.h"

static void
start_eal(char *megabytes)
{
	char *args[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "-m", megabytes, "-l", "0",
		"--no-telemetry", "--log-level=error"};

	cr_assert_geq(rte_eal_init(SK_ARRAY_LEN(args), args), 0);
}

void
pair_eal(void)
{
	start_eal("64");
}

void
pair_eal_large(void)
{
	start_eal("192");
}

void
pair_init(struct pair *p)
{
	pair_init_queues(p, 1);
}

void
pair_init_queues(struct pair *p, unsigned queues)
{
	struct rte_ring *r[2][PAIR_QUEUES];

	memset(p, 0, sizeof(*p));
	for (unsigned k = 0; k < 2 * queues; k++) {
		char name[RTE_RING_NAMESIZE];

		snprintf(name, sizeof(name), "wire%u_%u", k % 2, k / 2);
		r[k % 2][k / 2] =
			rte_ring_create(name, 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
		cr_assert_not_null(r[k % 2][k / 2]);
	}
	for (int i = 0; i < 2; i++) {
		struct eng_config *cfg = &p->cfg[i];
		int port = rte_eth_from_rings(i == 0 ? "a" : "b", r[i], queues, r[!i], queues, 0);

		cr_assert_geq(port, 0);
		p->port[i] = (uint16_t)port;
		eng_config_default(cfg);
		cfg->nports = 1;
		cfg->ports[0] = (struct eng_port_config){.port_id = p->port[i],
			.mtu = 1500,
			.offload_cksum = true,
			.offload_tso = true,
			.rxd = 512,
			.txd = 512};
		cfg->nifs = 1;
		cfg->ifs[0] = (struct eng_if_config){.vlan = ETH_NO_VLAN,
			.addr = addr(i == 0 ? PAIR_ADDR_A : PAIR_ADDR_B),
			.prefix = 24};
		cfg->limits.qps = cfg->limits.conns = 64;
		cfg->limits.rx_mbufs = cfg->limits.tx_mbufs = 1024;
	}
}

void
pair_start(struct pair *p)
{
	char err[256];

	for (int i = 0; i < 2; i++) {
		p->e[i] = eng_create(&p->cfg[i], err, sizeof(err));
		cr_assert_not_null(p->e[i], "%s", err);
	}
}

void
pair_turn(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		for (unsigned k = 0; p->e[i] != NULL && k < p->cfg[i].nloops; k++)
			eng_poll(p->e[i], k, eng_clock());
}

void
pair_end(struct pair *p)
{
	for (int i = 0; i < 2; i++)
		if (p->e[i] != NULL)
			eng_destroy(p->e[i]);
	cr_assert_eq(eng_pools_waiting(), 0, "mbufs are still out");
}

struct want {
	const char *layer, *name;
	uint64_t value;
	bool found;
};

static void
look(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	struct want *w = arg;

	if (strcmp(w->layer, layer) == 0 && strcmp(w->name, name) == 0) {
		w->value = value;
		w->found = true;
	}
}

struct rofx_tls *
pair_tls(uint8_t fill)
{
	static struct rofx_tls *made[256];

	if (made[fill] == NULL)
		cr_assert(psk_load(&made[fill], fill));
	return made[fill];
}

uint64_t
pair_counter(struct eng *e, const char *layer, const char *name)
{
	struct want w = {.layer = layer, .name = name};

	eng_counters(e, look, &w);
	cr_assert(w.found, "no counter %s of %s", name, layer);
	return w.value;
}
