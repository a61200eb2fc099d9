/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives and sends bursts at the switch's ports, removes the VLAN tag for a guest's card, and
 * limits the rate of a machine. The switch does not read from a machine that has exceeded its rate,
 * so that the queues of the machine's engine fill and no frame is lost. */
#include "switch_priv.h"

#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ring.h>

#include "../../lib/base/mem.h"
#include "../../lib/wire/wire.h"

#define BURST_NS    10000000ull /* the interval over which a rate is averaged */
#define BURST_LEAST 131072      /* bytes: a few frames of any size */
#define SECOND_NS   1000000000ull

/* Adds the tokens of the time that has passed. Returns whether the port's rate permits it to send
 * now. */
static bool
may_send(struct gw_sw_port *p, uint64_t now)
{
	uint64_t rate = p->cfg.rate, gap = now - p->filled;
	int64_t most;

	if (rate == 0)
		return true;
	most = (int64_t)(SK_MAX(rate / (SECOND_NS / BURST_NS), (uint64_t)BURST_LEAST));
	gap = SK_MIN(gap, SECOND_NS);
	if (gap > 1000 && rate <= UINT64_MAX / SECOND_NS) {
		p->tokens = SK_MIN(p->tokens + (int64_t)(rate * gap / SECOND_NS), most);
		p->filled = now;
	}
	return p->tokens > 0;
}

/* Returns whether the device of a port is out of use. */
static inline bool
is_gone(const struct gw_sw_port *p)
{
	return p->cfg.gone != NULL && __atomic_load_n(p->cfg.gone, __ATOMIC_ACQUIRE);
}

unsigned
gw_sw_receive(struct gw_switch *sw, struct gw_sw_port *p, uint64_t now, struct rte_mbuf **m)
{
	uint64_t bytes = 0;
	unsigned n;

	if (!may_send(p, now)) {
		sk_count(sw->counters, GW_PACED);
		return 0;
	}
	if (p->cfg.kind == GW_TUNNEL || is_gone(p))
		return 0;
	if (p->cfg.kind == GW_ENGINE)
		n = rte_ring_sc_dequeue_burst(p->cfg.in, (void **)m, GW_BURST, NULL);
	else
		n = rte_eth_rx_burst(p->cfg.device, 0, m, GW_BURST);
	if (n == 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		bytes += m[i]->pkt_len;
	p->tokens -= (int64_t)bytes;
	p->seen.frames_in += n;
	p->seen.bytes_in += bytes;
	return n;
}

void
gw_sw_flush(struct gw_switch *sw, struct gw_sw_port *p)
{
	uint64_t bytes = 0;
	unsigned n, sent;

	n = p->n;
	p->n = 0;
	if (n == 0)
		return;
	if (is_gone(p)) {
		sk_count_n(sw->counters, GW_NO_WIRE, n);
		rte_pktmbuf_free_bulk(p->tx, n);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		bytes += p->tx[i]->pkt_len;
	if (p->cfg.kind == GW_ENGINE)
		sent = rte_ring_sp_enqueue_burst(p->cfg.out, (void **)p->tx, n, NULL);
	else
		sent = rte_eth_tx_burst(p->cfg.device, 0, p->tx, (uint16_t)n);
	p->seen.frames_out += sent;
	if (sent < n) {
		sk_count_n(sw->counters, GW_FULL, n - sent);
		for (unsigned i = sent; i < n; i++)
			bytes -= p->tx[i]->pkt_len;
		rte_pktmbuf_free_bulk(p->tx + sent, n - sent);
	}
	p->seen.bytes_out += bytes;
}

struct rte_mbuf *
gw_sw_own_copy(struct gw_switch *sw, struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, sw->pool, 0, UINT32_MAX);

	rte_pktmbuf_free(m);
	if (copy == NULL)
		sk_count(sw->counters, GW_NO_MBUF);
	return copy;
}

void
gw_sw_put(struct gw_switch *sw, struct gw_sw_port *p, struct rte_mbuf *m)
{
	bool strip = p->cfg.kind == GW_NIC && p->cfg.vlan != ETH_NO_VLAN;

	if (p->cfg.kind == GW_TUNNEL) {
		p->cfg.input(p->cfg.input_arg, m);
		return;
	}
	if (p->cfg.kind != GW_ENGINE && m->nb_segs > 1 && !p->cfg.multi_seg)
		m = gw_sw_own_copy(sw, m);
	else if (strip && (rte_mbuf_refcnt_read(m) > 1 || !RTE_MBUF_DIRECT(m)))
		m = gw_sw_own_copy(sw, m);
	if (m == NULL)
		return;
	if (strip)
		rte_vlan_strip(m);
	m->ol_flags &= ~(RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED);
	p->tx[p->n++] = m;
	if (p->n == GW_BURST)
		gw_sw_flush(sw, p);
}
