/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells have a budget in each turn, and clients take turns. */
#include "stage_rig.h"

#include <criterion/criterion.h>

#include "pair.h"

#define SECOND 1000000000ull
#define IDLE   40

/* A client that is idle for some time costs a look at its next doorbell in every 64th turn: the
 * stage does not access its records of the client until there is a doorbell. That of a client whose
 * place moved, because another one left, is found, too. */
Test(engine_stage_doorbells, clients_that_are_idle_cost_a_look_at_a_doorbell, .init = pair_eal)
{
	struct stage_client c[IDLE];
	struct hidden h[IDLE];
	struct stage_rig r;
	uint32_t n;

	stage_rig_start(&r, NULL);
	for (unsigned i = 0; i < IDLE; i++)
		stage_client_add_hidden(&r, &c[i], 1, &h[i]);
	for (unsigned i = 0; i < ENG_COLD_AFTER; i++)
		stage_rig_turn(&r, 1000);
	n = r.s->ncold;
	cr_assert_eq(n, IDLE - ENG_HOT_MIN);
	for (unsigned i = 0; i < n; i++)
		hidden_hide(&h[i], true);
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000); /* a visit of any of them would fault */
	for (unsigned i = 0; i < n; i++)
		hidden_hide(&h[i], false);
	stage_client_ring(&c[n - 1], 7);
	for (unsigned i = 0; i < ENG_COLD_TURNS; i++)
		stage_rig_turn(&r, 1000);
	cr_assert_eq(c[n - 1].c->stage[0].doorbell.next, 1);
	stage_client_del(&r, &c[0]);
	for (unsigned i = 1; i < IDLE; i++)
		stage_client_ring(&c[i], 7);
	for (unsigned i = 0; i < 2 * ENG_COLD_TURNS; i++)
		stage_rig_turn(&r, 1000);
	for (unsigned i = 1; i < IDLE; i++) {
		cr_assert_eq(c[i].c->stage[0].doorbell.next, i == n - 1 ? 2 : 1, "client %u", i);
		stage_client_del(&r, &c[i]);
	}
	cr_assert(r.s->ncold == 0 && r.s->nhot == 0);
	stage_rig_end(&r);
}

Test(engine_stage_doorbells, a_turn_takes_256_doorbells_and_clients_take_turns, .init = pair_eal)
{
	struct stage_client c[32];
	struct stage_rig r;

	stage_rig_start(&r, NULL);
	for (unsigned i = 0; i < 32; i++)
		stage_client_add(&r, &c[i], (uint16_t)(i / 2), NULL);
	for (unsigned i = 0; i < 32; i++)
		for (unsigned k = 0; k < RIG_DOORBELLS; k++)
			stage_client_ring(&c[i], 7);
	for (unsigned turn = 1; turn <= 8; turn++) {
		unsigned all = 0;

		stage_rig_turn(&r, 1000);
		for (unsigned i = 0; i < 32; i++)
			all += c[i].c->stage[0].doorbell.next;
		cr_assert_eq(all, turn * ENG_DOORBELLS_TURN, "turn %u: %u", turn, all);
	}
	for (unsigned i = 0; i < 32; i++)
		cr_assert_eq(c[i].c->stage[0].doorbell.next, 8 * ENG_DOORBELLS_TURN / 32);
	for (unsigned i = 0; i < 32; i++)
		stage_client_del(&r, &c[i]);
	stage_rig_end(&r);
}

static bool
useful_run(struct eng_stage *s, struct eng_qp *qp)
{
	s->spent.messages++;
	return false;
}

static const struct eng_qp_ops useful = {
	.run = useful_run, .info = stage_qp_info, .opened = stage_qp_opened};

/* Rings the doorbell of the client's QP `n` times, runs a turn, and returns how many doorbells the
 * turn took. */
static uint32_t
bells_taken(struct stage_rig *r, struct stage_client *c, unsigned n)
{
	uint32_t before = c->c->stage[0].doorbell.next;

	while (n-- > 0)
		stage_client_ring(c, 0);
	stage_rig_turn(r, 1000);
	return c->c->stage[0].doorbell.next - before;
}

Test(engine_stage_doorbells, doorbells_without_work_are_taken_slowly_until_one_has_work,
	.init = pair_eal)
{
	struct shm_qp shared = {0};
	struct eng_qp qp = {.shared = &shared}, *table[] = {&qp};
	struct stage_rig r;
	struct stage_client c;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	stage_qp_make(&qp, &c, &stage_qp_quiet, NULL);
	c.c->stage[0].qps = table;
	c.c->stage[0].nqps = 1;
	cr_assert_eq(bells_taken(&r, &c, 500), ENG_DOORBELLS);
	for (unsigned i = 0; i < 100; i++)
		bells_taken(&r, &c, 0);
	cr_assert_eq(bells_taken(&r, &c, 10), 2);
	qp.ops = &useful;
	bells_taken(&r, &c, 100); /* takes 2 as well, and the QP has work */
	cr_assert_eq(bells_taken(&r, &c, 0), ENG_DOORBELLS);
	c.c->stage[0].qps = NULL;
	c.c->stage[0].nqps = 0;
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

/* Rings invalid doorbells, `each` in a turn, until a notice or `all` of them. */
static struct eng_ctl *
ring_garbage(struct stage_rig *r, struct stage_client *c, unsigned all, unsigned each, uint64_t ns)
{
	for (unsigned n = 0; n < all; n += each) {
		struct eng_ctl *m;

		for (unsigned i = 0; i < each; i++)
			stage_client_ring(c, 12345);
		stage_rig_turn(r, ns);
		m = stage_rig_notice(r);
		if (m != NULL)
			return m;
	}
	return NULL;
}

Test(engine_stage_doorbells, a_client_that_rings_garbage_is_put_out, .init = pair_eal)
{
	struct stage_rig r;
	struct stage_client c;
	struct eng_ctl *m;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	/* 1000 in each second may be late doorbells of QPs that are destroyed. */
	cr_assert_null(ring_garbage(&r, &c, 20000, 50, SECOND / 20));
	m = ring_garbage(&r, &c, 2 * ENG_BAD_DOORBELLS, 50, 1000);
	cr_assert(m != NULL && m->type == ENG_EC_CLIENT_BAD && m->client == c.c);
	cr_assert_null(ring_garbage(&r, &c, 900, 50, 1000), "once");
	cr_assert(shm_take_peek(&c.c->stage[0].doorbell) != NULL, "the stage polls it no more");
	stage_rig_return(&r, m);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}
