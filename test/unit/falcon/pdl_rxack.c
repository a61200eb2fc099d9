/* SPDX-License-Identifier: BSD-3-Clause */
/* Outgoing acknowledgements: when, BACK or EACK, and their fields (9.1.6, 10.1). */
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

TestSuite(pdl_rxack, .init = setup, .fini = teardown);

static void
data_in(uint8_t type, uint32_t psn, bool ar)
{
	rig_in((struct wire_falcon){
		.type = type, .psn = psn, .rsn = psn, .ar = ar, .request_len = 8});
}

Test(pdl_rxack, s9_1_6_the_timer_coalesces)
{
	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, false);
	rig_run(rig.cfg.ack_delay_ns / 2);
	data_in(FALCON_PUSH_DATA, 1301, false); /* the timer is not restarted */
	cr_assert_eq(rig.sents, 0);
	cr_assert(fa_stack_deadline(rig.s) <= rig.now + rig.cfg.ack_delay_ns / 2 + 2 * US);
	rig_run(rig.cfg.ack_delay_ns / 2 + 2 * US);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.type, FALCON_BACK);
	cr_assert_eq(rig.sent[0].h.dbpsn, 1302);
	rig_let(1000 * US);
	cr_assert_eq(rig.sents, 1);
}

Test(pdl_rxack, the_count_ends_coalescing)
{
	rig.cfg.ack_count = 10;
	rig_start();
	for (unsigned i = 0; i < 9; i++)
		data_in(FALCON_PULL_DATA, 1300 + i, false);
	rig_run(0);
	cr_assert_eq(rig.sents, 0);
	data_in(FALCON_PULL_DATA, 1309, false);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
	/* The counter starts again. */
	for (unsigned i = 10; i < 19; i++)
		data_in(FALCON_PULL_DATA, 1300 + i, false);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
}

/* As a rule, the ULP takes pushes soon, and one acknowledgement says both. */
Test(pdl_rxack, what_the_ulp_has_not_taken_is_reported_later_than_what_it_has)
{
	rig.ulp_acks = false;
	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, false);
	rig_let((PDL_RECEIVED_DELAYS - 1) * rig.cfg.ack_delay_ns);
	cr_assert_eq(rig.sents, 0);
	rig_let(rig.cfg.ack_delay_ns + 4 * US);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.type, FALCON_EACK);
	cr_assert_eq(rig.sent[0].h.data_rx[0], 1);
	/* The delay of an acknowledgement is the usual one, also where a later one is due. */
	data_in(FALCON_PUSH_DATA, 1301, false);
	pdl_ulp_ack(rig.c, rig.now, 1300);
	rig_let(rig.cfg.ack_delay_ns + 4 * US);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(rig.sent[1].h.dbpsn, 1301);
	cr_assert_eq(rig.sent[1].h.data_rx[0], 1);
	pdl_ulp_ack(rig.c, rig.now, 1301);
}

Test(pdl_rxack, a_push_counts_half_before_the_ulp_took_it)
{
	rig.ulp_acks = false;
	rig.cfg.ack_count = 4;
	rig_start();
	for (unsigned i = 0; i < 7; i++)
		data_in(FALCON_PUSH_DATA, 1300 + i, false);
	rig_run(0);
	cr_assert_eq(rig.sents, 0);
	pdl_ulp_ack(rig.c, rig.now, 1300);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
}

Test(pdl_rxack, duplicates_and_too_early_packets_count)
{
	rig.cfg.ack_count = 4;
	rig_start();
	for (unsigned i = 0; i < 2; i++) {
		data_in(FALCON_PUSH_DATA, 1200, true); /* AR of a dropped packet is ignored */
		data_in(FALCON_PUSH_DATA, 1600, true);
		if (!i)
			rig_run(0);
		cr_assert_eq(rig.sents, 0);
	}
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
}

Test(pdl_rxack, s9_1_6_ar_asks_for_it_now)
{
	rig_start();
	data_in(FALCON_PULL_DATA, 1300, true);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
	data_in(FALCON_PULL_REQUEST, 1100, true);
	rig_run(0);
	cr_assert_eq(rig.sents, 2);
	rig_let(50 * US); /* the timer was stopped */
	cr_assert_eq(rig.sents, 2);
}

Test(pdl_rxack, s9_1_6_ar_of_a_push_waits_for_the_ulp)
{
	rig.ulp_acks = false;
	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, true);
	data_in(FALCON_PUSH_DATA, 1301, false);
	rig_run(0);
	cr_assert_eq(rig.sents, 0);
	pdl_ulp_ack(rig.c, rig.now, 1301);
	rig_run(0);
	cr_assert_eq(rig.sents, 0);
	pdl_ulp_ack(rig.c, rig.now, 1300);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.dbpsn, 1302);
}

