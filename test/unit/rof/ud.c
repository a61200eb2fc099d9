/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams (6.6.3): many QPs over shared channels, and datagrams that the receiver cannot take. */
#include "script.h"

#include <criterion/criterion.h>
#include <string.h>

#include "../../support/absent.h"

#define CHANNELS 3
#define QPS      4

static struct script s;
static struct rof_qp *qp[QPS];
static struct rd_qp rd[QPS];
static struct rof_chan *chan[CHANNELS];

static struct rof_chan *
by_handle(void *ctx, struct rof_qp *q, uint32_t ah)
{
	return ah < CHANNELS ? chan[ah] : NULL;
}

static struct rof_qp *
by_number(void *ctx, struct rof_chan *c, uint32_t qpn)
{
	for (unsigned i = 0; i < QPS; i++)
		if (rd[i].qpn == qpn)
			return qp[i];
	return NULL;
}

/* Starts QPs 0x111, 0x112, ... and channels 0, 1, ... */
static void
start(uint32_t depth)
{
	script_init(&s, ROF_UD, ROF_ORDER_NONE, ROF_ERRORS_COMPLETE);
	s.st.ops.ud_chan = by_handle;
	s.st.ops.ud_qp = by_number;
	for (unsigned i = 0; i < QPS; i++) {
		rd[i] = s.rd;
		rd[i].qpn = SCRIPT_QPN + i;
		rd[i].caps.sq_depth = depth;
		qp[i] = rof_qp_create(&s.st, &rd[i], SCRIPT_QKEY);
		rof_qp_start_ud(qp[i], ROF_ORDER_NONE, ROF_ERRORS_COMPLETE, 1024);
	}
	for (unsigned i = 0; i < CHANNELS; i++)
		chan[i] = rof_chan_create(&s.st, &s.c->p, NULL);
}

static void
stop(void)
{
	for (unsigned i = 0; i < QPS; i++)
		if (qp[i] != NULL)
			rof_qp_destroy(qp[i]);
	for (unsigned i = 0; i < CHANNELS; i++)
		if (chan[i] != NULL)
			rof_chan_destroy(chan[i]);
	cr_assert(script_fini(&s));
}

static void
post(unsigned q, uint64_t id, uint32_t ah, uint32_t len)
{
	struct rd_wr *wr = script_post(&s, RD_SEND_IMM, id, 0, len);

	wr->ah = ah;
	wr->remote_qpn = 0x333;
	wr->remote_qkey = 0x444;
	wr->imm = id;
	rof_tx(qp[q], 0, 64);
}

static void
done(struct rof_chan *c, uint32_t rsn, uint8_t completion)
{
	struct fa_delivery d = {.type = FA_COMPLETION, .rsn = rsn, .completion = completion};

	rof_rx(c, 0, &d);
}

static void
arrive(uint32_t dest_qp, uint32_t qkey, uint32_t len)
{
	struct wire_rof h = {.opcode = ROF_UD | ROF_SEND_ONLY_IMM,
		.dest_qp = dest_qp,
		.qkey = qkey,
		.src_qp = 0xabcdef,
		.imm = 99,
		.se = true,
		.pad = wire_rof_pad(len)};

	script_request(&s, FA_PUSH, &h, len);
	cr_assert_eq(script_last(&s)->verdict, FA_TAKEN, "never refused, never RNR");
}

Test(rof_ud, a_qp_sends_through_the_channel_of_its_address_handle_rof_6_6_3)
{
	start(64);
	for (unsigned i = 0; i < 12; i++) {
		post(i % QPS, i, i % CHANNELS, 100 + i);
		cr_assert_eq(script_last(&s)->kind, ROF_MSG_PUSH);
		cr_assert_eq(script_last(&s)->h.opcode, ROF_UD | ROF_SEND_ONLY_IMM);
		cr_assert_eq(script_last(&s)->h.dest_qp, 0x333);
		cr_assert_eq(script_last(&s)->h.qkey, 0x444);
		cr_assert_eq(script_last(&s)->h.src_qp, SCRIPT_QPN + i % QPS);
		cr_assert_eq(script_last(&s)->h.sn, 1 + i / CHANNELS, "each channel counts");
	}
	for (unsigned i = 0; i < 12; i++)
		done(chan[i % CHANNELS], SCRIPT_RSN + i / CHANNELS, FA_DONE);
	cr_assert_eq(s.nsend, 12);
	for (unsigned i = 0; i < 12; i++) {
		cr_assert_eq(s.send_wc[i].status, RD_SUCCESS);
		cr_assert_eq(s.send_wc[i].qpn, SCRIPT_QPN + s.send_wc[i].wr_id % QPS);
	}
	stop();
}

