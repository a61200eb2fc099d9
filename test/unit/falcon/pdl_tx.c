/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets that packet delivery sends, and when: PSNs (9.1.1), gating (9.1.2), order (9.1.3), AR
 * (9.1.3.1), pacing (10.3.5).
 */
#include <errno.h>

#include "rig.h"

static void
setup(void)
{
	rig_init();
}

static void
teardown(void)
{
	rig_end();
}

TestSuite(pdl_tx, .init = setup, .fini = teardown);

Test(pdl_tx, s9_1_1_each_window_has_its_psns)
{
	rig_start();
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_send(FALCON_PUSH_DATA, 2);
	rig_send(FALCON_PULL_REQUEST, 3);
	rig_send(FALCON_PUSH_DATA, 4);
	cr_assert_eq(rig_run(0), 4);
	rig_expect_rsns(0, (const uint32_t[]){1, 2, 3, 4}, 4);
	cr_assert_eq(rig.sent[0].h.psn, 100);
	cr_assert_eq(rig.sent[1].h.psn, 300);
	cr_assert_eq(rig.sent[2].h.psn, 101);
	cr_assert_eq(rig.sent[3].h.psn, 301);
}

Test(pdl_tx, s7_2_header_of_each_type)
{
	const struct wire_falcon *h;

	rig_start();
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_send(FALCON_PUSH_DATA, 2);
	rig_send(FALCON_PULL_DATA, 9);
	rig_run(0);
	h = &rig_last(FALCON_PULL_REQUEST)->h;
	cr_assert_eq(h->cid, 0x222222);
	cr_assert_eq(h->function, 0x333333);
	cr_assert_eq(h->proto, FALCON_RDMA);
	cr_assert_eq(h->request_len, 4096);
	cr_assert_eq(h->rbpsn, 1100);
	cr_assert_eq(h->dbpsn, 1300);
	h = &rig_last(FALCON_PUSH_DATA)->h;
	cr_assert_eq(h->request_len, 8);
	cr_assert_eq(rig_last(FALCON_PUSH_DATA)->len, 8);
	h = &rig_last(FALCON_PULL_DATA)->h;
	cr_assert_eq(h->rsn, 9);
	cr_assert_eq(rig_last(FALCON_PULL_DATA)->len, 8);
	cr_assert_eq(rig.sent[0].stamp, fa_ticks(rig.now));
}

Test(pdl_tx, s9_1_1_psns_wrap)
{
	rig.params.tx_data_psn = UINT32_MAX - 70;
	rig.params.tx_request_psn = UINT32_MAX - 3;
	rig_start();
	for (unsigned i = 0; i < 10; i++) {
		rig_pushes(i * 100, 100);
		for (unsigned k = 0; k < 8; k++)
			rig_send(FALCON_PULL_REQUEST, i * 100 + 1000 + k);
		rig_run(RTT);
		cr_assert_eq(rig.c->pdl.tx[PDL_DATA].next, UINT32_MAX - 70 + (i + 1) * 100);
		rig_back(UINT32_MAX - 3 + (i + 1) * 8, UINT32_MAX - 70 + (i + 1) * 100);
		cr_assert_eq(rig.packets, 0, "round %u", i);
	}
	cr_assert_eq(rig.dones, 1080);
}

Test(pdl_tx, s9_1_2_fcwnd_counts_from_the_base)
{
	rig.fcwnd = 4 * FA_CWND_ONE + 1023; /* the whole part counts */
	rig_start();
	rig_pushes(1, 10);
	cr_assert_eq(rig_run(0), 4);
	/* A gap at the base: packets behind it are acknowledged, but the gate counts from the
	 * base. */
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_ack = {0xe},
		.data_rx = {0xe}});
	cr_assert_eq(rig_run(RTT), 0);
	rig_back(100, 302);
	cr_assert_eq(rig_run(0), 2);
	cr_assert_eq(rig.sent[rig.sents - 1].h.psn, 305);
}