Test(pdl_rxack, s9_1_6_piggyback_stops_the_timer)
{
	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, false);
	rig_pushes(1, 1);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.dbpsn, 1301);
	rig_let(100 * US);
	cr_assert_eq(rig.sents, 1);
}

Test(pdl_rxack, s9_1_6_piggyback_leaves_the_timer_when_bits_are_set)
{
	rig_start();
	data_in(FALCON_PUSH_DATA, 1301, false);
	rig_pushes(1, 1);
	rig_let(100 * US);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(rig.sent[1].h.type, FALCON_EACK);
	/* A packet with AR gets an acknowledgement, which alone has the times. */
	data_in(FALCON_PUSH_DATA, 1300, true);
	rig_pushes(2, 1);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_BACK), 1);
}

Test(pdl_rxack, s9_1_6_back_or_eack)
{
	rig.ulp_acks = false;
	rig_start();
	data_in(FALCON_PULL_REQUEST, 1101, true);
	rig_run(0);
	cr_assert_eq(rig.sent[0].h.type, FALCON_EACK);
	cr_assert_eq(rig.sent[0].h.req_map, 2);
	data_in(FALCON_PULL_REQUEST, 1100, true);
	rig_run(0);
	cr_assert_eq(rig.sent[1].h.type, FALCON_BACK);
	cr_assert_eq(rig.sent[1].h.rbpsn, 1102);
	data_in(FALCON_PULL_DATA, 1370, true);
	rig_run(0);
	cr_assert_eq(rig.sent[2].h.type, FALCON_EACK);
	cr_assert_eq(rig.sent[2].h.data_ack[1], 1ull << 6);
	cr_assert_eq(rig.sent[2].h.data_rx[1], 1ull << 6);
}

Test(pdl_rxack, s6_6_6_the_hole_in_the_eack)
{
	rig.params.rx_data_psn = 300;
	rig.ulp_acks = false; /* held, since the first is missing */
	rig_start();
	for (uint32_t psn = 301; psn <= 303; psn++)
		data_in(FALCON_PUSH_DATA, psn, false);
	rig_let(20 * US);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.type, FALCON_EACK);
	cr_assert_eq(rig.sent[0].h.dbpsn, 300);
	cr_assert_eq(rig.sent[0].h.data_rx[0], 0xe);
	cr_assert_eq(rig.sent[0].h.data_ack[0], 0);
}

Test(pdl_rxack, s10_1_t1_and_t2_are_of_the_packet_that_came_last)
{
	uint32_t t1, t2;

	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, false);
	rig.now += 5 * US;
	data_in(FALCON_PUSH_DATA, 1301, false);
	t1 = t2 = fa_ticks(rig.now); /* packets of the rig are sent when they arrive */
	rig_run(20 * US);
	cr_assert_eq(rig.sent[0].h.t1, t1);
	cr_assert_eq(rig.sent[0].h.t2, t2);
	cr_assert_eq(rig.sent[0].stamp, fa_ticks(rig.now)); /* t3 */
	/* A packet that is dropped counts, too. */
	rig.now += 100 * US;
	data_in(FALCON_PUSH_DATA, 1301, false);
	t1 = fa_ticks(rig.now);
	rig_run(20 * US);
	cr_assert_eq(rig.sent[1].h.t1, t1);
}

/* Returns the receive level of an acknowledgement after the port was not found empty for `ns`. */
static unsigned
level_after(uint64_t ns)
{
	fa_stack_backlog(rig.s, ns);
	rig_in((struct wire_falcon){.type = FALCON_PUSH_DATA,
		.psn = rig.c->pdl.rx.dbase,
		.request_len = 8,
		.ar = true});
	rig_run(0);
	return rig_last(FALCON_BACK)->h.rx_level;
}

Test(pdl_rxack, s10_2_a_backlog_that_persists_raises_the_receive_level)
{
	rig_start();
	rig.level = 3;
	cr_assert_eq(level_after(0), 3);
	cr_assert_eq(level_after(900 * US), 3);
	cr_assert_eq(level_after(1500 * US), 15); /* Swift neither increases nor cuts */
	cr_assert_eq(level_after(1000000 * US), 15);
	cr_assert_eq(level_after(0), 3);
}

static void
expect_cuts(void)
{
	cr_assert_eq(level_after(1500 * US), 15);
	cr_assert_eq(level_after(2000 * US), 16);
	cr_assert_eq(level_after(4500 * US), 21);
	cr_assert_eq(level_after(1000000 * US), 31);
	rig_let(101000 * US);
	cr_assert_eq(level_after(4500 * US), 15);
}

