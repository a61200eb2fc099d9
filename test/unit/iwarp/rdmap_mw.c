/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows between two QPs: binds and invalidations in the order of the send queue, the
 * peer's access through a window, and who may invalidate it. rdmap_mw_refuse.c tests refusals.
 */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <string.h>

#define LEN    8192
#define OWNER  (RD_ACC_LOCAL_WRITE | RD_ACC_MW_BIND)
#define READ   RD_ACC_REMOTE_READ
#define WRITE  RD_ACC_REMOTE_WRITE
#define ATOMIC RD_ACC_REMOTE_ATOMIC

static struct pair p;
/* End a grants, end b accesses. The region of a grants the peer nothing by itself. */
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb;
static struct rd_mw *one, *two;

static void
start_with(uint16_t ord)
{
	struct iw_params params = end_params();

	params.ord = ord;
	pair_init(&p, &params, 5);
	ma = end_mr(a, 0x7f0000001000, LEN, OWNER, 2, 1);
	mb = end_mr(b, 0x10000, LEN, RD_ACC_LOCAL_WRITE | READ, 1, 2);
	one = end_mw(a, RD_MW_TYPE_1);
	two = end_mw(a, RD_MW_TYPE_2);
}

static void
start(void)
{
	start_with(8);
}

static void
finish(void)
{
	cr_assert(pair_run(&p));
	cr_assert_eq(a->errors + b->errors, 0);
	cr_assert(pair_fini(&p));
}

/* Makes b write or read 100 bytes at `addr` of the window, from or to byte `off` of its own
 * region. */
static void
use(uint8_t opcode, uint32_t stag, uint64_t addr, uint64_t off)
{
	struct rd_wr *wr = end_post(b, opcode, 70);

	wr_sge(wr, mb, off, 100);
	wr->rkey = stag;
	wr->remote_addr = addr;
}

static void
same(const struct rd_mr *got_in, uint64_t off, uint8_t seed, uint64_t from)
{
	uint8_t got[100];

	mr_get(got_in, off, got, sizeof(got));
	for (unsigned i = 0; i < sizeof(got); i++)
		cr_assert_eq(got[i], pattern(seed, from + i), "byte %u", i);
}

/* Binds a window and sends its STag to the peer, which uses it immediately. */
static void
bind_and_tell(enum rd_mw_type type, uint32_t access, uint64_t at)
{
	const struct rd_mw *mw;
	struct rd_wr *wr;
	uint32_t stag;

	start();
	mw = type == RD_MW_TYPE_1 ? one : two;
	wr_sge(end_recv(b, 60), mb, 4000, 4);
	stag = end_bind(a, 1, mw, ma, 4000, 300, access)->rkey;
	wr = end_post(a, RD_SEND, 2);
	wr->flags |= RD_INLINE;
	wr->inline_len = sizeof(stag);
	memcpy(wr->inl, &stag, sizeof(stag));
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 2);
	cr_assert(a->send_wc[0].wr_id == 1 && a->send_wc[0].opcode == RD_BIND_MW);
	cr_assert(a->send_wc[0].status == RD_SUCCESS && a->send_wc[0].byte_len == 0);
	cr_assert_eq(a->send_wc[1].wr_id, 2);
	cr_assert_eq(b->nrecv, 1);
	mr_get(mb, 4000, &stag, sizeof(stag));
	cr_assert_eq(stag, mw->mr.stag);
	use(RD_WRITE, stag, at, 0);
	use(RD_READ, stag, at + 200, 1000);
	cr_assert(pair_run(&p));
	cr_assert_eq(b->nsend, 2);
	same(ma, 4000, 2, 0);
	same(ma, 3900, 1, 3900);
	same(mb, 1000, 1, 4200);
	finish();
}

Test(rdmap_mw, a_bind_takes_effect_before_the_send_behind_it)
{
	bind_and_tell(RD_MW_TYPE_1, READ | WRITE, 0x7f0000001000 + 4000);
	bind_and_tell(RD_MW_TYPE_2, READ | WRITE, 0x7f0000001000 + 4000);
	bind_and_tell(RD_MW_TYPE_2, READ | WRITE | RD_ACC_ZERO_BASED, 0);
}

Test(rdmap_mw, an_atomic_through_a_zero_based_window)
{
	uint64_t word, got;
	struct rd_wr *wr;

	start();
	end_bind(a, 1, two, ma, 64, 64, ATOMIC | RD_ACC_ZERO_BASED);
	end_recv(b, 60);
	end_post(a, RD_SEND, 2);
	cr_assert(pair_run(&p));
	mr_get(ma, 72, &word, 8);
	wr = end_post(b, RD_FETCH_ADD, 70);
	wr_sge(wr, mb, 0, 8);
	wr->rkey = two->mr.stag;
	wr->remote_addr = 8;
	wr->data = 5;
	cr_assert(pair_run(&p));
	mr_get(mb, 0, &got, 8);
	cr_assert_eq(got, word);
	mr_get(ma, 72, &got, 8);
	cr_assert_eq(got, word + 5);
	finish();
}

