/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames from one transport stage to another. Each stage has a ring in which the others put the
 * received frames whose home it is; a lane for each port and each stage without a send queue of it
 * carries frames to send. handoff_priv.h defines the rules.
 */
#include "handoff_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "transport_priv.h"

#define TAKEN_TURN (4 * ENG_BURST) /* frames of other stages after which a turn takes no more */

/* The element of such a ring. */
struct frame {
	struct rte_mbuf *m;
	uint16_t port;
	bool copy; /* a copy of a frame that the sending stage has handled and answered */
	uint8_t unused[5];
};
_Static_assert(sizeof(struct frame) == 16, "ring element");

struct eng_handoff {
	struct rte_ring *in; /* of struct frame, from all other stages */
};

/* Creates the ring of a stage. Many stages may put frames into it, and the scheduler may stop one
 * of them while it does. */
static int
make_inbox(struct eng *e, unsigned t)
{
	struct eng_handoff *h = calloc(1, sizeof(*h));

	e->transports[t]->handoff = h;
	if (h == NULL)
		return -ENOMEM;
	h->in = eng_ring_create_many(e, "ho", t, sizeof(struct frame), ENG_HANDOFF_RING);
	return h->in == NULL ? -ENOMEM : 0;
}

static int
make_lanes(struct eng *e, unsigned port)
{
	struct eng_port *p = &e->ports[port];

	for (unsigned s = p->tx_queues; s < e->cfg.ntransports; s++) {
		p->lane[s] = eng_ring_create(e, "ln", port, s, sizeof(void *), ENG_LANE_RING);
		if (p->lane[s] == NULL)
			return -ENOMEM;
	}
	return 0;
}

int
eng_handoff_create(struct eng *e)
{
	int rc = 0;

	if (e->cfg.ntransports == 1)
		return 0;
	for (unsigned t = 0; t < e->cfg.ntransports && rc == 0; t++)
		rc = make_inbox(e, t);
	for (unsigned i = 0; i < e->cfg.nports && rc == 0; i++)
		rc = make_lanes(e, i);
	return rc;
}

