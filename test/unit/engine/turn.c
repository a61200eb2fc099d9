/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of a turn of the control stage, and the order in which it serves clients, peers'
 * requests and attempts. */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../../lib/engine/control/cm/cm.h"
#include "script.h"

#define CLIENTS 4

static struct script *s;
static struct hand hand[CLIENTS]; /* three clients of user 1, one of user 2 */

static void
begin(void (*tweak)(struct eng_config *cfg))
{
	s = script_new(tweak);
	for (unsigned i = 0; i < CLIENTS; i++)
		hand_attach_as(&hand[i], s, i < CLIENTS - 1 ? 1 : 2);
}

static void
end(void)
{
	script_free(s);
	for (unsigned i = 0; i < CLIENTS; i++)
		hand_free(&hand[i]);
}

/* Returns the number of messages that the client's event ring has. */
static unsigned
replies(struct hand *c)
{
	unsigned n = 0;

	while (shm_take_peek(&c->evt) != NULL) {
		shm_take_pop(&c->evt);
		shm_take_publish(&c->evt);
		n++;
	}
	return n;
}

/* Puts commands about the object `handle` into the mailbox until it is full. */
static void
flood(struct hand *c, enum shm_op op, uint32_t handle)
{
	struct shm_msg m = {.body.handle = handle};

	while (shm_prod_room(&c->cmd))
		hand_send(c, &m, op);
}

Test(engine_turn, clients_of_one_user_have_one_share_of_the_turn)
{
	unsigned n[CLIENTS] = {0};

	begin(NULL);
	for (unsigned turn = 0; turn < 400; turn++) {
		for (unsigned i = 0; i < CLIENTS; i++)
			flood(&hand[i], SHM_QUERY_DEVICE, 0);
		script_turn(s);
		for (unsigned i = 0; i < CLIENTS; i++)
			n[i] += replies(&hand[i]);
	}
	cr_assert_gt(n[3], 1000);
	cr_assert_float_eq((double)n[3] / (n[0] + n[1] + n[2]), 1, 0.02);
	cr_assert_float_eq((double)n[0] / n[1], 1, 0.02);
	cr_assert_float_eq((double)n[0] / n[2], 1, 0.02);
	script_turns(s, 50);
	end();
}

/* A command to the stages costs more than one that the control stage executes alone. */
Test(engine_turn, costly_commands_count_for_more)
{
	unsigned cheap = 0, costly = 0;
	struct shm_msg m;

	begin(NULL);
	m = hand_qp(&hand[0], hand_pd(&hand[0]), hand_cq(&hand[0]));
	for (unsigned turn = 0; turn < 400; turn++) {
		flood(&hand[0], SHM_QP_QUERY, m.body.qp.qp);
		flood(&hand[3], SHM_QUERY_DEVICE, 0);
		script_turn(s);
		costly += replies(&hand[0]);
		cheap += replies(&hand[3]);
	}
	cr_assert_gt(costly, 100);
	cr_assert_float_eq((double)cheap / costly, 2, 0.2);
	script_turns(s, 50);
	end();
}

Test(engine_turn, a_turn_executes_commands_of_a_bounded_cost)
{
	begin(NULL);
	for (unsigned turn = 0; turn < 200; turn++) {
		unsigned done = 0;

		for (unsigned i = 0; i < CLIENTS; i++)
			flood(&hand[i], SHM_QUERY_DEVICE, 0);
		script_turn(s);
		for (unsigned i = 0; i < CLIENTS; i++)
			done += replies(&hand[i]);
		cr_assert_geq(done, 1);
		cr_assert_leq(done, CTL_TURN_COST);
	}
	script_turns(s, 50);
	end();
}

