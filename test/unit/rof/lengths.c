/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads of a simulator are lengths: every operation works, and no byte of memory is accessed. */
#include "pair.h"

#include "../../../lib/base/mem.h"

#include <criterion/criterion.h>

static struct pair p;

static void
run(uint8_t ordering)
{
	static const uint8_t ops[] = {
		RD_SEND, RD_SEND_IMM, RD_WRITE, RD_WRITE_IMM, RD_READ, RD_FETCH_ADD, RD_CMP_SWAP};
	struct pair_options o = {.chan = {.ordering = ordering, .errors = ROF_ERRORS_COMPLETE},
		.lengths_only = true};
	uint32_t max = ordering == ROF_ORDER_NONE ? 1023 : 70000;

	pair_init_with(&p, &o, 5);
	p.loss = 200;
	p.e[0].extent.host = p.e[1].extent.host = NULL; /* an access crashes */
	for (unsigned id = 0; id < 56; id++) {
		uint8_t op = ops[id % SK_ARRAY_LEN(ops)];
		bool atomic = op == RD_FETCH_ADD || op == RD_CMP_SWAP;

		end_recv_at(&p.e[1], id, 0, 80000);
		end_msg(&p.e[0], op, id, 0, atomic ? 8 : id * 1237 % max);
	}
	pair_run(&p, 10000000000ull, pair_sent);
	pair_run(&p, 1000000, NULL);
	cr_assert_eq(p.e[0].nsend, 56);
	cr_assert_eq(p.e[1].nrecv, 24);
	for (unsigned i = 0; i < 56; i++)
		cr_assert_eq(p.e[0].send_wc[i].status, RD_SUCCESS);
	for (unsigned i = 0; i < 24 && ordering != ROF_ORDER_NONE; i++) {
		unsigned id = i / 3 * 7 + (i % 3 == 2 ? 3 : i % 3);

		cr_assert_eq(p.e[1].recv_wc[i].byte_len, id * 1237 % max);
	}
	cr_assert_leq(p.e[0].payload + p.e[1].payload, p.packets * ROF_MAX, "headers alone");
	cr_assert(pair_fini(&p));
}

Test(rof_lengths, payloads_are_lengths_in_a_simulator)
{
	run(ROF_ORDER_STRONG);
	run(ROF_ORDER_WEAK);
	run(ROF_ORDER_NONE);
}