Test(rof_ud, a_datagram_lands_behind_40_bytes_of_addresses_rof_8_3_10)
{
	const uint8_t *at;

	start(64);
	script_recv(&s, 7, 0, 200);
	arrive(SCRIPT_QPN + 2, SCRIPT_QKEY, 101);
	at = s.mem + SCRIPT_LOCAL;
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].qpn, SCRIPT_QPN + 2);
	cr_assert_eq(s.recv_wc[0].status, RD_SUCCESS);
	cr_assert_eq(s.recv_wc[0].byte_len, 40 + 101);
	cr_assert_eq(s.recv_wc[0].flags, RD_WC_GRH | RD_WC_IMM | RD_WC_SOLICITED);
	cr_assert_eq(s.recv_wc[0].imm, 99);
	cr_assert_eq(s.recv_wc[0].src_qp, 0xabcdef);
	cr_assert(at[0] == 0x6a && at[39] == 0x6a && at[40] == 0x5a && at[140] == 0x5a);
	cr_assert(script_untouched(&s, SCRIPT_LOCAL, 141), "the padding is not placed");
	stop();
}

/* ---- Several stages ---- */

static struct fa_buf *passed;
static uint8_t passed_grh[ROF_GRH_LEN];

/* The QP is on another stage than the channels. */
static struct rof_qp *
elsewhere(void *ctx, struct rof_chan *c, uint32_t qpn)
{
	return c == NULL ? by_number(ctx, c, qpn) : NULL;
}

static bool
pass(void *ctx, uint32_t qpn, struct fa_buf *buf, const uint8_t grh[ROF_GRH_LEN])
{
	if (qpn != SCRIPT_QPN + 1)
		return false;
	passed = buf;
	memcpy(passed_grh, grh, ROF_GRH_LEN);
	return true;
}

Test(rof_ud, a_datagram_for_a_qp_of_another_stage_is_passed_to_it)
{
	start(64);
	s.st.ops.ud_qp = elsewhere;
	s.st.ops.ud_pass = pass;
	script_recv(&s, 7, 0, 200);
	arrive(SCRIPT_QPN + 1, SCRIPT_QKEY, 101);
	cr_assert_eq(s.nrecv, 0, "not here");
	cr_assert_eq(rof_rx_passed(&s.st, passed, passed_grh), qp[1]);
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].qpn, SCRIPT_QPN + 1);
	cr_assert_eq(s.recv_wc[0].byte_len, ROF_GRH_LEN + 101);
	cr_assert_eq(s.mem[SCRIPT_LOCAL], 0x6a, "the addresses of its host connection");
	/* One that nobody takes is dropped by the stage that received it. */
	arrive(SCRIPT_QPN + 2, SCRIPT_QKEY, 101);
	cr_assert_eq(s.st.counters[ROF_UD_NO_QP], 1);
	/* The QP may be gone when the datagram arrives at its stage, which does not pass it on. */
	arrive(SCRIPT_QPN + 1, SCRIPT_QKEY, 101);
	rof_qp_destroy(qp[1]);
	qp[1] = NULL;
	cr_assert_null(rof_rx_passed(&s.st, passed, passed_grh));
	cr_assert_eq(s.st.counters[ROF_UD_NO_QP], 2);
	stop();
}

