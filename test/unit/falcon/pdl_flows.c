/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multipath: four flows of one connection share windows and PSNs; each has a path, congestion state
 * and acknowledgements of its own.
 */
#include "rig.h"

static void
setup(void)
{
	rig_init();
	rig.params.flows = FA_FLOWS_MAX;
	rig.fcwnd = 8 * FA_CWND_ONE; /* each */
}

static void
teardown(void)
{
	rig_end();
}

TestSuite(pdl_flows, .init = setup, .fini = teardown);

static unsigned
sent_on(unsigned flow, unsigned from)
{
	unsigned n = 0;

	for (unsigned i = from; i < rig.sents; i++)
		n += (rig.sent[i].path & 3) == flow;
	return n;
}

static void
ack_on(unsigned flow, struct wire_falcon h)
{
	h.rbpsn = 100;
	h.t1 = fa_ticks(rig.now - RTT);
	h.t2 = h.t1 + 10;
	rig_in_as(h, 0xabcd0 | flow, 64, false);
}

Test(pdl_flows, the_window_is_the_sum_and_flows_share_it_by_their_windows)
{
	rig_start();
	rig_pushes(0, 100);
	cr_assert_eq(rig_run(0), 32);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(sent_on(i, 0), 8);
}

Test(pdl_flows, the_largest_open_window_goes_first)
{
	rig_start();
	rig.c->pdl.flow[2].cc.fcwnd = 20 * FA_CWND_ONE;
	rig.c->pdl.flow[1].cc.fcwnd = 2 * FA_CWND_ONE;
	rig_pushes(0, 12);
	rig_run(0);
	cr_assert_eq(sent_on(2, 0), 12);
	/* Open windows are 8, 2, 8 and 8: 20 more packets leave one or two of each. */
	rig_pushes(12, 20);
	rig_run(0);
	for (unsigned i = 0; i < 4; i++)
		if (i != 1)
			cr_assert(sent_on(i, 12) == 6 || sent_on(i, 12) == 7, "flow %u", i);
	cr_assert_leq(sent_on(1, 12), 1);
}

Test(pdl_flows, the_flow_is_in_the_low_bits_of_its_path)
{
	rig_start();
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(rig.c->pdl.flow[i].path & 3, i);
		cr_assert_lt(rig.c->pdl.flow[i].path, 1u << 20);
		for (unsigned k = 0; k < i; k++)
			cr_assert_neq(rig.c->pdl.flow[i].path >> 2, rig.c->pdl.flow[k].path >> 2);
	}
}

Test(pdl_flows, acknowledged_packets_count_for_their_flow)
{
	rig_start();
	rig_pushes(0, 8);
	rig_run(0);
	ack_on(1, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 308});
	cr_assert_eq(rig.evs, 1);
	cr_assert_eq(rig.ev[0].flow, 1);
	cr_assert_eq(rig.ev[0].acked, 2);
	rig_pushes(8, 1);
	rig_run(0);
	ack_on(3, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 308});
	cr_assert_eq(rig.ev[1].flow, 3);
	cr_assert_eq(rig.ev[1].acked, 2);
}

Test(pdl_flows, a_stale_acknowledgement_still_measures_its_path)
{
	rig_start();
	rig_pushes(0, 8);
	rig_run(0);
	ack_on(0, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 308});
	ack_on(2, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 304});
	cr_assert_eq(rig_reason(FA_STALE_ACK), 1);
	cr_assert_eq(rig.evs, 2);
	cr_assert_eq(rig.ev[1].flow, 2);
	cr_assert_eq(rig.c->pdl.tx[PDL_DATA].base, 308);
}

Test(pdl_flows, acknowledgements_are_coalesced_and_returned_per_flow)
{
	struct wire_falcon h = {.type = FALCON_PULL_DATA, .rbpsn = 100, .dbpsn = 300};

	rig.cfg.ack_count = 3;
	rig_start();
	for (unsigned i = 0; i < 4; i++) {
		h.psn = 1300 + i;
		rig_in_as(h, 0x50000 | (i & 1), 64, i & 1);
	}
	rig_run(0);
	cr_assert_eq(rig.sents, 0); /* two on each flow */
	h.psn = 1304;
	rig_in_as(h, 0x50001, 64, true);
	rig_run(0);
	cr_assert_eq(rig.sents, 1);
	cr_assert_eq(rig.sent[0].path, 0x50001);
	cr_assert_eq(rig.sent[0].h.ecn, 3);
	cr_assert_eq(rig.sent[0].h.dbpsn, 1305);
	rig_let(20 * US);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(rig.sent[1].path, 0x50000);
	cr_assert_eq(rig.sent[1].h.ecn, 0);
}

