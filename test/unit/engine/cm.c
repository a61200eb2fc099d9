/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager: every event in every state, and complete sequences of events. */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../../lib/engine/control/cm/cm.h"
#include "script.h"

static struct script *s;
static struct hand c;
static struct shm_msg qp;
static void (*tweak)(struct eng_config *cfg);

static void
setup(void)
{
	uint32_t pd, cq;

	s = script_new(tweak);
	hand_attach(&c, s);
	pd = hand_pd(&c);
	cq = hand_cq(&c);
	qp = hand_qp(&c, pd, cq);
}

static void
finish(void)
{
	struct eng_totals t = {0};

	eng_control_detach(s->control, c.number);
	script_turns(s, 60);
	eng_control_totals(s->control, &t);
	cr_assert_eq(t.clients + t.qps + t.listeners, 0);
	cr_assert_eq(script_out(s), 0, "a stage did not get its message back");
	script_free(s);
	hand_free(&c);
}

static int
do_connect(void)
{
	struct shm_msg m = {.body.cm = {.qp = qp.body.qp.qp,
				    .rport = 5000,
				    .ird = 4,
				    .ord = 5,
				    .crc = 2,
				    .markers = 2,
				    .private_len = 3,
				    .private_data = "abc"}};

	sk_addr_parse("10.0.0.2", &m.body.cm.remote);
	return hand_do(&c, &m, SHM_CONNECT);
}

/* Sends a notice of the transport stage about the newest active open. */
static void
transport_says(enum eng_ctl_type type, int status)
{
	const struct eng_ctl *open = script_last(s, ENG_CT_CONNECT);
	struct eng_ctl *m = script_say(s, type);

	m->transport = open->transport;
	m->cookie = open->cookie;
	m->conn = s->next_conn - 1;
	m->status = status;
	if (type != ENG_TC_FAILED)
		m->peer = (struct eng_peer){.tuple = open->connect.tuple,
			.outcome = {.ird = 3, .ord = 2, .mpa = {.revision = 2, .crc = true}},
			.emss = 1448,
			.send_space = 9000};
	m->private_len = 2;
	memcpy(m->private_data, "xy", 2);
	script_send(s, m);
	script_turns(s, 4);
}

static void
stage_says(enum eng_ctl_type type, int status)
{
	const struct eng_ctl *add = script_last(s, ENG_CE_QP_ADD);
	struct eng_ctl *m = script_say(s, type);

	m->stage = add->stage;
	m->qp = add->qp;
	m->client = add->client;
	m->status = status;
	script_send(s, m);
	script_turns(s, 4);
}

static uint32_t
listen_at(uint16_t port)
{
	struct shm_msg m = {.body.cm = {.lport = port, .backlog = 2}};

	cr_assert_eq(hand_do(&c, &m, SHM_LISTEN), 0);
	return m.body.cm.listener;
}

/* Sends a peer's request. Returns the index of its connection. */
static uint32_t
peer_asks(void)
{
	struct eng_ctl *m = script_say(s, ENG_TC_REQUEST);

	m->transport = 1;
	m->conn = s->next_conn++;
	m->peer = (struct eng_peer){.listener = script_last(s, ENG_CT_LISTEN)->listen.number,
		.outcome = {.peer_ird = 100,
			.peer_ord = 7,
			.mpa = {.revision = 2, .crc = true, .peer_ird = 100, .peer_ord = 7}},
		.emss = 1400};
	m->private_len = 2;
	memcpy(m->private_data, "hi", 2);
	script_send(s, m);
	script_turns(s, 4);
	return s->next_conn - 1;
}

static struct shm_msg
expect(enum shm_op op)
{
	struct shm_msg m;

	cr_assert(hand_next(&c, &m), "event %d did not come", op);
	cr_assert_eq(m.op, op, "%d instead of %d", m.op, op);
	return m;
}

static int
do_accept(uint32_t request)
{
	struct shm_msg m = {.body.cm = {.qp = qp.body.qp.qp,
				    .request = request,
				    .ird = 9,
				    .ord = 8,
				    .private_len = 2,
				    .private_data = "ok"}};

	return hand_do(&c, &m, SHM_ACCEPT);
}

/* ---- Complete sequences ---- */

