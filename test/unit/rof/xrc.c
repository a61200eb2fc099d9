/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC (6.6.2): opcodes with a prefix of their own; each message names the shared receive queue. */
#include "pair.h"

#include <criterion/criterion.h>
#include <string.h>

static struct pair p;

static void
start(uint8_t ordering)
{
	struct rof_chan_params cp = {
		.transport = ROF_XRC, .ordering = ordering, .errors = ROF_ERRORS_COMPLETE};

	pair_init(&p, &cp, 8);
	memset(p.e[0].mem, 0x11, END_MEM / 2);
	for (unsigned q = 0; q < END_SRQS; q++)
		for (unsigned i = 0; i < 4; i++) {
			struct rd_wr *wr = &p.e[1].srq[q][p.e[1].srq_tail[q]++];

			*wr = (struct rd_wr){.wr_id = 100 * q + i, .opcode = RD_RECV};
			wr_sge(&p.e[1], wr, 0x80000 + (q * 4 + i) * 0x1000, 0x1000);
		}
}

static void
post(uint8_t op, unsigned id, unsigned srq, uint32_t len)
{
	end_msg(&p.e[0], op, id, 0x10000 + id * 0x2000ull, len)->remote_srqn = END_SRQ + srq;
}

Test(rof_xrc, each_message_takes_from_the_queue_that_it_names_rof_8_3_9)
{
	static const unsigned expect[] = {0, 100, 101, 1};

	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_NONE; ordering++) {
		uint32_t big = ordering == ROF_ORDER_NONE ? 1000 : 3000;

		start(ordering);
		post(RD_SEND, 0, 0, big);
		post(RD_SEND_IMM, 1, 1, big);
		post(RD_WRITE_IMM, 2, 1, big);
		post(RD_SEND, 3, 0, 10);
		post(RD_WRITE, 4, 0, 5000);
		post(RD_READ, 5, 0, 5000);
		post(RD_FETCH_ADD, 6, 0, 8);
		p.loss = 300;
		pair_run(&p, 1000000000, pair_sent);
		pair_run(&p, 1000000, NULL);
		cr_assert_eq(p.e[0].nsend, 7);
		cr_assert_eq(p.e[1].nrecv, 4);
		for (unsigned i = 0; i < 7; i++)
			cr_assert_eq(p.e[0].send_wc[i].status, RD_SUCCESS);
		for (unsigned i = 0; i < 4; i++) {
			const struct rd_wc *wc = wc_find(p.e[1].recv_wc, 4, expect[i]);

			cr_assert_not_null(wc, "%u", expect[i]);
			cr_assert_eq(wc->byte_len, i == 3 ? 10 : big);
		}
		cr_assert_eq(p.e[1].mem[0x80000 + big - 1], 0x11);
		cr_assert_eq(p.e[1].mem[0x80000 + big], 0);
		cr_assert_eq(p.e[1].mem[0x80000 + 0x4000 + big - 1], 0x11);
		cr_assert_eq(p.e[0].mem[0x10000 + 5 * 0x2000], 0, "read");
		cr_assert(pair_fini(&p));
	}
}

Test(rof_xrc, a_queue_that_does_not_exist_fails_the_message_alone_rof_8_3_9)
{
	for (uint8_t ordering = ROF_ORDER_STRONG; ordering <= ROF_ORDER_WEAK; ordering++) {
		start(ordering);
		post(RD_SEND, 0, END_SRQS, 3000);
		post(RD_WRITE_IMM, 1, END_SRQS + 5, 10);
		post(RD_SEND, 2, 1, 3000);
		pair_run(&p, 1000000000, pair_sent);
		pair_run(&p, 1000000, NULL);
		cr_assert_eq(p.e[0].nsend, 3);
		cr_assert_eq(p.e[0].send_wc[0].status, RD_REM_INV_REQ_ERR);
		cr_assert_eq(p.e[0].send_wc[1].status, RD_REM_INV_REQ_ERR);
		cr_assert_eq(p.e[0].send_wc[2].status, RD_SUCCESS);
		cr_assert_eq(p.e[1].nrecv, 1);
		cr_assert_eq(p.e[1].recv_wc[0].wr_id, 100);
		cr_assert_eq(p.e[1].srq_head[0], 0);
		cr_assert(pair_fini(&p));
	}
}

Test(rof_xrc, an_empty_queue_holds_up_its_own_messages_until_it_has_one_rof_6_6_2)
{
	start(ROF_ORDER_NONE);
	p.e[1].srq_head[0] = p.e[1].srq_tail[0];
	post(RD_SEND, 0, 0, 100);
	post(RD_SEND, 1, 1, 100);
	pair_run(&p, 1000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, 1);
	cr_assert_eq(p.e[0].send_wc[0].wr_id, 1);
	cr_assert_eq(p.e[1].nrecv, 1, "unordered: it does not wait for the other");
	p.e[1].srq_head[0] = 0;
	pair_run(&p, 1000000000, pair_sent);
	cr_assert_eq(p.e[0].nsend, 2);
	cr_assert_eq(p.e[1].nrecv, 2);
	cr_assert(pair_fini(&p));
}