/* The acknowledgements of one connection may be more than a turn has left, and none of them is
 * lost. */
Test(pdl_flows, a_turn_keeps_its_budget)
{
	struct wire_falcon h = {.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 300,
		.ar = true,
		.psn = 1300,
		.request_len = 8};
	unsigned flows = 0;

	rig_start();
	for (unsigned i = 0; i < FA_FLOWS_MAX; i++, h.psn++)
		rig_in_as(h, i, 64, false);
	rig_pushes(1, 5);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(fa_stack_poll(rig.s, rig.now, 3), 3, "turn %u", i);
	cr_assert_eq(rig_count(FALCON_BACK), FA_FLOWS_MAX);
	cr_assert_eq(rig_count(FALCON_PUSH_DATA), 5);
	for (unsigned i = 0; i < rig.sents; i++)
		flows |= (rig.sent[i].h.type == FALCON_BACK) << (rig.sent[i].path & 3);
	cr_assert_eq(flows, (1u << FA_FLOWS_MAX) - 1);
}

Test(pdl_flows, an_ulp_ack_counts_for_the_flow_of_its_push)
{
	struct wire_falcon h = {.type = FALCON_PUSH_DATA,
		.rbpsn = 100,
		.dbpsn = 300,
		.psn = 1300,
		.request_len = 8,
		.ar = true};

	rig.ulp_acks = false;
	rig_start();
	for (unsigned i = 0; i < 4; i++) {
		h.psn = 1300 + i;
		rig_in_as(h, 0x50000 | i, 64, false);
	}
	for (unsigned i = 0; i < 4; i++) {
		pdl_ulp_ack(rig.c, rig.now, 1300 + i);
		rig_run(0);
		cr_assert_eq(rig.sents, i + 1);
		cr_assert_eq(rig.sent[i].path & 3, i);
	}
}

Test(pdl_flows, early_retransmission_keeps_the_flow)
{
	unsigned path;

	rig_start();
	rig_pushes(0, 8);
	rig_run(0);
	path = rig.sent[0].path;
	rig.now += 2 * RTT;
	ack_on(0,
		(struct wire_falcon){
			.type = FALCON_EACK, .dbpsn = 300, .data_rx = {0xfe}, .data_ack = {0xfe}});
	rig_run(0);
	cr_assert_eq(rig.sents, 9);
	cr_assert_eq(rig.sent[8].path, path);
}

Test(pdl_flows, after_a_timeout_another_path_is_tried)
{
	unsigned path;

	rig_start();
	rig_pushes(0, 4);
	rig_run(0);
	path = rig.sent[0].path;
	/* Three arrived; the path of the first one is broken. */
	rig.now += RTT;
	ack_on(1, (struct wire_falcon){
			  .type = FALCON_EACK, .dbpsn = 300, .data_rx = {0xe}, .data_ack = {0xe}});
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	cr_assert_eq(rig.sents, 5);
	cr_assert_eq(rig.sent[4].h.psn, 300);
	cr_assert_neq(rig.sent[4].path, path);
	ack_on(1, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 304});
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(rig.c->pdl.tx[PDL_DATA].flow_out[i], 0);
}

Test(pdl_flows, timeouts_in_a_row_leave_a_dead_path)
{
	uint32_t path;

	rig.params.flows = 1;
	rig_start();
	rig_pushes(0, 1);
	rig_run(0);
	path = rig.sent[0].path;
	rig_let(rig.cfg.rto_initial_ns + 10 * US);
	cr_assert_eq(rig.sents, 2);
	cr_assert_eq(rig.sent[1].path, path); /* one may be lost */
	rig_let(2 * rig.cfg.rto_initial_ns + 10 * US);
	cr_assert_eq(rig.sents, 3);
	cr_assert_neq(rig.sent[2].path, path);
	cr_assert_eq(rig.sent[2].path & 3, 0);
	cr_assert_eq(rig_reason(FA_REPATH), 1);
}

