/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of an engine stage, its turn, and its counters. */
#include "qp_ops_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../base/mem.h"
#include "../../rof/exchange.h"
#include "../common/pages.h"

#define LONG_RECORD 4096 /* bytes */
/* Every SUM_NS, the totals get the counters of up to SUM_QPS QPs, among SUM_INDICES indices. */
#define SUM_NS      1000000
#define SUM_QPS     16
#define SUM_INDICES 256

/* Returns whether a port passes the mbufs themselves to its peer, which may be on another lcore. */
static bool
has_ring_port(const struct eng_config *cfg)
{
	struct rte_eth_dev_info info;

	for (unsigned i = 0; i < cfg->nports; i++)
		if (rte_eth_dev_info_get(cfg->ports[i].port_id, &info) == 0 &&
			strcmp(info.driver_name, "net_ring") == 0)
			return true;
	return false;
}

/* Creates the pool of records and payloads. Long ones take turns if another lcore reads them. A
 * port that copies or uses DMA, and the cipher of sealed payloads, are faster with the mbuf that
 * was freed last. */
static struct rte_mempool *
store_create(const struct eng_stage *s)
{
	const struct eng_config *cfg = &s->e->cfg;
	bool sealed = cfg->falcon.enabled && (cfg->falcon.psps & ROFX_PSP_KEYED) != 0;
	bool turns = s->record_room >= LONG_RECORD && !sealed && has_ring_port(cfg);

	return (turns ? eng_turns_create : eng_pool_create)(
		"store", s->e->id, s->index, cfg->limits.tx_mbufs, s->record_room, cfg->socket_id);
}

static int
alloc_tables(struct eng_stage *s)
{
	const struct eng_config *cfg = &s->e->cfg;
	uint32_t mtu = 0;

	for (unsigned i = 0; i < cfg->nports; i++)
		mtu = SK_MAX(mtu, cfg->ports[i].mtu);
	/* A record is at most the payload of a segment, so it is shorter than a packet. */
	s->record_room = SK_MIN(mtu, (uint32_t)ENG_MAX_FRAME - RTE_PKTMBUF_HEADROOM);
	s->nqps = s->nfree = cfg->limits.qps;
	s->qps = calloc(s->nqps, sizeof(s->qps[0]));
	s->free_index = calloc(s->nqps, sizeof(s->free_index[0]));
	s->cold = calloc(cfg->limits.clients + 1, sizeof(s->cold[0]));
	s->notices = calloc(ENG_CTL_NOTICES, sizeof(s->notices[0]));
	s->store = store_create(s);
	if (s->qps == NULL || s->free_index == NULL || s->cold == NULL || s->notices == NULL ||
		s->store == NULL || eng_rounds_init(s) < 0 || eng_records_init(s) < 0 ||
		eng_share_init(&s->notice_share, &cfg->limits, ENG_CTL_NOTICES, 1) < 0 ||
		eng_share_init(&s->late_share, &cfg->limits, ROF_LATE_ALL, 1) < 0)
		return -1;
	for (uint32_t i = 0; i < s->nqps; i++)
		s->free_index[i] = s->nqps - 1 - i;
	while (s->nnotices < ENG_CTL_NOTICES) {
		s->notices_free[s->nnotices] = &s->notices[s->nnotices];
		s->nnotices++;
	}
	return 0;
}

bool
eng_stage_link(struct eng_stage *s, unsigned t)
{
	const struct eng_rings *r = &s->e->rings;

	if (s->to_transport[t] != NULL)
		return true;
	s->from_transport[t] = r->to_stage[t][s->index];
	s->to_transport[t] = r->to_transport[t][s->index];
	if (s->to_transport[t] == NULL)
		return false;
	s->linked[s->nlinked++] = (uint8_t)t;
	return true;
}