Test(engine_cm, active_open_starts_the_qp_before_the_connection_is_bound)
{
	const struct eng_ctl *m;
	struct shm_msg ev;

	setup();
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	m = script_last(s, ENG_CT_CONNECT);
	cr_assert_eq(m->private_len, 3);
	cr_assert_eq(m->connect.offer.ird, 4);
	cr_assert_eq(m->connect.offer.mpa.revision, s->cfg.mpa_revision);
	s->hold = ENG_CE_QP_START;
	transport_says(ENG_TC_ESTABLISHED, 0);
	cr_assert_null(script_last(s, ENG_CT_BIND));
	m = script_last(s, ENG_CE_QP_START);
	cr_assert(m->start.initiator && m->start.mpa.crc);
	cr_assert_eq(m->start.ird, 3);
	cr_assert_eq(m->start.ord, 2);
	cr_assert_eq(m->start.emss, 1448);
	cr_assert_eq(m->start.send_space, 9000);
	script_release(s, 0);
	script_turns(s, 4);
	m = script_last(s, ENG_CT_BIND);
	cr_assert_not_null(m);
	cr_assert_eq(m->stage, qp.body.qp.stage);
	cr_assert_eq(m->qp_index, 0);
	ev = expect(SHM_EV_ESTABLISHED);
	cr_assert_eq(ev.body.cm.qp, qp.body.qp.qp);
	cr_assert_eq(ev.body.cm.ird, 3);
	cr_assert_eq(ev.body.cm.private_len, 2);
	stage_says(ENG_EC_DISCONNECTED, 0);
	expect(SHM_EV_DISCONNECTED);
	cr_assert_eq(do_connect(), -EINVAL, "an iWARP QP connects once");
	finish();
}

Test(engine_cm, passive_open_starts_the_qp_before_the_reply_goes)
{
	const struct eng_ctl *m;
	struct eng_ctl *up;
	struct shm_msg ev;
	uint32_t conn;

	setup();
	listen_at(7000);
	conn = peer_asks();
	ev = expect(SHM_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.body.cm.ird, 7);
	cr_assert_eq(ev.body.cm.ord, s->cfg.limits.ord);
	cr_assert_eq(ev.body.cm.private_len, 2);
	s->hold = ENG_CE_QP_START;
	cr_assert_eq(do_accept(ev.body.cm.request), 0);
	script_turns(s, 3);
	cr_assert_null(script_last(s, ENG_CT_ACCEPT));
	m = script_last(s, ENG_CE_QP_START);
	cr_assert_not(m->start.initiator);
	cr_assert_eq(m->start.ird, 7, "the peer will have no more outstanding");
	cr_assert_eq(m->start.ord, 8);
	cr_assert_eq(m->conn, conn);
	cr_assert_eq(m->transport, 1);
	script_release(s, 0);
	script_turns(s, 3);
	m = script_last(s, ENG_CT_ACCEPT);
	cr_assert_eq(m->transport, 1);
	cr_assert_eq(m->private_len, 2);
	cr_assert_eq(m->connect.offer.ird, 9, "the reply is reduced where it is built");
	up = script_say(s, ENG_TC_ESTABLISHED);
	up->transport = 1;
	up->cookie = m->cookie;
	up->conn = conn;
	up->peer.outcome.ird = 7;
	script_send(s, up);
	ev = expect(SHM_EV_ESTABLISHED);
	cr_assert_eq(ev.body.cm.ird, 7);
	/* A request cannot be accepted twice. */
	cr_assert_eq(do_accept(1), -ECONNRESET);
	finish();
}

/* The notice of the transport stage waits behind the requests of peers. */
Test(engine_cm, a_connection_that_ends_before_its_notice_is_handled_was_established)
{
	struct eng_ctl *m;
	uint32_t conn;

	setup();
	listen_at(7000);
	conn = peer_asks();
	cr_assert_eq(do_accept(expect(SHM_EV_CONNECT_REQUEST).body.cm.request), 0);
	script_turns(s, 4);
	for (unsigned i = 0; i < 4 * CTL_TURN_REQUESTS; i++) {
		m = script_say(s, ENG_TC_REQUEST);
		m->transport = 1;
		m->conn = s->next_conn++;
		m->peer.listener = UINT32_MAX;
		script_send(s, m);
	}
	m = script_say(s, ENG_TC_ESTABLISHED);
	m->transport = 1;
	m->cookie = script_last(s, ENG_CT_ACCEPT)->cookie;
	m->conn = conn;
	script_send(s, m);
	stage_says(ENG_EC_DISCONNECTED, 0);
	expect(SHM_EV_ESTABLISHED);
	cr_assert_eq(expect(SHM_EV_DISCONNECTED).status, 0);
	cr_assert_eq(script_counter(s, ENG_STALE), 0);
	finish();
}