Test(pdl_tx, s9_1_2_fcwnd_holds_for_each_window)
{
	rig.fcwnd = 2 * FA_CWND_ONE;
	rig.params.ordered = false;
	rig_start();
	for (unsigned i = 0; i < 5; i++) {
		rig_send(FALCON_PULL_REQUEST, 2 * i);
		rig_send(FALCON_PUSH_DATA, 2 * i + 1);
	}
	cr_assert_eq(rig_run(0), 4);
	rig_back(102, 300);
	cr_assert_eq(rig_run(0), 2);
	cr_assert_eq(rig_count(FALCON_PULL_REQUEST), 4);
}

Test(pdl_tx, s9_1_2_fcwnd_holds_pull_data_back)
{
	rig.fcwnd = 2 * FA_CWND_ONE;
	rig_start();
	for (unsigned i = 0; i < 5; i++)
		rig_send(FALCON_PULL_DATA, 1 + i);
	cr_assert_eq(rig_run(0), 2);
	rig_back(100, 301);
	cr_assert_eq(rig_run(0), 1);
	cr_assert_eq(rig_count(FALCON_PULL_DATA), 3);
}

Test(pdl_tx, s9_1_2_ncwnd_holds_requests_back)
{
	rig.ncwnd = 3 * FA_CWND_ONE;
	rig.params.ordered = false;
	rig_start();
	rig_pushes(1, 5);
	for (unsigned i = 0; i < 5; i++)
		rig_send(FALCON_PULL_REQUEST, 11 + i);
	cr_assert_eq(rig_run(0), 6); /* three in each window: RORC and DORC */
	cr_assert_eq(rig_count(FALCON_PUSH_DATA), 3);
	/* Acknowledged out of order, it no longer counts. */
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_ack = {2},
		.data_rx = {2},
		.req_map = 6});
	cr_assert_eq(rig_run(0), 3);
	cr_assert_eq(rig_count(FALCON_PUSH_DATA), 4);
	cr_assert_eq(rig_count(FALCON_PULL_REQUEST), 5);
}

Test(pdl_tx, cr2_pull_data_is_never_held_back_by_ncwnd)
{
	rig.ncwnd = FA_CWND_ONE;
	rig_start();
	rig_pushes(1, 4);
	for (unsigned i = 0; i < 4; i++)
		rig_send(FALCON_PULL_DATA, 71 + i);
	cr_assert_eq(rig_run(0), 5);
	cr_assert_eq(rig_count(FALCON_PULL_DATA), 4);
	/* Nor in a retransmission: all are lost, one push may be outstanding. */
	rig_let(2 * rig.cfg.rto_initial_ns);
	cr_assert_eq(rig_count(FALCON_PULL_DATA), 8);
	cr_assert_eq(rig_count(FALCON_PUSH_DATA), 2);
}

Test(pdl_tx, s9_1_2_orrc_gates_retransmissions)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 6);
	rig_run(0);
	rig.ncwnd = 2 * FA_CWND_ONE;
	rig_back(100, 300);
	from = rig.sents;
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	rig_expect_rsns(from, (const uint32_t[]){1, 2}, 2);
	cr_assert(rig.sent[from].again);
	/* One of the two is acknowledged: one more may go. */
	rig_back(100, 301);
	from = rig.sents;
	rig_run(0);
	rig_expect_rsns(from, (const uint32_t[]){3}, 1);
	/* Lost again, they are eligible again and do not count: 2 and 3 go first. */
	rig_back(100, 301);
	from = rig.sents;
	rig_let(3 * rig.cfg.rto_min_ns);
	rig_expect_rsns(from, (const uint32_t[]){2, 3}, 2);
	/* DORRC returns to zero with the window. */
	rig_back(100, 306);
	cr_assert_eq(rig.c->pdl.tx[PDL_DATA].orrc, 0);
	cr_assert_eq(rig.c->pdl.tx[PDL_DATA].orc, 0);
}

Test(pdl_tx, s9_1_2_fcwnd_gates_retransmissions)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 6);
	rig_run(0);
	rig.fcwnd = 2 * FA_CWND_ONE;
	rig_back(100, 300);
	from = rig.sents;
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	rig_expect_rsns(from, (const uint32_t[]){1, 2}, 2);
	/* The base moves by one: one more packet is within fcwnd. */
	rig_back(100, 301);
	from = rig.sents;
	rig_run(0);
	rig_expect_rsns(from, (const uint32_t[]){3}, 1);
	rig_back(100, 306);
}

