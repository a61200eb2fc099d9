/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine stage: users, clients and QPs take turns by their weights, within their rates. */
#include "stage_rig.h"

#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_ring_elem.h>

#include "../../../lib/base/mem.h"
#include "pair.h"

#define QPS      1000
#define SECOND   1000000000ull
#define MESSAGES 64 /* that a QP of the tests sends when it is served */

static uint32_t message_len;

/* Sends MESSAGES messages of message_len bytes, and counts them where qp->control points to. */
static bool
busy_run(struct eng_stage *s, struct eng_qp *qp)
{
	*(uint64_t *)qp->control += MESSAGES;
	s->spent.messages += MESSAGES;
	s->spent.bytes += MESSAGES * message_len;
	return true;
}

static const struct eng_qp_ops busy = {
	.run = busy_run, .info = stage_qp_info, .opened = stage_qp_opened};

/* A client whose QPs always have messages. */
struct flood {
	struct stage_client c;
	struct eng_qp *qp;
	unsigned nqps;
	uint64_t sent;
};

static void
flood_start(struct stage_rig *r, struct flood *f, unsigned nqps, uint16_t user,
	const struct eng_rates *rates)
{
	f->sent = 0;
	f->nqps = nqps;
	f->qp = aligned_alloc(_Alignof(struct eng_qp), nqps * sizeof(*f->qp));
	cr_assert_not_null(f->qp);
	memset(f->qp, 0, nqps * sizeof(*f->qp));
	stage_client_add(r, &f->c, user, rates);
	for (unsigned i = 0; i < nqps; i++) {
		stage_qp_make(&f->qp[i], &f->c, &busy, &f->sent);
		eng_qp_activate(r->s, &f->qp[i]);
	}
}

static void
flood_stop(struct stage_rig *r, struct flood *f)
{
	for (unsigned i = 0; i < f->nqps; i++)
		eng_qp_deactivate(r->s, &f->qp[i]);
	stage_client_del(r, &f->c);
	free(f->qp);
}

/* Runs `turns` turns, and returns the share of `a` in the messages of both. */
static double
share_of(struct stage_rig *r, struct flood *a, struct flood *b, unsigned turns)
{
	a->sent = b->sent = 0;
	for (unsigned i = 0; i < turns; i++)
		stage_rig_turn(r, 1000);
	return (double)a->sent / (double)(a->sent + b->sent);
}

/* Checks the share of one QP beside QPS of another client. `weight` is that of the client, or of
 * its user when the users differ. */
static void
check_share(uint16_t user_a, uint16_t user_b, uint32_t weight, double low, double high)
{
	struct eng_rates rates = {.weight = weight};
	struct flood a, b;
	struct stage_rig r;

	for (message_len = 8; message_len <= 8192; message_len *= 32) {
		double share;

		stage_rig_start(&r, NULL);
		if (user_a != user_b)
			r.user_rates = rates;
		flood_start(&r, &a, 1, user_a, &rates);
		r.user_rates.weight = 0;
		flood_start(&r, &b, QPS, user_b, NULL);
		share = share_of(&r, &a, &b, 20000);
		cr_assert(share >= low && share <= high, "%u bytes: %f", message_len, share);
		flood_stop(&r, &a);
		flood_stop(&r, &b);
		stage_rig_end(&r);
	}
}

Test(engine_stage_turns, one_qp_gets_half_beside_1000_qps_of_another_client, .init = pair_eal)
{
	check_share(1, 1, 0, 0.45, 0.55);
}

Test(engine_stage_turns, one_qp_gets_half_beside_1000_qps_of_another_user, .init = pair_eal)
{
	check_share(1, 2, 0, 0.45, 0.55);
}

Test(engine_stage_turns, a_weight_of_30_against_10_gets_three_quarters, .init = pair_eal)
{
	check_share(1, 1, 30, 0.74, 0.76);
	check_share(1, 2, 30, 0.74, 0.76);
}

Test(engine_stage_turns, twenty_clients_of_a_user_are_one_share, .init = pair_eal)
{
	struct flood one, many[20];
	struct stage_rig r;
	uint64_t sum = 0;

	message_len = 64;
	stage_rig_start(&r, NULL);
	flood_start(&r, &one, 1, 1, NULL);
	for (unsigned i = 0; i < 20; i++)
		flood_start(&r, &many[i], 10, 2, NULL);
	share_of(&r, &one, &many[0], 20000);
	for (unsigned i = 0; i < 20; i++)
		sum += many[i].sent;
	cr_assert_float_eq((double)one.sent / (double)(one.sent + sum), 0.5, 0.02);
	for (unsigned i = 1; i < 20; i++)
		cr_assert_float_eq((double)many[i].sent / (double)sum, 0.05, 0.01);
	flood_stop(&r, &one);
	for (unsigned i = 0; i < 20; i++)
		flood_stop(&r, &many[i]);
	stage_rig_end(&r);
}