Test(rof_ud, what_cannot_be_taken_is_dropped_and_counted_rof_8_3_10)
{
	start(64);
	arrive(0x999, SCRIPT_QKEY, 8);
	cr_assert_eq(s.st.counters[ROF_UD_NO_QP], 1);
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 8);
	cr_assert_eq(s.st.counters[ROF_UD_NO_RECEIVE], 1);
	script_recv(&s, 1, 0, 200);
	arrive(SCRIPT_QPN, SCRIPT_QKEY + 1, 8);
	cr_assert_eq(s.st.counters[ROF_UD_QKEY], 1);
	cr_assert_eq(s.rq_head, 0, "a wrong Q_Key takes no receive");
	rof_disconnect(qp[1]);
	arrive(SCRIPT_QPN + 1, SCRIPT_QKEY, 8);
	cr_assert_eq(s.st.counters[ROF_UD_NO_QP], 2, "in error");
	cr_assert(script_untouched(&s, 0, 0));
	stop();
}

Test(rof_ud, a_receive_that_is_too_small_or_wrong_completes_in_error)
{
	start(64);
	script_recv(&s, 1, 0, 47);
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 8);
	cr_assert_eq(s.recv_wc[0].status, RD_LOC_LEN_ERR);
	script_recv(&s, 2, SCRIPT_REGION - 20, 100);
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 8);
	cr_assert_eq(s.recv_wc[1].status, RD_LOC_PROT_ERR);
	cr_assert_eq(s.st.counters[ROF_RECEIVE_FAULT], 2);
	cr_assert_eq(qp[0]->phase, ROF_PHASE_OPEN);
	cr_assert(script_untouched(&s, 0, 0));
	stop();
}

Test(rof_ud, pulls_and_packets_of_other_transports_are_answered_and_counted)
{
	struct wire_rof h = {.opcode = ROF_READ_REQUEST, .dest_qp = SCRIPT_QPN};

	start(64);
	script_request(&s, FA_PULL, &h, 0);
	cr_assert_eq(script_last(&s)->kind, ROF_MSG_ANSWER, "Falcon keeps no pull for ever");
	cr_assert_eq(script_last(&s)->len, 0);
	h.opcode = ROF_SEND_ONLY;
	script_request(&s, FA_PUSH, &h, 8);
	cr_assert_eq(script_last(&s)->verdict, FA_TAKEN);
	cr_assert_eq(s.st.counters[ROF_BAD_OPCODE], 2);
	stop();
}

Test(rof_ud, what_no_datagram_can_be_is_refused_here_rof_6_4)
{
	start(64);
	post(0, 0, CHANNELS, 8);
	cr_assert_eq(s.send_wc[0].status, RD_LOC_QP_OP_ERR, "no such handle");
	post(0, 1, 0, 1025);
	cr_assert_eq(s.send_wc[1].status, RD_LOC_LEN_ERR, "one MTU");
	chan[1]->p.mtu = 512;
	post(0, 2, 1, 513);
	cr_assert_eq(s.send_wc[2].status, RD_LOC_LEN_ERR, "of the channel, if that is less");
	script_post(&s, RD_WRITE, 3, 0, 8);
	script_post(&s, RD_READ, 4, 0, 8);
	rof_tx(qp[0], 0, 8);
	cr_assert_eq(s.send_wc[3].status, RD_LOC_QP_OP_ERR);
	cr_assert_eq(s.send_wc[4].status, RD_LOC_QP_OP_ERR);
	cr_assert_eq(s.requests, 0);
	post(0, 5, 1, 512);
	cr_assert_eq(s.requests, 1, "the QP goes on");
	stop();
}

/* Falcon refuses where a reliable QP would have had no credits (Falcon 8.2.3): the datagram is
 * lost, as on a network. */
Test(rof_ud, what_falcon_has_no_room_for_is_lost_falcon_8_2_3)
{
	start(64);
	post(0, 0, 0, 8);
	post(0, 1, 0, 8);
	done(chan[0], SCRIPT_RSN, FA_LOCAL_RESOURCE);
	done(chan[0], SCRIPT_RSN + 1, FA_TARGET_CIE);
	cr_assert_eq(s.nsend, 2);
	cr_assert_eq(s.send_wc[0].status, RD_SUCCESS);
	cr_assert_eq(s.send_wc[1].status, RD_SUCCESS);
	cr_assert_eq(s.st.counters[ROF_UD_LOST], 2);
	cr_assert_eq(qp[0]->phase, ROF_PHASE_OPEN);
	stop();
}

