/* SPDX-License-Identifier: BSD-3-Clause */
/* Order and flow control: completions in posting order, ORD, fence, which side may send first, and
 * what waits for what. */
#include "rdmap_pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REMOTE (RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE)
#define LEN    100000

static struct pair p;
static struct end *const a = &p.e[0], *const b = &p.e[1];
static struct rd_mr *ma, *mb;

static void
start(const struct iw_params *params)
{
	pair_init(&p, params, 7);
	ma = end_mr(a, 0x1000000, LEN, REMOTE, 1, 1);
	mb = end_mr(b, 0x2000000, LEN, REMOTE, 1, 2);
}

static void
finish(void)
{
	cr_assert(pair_run(&p));
	cr_assert_eq(a->errors, 0);
	cr_assert_eq(b->errors, 0);
	cr_assert(pair_fini(&p));
}

static struct rd_wr *
post(struct end *e, uint8_t opcode, uint64_t id, uint64_t off, uint32_t len)
{
	struct rd_wr *wr = end_post(e, opcode, id);

	wr_sge(wr, e == a ? ma : mb, off, len);
	wr->rkey = e == a ? mb->stag : ma->stag;
	wr->remote_addr = (e == a ? mb->base : ma->base) + off;
	return wr;
}

/* Returns the opcodes on the wire and empties the wire. */
static unsigned
sent(struct end *e, uint8_t opcodes[64])
{
	static uint8_t body[65536];
	struct wire_ddp d;
	unsigned n = 0;
	uint32_t len;

	while (n < 64 && end_sent(e, &d, body, &len))
		opcodes[n++] = d.opcode;
	return n;
}

static void
read_response(struct end *e, uint32_t stag, uint64_t to, uint32_t len)
{
	struct wire_ddp d = {.tagged = true,
		.last = true,
		.opcode = RDMAP_READ_RESPONSE,
		.stag = stag,
		.to = to};
	uint8_t body[1024];

	memset(body, 0xab, sizeof(body));
	end_fpdu(e, &d, body, len);
}

Test(rdmap_order, work_behind_a_read_completes_after_it)
{
	static const uint8_t posted[] = {RDMAP_WRITE, RDMAP_READ_REQUEST, RDMAP_WRITE, RDMAP_WRITE,
		RDMAP_READ_REQUEST, RDMAP_WRITE};
	uint8_t op[64];

	start(NULL);
	post(a, RD_WRITE, 1, 0, 8);
	post(a, RD_READ, 2, 100, 50);
	post(a, RD_WRITE, 3, 200, 8);
	post(a, RD_WRITE, 4, 200, 8)->flags = 0;
	post(a, RD_READ, 5, 300, 50)->flags = 0;
	post(a, RD_WRITE, 6, 200, 8);
	end_tx(a);
	cr_assert_eq(sent(a, op), 6);
	cr_assert_arr_eq(op, posted, 6);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].wr_id, 1);
	read_response(a, ma->stag, ma->base + 100, 50);
	cr_assert_eq(a->nsend, 3);
	cr_assert_eq(a->send_wc[1].wr_id, 2);
	cr_assert_eq(a->send_wc[2].wr_id, 3);
	read_response(a, ma->stag, ma->base + 300, 50);
	cr_assert_eq(a->nsend, 4);
	cr_assert_eq(a->send_wc[3].wr_id, 6);
	finish();
}

/* A Send and a Write of several segments: each begins where the one before it ended, and none is
 * longer than MULPDU. */