struct eng_stage *
eng_stage_create(struct eng *e, unsigned index, char *err, size_t errlen)
{
	struct eng_stage *s = calloc(1, sizeof(*s));

	if (s == NULL)
		goto no_memory;
	s->e = e;
	s->index = index;
	for (unsigned t = 0; t < e->cfg.ntransports; t++) {
		TAILQ_INIT(&s->ring_full[t]);
		eng_stage_link(s, t);
	}
	s->from_control = e->rings.control_stage[index];
	s->to_control = e->rings.stage_control[index];
	eng_stage_falcon_init(s);
	TAILQ_INIT(&s->hot);
	TAILQ_INIT(&s->event_clients);
	STAILQ_INIT(&s->wakes);
	TAILQ_INIT(&s->noticing);
	TAILQ_INIT(&s->starving);
	TAILQ_INIT(&s->touched);
	TAILQ_INIT(&s->pending);
	if (eng_stage_iwarp_init(s) == 0 && alloc_tables(s) == 0 && eng_passed_init(s) == 0 &&
		eng_numbers_init(s) == 0)
		return s;
	eng_stage_destroy(s);
no_memory:
	snprintf(err, errlen, "no memory for engine stage %u (%u send mbufs)", index,
		e->cfg.limits.tx_mbufs);
	return NULL;
}

static void
stage_drain_ring(struct rte_ring *r)
{
	struct eng_dmsg m;

	while (r != NULL && rte_ring_sc_dequeue_elem(r, &m, sizeof(m)) == 0)
		eng_dmsg_drop(&m);
}

void
eng_stage_destroy(struct eng_stage *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; s->qps != NULL && i < s->nqps; i++)
		if (s->qps[i] != NULL)
			s->qps[i]->ops->destroy(s, s->qps[i]);
	for (unsigned t = 0; t < s->e->cfg.ntransports; t++)
		stage_drain_ring(s->e->rings.to_stage[t][s->index]);
	eng_passed_fini(s);
	eng_numbers_fini(s);
	eng_pool_free(s->store);
	eng_stage_iwarp_fini(s);
	eng_records_fini(s);
	eng_rounds_fini(s);
	sk_share_fini(&s->notice_share);
	sk_share_fini(&s->late_share);
	free(s->qps);
	free(s->free_index);
	free(s->cold);
	free(s->notices);
	free(s);
}

static inline const struct eng_qp *
receiver_of(const struct eng_stage *s, const struct eng_dmsg *m)
{
	return m->id_type >> 4 < s->nqps ? s->qps[m->id_type >> 4] : NULL;
}

/* Prefetches what message `i` of `n` and the messages behind it need. */
static inline void
stage_ahead(const struct eng_stage *s, const struct eng_dmsg *m, unsigned i, unsigned n)
{
	const struct eng_qp *qp;

	if (i + ENG_AHEAD_QP < n)
		sk_prefetch(receiver_of(s, &m[i + ENG_AHEAD_QP]), 2);
	if (i + ENG_AHEAD_PART < n) {
		qp = receiver_of(s, &m[i + ENG_AHEAD_PART]);
		if (qp != NULL)
			eng_qp_part_ahead(qp);
	}
}

static bool
stage_take_messages(struct eng_stage *s, struct rte_ring *r)
{
	struct eng_dmsg m[ENG_BURST];
	const struct eng_bounds *bounds = &s->e->bounds;
	uint64_t until = s->arrived + bounds->arrived;
	unsigned n, i, all = 0;

	do {
		n = rte_ring_dequeue_burst_elem_start(r, m, sizeof(m[0]), ENG_BURST, NULL);
		for (i = 0; i < n && s->arrived < until; i++) {
			stage_ahead(s, m, i, n);
			eng_qp_message(s, &m[i]);
		}
		rte_ring_dequeue_elem_finish(r, i);
		all += i;
	} while (i == ENG_BURST && all < bounds->messages && s->arrived < until &&
		 s->faults < ENG_FAULTS_TURN);
	return all > 0;
}

/* Returns whether a QP waits for room in the ring to its transport stage. */
static bool
waits_for_ring(const struct eng_stage *s)
{
	for (unsigned i = 0; i < s->nlinked; i++)
		if (!TAILQ_EMPTY(&s->ring_full[s->linked[i]]))
			return true;
	return false;
}

/* Does the work at the end of a turn: messages, events and notices that are pending. */
static bool
settle(struct eng_stage *s)
{
	bool work = !TAILQ_EMPTY(&s->pending) || waits_for_ring(s);

	if (work)
		eng_qps_pending(s);
	if (!TAILQ_EMPTY(&s->touched))
		eng_cqs_touched(s);
	if (s->nevent_clients > 0)
		eng_cqs_pending(s);
	if (s->nstarving > 0)
		eng_records_poll(s);
	if (s->nnoticing > 0 && s->nnotices > 0)
		eng_notices_poll(s);
	return work;
}

/* ---- Totals ---- */

static void
total_add(uint64_t *total, uint64_t now, uint64_t before)
{
	__atomic_store_n(total, *total + (now - before), __ATOMIC_RELAXED);
}