/* A send queue whose requests are all outstanding continues when one of them is done. */
Test(rof_ud, a_full_qp_is_woken_by_what_completes)
{
	start(16);
	for (unsigned i = 0; i < 17; i++)
		post(0, i, i % 2, 8);
	cr_assert_eq(s.requests, 16);
	cr_assert_eq(rof_tx(qp[0], 0, 8), ROF_TX_BLOCKED);
	cr_assert_null(rof_chan_wake(chan[0]));
	done(chan[0], SCRIPT_RSN, FA_DONE);
	cr_assert_eq(rof_chan_wake(chan[0]), qp[0]);
	cr_assert_eq(rof_tx(qp[0], 0, 8), ROF_TX_IDLE);
	cr_assert_eq(s.requests, 17);
	stop();
}

/* Hundreds of outstanding datagrams fill a channel: QPs wait in turn. */
Test(rof_ud, a_full_channel_wakes_in_turn)
{
	unsigned under_way = 0;

	start(ROF_TXNS_MAX);
	while (under_way < ROF_TXNS_MAX) {
		for (unsigned i = 0; i < 128; i++)
			script_post(&s, RD_SEND, 0, 0, 8)->ah = 0;
		rof_tx(qp[0], 0, 128);
		under_way += 128;
	}
	cr_assert_eq(s.requests, ROF_TXNS_MAX);
	for (unsigned q = 1; q < 4; q++) {
		/* this harness has one queue for all QPs: each takes the next request */
		post(q, q, 0, 8);
		cr_assert_eq(rof_tx(qp[q], 0, 1), ROF_TX_BLOCKED);
	}
	cr_assert_eq(rof_chan_wakes(chan[0], 16), 0);
	cr_assert_null(rof_chan_wake(chan[0]));
	done(chan[0], SCRIPT_RSN, FA_DONE);
	cr_assert_eq(rof_chan_wakes(chan[0], 16), 1);
	cr_assert_eq(rof_chan_wake(chan[0]), qp[1], "the first that waited is the first");
	cr_assert_null(rof_chan_wake(chan[0]), "there is no room for another one");
	cr_assert_eq(rof_chan_wakes(chan[0], 16), 1, "QP 1 has not used it yet");
	cr_assert_eq(rof_chan_wake(chan[0]), qp[2]);
	cr_assert_eq(rof_tx(qp[2], 0, 1), ROF_TX_MORE);
	cr_assert_eq(rof_tx(qp[1], 0, 1), ROF_TX_BLOCKED, "another one was faster");
	done(chan[0], SCRIPT_RSN + 1, FA_DONE);
	done(chan[0], SCRIPT_RSN + 2, FA_DONE);
	rof_disconnect(qp[3]);
	cr_assert_eq(rof_chan_wakes(chan[0], 1), 1);
	cr_assert_eq(rof_chan_wake(chan[0]), qp[1], "a QP that has gone waits no more");
	cr_assert_null(rof_chan_wake(chan[0]));
	stop();
}

/* A peer decides how many datagrams arrive. They free nothing that QPs wait for. */
Test(rof_ud, a_datagram_that_arrives_wakes_no_qp_that_waits_for_room)
{
	struct fa_delivery d = {.type = FA_COMPLETION, .rsn = SCRIPT_RSN + 1};

	start(ROF_TXNS_MAX);
	for (unsigned n = 0; n < ROF_TXNS_MAX; n += 128) {
		for (unsigned i = 0; i < 128; i++)
			script_post(&s, RD_SEND, 0, 0, 8)->ah = 0;
		rof_tx(qp[0], 0, 128);
	}
	post(1, 1, 0, 8);
	cr_assert_eq(rof_tx(qp[1], 0, 1), ROF_TX_BLOCKED);
	cr_assert_not(rof_rx_kicks(chan[0]), "rof_rx() of a push returns this");
	cr_assert_not(rof_rx(chan[0], 0, &d), "the oldest one is outstanding");
	d.rsn = SCRIPT_RSN;
	cr_assert(rof_rx(chan[0], 0, &d));
	stop();
}

