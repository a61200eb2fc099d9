/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events in the middle of a message: its memory is deregistered, its QP enters the error state, its
 * connection belongs to another QP or fails.
 */
#include "pair.h"

#include "../../../lib/rof/rof_priv.h"

#include <criterion/criterion.h>
#include <string.h>

static struct pair p;
static struct rd_mr mr;
static struct rd_extent extent;

/* Starts a pair that sends few packets at a time, so that a message lasts for a while. */
static void
start(uint8_t ordering, uint8_t errors)
{
	struct pair_options o = {.chan = {.ordering = ordering,
					 .errors = errors,
					 .credits = {2, 2 * 18, 4, 64, 4, 64}}};

	pair_init_with(&p, &o, 9);
	memset(p.e[0].mem, 0x11, END_MEM);
	memset(p.e[1].mem, 0x77, END_MEM);
}

/* Sends a message of 40 packets from a region that is deregistered after some of them. */
static void
half(uint8_t opcode)
{
	struct end *a = &p.e[0];

	end_region(a, &mr, &extent, 0, 40960, 31);
	end_recv_at(&p.e[1], 0, 0x10000, 40960);
	end_msg(a, opcode, 0, 0, 40960)->sge[0].lkey = mr.stag;
	pair_run(&p, 60000, NULL);
	cr_assert_eq(a->nsend, 0);
	cr_assert_gt(a->payload + p.e[1].payload, 4 * 1024);
	cr_assert_lt(a->payload + p.e[1].payload, 36 * 1024);
	cr_assert(rd_mr_invalidate(&mr));
	/* and another message behind it */
	end_recv_at(&p.e[1], 1, 0, 100);
	end_msg(a, RD_SEND, 1, 0, 100);
	pair_run(&p, 10000000, pair_sent);
	pair_run(&p, 100000, NULL);
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->send_wc[0].status, RD_LOC_PROT_ERR);
}

static void
half_fini(void)
{
	rd_mr_del(p.e[0].mrs, &mr);
	cr_assert(pair_fini(&p));
}

Test(rof_endings, a_send_that_cannot_go_on_informs_the_receiver_by_ce_rof_8_2)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_WEAK; ordering++) {
		start(ordering, ROF_ERRORS_COMPLETE);
		half(RD_SEND_IMM);
		cr_assert_eq(p.e[0].send_wc[1].status, RD_SUCCESS);
		cr_assert_eq(p.e[1].nrecv, 2);
		cr_assert_eq(p.e[1].recv_wc[0].status, RD_REM_ABORT_ERR);
		cr_assert_eq(p.e[1].recv_wc[0].flags, 0, "no immediate of a message that is void");
		cr_assert_eq(p.e[1].recv_wc[1].status, RD_SUCCESS);
		cr_assert_eq(p.e[0].errors + p.e[1].errors, 0);
		half_fini();
	}
}