Test(rdmap_order, segments_fit_mulpdu_and_ascend_rfc5041_5_2)
{
	static uint8_t body[65536];
	struct iw_info info;
	struct wire_ddp d;
	uint32_t len, longest = 0, at[2] = {0, 0};

	start(NULL);
	iw_get_info(a->q, &info);
	post(a, RD_SEND, 1, 0, 5000);
	post(a, RD_WRITE, 2, 100, 7001);
	end_tx(a);
	for (unsigned k = 0; k < 2;) {
		uint32_t total = k == 0 ? 5000 : 7001;

		cr_assert(end_sent(a, &d, body, &len));
		cr_assert_eq(d.tagged, k == 1);
		cr_assert_eq(d.tagged ? d.to - mb->base - 100 : d.mo, at[k]);
		cr_assert_eq(d.last, at[k] + len == total);
		cr_assert_leq(len + (d.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN), info.mulpdu);
		longest = SK_MAX(longest, len);
		at[k] += len;
		cr_assert_leq(at[k], total);
		k += d.last;
	}
	cr_assert_not(end_sent(a, &d, body, &len));
	cr_assert_eq(longest + DDP_TAGGED_LEN, info.mulpdu);
	finish();
}

Test(rdmap_order, a_qp_with_sig_all_reports_each_request)
{
	start(NULL);
	a->rd.sig_all = true;
	post(a, RD_WRITE, 1, 0, 8)->flags = 0;
	post(a, RD_READ, 2, 0, 8)->flags = 0;
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 2);
	finish();
}

Test(rdmap_order, no_more_reads_are_outstanding_than_ord_rfc6581_9_1)
{
	struct iw_params params = end_params();
	struct iw_info info;
	uint8_t op[64];

	params.ord = 2;
	start(&params);
	for (unsigned i = 0; i < 5; i++)
		post(a, RD_READ, i, 100 * i, 10);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_BLOCKED);
	cr_assert_eq(sent(a, op), 2);
	iw_get_info(a->q, &info);
	cr_assert_eq(info.ord_used, 2);
	for (unsigned i = 0; i < 5; i++) {
		read_response(a, ma->stag, ma->base + 100 * i, 10);
		cr_assert_eq(a->nsend, i + 1);
		end_tx(a);
		cr_assert_eq(sent(a, op), i < 3 ? 1 : 0, "after response %u", i);
	}
	finish();
}

/* Passes what `from` has sent to `to`, in one slice. Returns what iw_rx() does. */
static bool
receives(struct end *to, struct end *from)
{
	struct tcp_slice *s = calloc(1, sizeof(*s));

	s->owner = malloc(from->wire_len);
	memcpy(s->owner, from->wire, from->wire_len);
	s->data = s->owner;
	s->len = (uint32_t)from->wire_len;
	from->wire_len = 0;
	to->live_slices++;
	return iw_rx(to->q, 0, s);
}

/* A Write, which needs no answer, costs the send queue nothing. */
Test(rdmap_order, only_what_makes_work_for_the_send_queue_wakes_it)
{
	start(NULL);
	post(a, RD_WRITE, 1, 0, 10);
	end_tx(a);
	cr_assert(receives(b, a), "the first FPDU releases the responder's queue");
	post(a, RD_READ, 2, 0, 10);
	end_tx(a);
	cr_assert(receives(b, a), "a response is due");
	end_tx(b);
	receives(a, b);
	post(a, RD_WRITE, 3, 0, 10);
	end_tx(a);
	cr_assert_not(receives(b, a));
	finish();
}

Test(rdmap_order, each_read_request_that_arrives_is_counted)
{
	struct iw_params params = end_params();

	start(&params);
	cr_assert_eq(iw_requests(b->q), 0);
	post(a, RD_WRITE, 1, 0, 8);
	post(a, RD_READ, 2, 0, 8);
	post(a, RD_READ, 3, 0, 8);
	end_tx(a);
	receives(b, a);
	cr_assert_eq(iw_requests(b->q), 2);
	end_tx(b);
	receives(a, b);
	cr_assert_eq(iw_requests(b->q), 2);
	cr_assert_eq(iw_requests(a->q), 0);
	finish();
}

