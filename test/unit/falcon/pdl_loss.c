/* SPDX-License-Identifier: BSD-3-Clause */
/* Early retransmission (9.1.4), timeouts (9.1.5), the end of attempts (11), RACK and TLP. */
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

TestSuite(pdl_loss, .init = setup, .fini = teardown);

static void
eack(uint64_t received)
{
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_ack = {received & ~1ull},
		.data_rx = {received}});
}

/* ---- Distance ---- */

Test(pdl_loss, s9_1_4_a_hole_is_lost_by_its_distance)
{
	rig_start(); /* threshold 3 */
	rig_pushes(1, 10);
	rig_run(0);
	rig.now += 2 * RTT;
	eack(0xe); /* 300 missing, 303 the highest: distance 3 */
	cr_assert_eq(rig_run(0), 0);
	eack(0x1e); /* distance 4 */
	cr_assert_eq(rig_run(0), 1);
	cr_assert_eq(rig.sent[10].h.psn, 300);
	cr_assert(rig.sent[10].again);
	cr_assert_eq(rig_reason(FA_EARLY), 1);
}

/* Whether or not the packet is lost for this end: the bit describes the bitmaps. */
Test(pdl_loss, s10_6_2_1_eack_drop_is_the_distance_in_the_bitmaps)
{
	rig_start();
	rig_pushes(1, 10);
	rig_run(0);
	rig.now += 2 * RTT;
	rig_back(100, 300);
	cr_assert_not(rig.ev[0].eack_drop);
	eack(0xe); /* distance 3 */
	cr_assert(rig.ev[1].eack);
	cr_assert_not(rig.ev[1].eack_drop);
	eack(0x1e); /* distance 4 */
	cr_assert(rig.ev[2].eack_drop);
	cr_assert_eq(rig.ev[3].type, FA_RUE_RETRANSMIT);
	eack(0x1e); /* the packet is about to be retransmitted */
	cr_assert(rig.ev[4].eack_drop);
	rig_run(0);
	rig.now += RTT / 2;
	eack(0x1e); /* it was, and the bitmap is the same */
	cr_assert(rig.ev[5].eack_drop);
	eack(0x1f); /* it has arrived, and the ULP has not taken it */
	cr_assert_not(rig.ev[6].eack_drop);
	rig_back(100, 305);
	cr_assert_not(rig.ev[7].eack_drop);
}

Test(pdl_loss, s10_6_2_1_eack_drop_with_rack_and_of_requests_too)
{
	rig.cfg.rack = true;
	rig_start();
	for (unsigned i = 0; i < 8; i++)
		rig_send(FALCON_PULL_REQUEST, i);
	rig_run(0);
	rig.now += RTT / 4; /* RACK takes nothing for lost yet */
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .req_map = 0x8});
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .req_map = 0x18});
	cr_assert_eq(rig.evs, 2);
	cr_assert_not(rig.ev[0].eack_drop);
	cr_assert(rig.ev[1].eack_drop);
}

/* A packet that is missing on another path is that flow's loss. */
Test(pdl_loss, s10_6_2_1_eack_drop_is_of_the_events_flow)
{
	unsigned missing;

	rig.params.flows = 4;
	rig_start();
	rig_pushes(1, 10);
	rig_run(0);
	missing = rig.sent[0].path % 4;
	rig.now += 2 * RTT;
	for (unsigned flow = 0; flow < 4; flow++) {
		struct wire_falcon h = {.type = FALCON_EACK,
			.rbpsn = 100,
			.dbpsn = 300,
			.data_ack = {0x3e},
			.data_rx = {0x3e}};
		unsigned n = rig.evs;

		rig_in_as(h, flow, rig.cfg.ttl, false);
		cr_assert_eq(rig.ev[n].eack_drop, flow == missing, "flow %u", flow);
	}
}

