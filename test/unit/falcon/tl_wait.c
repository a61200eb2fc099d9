/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of the local ULP that exceed the resources: they wait, in order, in turns (section
 * 8.2.3).
 */
#include "tl_fake.h"

#define PUSH FALCON_PUSH_DATA
#define PULL FALCON_PULL_REQUEST

static void
two(struct fa_config *cfg, struct fa_params *p)
{
	cfg->pools.tx_pkt_req = cfg->pools.rx_pkt_ulp = 2;
	cfg->conn_waiting = 3;
}

static void
sent(uint8_t type, uint32_t rsn)
{
	struct fake_entry *e = fake_next(F_SEND);

	cr_assert_eq(e->a, type);
	cr_assert_eq(e->b, rsn, "RSN %u, not %u", e->b, rsn);
}

static void
completed(uint32_t rsn, enum fa_completion code)
{
	cr_assert_eq(fake_expect(FA_COMPLETION, rsn)->c, (uint32_t)code);
}

/* Connection 0 has the only two packets, and two requests that wait. */
static void
overrun(bool ordered)
{
	fake_start(ordered, two);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	sent(PUSH, 1);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	sent(PUSH, 2);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XOFF);
	fa_pull(&fk.c[0], fk.now, fake_buf(28), 64);
	fa_push(&fk.c[0], fk.now, fake_buf(9));
	fake_quiet();
	cr_assert_eq(fake_counted(FA_POOL_EMPTY), 2);
}

Test(falcon_tl_wait, s8_2_3_requests_that_overran_the_resources_wait_and_keep_their_rsn)
{
	overrun(true);
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	completed(1, FA_DONE);
	sent(PULL, 3);
	cr_assert_eq(fk.log[fk.read - 1].d, 64, "and the length of their responses");
	fake_sent(0, PUSH, 2, FA_DONE, 0);
	completed(2, FA_DONE);
	sent(PUSH, 4);
	cr_assert_eq(fk.log[fk.read - 1].c, 9);
	fake_sent(0, PUSH, 4, FA_DONE, 0);
	fake_rx(0, FALCON_PULL_DATA, 3, 200, 64);
	fake_expect(FA_PULL_DATA, 3);
	completed(4, FA_DONE);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XON);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_wait, s8_3_connections_that_wait_take_turns)
{
	overrun(true);
	fa_push(&fk.c[1], fk.now, fake_buf(8));
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	completed(1, FA_DONE);
	sent(PULL, 3);
	fake_sent(0, PUSH, 2, FA_DONE, 0);
	completed(2, FA_DONE);
	sent(PUSH, 1);
	cr_assert_eq(fk.sent_by[fk.sent_count - 1], &fk.c[1]);
	fake_sent(1, PUSH, 1, FA_DONE, 0);
	completed(1, FA_DONE);
	sent(PUSH, 4);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_wait, s8_2_3_a_queue_that_is_full_is_a_resource_that_lacks)
{
	overrun(false);
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fake_quiet();
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	completed(6, FA_LOCAL_RESOURCE);
	fake_sent(0, PUSH, 2, FA_DONE, 0);
	completed(2, FA_DONE);
	sent(PULL, 3);
	fa_push(&fk.c[0], fk.now, fake_buf(8)); /* 7: behind those that wait */
	fake_sent(0, PUSH, 1, FA_DONE, 0);
	completed(1, FA_DONE);
	sent(PUSH, 4);
	fake_sent(0, PUSH, 4, FA_DONE, 0);
	completed(4, FA_DONE);
	sent(PUSH, 5);
	fake_sent(0, PUSH, 5, FA_DONE, 0);
	completed(5, FA_DONE);
	sent(PUSH, 7);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_wait, s11_the_end_of_a_connection_completes_what_waits_in_order)
{
	overrun(true);
	fa_conn_fail(&fk.c[0], fk.now, FA_DEAD_CONNECTION);
	fake_next(F_FAIL);
	fa_push(&fk.c[1], fk.now, fake_buf(8));
	fk.room = 3;
	fake_bury(0);
	completed(1, FA_DEAD_CONNECTION);
	completed(2, FA_DEAD_CONNECTION);
	completed(3, FA_DEAD_CONNECTION);
	/* The other connection has its resources now. */
	sent(PUSH, 1);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_XON);
	fake_quiet();
	fa_push(&fk.c[0], fk.now, fake_buf(8));
	fk.room = 9;
	fa_deliver_resume(&fk.c[0], fk.now);
	completed(4, FA_DEAD_CONNECTION);
	completed(5, FA_DEAD_CONNECTION);
	cr_assert_eq(fake_next(F_EVENT)->a, FA_EV_DEAD);
	fake_quiet();
	fake_stop();
}

Test(falcon_tl_wait, a_destroyed_connection_leaves_nothing_that_waits)
{
	overrun(true);
	fa_push(&fk.c[1], fk.now, fake_buf(8));
	fake_stop();
}