Test(pdl_flows, s10_4_a_new_path_changes_the_upper_bits_of_one_flow)
{
	uint32_t path[4];

	rig_start();
	rig_pushes(0, 8);
	rig_run(0);
	for (unsigned i = 0; i < 4; i++)
		path[i] = rig.c->pdl.flow[i].path;
	rig.repath = true;
	ack_on(2, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 304});
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(rig.c->pdl.flow[i].path != path[i], i == 2);
	cr_assert_eq(rig.c->pdl.flow[2].path & 3, 2);
	cr_assert_eq(rig_reason(FA_REPATH), 1);
}

Test(pdl_flows, rack_compares_within_a_flow)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(0, 4); /* one on each */
	rig_run(0);
	rig_pushes(4, 4);
	rig_run(4 * US);
	rig.now += RTT;
	/* The second packet of flow 0 arrived; those of the other flows did not: their paths may be
	 * longer. */
	rig_in_as((struct wire_falcon){.type = FALCON_EACK,
			  .rbpsn = 100,
			  .dbpsn = 300,
			  .data_rx = {1u << 4},
			  .data_ack = {1u << 4},
			  .t1 = fa_ticks(rig.now - RTT),
			  .t2 = 1},
		rig.sent[4].path, 64, false);
	rig_let(RTT);
	cr_assert_eq(rig.sents, 9);
	cr_assert_eq(rig.sent[8].h.psn, 300);
	cr_assert_eq(rig.sent[8].path & 3, rig.sent[4].path & 3);
}

/* The times of the other flows are from before the pause, after which ticks are behind them. */
Test(pdl_flows, rack_compares_within_a_flow_after_a_pause)
{
	rig.cfg.rack = true;
	rig_start();
	rig_pushes(0, 4); /* one on each */
	rig_run(0);
	rig.now += RTT;
	for (unsigned i = 0; i < FA_FLOWS_MAX; i++)
		ack_on(i, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 304});
	rig_run(300000000000);
	rig_pushes(4, 4);
	rig_run(0);
	rig.now += 10 * RTT;
	rig_in_as((struct wire_falcon){.type = FALCON_EACK,
			  .rbpsn = 100,
			  .dbpsn = 304,
			  .data_rx = {1},
			  .t1 = fa_ticks(rig.now - 10 * RTT),
			  .t2 = 1},
		rig.sent[4].path, 64, false);
	rig_let(RTT);
	cr_assert_eq(rig.sents, 8);
}

Test(pdl_flows, s10_3_5_a_paced_flow_waits_while_others_go_on)
{
	rig_start();
	rig.c->pdl.flow[0].cc.fcwnd = FA_CWND_ONE / 2;
	rig.c->pdl.flow[0].cc.ipg = 1000;
	rig.c->pdl.flow[0].depart = rig.now + 1000 * US;
	rig_pushes(0, 24);
	cr_assert_eq(rig_run(0), 24);
	cr_assert_eq(sent_on(0, 0), 0);
}

/* ---- Paths that the peer has listed ---- */

static uint16_t list[FA_PATHS];

/* The low two bits of entry i are those of i. The other bits are a pattern. */
static void
start_listed(unsigned flows)
{
	for (unsigned i = 0; i < FA_PATHS; i++)
		list[i] = (uint16_t)(0xc000 | i * 0x1f0 | i % 4);
	rig.params.flows = (uint8_t)flows;
	rig.params.paths = list;
	rig_start();
}

static bool
is_listed(uint32_t path)
{
	for (unsigned i = 0; i < FA_PATHS; i++)
		if (((list[i] ^ path) & FA_PATH_LOW) == 0)
			return true;
	return false;
}