/* Without the link behind QP 1, any walk over the QPs that wait ends the test. */
Test(rof_ud, a_qp_that_ends_visits_no_others_that_wait)
{
	struct rof_qp *next;

	start(64);
	for (unsigned i = 0; i < QPS; i++)
		rof_chan_wait(chan[0], qp[i]);
	next = TAILQ_NEXT(qp[1], of_waiting);
	TAILQ_NEXT(qp[1], of_waiting) = NULL;
	rof_disconnect(qp[3]);
	TAILQ_NEXT(qp[1], of_waiting) = next;
	rof_chan_lose(chan[0]);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(rof_chan_wake(chan[0]), qp[i]);
	cr_assert_null(rof_chan_wake(chan[0]));
	stop();
}

/* Channels outlive QPs, and QPs channels. */
Test(rof_ud, a_qp_goes_while_its_datagrams_are_under_way)
{
	start(64);
	post(0, 0, 0, 8);
	post(1, 1, 0, 8);
	post(2, 2, 1, 8);
	rof_qp_destroy(qp[0]);
	qp[0] = NULL;
	rof_disconnect(qp[2]);
	cr_assert_eq(s.nsend, 1);
	cr_assert_eq(s.send_wc[0].status, RD_WR_FLUSH_ERR);
	done(chan[0], SCRIPT_RSN, FA_DONE);
	done(chan[1], SCRIPT_RSN, FA_TARGET_CIE);
	cr_assert_eq(s.nsend, 1, "no QP has them");
	done(chan[0], SCRIPT_RSN + 1, FA_DONE);
	cr_assert_eq(s.nsend, 2);
	cr_assert_eq(s.send_wc[1].wr_id, 1);
	cr_assert_eq(s.st.counters[ROF_BAD_RESPONSE], 0);
	stop();
}

/* Without the array of channel 1, any visit of its transactions ends the test. */
Test(rof_ud, the_end_of_a_qp_visits_no_datagram_of_others)
{
	struct rof_txn *txns;

	start(64);
	for (unsigned i = 0; i < 8; i++)
		post(1 + i % 2, i, 1, 8);
	post(0, 8, 0, 8);
	txns = chan[1]->txns;
	chan[1]->txns = NULL;
	rof_disconnect(qp[0]);
	rof_qp_destroy(qp[0]);
	qp[0] = NULL;
	rof_qp_destroy(qp[3]);
	qp[3] = NULL;
	chan[1]->txns = txns;
	cr_assert_eq(s.nsend, 1);
	for (unsigned i = 0; i < 8; i++)
		done(chan[1], SCRIPT_RSN + i, FA_DONE);
	cr_assert_eq(s.nsend, 9);
	stop();
}

/* The datagrams of two QPs alternate while the array of transactions grows. */
Test(rof_ud, a_qp_goes_after_the_array_of_its_datagrams_has_grown)
{
	const unsigned all = 4 * ROF_TXNS_MIN;

	start(all);
	for (unsigned i = 0; i < all; i++) {
		post(i % 2, i, 0, 8);
		if (i % 8 == 3)
			done(chan[0], SCRIPT_RSN + i - 1, FA_DONE);
	}
	cr_assert_eq(chan[0]->txn_cap, all);
	rof_qp_destroy(qp[0]);
	qp[0] = NULL;
	for (unsigned i = 0; i < all; i++)
		if (i % 8 != 2)
			done(chan[0], SCRIPT_RSN + i, FA_DONE);
	cr_assert_eq(s.nsend, all / 8 + all / 2);
	for (unsigned i = all / 8; i < s.nsend; i++)
		cr_assert_eq(s.send_wc[i].qpn, SCRIPT_QPN + 1);
	cr_assert_eq(s.st.counters[ROF_BAD_RESPONSE], 0);
	stop();
}