Test(pdl_rxack, s10_2_a_backlog_while_pushes_are_missing_raises_it_further)
{
	rig_start();
	data_in(FALCON_PUSH_DATA, 1301, true);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_EACK)->h.data_rx[0], 2);
	data_in(FALCON_PUSH_DATA, 1300, true);
	rig_let(1000 * US);
	expect_cuts();
}

Test(pdl_rxack, s10_2_a_backlog_while_pull_requests_are_missing_raises_it_further)
{
	rig_start();
	data_in(FALCON_PULL_REQUEST, 1101, true);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_EACK)->h.req_map, 2);
	data_in(FALCON_PULL_REQUEST, 1100, true);
	rig_let(1000 * US);
	expect_cuts();
}

Test(pdl_rxack, s2_7_hops_ecn_and_level)
{
	struct wire_falcon h = {
		.type = FALCON_PUSH_DATA, .rbpsn = 100, .dbpsn = 300, .ar = true, .request_len = 8};

	rig.level = 21;
	rig_start();
	h.psn = 1300;
	rig_in_as(h, 0x1234c, rig.cfg.ttl - 5, true);
	rig_run(0);
	cr_assert_eq(rig.sent[0].h.hops, 5);
	cr_assert_eq(rig.sent[0].h.ecn, 1);
	cr_assert_eq(rig.sent[0].h.rx_level, 21);
	cr_assert_eq(rig.sent[0].path, 0x1234c); /* it returns on the packet's path */
	cr_assert_eq(rig.sent[0].h.cid, 0x222222);
	h.psn = 1301;
	rig_in_as(h, 0, rig.cfg.ttl - 40, true);
	rig_run(0);
	cr_assert_eq(rig.sent[1].h.hops, 15); /* the field has four bits */
	h.psn = 1302;
	rig_in_as(h, 0, 255, false);
	rig_run(0);
	cr_assert_eq(rig.sent[2].h.ecn, 2);  /* the sum over all packets */
	cr_assert_eq(rig.sent[2].h.hops, 0); /* a peer with a larger initial TTL than agreed */
	cr_assert_eq(rig_reason(FA_ECN_CE), 2);
}

Test(pdl_rxack, s9_1_6_nacks_and_eacks_report_the_last_packet_too)
{
	struct wire_falcon h = {.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 300,
		.ar = true,
		.psn = 1301,
		.request_len = 8};

	rig.level = 21;
	rig_start();
	rig_in_as(h, 0x1234c, rig.cfg.ttl - 5, true); /* behind a gap */
	rig_run(0);
	rig.take = TL_REFUSED;
	h.psn = 1302;
	rig_in_as(h, 0x1234c, rig.cfg.ttl - 6, true);
	rig_run(0);
	cr_assert_not_null(rig_last(FALCON_EACK));
	cr_assert_not_null(rig_last(FALCON_NACK));
	cr_assert_eq(rig_last(FALCON_EACK)->h.ecn, 1);
	cr_assert_eq(rig_last(FALCON_EACK)->h.hops, 5);
	cr_assert_eq(rig_last(FALCON_EACK)->h.rx_level, 21);
	cr_assert_eq(rig_last(FALCON_NACK)->h.ecn, 2);
	cr_assert_eq(rig_last(FALCON_NACK)->h.hops, 6);
	cr_assert_eq(rig_last(FALCON_NACK)->h.rx_level, 21);
}

/* The value is the algorithm's: from its initialization on, and then from its last event. */
Test(pdl_rxack, s7_7_1_each_acknowledgement_has_the_metadata_of_the_algorithm)
{
	rig.metadata = 0x12345;
	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, true);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_BACK)->h.rue, 0x12345);
	rig.metadata = UINT32_MAX;
	rig_pushes(1, 1);
	rig_run(0);
	rig_back(100, 301);
	data_in(FALCON_PUSH_DATA, 1302, true);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_EACK)->h.rue, 0x1fffff, "the bits of both kinds of packet");
	cr_assert_not(rig_last(FALCON_EACK)->h.own_request || rig_last(FALCON_EACK)->h.own_data);
	rig.metadata = 0;
	rig_pushes(2, 1);
	rig_run(0);
	rig_back(100, 302);
	rig.metadata = 7;
	rig_pushes(3, 1);
	rig_run(0);
	rig_back(100, 303);
	rig.take = TL_REFUSED;
	data_in(FALCON_PUSH_DATA, 1303, true);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_NACK)->h.rue, 7);
}