Test(pdl_loss, s9_1_4_each_hole_before_the_highest)
{
	rig_start();
	rig_pushes(1, 20);
	rig_run(0);
	rig.now += 2 * RTT;
	eack(0x200a); /* 301, 303, 313 */
	rig_run(0);
	/* 300, 302, 304 to 309; 310 to 312 lie within the distance */
	cr_assert_eq(rig.sents - 20, 8);
	cr_assert_eq(rig.sent[20].h.psn, 300);
	cr_assert_eq(rig.sent[21].h.psn, 302);
	cr_assert_eq(rig.sent[27].h.psn, 309);
}

Test(pdl_loss, s9_1_4_not_twice_within_a_round_trip)
{
	rig_start();
	rig_pushes(1, 10);
	rig_run(0);
	rig.now += 2 * RTT;
	eack(0x1e);
	cr_assert_eq(rig_run(0), 1);
	rig.now += RTT / 2;
	eack(0x3e);
	cr_assert_eq(rig_run(0), 0);
	rig.now += RTT;
	eack(0x7e);
	cr_assert_eq(rig_run(0), 1);
}

Test(pdl_loss, s9_1_4_the_request_map_too)
{
	rig_start();
	for (unsigned i = 0; i < 8; i++)
		rig_send(FALCON_PULL_REQUEST, i);
	rig_run(0);
	rig.now += 2 * RTT;
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .req_map = 0x20});
	rig_run(0);
	cr_assert_eq(rig.sents - 8, 2);
	cr_assert_eq(rig.sent[8].h.psn, 100);
	cr_assert_eq(rig.sent[9].h.psn, 101);
}

Test(pdl_loss, s9_1_4_uses_what_is_received_not_what_is_acknowledged)
{
	rig_start();
	rig_pushes(1, 10);
	rig_run(0);
	rig.now += 2 * RTT;
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.data_rx = {0x3ef}}); /* all but 304, and nothing acknowledged */
	rig_run(0);
	cr_assert_eq(rig.sents - 10, 1);
	cr_assert_eq(rig.sent[10].h.psn, 304);
}

/* ---- OWN ---- */

Test(pdl_loss, s9_1_4_own_sends_again_within_and_beyond_the_bitmap)
{
	rig.params.tx_window = 256;
	rig_start();
	rig_pushes(0, 140);
	rig_run(0);
	rig.now += 2 * RTT;
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.own_data = true,
		.data_rx = {~1ull, UINT64_MAX}});
	rig_run(0);
	/* The base, and 428 to 439, which were out of window. */
	cr_assert_eq(rig.sents - 140, 13);
	cr_assert_eq(rig.sent[140].h.psn, 300);
	cr_assert_eq(rig.sent[141].h.psn, 428);
	/* At most once in a round trip. */
	rig.now += RTT / 2;
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.own_data = true,
		.data_rx = {~1ull, UINT64_MAX}});
	cr_assert_eq(rig_run(0), 0);
}

Test(pdl_loss, s9_1_4_own_is_for_its_window)
{
	rig_start();
	rig_pushes(0, 2);
	rig_send(FALCON_PULL_REQUEST, 2);
	rig_run(0);
	rig.now += 2 * RTT;
	rig_in((struct wire_falcon){
		.type = FALCON_EACK, .rbpsn = 100, .dbpsn = 300, .own_request = true});
	rig_run(0);
	cr_assert_eq(rig.sents - 3, 1);
	cr_assert_eq(rig.sent[3].h.type, FALCON_PULL_REQUEST);
	cr_assert(rig.ev[0].own);
}

/* ---- Timeouts ---- */