Test(engine_cm, a_dead_connection_goes_back_only_behind_the_bind_that_names_it)
{
	setup();
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	s->hold = ENG_CE_QP_START;
	transport_says(ENG_TC_ESTABLISHED, 0);
	transport_says(ENG_TC_FAILED, -ECONNRESET);
	cr_assert_eq(script_out(s), 1, "its index could be used again");
	script_release(s, 0);
	script_turns(s, 4);
	cr_assert_eq(script_count(s, ENG_CT_BIND), 1);
	cr_assert_eq(script_out(s), 0);
	stage_says(ENG_EC_DISCONNECTED, -ECONNRESET);
	expect(SHM_EV_ESTABLISHED);
	cr_assert_eq(expect(SHM_EV_DISCONNECTED).status, -ECONNRESET);
	finish();
}

Test(engine_cm, failures_leave_the_qp_ready_for_another_try)
{
	struct shm_msg ev;

	setup();
	s->fail = ENG_CT_CONNECT;
	s->fail_status = -ENETUNREACH;
	cr_assert_eq(do_connect(), 0);
	cr_assert_eq(expect(SHM_EV_UNREACHABLE).status, -ENETUNREACH);
	s->fail = -1;
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	transport_says(ENG_TC_FAILED, -ETIMEDOUT);
	cr_assert_eq(expect(SHM_EV_UNREACHABLE).status, -ETIMEDOUT);
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	transport_says(ENG_TC_REJECTED, 0);
	ev = expect(SHM_EV_REJECTED);
	cr_assert_eq(ev.body.cm.private_len, 2);
	/* The engine stage fails to start the QP: the connection is aborted. */
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	s->fail = ENG_CE_QP_START;
	s->fail_status = -ENOMEM;
	transport_says(ENG_TC_ESTABLISHED, 0);
	cr_assert_eq(expect(SHM_EV_UNREACHABLE).status, -ENOMEM);
	cr_assert_eq(script_count(s, ENG_CT_ABORT), 1);
	s->fail = -1;
	cr_assert_eq(do_connect(), 0);
	finish();
}

/* ---- Connect commands that meet no listener ---- */

/* Passes time until the command has been repeated. Returns false if it is not, within a second. */
static bool
connects_again(void)
{
	unsigned before = script_count(s, ENG_CT_CONNECT);

	for (unsigned i = 0; i < 1000 && script_count(s, ENG_CT_CONNECT) == before; i++) {
		s->now += 1000000;
		script_turn(s);
	}
	script_turns(s, 3);
	return script_count(s, ENG_CT_CONNECT) == before + 1;
}

Test(engine_cm, a_client_that_comes_before_the_listener_is_not_refused)
{
	const struct eng_ctl *again;

	setup();
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	for (unsigned i = 0; i < 3; i++) {
		transport_says(ENG_TC_FAILED, -ECONNREFUSED);
		cr_assert_eq(do_connect(), -EISCONN);
		cr_assert(connects_again());
		again = script_last(s, ENG_CT_CONNECT);
		cr_assert_eq(again->connect.tuple.rport, 5000);
		cr_assert_eq(again->private_len, 3);
		cr_assert_arr_eq(again->private_data, "abc", 3);
	}
	transport_says(ENG_TC_ESTABLISHED, 0);
	expect(SHM_EV_ESTABLISHED);
	cr_assert_eq(script_counter(s, ENG_CONNECT_AGAIN), 3);
	finish();
}

Test(engine_cm, a_refusal_is_reported_when_no_listener_has_appeared_in_half_a_second)
{
	uint64_t begin;

	setup();
	begin = s->now;
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	do
		transport_says(ENG_TC_FAILED, -ECONNREFUSED);
	while (connects_again());
	cr_assert_eq(expect(SHM_EV_UNREACHABLE).status, -ECONNREFUSED);
	cr_assert_leq(script_counter(s, ENG_CONNECT_AGAIN), 16);
	cr_assert_geq(script_counter(s, ENG_CONNECT_AGAIN), 8);
	cr_assert_geq(s->now - begin, 450000000);
	/* The QP is ready for another command, whose time is its own. */
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	transport_says(ENG_TC_FAILED, -ECONNREFUSED);
	cr_assert(connects_again());
	finish();
}

Test(engine_cm, a_qp_that_waits_for_a_listener_can_be_destroyed)
{
	setup();
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	transport_says(ENG_TC_FAILED, -ECONNREFUSED);
	cr_assert_eq(hand_destroy(&c, SHM_QP_DESTROY, qp.body.qp.qp), 0);
	cr_assert_not(connects_again());
	finish();
}