Test(engine_turn, commands_wait_after_one_that_was_refused)
{
	unsigned done = 0;

	begin(NULL);
	for (unsigned turn = 0; turn < 10 * CTL_REFUSED_TURNS; turn++) {
		flood(&hand[0], SHM_PD_DESTROY, 99); /* there is no such domain */
		script_turn(s);
		done += replies(&hand[0]);
	}
	cr_assert(done >= 9 && done <= 11, "%u commands", done);
	/* It harms no other client, and a command that is not refused comes at once. */
	flood(&hand[1], SHM_QUERY_DEVICE, 0);
	script_turns(s, 3);
	cr_assert_geq(replies(&hand[1]), 4);
	script_turns(s, 50);
	end();
}

/* A client whose commands are all unanswered is not polled until one is answered. */
Test(engine_turn, a_client_with_too_many_unanswered_commands_waits_for_an_answer)
{
	struct shm_msg m;
	uint32_t pd, cq;

	begin(NULL);
	pd = hand_pd(&hand[0]);
	cq = hand_cq(&hand[0]);
	m = hand_qp(&hand[0], pd, cq);
	s->hold = ENG_CE_QP_QUERY;
	for (unsigned i = 0; i < 2 * CTL_CLIENT_COMMANDS; i++) {
		struct shm_msg q = {.body.handle = m.body.qp.qp};

		while (!shm_prod_room(&hand[0].cmd))
			script_turn(s);
		hand_send(&hand[0], &q, SHM_QP_QUERY);
	}
	script_turns(s, 20);
	cr_assert_eq(s->nheld, CTL_CLIENT_COMMANDS);
	cr_assert(TAILQ_EMPTY(&s->control->rung), "the control stage polls the mailbox in vain");
	script_release(s, 0);
	for (unsigned i = 0; i < 2 * CTL_CLIENT_COMMANDS; i++)
		cr_assert(hand_next(&hand[0], &m));
	end();
}

/* ---- Queues ---- */

/* The control stage writes only the indices of a new queue, and the turn of its first entry: its
 * entries may have any contents, and cost nothing. A CQ gets the sub-ring of a stage with the first
 * QP of that stage. */
Test(engine_turn, a_deep_queue_costs_no_more_than_a_small_one)
{
	struct shm_msg pd = {0}, m = {.body.cq.depth = 1024};
	const struct shm_cq *cq;

	begin(NULL);
	memset(hand[0].home + hand[0].h.heap, 0xee, hand[0].h.heap_len);
	cr_assert_eq(hand_do(&hand[0], &pd, SHM_PD_CREATE), 0);
	cr_assert_eq(hand_do(&hand[0], &m, SHM_CQ_CREATE), 0);
	cq = (const struct shm_cq *)(hand[0].home + m.body.cq.at);
	cr_assert(cq->arm == 0 && cq->nsubs == 0);
	for (unsigned i = 0; i < 2 * SCRIPT_STAGES; i++) {
		hand_qp(&hand[0], pd.body.handle, m.body.cq.cq);
		cr_assert_eq(cq->nsubs, SK_MIN(i + 1, (unsigned)SCRIPT_STAGES));
	}
	for (unsigned i = 0; i < SCRIPT_STAGES; i++) {
		struct shm_ring_at ring = shm_cq_ring(cq->sub[i], 10);

		cr_assert(shm_ring_ok(&ring, hand[0].h.size, sizeof(struct shm_cqe)));
		cr_assert_eq(*(uint32_t *)(hand[0].home + ring.entries), 0);
		for (uint64_t b = sizeof(uint32_t); b < shm_ring_bytes(&ring); b++)
			cr_assert_eq(hand[0].home[ring.entries + b], 0xee);
		cr_assert_eq(*(uint32_t *)(hand[0].home + ring.cons), 0);
	}
	end();
}

/* ---- Peers ---- */

static void
many_requests(struct eng_config *cfg)
{
	cfg->limits.conns = 80;
	cfg->limits.users = 2;
	cfg->limits.user_min = 25; /* 20 requests of each user are reserved */
	cfg->limits.user_most = 75;
}

static void
listen_at(struct hand *c, uint16_t port, uint32_t backlog)
{
	struct shm_msg m = {.body.cm = {.lport = port, .backlog = backlog}};

	cr_assert_eq(hand_do(c, &m, SHM_LISTEN), 0);
}