Test(pdl_loss, s9_1_5_a_timeout_sends_the_same_psn_again)
{
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	rig_let(rig.cfg.rto_initial_ns - 4 * US);
	cr_assert_eq(rig.sents, 1);
	rig_let(8 * US);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(rig.sent[1].h.psn, 300);
	cr_assert_eq(rig.sent[1].len, 8);
	cr_assert_eq(rig.ev[0].type, FA_RUE_RETRANSMIT);
	cr_assert_eq(rig.ev[0].retransmit, FA_RUE_TIMEOUT);
	cr_assert_eq(rig.ev[0].retransmits, 1);
	/* The timer runs from the last transmission, and doubles. */
	rig_let(2 * rig.cfg.rto_initial_ns - 8 * US);
	cr_assert_eq(rig.sents, 2);
	rig_let(12 * US);
	cr_assert_eq(rig.sents, 3);
	cr_assert_eq(rig.ev[1].retransmits, 2);
}

Test(pdl_loss, s9_1_5_each_packet_has_its_timer)
{
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	rig.now += rig.cfg.rto_initial_ns / 2;
	rig_pushes(2, 1);
	rig_run(0);
	rig_let(rig.cfg.rto_initial_ns / 2 + 4 * US);
	cr_assert_eq(rig.sents, 3);
	cr_assert_eq(rig.sent[2].h.psn, 300);
	rig_let(rig.cfg.rto_initial_ns / 2);
	cr_assert_eq(rig.sents, 4);
	cr_assert_eq(rig.sent[3].h.psn, 301);
}

Test(pdl_loss, s9_1_5_an_ack_stops_the_timer)
{
	rig_start();
	rig_pushes(1, 2);
	rig_run(0);
	rig_back(100, 302);
	rig_let(4 * rig.cfg.rto_initial_ns);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(fa_stack_deadline(rig.s), SK_NEVER);
}

Test(pdl_loss, s11_the_last_attempt_is_followed_by_a_resync_and_that_by_death)
{
	unsigned pushes, resyncs;

	rig.cfg.max_retransmits = 3;
	rig_start();
	rig_pushes(1, 1);
	rig_send(FALCON_PULL_DATA, 9);
	rig_run(0);
	for (unsigned i = 0; i < 100 && !rig.deaths; i++)
		rig_let(5 * rig.cfg.rto_initial_ns);
	pushes = rig_count(FALCON_PUSH_DATA);
	resyncs = rig_count(FALCON_RESYNC);
	cr_assert_eq(pushes, 1 + 3);
	cr_assert_eq(resyncs, 2 * (1 + 3));
	cr_assert_eq(rig_last(FALCON_RESYNC)->h.resync_code, FALCON_RESYNC_RETRANSMISSIONS);
	cr_assert_eq(rig.deaths, 1);
	cr_assert_eq(rig.death_code, FA_DEAD_CONNECTION);
	cr_assert_eq(rig_reason(FA_GIVEN_UP), 1);
	/* All packets were returned first. */
	cr_assert_eq(rig.dones, 2);
	cr_assert_eq(rig.done[0].how, FA_DEAD_CONNECTION);
	/* 11: a dead connection drops packets, answers none, and ignores piggybacked bases. */
	rig_in((struct wire_falcon){.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 300,
		.psn = 1300,
		.request_len = 8,
		.ar = true});
	cr_assert_eq(rig_reason(FA_DEAD), 1);
	cr_assert_eq(rig_let(rig.cfg.rto_initial_ns), 0);
	cr_assert_eq(rig.rxs, 0);
}

Test(pdl_loss, s11_an_acknowledged_resync_goes_on)
{
	rig.cfg.max_retransmits = 2;
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	for (unsigned i = 0; i < 100 && !rig_count(FALCON_RESYNC); i++)
		rig_let(rig.cfg.rto_initial_ns);
	rig_back(100, 301);
	cr_assert_eq(rig.done[0].how, FA_LOCAL_TIMEOUT);
	rig_pushes(2, 1);
	rig_run(0);
	cr_assert_eq(rig.sent[rig.sents - 1].h.type, FALCON_PUSH_DATA);
	rig_back(100, 302);
	cr_assert_eq(rig.done[1].how, FA_DONE);
	cr_assert_eq(rig.deaths, 0);
}