/* A Resync takes the place of its packet in both windows. */
Test(pdl_tx, s9_1_8_a_resync_waits_for_fcwnd_and_ncwnd)
{
	static const uint32_t fcwnd[] = {2, 256}, ncwnd[] = {256, 1};

	for (unsigned i = 0; i < SK_ARRAY_LEN(fcwnd); i++) {
		struct wire_falcon nack = {.type = FALCON_NACK,
			.rbpsn = 100,
			.dbpsn = 300,
			.nack_code = FALCON_NACK_CIE};

		if (i > 0)
			rig_init();
		rig_start();
		rig_pushes(1, 3);
		rig_run(0);
		rig.fcwnd = fcwnd[i] * FA_CWND_ONE;
		rig.ncwnd = ncwnd[i] * FA_CWND_ONE;
		rig_back(100, 300);
		for (nack.psn = 301; nack.psn <= 302; nack.psn++)
			rig_in(nack);
		rig_run(0);
		cr_assert_eq(rig_count(FALCON_RESYNC), 1, "row %u", i);
		cr_assert_eq(rig_last(FALCON_RESYNC)->h.psn, 301);
		rig_back(100, 302);
		rig_run(0);
		cr_assert_eq(rig_count(FALCON_RESYNC), 2, "row %u", i);
		rig_back(100, 303);
		if (i == 0)
			rig_end();
	}
}

Test(pdl_tx, s9_1_3_ordered_sends_by_rsn_across_windows)
{
	rig.fcwnd = 2 * FA_CWND_ONE;
	rig_start();
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_send(FALCON_PULL_REQUEST, 2);
	rig_send(FALCON_PULL_REQUEST, 3);
	rig_send(FALCON_PUSH_DATA, 4);
	rig_send(FALCON_PUSH_DATA, 5);
	/* RSN 3 waits for the request window, so 4 waits, though its window is open. */
	cr_assert_eq(rig_run(0), 2);
	rig_back(101, 300);
	rig_run(0);
	rig_expect_rsns(0, (const uint32_t[]){1, 2, 3, 4, 5}, 5);
}

Test(pdl_tx, s9_1_3_unordered_windows_do_not_wait_for_each_other)
{
	rig.fcwnd = 2 * FA_CWND_ONE;
	rig.params.ordered = false;
	rig_start();
	for (unsigned i = 1; i <= 3; i++)
		rig_send(FALCON_PULL_REQUEST, i);
	rig_send(FALCON_PUSH_DATA, 4);
	rig_run(0);
	rig_expect_rsns(0, (const uint32_t[]){1, 2, 4}, 3);
}

Test(pdl_tx, s9_1_5_ordered_sends_again_by_rsn_across_windows)
{
	unsigned from;

	rig_start();
	rig_send(FALCON_PUSH_DATA, UINT32_MAX - 1); /* RSNs wrap, too */
	rig_send(FALCON_PULL_REQUEST, UINT32_MAX);
	rig_send(FALCON_PUSH_DATA, 0);
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_run(0);
	from = rig.sents;
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	rig_expect_rsns(from, (const uint32_t[]){UINT32_MAX - 1, UINT32_MAX, 0, 1}, 4);
	cr_assert_eq(rig.sent[from].h.psn, 300); /* the PSN of the first transmission */
}

Test(pdl_tx, s9_1_5_within_a_window_by_psn)
{
	unsigned from;

	rig_start();
	rig_pushes(1, 1);
	rig_send(FALCON_PULL_DATA, 900);
	rig_run(0);
	rig_pushes(2, 1);
	rig_send(FALCON_PULL_DATA, 901);
	rig_run(0);
	from = rig.sents;
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	cr_assert_eq(rig.sents, from + 4);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(rig.sent[from + i].h.psn, 300 + i);
}

