/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad requests, the ways in which a connection ends, and flush: each request completes exactly
 * once. */
#include "rdmap_pair.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE)
#define LEN    10000

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb;

static void
start(void)
{
	pair_init(&p, NULL, 7);
	ma = end_mr(a, 0x1000000, LEN, REMOTE, 1, 1);
	mb = end_mr(b, 0x2000000, LEN, REMOTE, 1, 2);
}

static struct rd_wr *
post(uint8_t opcode, uint64_t id, uint32_t len)
{
	struct rd_wr *wr = end_post(a, opcode, id);

	wr_sge(wr, ma, 0, len);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	return wr;
}

enum bad { BAD_OPCODE, BAD_LKEY, BAD_BOUNDS, BAD_RIGHT, BAD_LEN, BAD_INLINE_READ, BAD_INV };

static void
post_bad(enum bad what)
{
	struct rd_mr *r;
	struct rd_wr *wr = post(what == BAD_RIGHT ? RD_READ : RD_WRITE, 50, 8);

	switch (what) {
	case BAD_OPCODE:
		wr->opcode = 0xff;
		break;
	case BAD_LKEY:
		wr->sge[0].lkey ^= 1;
		break;
	case BAD_BOUNDS:
		wr->sge[0].addr = ma->base + LEN - 7;
		break;
	case BAD_RIGHT: /* the sink of a Read must be writable */
		r = end_mr(a, 0x5000, 64, RD_ACC_REMOTE_READ, 1, 9);
		wr->nsge = 0;
		wr_sge(wr, r, 0, 8);
		break;
	case BAD_LEN: /* 4 GiB in all */
		ma->len = 1ull << 33;
		wr->nsge = 0;
		wr_sge(wr, ma, 0, 0xffffffff);
		wr_sge(wr, ma, 0, 1);
		break;
	case BAD_INLINE_READ:
		wr->opcode = RD_READ;
		wr->flags |= RD_INLINE;
		break;
	case BAD_INV:
		wr->opcode = RD_LOCAL_INV;
		wr->imm = mb->stag;
		break;
	}
}

/* Requests before the bad one succeed, the bad one completes with its status, later ones are
 * flushed, and the peer receives "local catastrophic error". */
Test(rdmap_life, a_bad_request_takes_the_qp_down_in_order_rfc5040_7_1)
{
	static const uint8_t want[] = {RD_LOC_QP_OP_ERR, RD_LOC_PROT_ERR, RD_LOC_PROT_ERR,
		RD_LOC_PROT_ERR, RD_LOC_LEN_ERR, RD_LOC_QP_OP_ERR, RD_LOC_PROT_ERR};

	for (unsigned i = 0; i < sizeof(want); i++) {
		struct iw_info info;

		start();
		end_recv(a, 70);
		post(RD_WRITE, 49, 8);
		post_bad(i);
		post(RD_WRITE, 51, 8)->flags = 0;
		post(RD_READ, 52, 8);
		cr_assert(pair_run(&p));
		ma->len = LEN;
		cr_assert_eq(a->nsend, 4, "case %u: %u completions", i, a->nsend);
		cr_assert_eq(a->send_wc[0].wr_id, 49);
		cr_assert_eq(a->send_wc[0].status, RD_SUCCESS, "case %u", i);
		cr_assert_eq(a->send_wc[1].wr_id, 50);
		cr_assert_eq(a->send_wc[1].status, want[i], "case %u: %u", i, a->send_wc[1].status);
		cr_assert_eq(a->send_wc[1].vendor_err, IW_RDMAP_LOCAL);
		cr_assert_eq(a->send_wc[2].wr_id, 51);
		cr_assert_eq(a->send_wc[2].status, RD_WR_FLUSH_ERR);
		cr_assert_eq(a->send_wc[3].wr_id, 52);
		cr_assert_eq(a->send_wc[3].status, RD_WR_FLUSH_ERR);
		cr_assert_eq(a->nrecv, 1);
		cr_assert_eq(a->recv_wc[0].status, RD_WR_FLUSH_ERR);
		cr_assert_eq(a->closes, 1);
		cr_assert_eq(b->closes, 1);
		iw_get_info(b->q, &info);
		cr_assert(info.terminate_received && info.term_layer == 0 && info.term_etype == 0 &&
			  info.term_code == 0);
		cr_assert(pair_fini(&p));
	}
}