Test(rof_ud, a_qp_goes_after_its_held_datagrams_got_a_connection)
{
	struct rof_chan_params open;

	start(64);
	rof_chan_hold(chan[0], 64);
	for (unsigned i = 0; i < 12; i++)
		post(i % 2, i, 0, i < 4 ? 1000 : 8);
	cr_assert_eq(s.requests, 0);
	open = chan[0]->p;
	open.mtu = 512;
	open.tx_rsn += 100;
	cr_assert(rof_chan_open(chan[0], &open));
	cr_assert_eq(s.nsend, 4, "lost: longer than the MTU");
	rof_chan_tx(chan[0]);
	cr_assert_eq(s.requests, 8);
	rof_qp_destroy(qp[0]);
	qp[0] = NULL;
	for (unsigned i = 0; i < 8; i++)
		done(chan[0], SCRIPT_RSN + 100 + i, FA_DONE);
	cr_assert_eq(s.nsend, 8);
	for (unsigned i = 4; i < 8; i++)
		cr_assert_eq(s.send_wc[i].wr_id, 2 * i - 3);
	cr_assert_eq(s.st.counters[ROF_BAD_RESPONSE], 0);
	stop();
}

Test(rof_ud, a_channel_goes_while_datagrams_are_under_way)
{
	start(64);
	post(0, 0, 0, 8);
	post(0, 1, 1, 8);
	rof_chan_destroy(chan[0]);
	chan[0] = NULL;
	cr_assert_eq(s.nsend, 1);
	cr_assert_eq(s.send_wc[0].wr_id, 0);
	cr_assert_eq(s.send_wc[0].status, RD_SUCCESS, "lost, as on a network");
	cr_assert_eq(s.st.counters[ROF_UD_LOST], 1);
	done(chan[1], SCRIPT_RSN, FA_DONE);
	cr_assert_eq(s.nsend, 2);
	stop();
}

/* A connection that ends leaves the channel without any memory to allocate. */
Test(rof_ud, a_channel_is_renewed_when_its_connection_ends)
{
	struct rof_chan_params p;

	start(64);
	p = chan[0]->p;
	post(0, 0, 0, 8);
	s.room = 0;
	post(1, 1, 0, 8);
	chan[0]->p.mtu = 512;
	rof_chan_lose(chan[0]);
	rof_chan_renew(chan[0], &p);
	s.room = UINT32_MAX;
	cr_assert_eq(s.nsend, 2);
	cr_assert_eq(s.st.counters[ROF_UD_LOST], 2);
	cr_assert(rof_chan_tx(chan[0]));
	cr_assert_eq(s.requests, 1, "nothing of the old connection is sent");
	cr_assert_eq(chan[0]->p.mtu, p.mtu);
	post(0, 2, 0, 8);
	cr_assert_eq(s.requests, 2);
	done(chan[0], SCRIPT_RSN, FA_DONE);
	cr_assert_eq(s.nsend, 3);
	cr_assert_eq(s.st.counters[ROF_BAD_RESPONSE], 0);
	stop();
}

/* QP 0 has as many requests outstanding as it can have, QP 1 waits for room, QP 2 only has a
 * datagram under way, and QP 3 has nothing. */
Test(rof_ud, a_channel_that_is_lost_names_the_qps_that_can_continue)
{
	start(ROF_REQS_MIN);
	post(2, 0, 0, 8);
	for (unsigned i = 0; i < ROF_REQS_MIN + 1; i++)
		post(0, 1 + i, i % 2, 8);
	cr_assert(qp[0]->blocked);
	rof_chan_wait(chan[0], qp[1]);
	rof_chan_lose(chan[0]);
	cr_assert_eq(s.st.counters[ROF_UD_LOST], 1 + ROF_REQS_MIN / 2);
	cr_assert_eq(rof_chan_wake(chan[0]), qp[0]);
	cr_assert_eq(rof_chan_wake(chan[0]), qp[1]);
	cr_assert_null(rof_chan_wake(chan[0]));
	rof_chan_destroy(chan[0]);
	chan[0] = NULL;
	cr_assert_eq(s.st.counters[ROF_UD_LOST], 1 + ROF_REQS_MIN / 2, "each completes once");
	rof_tx(qp[0], 0, 8);
	cr_assert_not(qp[0]->blocked);
	stop();
}

