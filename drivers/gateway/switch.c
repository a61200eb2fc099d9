/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch's decisions: whose frame is it, may it be, and where does it go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"
#include "switch_priv.h"

SK_REASONS_DEFINE(gw, GW_NONE, GW_REASONS)

struct gw_switch *
gw_switch_create(struct rte_mempool *pool)
{
	struct gw_switch *sw = calloc(1, sizeof(*sw));

	if (sw != NULL)
		sw->pool = pool;
	return sw;
}

void
gw_switch_destroy(struct gw_switch *sw)
{
	free(sw);
}

static bool
in_use(const struct sw_port *p)
{
	return __atomic_load_n(&p->used, __ATOMIC_ACQUIRE) != 0;
}

int
gw_switch_add(struct gw_switch *sw, const struct gw_port_config *cfg)
{
	/* The host's engine is found whatever the VLAN: its key has none. */
	uint16_t vlan = cfg->tenant == GW_HOST ? ETH_NO_VLAN : cfg->vlan;
	uint64_t key = cfg->kind == GW_WIRE ? 0 : sw_key(cfg->mac, vlan);
	struct sw_port *p = NULL;

	for (unsigned i = 0; i < GW_SW_PORTS; i++) {
		struct sw_port *q = &sw->ports[i];

		if (in_use(q) && q->key == key)
			return -EEXIST;
		/* A turn may still be with what was here before. */
		if (p == NULL && !in_use(q) && (q->freed == 0 || gw_switch_turns(sw) >= q->freed))
			p = q;
	}
	if (p == NULL)
		return -ENOSPC;
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	p->key = key;
	p->cfg.vlan = vlan;
	__atomic_store_n(&p->used, 1, __ATOMIC_RELEASE);
	if (p - sw->ports >= (ptrdiff_t)sw->last)
		__atomic_store_n(&sw->last, (uint32_t)(p - sw->ports) + 1, __ATOMIC_RELEASE);
	return (int)(p - sw->ports);
}

void
gw_switch_del(struct gw_switch *sw, int port)
{
	if (port < 0)
		return;
	sw->ports[port].freed = gw_switch_turns(sw) + 2;
	__atomic_store_n(&sw->ports[port].used, 0, __ATOMIC_RELEASE);
}

uint64_t
gw_switch_turns(const struct gw_switch *sw)
{
	return __atomic_load_n(&sw->turns, __ATOMIC_ACQUIRE);
}

const uint64_t *
gw_switch_counters(const struct gw_switch *sw)
{
	return sw->counters;
}

void
gw_switch_look(const struct gw_switch *sw, int port, struct gw_port_view *out)
{
	*out = sw->ports[port].seen;
}

/* ---- One frame ---- */

struct frame {
	const uint8_t *dst, *src;
	uint16_t vlan; /* ETH_NO_VLAN: none */
};

static bool
frame_parse(const struct rte_mbuf *m, struct frame *f)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len < RTE_ETHER_HDR_LEN)
		return false;
	f->dst = at;
	f->src = at + RTE_ETHER_ADDR_LEN;
	f->vlan = ETH_NO_VLAN;
	if (at[12] != RTE_ETHER_TYPE_VLAN >> 8 || at[13] != (RTE_ETHER_TYPE_VLAN & 0xff))
		return true;
	if (m->data_len < RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
		return false;
	f->vlan = (uint16_t)((at[14] & 0x0f) << 8 | at[15]);
	/* A tag of VLAN 0 has but a priority. */
	if (f->vlan == 0)
		f->vlan = ETH_NO_VLAN;
	return true;
}

