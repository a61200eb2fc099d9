/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits on what the unfinished FPDUs of a stage hold. */
#include "mpa_util.h"

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "rdmap_pair.h"

#define SLICES 64
#define USERS  4
#define MANY   40
#define ULPDU  65000
#define PIECE  290

static uint64_t counters[mpa_reason_count];
static struct mpa_store st;
static struct mpa_rx rx[MANY];
static uint8_t stream[ULPDU + 64], ulpdu[ULPDU], got[ULPDU];
static uint32_t stream_len;

static void
store_start(uint32_t bytes, unsigned percent_min, unsigned percent_most)
{
	struct model m = {.crc = true, .out = stream};

	for (uint32_t i = 0; i < ULPDU; i++)
		ulpdu[i] = (uint8_t)(i * 7 + (i >> 8));
	stream_len = model_fpdu(&m, ulpdu, ULPDU);
	memset(counters, 0, sizeof(counters));
	cr_assert_eq(mpa_store_init(
			     &st, SLICES, bytes, USERS, USERS, percent_min, percent_most, counters),
		0);
}

static void
rx_start(unsigned i, uint16_t user)
{
	mpa_rx_init(&rx[i], true, false, slices_free, NULL);
	mpa_rx_limit(&rx[i], &st, user);
}

/* Delivers the bytes [from, to) of the FPDU to a receiver, in pieces. Returns false when the store
 * has no room for them. */
static bool
rx_feed(unsigned i, uint32_t from, uint32_t to)
{
	struct mpa_fpdu f;

	for (uint32_t n; from < to; from += n) {
		n = SK_MIN(to - from, (uint32_t)PIECE);
		mpa_rx_add(&rx[i], slice_new(stream + from, n));
		if (mpa_rx_next(&rx[i], &f) != 0)
			continue;
		if (!mpa_rx_keep(&rx[i], false))
			return false;
	}
	return true;
}

static void
rx_finish(unsigned i)
{
	struct mpa_fpdu f;

	cr_assert_eq(mpa_rx_next(&rx[i], &f), 1, "receiver %u", i);
	mpa_fpdu_copy(&f, 0, got, ULPDU);
	cr_assert_arr_eq(got, ulpdu, ULPDU);
	mpa_rx_done(&rx[i], &f);
	cr_assert(mpa_rx_keep(&rx[i], true));
	cr_assert_not(mpa_rx_holds(&rx[i]));
}

static void
store_end(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		mpa_rx_clear(&rx[i]);
	cr_assert_eq(slices_live, 0);
	cr_assert_eq(st.slices.held, 0);
	cr_assert_eq(st.bytes.held, 0);
	for (unsigned u = 0; u < USERS; u++)
		cr_assert(TAILQ_EMPTY(&st.holders[u]));
	mpa_store_fini(&st);
}

Test(mpa_store, unfinished_fpdus_pin_only_the_share_of_slices)
{
	uint32_t half;

	store_start(MANY * MPA_UNFINISHED_MAX, 0, 100);
	half = stream_len / 2;
	for (unsigned i = 0; i < MANY; i++) {
		rx_start(i, 1);
		cr_assert(rx_feed(i, 0, half));
		cr_assert_leq(slices_live, SLICES);
	}
	cr_assert_gt(counters[MPA_GATHERED], 0);
	for (unsigned i = 0; i < MANY; i++) {
		rx_feed(i, half, stream_len);
		cr_assert_leq(slices_live, SLICES + 1);
		rx_finish(i);
	}
	store_end(MANY);
}

/* A receiver takes no more memory for an FPDU than MPA_UNFINISHED_MAX, however the bytes arrive. */
Test(mpa_store, the_memory_of_an_unfinished_fpdu_is_bounded)
{
	store_start(2 * MPA_UNFINISHED_MAX, 0, 100);
	rx_start(0, 1);
	rx_start(1, 2);
	cr_assert(rx_feed(1, 0, SLICES * PIECE));
	cr_assert_eq(st.slices.held, SLICES);
	for (uint32_t at = 0; at < stream_len - 1; at++) {
		mpa_rx_add(&rx[0], slice_new(stream + at, 1));
		cr_assert(mpa_rx_keep(&rx[0], false));
		cr_assert_leq(rx[0].allocated, MPA_UNFINISHED_MAX);
		cr_assert_leq(slices_live, SLICES);
	}
	mpa_rx_add(&rx[0], slice_new(stream + stream_len - 1, 1));
	rx_finish(0);
	store_end(2);
}