Test(rof_ud, a_channel_that_opens_with_a_small_mtu_names_the_qps_that_can_continue)
{
	struct rof_chan_params open;

	start(ROF_REQS_MIN);
	rof_chan_hold(chan[0], 64);
	post(1, 0, 0, 1000);
	for (unsigned i = 0; i < ROF_REQS_MIN + 1; i++)
		post(0, 1 + i, 0, i == 0 ? 1000 : 8);
	cr_assert(qp[0]->blocked);
	open = chan[0]->p;
	open.mtu = 512;
	cr_assert(rof_chan_open(chan[0], &open));
	cr_assert_eq(s.st.counters[ROF_UD_LOST], 2);
	cr_assert_eq(rof_chan_wake(chan[0]), qp[0]);
	cr_assert_null(rof_chan_wake(chan[0]));
	rof_chan_tx(chan[0]);
	rof_tx(qp[0], 0, 8);
	cr_assert_eq(s.requests, ROF_REQS_MIN);
	stop();
}

/* ---- Missing pages ---- */

static unsigned fetches;

static void
fetch(void *ctx, struct rd_qp *q, const uint8_t *at, uint64_t len)
{
	fetches++;
	cr_assert_eq(q, &rd[0]);
}

/* The first page of the local region is present, and the second one is not. */
static void
start_poor(struct absent *a)
{
	start(64);
	absent_init(a, 2 * SCRIPT_REGION);
	absent_provide(a, SCRIPT_REGION);
	s.extents[1].host = a->mem;
	s.extents[1].len = s.local.len = 2 * SCRIPT_REGION;
	s.st.ops.rd.fetch = fetch;
	fetches = 0;
}

Test(rof_ud, a_datagram_for_missing_memory_waits_and_no_other_qp_waits_for_it)
{
	struct absent a;

	start_poor(&a);
	script_recv(&s, 1, SCRIPT_REGION, 200);
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 100); /* taken: Falcon and the channel continue */
	script_recv(&s, 2, 0, 200);
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 50); /* behind the other one of its QP */
	cr_assert_eq(s.nrecv, 0);
	script_recv(&s, 3, 512, 200);
	arrive(SCRIPT_QPN + 1, SCRIPT_QKEY, 60);
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].wr_id, 3);
	cr_assert_eq(s.live, 0, "no buffer of Falcon waits");
	cr_assert_eq(fetches, 1);
	absent_provide(&a, 2 * SCRIPT_REGION);
	rof_pages(qp[0]);
	cr_assert_eq(s.nrecv, 3);
	cr_assert_eq(s.recv_wc[1].wr_id, 1);
	cr_assert_eq(s.recv_wc[1].byte_len, 140);
	cr_assert_eq(s.recv_wc[1].status, RD_SUCCESS);
	cr_assert_eq(s.recv_wc[2].wr_id, 2);
	cr_assert(a.mem[SCRIPT_REGION] == 0x6a && a.mem[SCRIPT_REGION + 139] == 0x5a);
	cr_assert_eq(s.st.late, 0);
	stop();
	absent_fini(&a);
}

Test(rof_ud, the_datagrams_that_wait_are_bounded_and_flushed)
{
	struct absent a;

	start_poor(&a);
	for (unsigned i = 0; i < ROF_LATE_MAX + 1; i++) {
		script_recv(&s, i, SCRIPT_REGION, 100);
		arrive(SCRIPT_QPN, SCRIPT_QKEY, 8);
	}
	cr_assert_eq(s.nrecv, 0);
	cr_assert_eq(s.st.counters[ROF_UD_NO_RECEIVE], 1);
	cr_assert_eq(s.rq_head, ROF_LATE_MAX, "the receive of the one that is dropped stays");
	rof_disconnect(qp[0]);
	cr_assert_eq(s.nrecv, ROF_LATE_MAX + 1);
	for (unsigned i = 0; i < s.nrecv; i++) {
		cr_assert_eq(s.recv_wc[i].wr_id, i);
		cr_assert_eq(s.recv_wc[i].status, RD_WR_FLUSH_ERR);
	}
	cr_assert_eq(s.st.late, 0);
	script_recv(&s, 100, SCRIPT_REGION, 100);
	stop();
	absent_fini(&a);
}

