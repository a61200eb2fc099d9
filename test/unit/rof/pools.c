/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon's resource pools at the smallest size that holds one packet of each kind, with Reads,
 * Writes and Sends of both ends, receives that are posted late, and a wire that loses: no circle of
 * waits occurs (Falcon 8.2.4).
 */
#include "pair.h"

#include <criterion/criterion.h>
#include <string.h>

#define ROUNDS 60

static struct pair p;
static uint64_t next_receive;

static void
smallest(struct fa_config *cfg)
{
	cfg->pools = (struct fa_pools){.tx_pkt_req = 1,
		.tx_buf_req = 17,
		.tx_pkt_data = 1,
		.tx_buf_data = 17,
		.rx_pkt_ulp = 1,
		.rx_buf_ulp = 3,
		.rx_pkt_net = 1,
		.rx_buf_net = 3,
		.rx_pkt_red = 1,
		.rx_buf_red = 3,
		.pulls = 1,
		.tx_cell = 64,
		.rx_cell = 512};
}

static bool
all_done(struct pair *pair)
{
	for (unsigned i = 0; i < 2 && pair->now >= next_receive; i++)
		if (pair->e[i].rq_tail < ROUNDS / 3)
			end_recv_at(&pair->e[i], pair->e[i].rq_tail, 0x40000, 3000);
	if (pair->now >= next_receive)
		next_receive = pair->now + 100000;
	return pair_sent(pair) && pair->e[0].nrecv == ROUNDS / 3 && pair->e[1].nrecv == ROUNDS / 3;
}

static void
run(uint8_t ordering, uint32_t loss)
{
	static const uint8_t ops[] = {RD_SEND, RD_READ, RD_WRITE};
	struct pair_options o = {.chan = {.ordering = ordering,
					 .errors = ROF_ERRORS_COMPLETE,
					 .credits = {1, 17, 1, 3, 1, 17}},
		.tune = smallest};

	pair_init_with(&p, &o, 21 + loss);
	p.loss = loss;
	next_receive = p.now;
	for (unsigned e = 0; e < 2; e++)
		memset(p.e[e].mem, 0x10 + (int)e, END_MEM / 2);
	for (unsigned i = 0; i < ROUNDS; i++)
		for (unsigned e = 0; e < 2; e++) {
			uint64_t off = (e * 2u + (ops[i % 3] == RD_READ)) * 0x2000;
			uint32_t len = ordering == ROF_ORDER_NONE ? 1000 : 2500;

			end_msg(&p.e[e], ops[i % 3], i, off, len);
		}
	pair_run(&p, 60000000000ull, all_done);
	for (unsigned e = 0; e < 2; e++) {
		cr_assert_eq(p.e[e].nsend, ROUNDS, "ordering %u, loss %u: end %u: %u, %u receives",
			ordering, loss, e, p.e[e].nsend, p.e[e].nrecv);
		cr_assert_eq(p.e[e].nrecv, ROUNDS / 3);
		for (unsigned i = 0; i < ROUNDS; i++)
			cr_assert_eq(p.e[e].send_wc[i].status, RD_SUCCESS);
		cr_assert_not(p.e[e].dead);
		cr_assert_eq(p.e[!e].mem[e * 0x4000], 0x10 + (int)e, "written");
		cr_assert_eq(p.e[e].mem[e * 0x4000 + 0x2000], 0x10 + (int)!e, "read");
	}
	cr_assert(pair_fini(&p));
}

Test(rof_pools, smallest_pools_in_both_directions_strongly_ordered_falcon_8_2_4)
{
	run(ROF_ORDER_STRONG, 0);
	run(ROF_ORDER_STRONG, 300);
}

Test(rof_pools, smallest_pools_in_both_directions_weakly_ordered_falcon_8_2_4)
{
	run(ROF_ORDER_WEAK, 0);
	run(ROF_ORDER_WEAK, 300);
}

Test(rof_pools, smallest_pools_in_both_directions_unordered_falcon_8_2_4)
{
	run(ROF_ORDER_NONE, 0);
	run(ROF_ORDER_NONE, 300);
}