Test(engine_cm, a_qp_may_be_destroyed_while_any_answer_is_missing)
{
	static const enum eng_ctl_type types[] = {
		ENG_CT_CONNECT, ENG_CE_QP_START, ENG_CT_BIND, ENG_CT_ABORT};

	for (unsigned i = 0; i < 4; i++) {
		struct shm_msg m;

		setup();
		s->hold = (int)types[i];
		cr_assert_eq(do_connect(), 0);
		script_turns(s, 3);
		if (types[i] == ENG_CE_QP_START || types[i] == ENG_CT_BIND)
			transport_says(ENG_TC_ESTABLISHED, 0);
		m = (struct shm_msg){.body.handle = qp.body.qp.qp};
		hand_send(&c, &m, SHM_QP_DESTROY);
		script_turns(s, 5);
		cr_assert_eq(s->nheld, 1, "row %u", i);
		cr_assert_eq(script_count(s, ENG_CE_QP_DEL), 0, "row %u", i);
		if (types[i] == ENG_CT_CONNECT)
			s->held[0]->conn = s->next_conn++;
		script_release(s, 0);
		m = expect(SHM_QP_DESTROY);
		cr_assert_eq(m.status, 0);
		cr_assert_eq(script_count(s, ENG_CE_QP_DEL), 1, "row %u", i);
		/* A late notice about the QP is counted and dropped. */
		if (types[i] == ENG_CT_CONNECT)
			transport_says(ENG_TC_FAILED, -ECONNRESET);
		cr_assert_eq(script_out(s), 0);
		finish();
	}
}

Test(engine_cm, a_started_qp_is_released_when_its_transport_stage_has_no_connection)
{
	setup();
	s->fail = ENG_CT_BIND;
	s->fail_status = -ENOENT;
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	transport_says(ENG_TC_ESTABLISHED, 0);
	cr_assert_eq(script_count(s, ENG_CE_QP_CLOSE), 1);
	cr_assert_eq(script_last(s, ENG_CE_QP_CLOSE)->close.how, ENG_CLOSE_UNBOUND);
	stage_says(ENG_EC_DISCONNECTED, -ENOTCONN);
	expect(SHM_EV_ESTABLISHED);
	cr_assert_eq(expect(SHM_EV_DISCONNECTED).status, -ENOTCONN);
	cr_assert_eq(hand_destroy(&c, SHM_QP_DESTROY, qp.body.qp.qp), 0);
	finish();
}

Test(engine_cm, a_qp_that_accepts_is_released_when_its_transport_stage_has_no_connection)
{
	uint32_t request;

	setup();
	listen_at(7000);
	peer_asks();
	request = expect(SHM_EV_CONNECT_REQUEST).body.cm.request;
	s->fail = ENG_CT_ACCEPT;
	s->fail_status = -ENOENT;
	cr_assert_eq(do_accept(request), 0);
	script_turns(s, 8);
	cr_assert_eq(script_count(s, ENG_CE_QP_CLOSE), 1);
	cr_assert_eq(script_last(s, ENG_CE_QP_CLOSE)->close.how, ENG_CLOSE_UNBOUND);
	stage_says(ENG_EC_DISCONNECTED, -ENOTCONN);
	cr_assert_eq(expect(SHM_EV_UNREACHABLE).status, -ENOTCONN);
	cr_assert_eq(hand_destroy(&c, SHM_QP_DESTROY, qp.body.qp.qp), 0);
	finish();
}

static void
two_loops(struct eng_config *cfg)
{
	cfg->nloops = 2;
	cfg->transport_loop[1] = cfg->stage_loop[1] = 1;
}

/* The scripted requests arrive at transport stage 1. */
Test(engine_cm, a_qp_created_for_a_request_shares_its_loop)
{
	uint32_t pd, cq, first;
	struct shm_msg m = {0};

	tweak = two_loops;
	setup();
	pd = hand_pd(&c);
	cq = hand_cq(&c);
	cr_assert_eq(qp.body.qp.stage, 0);
	cr_assert_eq(hand_qp(&c, pd, cq).body.qp.stage, 1);
	listen_at(7000);
	peer_asks();
	expect(SHM_EV_CONNECT_REQUEST);
	/* Both engine stages have one QP. Without the request, stage 0 would get the next one. */
	cr_assert_eq(hand_qp(&c, pd, cq).body.qp.stage, 1);
	cr_assert_eq(hand_qp(&c, pd, cq).body.qp.stage, 0, "a request places one QP");
	/* Two each. The program accepts or rejects a request without creating a QP. */
	peer_asks();
	first = expect(SHM_EV_CONNECT_REQUEST).body.cm.request;
	cr_assert_eq(do_accept(first), 0);
	peer_asks();
	m.body.cm.request = expect(SHM_EV_CONNECT_REQUEST).body.cm.request;
	cr_assert_eq(hand_do(&c, &m, SHM_REJECT), 0);
	cr_assert_eq(hand_qp(&c, pd, cq).body.qp.stage, 0);
	finish();
}