/* iw_rx() reports that a Read Response has made room. */
Test(rdmap_order, a_read_response_wakes_a_send_queue_that_waits_for_ord)
{
	struct iw_params params = end_params();
	struct iw_info info;

	params.ord = 1;
	start(&params);
	post(a, RD_READ, 1, 0, 10);
	post(a, RD_READ, 2, 0, 10);
	end_tx(a);
	iw_get_info(b->q, &info);
	cr_assert_eq(info.ird_used, 0);
	end_feed(b, a->wire, a->wire_len, 0, NULL);
	a->wire_len = 0;
	iw_get_info(b->q, &info);
	cr_assert_eq(info.ird_used, 1);
	end_tx(b);
	cr_assert(receives(a, b));
	finish();
}

Test(rdmap_order, a_fenced_request_waits_for_all_reads_before_it)
{
	uint8_t op[64];

	start(NULL);
	post(a, RD_READ, 1, 0, 10);
	post(a, RD_READ, 2, 100, 10);
	post(a, RD_WRITE, 3, 0, 8)->flags |= RD_FENCE;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_BLOCKED);
	cr_assert_eq(sent(a, op), 2);
	read_response(a, ma->stag, ma->base, 10);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_BLOCKED);
	cr_assert_eq(sent(a, op), 0);
	read_response(a, ma->stag, ma->base + 100, 10);
	end_tx(a);
	cr_assert_eq(sent(a, op), 1);
	cr_assert_eq(op[0], RDMAP_WRITE);
	cr_assert_eq(a->nsend, 3);
	finish();
}

Test(rdmap_order, the_responder_holds_its_queue_until_the_first_fpdu_rfc5044_7_1_2)
{
	uint8_t op[64];

	start(NULL);
	post(b, RD_WRITE, 1, 0, 8);
	cr_assert_eq(iw_tx(b->q, 0, 64), IW_TX_BLOCKED);
	cr_assert_eq(sent(b, op), 0);
	post(a, RD_WRITE, 2, 0, 8);
	end_tx(a);
	end_feed(b, a->wire, a->wire_len - 1, 0, NULL);
	cr_assert_eq(iw_tx(b->q, 0, 64), IW_TX_BLOCKED, "not a whole FPDU yet");
	end_feed(b, a->wire + a->wire_len - 1, 1, 0, NULL);
	a->wire_len = 0;
	end_tx(b);
	cr_assert_eq(sent(b, op), 1);
	finish();
}

/* The engine releases responders whose initiator never sends. */
Test(rdmap_order, the_responder_is_released_before_the_first_fpdu_rfc5044_7_1_2)
{
	uint8_t op[64];

	start(NULL);
	cr_assert_not(iw_release(a->q), "the initiator was never held");
	post(b, RD_WRITE, 1, 0, 8);
	cr_assert_eq(iw_tx(b->q, 0, 64), IW_TX_BLOCKED);
	cr_assert(iw_release(b->q));
	cr_assert_not(iw_release(b->q), "once is enough");
	end_tx(b);
	cr_assert_eq(sent(b, op), 1);
	cr_assert_eq(op[0], RDMAP_WRITE);
	finish();
}

Test(rdmap_order, ready_to_receive_messages_rfc6581_9_2)
{
	static const uint8_t rtr[] = {MPA_RTR_SEND, MPA_RTR_WRITE, MPA_RTR_READ};

	for (unsigned i = 0; i < 3; i++) {
		struct iw_params params = end_params();

		params.rtr = rtr[i];
		start(&params);
		wr_sge(end_recv(a, 10), ma, 0, 100);
		wr_sge(end_recv(b, 20), mb, 0, 100);
		post(b, RD_SEND, 1, 500, 33);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nrecv, 1, "rtr %u: the server's Send must have come", rtr[i]);
		cr_assert_eq(b->nrecv, 0, "rtr %u: the client's program sent nothing", rtr[i]);
		cr_assert_eq(a->nsend, 0);
		post(a, RD_SEND, 2, 600, 44);
		post(a, RD_READ, 3, 700, 5);
		cr_assert(pair_run(&p));
		cr_assert_eq(a->nsend, 2, "rtr %u", rtr[i]);
		cr_assert_eq(b->nrecv, 1);
		cr_assert_eq(b->recv_wc[0].byte_len, 44);
		finish();
	}
}

