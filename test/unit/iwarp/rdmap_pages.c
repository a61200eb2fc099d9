/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Missing pages of a client's memory: the QP waits for them, in order, and continues when they are
 * present. Nothing that waits is lost or leaks.
 */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../../support/absent.h"

#define REMOTE                                                                                     \
	(RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_ATOMIC)
#define LEN  32768u
#define PAGE 4096u

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb;
static struct absent absent;
static uint8_t *replaced;
/* Calls of rd_ops.fetch: the end that called last, how often, and what it requested. */
static struct {
	struct end *by;
	unsigned calls;
	const uint8_t *at;
	uint64_t len;
} fetched;

static void
fetch(void *ctx, struct rd_qp *qp, const uint8_t *at, uint64_t len)
{
	fetched.by = ctx;
	fetched.calls++;
	fetched.at = at;
	fetched.len = len;
}

/* Connects two ends, of which `poor` has memory without pages. */
static void
start(struct end *poor)
{
	struct rd_mr *mr;

	pair_init(&p, NULL, 7);
	ma = end_mr(a, 0x10000, LEN, REMOTE, 1, 1);
	mb = end_mr(b, 0x20000, LEN, REMOTE, 1, 2);
	mr = poor == a ? ma : mb;
	absent_init(&absent, LEN);
	replaced = mr->extents->host;
	mr->extents->host = absent.mem;
	a->st.ops.rd.fetch = b->st.ops.rd.fetch = fetch;
	memset(&fetched, 0, sizeof(fetched));
}

/* Runs the pair until `poor` waits for `at`. */
static void
runs_into(struct end *poor, const uint8_t *at)
{
	cr_assert(pair_run(&p));
	cr_assert_eq(fetched.calls, 1);
	cr_assert_eq(fetched.by, poor);
	cr_assert_eq(fetched.at, at);
}

static void
provide(struct end *poor)
{
	absent_provide(&absent, LEN);
	iw_pages(poor->q, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(fetched.calls, 1);
}

static void
finish(struct end *poor)
{
	(poor == a ? ma : mb)->extents->host = replaced;
	cr_assert(pair_fini(&p));
	absent_fini(&absent);
}

static struct rd_wr *
post(struct end *e, uint8_t opcode, uint64_t wr_id, uint32_t len)
{
	struct rd_wr *wr = end_post(e, opcode, wr_id);
	const struct rd_mr *far = e == a ? mb : ma;

	wr_sge(wr, e == a ? ma : mb, 0, len);
	wr->rkey = far->stag;
	wr->remote_addr = far->base;
	return wr;
}

/* Posts a request that touches no missing page, to be behind the one that does. */
static void
post_behind(uint64_t wr_id)
{
	end_recv(b, wr_id);
	end_post(a, RD_SEND, wr_id);
}

Test(rdmap_pages, a_request_whose_source_is_missing_waits_with_those_behind_it)
{
	start(a);
	post(a, RD_WRITE, 1, 10000);
	post_behind(2);
	runs_into(a, absent.mem);
	cr_assert_eq(fetched.len, 10000);
	cr_assert_eq(a->nsend, 0);
	cr_assert_eq(b->nrecv, 0);
	/* Neither a doorbell nor an arrival makes the QP try again. */
	end_tx(a);
	cr_assert_eq(fetched.calls, 1);
	provide(a);
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->send_wc[0].wr_id, 1);
	cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(mb->extents->host[9999], 0);
	cr_assert_eq(mb->extents->host[10000], pattern(2, 10000));
	finish(a);
}

Test(rdmap_pages, a_small_request_waits_as_well)
{
	start(a);
	end_recv(b, 5);
	wr_sge(end_recv(b, 6), mb, 0, 64);
	end_post(a, RD_SEND, 5);
	post(a, RD_SEND, 6, 8);
	runs_into(a, absent.mem);
	cr_assert_eq(b->nrecv, 1);
	provide(a);
	cr_assert_eq(b->nrecv, 2);
	cr_assert_eq(b->recv_wc[1].byte_len, 8);
	finish(a);
}

Test(rdmap_pages, a_write_to_missing_memory_waits_in_the_stream_with_all_behind_it)
{
	uint64_t consumed;

	start(b);
	post(a, RD_WRITE, 1, 10000);
	post_behind(2);
	runs_into(b, absent.mem);
	cr_assert_eq(b->nrecv, 0);
	cr_assert_eq(b->consumed, 0);
	cr_assert_gt(b->live_slices, 0);
	absent_provide(&absent, PAGE); /* the first page only: the QP requests the next one */
	iw_pages(b->q, 0);
	cr_assert_eq(fetched.calls, 2);
	cr_assert_eq(fetched.at, absent.mem + PAGE);
	cr_assert_eq(b->nrecv, 0);
	consumed = b->consumed;
	cr_assert_gt(consumed, 0);
	absent_provide(&absent, LEN);
	iw_pages(b->q, 0);
	cr_assert_eq(b->nrecv, 1);
	cr_assert_gt(b->consumed, consumed);
	cr_assert_eq(b->live_slices, 0);
	for (unsigned i = 0; i < 10000; i++)
		cr_assert_eq(absent.mem[i], pattern(1, i));
	cr_assert(pair_run(&p));
	finish(b);
}

