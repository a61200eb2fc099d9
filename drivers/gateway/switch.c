/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwards frames: checks that a machine's port may send a frame, and finds its destination. */
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

/* Returns whether a port carries all VLANs. */
static bool
switch_has_all_vlans(const struct gw_port_config *cfg)
{
	return cfg->tenant == GW_HOST && cfg->kind != GW_TUNNEL;
}

/* Invalidates the results that ports have cached about unclaimed addresses. */
static void
claims_changed(struct gw_switch *sw)
{
	__atomic_fetch_add(&sw->claims, 1, __ATOMIC_ACQ_REL);
}

int
gw_switch_add(struct gw_switch *sw, const struct gw_port_config *cfg)
{
	/* The key of the host's engine has no VLAN, because it receives frames of all VLANs. */
	uint16_t vlan = switch_has_all_vlans(cfg) ? ETH_NO_VLAN : cfg->vlan;
	uint64_t key = cfg->kind == GW_WIRE ? 0 : gw_sw_key(cfg->mac, vlan);
	struct gw_sw_port *p = NULL;

	for (unsigned i = 0; i < GW_SW_PORTS; i++) {
		struct gw_sw_port *q = &sw->ports[i];

		if (gw_sw_in_use(q) && q->key == key)
			return -EEXIST;
		/* A turn that is running may still use the removed port. */
		if (p == NULL && !gw_sw_in_use(q) &&
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
	p->ll = sk_link_local_of_mac(p->cfg.mac);
	__atomic_store_n(&p->used, 1, __ATOMIC_RELEASE);
	if (p - sw->ports >= (ptrdiff_t)sw->last)
		__atomic_store_n(&sw->last, (uint32_t)(p - sw->ports) + 1, __ATOMIC_RELEASE);
	claims_changed(sw);
	return (int)(p - sw->ports);
}

void
gw_switch_claim(struct gw_switch *sw, int port, const struct gw_claim *claims, unsigned nclaims)
{
	__atomic_store_n(&sw->ports[port].cfg.claims, claims, __ATOMIC_RELEASE);
	__atomic_store_n(&sw->ports[port].nclaims, nclaims, __ATOMIC_RELEASE);
	claims_changed(sw);
}

void
gw_switch_wire(struct gw_switch *sw, int port, uint16_t device, bool multi_seg)
{
	sw->ports[port].cfg.device = device;
	sw->ports[port].cfg.multi_seg = multi_seg;
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
gw_switch_port_view(const struct gw_switch *sw, int port, struct gw_port_view *out)
{
	*out = sw->ports[port].seen;
}

/* ---- One frame ---- */

static bool
frame_parse(const struct rte_mbuf *m, struct gw_sw_frame *f)
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
	/* A tag with VLAN id 0 carries a priority only. */
	if (f->vlan == 0)
		f->vlan = ETH_NO_VLAN;
	return true;
}

/* Checks that a machine's port may send a frame, and inserts the VLAN tag into a card's frame.
 * Returns 0 or -reason. */
static int
switch_admit(
	struct gw_switch *sw, struct gw_sw_port *from, struct rte_mbuf **m, struct gw_sw_frame *f)
{
	int rc;

	if (from->cfg.tenant == GW_HOST)
		return 0;
	if (memcmp(f->src, from->cfg.mac, RTE_ETHER_ADDR_LEN) != 0)
		return -GW_SPOOFED;
	if (f->vlan != (from->cfg.kind == GW_NIC ? ETH_NO_VLAN : from->cfg.vlan))
		return -GW_VLAN;
	rc = gw_sw_guard(sw, from, *m, f);
	if (rc < 0 || from->cfg.kind != GW_NIC || from->cfg.vlan == ETH_NO_VLAN)
		return rc;
	(*m)->vlan_tci = from->cfg.vlan;
	if (rte_vlan_insert(m) != 0)
		return -GW_NO_MBUF;
	return frame_parse(*m, f) ? 0 : -GW_SHORT;
}

static bool
switch_has_vlan(const struct gw_sw_port *p, uint16_t vlan)
{
	return switch_has_all_vlans(&p->cfg) || p->cfg.vlan == vlan;
}

static void
flood(struct gw_switch *sw, const struct gw_sw_port *from, struct rte_mbuf *m, uint16_t vlan)
{
	struct gw_sw_port *last = NULL;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct gw_sw_port *p = &sw->ports[i];
		struct rte_mbuf *copy;

		if (!gw_sw_in_use(p) || p == from || !switch_has_vlan(p, vlan) ||
			!gw_sw_may_meet(from, p))
			continue;
		if (last != NULL) {
			copy = rte_pktmbuf_copy(m, sw->pool, 0, UINT32_MAX);
			if (copy != NULL)
				gw_sw_put(sw, last, copy);
			else
				sk_count(sw->counters, GW_NO_MBUF);
		}
		last = p;
	}
	sk_count(sw->counters, GW_FLOODED);
	if (last != NULL)
		gw_sw_put(sw, last, m);
	else
		rte_pktmbuf_free(m);
}

/* Returns the port with the frame's destination address, or the wire if no port has it. */
static struct gw_sw_port *
switch_find(struct gw_switch *sw, const struct gw_sw_frame *f)
{
	uint64_t key = gw_sw_key(f->dst, f->vlan), host = gw_sw_key(f->dst, ETH_NO_VLAN);
	struct gw_sw_port *wire = NULL;

	for (uint32_t i = 0; i < sw->last; i++) {
		struct gw_sw_port *p = &sw->ports[i];

		if (!gw_sw_in_use(p))
			continue;
		if (p->key == key || (p->key == host && switch_has_all_vlans(&p->cfg)))
			return p;
		if (p->cfg.kind == GW_WIRE)
			wire = p;
	}
	return wire;
}

void
gw_sw_drop(struct gw_switch *sw, struct rte_mbuf *m, enum gw_reason reason)
{
	sk_count(sw->counters, reason);
	rte_pktmbuf_free(m);
}

void
gw_sw_forward(struct gw_switch *sw, const struct gw_sw_port *from, struct rte_mbuf *m)
{
	const struct gw_sw_port *before = sw->from;
	struct gw_sw_frame f;
	struct gw_sw_port *to;

	if (!frame_parse(m, &f)) {
		gw_sw_drop(sw, m, GW_SHORT);
		return;
	}
	sw->from = from;
	to = f.dst[0] & 1 ? NULL : switch_find(sw, &f);
	if (f.dst[0] & 1)
		flood(sw, from, m, f.vlan);
	else if (to == NULL || to == from)
		gw_sw_drop(sw, m, GW_UNKNOWN);
	else if (!gw_sw_may_meet(from, to))
		gw_sw_drop(sw, m, GW_TENANT);
	else
		gw_sw_put(sw, to, m);
	sw->from = before;
}

static void
switch_take(struct gw_switch *sw, struct gw_sw_port *from, struct rte_mbuf *m)
{
	struct gw_sw_frame f;
	int rc = frame_parse(m, &f) ? switch_admit(sw, from, &m, &f) : -GW_SHORT;

	if (rc < 0)
		gw_sw_drop(sw, m, (enum gw_reason) - rc);
	else
		gw_sw_forward(sw, from, m);
}

bool
gw_switch_poll(struct gw_switch *sw, uint64_t now)
{
	struct rte_mbuf *m[GW_BURST];
	bool work = false;

	sw->now = now;
	for (uint32_t i = 0; i < sw->last; i++) {
		struct gw_sw_port *p = &sw->ports[i];
		unsigned n = gw_sw_in_use(p) ? gw_sw_receive(sw, p, now, m) : 0;

		for (unsigned k = 0; k < n; k++)
			switch_take(sw, p, m[k]);
		work |= n > 0;
	}
	/* This includes frames that were queued for a port before its removal. */
	for (uint32_t i = 0; work && i < sw->last; i++)
		if (sw->ports[i].n > 0)
			gw_sw_flush(sw, &sw->ports[i]);
	__atomic_store_n(&sw->turns, sw->turns + 1, __ATOMIC_RELEASE);
	return work;
}