static int places;

static int
place_take(void *ctx, struct rof_qp *q)
{
	return places > 0 ? --places : -1;
}

static void
place_give(void *ctx, int user)
{
	places++;
}

/* A user's datagrams that wait have a share. One that finds no place is lost as on a network, and
 * the next one gets its receive. */
Test(rof_ud, a_datagram_without_a_place_to_wait_leaves_its_receive)
{
	struct absent a;

	start_poor(&a);
	s.st.ops.late_take = place_take;
	s.st.ops.late_give = place_give;
	places = 0;
	script_recv(&s, 1, SCRIPT_REGION, 200);
	script_recv(&s, 2, SCRIPT_REGION, 200);
	for (unsigned i = 0; i < 2; i++)
		arrive(SCRIPT_QPN, SCRIPT_QKEY, 100);
	cr_assert_eq(s.nrecv, 0);
	cr_assert_eq(s.st.counters[ROF_UD_NO_RECEIVE], 2);
	places = 1;
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 30);
	cr_assert_eq(places, 0);
	arrive(SCRIPT_QPN, SCRIPT_QKEY, 40);
	absent_provide(&a, 2 * SCRIPT_REGION);
	rof_pages(qp[0]);
	cr_assert_eq(places, 1);
	cr_assert_eq(s.nrecv, 1);
	cr_assert_eq(s.recv_wc[0].wr_id, 1);
	cr_assert_eq(s.recv_wc[0].status, RD_SUCCESS);
	cr_assert_eq(s.recv_wc[0].byte_len, 70);
	rof_disconnect(qp[0]);
	cr_assert_eq(s.nrecv, 2);
	cr_assert_eq(s.recv_wc[1].wr_id, 2);
	cr_assert_eq(s.recv_wc[1].status, RD_WR_FLUSH_ERR);
	stop();
	absent_fini(&a);
}

/* Posts a datagram from memory that is not registered between two good ones. */
static void
one_bad(uint8_t ordering, uint8_t errors)
{
	script_init(&s, ROF_UD, ordering, errors);
	for (unsigned i = 0; i < 3; i++) {
		struct rd_wr *wr = script_post(&s, RD_SEND, i, 0, 8);

		wr->sge[0].lkey ^= i == 1;
	}
	script_recv(&s, 9, 0, 64);
	rof_tx(s.q, 0, 8);
	for (unsigned i = 0; i < s.requests; i++)
		script_completion(&s, SCRIPT_RSN + i, FA_DONE, 0);
	cr_assert_eq(s.nsend, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct rd_wc *wc = &s.send_wc[i];

		cr_assert_eq(wc->status,
			wc->wr_id == 1                                 ? RD_LOC_PROT_ERR
			: errors == ROF_ERRORS_VERBS && wc->wr_id == 2 ? RD_WR_FLUSH_ERR
								       : RD_SUCCESS,
			"ordering %u errors %u: %lu has %u", ordering, errors, wc->wr_id,
			wc->status);
	}
}

Test(rof_ud, in_the_verbs_mode_a_fault_ends_the_qp_rof_6_4)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_WEAK; ordering++) {
		one_bad(ordering, ROF_ERRORS_VERBS);
		cr_assert_eq(s.requests, 1, "what is behind the fault is not sent");
		cr_assert_eq(s.errors, 1);
		cr_assert_eq(s.rd.state, RD_QP_ERR);
		cr_assert_eq(s.nrecv, 1);
		cr_assert_eq(s.recv_wc[0].status, RD_WR_FLUSH_ERR);
		cr_assert(script_fini(&s));
	}
}

Test(rof_ud, in_the_complete_in_error_mode_it_ends_the_datagram_rof_6_4)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		one_bad(ordering, ROF_ERRORS_COMPLETE);
		cr_assert_eq(s.requests, 2);
		cr_assert_eq(s.errors, 0);
		cr_assert_eq(s.rd.state, RD_QP_RTS);
		cr_assert_eq(s.nrecv, 0);
		cr_assert(script_fini(&s));
	}
}