Test(pdl_loss, s11_without_a_limit_it_never_ends)
{
	rig.cfg.max_retransmits = 0;
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	for (unsigned i = 0; i < 40; i++)
		rig_run(rig.cfg.rto_max_ns + rig.cfg.rto_initial_ns);
	cr_assert_eq(rig_count(FALCON_RESYNC), 0);
	cr_assert_eq(rig_count(FALCON_PUSH_DATA), 41);
	rig_back(100, 301);
	cr_assert_eq(rig.done[0].how, FA_DONE);
}

Test(pdl_loss, the_owner_may_give_a_connection_up)
{
	rig_start();
	rig_pushes(1, 200);
	rig_send(FALCON_PULL_REQUEST, 201);
	rig_run(0);
	fa_conn_fail(rig.c, rig.now, FA_REMOTE_ERROR);
	cr_assert_eq(rig.dones, 0); /* not during the call */
	rig_run(0);
	cr_assert_eq(rig.dones, 201);
	cr_assert_eq(rig.deaths, 1);
	cr_assert_eq(rig.death_code, FA_REMOTE_ERROR);
	fa_conn_fail(rig.c, rig.now, FA_REMOTE_ERROR);
	rig_run(0);
	cr_assert_eq(rig.deaths, 1);
}

/* ---- RACK ---- */

/* An EACK that echoes t1 of the packet sent `ago` ns before now. */
static void
rack_eack(uint64_t received, uint64_t ago)
{
	uint32_t t1 = fa_ticks(rig.now - ago);

	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 300,
		.t1 = t1,
		.t2 = 77,
		.data_ack = {received & ~1ull},
		.data_rx = {received}});
}

Test(pdl_loss, rack_a_packet_is_lost_when_a_later_one_came_and_time_has_passed)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	rig_pushes(2, 1);
	rig_run(2 * US);
	rig.now += RTT;
	rack_eack(2, RTT);           /* 301 arrived: a distance of 1 suffices, ... */
	cr_assert_eq(rig_run(0), 0); /* ... but 300 may have been overtaken */
	rig_let(RTT / 4 - 4 * US);
	cr_assert_eq(rig.sents, 2);
	rig_let(6 * US);
	cr_assert_eq(rig.sents, 3);
	cr_assert_eq(rig.sent[2].h.psn, 300);
	cr_assert_eq(rig_reason(FA_EARLY), 1);
}

Test(pdl_loss, rack_does_not_take_for_lost_what_was_sent_later)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 3); /* one burst, one time stamp */
	rig_run(0);
	rig.now += RTT;
	rack_eack(0x1, RTT); /* the first is with the ULP; 301 and 302 may be in flight */
	rig_let(RTT);
	cr_assert_eq(rig.sents, 3);
}

Test(pdl_loss, rack_finds_a_lost_retransmission)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	rig_pushes(2, 2);
	rig_run(US);
	rig_run(RTT);
	rack_eack(2, RTT);
	rig_let(RTT / 2);
	cr_assert_eq(rig.sents, 4); /* 300 is retransmitted, and lost again */
	rig_pushes(4, 2);
	rig_run(2 * US);
	rig_run(RTT);
	rack_eack(0xa, RTT); /* 303, sent after it, arrived */
	rig_let(RTT / 2);
	cr_assert(rig.sents > 6);
	cr_assert_eq(rig.sent[6].h.psn, 300);
}

/* Runs a gap whose packet arrives `arrives_after` ns after its retransmission. Returns how long
 * RACK waited. */
