/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The latency test, a ping-pong. The receiver detects a Write by its last byte, as programs do, and
 * a Send or a Write with Immediate Data by its receive completion. A Read or an Atomic has no
 * answer of the peer's program: its latency is the round trip, that of the others half of it.
 */
#include "perf.h"

#define SIGNAL_EVERY 32 /* one in so many Writes and Sends is signalled, to free the send queue */

static uint8_t
next_seq(struct perf_end *e)
{
	e->seq = e->seq == 255 ? 1 : (uint8_t)(e->seq + 1);
	return e->seq;
}

static int
wait_byte(struct perf_end *e, uint8_t want)
{
	volatile uint8_t *last = perf_in(e) + e->o->size - 1;

	while (*last != want)
		if (perf_turn(e))
			return -1;
	return 0;
}

static int
wait_received(struct perf_end *e, uint64_t want)
{
	while (e->received < want)
		if (perf_turn(e) || perf_reap(e))
			return -1;
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

static int
ping(struct perf_end *e, uint32_t i, uint64_t base)
{
	uint8_t seq;

	if (perf_op_fetches(e->op))
		return lat_fetch(e);
	seq = next_seq(e);
	if (perf_op_receives(e->op) && perf_post_recv(e, 0, 1))
		return -1;
	return lat_send(e, i, seq) || lat_wait(e, seq, base + i + 1) ? -1 : 0;
}

int
perf_lat_run(struct perf_end *e, uint32_t iters, struct perf_figures *f)
{
	uint64_t base, start, total;

	if (perf_sync(e))
		return -1;
	base = e->received;
	total = start = eng_clock();
	for (uint32_t i = 0; i < iters; i++) {
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
	f->msgs += iters;
	f->bytes += (uint64_t)iters * e->o->size;
	return perf_sync(e);
}

int
perf_lat_serve(struct perf_end *e, uint32_t iters)
{
	uint64_t base = e->received;

	if (perf_op_receives(e->op) && perf_post_recv(e, 0, 1))
		return -1;
	if (perf_sync(e))
		return -1;
	for (uint32_t i = 0; !perf_op_fetches(e->op) && i < iters; i++) {
		uint8_t seq = next_seq(e);

		if (lat_wait(e, seq, base + i + 1))
			return -1;
		if (perf_op_receives(e->op) && i + 1 < iters && perf_post_recv(e, 0, 1))
			return -1;
		if (lat_send(e, i, seq) || (i % SIGNAL_EVERY == 0 && perf_reap(e)))
			return -1;
	}
	if (perf_sync_wait(e))
		return -1;
	perf_check_served(e, 0, iters);
	return perf_sync_answer(e);
}