/* 0 percent stands for no limit. */
Test(mpa_store, one_user_may_hold_all_where_no_limit_is_set)
{
	store_start(8 * MPA_UNFINISHED_MAX, 0, 0);
	for (unsigned i = 0; i < 4; i++) {
		rx_start(i, 1);
		cr_assert(rx_feed(i, 0, stream_len - 1), "FPDU %u", i);
	}
	store_end(4);
}

Test(mpa_store, a_user_always_has_room_for_an_unfinished_fpdu)
{
	unsigned n = 0;

	store_start(16 * MPA_UNFINISHED_MAX, 1, 100);
	do
		rx_start(n, 1);
	while (rx_feed(n++, 0, stream_len - 1) && n < MANY - 2);
	cr_assert_lt(n, MANY - 2, "user 1 never found the store full");
	for (unsigned user = 2; user < USERS; user++) {
		rx_start(n, (uint16_t)user);
		cr_assert(rx_feed(n, 0, stream_len - 1), "user %u", user);
		mpa_rx_add(&rx[n], slice_new(stream + stream_len - 1, 1));
		rx_finish(n++);
	}
	store_end(n);
}

/* The stream that ends belongs to the user that holds the most, and is one without progress. */
Test(mpa_store, the_victim_is_a_holder_without_progress)
{
	unsigned n = 0;

	store_start(8 * MPA_UNFINISHED_MAX, 0, 100);
	do
		rx_start(n, 1);
	while (rx_feed(n++, 0, stream_len - 1) && n < MANY - 2);
	cr_assert_lt(n, MANY - 2);
	cr_assert_geq(n, 4);
	/* Receiver 0 makes progress, so receiver 1 is the oldest of equal ones. */
	cr_assert(mpa_rx_keep(&rx[0], true));
	rx_start(n, 2);
	cr_assert_not(rx_feed(n, 0, stream_len - 1));
	cr_assert_eq(mpa_store_victim(&rx[n]), &rx[1]);
	mpa_rx_clear(&rx[1]);
	cr_assert(mpa_rx_keep(&rx[n], false));
	store_end(n + 1);
}

/* ---- The QPs of a stage ---- */

static struct iw_qp *qp[MANY], *woken[MANY];
static struct rd_qp rd[MANY];
static unsigned nwoken;

static void
wake(void *ctx, struct iw_qp *q)
{
	woken[nwoken++] = q;
}

Test(mpa_store, the_stream_that_holds_the_most_is_ended_before_others_starve)
{
	struct iw_params params = end_params();
	struct end e;
	unsigned ended = 0;

	end_init(&e, NULL, true);
	store_start(8 * MPA_UNFINISHED_MAX, 0, 100);
	mpa_store_fini(&st);
	cr_assert_eq(mpa_store_init(&e.st.store, SLICES, 8 * MPA_UNFINISHED_MAX, USERS, 0, 0, 100,
			     e.st.mpa_counters),
		0);
	e.st.ops.wake = wake;
	params.user = 1;
	for (unsigned i = 0; i < MANY; i++) {
		struct iw_qp *own = e.q;

		rd[i] = e.rd;
		qp[i] = iw_qp_create(&e.st, &rd[i]);
		iw_qp_start(qp[i], 0, &params);
		e.q = qp[i];
		for (uint32_t at = 0; at + PIECE < stream_len; at += PIECE) {
			end_feed(&e, stream + at, PIECE, 0, NULL);
			cr_assert_leq(e.live_slices, SLICES + 1);
		}
		e.q = own;
		cr_assert_eq(rd[i].state, RD_QP_RTS, "the newest stream lives");
	}
	for (unsigned i = 0; i < MANY; i++)
		ended += rd[i].state == RD_QP_ERR;
	cr_assert_geq(ended, MANY - 13);
	cr_assert_leq(ended, MANY - 7);
	cr_assert_eq(nwoken, ended);
	cr_assert_eq(woken[0], qp[0]);
	cr_assert_eq(e.st.mpa_counters[MPA_UNFINISHED], ended);
	cr_assert_eq(e.st.counters[IW_RDMAP_CATASTROPHIC_STREAM], ended);
	/* TCP's windows of the ended streams open again. */
	cr_assert_eq(e.consumed, ended * (uint64_t)(stream_len / PIECE * PIECE));
	for (unsigned i = 0; i < MANY; i++)
		iw_qp_destroy(qp[i]);
	cr_assert_eq(e.st.store.slices.held, 0);
	cr_assert_eq(e.st.store.bytes.held, 0);
	mpa_store_fini(&e.st.store);
	cr_assert(end_fini(&e));
}
