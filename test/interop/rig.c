/* SPDX-License-Identifier: BSD-3-Clause */
/* See rig.h. */
#include <stdio.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../lib/base/mem.h"
#include "../../lib/rof/exchange.h"
#include "../../lib/wire/falcon.h"
#include "../../lib/wire/wire.h"
#include "../support/psk.h"
#include "rig.h"

#define WIRE_FRAMES 1024
#define MBUFS       6144
#define WAIT_NS     30000000000ull /* generous; reached only when something is broken */

static int
fail(const char *what, int rc)
{
	printf("%s: %s\n", what, strerror(-rc));
	return -1;
}

static int
ring_pair(struct rte_ring *way[2], uint16_t ports[2])
{
	for (int i = 0; i < 2; i++) {
		way[i] = rte_ring_create(i ? "rig_way1" : "rig_way0", WIRE_FRAMES, SOCKET_ID_ANY,
			RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (way[i] == NULL)
			return fail("a ring between the ports", -ENOMEM);
	}
	for (int i = 0; i < 2; i++) {
		int port = rte_eth_from_rings(
			i ? "rig_end1" : "rig_end0", &way[i], 1, &way[1 - i], 1, SOCKET_ID_ANY);

		if (port < 0)
			return fail("a ring port", -rte_errno);
		ports[i] = (uint16_t)port;
	}
	return 0;
}

static int
impair_pair(const char *how, uint16_t ports[2])
{
	for (int i = 0; i < 2; i++) {
		char lower[RTE_ETH_NAME_MAX_LEN], name[32], args[384];
		int rc;

		if (rte_eth_dev_get_name_by_port(ports[i], lower) < 0)
			return fail("the lower port", -ENODEV);
		snprintf(name, sizeof(name), "net_impair_rig%d", i);
		snprintf(args, sizeof(args), "port=%s,%s", lower, how);
		rc = rte_vdev_init(name, args);
		if (rc < 0 || rte_eth_dev_get_port_by_name(name, &ports[i]) < 0)
			return fail(args, rc < 0 ? rc : -ENODEV);
	}
	return 0;
}

/* Returns the pre-shared key of both ends, which exists until the end of the program, or NULL when
 * OpenSSL cannot use it. */
static struct rofx_tls *
tls(void)
{
	static struct rofx_tls *made;

	if (made == NULL)
		psk_load(&made, 'r');
	return made;
}

/* Configures Falcon. Both ends use the same key for the exchange of keys. */
static void
falcon(struct eng_falcon_config *cfg, const struct rig_falcon *f)
{
	cfg->enabled = true;
	cfg->mtu = ROF_MTU_MAX;
	cfg->ordering = f->ordering;
	cfg->errors = f->errors;
	cfg->psps = (uint16_t)(1u << f->psp);
	if (f->psp == PSP_NO_CRYPTO)
		return;
	cfg->tls = tls();
}

static int
engine(struct rig *r, int i)
{
	static const char *const addrs[2][2] = {{"10.7.0.1", "10.7.0.2"}, {"fd07::1", "fd07::2"}};
	struct eng_config cfg;
	char err[256];

	eng_config_default(&cfg);
	snprintf(cfg.name, sizeof(cfg.name), "rig%d", i);
	cfg.nports = cfg.nifs = 1;
	cfg.ports[0].port_id = r->port[i];
	cfg.ports[0].mtu = r->o.mtu;
	cfg.ifs[0].vlan = r->o.vlan;
	cfg.ifs[0].prefix = r->o.v6 ? 64 : 24;
	sk_addr_parse(addrs[r->o.v6][i], &cfg.ifs[0].addr);
	r->end[i].addr = cfg.ifs[0].addr;
	cfg.idle = ENG_IDLE_YIELD;
	if (r->o.falcon != NULL)
		falcon(&cfg.falcon, r->o.falcon);
	cfg.limits.rx_mbufs = cfg.limits.tx_mbufs = MBUFS;
	cfg.limits.qps = cfg.limits.client_qps = cfg.limits.conns = 1024;
	if (r->o.split) {
		cfg.nloops = 2;
		cfg.stage_loop[0] = 1;
	}
	if (r->o.two_stages) {
		cfg.nloops = cfg.nstages = 2;
		cfg.stage_loop[1] = 1;
		cfg.transport_loop[0] = (unsigned)i;
	}
	r->eng[i] = eng_create(&cfg, err, sizeof(err));
	if (r->eng[i] == NULL) {
		printf("engine %d: %s\n", i, err);
		return -1;
	}
	r->neng++;
	return 0;
}

/* Assigns the loops to the threads. Run to completion: one engine per thread. Split: both transport
 * stages on one thread, both engine stages on the other. Two stages: the first of each engine on
 * one thread, the second on the other. */
static void
deal(struct rig *r)
{
	bool parts = r->o.split || r->o.two_stages;
	unsigned loops = parts ? 2 : 1;

	for (unsigned i = 0; i < r->neng; i++)
		for (unsigned k = 0; k < loops; k++) {
			struct rig_hand *h = &r->hand[(parts ? k : i) % r->nhands];

			h->eng[h->n] = r->eng[i];
			h->loop[h->n++] = k;
		}
}

int
rig_open(struct rig *r, const struct rig_options *o)
{
	memset(r, 0, sizeof(*r));
	r->o = *o;
	r->nhands = SK_MIN(2u, rte_lcore_count());
	if (ring_pair(r->way, r->port) || (o->impair != NULL && impair_pair(o->impair, r->port)))
		return -1;
	if (engine(r, 0) || (!o->one && engine(r, 1)))
		return -1;
	if (o->one) {
		r->eng[1] = r->eng[0];
		r->end[1].addr = r->end[0].addr;
	}
	r->end[0].eng = r->eng[0];
	r->end[1].eng = r->eng[1];
	deal(r);
	return 0;
}

void
rig_turn(struct rig_hand *hand)
{
	for (unsigned i = 0; i < hand->n; i++)
		eng_poll(hand->eng[i], hand->loop[i], eng_clock() + hand->ahead);
}

static void
idle(void *arg)
{
	rig_turn(arg);
}

int
rig_serve(void *rig)
{
	struct rig *r = rig;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
		rig_turn(&r->hand[1]);
	return 0;
}

int
rig_attach(struct rig *r, int i, struct rig_hand *hand)
{
	struct rig_end *end = &r->end[i];
	uint64_t until = eng_clock() + WAIT_NS;
	struct shm_header *h;
	int rc;

	end->hand = hand;
	end->home_len = (r->o.mem_len + r->o.ring_len + 4095) / 4096 * 4096;
	h = end->home = sk_mem_alloc(end->home_len);
	if (h == NULL)
		return fail("memory for a client", -ENOMEM);
	rc = eng_attach_flat(end->eng, "rig", h, end->home_len, r->o.mem_len);
	if (rc < 0)
		return fail("attaching a flat client", rc);
	end->client = rc;
	while (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != SHM_MAGIC && eng_clock() < until)
		rig_turn(hand);
	rc = saker_open_flat(h, end->home_len, idle, hand, &end->s);
	if (rc < 0)
		printf("saker_open_flat: %s\n", saker_error());
	return rc < 0 ? -1 : 0;
}

int
rig_detach(struct rig *r, int i)
{
	struct rig_end *end = &r->end[i];
	uint64_t until = eng_clock() + WAIT_NS;

	saker_close(end->s);
	eng_detach(end->eng, end->client);
	while (!eng_client_gone(end->eng, end->client) && eng_clock() < until)
		rig_turn(end->hand);
	if (!eng_client_gone(end->eng, end->client))
		return fail("a detached client", -ETIMEDOUT);
	sk_mem_free(end->home, end->home_len);
	return 0;
}

static bool
home(const struct eng_totals *t)
{
	return !t->clients && !t->qps && !t->cqs && !t->mrs && !t->mws && !t->pds &&
	       !t->listeners && !t->regions && t->rx_mbufs_free == t->rx_mbufs &&
	       t->tx_mbufs_free == t->tx_mbufs;
}

int
rig_all_home(struct rig *r)
{
	uint64_t until = eng_clock() + WAIT_NS;
	struct eng_totals t[2];
	bool all = false;

	while (!all && eng_clock() < until) {
		void *m;

		/* With one engine, nothing is attached to the wire's other end. */
		while (r->o.one && rte_ring_sc_dequeue(r->way[1], &m) == 0)
			rte_pktmbuf_free(m);
		for (unsigned i = 0; i < r->nhands; i++)
			if (i == 0 || __atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
				rig_turn(&r->hand[i]);
		eng_totals(r->eng[0], &t[0]);
		eng_totals(r->eng[1], &t[1]);
		all = home(&t[0]) && home(&t[1]);
	}
	for (unsigned i = 0; i < r->neng && !all; i++)
		printf("engine %u holds %u clients, %u QPs, %u CQs, %u MRs, %u MWs, %u PDs, %u"
		       " listeners, %u regions; "
		       "of %u receive mbufs %u are free, of %u send mbufs %u\n",
			i, t[i].clients, t[i].qps, t[i].cqs, t[i].mrs, t[i].mws, t[i].pds,
			t[i].listeners, t[i].regions, t[i].rx_mbufs, t[i].rx_mbufs_free,
			t[i].tx_mbufs, t[i].tx_mbufs_free);
	return all ? 0 : -1;
}

void
rig_close(struct rig *r)
{
	for (unsigned i = 0; i < r->neng; i++)
		eng_destroy(r->eng[i]);
}

struct wanted {
	const char *layer, *name;
	uint64_t value;
};

static void
take_counter(void *arg, const char *layer, const char *name, enum sk_severity sev, const char *help,
	uint64_t value)
{
	struct wanted *w = arg;

	if (strcmp(layer, w->layer) == 0 && strcmp(name, w->name) == 0)
		w->value = value;
}

uint64_t
rig_count(const struct eng *e, const char *layer, const char *name)
{
	struct wanted w = {layer, name, UINT64_MAX};

	eng_counters(e, take_counter, &w);
	return w.value;
}