Test(engine_cm, an_active_open_uses_the_transport_stage_of_its_loop)
{
	tweak = two_loops;
	setup();
	s->cfg.stage_loop[0] = 1; /* that of transport stage 1 */
	cr_assert_eq(do_connect(), 0);
	script_turns(s, 3);
	cr_assert_eq(script_last(s, ENG_CT_CONNECT)->transport, 1);
	finish();
}

Test(engine_cm, requests_without_an_answer_are_refused_in_time)
{
	struct shm_msg ev;
	uint32_t conn;

	setup();
	listen_at(7000);
	conn = peer_asks();
	ev = expect(SHM_EV_CONNECT_REQUEST);
	s->now += CTL_REQUEST_NS - 1000000;
	script_turns(s, 2);
	cr_assert_null(script_last(s, ENG_CT_REJECT));
	s->now += 2000000;
	script_turns(s, 2);
	cr_assert_eq(script_last(s, ENG_CT_REJECT)->conn, conn);
	cr_assert_eq(script_counter(s, ENG_REQUEST_TIMEOUT), 1);
	cr_assert_eq(do_accept(ev.body.cm.request), -ECONNRESET);
	/* The slot is used again, the number is not. */
	peer_asks();
	cr_assert_neq(expect(SHM_EV_CONNECT_REQUEST).body.cm.request, ev.body.cm.request);
	finish();
}

Test(engine_cm, a_backlog_is_a_bound_and_a_peer_that_goes_leaves_it)
{
	uint32_t conn;
	struct eng_ctl *m;

	setup();
	listen_at(7000);
	peer_asks();
	conn = peer_asks();
	peer_asks();
	expect(SHM_EV_CONNECT_REQUEST);
	expect(SHM_EV_CONNECT_REQUEST);
	cr_assert_eq(script_count(s, ENG_CT_REJECT), 1);
	cr_assert_eq(script_counter(s, ENG_REQUEST_REFUSED), 1);
	m = script_say(s, ENG_TC_FAILED);
	m->transport = 1;
	m->conn = conn;
	script_send(s, m);
	script_turns(s, 2);
	peer_asks();
	expect(SHM_EV_CONNECT_REQUEST);
	finish();
}

Test(engine_cm, a_listener_that_closes_refuses_waiting_requests)
{
	setup();
	listen_at(7000);
	peer_asks();
	expect(SHM_EV_CONNECT_REQUEST);
	cr_assert_eq(hand_destroy(&c, SHM_UNLISTEN, 0), 0);
	cr_assert_eq(script_count(s, ENG_CT_REJECT), 1);
	/* An answer that comes too late is refused. */
	peer_asks();
	cr_assert_eq(script_count(s, ENG_CT_REJECT), 2);
	finish();
}

/* The configuration's dialect applies where the program chooses none. */
static void
speak_draft(struct eng_config *cfg)
{
	cfg->draft_ext = true;
	cfg->mpa_fall_back = true;
}

Test(engine_cm, the_configuration_chooses_for_a_program_that_does_not_draft_5_1_2)
{
	static const uint8_t dialects[] = {
		SHM_DIALECT_CONFIGURED, SHM_DIALECT_RFC7306, SHM_DIALECT_DRAFT};
	static const uint8_t enhanced[] = {
		SHM_ENHANCED_CONFIGURED, SHM_ENHANCED_ONLY, SHM_ENHANCED_TRY};

	for (unsigned i = 0; i < 6; i++) {
		struct shm_msg m = {.body.cm = {.rport = 5000}};
		const struct eng_ctl *asked, *started;
		bool configured = i >= 3;

		tweak = configured ? speak_draft : NULL;
		setup();
		tweak = NULL;
		m.body.cm.qp = qp.body.qp.qp;
		m.body.cm.dialect = dialects[i % 3];
		m.body.cm.enhanced = enhanced[i % 3];
		sk_addr_parse("10.0.0.2", &m.body.cm.remote);
		cr_assert_eq(hand_do(&c, &m, SHM_CONNECT), 0, "%s", m.body.text);
		script_turns(s, 3);
		asked = script_last(s, ENG_CT_CONNECT);
		cr_assert_eq(asked->connect.offer.retry, i % 3 == 2 || (i % 3 == 0 && configured),
			"row %u", i);
		cr_assert_eq(asked->connect.offer.mpa.enhanced_only, !asked->connect.offer.retry,
			"row %u", i);
		transport_says(ENG_TC_ESTABLISHED, 0);
		started = script_last(s, ENG_CE_QP_START);
		cr_assert_eq(started->start.draft_ext, i % 3 == 2 || (i % 3 == 0 && configured),
			"row %u", i);
		finish();
	}
}