Test(rdmap_mw, binds_and_invalidations_keep_the_order_of_the_queue)
{
	start();
	end_bind(a, 1, two, ma, 0, 100, READ);
	end_post(a, RD_LOCAL_INV, 2)->imm = two->mr.stag + 1;
	end_bind(a, 3, two, ma, 100, 100, READ)->rkey++;
	end_bind(a, 4, one, ma, 0, 100, READ);
	end_bind(a, 5, one, ma, 0, 0, 0)->rkey++;
	end_bind(a, 6, one, ma, 200, 100, READ)->rkey += 2;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 6);
	for (unsigned i = 0; i < 6; i++)
		cr_assert(a->send_wc[i].wr_id == i + 1 && a->send_wc[i].status == RD_SUCCESS);
	cr_assert(two->mr.valid && two->mr.base == ma->base + 100);
	cr_assert(one->mr.valid && one->mr.base == ma->base + 200);
	cr_assert_eq(ma->windows, 2);
	cr_assert_eq(a->invalidations, 1);
	finish();
}

Test(rdmap_mw, the_peer_invalidates_a_type_2_window_by_send)
{
	static const uint8_t flags[] = {0, RD_SOLICITED};

	for (unsigned i = 0; i < 2; i++) {
		struct rd_wr *wr;

		start();
		end_bind(a, 1, two, ma, 0, 100, READ);
		cr_assert(pair_run(&p));
		end_recv(a, 50);
		end_recv(b, 50);
		end_post(a, RD_SEND, 2);
		wr = end_post(b, RD_SEND_INV, 71);
		wr->imm = two->mr.stag;
		wr->flags |= flags[i];
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nrecv, 1);
		cr_assert(a->recv_wc[0].flags & RD_WC_INV);
		cr_assert_eq(a->recv_wc[0].inv_stag, two->mr.stag);
		cr_assert_not(two->mr.valid);
		cr_assert_eq(ma->windows, 0);
		cr_assert_eq(a->invalidations, 1);
		end_bind(a, 3, two, ma, 0, 100, READ);
		cr_assert(pair_run(&p));
		cr_assert(two->mr.valid, "it may be bound again");
		finish();
	}
}

/* Verbs: a bind does not wait for Reads unless it is fenced. */
Test(rdmap_mw, a_fenced_bind_waits_for_the_reads_before_it)
{
	struct rd_wr *wr;

	for (unsigned fence = 0; fence < 2; fence++) {
		start();
		wr = end_post(a, RD_READ, 1);
		wr_sge(wr, ma, 0, 100);
		wr->rkey = mb->stag;
		wr->remote_addr = mb->base;
		wr = end_bind(a, 2, two, ma, 0, 100, READ);
		wr->flags |= fence ? RD_FENCE : 0;
		end_tx(a);
		cr_assert_eq(two->mr.valid, !fence);
		cr_assert(pair_run(&p));
		cr_assert(two->mr.valid);
		cr_assert(a->nsend == 2 && a->send_wc[0].wr_id == 1);
		finish();
	}
}

Test(rdmap_mw, a_local_invalidate_waits_for_the_read_that_fills_its_region)
{
	struct rd_mr *sink;
	struct rd_wr *wr;

	start();
	sink = end_mr(a, 0x9000, 3000, RD_ACC_LOCAL_WRITE, 1, 3);
	wr = end_post(a, RD_READ, 1);
	wr_sge(wr, sink, 0, 3000);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	end_post(a, RD_LOCAL_INV, 2)->imm = sink->stag;
	end_tx(a);
	cr_assert(sink->valid);
	cr_assert(pair_run(&p));
	cr_assert_not(sink->valid);
	cr_assert(a->nsend == 2 && a->send_wc[0].status == RD_SUCCESS);
	same(sink, 2900, 2, 2900);
	finish();
}

/* Both elements of a Read with Invalidate are filled before their region is invalidated, also when
 * the second one is checked again after the response for the first one. */
static void
two_elements(uint16_t ord, uint8_t flags)
{
	struct rd_mr *sink;
	struct rd_wr *wr;

	start_with(ord);
	sink = end_mr(a, 0x9000, 3000, RD_ACC_LOCAL_WRITE, 1, 3);
	wr = end_post(a, RD_READ_INV, 1);
	wr_sge(wr, sink, 0, 100);
	wr_sge(wr, sink, 200, 100);
	wr->flags |= flags;
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	cr_assert(pair_run(&p));
	cr_assert_not(sink->valid);
	cr_assert(a->nsend == 1 && a->send_wc[0].status == RD_SUCCESS);
	same(sink, 0, 2, 0);
	same(sink, 200, 2, 100);
	finish();
}

