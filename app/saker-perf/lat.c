/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latency test, a ping-pong. The receiver detects a Write by its last byte, as programs do, and
 * a Send or a Write with Immediate Data by its receive completion. A Read or an Atomic has no
 * answer of the peer's program: its latency is the round trip, that of the others half of it.
 */
#include "perf.h"

#define LATE_EVERY   16 /* the duration is checked before one in so many messages */
#define SIGNAL_EVERY 32 /* one in so many Writes and Sends is signalled, to free the send queue */

/* The last byte of a message is not 0. */
static uint8_t
next_seq(const struct perf_end *e)
{
	return e->seq == 255 ? 1 : (uint8_t)(e->seq + 1);
}

/* Returns whether the peer has ended the run: the passive end then waits no more. */
static bool
run_ended(const struct perf_end *e)
{
	uint32_t msgs;

	return !e->active && perf_peer_end(e, 0, &msgs);
}

/* These functions that wait return 0, 1 when the peer has ended the run, or -1. */
static int
wait_byte(struct perf_end *e, uint8_t want)
{
	volatile uint8_t *last = perf_in(e) + e->o->size - 1;

	while (*last != want) {
		if (perf_turn(e))
			return -1;
		if (run_ended(e))
			return 1;
	}
	return 0;
}

static int
wait_received(struct perf_end *e, uint64_t want)
{
	while (e->received < want) {
		if (perf_turn(e) || perf_reap(e))
			return -1;
		if (run_ended(e))
			return 1;
	}
	return 0;
}

static int
lat_send(struct perf_end *e, uint32_t i, uint8_t seq)
{
	if (e->op == PERF_WRITE)
		perf_out(e)[e->o->size - 1] = seq;
	return perf_post(e, 0, 1, i % SIGNAL_EVERY == 0);
}

static int
lat_wait(struct perf_end *e, uint8_t seq, uint64_t received)
{
	return e->op == PERF_WRITE ? wait_byte(e, seq) : wait_received(e, received);
}

/* Posts a Read or an Atomic and waits for its completion. */
static int
lat_fetch(struct perf_end *e)
{
	uint64_t done = e->completed + 1;

	if (perf_post(e, 0, 1, true))
		return -1;
	while (e->completed < done)
		if (perf_turn(e) || perf_reap(e))
			return -1;
	perf_check_cell(e, 0);
	return 0;
}

/* Posts a receive, unless one of the last run is left. */
static int
lat_recv(struct perf_end *e)
{
	bool posted = e->flow[0].recv_posted > e->flow[0].received;

	return perf_op_receives(e->op) && !posted ? perf_post_recv(e, 0, 1) : 0;
}

static int
ping(struct perf_end *e, uint32_t i, uint64_t base)
{
	if (perf_op_fetches(e->op))
		return lat_fetch(e);
	e->seq = next_seq(e);
	return lat_recv(e) || lat_send(e, i, e->seq) || lat_wait(e, e->seq, base + i + 1) ? -1 : 0;
}

/* Synchronizes both ends before a run. A byte that an earlier message has left is no answer. */
static int
lat_start(struct perf_end *e)
{
	perf_in(e)[e->o->size - 1] = 0;
	e->flow[0].first = e->flow[0].sent;
	return perf_sync(e);
}

int
perf_lat_run(struct perf_end *e, uint32_t iters, struct perf_figures *f)
{
	uint64_t base, start, total;
	uint32_t i;

	if (lat_start(e))
		return -1;
	base = e->received;
	total = start = eng_clock();
	for (i = 0; i < iters && (i % LATE_EVERY != 0 || !perf_late(e->o, total)); i++) {
		uint64_t now;

		if (ping(e, i, base))
			return -1;
		now = eng_clock();
		sk_hist_add(f->lat, perf_op_fetches(e->op) ? now - start : (now - start) / 2);
		start = now;
		if (i % SIGNAL_EVERY == 0 && perf_reap(e))
			return -1;
	}
	f->ns += eng_clock() - total;
	f->msgs += i;
	f->bytes += (uint64_t)i * e->o->size;
	return perf_send_end(e, 0) || perf_sync(e) ? -1 : 0;
}

/* Answers until the active end has ended the run. */
static int
lat_answer(struct perf_end *e, uint64_t base)
{
	for (uint32_t i = 0;; i++) {
		int rc = lat_wait(e, next_seq(e), base + i + 1);

		if (rc)
			return rc < 0 ? -1 : 0;
		e->seq = next_seq(e);
		if (lat_recv(e) || lat_send(e, i, e->seq) ||
			(i % SIGNAL_EVERY == 0 && perf_reap(e)))
			return -1;
	}
}

int
perf_lat_serve(struct perf_end *e)
{
	uint64_t base = e->received;

	if (lat_recv(e) || lat_start(e))
		return -1;
	if (!perf_op_fetches(e->op) && lat_answer(e, base))
		return -1;
	return perf_sync_wait(e) || perf_check_served(e, 0) || perf_sync_answer(e) ? -1 : 0;
}
