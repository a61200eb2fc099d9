/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tests of bandwidth and rate: many messages in one direction, `depth` of them outstanding on
 * each QP. The measured time ends when the last byte has been placed. iWARP has no "receiver not
 * ready". In tests of Send and Write with Immediate Data, the receiver therefore sends credits, the
 * number of receives that it has posted, and the sender does not exceed it.
 */
#include "../../lib/base/mem.h"
#include "perf.h"

#define BURST 16

/* Returns how many of `iters` messages QP `q` sends. */
static uint32_t
share_of(const struct perf_end *e, uint32_t iters, uint32_t q)
{
	return iters / e->o->qps + (q < iters % e->o->qps);
}

static uint32_t
burst_of(const struct perf_end *e)
{
	return SK_MAX(1u, SK_MIN((uint32_t)BURST, e->o->depth / 4));
}

/* Posts bursts, each with a signalled last request, until the QP has sent its share or has reached
 * the depth. */
static int
feed(struct perf_end *e, uint32_t q)
{
	uint32_t burst = burst_of(e);
	struct perf_flow *f = &e->flow[q];

	while (f->sent < f->until) {
		uint32_t n = (uint32_t)SK_MIN((uint64_t)burst, f->until - f->sent);

		if ((f->signals - f->done + 1) * burst > e->o->depth)
			return 0;
		if (perf_op_receives(e->op) && perf_peer_word(e, q, PERF_CREDIT) < f->taken + n)
			return 0;
		if (perf_post(e, q, n, true))
			return -1;
	}
	return 0;
}

/* Ends the round early: no more requests are posted. Returns how many messages are not sent. */
static uint32_t
stream_stop(struct perf_end *e)
{
	uint64_t less = 0;

	for (uint32_t q = 0; q < e->o->qps; q++) {
		less += e->flow[q].until - e->flow[q].sent;
		e->flow[q].until = e->flow[q].sent;
	}
	return (uint32_t)less;
}

int
perf_stream_run(struct perf_end *e, uint32_t iters, struct perf_figures *f)
{
	uint64_t limit = e->o->milliseconds ? e->o->milliseconds * 1000000ull : UINT64_MAX, start;
	bool busy = true;

	for (uint32_t q = 0; q < e->o->qps; q++)
		e->flow[q].until = e->flow[q].sent + share_of(e, iters, q);
	if (perf_sync(e))
		return -1;
	start = eng_clock();
	while (busy) {
		busy = false;
		if (eng_clock() - start > limit)
			iters -= stream_stop(e);
		for (uint32_t q = 0; q < e->o->qps; q++) {
			if (feed(e, q))
				return -1;
			busy = busy || e->flow[q].sent < e->flow[q].until ||
			       e->flow[q].done < e->flow[q].signals;
		}
		if (perf_turn(e) || perf_reap(e))
			return -1;
	}
	if (perf_sync(e))
		return -1;
	for (uint32_t q = 0; q < e->o->qps; q++)
		perf_check_cell(e, q);
	f->ns += eng_clock() - start;
	f->msgs += iters;
	f->bytes += (uint64_t)iters * e->o->size;
	return 0;
}

/* Keeps up to `depth` receives posted, and sends a credit after each burst. */
static int
refill(struct perf_end *e, uint32_t q)
{
	struct perf_flow *f = &e->flow[q];
	uint64_t room = e->o->depth - (f->recv_posted - f->received);
	uint64_t n = SK_MIN(room, f->until - f->recv_posted);

	if (n == 0 || (n < burst_of(e) && f->recv_posted + n < f->until))
		return 0;
	return perf_post_recv(e, q, (uint32_t)n) ||
	       perf_send_word(e, q, PERF_CREDIT, f->recv_posted);
}

int
perf_stream_serve(struct perf_end *e, uint32_t iters)
{
	bool busy = perf_op_receives(e->op);

	for (uint32_t q = 0; q < e->o->qps; q++)
		e->flow[q].until = e->flow[q].received + share_of(e, iters, q);
	if (perf_sync(e))
		return -1;
	while (busy) {
		busy = false;
		for (uint32_t q = 0; q < e->o->qps; q++) {
			if (refill(e, q))
				return -1;
			busy = busy || e->flow[q].received < e->flow[q].until;
		}
		if (perf_turn(e) || perf_reap(e))
			return -1;
	}
	if (perf_sync_wait(e))
		return -1;
	for (uint32_t q = 0; q < e->o->qps; q++)
		perf_check_served(e, q, share_of(e, iters, q));
	return perf_sync_answer(e);
}
