/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tests of bandwidth and rate: many messages in one direction, or in both, `depth` of them
 * outstanding on each QP. The measured time ends when the last byte has been placed. iWARP has no
 * "receiver not ready". In tests of Send and Write with Immediate Data, the receiver therefore
 * sends credits, the number of receives that it has posted, and the sender does not exceed it. The
 * sender decides when a run ends, and sends how many messages the run had.
 */
#include "../../lib/base/mem.h"
#include "perf.h"

#define BURST       16
#define SERVED_TURN 64 /* flows that are served before the engine has a turn */

/* Returns how many of `iters` messages QP `q` sends. */
static uint32_t
share_of(const struct perf_end *e, uint32_t iters, uint32_t q)
{
	return iters / e->o->qps + (q < iters % e->o->qps);
}

/* Returns how many receives are posted at a time, and requests without --cq-mod. */
static uint32_t
burst_of(const struct perf_end *e)
{
	return SK_MAX(1u, SK_MIN((uint32_t)BURST, e->o->depth / 4));
}

static bool
stream_sends(const struct perf_end *e)
{
	return e->active || e->o->bidirectional;
}

static bool
stream_receives(const struct perf_end *e)
{
	return perf_op_receives(e->op) && (!e->active || e->o->bidirectional);
}

/* Posts bursts, each with a signalled last request, until the QP has sent its share or has reached
 * the depth. Sends the end of the run when all of it is complete. */
static int
feed(struct perf_end *e, uint32_t q)
{
	uint32_t burst = e->o->cq_mod ? e->o->cq_mod : burst_of(e);
	struct perf_flow *f = &e->flow[q];

	while (f->sent < f->until) {
		uint32_t n = (uint32_t)SK_MIN((uint64_t)burst, f->until - f->sent);

		if ((f->signals - f->done + 1) * burst > e->o->depth)
			return 0;
		if (perf_op_receives(e->op) && perf_peer_word(e, q, PERF_CREDIT) < f->taken + n) {
			perf_ready(e, f);
			return 0;
		}
		if (perf_post(e, q, n, true))
			return -1;
	}
	return f->done == f->signals && !f->ended ? perf_send_end(e, q) : 0;
}

/* Keeps up to `depth` receives posted, and sends a credit after each burst. */
static int
refill(struct perf_end *e, uint32_t q)
{
	struct perf_flow *f = &e->flow[q];
	uint64_t n = e->o->depth - (f->recv_posted - f->received);

	if (n < burst_of(e))
		return 0;
	return perf_post_recv(e, q, (uint32_t)n) ||
	       perf_send_word(e, q, PERF_CREDIT, f->recv_posted);
}

/* Returns whether the run goes on at this QP. */
static bool
stream_open(const struct perf_end *e, uint32_t q)
{
	const struct perf_flow *f = &e->flow[q];
	uint32_t msgs;

	if (stream_sends(e) && !f->ended)
		return true;
	return stream_receives(e) &&
	       (!perf_peer_end(e, q, &msgs) || f->received - f->first_in < msgs);
}

/* Ends the run early: no more requests are posted. */
static void
stream_stop(struct perf_end *e)
{
	for (uint32_t q = 0; q < e->o->qps; q++) {
		e->flow[q].until = e->flow[q].sent;
		perf_ready(e, &e->flow[q]);
	}
}

static void
stream_start(struct perf_end *e, uint32_t iters)
{
	for (uint32_t q = 0; q < e->o->qps; q++) {
		struct perf_flow *f = &e->flow[q];

		f->first = f->sent;
		f->first_in = f->received;
		f->until = f->sent + share_of(e, iters, q);
		f->ended = false;
		perf_ready(e, f);
	}
}

/* Serves some of the flows that are ready. */
static int
serve_ready(struct perf_end *e)
{
	struct perf_flow *last = TAILQ_LAST(&e->ready, perf_flows), *f = NULL;

	for (unsigned n = 0; n < SERVED_TURN && f != last; n++) {
		uint32_t q;

		f = TAILQ_FIRST(&e->ready);
		TAILQ_REMOVE(&e->ready, f, ready);
		f->is_ready = false;
		q = (uint32_t)(f - e->flow);
		if ((stream_sends(e) && feed(e, q)) || (stream_receives(e) && refill(e, q)))
			return -1;
	}
	return 0;
}

static bool
any_open(const struct perf_end *e)
{
	for (uint32_t q = 0; q < e->o->qps; q++)
		if (stream_open(e, q))
			return true;
	return false;
}

static int
stream_turns(struct perf_end *e)
{
	uint64_t start = eng_clock();
	bool stopped = false;

	while (!TAILQ_EMPTY(&e->ready) || any_open(e)) {
		if (!stopped && perf_late(e->o, start)) {
			stopped = true;
			stream_stop(e);
		}
		if (serve_ready(e))
			return -1;
		e->for_word = !TAILQ_EMPTY(&e->ready);
		if (perf_turn(e) || perf_reap(e))
			return -1;
	}
	e->for_word = false;
	return 0;
}

/* Adds the messages of both directions to the figures of the active end. */
static int
stream_account(struct perf_end *e, uint64_t ns, struct perf_figures *f)
{
	uint64_t msgs = 0, bytes;
	uint32_t theirs;

	for (uint32_t q = 0; q < e->o->qps; q++) {
		msgs += e->flow[q].sent - e->flow[q].first;
		if (!e->o->bidirectional)
			continue;
		if (perf_wait_end(e, q, &theirs))
			return -1;
		msgs += theirs;
	}
	bytes = msgs * e->o->size;
	f->ns += ns;
	f->msgs += msgs;
	f->bytes += bytes;
	f->peak = SK_MAX(f->peak, 8.0 * (double)bytes / (double)ns);
	return 0;
}

static int
stream_serve(struct perf_end *e)
{
	if (perf_sync_wait(e))
		return -1;
	for (uint32_t q = 0; q < e->o->qps; q++)
		if (perf_check_served(e, q))
			return -1;
	return perf_sync_answer(e);
}

int
perf_stream(struct perf_end *e, uint32_t iters, struct perf_figures *f)
{
	uint64_t start;

	stream_start(e, iters);
	if (perf_sync(e))
		return -1;
	start = eng_clock();
	if (((stream_sends(e) || stream_receives(e)) && stream_turns(e)))
		return -1;
	if (!e->active)
		return stream_serve(e);
	if (perf_sync(e))
		return -1;
	for (uint32_t q = 0; q < e->o->qps; q++)
		perf_check_cell(e, q);
	return stream_account(e, eng_clock() - start, f);
}