Test(rdmap_pages, a_send_to_a_missing_receive_waits_and_takes_one_receive)
{
	start(b);
	wr_sge(end_recv(b, 10), mb, 0, 5000);
	post(a, RD_SEND, 1, 5000);
	post_behind(2);
	runs_into(b, absent.mem);
	provide(b);
	cr_assert_eq(b->nrecv, 2);
	cr_assert_eq(b->recv_wc[0].wr_id, 10);
	cr_assert_eq(b->recv_wc[0].byte_len, 5000);
	cr_assert_eq(b->recv_wc[1].wr_id, 2);
	cr_assert_eq(absent.mem[4999], pattern(1, 4999));
	finish(b);
}

Test(rdmap_pages, a_read_waits_for_its_sink_before_it_is_sent)
{
	start(a);
	post(a, RD_READ, 1, 20000);
	runs_into(a, absent.mem);
	cr_assert_eq(fetched.len, 20000);
	cr_assert_eq(a->records, 0);
	provide(a);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(absent.mem[19999], pattern(2, 19999));
	finish(a);
}

Test(rdmap_pages, a_response_waits_for_a_sink_that_was_removed_again)
{
	start(a);
	absent_provide(&absent, LEN);
	post(a, RD_READ, 1, 20000);
	end_tx(a);
	absent_provide(&absent, 0);
	runs_into(a, absent.mem);
	provide(a);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(absent.mem[19999], pattern(2, 19999));
	finish(a);
}

Test(rdmap_pages, a_read_of_missing_memory_is_answered_when_it_is_present)
{
	start(b);
	post(a, RD_READ, 1, 20000);
	post_behind(2);
	runs_into(b, absent.mem);
	cr_assert_eq(fetched.len, 20000);
	cr_assert_eq(a->nsend, 0);
	provide(b);
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->send_wc[0].wr_id, 1);
	cr_assert_eq(ma->extents->host[19999], 0);
	finish(b);
}

Test(rdmap_pages, an_atomic_is_executed_once_on_both_sides)
{
	struct end *const ends[] = {a, b};

	for (unsigned i = 0; i < 2; i++) {
		struct rd_wr *wr;

		start(ends[i]);
		memset((i == 0 ? mb : ma)->extents->host, 0, 8);
		if (i == 0)
			absent_provide(&absent, LEN); /* the sink, until the request is sent */
		wr = post(a, RD_FETCH_ADD, 1, 8);
		wr->data = 3;
		if (i == 0) {
			end_tx(a);
			absent_provide(&absent, 0);
		}
		runs_into(ends[i], absent.mem);
		cr_assert_eq(a->nsend, 0);
		provide(ends[i]);
		cr_assert_eq(a->nsend, 1);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
		cr_assert_eq(mb->extents->host[0], 3);
		finish(ends[i]);
	}
}

Test(rdmap_pages, the_peers_fin_waits_behind_the_bytes_before_it)
{
	start(b);
	post(a, RD_WRITE, 1, 3000);
	post_behind(2);
	runs_into(b, absent.mem);
	iw_peer_fin(b->q, 0);
	cr_assert_eq(b->closes, 0);
	provide(b);
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(b->closes, 1);
	finish(b);
}

Test(rdmap_pages, a_qp_that_fails_while_it_waits_consumes_the_bytes)
{
	uint64_t sent = 0;

	start(b);
	post(a, RD_WRITE, 1, 3000);
	end_tx(a);
	sent = a->wire_len;
	runs_into(b, absent.mem);
	iw_disconnect(b->q, 0, IW_CLOSE_ABORT);
	cr_assert_gt(b->live_slices, 0);
	iw_pages(b->q, 0);
	cr_assert_eq(b->live_slices, 0);
	cr_assert_eq(b->consumed, sent);
	cr_assert_eq(fetched.calls, 1);
	finish(b);
}

Test(rdmap_pages, the_end_of_a_qp_that_waits_frees_everything)
{
	for (unsigned closed = 0; closed < 2; closed++) {
		start(b);
		post(a, RD_WRITE, 1, 3000);
		runs_into(b, absent.mem);
		if (closed) {
			iw_closed(b->q, 0, 0);
			cr_assert_eq(b->live_slices, 0);
			cr_assert_eq(b->rd.state, RD_QP_ERR);
		}
		finish(b);
		start(a);
		post(a, RD_SEND, 1, 3000);
		runs_into(a, absent.mem);
		if (closed) {
			iw_closed(a->q, 0, 0);
			cr_assert_eq(a->nsend, 1);
			cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
		}
		finish(a);
	}
}
