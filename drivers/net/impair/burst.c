/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data path. A send burst puts frames into the queue's lane and forwards the frames that are
 * due. A receive burst also forwards sent frames that are due, because a sender may stop sending
 * while the lane holds frames.
 */
#include <rte_cycles.h>

#include "pmd_priv.h"

/* Returns whether frames may bypass the lane: no impairment is active, and the lane holds no frames
 * that must go first. */
static bool
burst_is_plain(const struct lane *l)
{
	return !l->cfg.active && impair_lane_is_idle(l);
}

/* Returns whether the lane has room for `frames` frames, each of which may be duplicated. A lane
 * that drops when it is full always has room. */
static bool
has_room(const struct lane *l, unsigned frames)
{
	return l->cfg.timed || impair_lane_room(l) >= 2 * frames || l->count == 0;
}

static void
move_on(struct impair_queue *q)
{
	struct lane *l = &q->lane;
	uint64_t now = rte_get_tsc_cycles();
	uint16_t sent;

	do {
		if (l->nready == 0)
			l->nready = impair_lane_take(l, now, l->ready, IMPAIR_BURST);
		if (l->nready == 0)
			return;
		sent = rte_eth_tx_burst(q->dev->lower, q->id, l->ready, (uint16_t)l->nready);
		l->nready -= sent;
		memmove(l->ready, l->ready + sent, l->nready * sizeof(l->ready[0]));
	} while (l->nready == 0);
}

static uint16_t
put_all(struct impair_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	struct lane *l = &q->lane;
	uint64_t now = rte_get_tsc_cycles();
	unsigned frames = 1;
	uint16_t i;

	for (i = 0; i < n; i++) {
		if (q->dev->args.nic)
			frames = impair_nic_tx_check(pkts[i], q->dev->mtu);
		if (!has_room(l, frames))
			break;
		if (frames == 0) {
			sk_count(l->counters, IMPAIR_OFFLOAD_ERROR);
			rte_pktmbuf_free(pkts[i]);
		} else if (q->dev->args.nic) {
			impair_nic_tx(l, pkts[i], frames, now);
		} else {
			impair_lane_put(l, pkts[i], now);
		}
	}
	return i;
}

static uint16_t
send_plain(struct impair_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint64_t bytes[IMPAIR_BURST];
	struct lane *l = &q->lane;
	uint16_t sent;

	n = RTE_MIN(n, (uint16_t)IMPAIR_BURST);
	/* Reads the lengths first, because the lower port frees the mbufs that it sends. */
	for (uint16_t i = 0; i < n; i++)
		bytes[i] = pkts[i]->pkt_len;
	sent = rte_eth_tx_burst(q->dev->lower, q->id, pkts, n);
	for (uint16_t i = 0; i < sent; i++)
		l->bytes += bytes[i];
	sk_count_n(l->counters, IMPAIR_FRAMES, sent);
	sk_count_n(l->counters, IMPAIR_PASSED, sent);
	return sent;
}

uint16_t
impair_tx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct impair_queue *q = queue;
	uint16_t done = 0, step;

	rte_spinlock_lock(&q->lane.lock);
	do {
		uint16_t left = (uint16_t)(n - done);

		if (!q->dev->args.nic && burst_is_plain(&q->lane)) {
			step = send_plain(q, pkts + done, left);
		} else {
			step = put_all(q, pkts + done, left);
			move_on(q);
		}
		done = (uint16_t)(done + step);
	} while (step != 0 && done < n);
	rte_spinlock_unlock(&q->lane.lock);
	return done;
}

/* Forwards the due frames of this receive queue's share of the send queues. If another lcore holds
 * a lane's lock, that lcore forwards the lane's frames itself. */
static void
move_sent_on(struct impair_queue *q)
{
	struct impair *im = q->dev;

	for (uint16_t i = q->id; i < im->ntx; i = (uint16_t)(i + im->nrx)) {
		struct impair_queue *tx = im->tx[i];

		if (tx == NULL || impair_lane_is_idle(&tx->lane) ||
			!rte_spinlock_trylock(&tx->lane.lock))
			continue;
		move_on(tx);
		rte_spinlock_unlock(&tx->lane.lock);
	}
}

static uint16_t
receive_plain(struct impair_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	struct lane *l = &q->lane;
	uint16_t got = rte_eth_rx_burst(q->dev->lower, q->id, pkts, n);

	for (uint16_t i = 0; i < got; i++)
		l->bytes += pkts[i]->pkt_len;
	sk_count_n(l->counters, IMPAIR_FRAMES, got);
	sk_count_n(l->counters, IMPAIR_PASSED, got);
	return got;
}

static uint16_t
burst_receive(struct impair_queue *q, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *in[IMPAIR_BURST];
	struct lane *l = &q->lane;
	uint64_t now = rte_get_tsc_cycles();
	uint16_t got;

	do {
		if (!has_room(l, IMPAIR_BURST))
			break;
		got = rte_eth_rx_burst(q->dev->lower, q->id, in, IMPAIR_BURST);
		for (uint16_t i = 0; i < got; i++)
			impair_lane_put(l, in[i], now);
	} while (got == IMPAIR_BURST && l->count < n);
	return (uint16_t)impair_lane_take(l, now, pkts, n);
}

uint16_t
impair_rx_burst(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct impair_queue *q = queue;
	struct impair *im = q->dev;
	uint16_t got;

	move_sent_on(q);
	rte_spinlock_lock(&q->lane.lock);
	got = burst_is_plain(&q->lane) ? receive_plain(q, pkts, n) : burst_receive(q, pkts, n);
	if (im->args.nic)
		for (uint16_t i = 0; i < got; i++)
			impair_nic_rx(&q->lane, pkts[i], im->rss ? im->rss_key : NULL);
	rte_spinlock_unlock(&q->lane.lock);
	return got;
}