/* Only an empty Send can be the ready-to-receive message. The program of the peer posted any other
 * one. */
Test(rdmap_order, a_first_send_with_bytes_is_no_ready_to_receive_message_rfc6581_9_2)
{
	struct wire_ddp d = {.last = true, .opcode = RDMAP_SEND, .qn = DDP_QN_SEND, .msn = 1};
	struct iw_params params = end_params();

	params.rtr = MPA_RTR_SEND;
	start(&params);
	wr_sge(end_recv(b, 20), mb, 0, 100);
	end_fpdu(b, &d, "x", 1);
	cr_assert_eq(b->nrecv, 1);
	cr_assert_eq(b->recv_wc[0].status, RD_SUCCESS);
	cr_assert_eq(b->recv_wc[0].byte_len, 1);
	cr_assert_eq(b->closes, 0);
	cr_assert(pair_fini(&p));
}

Test(rdmap_order, small_messages_share_a_record)
{
	start(NULL);
	for (unsigned i = 0; i < 34; i++)
		post(a, RD_WRITE, i, 64 * i, 64);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_IDLE);
	/* 2 + 14 + 64 + 4 bytes each: 17 in 1448. */
	cr_assert_eq(a->records, 2);
	cr_assert_eq(a->wire_len, 34 * 84);
	cr_assert_eq(a->nsend, 34);
	finish();
}

Test(rdmap_order, a_long_message_fills_the_record_before_it)
{
	start(NULL);
	post(a, RD_WRITE, 1, 0, 100);
	post(a, RD_WRITE, 2, 0, 2000);
	end_tx(a);
	cr_assert_eq(a->records, 2);
	cr_assert_eq(a->longest_record, 1448);
	finish();
}

/* A completion means that the transport stage has accepted the last byte. */
Test(rdmap_order, nothing_completes_while_the_ring_is_full)
{
	start(NULL);
	post(a, RD_WRITE, 1, 0, 64);
	post(a, RD_WRITE, 2, 0, 64);
	a->refuse_send = 2;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert_eq(a->nsend, 0);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert_eq(a->nsend, 0);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_IDLE);
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->records, 1);
	finish();
}

/* The Write does not complete when the Read before it completes, either. */
Test(rdmap_order, a_write_whose_record_is_held_does_not_complete_with_the_read_before_it)
{
	uint8_t op[64];

	start(NULL);
	post(a, RD_READ, 1, 0, 10);
	end_tx(a);
	cr_assert_eq(sent(a, op), 1);
	post(a, RD_WRITE, 2, 0, 64);
	a->refuse_send = 1;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	read_response(a, ma->stag, ma->base, 10);
	cr_assert_eq(a->nsend, 1);
	end_tx(a);
	cr_assert_eq(a->nsend, 2);
	finish();
}

Test(rdmap_order, a_request_waits_for_a_buffer)
{
	start(NULL);
	post(a, RD_WRITE, 1, 0, 5000);
	a->refuse_rec = 1;
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_NOBUF);
	cr_assert_eq(a->wire_len, 0);
	finish();
}

Test(rdmap_order, send_space_stops_and_resumes)
{
	struct iw_params params = end_params();

	params.send_space = 2000;
	start(&params);
	post(a, RD_WRITE, 1, 0, 20000);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_BLOCKED);
	cr_assert_eq(a->wire_len, 2 * 1448);
	cr_assert_not(iw_space(a->q, 896), "exactly none left");
	cr_assert(iw_space(a->q, 1));
	cr_assert_not(iw_space(a->q, 1), "it was not blocked any more");
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_BLOCKED);
	cr_assert_eq(a->wire_len, 3 * 1448);
	iw_space(a->q, 1 << 20);
	finish();
}

Test(rdmap_order, the_budget_counts_segments)
{
	start(NULL);
	post(a, RD_WRITE, 1, 0, 20000);
	cr_assert_eq(iw_tx(a->q, 0, 3), IW_TX_MORE);
	cr_assert_eq(a->wire_len, 3 * 1448);
	finish();
}