Test(engine_stage_turns, a_small_message_and_a_large_one_are_not_the_same_share, .init = pair_eal)
{
	struct flood a, b;
	struct stage_rig r;

	/* The clients send messages of the same size, in different numbers: the credit counts
	 * bytes, so a QP that sends less each time is served more often. */
	message_len = 4096;
	stage_rig_start(&r, NULL);
	flood_start(&r, &a, 1, 1, NULL);
	flood_start(&r, &b, 1, 2, NULL);
	b.c.c->stage[0].user->round.credit = -10 * MESSAGES * 4096; /* a debt is paid back */
	cr_assert_gt(share_of(&r, &a, &b, 30), 0.6);
	cr_assert_float_eq(share_of(&r, &a, &b, 20000), 0.5, 0.01);
	flood_stop(&r, &a);
	flood_stop(&r, &b);
	stage_rig_end(&r);
}

/* The requests of other QPs wait in the queues of their clients. */
Test(engine_stage_turns, few_qps_are_served_while_the_transport_has_unsent_frames, .init = pair_eal)
{
	struct stage_rig r;
	struct flood f;

	message_len = 8;
	stage_rig_start(&r, NULL);
	flood_start(&r, &f, QPS, 1, NULL);
	stage_rig_turn(&r, 1000);
	cr_assert_geq(f.sent, ENG_QP_TURN / 4 * MESSAGES, "only %lu messages", f.sent);
	f.sent = 0;
	r.unsent = true;
	stage_rig_turn(&r, 1000);
	cr_assert_eq(f.sent, ENG_QP_UNSENT * MESSAGES);
	flood_stop(&r, &f);
	stage_rig_end(&r);
}

static bool
once_run(struct eng_stage *s, struct eng_qp *qp)
{
	(*(uint64_t *)qp->control)++;
	s->spent.messages++;
	return false;
}

Test(engine_stage_turns, a_client_with_little_work_is_served_in_the_turn_of_its_doorbell,
	.init = pair_eal)
{
	static const struct eng_qp_ops once = {
		.run = once_run, .info = stage_qp_info, .opened = stage_qp_opened};
	struct stage_client c;
	struct eng_qp qp = {0};
	struct flood f[8];
	struct stage_rig r;
	uint64_t sent = 0;
	unsigned late = 0;

	message_len = 8;
	stage_rig_start(&r, NULL);
	for (unsigned i = 0; i < 8; i++)
		flood_start(&r, &f[i], 50, (uint16_t)(3 + i), NULL);
	stage_client_add(&r, &c, 2, NULL);
	stage_qp_make(&qp, &c, &once, &sent);
	for (unsigned i = 1; i <= 1000; i++) {
		eng_qp_activate(r.s, &qp);
		stage_rig_turn(&r, 1000);
		late += sent < i;
		for (unsigned k = 0; k < 10 && sent < i; k++)
			stage_rig_turn(&r, 1000);
		cr_assert_eq(sent, i);
	}
	/* When its credit is used up, it waits for a turn of each of the others. */
	cr_assert_leq(late,
		1000 * (ENG_COST_MESSAGE + ENG_COST_VISIT) / (ENG_WEIGHT * ENG_ROUND_QUANTUM) + 1,
		"%u times late", late);
	for (unsigned i = 0; i < 8; i++)
		flood_stop(&r, &f[i]);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

static bool
refused_run(struct eng_stage *s, struct eng_qp *qp)
{
	(*(uint64_t *)qp->control)++;
	s->spent.ring_full = true;
	return true;
}

Test(engine_stage_turns, clients_take_turns_for_the_places_of_a_full_ring, .init = pair_eal)
{
	static const struct eng_qp_ops refused = {
		.run = refused_run, .info = stage_qp_info, .opened = stage_qp_opened};
	struct stage_client a, b;
	struct stage_rig r;
	struct eng_qp qp[9] = {0};
	uint64_t tries[2] = {0};

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &a, 1, NULL);
	stage_client_add(&r, &b, 2, NULL);
	for (unsigned i = 0; i < 9; i++) {
		stage_qp_make(&qp[i], i < 8 ? &a : &b, &refused, &tries[i / 8]);
		eng_qp_activate(r.s, &qp[i]);
	}
	for (unsigned i = 0; i < 100; i++)
		stage_rig_turn(&r, 1000);
	cr_assert_float_eq((double)tries[1] / (double)(tries[0] + tries[1]), 0.5, 0.01);
	for (unsigned i = 0; i < 9; i++)
		eng_qp_deactivate(r.s, &qp[i]);
	stage_client_del(&r, &a);
	stage_client_del(&r, &b);
	stage_rig_end(&r);
}

/* ---- Rates */