Test(pdl_tx, s8_3_requests_and_pull_data_take_turns)
{
	unsigned data = 0;

	rig_start();
	rig_pushes(1, 6);
	for (unsigned i = 0; i < 6; i++)
		rig_send(FALCON_PULL_DATA, 71 + i);
	fa_stack_poll(rig.s, rig.now, 6);
	for (unsigned i = 0; i < rig.sents; i++)
		data += rig.sent[i].h.type == FALCON_PULL_DATA;
	cr_assert_eq(data, 3);
}

Test(pdl_tx, s3_1_a_window_never_exceeds_the_peers)
{
	rig.params.ordered = false;
	rig_start();
	rig_pushes(0, 200);
	for (unsigned i = 0; i < 100; i++)
		rig_send(FALCON_PULL_REQUEST, 1000 + i);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_PUSH_DATA), FA_DATA_WINDOW);
	cr_assert_eq(rig_count(FALCON_PULL_REQUEST), FA_REQUEST_WINDOW);
}

Test(pdl_tx, s3_1_a_larger_window_may_be_agreed)
{
	rig.params.tx_window = 256;
	rig_start();
	rig_pushes(0, 300);
	cr_assert_eq(rig_run(0), 256);
	rig_back(100, 556);
	cr_assert_eq(rig.dones, 256);
}

/* Asserts that of the packets since log entry `from`, only the last one has the AR bit. */
static void
only_last_asks(unsigned from, unsigned n)
{
	cr_assert_eq(rig.sents, from + n);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(rig.sent[from + i].h.ar, i == n - 1, "packet %u of %u", i, n);
}

Test(pdl_tx, s9_1_3_1_ar_once_in_a_burst_of_a_small_fcwnd)
{
	rig.cfg.ar_window = 4;
	rig.fcwnd = 4 * FA_CWND_ONE;
	rig_start();
	rig_pushes(1, 9);
	rig_run(0);
	only_last_asks(0, 4); /* the window is closed */
	rig_back(100, 304);
	rig_run(0);
	only_last_asks(4, 4);
	rig_back(100, 308);
	rig_run(0);
	only_last_asks(8, 1); /* nothing else is queued */
	rig_back(100, 309);
	rig_pushes(10, 3);
	rig_run(0);
	only_last_asks(9, 3);
}

Test(pdl_tx, s9_1_3_1_ar_on_a_part_of_the_packets)
{
	unsigned ar = 0;

	rig.cfg.ar_window = 2;
	rig.cfg.ar_percent = 10;
	rig_start();
	for (unsigned i = 0; i < 100; i++) {
		rig_pushes(i * 20, 20);
		rig_run(RTT);
		rig_back(100, 300 + (i + 1) * 20);
	}
	for (unsigned i = 0; i < rig.sents; i++)
		ar += rig.sent[i].h.ar;
	cr_assert(ar > 150 && ar < 260, "%u of 2000", ar);
}

Test(pdl_tx, s9_1_3_1_ar_switched_off)
{
	rig_start();
	rig_pushes(1, 200);
	rig_run(0);
	for (unsigned i = 0; i < rig.sents; i++)
		cr_assert_not(rig.sent[i].h.ar);
}

Test(pdl_tx, s9_1_3_1_ar_on_the_packet_that_closes_a_window)
{
	rig.cfg.ar_percent = 1;
	rig.fcwnd = 5 * FA_CWND_ONE;
	rig_start();
	rig.c->pdl.ar_gap = 1000;
	rig_pushes(1, 9);
	rig_run(0);
	cr_assert_eq(rig.sents, 5);
	cr_assert_not(rig.sent[3].h.ar);
	cr_assert(rig.sent[4].h.ar);
}