/* A message that has begun is not interrupted (RFC 5041 5.3); between messages, Read Responses and
 * the send queue alternate. */
Test(rdmap_order, read_responses_and_the_send_queue_take_turns)
{
	uint8_t op[64];
	unsigned n;

	start(NULL);
	post(a, RD_READ, 1, 0, 3000);
	post(a, RD_READ, 2, 0, 3000);
	end_tx(a);
	end_feed(b, a->wire, a->wire_len, 0, NULL);
	a->wire_len = 0;
	for (unsigned i = 0; i < 3; i++)
		post(b, RD_WRITE, i, 0, 3000);
	end_tx(b);
	n = sent(b, op);
	for (unsigned i = 0, responses = 0, writes = 0; i < n; i++) {
		responses += op[i] == RDMAP_READ_RESPONSE;
		writes += op[i] == RDMAP_WRITE;
		if (i >= n / 2)
			cr_assert(responses > 0 && writes > 0, "one of them starves");
	}
	p.e[0].errors = 0;
	cr_assert(pair_fini(&p));
}

Test(rdmap_order, emss_changes_take_effect_with_the_next_segment_rfc5044_4_5)
{
	struct iw_info info;

	start(NULL);
	post(a, RD_WRITE, 1, 0, 20000);
	cr_assert_eq(iw_tx(a->q, 0, 1), IW_TX_MORE);
	iw_emss(a->q, 1000);
	iw_get_info(a->q, &info);
	cr_assert_eq(info.mulpdu, 994);
	cr_assert_eq(iw_tx(a->q, 0, 1), IW_TX_MORE);
	cr_assert_eq(a->wire_len, 2448);
	finish();
}

Test(rdmap_order, local_invalidate_comes_in_its_turn)
{
	struct rd_mr *victim;

	start(NULL);
	victim = end_mr(a, 0x9000, 64, RD_ACC_REMOTE_READ, 1, 3);
	post(a, RD_READ, 1, 0, 10);
	end_post(a, RD_LOCAL_INV, 2)->imm = victim->stag;
	end_tx(a);
	cr_assert_not(victim->valid);
	cr_assert_eq(a->nsend, 0);
	cr_assert(pair_run(&p));
	cr_assert_eq(a->nsend, 2);
	cr_assert_eq(a->send_wc[1].opcode, RD_LOCAL_INV);
	finish();
}

Test(rdmap_order, read_with_invalidate_takes_the_sink_s_stag_when_done)
{
	struct rd_mr *sink;
	struct rd_wr *wr;

	start(NULL);
	sink = end_mr(a, 0x9000, 6400, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, 1, 3);
	wr = end_post(a, RD_READ_INV, 1);
	wr_sge(wr, sink, 0, 6400);
	wr->rkey = mb->stag;
	wr->remote_addr = mb->base;
	end_tx(a);
	cr_assert(sink->valid);
	cr_assert(pair_run(&p));
	cr_assert_not(sink->valid);
	cr_assert_eq(a->nsend, 1);
	cr_assert_eq(a->send_wc[0].status, RD_SUCCESS);
	finish();
}

/* Completed requests occupy no memory: the queues stay as long as the send queue is deep. */
Test(rdmap_order, a_client_that_posts_without_end_behind_a_read_is_held_back)
{
	unsigned before;

	start(NULL);
	post(a, RD_READ, 0, 0, 10);
	for (unsigned i = 1; i < 600; i++)
		post(a, RD_WRITE, i, 0, 8);
	for (unsigned i = 0; i < 100; i++)
		iw_tx(a->q, 0, 64);
	before = a->sq_head;
	cr_assert_leq(before, 1 + 64 + 8 + 1, "%u requests were taken", before);
	cr_assert_eq(iw_tx(a->q, 0, 64), IW_TX_BLOCKED);
	finish();
}