/* Sends `n` requests to the newest listener. */
static void
peers_ask(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct eng_ctl *m = script_say(s, ENG_TC_REQUEST);

		m->conn = s->next_conn++;
		m->peer =
			(struct eng_peer){.listener = script_last(s, ENG_CT_LISTEN)->listen.number,
				.outcome.mpa = {.revision = 2}};
		script_send(s, m);
	}
}

Test(engine_turn, a_turn_handles_a_bounded_number_of_requests)
{
	unsigned n = 0;

	begin(NULL);
	listen_at(&hand[0], 7000, 64);
	peers_ask(50);
	for (unsigned turn = 0; turn < 20; turn++) {
		uint32_t before = s->control->share[CTL_POOL_REQUEST].held;

		script_turn(s);
		n = s->control->share[CTL_POOL_REQUEST].held;
		cr_assert_leq(n - before, CTL_TURN_REQUESTS);
	}
	cr_assert_eq(n, 50);
	end();
}

/* Requests that wait for the clients of one user leave room for requests to other users. */
Test(engine_turn, requests_to_one_user_leave_room_for_those_to_others)
{
	const struct sk_share *share;

	begin(many_requests);
	share = &s->control->share[CTL_POOL_REQUEST];
	for (unsigned i = 0; i < 3; i++) {
		listen_at(&hand[i], (uint16_t)(7000 + i), 40);
		peers_ask(40);
		script_turns(s, 10);
	}
	/* The instance, and user 2, have the rest. */
	cr_assert_eq(share->used[1], share->size - 2 * share->minimum);
	cr_assert_gt(script_counter(s, ENG_REQUEST_REFUSED), 0);
	listen_at(&hand[3], 7003, 40);
	peers_ask(share->minimum);
	script_turns(s, 10);
	cr_assert_eq(share->used[2], share->minimum);
	end();
}

Test(engine_turn, a_closed_listener_rejects_its_requests_in_several_turns)
{
	struct shm_msg m = {0};

	begin(NULL);
	listen_at(&hand[0], 7000, 64);
	peers_ask(50);
	script_turns(s, 10);
	hand_send(&hand[0], &m, SHM_UNLISTEN); /* its only listener has handle 0 */
	for (unsigned turn = 0, before = 0; turn < 20; turn++) {
		script_turn(s);
		cr_assert_leq(script_count(s, ENG_CT_REJECT) - before, CTL_TURN_REQUESTS);
		before = script_count(s, ENG_CT_REJECT);
	}
	cr_assert_eq(script_count(s, ENG_CT_REJECT), 50);
	cr_assert_eq(script_counter(s, ENG_REQUEST_TIMEOUT), 0);
	end();
}

/* ---- Messages to transport stages ---- */

Test(engine_turn, messages_to_transport_stages_name_the_user)
{
	uint32_t pd, cq;
	struct shm_msg m, qp;
	struct hand *c;

	begin(NULL);
	c = &hand[3];
	pd = hand_pd(c);
	cq = hand_cq(c);
	listen_at(c, 7000, 4);
	cr_assert_eq(script_last(s, ENG_CT_LISTEN)->user, hand_client(c)->eng.user);
	qp = hand_qp(c, pd, cq);
	m = (struct shm_msg){.body.cm = {.qp = qp.body.qp.qp, .rport = 5000}};
	sk_addr_parse("10.0.0.2", &m.body.cm.remote);
	cr_assert_eq(hand_do(c, &m, SHM_CONNECT), 0);
	script_turns(s, 4);
	cr_assert_eq(script_last(s, ENG_CT_CONNECT)->user, hand_client(c)->eng.user);
	peers_ask(1);
	cr_assert(hand_next(c, &m));
	cr_assert_eq(m.op, SHM_EV_CONNECT_REQUEST);
	qp = hand_qp(c, pd, cq);
	m = (struct shm_msg){
		.body.cm = {.qp = qp.body.qp.qp, .request = m.body.cm.request, .ird = 1}};
	cr_assert_eq(hand_do(c, &m, SHM_ACCEPT), 0, "%s", m.body.text);
	script_turns(s, 4);
	cr_assert_eq(script_last(s, ENG_CT_ACCEPT)->user, hand_client(c)->eng.user);
	end();
}

