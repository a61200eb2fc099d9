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

	if (sw != NULL) {
		sw->pool = pool;
		sw->claims = 1;
	}
	return sw;
}

void
gw_switch_destroy(struct gw_switch *sw)
{
	free(sw);
}

/* Whom all VLANs lead to. */
static bool
everywhere(const struct gw_port_config *cfg)
{
	return cfg->tenant == GW_HOST && cfg->kind != GW_TUNNEL;
}

/* What was found out about addresses before is to be found out anew. */
static void
claims_changed(struct gw_switch *sw)
{
	__atomic_fetch_add(&sw->claims, 1, __ATOMIC_ACQ_REL);
}

int
gw_switch_add(struct gw_switch *sw, const struct gw_port_config *cfg)
{
	/* The host's engine is found whatever the VLAN: its key has none. */
	uint16_t vlan = everywhere(cfg) ? ETH_NO_VLAN : cfg->vlan;
	uint64_t key = cfg->kind == GW_WIRE ? 0 : sw_key(cfg->mac, vlan);
	struct sw_port *p = NULL;

	for (unsigned i = 0; i < GW_SW_PORTS; i++) {
		struct sw_port *q = &sw->ports[i];

		if (sw_in_use(q) && q->key == key)
			return -EEXIST;
		/* A turn may still be with what was here before. */
		if (p == NULL && !sw_in_use(q) &&
			(q->freed == 0 || gw_switch_turns(sw) >= q->freed))
			p = q;
	}
	if (p == NULL)
		return -ENOSPC;
	memset(p, 0, sizeof(*p));
	p->cfg = *cfg;
	p->key = key;
	p->cfg.vlan = vlan;
	p->nclaims = cfg->nclaims;
	sw_link_local(p);
	__atomic_store_n(&p->used, 1, __ATOMIC_RELEASE);
	if (p - sw->ports >= (ptrdiff_t)sw->last)
		__atomic_store_n(&sw->last, (uint32_t)(p - sw->ports) + 1, __ATOMIC_RELEASE);
	claims_changed(sw);
	return (int)(p - sw->ports);
}

void
gw_switch_claim(struct gw_switch *sw, int port, const struct gw_claim *claims, unsigned nclaims)
{
	sw->ports[port].cfg.claims = claims;
	__atomic_store_n(&sw->ports[port].nclaims, nclaims, __ATOMIC_RELEASE);
	claims_changed(sw);
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

static bool
frame_parse(const struct rte_mbuf *m, struct sw_frame *f)
{
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->data_len < RTE_ETHER_HDR_LEN)
		return false;
	f->dst = at;
	f->src = at + RTE_ETHER_ADDR_LEN;
	f->vlan = ETH_NO_VLAN;
	f->l3 = RTE_ETHER_HDR_LEN;
	f->type = (uint16_t)(at[12] << 8 | at[13]);
	if (f->type != RTE_ETHER_TYPE_VLAN)
		return true;
	if (m->data_len < RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
		return false;
	f->vlan = (uint16_t)((at[14] & 0x0f) << 8 | at[15]);
	f->type = (uint16_t)(at[16] << 8 | at[17]);
	f->l3 += RTE_VLAN_HLEN;
	/* A tag of VLAN 0 has but a priority. */
	if (f->vlan == 0)
		f->vlan = ETH_NO_VLAN;
	return true;
}

/* What a machine's port may send; its card gets the tag. 0 or -reason. */
static int
switch_admit(struct gw_switch *sw, struct sw_port *from, struct rte_mbuf **m, struct sw_frame *f)
{
	int rc;

	if (from->cfg.tenant == GW_HOST)
		return 0;
	if (memcmp(f->src, from->cfg.mac, RTE_ETHER_ADDR_LEN) != 0)
		return -GW_SPOOFED;
	if (f->vlan != (from->cfg.kind == GW_NIC ? ETH_NO_VLAN : from->cfg.vlan))
		return -GW_VLAN;
	rc = sw_guard(sw, from, *m, f);
	if (rc < 0 || from->cfg.kind != GW_NIC || from->cfg.vlan == ETH_NO_VLAN)
		return rc;
	(*m)->vlan_tci = from->cfg.vlan;
	if (rte_vlan_insert(m) != 0)
		return -GW_NO_MBUF;
	return frame_parse(*m, f) ? 0 : -GW_SHORT;
}

static bool
hears(const struct sw_port *p, uint16_t vlan)
{
	return everywhere(&p->cfg) || p->cfg.vlan == vlan;
}

static void
flood(struct gw_switch *sw, const struct sw_port *from, struct rte_mbuf *m, uint16_t vlan)
{
	struct sw_port *last = NULL;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];
		struct rte_mbuf *copy;

		if (!sw_in_use(p) || p == from || !hears(p, vlan) || !sw_may_meet(from, p))
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
switch_find(struct gw_switch *sw, const struct sw_frame *f)
{
	uint64_t key = sw_key(f->dst, f->vlan), host = sw_key(f->dst, ETH_NO_VLAN);
	struct sw_port *wire = NULL;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];

		if (!sw_in_use(p))
			continue;
		if (p->key == key || (p->key == host && everywhere(&p->cfg)))
			return p;
		if (p->cfg.kind == GW_WIRE)
			wire = p;
	}
	return wire;
}

void
sw_drop(struct gw_switch *sw, struct rte_mbuf *m, enum gw_reason reason)
{
	sk_count(sw->counters, reason);
	rte_pktmbuf_free(m);
}

void
sw_forward(struct gw_switch *sw, const struct sw_port *from, struct rte_mbuf *m)
{
	const struct sw_port *before = sw->from;
	struct sw_frame f;
	struct sw_port *to;

	if (!frame_parse(m, &f)) {
		sw_drop(sw, m, GW_SHORT);
		return;
	}
	sw->from = from;
	to = f.dst[0] & 1 ? NULL : switch_find(sw, &f);
	if (f.dst[0] & 1)
		flood(sw, from, m, f.vlan);
	else if (to == NULL || to == from)
		sw_drop(sw, m, GW_UNKNOWN);
	else if (!sw_may_meet(from, to))
		sw_drop(sw, m, GW_TENANT);
	else
		sw_put(sw, to, m);
	sw->from = before;
}

static void
switch_take(struct gw_switch *sw, struct sw_port *from, struct rte_mbuf *m)
{
	struct sw_frame f;
	int rc = frame_parse(m, &f) ? switch_admit(sw, from, &m, &f) : -GW_SHORT;

	if (rc < 0)
		sw_drop(sw, m, (enum gw_reason) - rc);
	else
		sw_forward(sw, from, m);
}

bool
gw_switch_poll(struct gw_switch *sw, uint64_t now)
{
	struct rte_mbuf *m[GW_BURST];
	bool work = false;

	sw->now = now;
	for (uint32_t i = 0; i < sw->last; i++) {
		struct sw_port *p = &sw->ports[i];
		unsigned n = sw_in_use(p) ? sw_receive(sw, p, now, m) : 0;

		for (unsigned k = 0; k < n; k++)
			switch_take(sw, p, m[k]);
		work |= n > 0;
	}
	/* Also what was gathered for a port that has just gone. */
	for (uint32_t i = 0; work && i < sw->last; i++)
		if (sw->ports[i].n > 0)
			sw_flush(sw, &sw->ports[i]);
	__atomic_store_n(&sw->turns, sw->turns + 1, __ATOMIC_RELEASE);
	return work;
}