void
eng_qp_sum(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_work was = qp->summed, *now = &qp->summed;

	qp->ops->info(qp, now);
	total_add(&s->totals.msgs_in, now->msgs_in, was.msgs_in);
	total_add(&s->totals.msgs_out, now->msgs_out, was.msgs_out);
	total_add(&s->totals.bytes_in, now->bytes_in, was.bytes_in);
	total_add(&s->totals.bytes_out, now->bytes_out, was.bytes_out);
}

/* Adds the counters of the next QPs to the totals. */
static void
sum_some(struct eng_stage *s)
{
	unsigned qps = 0;

	s->sum_due = s->now + SUM_NS;
	for (uint32_t n = SK_MIN(s->qps_used, (uint32_t)SUM_INDICES); n > 0 && qps < SUM_QPS; n--) {
		struct eng_qp *qp = s->qps[s->sum_next];

		s->sum_next = (s->sum_next + 1) % s->qps_used;
		if (qp == NULL)
			continue;
		eng_qp_sum(s, qp);
		qps++;
	}
}

bool
eng_stage_poll(struct eng_stage *s, uint64_t now, bool unsent)
{
	bool work = false;

	if (s->now == 0) {
		sk_wheel_init(&s->wheel, now);
		sk_wheel_init(&s->fetches, now);
	}
	s->now = s->iw.latency.now = s->rof.latency.now = now;
	s->arrived = 0;
	s->faults = 0;
	for (unsigned i = 0; i < s->nlinked; i++) {
		struct rte_ring *r = s->from_transport[s->linked[i]];

		if (!rte_ring_empty(r))
			work |= stage_take_messages(s, r);
	}
	if (s->passed != NULL && !rte_ring_empty(s->passed))
		work |= eng_passed_poll(s);
	if (s->fetches.armed > 0)
		eng_pages_due(s);
	if (eng_pages_any(s->e->pages, s->index))
		work |= eng_pages_poll(s);
	work |= eng_doorbells_poll(s);
	if (!rte_ring_empty(s->from_control))
		work |= eng_stage_ctl(s);
	if (s->wheel.armed > 0)
		eng_rates_poll(s);
	if (!TAILQ_EMPTY(&s->rounds))
		work |= eng_qps_run(s, unsent);
	work |= settle(s);
	if (now >= s->sum_due)
		sum_some(s);
	return work;
}

uint64_t
eng_stage_deadline(const struct eng_stage *s)
{
	if ((!TAILQ_EMPTY(&s->rounds) && !s->all.over_rate) || !TAILQ_EMPTY(&s->pending) ||
		!TAILQ_EMPTY(&s->touched) || s->nnoticing > 0 || waits_for_ring(s) ||
		eng_records_unchecked(s))
		return 0;
	return SK_MIN(sk_wheel_next(&s->wheel), sk_wheel_next(&s->fetches));
}

const uint64_t *
eng_stage_counters(const struct eng_stage *s, const struct sk_reason_list *list)
{
	if (list == &mpa_reasons)
		return s->iw.mpa_counters;
	if (list == &iw_reasons)
		return s->iw.counters;
	if (list == &rof_reasons)
		return s->rof.counters;
	return list == &eng_reasons ? s->counters : NULL;
}

const struct rd_latency *
eng_stage_latency(const struct eng_stage *s, unsigned kind)
{
	return kind == ENG_IWARP ? &s->iw.latency : &s->rof.latency;
}

void
eng_stage_totals(const struct eng_stage *s, struct eng_totals *out)
{
	/* Another thread may not follow s->qps: a QP may be freed at any time. */
	out->msgs_in += __atomic_load_n(&s->totals.msgs_in, __ATOMIC_RELAXED);
	out->msgs_out += __atomic_load_n(&s->totals.msgs_out, __ATOMIC_RELAXED);
	out->bytes_in += __atomic_load_n(&s->totals.bytes_in, __ATOMIC_RELAXED);
	out->bytes_out += __atomic_load_n(&s->totals.bytes_out, __ATOMIC_RELAXED);
	out->tx_mbufs += s->store->size;
	out->tx_mbufs_free += rte_mempool_avail_count(s->store);
}

const struct eng_qp_ops *const eng_qp_ops[ENG_KINDS] = {
	[ENG_IWARP] = &eng_iwarp_ops,
	[ENG_FALCON] = &eng_falcon_ops,
};
