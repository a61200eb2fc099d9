/* SPDX-License-Identifier: BSD-3-Clause */
/* QPs modified by the program: the states between which a QP moves, and its attempts. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "../../../lib/engine/control/cm/cm.h"
#include "script.h"

static struct script *s;
static struct hand c;

static void
setup(void)
{
	s = script_new(script_falcon);
	hand_attach(&c, s);
}

static void
finish(void)
{
	script_free(s);
	hand_free(&c);
}

TestSuite(engine_cm_modified, .init = setup, .fini = finish);

/* ---- States ---- */

Test(engine_cm_modified, a_qp_leaves_the_error_state_by_reset_only)
{
	uint32_t qp = hand_falcon_qp(&c);

	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	script_turns(s, 100);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RESET), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), -EINVAL);
}

Test(engine_cm_modified, a_datagram_qp_leaves_the_error_state_by_reset_only)
{
	struct shm_msg m = {.body.qp = {.pd = hand_pd(&c),
				    .send_cq = hand_cq(&c),
				    .srq = SHM_NONE,
				    .transport = SHM_FALCON,
				    .type = SHM_UD,
				    .sq_depth = 4,
				    .rq_depth = 4,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .xrcd = SHM_NONE}};
	uint32_t qp;

	m.body.qp.recv_cq = m.body.qp.send_cq;
	cr_assert_eq(hand_do(&c, &m, SHM_QP_CREATE), 0, "%s", m.body.text);
	qp = m.body.qp.qp;
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), -EINVAL);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RESET), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), 0);
}

Test(engine_cm_modified, a_qp_in_the_error_state_does_not_connect)
{
	uint32_t qp = hand_falcon_qp(&c);
	struct shm_msg m = {.body.cm = {.qp = qp, .rport = 5000, .ird = 4, .ord = 4}};

	cr_assert_eq(sk_addr_parse(HAND_PEER, &m.body.cm.remote), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_ERR), 0);
	cr_assert_eq(hand_do(&c, &m, SHM_CONNECT), -EINVAL);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
}

/* Opens the XRC domain of inode 5, which the first client creates. Returns the handle. */
static uint32_t
open_xrcd(struct hand *who)
{
	struct shm_msg m = {.body.xrcd = {.ino = 5, .create = 1}};

	cr_assert_eq(hand_do(who, &m, SHM_XRCD_OPEN), 0, "%s", m.body.text);
	return m.body.xrcd.xrcd;
}

static uint8_t
state_of(struct hand *who, uint32_t handle)
{
	struct shm_msg m = {.body.handle = handle};

	cr_assert_eq(hand_do(who, &m, SHM_QP_QUERY), 0, "%s", m.body.text);
	return m.body.qp.state;
}

Test(engine_cm_modified, a_client_that_has_opened_a_qp_sees_the_state_that_its_owner_sees)
{
	struct shm_msg m = {.body.qp = {.srq = SHM_NONE,
				    .transport = SHM_FALCON,
				    .type = SHM_XRC_RECV,
				    .xrcd = open_xrcd(&c)}};
	struct hand other;
	uint32_t qp, opened;

	cr_assert_eq(hand_do(&c, &m, SHM_QP_CREATE), 0, "%s", m.body.text);
	qp = m.body.qp.qp;
	hand_attach(&other, s);
	m = (struct shm_msg){.body.qp = {.xrcd = open_xrcd(&other), .qpn = m.body.qp.qpn}};
	cr_assert_eq(hand_do(&other, &m, SHM_QP_OPEN), 0, "%s", m.body.text);
	opened = m.body.qp.qp;
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	for (uint8_t state = RD_QP_RTR; state <= RD_QP_RTS; state++) {
		cr_assert_eq(hand_move(&c, qp, state), 0);
		cr_expect_eq(state_of(&c, qp), state);
		cr_expect_eq(state_of(&other, opened), state);
	}
	cr_assert_eq(eng_control_detach(s->control, other.number), 0);
	while (!eng_control_client_gone(s->control, other.number))
		script_turn(s);
	hand_free(&other);
}

/* ---- The pace of attempts ---- */

#define PACE_NS 50000 /* the time between two attempts of a user */

/* Creates an address handle for host 10.1.0.1 + n, which answers nothing. Returns the reply. */
static struct shm_msg
host_handle(struct hand *who, uint32_t pd, unsigned n)
{
	struct shm_msg m = {.body.ah.pd = pd};
	char addr[32];

	snprintf(addr, sizeof(addr), "10.1.0.%u", n + 1);
	cr_assert_eq(sk_addr_parse(addr, &m.body.ah.remote), 0);
	hand_do(who, &m, SHM_AH_CREATE);
	return m;
}