static uint64_t
rack_hole(uint64_t arrives_after)
{
	uint32_t psn = rig.c->pdl.tx[PDL_DATA].next;
	unsigned from = rig.sents;
	uint64_t start;

	rig_pushes(psn, 1);
	rig_run(0);
	rig_pushes(psn + 1, 1);
	rig_run(US);
	rig_run(RTT);
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = psn,
		.t1 = fa_ticks(rig.now - RTT),
		.t2 = 77,
		.data_ack = {2},
		.data_rx = {2}});
	start = rig.now;
	while (rig.sents < from + 3 && rig.now < start + 2 * RTT)
		rig_run(US / 2);
	cr_assert_eq(rig.sents, from + 3);
	start = rig.now - start;
	rig_run(arrives_after);
	rig_back(100, psn + 2);
	return start;
}

Test(pdl_loss, rack_learns_how_far_packets_are_overtaken)
{
	uint64_t first;

	rig.cfg.rack = true;
	rig_start();
	first = rack_hole(RTT);
	cr_assert(first <= RTT / 4 + 2 * US);
	/* Three times the original packet arrives. */
	for (unsigned i = 0; i < 3; i++)
		rack_hole(RTT / 4);
	cr_assert(rack_hole(RTT) > RTT - 4 * US);
	/* The allowance shrinks again. */
	for (unsigned i = 0; i < 3 * PDL_REO_PERSIST; i++)
		rack_hole(RTT);
	cr_assert(rack_hole(RTT) <= first + US);
}

Test(pdl_loss, rack_after_a_timeout_one_packet_asks_for_all)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 6);
	rig_run(0);
	rig_let(rig.cfg.rto_initial_ns / 2 + 4 * US); /* the tail loss probe */
	cr_assert_eq(rig_reason(FA_PROBE), 1);
	/* The timeout, and those of the others, which the first one precedes. */
	rig_let(4 * rig.cfg.rto_initial_ns);
	for (unsigned i = 6; i < rig.sents; i++)
		cr_assert_eq(rig.sent[i].h.psn, 300);
	cr_assert_geq(rig_reason(FA_TIMEOUT), 2);
	/* Its acknowledgement shows that the others are lost: all but 304, which arrived. */
	rig_in((struct wire_falcon){.type = FALCON_EACK,
		.rbpsn = 100,
		.dbpsn = 301,
		.t1 = rig.sent[rig.sents - 1].stamp,
		.t2 = fa_ticks(rig.now),
		.data_rx = {1 << 3}});
	rig.sents = 0;
	rig_let(rig.cfg.rto_min_ns / 2);
	rig_expect_rsns(0, (const uint32_t[]){2, 3, 4, 6}, 4);
	cr_assert_eq(rig_reason(FA_EARLY), 4);
}

Test(pdl_loss, rack_late_acknowledgements_cost_one_packet)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 60);
	rig_run(0);
	rig_let(2 * rig.cfg.rto_initial_ns - 8 * US);
	cr_assert_eq(rig_reason(FA_PROBE), 1);
	cr_assert_eq(rig_reason(FA_TIMEOUT), 1);
	rig_in((struct wire_falcon){.type = FALCON_BACK,
		.rbpsn = 100,
		.dbpsn = 360,
		.t1 = rig.sent[0].stamp,
		.t2 = fa_ticks(rig.now)});
	rig_let(4 * rig.cfg.rto_initial_ns);
	cr_assert_eq(rig.sents, 62);
}

/* An acknowledgement that was `wait` ns in the queue of the port. */
static void
back_after(uint32_t dbpsn, uint64_t wait)
{
	struct wire_falcon h = {.type = FALCON_BACK,
		.cid = rig.params.cid,
		.proto = rig.params.protocol,
		.rbpsn = 100,
		.dbpsn = dbpsn,
		.t1 = fa_ticks(rig.now - wait - RTT),
		.t2 = fa_ticks(rig.now - wait - RTT / 2)};
	struct fa_in in = {.hdr = &h, .ttl = rig.cfg.ttl, .stamp = h.t2, .waited = fa_ticks(wait)};

	fa_input(rig.c, rig.now, &in);
}