Test(rof_endings, a_write_with_immediate_that_cannot_go_on_informs_the_receiver_by_ce_rof_8_2)
{
	start(ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	half(RD_WRITE_IMM);
	cr_assert_eq(p.e[1].nrecv, 2);
	cr_assert_eq(p.e[1].recv_wc[0].wr_id, 0);
	cr_assert_eq(p.e[1].recv_wc[0].status, RD_REM_ABORT_ERR);
	cr_assert_eq(p.e[1].recv_wc[1].status, RD_SUCCESS);
	half_fini();
}

Test(rof_endings, a_write_that_cannot_go_on_takes_no_receive_rof_8_2)
{
	start(ROF_ORDER_NONE, ROF_ERRORS_COMPLETE);
	half(RD_WRITE);
	cr_assert_eq(p.e[0].send_wc[1].status, RD_SUCCESS);
	cr_assert_eq(p.e[1].nrecv, 1);
	cr_assert_eq(p.e[1].recv_wc[0].wr_id, 0);
	cr_assert_eq(p.e[1].recv_wc[0].byte_len, 100);
	half_fini();
}

Test(rof_endings, in_the_verbs_mode_it_ends_the_qp_rof_6_3)
{
	start(ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	half(RD_SEND);
	cr_assert_eq(p.e[0].send_wc[1].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(p.e[0].errors, 1);
	cr_assert(p.e[0].closed);
	cr_assert_eq(p.e[1].nrecv, 0, "the peer sees no end of it");
	rof_disconnect(p.e[1].q);
	cr_assert_eq(p.e[1].nrecv, 2);
	cr_assert_eq(p.e[1].recv_wc[0].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(p.e[1].recv_wc[0].wr_id, 0, "in order");
	half_fini();
}

Test(rof_endings, a_read_whose_sink_goes_fails_alone_rof_6_3)
{
	start(ROF_ORDER_WEAK, ROF_ERRORS_COMPLETE);
	half(RD_READ);
	cr_assert_eq(p.e[0].send_wc[1].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].errors, 0);
	half_fini();
}

/* A long request ends early when its first packet was refused. */
Test(rof_endings, what_is_refused_is_not_gone_on_with)
{
	static const uint8_t ops[] = {RD_WRITE, RD_READ};

	for (unsigned i = 0; i < 2; i++) {
		start(ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
		end_msg(&p.e[0], ops[i], 0, 0, 256 * 1024)->rkey ^= 1;
		end_msg(&p.e[0], RD_WRITE, 1, 0, 100);
		pair_run(&p, 100000000, pair_sent);
		cr_assert_eq(p.e[0].nsend, 2);
		cr_assert_eq(p.e[0].send_wc[0].status, RD_REM_ACCESS_ERR);
		cr_assert_eq(p.e[0].send_wc[1].status, RD_SUCCESS);
		cr_assert_lt(p.packets, 100);
		cr_assert(pair_fini(&p));
	}
}

/* ---- Requests for another QP (6.9) ---- */

Test(rof_endings, a_request_for_another_qp_is_refused_and_stops_nothing_rof_6_9)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		start(ordering, ROF_ERRORS_COMPLETE);
		p.e[0].q->peer_qpn++;
		end_msg(&p.e[0], RD_WRITE, 0, 0, 2000);
		pair_run(&p, 10000000, pair_sent);
		cr_assert_eq(p.e[0].send_wc[0].status, RD_REM_INV_REQ_ERR);
		cr_assert_eq(p.e[1].st.counters[ROF_WRONG_QP], 2);
		cr_assert_eq(p.e[1].mem[0], 0x77);
		p.e[0].q->peer_qpn--;
		end_recv_at(&p.e[1], 0, 0x8000, 2000);
		end_msg(&p.e[0], RD_WRITE, 1, 0x4000, 2000);
		end_msg(&p.e[0], RD_READ, 2, 0x6000, 2000);
		end_msg(&p.e[0], RD_SEND, 3, 0x8000, 1000);
		pair_run(&p, 10000000, pair_sent);
		pair_run(&p, 100000, NULL);
		cr_assert_eq(p.e[0].nsend, 4);
		for (unsigned i = 1; i < 4; i++)
			cr_assert_eq(p.e[0].send_wc[i].status, RD_SUCCESS);
		cr_assert_eq(p.e[1].nrecv, 1);
		cr_assert_eq(p.e[1].recv_wc[0].status, RD_SUCCESS);
		cr_assert_eq(p.e[0].errors + p.e[1].errors, 0);
		cr_assert(pair_fini(&p));
	}
}

Test(rof_endings, in_the_verbs_mode_it_stops_nothing_at_the_target_rof_6_9)
{
	start(ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	p.e[0].q->peer_qpn++;
	end_msg(&p.e[0], RD_WRITE, 0, 0, 100);
	pair_run(&p, 10000000, pair_sent);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_REM_INV_REQ_ERR);
	cr_assert_eq(p.e[0].errors, 1);
	cr_assert_eq(p.e[1].errors, 0);
	cr_assert_eq(p.e[1].rd.state, RD_QP_RTS);
	cr_assert(pair_fini(&p));
}

static bool
is_no_nack(void *arg, unsigned from, const struct wire_falcon *h)
{
	cr_assert_neq(h->type, FALCON_NACK);
	return true;
}

Test(rof_endings, a_response_for_another_qp_places_nothing_rof_6_9)
{
	start(ROF_ORDER_STRONG, ROF_ERRORS_COMPLETE);
	p.hook = is_no_nack;
	p.e[1].q->peer_qpn++;
	end_msg(&p.e[0], RD_READ, 0, 0, 100);
	pair_run(&p, 10000000, pair_sent);
	cr_assert_eq(p.e[0].send_wc[0].status, RD_BAD_RESP_ERR);
	cr_assert_eq(p.e[0].st.counters[ROF_WRONG_QP_RESPONSE], 1);
	cr_assert_eq(p.e[0].mem[0], 0x11);
	p.e[1].q->peer_qpn--;
	end_msg(&p.e[0], RD_READ, 1, 0, 100);
	pair_run(&p, 10000000, pair_sent);
	cr_assert_eq(p.e[0].send_wc[1].status, RD_SUCCESS);
	cr_assert_eq(p.e[0].mem[0], 0x77);
	cr_assert(pair_fini(&p));
}

/* ---- The other end ---- */

Test(rof_endings, a_target_in_error_is_a_peer_that_does_not_answer)
{
	for (uint8_t errors = ROF_ERRORS_VERBS; errors <= ROF_ERRORS_COMPLETE; errors++) {
		start(ROF_ORDER_STRONG, errors);
		rof_disconnect(p.e[1].q);
		cr_assert(p.e[1].closed);
		end_msg(&p.e[0], RD_WRITE, 0, 0, 100);
		end_msg(&p.e[0], RD_READ, 1, 0, 100);
		pair_run(&p, 10000000, pair_sent);
		cr_assert_eq(p.e[0].send_wc[0].status, RD_RETRY_EXC_ERR);
		cr_assert_eq(p.e[0].send_wc[1].status,
			errors == ROF_ERRORS_VERBS ? RD_WR_FLUSH_ERR : RD_REM_ACCESS_ERR);
		cr_assert_eq(p.e[1].mem[0], 0x77);
		cr_assert_gt(p.e[1].st.counters[ROF_QP_STATE], 0);
		cr_assert(pair_fini(&p));
	}
}

Test(rof_endings, close_comes_once_and_after_a_fault_of_the_peer_too)
{
	start(ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	end_msg(&p.e[0], RD_WRITE, 0, 0, 100)->rkey ^= 1;
	pair_run(&p, 10000000, pair_sent);
	cr_assert_eq(p.e[1].errors, 1);
	cr_assert_not(p.e[1].closed);
	rof_disconnect(p.e[1].q);
	cr_assert(p.e[1].closed);
	cr_assert_eq(p.e[1].errors, 1);
	p.e[1].closed = false;
	rof_disconnect(p.e[1].q);
	cr_assert_not(p.e[1].closed);
	cr_assert(pair_fini(&p));
}

static bool
lose_pushes(void *arg, unsigned from, const struct wire_falcon *h)
{
	return !(from == 0 && h->type == FALCON_PUSH_DATA);
}

/* Falcon replaces a packet that it cannot deliver by a Resync, and the target never sees its
 * sequence number (6.8): the connection cannot be used any more, in either error mode. */
Test(rof_endings, what_falcon_gives_up_ends_the_connection_rof_6_8)
{
	for (uint8_t errors = ROF_ERRORS_VERBS; errors <= ROF_ERRORS_COMPLETE; errors++) {
		start(errors == ROF_ERRORS_VERBS ? ROF_ORDER_STRONG : ROF_ORDER_WEAK, errors);
		p.hook = lose_pushes;
		end_msg(&p.e[0], RD_SEND, 0, 0, 100);
		end_msg(&p.e[0], RD_READ, 1, 0, 100);
		pair_run(&p, 60000000000ull, pair_sent);
		pair_run(&p, 100000, NULL);
		cr_assert_eq(p.e[0].nsend, 2);
		cr_assert_eq(p.e[0].send_wc[0].status, RD_RETRY_EXC_ERR);
		cr_assert_eq(p.e[0].errors, 1);
		cr_assert(p.e[0].closed);
		cr_assert_eq(p.e[0].st.counters[ROF_CONNECTION_LOST], 1);
		cr_assert(pair_fini(&p));
	}
}

/* The end of the connection flushes both queues in order, and requests that are posted later. */
Test(rof_endings, a_dead_connection_flushes_everything_once)
{
	start(ROF_ORDER_STRONG, ROF_ERRORS_VERBS);
	for (unsigned i = 0; i < 20; i++)
		end_msg(&p.e[0], i % 3 ? RD_WRITE : RD_READ, i, 0, 3000);
	for (unsigned i = 0; i < 5; i++)
		end_recv_at(&p.e[0], i, 0, 100);
	pair_run(&p, 20000, NULL);
	cr_assert_lt(p.e[0].nsend, 20);
	rof_closed(p.e[0].q, -1);
	rof_closed(p.e[0].q, -1);
	cr_assert_eq(p.e[0].nsend, 20);
	cr_assert_eq(p.e[0].nrecv, 5);
	for (unsigned i = 0; i < 20; i++)
		cr_assert_eq(p.e[0].send_wc[i].wr_id, i);
	cr_assert_eq(p.e[0].send_wc[19].status, RD_WR_FLUSH_ERR);
	end_msg(&p.e[0], RD_WRITE, 20, 0, 100);
	pair_run(&p, 1000000, NULL);
	cr_assert_eq(p.e[0].nsend, 20);
	rof_flush(p.e[0].q, UINT32_MAX);
	cr_assert_eq(p.e[0].send_wc[20].status, RD_WR_FLUSH_ERR);
	cr_assert_eq(p.e[0].errors, 1);
	cr_assert_not(p.e[0].closed, "it is closed already");
	cr_assert(pair_fini(&p));
}