Test(rdmap_mw, a_read_with_invalidate_into_two_elements_of_a_region)
{
	two_elements(8, 0);
	two_elements(1, 0);
	two_elements(8, RD_FENCE);
}

/* A Read Request has one sink (RFC 5040 4.4). */
Test(rdmap_mw, a_read_with_invalidate_into_two_regions_is_refused)
{
	static const uint16_t ords[] = {8, 1};

	for (unsigned i = 0; i < 2; i++) {
		struct rd_mr *sink;
		struct rd_wr *wr;

		start_with(ords[i]);
		sink = end_mr(a, 0x9000, 3000, RD_ACC_LOCAL_WRITE, 1, 3);
		wr = end_post(a, RD_READ_INV, 1);
		wr_sge(wr, ma, 0, 100);
		wr_sge(wr, sink, 0, 100);
		wr->rkey = mb->stag;
		wr->remote_addr = mb->base;
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, RD_LOC_QP_OP_ERR, "ORD %u: %u", ords[i],
			a->send_wc[0].status);
		cr_assert_eq(a->rd.state, RD_QP_ERR);
		cr_assert(ma->valid && sink->valid);
		same(ma, 0, 1, 0);
		same(sink, 0, 3, 0);
		cr_assert(pair_fini(&p));
	}
}

/* The lkey of an element without bytes is not checked, so nothing may happen to its region. */
Test(rdmap_mw, a_read_with_invalidate_of_no_bytes_invalidates_nothing)
{
	struct rd_wr *wr;

	start();
	wr = end_post(a, RD_READ_INV, 1);
	wr_sge(wr, ma, 0, 0);
	cr_assert(pair_run(&p));
	cr_assert(a->nsend == 1 && a->send_wc[0].status == RD_SUCCESS);
	cr_assert(ma->valid);
	finish();
}

Test(rdmap_mw, a_read_with_invalidate_into_a_region_with_windows_fails)
{
	struct rd_wr *wr;

	start();
	end_bind(a, 1, one, ma, 0, 100, READ);
	wr = end_post(a, RD_READ_INV, 2);
	wr_sge(wr, ma, 0, 100);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 2);
	cr_assert(a->send_wc[1].wr_id == 2 && a->send_wc[1].status == RD_LOC_PROT_ERR);
	cr_assert_eq(a->rd.state, RD_QP_ERR);
	cr_assert(ma->valid && one->mr.valid);
	cr_assert(pair_fini(&p));
}

/* ---- Several stages ---- */

static uint64_t quiet; /* tokens up to this one are quiet */
static unsigned asked;

static uint64_t
quiesce(void *ctx)
{
	return quiet + ++asked;
}

static bool
quiesced(void *ctx, uint64_t token)
{
	return token <= quiet;
}

/* A completion means that no stage uses the previous bind any more. */
Test(rdmap_mw, what_takes_something_away_completes_when_the_other_stages_are_quiet)
{
	struct rd_mr *mr;

	start();
	a->st.ops.rd.quiesce = quiesce;
	a->st.ops.rd.quiesced = quiesced;
	mr = end_mr(a, 0x9000, 100, RD_ACC_LOCAL_WRITE, 1, 3);
	end_bind(a, 1, two, ma, 0, 100, READ);
	end_post(a, RD_LOCAL_INV, 2)->imm = two->mr.stag + 1;
	end_bind(a, 3, one, ma, 0, 100, READ);
	end_tx(a);
	cr_assert(a->nsend == 3 && asked == 0, "nobody else could use these");
	end_bind(a, 4, one, ma, 0, 200, READ);
	end_post(a, RD_LOCAL_INV, 5)->imm = mr->stag;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert(a->nsend == 3 && asked == 1 && one->mr.len == 200);
	quiet = 1;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert(a->nsend == 4 && asked == 2);
	cr_assert_not(mr->valid);
	quiet = 3;
	end_tx(a);
	cr_assert_eq(a->nsend, 5);
	finish();
}

Test(rdmap_mw, a_bind_of_a_busy_window_is_tried_again)
{
	start();
	end_bind(a, 1, one, ma, 0, 100, READ);
	one->seq = 1;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert_eq(a->nsend, 0);
	one->seq = 2;
	end_tx(a);
	cr_assert(a->nsend == 1 && a->send_wc[0].status == RD_SUCCESS);
	finish();
}