/* Makes `*c` the connection under test. */
static void
swap(struct fa_conn **c)
{
	struct fa_conn *now = rig.c;

	rig.c = *c;
	*c = now;
}

/* Acknowledges `psn`, which is the last packet, and left at `t0`. Of the round trip, the peer took
 * half. */
static void
ack_slowly(uint32_t psn, uint64_t t0)
{
	rig_in((struct wire_falcon){.type = FALCON_BACK,
		.rbpsn = 100,
		.dbpsn = psn + 1,
		.t1 = fa_ticks(t0),
		.t2 = fa_ticks((t0 + rig.now) / 2)});
	rig_run(0);
}

/* Ticks wrap after 563 s. After a pause round trips are ten times as long as before; no packet is
 * lost, though the acknowledgement of one arrives long after the next one was sent. */
static void
rack_after(uint64_t pause)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 1);
	rig_run(0);
	rig.now += RTT;
	rig_back(100, 301);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t t0;
		unsigned sents;

		rig_run(i == 0 ? pause : 1000000000);
		t0 = rig.now;
		rig_pushes(2 + 2 * i, 1);
		rig_run(0);
		rig_pushes(3 + 2 * i, 1);
		rig_run(150 * US);
		sents = rig.sents;
		rig.now += 50 * US;
		ack_slowly(301 + 2 * i, t0);
		rig.now += 150 * US;
		ack_slowly(302 + 2 * i, t0 + 150 * US);
		cr_assert_eq(rig.sents, sents, "pause %lu, turn %u", pause, i);
	}
}

Test(pdl_loss, rack_works_after_a_pause_of_any_length)
{
	static const uint64_t seconds[] = {200, 300, 500, 600, 900, 3600};

	for (unsigned i = 0; i < SK_ARRAY_LEN(seconds); i++) {
		if (i > 0) {
			rig_end();
			rig_init();
		}
		rack_after(seconds[i] * 1000000000);
	}
}

Test(pdl_loss, a_wait_in_hosts_that_other_connections_meet_is_no_loss)
{
	const uint64_t wait = 3000 * US;
	struct fa_params params = rig.params;
	struct fa_conn *other;

	rig.cfg.rack = true;
	rig_start();
	params.cid++;
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &params, &other), 0);
	rig_pushes(1, 1);
	rig_run(0);
	rig.now += RTT;
	rig_back(100, 301); /* the hosts are idle */
	rig_pushes(2, 1);
	rig_run(0);
	/* Now they are busy, as the acknowledgements of another connection show. */
	swap(&other);
	for (unsigned i = 1; i <= 12; i++) {
		rig_pushes(i, 1);
		rig_run(0);
		back_after(300 + i, wait);
	}
	swap(&other);
	rig.sents = 0;
	rig_let(2 * wait - 100 * US);
	cr_assert_eq(rig.sents, 0);
	rig_let(200 * US);
	cr_assert_eq(rig_reason(FA_PROBE), 1);
	/* When the hosts are idle again, a probe is due sooner. */
	back_after(302, 0);
	swap(&other);
	for (unsigned i = 13; i <= 112; i++) {
		rig_pushes(i, 1);
		rig_run(0);
		back_after(300 + i, 0);
	}
	swap(&other);
	rig_pushes(3, 1);
	rig.sents = 0;
	rig_let(wait / 4);
	cr_assert_eq(rig_reason(FA_PROBE), 2);
	back_after(303, 0);
}

Test(pdl_loss, a_peer_that_forges_times_delays_no_timeout_beyond_a_limit)
{
	rig.cfg.rack = true;
	rig_start();
	for (unsigned i = 1; i <= 50; i++) {
		rig_pushes(i, 1);
		rig_run(0);
		rig.now += RTT;
		back_after(300 + i, 900000 * US);
	}
	cr_assert_leq(rig.s->pdl.wait_ns, PDL_WAIT_MAX_NS);
	cr_assert_geq(rig.s->pdl.wait_ns, PDL_WAIT_MAX_NS - US);
}