Test(rdmap_life, opcodes_that_iwarp_has_not_are_refused_cleanly)
{
	static const uint8_t opcodes[] = {RD_SEND_IMM, RD_SWAP, RD_RECV, 13};

	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		start();
		post(opcodes[i], 1, 8);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 1, "opcode %u", opcodes[i]);
		cr_assert_eq(a->send_wc[0].status, RD_LOC_QP_OP_ERR);
		cr_assert_eq(a->send_wc[0].opcode, opcodes[i]);
		cr_assert(pair_fini(&p));
	}
}

/* A region is destroyed between two segments of a message. */
Test(rdmap_life, a_message_whose_source_vanishes_fails)
{
	start();
	post(RD_WRITE, 1, 8000);
	cr_assert_eq(iw_tx(a->q, 0, 2), IW_TX_MORE);
	ma->valid = false;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_LOC_PROT_ERR);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, a_read_sink_that_vanishes_is_a_protection_error)
{
	start();
	post(RD_READ, 1, 800);
	end_tx(a);
	ma->valid = false;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_LOC_PROT_ERR);
	cr_assert_eq(a->closes, 1);
	cr_assert(pair_fini(&p));
}

/* A remote fault is reported to the other side and fails the Read that caused it. */
Test(rdmap_life, a_refused_read_has_a_remote_access_error_at_its_requester)
{
	start();
	post(RD_READ, 1, 8);
	post(RD_READ, 2, 8)->remote_addr = mb->base + LEN;
	post(RD_WRITE, 3, 8);
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 3);
	cr_assert_eq(a->send_wc[0].wr_id, 1);
	cr_assert_eq(a->send_wc[1].wr_id, 2);
	cr_assert_eq(a->send_wc[1].status, RD_REM_ACCESS_ERR);
	cr_assert_eq(a->send_wc[2].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(a->error_code, IW_TERMINATE_IN);
	cr_assert_eq(b->error_code, IW_RDMAP_BOUNDS);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, an_orderly_disconnect_sends_what_was_posted)
{
	start();
	for (unsigned i = 0; i < 5; i++)
		wr_sge(end_recv(b, i), mb, 100 * i, 100);
	for (unsigned i = 0; i < 5; i++)
		post(RD_SEND, i, 100);
	iw_disconnect(a->q, 0, IW_CLOSE_ORDERLY);
	cr_assert_eq(a->closes, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(a->closes, 1);
	cr_assert_eq(a->close_how, IW_CLOSE_ORDERLY);
	cr_assert_eq(a->nsend, 5);
	cr_assert_eq(b->nrecv, 5);
	iw_peer_fin(b->q, 0);
	cr_assert_eq(b->closes, 1);
	iw_peer_fin(a->q, 0);
	cr_assert_eq(a->closes, 1, "close comes once");
	post(RD_SEND, 6, 100);
	iw_closed(a->q, 0, 0);
	iw_closed(b->q, 0, 0);
	cr_assert_eq(a->rd.state, RD_QP_ERR);
	cr_assert_eq(a->error_code, IW_NONE);
	cr_assert_eq(a->nsend, 6);
	cr_assert_eq(a->send_wc[5].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(a->st.counters[IW_LLP_CLOSED], 0);
	post(RD_SEND, 7, 100);
	iw_flush(a->q, UINT32_MAX);
	cr_assert_eq(a->nsend, 7);
	cr_assert_eq(iw_tx(a->q, 0, 10), IW_TX_IDLE);
	cr_assert_eq(a->closes, 1);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, a_responder_that_received_no_fpdu_disconnects_in_silence_rfc5044_7_1_2)
{
	start();
	wr_sge(end_post(b, RD_SEND, 1), mb, 0, 8);
	iw_disconnect(b->q, 0, IW_CLOSE_ORDERLY);
	end_tx(b);
	cr_assert_eq(b->closes, 1);
	cr_assert_eq(b->wire_len, 0);
	iw_closed(b->q, 0, 0);
	cr_assert_eq(b->nsend, 1);
	cr_assert_eq(b->send_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert(pair_fini(&p));
}

/* Requests posted while the queue drains could keep the connection open for ever, so at most one
 * queue depth is sent. */
Test(rdmap_life, a_disconnect_takes_no_more_than_the_queue_is_deep)
{
	start();
	for (unsigned i = 0; i < 100; i++)
		post(RD_WRITE, i, 8);
	iw_disconnect(a->q, 0, IW_CLOSE_ORDERLY);
	end_tx(a);
	cr_assert_eq(a->closes, 1);
	cr_assert_eq(a->nsend, 64);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, a_full_receive_queue_is_flushed_whole)
{
	start();
	for (unsigned i = 0; i < a->rd.caps.rq_depth; i++)
		end_recv(a, i);
	iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
	cr_assert_eq(a->nrecv, a->rd.caps.rq_depth);
	for (unsigned i = 0; i < a->nrecv; i++)
		cr_assert_eq(a->recv_wc[i].status, RD_WR_FLUSH_ERR);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, an_abort_flushes_at_once)
{
	start();
	end_recv(a, 70);
	post(RD_READ, 1, 8);
	end_tx(a);
	post(RD_WRITE, 2, 8);
	iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
	cr_assert_eq(a->closes, 1);
	cr_assert_eq(a->close_how, IW_CLOSE_ABORT);
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(a->send_wc[1].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(a->nrecv, 1);
	cr_assert_eq(a->errors, 1);
	iw_closed(a->q, 0, -ECONNABORTED);
	cr_assert_eq(a->errors, 1);
	cr_assert_eq(a->closes, 1);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, a_reset_flushes_what_is_in_the_midst)
{
	start();
	wr_sge(end_recv(b, 5), mb, 0, LEN);
	wr_sge(end_recv(b, 6), mb, 0, LEN);
	post(RD_SEND, 1, 8000);
	cr_assert_eq(iw_tx(a->q, 0, 2), IW_TX_MORE);
	end_feed(b, a->wire, a->wire_len - 5, 0, NULL);
	iw_closed(a->q, 0, -ECONNRESET);
	iw_closed(b->q, 0, -ECONNRESET);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(b->nrecv, 2);
	cr_assert_eq(b->recv_wc[0].wr_id, 5);
	cr_assert_eq(b->recv_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(b->recv_wc[1].wr_id, 6);
	cr_assert_eq(a->error_code, IW_LLP_CLOSED);
	cr_assert_eq(a->st.counters[IW_LLP_CLOSED], 1);
	cr_assert_eq(a->closes, 0, "there is nothing left to close");
	end_feed(a, (const uint8_t *)"late", 4, 0, NULL);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, a_shared_receive_queue_is_not_flushed)
{
	start();
	b->rd.srq = (struct rd_srq *)1;
	end_recv(b, 5);
	iw_disconnect(b->q, 0, IW_CLOSE_ABORT);
	cr_assert_eq(b->nrecv, 0);
	cr_assert_eq(b->rq_head, 0);
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, a_peer_that_ends_its_half_is_followed)
{
	start();
	post(RD_READ, 1, 8);
	end_tx(a);
	iw_peer_fin(a->q, 0);
	cr_assert_eq(a->closes, 1);
	cr_assert_eq(a->nsend, 0);
	iw_closed(a->q, 0, 0);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert(pair_fini(&p));
}

/* A message that has begun is sent completely first. */
Test(rdmap_life, a_peer_s_fin_lets_the_message_under_way_end)
{
	start();
	post(RD_WRITE, 1, 8000);
	post(RD_WRITE, 2, 8000);
	cr_assert_eq(iw_tx(a->q, 0, 2), IW_TX_MORE);
	iw_peer_fin(a->q, 0);
	cr_assert_eq(a->closes, 0);
	end_tx(a);
	cr_assert_eq(a->closes, 1);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->sq_head, 1);
	cr_assert(pair_fini(&p));
}

/* ---- Whether the stream may be left to TCP ---- */

Test(rdmap_life, qp_between_messages_may_leave)
{
	start();
	cr_assert(iw_may_leave(a->q));
	for (unsigned i = 0; i < 3; i++)
		wr_sge(end_recv(b, i), mb, 0, 100);
	post(RD_SEND, 1, 100);
	post(RD_SEND, 2, 100)->flags = 0; /* complete when TCP has it */
	cr_assert_not(iw_may_leave(a->q), "requests wait");
	end_tx(a);
	cr_assert_eq(a->nsend, 1);
	cr_assert(iw_may_leave(a->q));
	iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
	cr_assert_eq(a->close_how, IW_CLOSE_ABORT);
	cr_assert_eq(a->rd.state, RD_QP_ERR);
	cr_assert(iw_may_leave(a->q));
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, qp_that_has_closed_in_order_may_leave)
{
	start();
	post(RD_WRITE, 1, 100);
	iw_disconnect(a->q, 0, IW_CLOSE_ORDERLY);
	cr_assert_not(iw_may_leave(a->q));
	end_tx(a);
	cr_assert_eq(a->close_how, IW_CLOSE_ORDERLY);
	cr_assert(iw_may_leave(a->q));
	iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
	cr_assert_eq(a->closes, 1);
	cr_assert(iw_may_leave(a->q));
	cr_assert(pair_fini(&p));
}

Test(rdmap_life, qp_that_was_never_connected_may_not_leave)
{
	start();
	iw_qp_destroy(a->q);
	a->q = iw_qp_create(&a->st, &a->rd);
	cr_assert_not(iw_may_leave(a->q));
	cr_assert(pair_fini(&p));
}

enum owed { OWES_READ, OWES_ATOMIC, OWES_REST, OWES_RECORD, OWES_ANSWER, OWES_PART, OWES_RTR };

/* Brings the QP into a state in which something is half done or owed. */
static void
owe(enum owed what)
{
	struct iw_params params = end_params();

	switch (what) {
	case OWES_READ:
		post(RD_READ, 1, 8);
		end_tx(a);
		break;
	case OWES_ATOMIC:
		post(RD_FETCH_ADD, 1, 8);
		end_tx(a);
		break;
	case OWES_REST: /* of a message */
		post(RD_WRITE, 1, 8000);
		cr_assert_eq(iw_tx(a->q, 0, 2), IW_TX_MORE);
		break;
	case OWES_RECORD: /* the ring to the transport stage is full */
		a->refuse_send = 1000;
		post(RD_WRITE, 1, 8)->flags = 0;
		cr_assert_eq(iw_tx(a->q, 0, 8), IW_TX_NOBUF);
		break;
	case OWES_ANSWER:
	case OWES_PART: /* of the answer */
		wr_sge(end_recv(a, 1), ma, 0, 8);
		post(RD_WRITE, 1, 8); /* the responder may send from here on */
		cr_assert(pair_run(&p));
		wr_sge(end_post(b, RD_READ, 2), mb, 0, 8000);
		b->sq[b->sq_tail - 1].rkey = ma->stag;
		b->sq[b->sq_tail - 1].remote_addr = ma->base;
		end_tx(b);
		end_feed(a, b->wire, b->wire_len, 0, NULL);
		if (what == OWES_PART)
			cr_assert_eq(iw_tx(a->q, 0, 2), IW_TX_MORE);
		break;
	case OWES_RTR:
		cr_assert(pair_fini(&p));
		params.rtr = MPA_RTR_WRITE;
		pair_init(&p, &params, 7);
		break;
	}
}

Test(rdmap_life, qp_that_owes_something_may_not_leave)
{
	for (unsigned what = OWES_READ; what <= OWES_RTR; what++) {
		start();
		owe(what);
		cr_assert_not(iw_may_leave(a->q), "case %u", what);
		iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
		cr_assert_not(iw_may_leave(a->q), "case %u, after the abort", what);
		cr_assert_eq(a->closes, 1);
		cr_assert(pair_fini(&p));
	}
}

Test(rdmap_life, qp_that_has_failed_may_not_leave)
{
	start();
	post_bad(BAD_OPCODE);
	end_tx(a);
	cr_assert_not(iw_may_leave(a->q));
	iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
	cr_assert_not(iw_may_leave(a->q));
	cr_assert(pair_fini(&p));
}

/* Bytes that come after an abort are lost. If the stream may be left, TCP has to learn it. */
Test(rdmap_life, bytes_after_an_abort_of_a_qp_that_may_leave_are_not_consumed)
{
	for (unsigned leaves = 0; leaves < 2; leaves++) {
		start();
		if (!leaves)
			post(RD_READ, 1, 8);
		end_tx(a);
		iw_disconnect(a->q, 0, IW_CLOSE_ABORT);
		end_feed(a, (const uint8_t *)"late", 4, 0, NULL);
		cr_assert_eq(a->consumed, leaves ? 0 : 4);
		cr_assert_eq(a->st.counters[IW_AFTER_TERMINATE], 1);
		cr_assert(pair_fini(&p));
	}
}

Test(rdmap_life, an_idle_qp_is_small)
{
	cr_assert_leq(iw_qp_size(), 700, "%zu", iw_qp_size());
}
