/* SPDX-License-Identifier: BSD-3-Clause */
/* eng_change() on the control stage: its steps, what it takes over, and what happens to listeners
 * and clients. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "../../../lib/engine/common/msg.h"
#include "../../../lib/engine/control/registry/registry.h"
#include "../../../lib/rof/exchange.h"
#include "script.h"

static struct script *s;
static struct hand hand;

/* A change, which another thread requests, as the thread of the prompt does. */
static struct {
	struct eng_config next;
	struct eng_changed result;
	char err[256];
	int rc;
	bool done; /* atomic */
} change;

static void
change_init(void)
{
	s = script_new(NULL);
	hand_attach(&hand, s);
	change.next = s->cfg;
}

static void
change_fini(void)
{
	script_free(s);
	hand_free(&hand);
}

TestSuite(engine_change, .init = change_init, .fini = change_fini);

static void *
ask(void *arg)
{
	change.rc = eng_control_change(
		s->control, &change.next, &change.result, change.err, sizeof(change.err));
	__atomic_store_n(&change.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Requests the change, and runs turns until it has been answered. */
static int
run(void)
{
	pthread_t t;

	change.done = false;
	cr_assert_eq(pthread_create(&t, NULL, ask, NULL), 0);
	while (!__atomic_load_n(&change.done, __ATOMIC_ACQUIRE))
		script_turn(s);
	pthread_join(t, NULL);
	return change.rc;
}

static void
add_address(const char *text)
{
	struct eng_if_config *f = &change.next.ifs[change.next.nifs++];

	*f = change.next.ifs[0];
	cr_assert_eq(sk_addr_parse(text, &f->addr), 0);
}

static int
listen_on(const char *text, uint16_t port)
{
	struct shm_msg m = {0};

	cr_assert_eq(sk_addr_parse(text, &m.body.cm.local), 0);
	m.body.cm.lport = port;
	return hand_do(&hand, &m, SHM_LISTEN);
}

Test(engine_change, one_stage_checks_then_all_end_connections_and_then_apply)
{
	static const uint8_t steps[] = {ENG_CHANGE_CHECK, ENG_CHANGE_END, ENG_CHANGE_END,
		ENG_CHANGE_APPLY, ENG_CHANGE_APPLY};
	unsigned n = 0;

	add_address("10.0.0.2");
	cr_assert_eq(run(), 0, "%s", change.err);
	for (unsigned i = 0; i < s->nlog; i++)
		if (s->log[i].type == ENG_CT_CHANGE) {
			cr_assert_lt(n, sizeof(steps));
			cr_assert_eq(s->log[i].change.step, steps[n], "step %u", n);
			n++;
		}
	cr_assert_eq(n, sizeof(steps));
	cr_assert_eq(listen_on("10.0.0.2", 7), 0, "the new address");
	cr_assert_eq(s->cfg.nifs, 2);
}

Test(engine_change, a_refused_check_changes_nothing)
{
	add_address("10.0.0.2");
	s->fail = ENG_CT_CHANGE;
	s->fail_status = -ENOSPC;
	cr_assert_eq(run(), -ENOSPC);
	cr_assert_not_null(strstr(change.err, "do not fit"), "%s", change.err);
	cr_assert_eq(script_count(s, ENG_CT_CHANGE), 1);
	cr_assert_eq(s->cfg.nifs, 1);
	s->fail = -1;
	cr_assert_eq(listen_on("10.0.0.2", 7), -EADDRNOTAVAIL);
}

Test(engine_change, listeners_at_a_removed_address_close_and_others_stay)
{
	add_address("10.0.0.2");
	cr_assert_eq(run(), 0);
	cr_assert_eq(listen_on("10.0.0.1", 7), 0);
	cr_assert_eq(listen_on("10.0.0.2", 8), 0);
	cr_assert_eq(listen_on("::", 9), 0);
	cr_assert_eq(s->control->totals.listeners, 3);
	change.next.nifs = 1;
	cr_assert_eq(run(), 0);
	cr_assert_eq(change.result.listeners, 1);
	cr_assert_eq(change.result.conns, 0);
	script_turns(s, 4);
	cr_assert_eq(s->control->totals.listeners, 2);
	cr_assert_eq(script_count(s, ENG_CT_UNLISTEN), SCRIPT_TRANSPORTS);
	cr_assert_eq(listen_on("10.0.0.2", 10), -EADDRNOTAVAIL);
}

/* Listens at a port of the only address, whose listener has handle 0, and removes the address. */
static void
close_by_change(void)
{
	cr_assert_eq(listen_on("10.0.0.1", 7), 0);
	change.next.nifs = 0;
	cr_assert_eq(run(), 0);
	cr_assert_eq(change.result.listeners, 1);
	script_turns(s, 4);
}

static uint32_t
units(void)
{
	return s->control->share[CTL_POOL_LISTENER].held;
}

/* A second object of the client with that handle would get the events of the first one. */
Test(engine_change, a_closed_listener_has_its_handle_until_its_client_frees_it)
{
	const uint32_t most = hand_client(&hand)->listeners.cap;
	struct shm_msg m;

	close_by_change();
	cr_assert_eq(s->control->totals.listeners, 0);
	for (uint16_t i = 1; i < most; i++) {
		m = (struct shm_msg){.body.cm.lport = 100 + i};
		cr_assert_eq(hand_do(&hand, &m, SHM_LISTEN), 0, "%s", m.body.text);
		cr_assert_neq(m.body.cm.listener, 0);
	}
	m = (struct shm_msg){.body.cm.lport = 7};
	cr_assert_eq(hand_do(&hand, &m, SHM_LISTEN), -EDQUOT);
	cr_assert_eq(units(), most);
	cr_assert_eq(hand_destroy(&hand, SHM_UNLISTEN, 0), 0);
	cr_assert_eq(units(), most - 1);
	cr_assert_eq(s->control->totals.listeners, most - 1);
	cr_assert_eq(hand_destroy(&hand, SHM_UNLISTEN, 0), -EINVAL, "it is freed");
	cr_assert_eq(script_count(s, ENG_CT_UNLISTEN), SCRIPT_TRANSPORTS);
	m = (struct shm_msg){.body.cm.lport = 7};
	cr_assert_eq(hand_do(&hand, &m, SHM_LISTEN), 0, "its port is free, too");
	cr_assert_eq(m.body.cm.listener, 0);
	cr_assert_eq(units(), most);
}

Test(engine_change, a_client_may_free_a_listener_that_a_change_is_closing)
{
	struct shm_msg m = {0};

	s->hold = ENG_CT_UNLISTEN;
	close_by_change();
	cr_assert_eq(s->nheld, SCRIPT_TRANSPORTS);
	hand_send(&hand, &m, SHM_UNLISTEN);
	script_turns(s, 4);
	cr_assert_not(hand_next(&hand, &m), "the transport stages still listen");
	cr_assert_eq(hand_destroy(&hand, SHM_UNLISTEN, 0), -EINVAL, "once");
	script_release(s, 0);
	cr_assert(hand_next(&hand, &m));
	cr_assert_eq(m.op, SHM_UNLISTEN);
	cr_assert_eq(m.status, 0);
	cr_assert_eq(units(), 0);
	cr_assert_eq(script_count(s, ENG_CT_UNLISTEN), SCRIPT_TRANSPORTS);
	cr_assert_not(hand_next(&hand, &m), "there is one reply");
}

Test(engine_change, a_closed_listener_ends_with_its_client)
{
	close_by_change();
	cr_assert_eq(units(), 1);
	cr_assert_eq(eng_control_detach(s->control, hand.number), 0);
	script_turns(s, 100);
	cr_assert(eng_control_client_gone(s->control, hand.number));
	cr_assert_eq(units(), 0);
	cr_assert_eq(s->control->totals.listeners, 0);
}

Test(engine_change, a_listener_that_a_change_is_closing_ends_with_its_client)
{
	s->hold = ENG_CT_UNLISTEN;
	close_by_change();
	cr_assert_eq(eng_control_detach(s->control, hand.number), 0);
	script_turns(s, 100);
	cr_assert_eq(units(), 1, "the transport stages still listen");
	script_release(s, 0);
	script_turns(s, 100);
	cr_assert(eng_control_client_gone(s->control, hand.number));
	cr_assert_eq(units(), 0);
}

Test(engine_change, a_listener_that_is_being_opened_closes_when_it_is_open)
{
	struct shm_msg m = {0};
	pthread_t t;

	s->hold = ENG_CT_LISTEN;
	m.body.cm.local = s->cfg.ifs[0].addr;
	m.body.cm.lport = 7;
	hand_send(&hand, &m, SHM_LISTEN);
	script_turns(s, 4);
	change.next.nifs = 0;
	change.done = false;
	cr_assert_eq(pthread_create(&t, NULL, ask, NULL), 0);
	while (script_count(s, ENG_CT_CHANGE) == 0)
		script_turn(s);
	script_turns(s, 10);
	cr_assert_eq(script_count(s, ENG_CT_CHANGE), 1, "it waits");
	s->hold = -1;
	script_release(s, 0);
	while (!__atomic_load_n(&change.done, __ATOMIC_ACQUIRE))
		script_turn(s);
	pthread_join(t, NULL);
	cr_assert_eq(change.rc, 0, "%s", change.err);
	cr_assert_eq(change.result.listeners, 1);
	script_turns(s, 4);
	cr_assert_eq(s->control->totals.listeners, 0);
}

Test(engine_change, every_client_gets_its_new_rates_on_every_stage)
{
	const struct eng_ctl *m;

	change.next.rates[0] = (struct eng_rates_config){.present = true,
		.uid = ENG_NO_UID,
		.rates = {.weight = 3, .bits = 1000000, .messages = 70},
		.traffic_class = 40,
		.priority = 2};
	strcpy(change.next.rates[0].name, hand_client(&hand)->eng.name);
	cr_assert_eq(run(), 0, "%s", change.err);
	cr_assert_eq(script_count(s, ENG_CE_CLIENT_RATES), SCRIPT_STAGES);
	m = script_last(s, ENG_CE_CLIENT_RATES);
	cr_assert_eq(m->client, &hand_client(&hand)->eng);
	cr_assert_eq(m->rates.client.messages, 70);
	cr_assert_eq(m->rates.client.weight, 3);
	cr_assert_eq(m->rates.user.messages, 0);
	cr_assert_eq(hand_client(&hand)->class.traffic_class, 40);
	cr_assert_eq(hand_client(&hand)->class.priority, 2);
	change.next.rates[0].present = false;
	cr_assert_eq(run(), 0);
	m = script_last(s, ENG_CE_CLIENT_RATES);
	cr_assert_eq(m->rates.client.messages, 0, "the limit is lifted");
	cr_assert_eq(hand_client(&hand)->class.traffic_class, 0);
}

Test(engine_change, new_quotas_apply_to_clients_that_attach_later)
{
	struct hand later;
	uint32_t pd;

	change.next.limits.client_qps = 2;
	change.next.limits.qps = 1; /* has no effect */
	cr_assert_eq(run(), 0, "%s", change.err);
	cr_assert_eq(s->cfg.limits.qps, 64);
	hand_attach(&later, s);
	cr_assert_eq(hand_client(&later)->qps.cap, 2);
	cr_assert_eq(hand_client(&hand)->qps.cap, 32);
	pd = hand_pd(&later);
	hand_qp(&later, pd, hand_cq(&later));
	change.next.limits.client_home_bytes = 4096;
	cr_assert_eq(run(), -EINVAL);
	cr_assert_not_null(strstr(change.err, "too small for the limits"), "%s", change.err);
	change.next.limits.client_home_bytes = SCRIPT_HOME;
	change.next.limits.client_qps = 0;
	cr_assert_eq(run(), -EINVAL);
	cr_assert_eq(s->cfg.limits.client_qps, 2);
	cr_assert_eq(eng_control_detach(s->control, later.number), 0);
	while (!eng_control_client_gone(s->control, later.number))
		script_turn(s);
	hand_free(&later);
}

/* ---- Modes of Falcon connections ---- */

#define MS 1000000u /* ns */

static void
change_falcon_init(void)
{
	s = script_new(script_falcon);
	hand_attach(&hand, s);
	change.next = s->cfg;
}

TestSuite(engine_change_falcon, .init = change_falcon_init, .fini = change_fini);

/* Changes the configuration for connections with HAND_PEER, so that it allows only these modes. */
static void
allow(struct shm_modes modes)
{
	struct eng_modes_config *row = &change.next.falcon.modes[0];

	*row = (struct eng_modes_config){.present = true, .prefix = 128, .modes = modes};
	cr_assert_eq(sk_addr_parse(HAND_PEER, &row->addr), 0);
	cr_assert_eq(run(), 0, "%s", change.err);
}

Test(engine_change_falcon, a_modified_qp_whose_modes_are_not_allowed_any_more_fails)
{
	uint32_t qp = hand_falcon_qp(&hand);
	uint64_t bad = script_counter(s, ENG_BAD_COMMAND);

	cr_assert_eq(hand_move(&hand, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&hand, qp, RD_QP_RTR), 0);
	allow((struct shm_modes){.psp = ROFX_PSP_KEYED});
	cr_assert_eq(hand_move(&hand, qp, RD_QP_RTS), 0);
	s->now += MS;
	script_turns(s, 10);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
	cr_assert_eq(script_count(s, ENG_CE_QP_FAIL), 1);
	cr_assert_eq(script_counter(s, ENG_BAD_COMMAND), bad, "no command is wrong");
	cr_assert_eq(hand_move(&hand, qp, RD_QP_RTS), -EINVAL, "it is in the error state");
}

/* Sends the request of QP 77 of HAND_PEER for a QP of this side. */
static void
peer_requests(uint32_t qp)
{
	struct eng_ctl *m = script_say(s, ENG_TC_REQUEST);

	m->conn = s->next_conn++;
	m->peer = (struct eng_peer){.listener = UINT32_MAX,
		.outcome = {.kind = ENG_FALCON,
			.falcon = {.transport = ROF_RC,
				.addressing = ROFX_ADDRESS,
				.qpn = 77,
				.to_qpn = ctl_qp_find(hand_client(&hand), qp)->eng.rd.qpn}}};
	m->peer.tuple.laddr = s->cfg.ifs[0].addr;
	cr_assert_eq(sk_addr_parse(HAND_PEER, &m->peer.tuple.raddr), 0);
	script_send(s, m);
	script_turns(s, 10);
}

Test(engine_change_falcon, a_request_for_modes_that_are_not_allowed_any_more_is_rejected)
{
	uint32_t qp = hand_falcon_qp(&hand);

	cr_assert_eq(hand_move(&hand, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&hand, qp, RD_QP_RTR), 0);
	allow((struct shm_modes){.psp = ROFX_PSP_KEYED});
	peer_requests(qp);
	cr_assert_eq(script_last(s, ENG_CT_REJECT)->reject.why, ROFX_NO_PSP);
	allow((struct shm_modes){.psp = ROFX_PSP(PSP_NO_CRYPTO)});
	peer_requests(qp);
	cr_assert_eq(script_count(s, ENG_CT_REJECT), 1);
	cr_assert_eq(script_count(s, ENG_CT_ACCEPT), 1);
}

/* The request waits until the attempt of this side has ended, and the change comes in between. */
Test(engine_change_falcon, a_request_that_waits_is_rejected_when_its_modes_are_forbidden)
{
	uint32_t qp = hand_falcon_qp(&hand);

	cr_assert_eq(hand_move(&hand, qp, RD_QP_INIT), 0);
	cr_assert_eq(hand_move(&hand, qp, RD_QP_RTR), 0);
	cr_assert_eq(hand_move(&hand, qp, RD_QP_RTS), 0);
	while (script_count(s, ENG_CT_CONNECT) == 0)
		script_turn(s);
	script_turns(s, 4);
	s->hold = ENG_CT_ABORT;
	peer_requests(qp);
	cr_assert_eq(s->nheld, 1, "the attempt gives way");
	allow((struct shm_modes){.psp = ROFX_PSP_KEYED});
	s->hold = -1;
	script_release(s, 0);
	script_turns(s, 10);
	cr_assert_eq(script_last(s, ENG_CT_REJECT)->reject.why, ROFX_NO_PSP);
	cr_assert_eq(script_count(s, ENG_CT_ACCEPT), 0);
	s->now += 1000 * MS;
	script_turns(s, 10);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 1);
	cr_assert_eq(script_count(s, ENG_CE_QP_FAIL), 1);
}

Test(engine_change_falcon, a_host_connection_whose_modes_are_forbidden_tries_again_later)
{
	struct shm_msg m = {.body.ah = {.pd = hand_pd(&hand)}};

	cr_assert_eq(sk_addr_parse(HAND_PEER, &m.body.ah.remote), 0);
	s->cfg.falcon.require_psp = true;
	allow((struct shm_modes){.psp = ROFX_PSP(PSP_NO_CRYPTO)});
	cr_assert_eq(hand_do(&hand, &m, SHM_AH_CREATE), 0, "%s", m.body.text);
	s->now += MS;
	script_turns(s, 50);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 0);
	cr_assert_eq(script_count(s, ENG_CE_QP_FAIL), 1, "a pause follows");
	allow((struct shm_modes){.psp = ROFX_PSP_KEYED});
	s->now += 1000 * MS;
	script_turns(s, 10);
	cr_assert_eq(script_count(s, ENG_CT_CONNECT), 1);
}