Test(pdl_tx, s10_3_5_below_one_packet_departures_are_spaced)
{
	uint64_t gap = 400 * FA_TICK_PS / 1000; /* 400 ticks */

	rig.fcwnd = FA_CWND_ONE / 2;
	rig.ipg = 400;
	rig_start();
	rig_pushes(1, 4);
	cr_assert_eq(rig_run(0), 1); /* one outstanding */
	cr_assert_eq(rig_run(gap * 2), 0);
	rig_back(100, 301);
	cr_assert_eq(rig_run(0), 1);
	rig_back(100, 302); /* acknowledged, but not before its time of departure */
	cr_assert_eq(rig_run(gap - 2 * US), 0);
	cr_assert(fa_stack_deadline(rig.s) <= rig.now + 4 * US);
	cr_assert_eq(rig_run(4 * US), 1);
	/* When the window is open again, immediately. */
	rig.fcwnd = 2 * FA_CWND_ONE;
	rig.ipg = 0;
	rig_back(100, 303);
	cr_assert_eq(rig_run(0), 1);
}

Test(pdl_tx, a_full_port_is_asked_again)
{
	rig_start();
	rig_pushes(1, 3);
	rig.output_rc = -EAGAIN;
	cr_assert_eq(rig_run(0), 0);
	cr_assert_eq(rig_reason(FA_OUTPUT_BUSY), 1);
	cr_assert_eq(fa_stack_deadline(rig.s), rig.now);
	cr_assert(fa_stack_ready(rig.s));
	rig.output_rc = 0;
	cr_assert_eq(rig_run(0), 3);
	cr_assert_not(fa_stack_ready(rig.s));
	rig_expect_rsns(0, (const uint32_t[]){1, 2, 3}, 3);
	cr_assert_eq(rig.sent[0].h.psn, 300);
}

Test(pdl_tx, a_packet_that_the_port_lost_is_sent_again)
{
	rig_start();
	rig_pushes(1, 1);
	rig.output_rc = -EIO;
	cr_assert_eq(rig_run(0), 1);
	rig.output_rc = 0;
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	cr_assert_eq(rig.sents, 1);
	cr_assert(rig.sent[0].again);
}

Test(pdl_tx, s8_3_connections_take_turns)
{
	struct fa_conn *other;
	unsigned mine = 0;

	rig_start();
	rig.params.peer_cid = 0x444444;
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &other), 0);
	rig_pushes(1, 64);
	rig.c = other;
	rig_pushes(1, 64);
	fa_stack_poll(rig.s, rig.now, 4 * PDL_TURN);
	for (unsigned i = 0; i < rig.sents; i++)
		mine += rig.sent[i].h.cid == 0x444444;
	cr_assert_eq(rig.sents, 4 * PDL_TURN);
	cr_assert_eq(mine, 2 * PDL_TURN);
}

Test(pdl_tx, the_state_of_a_connection_is_reported)
{
	struct fa_info info;

	rig.fcwnd = 4 * FA_CWND_ONE + FA_CWND_ONE / 2;
	rig.ncwnd = 2 * FA_CWND_ONE;
	rig_start();
	rig_pushes(1, 3);
	rig_send(FALCON_PULL_REQUEST, 4);
	fa_get_info(rig.c, &info);
	cr_assert_eq(info.fcwnd_milli, 4500);
	cr_assert_eq(info.ncwnd_milli, 2000);
	cr_assert_eq(info.rtt_ns, 0, "no round trip was measured");
	cr_assert_eq(info.delay_ns, 0);
	cr_assert_eq(info.rto_ns, rig.cfg.rto_initial_ns);
	cr_assert_eq(info.queued, 4);
	cr_assert(info.data_outstanding == 0 && info.request_outstanding == 0);
	rig_run(0);
	fa_get_info(rig.c, &info);
	cr_assert_eq(info.data_outstanding, 2); /* ncwnd */
	cr_assert_eq(info.request_outstanding, 0, "the request follows the pushes");
	cr_assert_eq(info.queued, 2);
	cr_assert_eq(info.packets_out, 2);
	cr_assert(info.packets_in == 0 && info.retransmits == 0 && !info.dead);
	rig.now += RTT;
	rig_back(100, 302);
	rig_run(0);
	fa_get_info(rig.c, &info);
	cr_assert_float_eq((double)info.rtt_ns, (double)RTT, 200.0);
	cr_assert(info.data_outstanding == 1 && info.request_outstanding == 1);
	cr_assert(info.acks_in == 1 && info.queued == 0 && info.packets_out == 4);
	rig_back(101, 303);
}