static uint32_t
silent_host(struct hand *who, uint32_t pd, unsigned n)
{
	struct shm_msg m = host_handle(who, pd, n);

	cr_assert_eq(m.status, 0, "%s", m.body.text);
	return m.body.ah.ah;
}

/* Creates an address handle. Returns the time (ns) until the attempt of its host connection. */
static uint64_t
attempt_after(struct hand *who, uint32_t pd, unsigned n)
{
	unsigned before = script_count(s, ENG_CT_CONNECT);
	uint64_t from = s->now;

	silent_host(who, pd, n);
	while (script_count(s, ENG_CT_CONNECT) == before && s->now < from + 1000 * PACE_NS)
		script_turn(s);
	return s->now - from;
}

Test(engine_cm_modified, attempts_that_a_client_gives_up_delay_neither_others_nor_itself)
{
	uint32_t pd = hand_pd(&c);
	struct hand other;

	hand_attach_as(&other, s, 2);
	s->fail = ENG_CT_CONNECT;
	s->fail_status = -EHOSTUNREACH;
	for (unsigned i = 0; i < 50; i++) {
		uint32_t ah[8];

		for (unsigned k = 0; k < 8; k++)
			ah[k] = silent_host(&c, pd, k);
		for (unsigned k = 0; k < 8; k++)
			hand_destroy(&c, SHM_AH_DESTROY, ah[k]);
		while (s->control->nhosts > 0)
			script_turn(s);
	}
	cr_assert_leq(attempt_after(&other, hand_pd(&other), 0), PACE_NS);
	cr_assert_leq(attempt_after(&c, pd, 1), 2 * PACE_NS);
	s->fail = -1;
	cr_assert_eq(eng_control_detach(s->control, other.number), 0);
	while (!eng_control_client_gone(s->control, other.number))
		script_turn(s);
	hand_free(&other);
}

Test(engine_cm_modified, a_repeated_move_to_rts_keeps_the_time_of_the_attempt)
{
	uint32_t qp[2] = {hand_falcon_qp(&c), hand_falcon_qp(&c)};
	uint64_t from;

	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(hand_move(&c, qp[i], RD_QP_INIT), 0);
		cr_assert_eq(hand_move(&c, qp[i], RD_QP_RTR), 0);
	}
	from = s->now;
	cr_assert_eq(hand_move(&c, qp[0], RD_QP_RTS), 0);
	while (s->now < from + 2 * PACE_NS)
		cr_assert_eq(hand_move(&c, qp[1], RD_QP_RTS), 0);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 2);
}

/* ---- Host connections ---- */

Test(engine_cm_modified, a_host_connection_without_memory_at_its_stage_is_neither_made_nor_kept)
{
	uint32_t pd = hand_pd(&c);
	unsigned n;

	s->fail = ENG_CE_QP_ADD;
	s->fail_status = -ENOMEM;
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(host_handle(&c, pd, 0).status, -ENOMEM);
		while (s->control->nhosts > 0)
			script_turn(s);
	}
	cr_assert_eq(hand_client(&c)->ahs.used, 0);
	/* An attempt that began before the stage answered was aborted, and no other follows. */
	n = script_count(s, ENG_CT_CONNECT);
	cr_assert_eq(script_count(s, ENG_CT_ABORT), n);
	cr_assert_eq(script_count(s, ENG_CE_QP_START) + script_count(s, ENG_CT_BIND), 0);
	for (unsigned i = 0; i < 100; i++) {
		s->now += 100 * PACE_NS;
		script_turn(s);
	}
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), n);
	s->fail = -1;
	cr_assert_lt(attempt_after(&c, pd, 0), PACE_NS);
}

/* With the hash of the address alone, a client made one list as long as it liked. */
Test(engine_cm_modified, host_connections_of_many_classes_to_one_host_are_in_many_lists)
{
	uint32_t pd = hand_pd(&c);

	s->control->qpn_key = (struct sk_key){{1, 2}};
	for (unsigned i = 0; i < 16; i++) {
		struct shm_msg m = {.body.ah = {.pd = pd,
					    .class = {.set = SHM_CLASS_TRAFFIC,
						    .traffic_class = (uint8_t)(i << 2)}}};

		cr_assert_eq(sk_addr_parse(HAND_PEER, &m.body.ah.remote), 0);
		cr_assert_eq(hand_do(&c, &m, SHM_AH_CREATE), 0, "%s", m.body.text);
	}
	cr_assert_eq(s->control->nhosts, 16);
	for (unsigned i = 0; i < CTL_HOST_HASH; i++) {
		const struct ctl_host *h;
		unsigned n = 0;

		LIST_FOREACH (h, &s->control->host_hash[i], bucket)
			n++;
		cr_assert_leq(n, 2);
	}
}