/* Runs the stage for `ns` nanoseconds, as a loop that sleeps until the stage's deadline. */
static unsigned
run_for(struct stage_rig *r, uint64_t ns)
{
	uint64_t end = r->now + ns;
	unsigned turns = 0;

	for (; r->now < end; turns++) {
		uint64_t due = eng_stage_deadline(r->s);

		stage_rig_turn(r, due > r->now + 1000 ? SK_MIN(due, end) - r->now : 1000);
	}
	return turns;
}

Test(engine_stage_turns, a_limit_of_messages_is_exact_and_the_loop_may_sleep, .init = pair_eal)
{
	const struct eng_rates rates = {.messages = 2000000};
	struct stage_rig r;
	struct flood f;
	unsigned turns;

	message_len = 64;
	stage_rig_start(&r, NULL);
	flood_start(&r, &f, 10, 1, &rates);
	turns = run_for(&r, SECOND);
	cr_assert_float_eq((double)f.sent, 2e6, 2e3, "%lu messages", f.sent);
	/* 64 messages are one visit: each of them is at most one turn and one wake-up. */
	cr_assert_leq(turns, 2 * 2000000 / MESSAGES + 100, "%u turns", turns);
	flood_stop(&r, &f);
	stage_rig_end(&r);
}

Test(engine_stage_turns, a_limit_of_bits_is_exact, .init = pair_eal)
{
	const struct eng_rates rates = {.bits = 8000000000ull};
	struct stage_rig r;
	struct flood f;

	message_len = 1000;
	stage_rig_start(&r, NULL);
	flood_start(&r, &f, 10, 1, &rates);
	run_for(&r, SECOND);
	cr_assert_float_eq((double)f.sent * 1000, 1e9, 1e6, "%lu messages", f.sent);
	flood_stop(&r, &f);
	stage_rig_end(&r);
}

Test(engine_stage_turns, a_limit_of_a_user_holds_for_all_its_clients_together, .init = pair_eal)
{
	struct stage_rig r;
	struct flood f[3], other;
	uint64_t sum = 0;

	message_len = 64;
	stage_rig_start(&r, NULL);
	r.user_rates.messages = 1000000;
	for (unsigned i = 0; i < 3; i++)
		flood_start(&r, &f[i], 1 + i * 10, 1, NULL);
	r.user_rates.messages = 0;
	flood_start(&r, &other, 1, 2, NULL);
	run_for(&r, SECOND / 10);
	for (unsigned i = 0; i < 3; i++)
		sum += f[i].sent;
	cr_assert_float_eq((double)sum, 1e5, 300, "%lu messages", sum);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_float_eq((double)f[i].sent, 1e5 / 3, 2000);
	cr_assert_gt(other.sent, 10 * sum, "a user without a limit gets the rest");
	for (unsigned i = 0; i < 3; i++)
		flood_stop(&r, &f[i]);
	flood_stop(&r, &other);
	stage_rig_end(&r);
}

/* ---- Machines */

static uint32_t all_weight;
static uint64_t all_messages;

static void
machine_rates(struct eng_config *cfg)
{
	cfg->all_rates = (struct eng_rates){.weight = all_weight, .messages = all_messages};
}

Test(engine_stage_turns, instances_send_by_their_weights_in_alternating_turns, .init = pair_eal)
{
	const uint32_t weights[] = {1, 10, 30, 100};
	uint64_t sent[SK_ARRAY_LEN(weights)];

	all_messages = 0;
	for (message_len = 8; message_len <= 8192; message_len *= 32) {
		for (unsigned i = 0; i < SK_ARRAY_LEN(weights); i++) {
			struct stage_rig r;
			struct flood f;

			all_weight = weights[i];
			stage_rig_start(&r, machine_rates);
			flood_start(&r, &f, 10, 1, NULL);
			for (unsigned k = 0; k < 10000; k++)
				stage_rig_turn(&r, 1000);
			sent[i] = f.sent;
			flood_stop(&r, &f);
			stage_rig_end(&r);
		}
		for (unsigned i = 1; i < SK_ARRAY_LEN(weights); i++)
			cr_assert_float_eq((double)sent[i] / (double)sent[0],
				(double)weights[i] / weights[0], 0.02 * weights[i],
				"%u bytes, weight %u: %lu and %lu messages", message_len,
				weights[i], sent[i], sent[0]);
	}
}