Test(pdl_rxack, s7_7_1_each_flow_has_its_own_metadata)
{
	struct wire_falcon h = {.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 300,
		.ar = true,
		.psn = 1300,
		.request_len = 8};

	rig.params.flows = 4;
	rig_start();
	rig.c->pdl.flow[2].cc.metadata = 0xab;
	rig_in_as(h, 2, 64, false);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_BACK)->h.rue, 0xab);
	h.psn++;
	rig_in_as(h, 1, 64, false);
	rig_run(0);
	cr_assert_eq(rig_last(FALCON_BACK)->h.rue, 0);
}

Test(pdl_rxack, ecn_counts_in_14_bits)
{
	struct wire_falcon h = {.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 300,
		.ar = true,
		.psn = 1200,
		.request_len = 8};

	rig_start();
	for (unsigned i = 0; i < 16384 + 3; i++)
		rig_in_as(h, 0, 64, true);
	rig_let(20 * US);
	cr_assert_eq(rig.sent[rig.sents - 1].h.ecn, 3);
}

Test(pdl_rxack, s9_1_7_nacks_carry_bases_and_times)
{
	rig.take = TL_REFUSED;
	rig_start();
	data_in(FALCON_PUSH_DATA, 1305, false);
	rig.now += 3 * US;
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.type, FALCON_NACK);
	cr_assert_eq(rig.sent[0].h.dbpsn, 1300);
	cr_assert_eq(rig.sent[0].h.rbpsn, 1100);
	cr_assert_eq(rig.sent[0].h.t1, fa_ticks(rig.now - 3 * US));
	cr_assert_eq(rig.sent[0].stamp, fa_ticks(rig.now));
}

Test(pdl_rxack, a_full_port_loses_no_acknowledgement)
{
	rig_start();
	data_in(FALCON_PUSH_DATA, 1300, true);
	rig.take = TL_REFUSED;
	data_in(FALCON_PUSH_DATA, 1301, true);
	rig.output_rc = -EAGAIN;
	rig_run(0);
	rig.output_rc = 0;
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_BACK), 1);
	cr_assert_eq(rig_count(FALCON_NACK), 1);
}

/* Refuses `n` pushes of `c`. */
static void
refuse(struct fa_conn *c, unsigned n)
{
	rig.c = c;
	rig.take = TL_REFUSED;
	for (unsigned i = 0; i < n; i++)
		data_in(FALCON_PUSH_DATA, 1301 + i, false);
}

Test(pdl_rxack, a_full_port_of_one_connection_stops_no_nack_of_another)
{
	struct fa_conn *other, *first;

	rig_start();
	first = rig.c;
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &other), 0);
	rig.full = first;
	refuse(first, 1);
	refuse(other, 3);
	rig_run(0);
	cr_assert_eq(rig_reason(FA_OUTPUT_BUSY), 1);
	cr_assert_eq(rig_count(FALCON_NACK), 3);
	cr_assert_eq(rig_last(FALCON_NACK)->h.psn, 1303);
	/* The NACK of the full port waits, and is sent once. */
	cr_assert_eq(first->pdl.nacks, 1);
	rig.full = NULL;
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 4);
	cr_assert_eq(rig_last(FALCON_NACK)->h.psn, 1301);
	cr_assert_eq(first->pdl.nacks + other->pdl.nacks, 0);
}

/* The peer behind the full port repeats its packets, so that its NACKs alone fill the queue. */
Test(pdl_rxack, nacks_of_a_full_port_leave_room_for_others)
{
	struct fa_conn *other, *first;

	rig_start();
	first = rig.c;
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &other), 0);
	rig.full = first;
	refuse(first, PDL_NACKS + 1);
	rig_run(0);
	refuse(other, 1);
	refuse(first, 2);
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), 1);
	cr_assert_eq(first->pdl.nacks, PDL_NACKS - 1);
	cr_assert_eq(other->pdl.nacks, 0);
}

Test(pdl_rxack, nacks_of_a_connection_that_is_gone)
{
	struct fa_conn *other, *first;

	rig_start();
	first = rig.c;
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &other), 0);
	rig.take = TL_REFUSED;
	data_in(FALCON_PUSH_DATA, 1300, true);
	rig.c = other;
	data_in(FALCON_PUSH_DATA, 1305, true);
	fa_conn_destroy(first);
	/* Another connection takes its place, and has refused nothing. */
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &other), 0);
	cr_assert_eq(other, first);
	rig_run(0);
	cr_assert_eq(other->pdl.nacks, 0);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].h.psn, 1305);
}

Test(pdl_rxack, more_nacks_than_room_are_lost_as_on_a_wire)
{
	rig.take = TL_REFUSED;
	rig_start();
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < FA_DATA_WINDOW; i++)
			data_in(FALCON_PUSH_DATA, 1300 + i, false);
		data_in(FALCON_PULL_REQUEST, 1100, false);
	}
	rig_run(0);
	cr_assert_eq(rig_count(FALCON_NACK), PDL_NACKS);
}
