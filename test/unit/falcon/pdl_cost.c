/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost follows work: the entries in lists, the timers and the memory of a connection that is idle
 * again.
 */
#include <errno.h>

#include "rig.h"

#define CONNS  2000
#define ACTIVE 10

static void
setup(void)
{
	rig_init();
	rig.cfg.max_conns = CONNS;
	rig.cfg.rack = true;
}

static void
teardown(void)
{
	rig_end();
}

TestSuite(pdl_cost, .init = setup, .fini = teardown);

static unsigned
on_lists(void)
{
	struct fa_conn *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, &rig.s->pdl.tx, pdl.tx_link)
		n++;
	TAILQ_FOREACH (c, &rig.s->pdl.acks, pdl.ack_link)
		n++;
	return n;
}

Test(pdl_cost, an_idle_connection_is_small)
{
	rig_start();
	cr_assert_leq(sizeof(struct fa_conn), 1536, "%zu bytes", sizeof(struct fa_conn));
}

Test(pdl_cost, an_idle_connection_stands_nowhere)
{
	rig_start();
	for (unsigned round = 0; round < 3; round++) {
		rig_pushes(round * 100, 100);
		rig_send(FALCON_PULL_REQUEST, round * 100 + 1000);
		rig_run(RTT);
		rig_in((struct wire_falcon){.type = FALCON_PUSH_DATA,
			.psn = 1300 + round,
			.rsn = round,
			.request_len = 8});
		rig_run(RTT);
		rig_back(101 + round, 400 + 100 * round);
		rig_let(4 * rig.cfg.rto_initial_ns);
		cr_assert_eq(on_lists(), 0);
		cr_assert_eq(rig.s->wheel.armed, 0);
		cr_assert_eq(fa_stack_deadline(rig.s), SK_NEVER);
		cr_assert_null(rig.c->pdl.tx[PDL_DATA].ring);
		cr_assert_null(rig.c->pdl.tx[PDL_REQUEST].ring);
	}
}

Test(pdl_cost, a_connection_whose_windows_are_closed_is_not_looked_at)
{
	rig.fcwnd = 4 * FA_CWND_ONE;
	rig_start();
	rig_pushes(1, 100);
	cr_assert_eq(rig_run(0), 4);
	cr_assert_eq(on_lists(), 0);
	rig_back(100, 302);
	cr_assert_eq(on_lists(), 1);
	cr_assert_eq(rig_run(0), 2);
	cr_assert_eq(on_lists(), 0);
}

Test(pdl_cost, ten_active_among_many_are_ten)
{
	struct fa_conn *c[CONNS];
	unsigned sent = 0;

	rig_start();
	c[0] = rig.c;
	for (unsigned i = 1; i < CONNS; i++) {
		cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &c[i]), 0);
		rig.c = c[i];
		rig_pushes(1, 1); /* each has been busy once */
		rig_run(0);
		rig_back(100, 301);
		rig.sents = 0;
	}
	rig_let(4 * rig.cfg.rto_initial_ns);
	for (unsigned i = 0; i < ACTIVE; i++) {
		rig.c = c[i * (CONNS / ACTIVE)];
		rig_pushes(1, 50);
	}
	cr_assert_eq(on_lists(), ACTIVE);
	for (unsigned i = 0; i < 100 && on_lists(); i++)
		sent += fa_stack_poll(rig.s, rig.now, 32);
	cr_assert_eq(sent, ACTIVE * 50);
	cr_assert_eq(rig.s->wheel.armed, ACTIVE);
}

Test(pdl_cost, a_budget_is_kept)
{
	rig_start();
	rig_pushes(1, 100);
	for (unsigned i = 0; i < 20; i++)
		rig_in((struct wire_falcon){.type = FALCON_PULL_DATA, .psn = 1300 + i, .ar = true});
	cr_assert_eq(fa_stack_poll(rig.s, rig.now, 5), 5);
	cr_assert_eq(rig.sent[0].h.type, FALCON_BACK);   /* the acknowledgement first */
	cr_assert_eq(fa_stack_deadline(rig.s), rig.now); /* more packets wait */
	cr_assert_eq(fa_stack_poll(rig.s, rig.now, 0), 0);
}

Test(pdl_cost, connections_are_bounded)
{
	struct fa_conn *c;

	rig.cfg.max_conns = 2;
	rig_start();
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &c), 0);
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &c), -ENOBUFS);
	fa_conn_destroy(rig.c);
	cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &rig.c), 0);
}

Test(pdl_cost, a_place_serves_one_connection_at_a_time)
{
	struct fa_conn *c[2];

	rig_start();
	fa_conn_destroy(rig.c);
	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(fa_conn_create(rig.s, rig.now, &rig.params, &c[i]), 0);
	cr_assert_eq(c[0], rig.c, "the place that is free again");
	cr_assert_neq(c[1], c[0]);
}

Test(pdl_cost, parameters_that_cannot_be)
{
	struct fa_params p;
	struct fa_conn *c;

	rig_start();
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		p = rig.params;                                                                    \
		p.field = value;                                                                   \
		cr_assert_eq(fa_conn_create(rig.s, rig.now, &p, &c), -EINVAL);                     \
	} while (0)
	REFUSED(cid, 1 << 24);
	REFUSED(peer_cid, 1 << 24);
	REFUSED(peer_function, 1 << 24);
	REFUSED(flows, 2);
	REFUSED(flows, 0);
	REFUSED(mtu, 0);
	REFUSED(tx_window, PDL_WINDOW_MAX + 1);
	REFUSED(protocol, 8);
}