Test(engine_stage_turns, a_limit_of_an_instance_holds_for_all_its_users, .init = pair_eal)
{
	struct flood f[3];
	struct stage_rig r;
	uint64_t sum = 0;
	unsigned turns;

	message_len = 64;
	all_weight = 10;
	all_messages = 1000000;
	stage_rig_start(&r, machine_rates);
	for (unsigned i = 0; i < 3; i++)
		flood_start(&r, &f[i], 5, (uint16_t)(1 + i), NULL);
	turns = run_for(&r, SECOND / 10);
	for (unsigned i = 0; i < 3; i++)
		sum += f[i].sent;
	cr_assert_float_eq((double)sum, 1e5, 300, "%lu messages", sum);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_float_eq((double)f[i].sent, 1e5 / 3, 2000);
	cr_assert_leq(turns, 2 * 100000 / MESSAGES + 100, "%u turns: the loop may sleep", turns);
	for (unsigned i = 0; i < 3; i++)
		flood_stop(&r, &f[i]);
	stage_rig_end(&r);
}

/* ---- Received messages */

static bool requests; /* whether the messages are requests of the peer */

/* Counts a message where qp->control points to, as one with an answer of message_len bytes. */
static void
reads_message(struct eng_stage *s, struct eng_qp *qp, const struct eng_dmsg *m)
{
	++*(uint64_t *)qp->control;
	s->spent.bytes += message_len;
	s->spent.requests += requests;
}

static const struct eng_qp_ops reads = {
	.message = reads_message, .info = stage_qp_info, .opened = stage_qp_opened};

/* Returns the number of `n` messages that the first turn takes. */
static uint64_t
taken_in_a_turn(unsigned n)
{
	struct eng_dmsg m = {.id_type = ENG_E_PULL};
	static struct eng_qp qp;
	struct stage_client c;
	struct stage_rig r;
	uint64_t taken = 0, first;

	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	memset(&qp, 0, sizeof(qp));
	stage_qp_make(&qp, &c, &reads, &taken);
	r.s->qps[0] = &qp;
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(rte_ring_sp_enqueue_elem(r.e->rings.to_stage[0][0], &m, sizeof(m)), 0);
	stage_rig_turn(&r, 1000);
	first = taken;
	for (unsigned i = 0; i < n; i++)
		stage_rig_turn(&r, 1000);
	cr_assert_eq(taken, n, "the other turns take the rest");
	r.s->qps[0] = NULL;
	stage_client_del(&r, &c);
	stage_rig_end(&r);
	return first;
}

/* Counts in the upper half, beside the messages of reads_message(). */
static bool
counted_run(struct eng_stage *s, struct eng_qp *qp)
{
	*(uint64_t *)qp->control += 1ull << 32;
	s->spent.messages++;
	return false;
}

/* A client that received 16 MiB, alone or beside three busy clients, sends as soon as one of their
 * turns is over. */
Test(engine_stage_turns, received_bytes_cost_no_more_than_a_turn, .init = pair_eal)
{
	static const struct eng_qp_ops both = {.message = reads_message,
		.run = counted_run,
		.info = stage_qp_info,
		.opened = stage_qp_opened};
	struct eng_dmsg m = {.id_type = ENG_E_PULL};
	static struct eng_qp qp;
	struct stage_client c;
	struct flood f[3];
	struct stage_rig r;
	uint64_t done = 0;
	unsigned late = 0;

	message_len = 8192;
	stage_rig_start(&r, NULL);
	stage_client_add(&r, &c, 1, NULL);
	memset(&qp, 0, sizeof(qp));
	stage_qp_make(&qp, &c, &both, &done);
	r.s->qps[0] = &qp;
	for (unsigned i = 1; i <= 4096; i++) {
		cr_assert_eq(rte_ring_sp_enqueue_elem(r.e->rings.to_stage[0][0], &m, sizeof(m)), 0);
		if (i == 2048) {
			for (unsigned k = 0; k < 3; k++)
				flood_start(&r, &f[k], 1, (uint16_t)(2 + k), NULL);
			eng_qp_activate(r.s, &qp);
		}
		stage_rig_turn(&r, 1000);
		if (i >= 2048 && done >> 32 == 0)
			late++;
	}
	cr_assert_leq(late, 6, "it waited for %u turns", late);
	cr_assert_eq(done & UINT32_MAX, 4096);
	r.s->qps[0] = NULL;
	for (unsigned k = 0; k < 3; k++)
		flood_stop(&r, &f[k]);
	stage_client_del(&r, &c);
	stage_rig_end(&r);
}

Test(engine_stage_turns, a_turn_takes_64_kib_of_large_messages_and_all_small_ones, .init = pair_eal)
{
	message_len = 8192;
	cr_assert_eq(taken_in_a_turn(128), 65536 / 8192);
	message_len = 64;
	cr_assert_eq(taken_in_a_turn(128), 128);
}

Test(engine_stage_turns, a_turn_answers_32_small_requests_or_64_kib, .init = pair_eal)
{
	requests = true;
	message_len = 8192;
	cr_assert_eq(taken_in_a_turn(128), 65536 / 8192);
	message_len = 64;
	cr_assert_eq(taken_in_a_turn(128), 32);
}