Test(pdl_loss, tlp_probes_the_first_that_is_missing)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 3);
	rig_run(0);
	rig.now += RTT;
	rig_back(100, 301); /* a round trip is measured; the other two are lost */
	rig_let(PDL_PTO_MIN_NS - 4 * US);
	cr_assert_eq(rig.sents, 3);
	rig_let(8 * US);
	cr_assert_eq(rig.sents, 4);
	cr_assert_eq(rig.sent[3].h.psn, 301);
	cr_assert_eq(rig_reason(FA_PROBE), 1);
	/* After one probe the timeout follows. */
	rig_let(4 * PDL_PTO_MIN_NS);
	cr_assert_eq(rig.sents, 4);
}

Test(pdl_loss, tlp_waits_for_two_round_trips_and_the_delay_of_an_ack)
{
	uint64_t rtt = 3 * RTT, wait = 2 * rtt + rig.cfg.ack_delay_ns;

	cr_assert_gt(wait, PDL_PTO_MIN_NS + 10 * US);
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 2);
	rig_run(0);
	rig.now += rtt;
	rig_in((struct wire_falcon){.type = FALCON_BACK,
		.rbpsn = 100,
		.dbpsn = 301,
		.t1 = fa_ticks(rig.now - rtt),
		.t2 = 77});
	rig_let(wait - 4 * US);
	cr_assert_eq(rig.sents, 2);
	rig_let(8 * US);
	cr_assert_eq(rig.sents, 3);
	cr_assert_eq(rig_reason(FA_PROBE), 1);
	rig_back(100, 302);
}

Test(pdl_loss, tlp_one_probe_over_both_windows_by_rsn)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 1);
	rig_send(FALCON_PULL_REQUEST, 2);
	rig_pushes(3, 1);
	rig_run(0);
	rig.now += RTT;
	rig_back(100, 301);
	rig_let(2 * PDL_PTO_MIN_NS);
	cr_assert_eq(rig.sents, 4);
	cr_assert_eq(rig.sent[3].h.rsn, 2);
}

Test(pdl_loss, tlp_prefers_pull_data)
{
	rig.cfg.rack = true;
	rig_start();
	rig_send(FALCON_PULL_REQUEST, 1);
	rig_send(FALCON_PULL_DATA, 900);
	rig_run(0);
	rig.now += RTT;
	rig_back(100, 300);
	rig_let(2 * PDL_PTO_MIN_NS);
	cr_assert_eq(rig.sents, 3);
	cr_assert_eq(rig.sent[2].h.type, FALCON_PULL_DATA);
}

Test(pdl_loss, tlp_leaves_alone_what_the_ulp_has)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(1, 2);
	rig_run(0);
	rig.now += RTT;
	rack_eack(3, RTT);
	rig_let(rig.cfg.ulp_rto_ns / 2);
	/* 301 was acknowledged, 300 is with the ULP. */
	cr_assert_eq(rig.sents, 2);
	rig_back(100, 302);
}

/* ---- Data that the peer may have received ---- */

Test(pdl_loss, data_is_in_doubt_when_an_acknowledgement_may_be_under_way)
{
	rig_start();
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now), 0, "nothing was sent");
	rig_pushes(1, 3);
	rig_run(0);
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now), 3, "no round trip was measured");
	rig.c->pdl.flow[0].cc.rtt = RTT * 1000 / FA_TICK_PS;
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now), 0);
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now + RTT / 8 - 1000), 0);
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now + RTT / 8), 3);
	rig_let(2 * rig.cfg.rto_initial_ns);
	cr_assert(rig.sent[3].again, "the oldest was lost, the others may have arrived");
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now - 1), 3);
	rig_back(100, 303);
	cr_assert_eq(pdl_data_in_doubt(rig.c, rig.now), 0);
}