/* Changes the path of flow 0 often. Returns the number of values of the low bits of its paths. */
static unsigned
values_of_many_paths(void)
{
	bool seen[FA_PATH_LOW + 1] = {false};
	unsigned n = 0;

	for (unsigned i = 0; i < 400; i++) {
		uint32_t path = rig.c->pdl.flow[0].path;

		cr_assert_lt(path, 1u << 20);
		cr_assert(is_listed(path), "%x", path);
		n += !seen[path & FA_PATH_LOW];
		seen[path & FA_PATH_LOW] = true;
		rig.repath = true;
		rig_pushes(i, 1);
		rig_run(0);
		ack_on(0, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 301 + i});
		cr_assert_neq((rig.c->pdl.flow[0].path ^ path) & FA_PATH_LOW, 0);
	}
	return n;
}

Test(pdl_flows, every_new_path_is_another_one_of_the_list)
{
	start_listed(FA_FLOWS_MAX);
	cr_assert_eq(values_of_many_paths(), FA_PATHS / FA_FLOWS_MAX);
	for (unsigned i = 0; i < FA_FLOWS_MAX; i++) {
		cr_assert_eq(rig.c->pdl.flow[i].path & 3, i);
		cr_assert(is_listed(rig.c->pdl.flow[i].path));
	}
}

Test(pdl_flows, a_single_flow_uses_the_whole_list)
{
	start_listed(1);
	cr_assert_eq(values_of_many_paths(), FA_PATHS);
}

Test(pdl_flows, a_list_of_equal_paths_is_used_as_it_is)
{
	start_listed(1);
	for (unsigned i = 0; i < FA_PATHS; i++)
		list[i] = 0xc001;
	rig.repath = true;
	rig_pushes(0, 1);
	rig_run(0);
	ack_on(0, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 301});
	cr_assert_eq(rig.c->pdl.flow[0].path & FA_PATH_LOW, 1);
}

/* ---- A first path that the owner names ---- */

Test(pdl_flows, the_owner_names_the_first_path_of_a_single_flow)
{
	rig.params.flows = 1;
	rig_start();
	fa_conn_path(rig.c, 0xabcde);
	cr_assert_eq(rig.c->pdl.flow[0].path, 0xabcde);
	rig.repath = true;
	rig_pushes(0, 1);
	rig_run(0);
	cr_assert_eq(rig.sent[0].path, 0xabcde);
	ack_on(0, (struct wire_falcon){.type = FALCON_BACK, .dbpsn = 301});
	cr_assert_eq(rig_reason(FA_REPATH), 1, "the flow can still change its path");
	cr_assert_neq(rig.c->pdl.flow[0].path, 0xabcde);
}

Test(pdl_flows, a_named_path_keeps_the_number_of_the_flow_and_the_list)
{
	rig_start();
	fa_conn_path(rig.c, 0xabcde);
	for (unsigned i = 0; i < FA_FLOWS_MAX; i++)
		cr_assert_eq(rig.c->pdl.flow[i].path, 0xabcdcu | i);
	start_listed(FA_FLOWS_MAX);
	fa_conn_path(rig.c, 0xabcde);
	for (unsigned i = 0; i < FA_FLOWS_MAX; i++) {
		uint32_t path = rig.c->pdl.flow[i].path;

		cr_assert_eq(path >> 14, 0xabcde >> 14);
		cr_assert_eq(path & 3, i);
		cr_assert(is_listed(path), "%x", path);
	}
}

/* The peer's paths are those of its own list. */
Test(pdl_flows, acknowledgements_stay_on_their_flow_and_in_the_list)
{
	struct wire_falcon h = {.type = FALCON_PULL_DATA, .rbpsn = 100, .dbpsn = 300};
	bool seen[FA_PATH_LOW + 1] = {false};
	unsigned n = 0;

	rig.cfg.ack_count = 1;
	start_listed(FA_FLOWS_MAX);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t path = 0x90000 | i * 0x40 | i % 4, back;

		h.psn = 1300 + i;
		rig_in_as(h, path, 64, false);
		rig_run(0);
		cr_assert_eq(rig.sents, i + 1);
		back = rig.sent[i].path;
		cr_assert_eq(back & 3, path & 3);
		cr_assert_eq(back & ~FA_PATH_LOW, path & ~FA_PATH_LOW);
		cr_assert(is_listed(back), "%x", back);
		cr_assert_eq(pdl_path_back(rig.c, path), back);
		n += !seen[back & FA_PATH_LOW];
		seen[back & FA_PATH_LOW] = true;
	}
	cr_assert_gt(n, FA_PATHS / 2);
}