/* ---- The table ---- */

/* The next state, one letter each; '-': not in the table, and counted; 'F': the QP is freed. */
#define LETTERS "icosbaAwezxdWgrR"
static const char *const rows[CM_STATES] = {
	/* CONNECTED NOT_CONNECTED UP FOUND REJECTED FAILED STARTED NOT_STARTED BOUND NOT_BOUND
	   ACCEPTED NOT_ACCEPTED UNBOUND ENDED ABORTED DELETE DELETED RESET */
	[CM_IDLE] = "---------------d--",
	[CM_CONNECTING] = "oi---c---------c--",
	[CM_OPENING] = "--siii---------x--",
	[CM_STARTING] = "-----sbx------ss--",
	[CM_BINDING] = "-----b--eb--ebbb--",
	[CM_ACCEPT_STARTING] = "-----aAx-------a--",
	[CM_ACCEPTING] = "--e--A----wAwA-A--",
	[CM_WAIT_PEER] = "--e--w-------z-d--",
	[CM_ESTABLISHED] = "-----e----e--zed--",
	[CM_CLOSED] = "--z--z----z---zd--",
	[CM_ABORTING] = "--xxxx--------ix--",
	[CM_DELETING] = "--d--d----d--dd-F-",
	[CM_WAITING] = "--W--W----W----d--",
	[CM_GIVING_WAY] = "--sggg--------ig--",
	[CM_RESETTING] = "--r--r----r--rrr-i",
	[CM_REFUSED] = "---------------d--",
};

/* Makes a QP with the given state and with the members that the state implies. */
static struct cm_conn *
put_in(enum cm_state state)
{
	struct cm_conn *q;
	struct shm_msg m = {0};

	setup();
	if (state == CM_ACCEPT_STARTING) {
		listen_at(7000);
		peer_asks();
		s->hold = ENG_CE_QP_START;
		cr_assert_eq(do_accept(expect(SHM_EV_CONNECT_REQUEST).body.cm.request), 0);
	}
	q = script_last(s, ENG_CE_QP_ADD)->qp->control;
	if (state != CM_ACCEPT_STARTING)
		q->state = (uint8_t)state;
	cr_assert_eq(q->state, state);
	if (state == CM_STARTING || state == CM_BINDING)
		q->outcome = ctl_event_new(&m, 8);
	return q;
}

Test(engine_cm, every_event_in_every_state)
{
	for (unsigned st = 0; st < CM_STATES; st++) {
		cr_assert_eq(strlen(rows[st]), CM_EVENTS);
		for (unsigned ev = 0; ev < CM_EVENTS; ev++) {
			struct cm_conn *q = put_in((enum cm_state)st);
			uint64_t before = script_counter(s, ENG_CM_STATE);
			struct eng_ctl m = {.status = -ECONNRESET};
			char want = rows[st][ev], got;
			uint32_t qps = s->control->totals.qps;

			if (ev == CM_EV_DELETE || ev == CM_EV_DELETED) {
				q->dying = true;
				q->op = ctl_op_new(s->control, q->client, NULL, NULL, NULL);
			}
			cm_input(s->control, q, (enum cm_event)ev, ev == CM_EV_DELETE ? NULL : &m);
			got = s->control->totals.qps < qps ? 'F' : LETTERS[q->state];
			if (script_counter(s, ENG_CM_STATE) != before) {
				cr_assert_eq(got, LETTERS[st], "state %u event %u moved", st, ev);
				got = '-';
			}
			cr_assert_eq(got, want, "state %u event %u: %c instead of %c", st, ev, got,
				want);
			script_destroy(s);
			hand_free(&c);
		}
	}
}