/* ---- Attempts of QPs modified by the program ---- */

#define PACE 50000 /* ns */

static void
falcon(struct eng_config *cfg)
{
	cfg->falcon.enabled = true;
}

static void
modify(struct hand *c, uint32_t qp, uint8_t state)
{
	struct shm_msg m = {
		.body.move = {.qp = qp, .state = state, .remote_qpn = 77, .timeout = 14}};

	sk_addr_parse("10.0.0.2", &m.body.move.remote);
	cr_assert_eq(hand_do(c, &m, SHM_QP_MODIFY), 0, "%s", m.body.text);
}

/* The attempts of one user begin one after the other, however many of its QPs want to begin. */
Test(engine_turn, attempts_of_one_user_are_spread_over_time)
{
	uint32_t pd, cq, qp[30];
	uint64_t began;

	begin(falcon);
	pd = hand_pd(&hand[0]);
	cq = hand_cq(&hand[0]);
	for (unsigned i = 0; i < 30; i++) {
		struct shm_msg m = {.body.qp = {.pd = pd,
					    .send_cq = cq,
					    .recv_cq = cq,
					    .srq = SHM_NONE,
					    .transport = SHM_FALCON}};

		cr_assert_eq(hand_do(&hand[0], &m, SHM_QP_CREATE), 0, "%s", m.body.text);
		qp[i] = m.body.qp.qp;
		modify(&hand[0], qp[i], RD_QP_INIT);
		modify(&hand[0], qp[i], RD_QP_RTR);
	}
	s->fail = ENG_CT_CONNECT;
	s->fail_status = -EHOSTUNREACH;
	began = s->now;
	for (unsigned i = 0; i < 30; i++)
		modify(&hand[0], qp[i], RD_QP_RTS);
	cr_assert_lt(s->now - began, 20 * PACE, "the test is too slow to show the pace");
	cr_assert_leq(script_count(s, ENG_CT_CONNECT), 1 + (s->now - began) / PACE);
	while (s->now - began < 32 * PACE) {
		script_turn(s);
		cr_assert_leq(script_count(s, ENG_CT_CONNECT), 1 + (s->now - began) / PACE);
	}
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 30);
	end();
}

static void
many_domains(struct eng_config *cfg)
{
	cfg->limits.pds = 200;
	cfg->limits.client_qps = 64;
	cfg->falcon.enabled = true;
}

/* The domains of a client that leaves are destroyed in turns, like its other objects. */
Test(engine_turn, domains_of_a_removed_client_are_destroyed_eight_in_a_turn)
{
	const struct sk_share *share;

	begin(many_domains);
	for (unsigned i = 0; i < 40; i++) {
		struct shm_msg m = {0};

		hand_pd(&hand[0]);
		cr_assert_eq(hand_do(&hand[0], &m, SHM_XRCD_OPEN), 0);
	}
	share = s->control->share;
	cr_assert_eq(share[CTL_POOL_PD].held + share[CTL_POOL_XRCD].held, 80);
	eng_control_detach(s->control, hand[0].number);
	for (unsigned turn = 0; s->control->totals.clients == CLIENTS; turn++) {
		uint32_t before = share[CTL_POOL_PD].held + share[CTL_POOL_XRCD].held;
		script_turn(s);
		cr_assert_leq(before - share[CTL_POOL_PD].held - share[CTL_POOL_XRCD].held, 8);
		cr_assert_lt(turn, 1000);
	}
	cr_assert_eq(share[CTL_POOL_PD].held + share[CTL_POOL_XRCD].held, 0);
	end();
}