/* ---- Notices ---- */

/* Moves the QP to RTS, and waits until the transport stage has begun its attempt. */
static void
attempts(uint32_t qp)
{
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), 0);
	while (ctl_qp_find(hand_client(&c), qp)->conn.state != CM_OPENING) {
		s->now += 50000; /* the time between two attempts of a user */
		script_turn(s);
	}
}

#define LATE 254

/* Sends the outcome of the present attempt, behind more requests of peers than some turns handle.
 */
static void
send_late(const struct cm_conn *q, enum eng_ctl_type type)
{
	struct eng_ctl *m;

	for (unsigned i = 0; i < LATE; i++) {
		m = script_say(s, ENG_TC_REQUEST);
		m->transport = q->transport;
		m->conn = 1000 + i;
		m->peer.listener = UINT32_MAX;
		script_send(s, m);
	}
	m = script_say(s, type);
	m->transport = q->transport;
	m->conn = q->conn;
	m->cookie = cm_conn_cookie(q);
	m->status = type == ENG_TC_FAILED ? -ECONNRESET : 0;
	m->peer.outcome.kind = ENG_FALCON;
	script_send(s, m);
}

static void
late_notice(enum eng_ctl_type type)
{
	uint32_t qp = hand_falcon_qp(&c);
	struct cm_conn *q = &ctl_qp_find(hand_client(&c), qp)->conn;
	uint64_t stale = script_counter(s, ENG_STALE);

	attempts(qp);
	send_late(q, type);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RESET), 0);
	attempts(qp);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 2);
	cr_assert_geq(script_out(s), 1, "the notice came too early for this test");
	script_turns(s, 100);
	cr_assert_eq(script_out(s), 0);
	cr_assert_eq(script_count(s, ENG_CE_QP_START), 0);
	cr_assert_eq(q->state, CM_OPENING, "the second attempt goes on");
	cr_assert_eq(script_counter(s, ENG_STALE), stale + 1);
}

Test(engine_cm_modified, a_late_success_of_an_attempt_before_a_reset_is_not_that_of_the_next)
{
	late_notice(ENG_TC_ESTABLISHED);
}

Test(engine_cm_modified, a_late_failure_of_an_attempt_before_a_reset_is_not_that_of_the_next)
{
	late_notice(ENG_TC_FAILED);
}

/* ---- Crossing requests ---- */

/* The transport stage may use the index of a request that has failed for another client's. */
Test(engine_cm_modified,
	a_request_that_fails_while_the_attempt_it_crossed_is_aborted_is_not_rejected)
{
	uint32_t qp = hand_falcon_qp(&c), qpn = ctl_qp_find(hand_client(&c), qp)->eng.rd.qpn;
	struct cm_conn *q = &ctl_qp_find(hand_client(&c), qp)->conn;
	struct shm_msg m = {.body.handle = qp};
	struct eng_ctl *notice;

	s->hold = ENG_CT_CONNECT;
	cr_assert_eq(hand_move(&c, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTR), 0);
	cr_assert_eq(hand_move(&c, qp, RD_QP_RTS), 0);
	while (s->nheld == 0)
		script_turn(s);
	notice = script_say(s, ENG_TC_REQUEST);
	notice->conn = 1000;
	notice->peer.outcome = (struct eng_outcome){.kind = ENG_FALCON,
		.falcon = {.addressing = ROFX_ADDRESS, .qpn = 77, .to_qpn = qpn}};
	sk_addr_parse(HAND_PEER, &notice->peer.tuple.raddr);
	sk_addr_parse("10.0.0.1", &notice->peer.tuple.laddr);
	script_send(s, notice);
	script_turns(s, 4);
	cr_assert_eq(q->state, CM_CONNECTING);
	cr_assert_not_null(q->request, "the request waits for the end of the attempt");
	hand_send(&c, &m, SHM_QP_DESTROY);
	script_turns(s, 4);
	script_release(s, 0);
	s->hold = ENG_CT_ABORT;
	while (s->nheld == 0)
		script_turn(s);
	cr_assert_eq(q->state, CM_ABORTING);
	notice = script_say(s, ENG_TC_FAILED);
	notice->conn = 1000;
	notice->status = -ECONNRESET;
	script_send(s, notice);
	script_turns(s, 4);
	script_release(s, 0);
	cr_assert(hand_next(&c, &m));
	cr_assert_eq(m.status, 0);
	cr_assert_eq(script_count(s, ENG_CT_REJECT), 0);
}