static void
free_lane(struct rte_ring *r)
{
	void *m;

	while (r != NULL && rte_ring_sc_dequeue(r, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}

static void
free_inbox(struct rte_ring *r)
{
	struct frame f;

	while (r != NULL && rte_ring_sc_dequeue_elem(r, &f, sizeof(f)) == 0)
		rte_pktmbuf_free(f.m);
	rte_ring_free(r);
}

void
eng_handoff_destroy(struct eng *e)
{
	for (unsigned i = 0; i < e->cfg.nports; i++)
		for (unsigned s = 0; s < e->cfg.ntransports; s++)
			free_lane(e->ports[i].lane[s]);
	for (unsigned t = 0; t < e->cfg.ntransports && e->transports[t] != NULL; t++) {
		struct eng_handoff *h = e->transports[t]->handoff;

		if (h != NULL)
			free_inbox(h->in);
		free(h);
		e->transports[t]->handoff = NULL;
	}
}

static void
give(struct eng_transport *t, unsigned to, struct frame *f)
{
	if (rte_ring_enqueue_elem(t->e->transports[to]->handoff->in, f, sizeof(*f)) == 0) {
		sk_count(t->counters, f->copy ? ENG_HANDOFF_COPY : ENG_HANDOFF);
		return;
	}
	sk_count(t->counters, ENG_HANDOFF_FULL);
	rte_pktmbuf_free(f->m);
}

bool
eng_handoff_tcp(
	struct eng_transport *t, uint16_t port, const struct tcp_tuple *key, struct rte_mbuf *m)
{
	unsigned home = eng_home(t->e, key);

	if (home == t->index)
		return false;
	give(t, home, &(struct frame){.m = m, .port = port});
	return true;
}

bool
eng_handoff_frame(struct eng_transport *t, unsigned to, uint16_t port, struct rte_mbuf *m)
{
	if (t->handoff == NULL)
		return false;
	give(t, to, &(struct frame){.m = m, .port = port});
	return true;
}

/* Returns whether a frame concerns the stages that did not receive it. An echo request does not:
 * the stage that received it has answered it. */
static bool
concerns_all(const struct wire_pkt *pkt, int rc)
{
	if (pkt->eth.type == ETH_ARP)
		return rc == 0 || rc == -NET_UNASKED || rc == -NET_NOT_FOR_US;
	if (rc != 0 && rc != -NET_UNASKED)
		return false;
	return pkt->icmp.kind == ICMP_NEIGHBOR_SOLICIT || pkt->icmp.kind == ICMP_NEIGHBOR_ADVERT ||
	       pkt->icmp.kind == ICMP_TOO_BIG || pkt->icmp.kind == ICMP_UNREACHABLE;
}

void
eng_handoff_copy(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, int rc,
	struct rte_mbuf *m)
{
	struct frame f = {.port = port, .copy = true};

	if (!concerns_all(pkt, rc))
		return;
	for (unsigned s = 0; s < t->e->cfg.ntransports; s++) {
		if (s == t->index)
			continue;
		/* Copies use at most half of the ring, so a flood of solicitations cannot displace
		 * the segments of connections. */
		if (rte_ring_count(t->e->transports[s]->handoff->in) >= ENG_HANDOFF_RING / 2) {
			sk_count(t->counters, ENG_HANDOFF_FULL);
			continue;
		}
		f.m = rte_pktmbuf_copy(m, t->rx_pool, 0, UINT32_MAX);
		if (f.m == NULL)
			sk_count(t->counters, ENG_RX_NO_MBUF);
		else
			give(t, s, &f);
	}
}

static void
overhear(struct eng_transport *t, const struct frame *f)
{
	const uint8_t *at = rte_pktmbuf_mtod(f->m, const uint8_t *);
	struct wire_pkt pkt;

	/* The stage that copied the frame has parsed it successfully. */
	if (wire_pkt_parse(&pkt, at, f->m->data_len, f->m->pkt_len) >= 0) {
		net_overhear(t->net, t->now, f->port, &pkt, at, f->m->data_len);
		t->net_due = 0;
	}
	rte_pktmbuf_free(f->m);
}

bool
eng_handoff_rx(struct eng_transport *t)
{
	struct rte_ring *r = t->handoff->in;
	struct frame f[ENG_BURST];
	unsigned n, all = 0;

	if (rte_ring_empty(r))
		return false;
	do {
		n = rte_ring_sc_dequeue_burst_elem(r, f, sizeof(f[0]), ENG_BURST, NULL);
		for (unsigned i = 0; i < n; i++) {
			if (f[i].copy)
				overhear(t, &f[i]);
			else
				eng_rx_frame(t, f[i].port, f[i].m);
		}
		all += n;
	} while (n == ENG_BURST && all < TAKEN_TURN);
	return all > 0;
}

uint16_t
eng_handoff_send(struct eng_transport *t, uint16_t port, struct rte_mbuf **m, uint16_t n)
{
	unsigned taken =
		rte_ring_sp_enqueue_burst(t->e->ports[port].lane[t->index], (void **)m, n, NULL);

	sk_count_n(t->counters, ENG_LANE, taken);
	return (uint16_t)taken;
}

/* Moves frames from a lane to the send queue of the port, until the queue or the lane has no more,
 * and at most as many as the lane holds. */
static bool
handoff_collect(struct eng_transport *t, uint16_t port, struct rte_ring *lane)
{
	struct eng_tx *tx = &t->tx[port];
	unsigned n, all = 0;

	do {
		if (tx->n == ENG_TX_BUFFER)
			eng_tx_flush(t);
		n = rte_ring_sc_dequeue_burst(
			lane, (void **)&tx->m[tx->n], ENG_TX_BUFFER - tx->n, NULL);
		tx->n += (uint16_t)n;
		t->tx_waiting += n;
		all += n;
	} while (n > 0 && all < ENG_LANE_RING);
	return all > 0;
}

bool
eng_handoff_collect(struct eng_transport *t)
{
	bool work = false;

	for (unsigned i = 0; i < t->e->cfg.nports; i++) {
		const struct eng_port *p = &t->e->ports[i];

		if (t->index >= p->tx_queues)
			continue;
		for (unsigned s = t->index + p->tx_queues; s < t->e->cfg.ntransports;
			s += p->tx_queues)
			if (!rte_ring_empty(p->lane[s]))
				work |= handoff_collect(t, (uint16_t)i, p->lane[s]);
	}
	return work;
}

/* ---- Messages between loops ---- */

void
eng_crossings_add(struct eng_transport *t, unsigned stage)
{
	if (eng_stage_is_far(t, stage))
		t->far[t->nfar++].stage = stage;
}

/* The rings count their messages anyway, modulo 2^32. */
void
eng_crossings_count(struct eng_transport *t)
{
	for (unsigned i = 0; i < t->nfar; i++) {
		struct eng_far *f = &t->far[i];
		uint32_t all =
			t->to_stage[f->stage]->prod.tail + t->from_stage[f->stage]->prod.tail;

		if (all == f->counted)
			continue;
		sk_count_n(t->counters, ENG_CROSS, all - f->counted);
		f->counted = all;
	}
}