/* What a machine's port may send; its card gets the tag. 0 or -reason. */
static int
admit(const struct sw_port *from, struct rte_mbuf **m, struct frame *f)
{
	if (from->cfg.tenant == GW_HOST)
		return 0;
	if (memcmp(f->src, from->cfg.mac, RTE_ETHER_ADDR_LEN) != 0)
		return -GW_SPOOFED;
	if (from->cfg.kind != GW_NIC)
		return f->vlan == from->cfg.vlan ? 0 : -GW_VLAN;
	if (f->vlan != ETH_NO_VLAN)
		return -GW_VLAN;
	if (from->cfg.vlan == ETH_NO_VLAN)
		return 0;
	(*m)->vlan_tci = from->cfg.vlan;
	if (rte_vlan_insert(m) != 0)
		return -GW_NO_MBUF;
	return frame_parse(*m, f) ? 0 : -GW_SHORT;
}

static bool
may_meet(const struct sw_port *a, const struct sw_port *b)
{
	return a->cfg.tenant == b->cfg.tenant || a->cfg.tenant == GW_HOST ||
	       b->cfg.tenant == GW_HOST || (a->cfg.peers && b->cfg.peers);
}

static bool
hears(const struct sw_port *p, uint16_t vlan)
{
	return p->cfg.tenant == GW_HOST || p->cfg.vlan == vlan;
}

static void
flood(struct gw_switch *sw, const struct sw_port *from, struct rte_mbuf *m, uint16_t vlan)
{
	struct sw_port *last = NULL;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];
		struct rte_mbuf *copy;

		if (!in_use(p) || p == from || !hears(p, vlan) || !may_meet(from, p))
			continue;
		if (last != NULL) {
			copy = rte_pktmbuf_copy(m, sw->pool, 0, UINT32_MAX);
			if (copy != NULL)
				sw_put(sw, last, copy);
			else
				sk_count(sw->counters, GW_NO_MBUF);
		}
		last = p;
	}
	sk_count(sw->counters, GW_FLOODED);
	if (last != NULL)
		sw_put(sw, last, m);
	else
		rte_pktmbuf_free(m);
}

/* Who has this address; the wire has those that nobody has. */
static struct sw_port *
find(struct gw_switch *sw, const struct frame *f)
{
	uint64_t key = sw_key(f->dst, f->vlan), host = sw_key(f->dst, ETH_NO_VLAN);
	struct sw_port *wire = NULL;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];

		if (!in_use(p))
			continue;
		if (p->key == key || (p->key == host && p->cfg.tenant == GW_HOST))
			return p;
		if (p->cfg.kind == GW_WIRE)
			wire = p;
	}
	return wire;
}

static void
drop(struct gw_switch *sw, struct rte_mbuf *m, enum gw_reason reason)
{
	sk_count(sw->counters, reason);
	rte_pktmbuf_free(m);
}

static void
forward(struct gw_switch *sw, const struct sw_port *from, struct rte_mbuf *m)
{
	struct sw_port *to;
	struct frame f;
	int rc;

	if (!frame_parse(m, &f)) {
		drop(sw, m, GW_SHORT);
		return;
	}
	rc = admit(from, &m, &f);
	if (rc < 0) {
		drop(sw, m, (enum gw_reason) - rc);
		return;
	}
	if (f.dst[0] & 1) {
		flood(sw, from, m, f.vlan);
		return;
	}
	to = find(sw, &f);
	if (to == NULL || to == from)
		drop(sw, m, GW_UNKNOWN);
	else if (!may_meet(from, to))
		drop(sw, m, GW_TENANT);
	else
		sw_put(sw, to, m);
}

bool
gw_switch_poll(struct gw_switch *sw, uint64_t now)
{
	struct rte_mbuf *m[GW_BURST];
	bool work = false;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];
		unsigned n = in_use(p) ? sw_receive(sw, p, now, m) : 0;

		for (unsigned k = 0; k < n; k++)
			forward(sw, p, m[k]);
		work |= n > 0;
	}
	/* Also what was gathered for a port that has just gone. */
	for (uint32_t i = 0; work && i < sw->last; i++)
		if (sw->ports[i].n > 0)
			sw_flush(sw, &sw->ports[i]);
	__atomic_store_n(&sw->turns, sw->turns + 1, __ATOMIC_RELEASE);
	return work;
}
