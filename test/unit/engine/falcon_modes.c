/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The modes of Falcon connections: programs, listeners and the configuration choose ordering mode,
 * error mode, flows, RDMA MTU and PSP for each connection.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <rte_mbuf.h>
#include <string.h>

#include "../../../lib/base/mem.h"
#include "falcon_rig.h"

#define TURNS  200000
#define ROUNDS 60
#define UNIT   1024u /* bytes of a Write: one packet */
#define KEYED  (SAKER_PSP_GCM128 | SAKER_PSP_GCM256 | SAKER_PSP_GMAC128 | SAKER_PSP_GMAC256)

TestSuite(engine_falcon_modes, .init = pair_eal);

static struct saker_listener *
listen_with(const struct saker_modes *modes)
{
	const struct saker_conn_param p = {.crc = 2, .markers = 2, .modes = *modes};
	struct saker_listener *l;

	cr_assert_eq(saker_listen_as(frig.n[1].s, NULL, FRIG_PORT, 4, &p, NULL, &l), 0, "%s",
		saker_error());
	return l;
}

static struct saker_event
ask_with(const struct saker_modes *modes)
{
	const struct saker_conn_param p = {.ird = 4, .ord = 4, .modes = *modes};

	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	return frig_event(1, SAKER_EV_CONNECT_REQUEST);
}

static int
accept_with(const struct saker_event *request, const struct saker_modes *modes)
{
	const struct saker_conn_param p = {.ird = 4, .ord = 4, .modes = *modes};

	return saker_accept(frig.n[1].s, request->request, frig.n[1].qp, &p);
}

/* Connects a QP of each node, and returns the modes that both are told. */
static struct saker_modes
connect_with(const struct saker_modes *active, const struct saker_modes *passive)
{
	struct saker_event ev = ask_with(active);
	struct saker_modes in_use;

	cr_assert_eq(accept_with(&ev, passive), 0, "%s", saker_error());
	in_use = frig_event(1, SAKER_EV_ESTABLISHED).cm.modes;
	ev = frig_event(0, SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.cm.modes.ordering, in_use.ordering);
	cr_assert_eq(ev.cm.modes.errors, in_use.errors);
	cr_assert_eq(ev.cm.modes.flows, in_use.flows);
	cr_assert_eq(ev.cm.modes.mtu, in_use.mtu);
	cr_assert_eq(ev.cm.modes.psp, in_use.psp);
	return in_use;
}

static const struct saker_modes as_configured;

/* ---- Connections with different modes beside each other ---- */

/* One of the QPs that work at the same time. */
struct lane {
	struct saker_qp *qp[2];
	uint8_t *from, *to;
	unsigned posted, done; /* Writes of this round */
	bool completed[FRIG_DEPTH];
	unsigned gaps;       /* turns in which a Write was placed before an earlier one */
	unsigned inversions; /* completions before that of an earlier Write */
};

static void
lane_post(struct lane *l, unsigned round)
{
	struct rd_sge sge = {0, UNIT, saker_mr_stag(frig.n[0].mr)};
	struct saker_wr wr = {.opcode = RD_WRITE,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.rkey = saker_mr_stag(frig.n[1].mr)};

	memset(l->from, (int)round, FRIG_DEPTH * UNIT);
	memset(l->completed, 0, sizeof(l->completed));
	l->done = 0;
	for (unsigned i = 0; i < FRIG_DEPTH; i++) {
		wr.wr_id = i;
		sge.addr = (uintptr_t)l->from + i * UNIT;
		wr.remote_addr = (uintptr_t)l->to + i * UNIT;
		cr_assert_eq(saker_post_send(l->qp[0], &wr, 1), 1);
	}
}

/* Looks at what the target has: whether a Write is there before an earlier one. */
static void
lane_look(struct lane *l, unsigned round)
{
	bool missing = false;

	for (unsigned i = 0; i < FRIG_DEPTH; i++) {
		bool begun = l->to[i * UNIT] == round, whole = l->to[(i + 1) * UNIT - 1] == round;

		if (missing && begun) {
			l->gaps++;
			return;
		}
		missing = missing || !whole;
	}
}

static void
lane_completes(struct lane *l, const struct rd_wc *wc)
{
	cr_assert_eq(wc->status, RD_SUCCESS);
	cr_assert_lt(wc->wr_id, FRIG_DEPTH);
	cr_assert_not(l->completed[wc->wr_id]);
	l->completed[wc->wr_id] = true;
	l->inversions += wc->wr_id != l->done++;
}

/* Runs a round of Writes on all lanes at once, over a bad wire, and checks every byte. */
static void
lanes_round(struct lane *lanes, unsigned n, unsigned round)
{
	unsigned done = 0;

	for (unsigned k = 0; k < n; k++)
		lane_post(&lanes[k], round);
	for (unsigned i = 0; i < TURNS && done < n * FRIG_DEPTH; i++) {
		struct rd_wc wc;

		frig_turn();
		for (unsigned k = 0; k < n; k++)
			lane_look(&lanes[k], round);
		while (saker_cq_poll(frig.n[0].cq, &wc, 1) == 1) {
			for (unsigned k = 0; k < n; k++)
				if (wc.qpn == saker_qp_num(lanes[k].qp[0]))
					lane_completes(&lanes[k], &wc);
			done++;
		}
	}
	cr_assert_eq(done, n * FRIG_DEPTH, "round %u", round);
	for (unsigned k = 0; k < n; k++)
		cr_assert_arr_eq(lanes[k].to, lanes[k].from, FRIG_DEPTH * UNIT);
}

Test(engine_falcon_modes, qps_of_two_hosts_keep_their_ordering_modes_over_a_hostile_wire_rof_6_2)
{
	static const struct saker_modes modes[3] = {
		{.ordering = SAKER_ORDER_STRONG},
		{.ordering = SAKER_ORDER_WEAK},
		{.ordering = SAKER_ORDER_NONE},
	};
	struct saker_listener *l;
	struct lane lanes[3] = {0};

	frig_start(NULL);
	l = listen_with(&as_configured);
	for (unsigned k = 0; k < 3; k++) {
		struct saker_modes m = connect_with(&modes[k], &modes[k]);

		cr_assert_eq(m.ordering, modes[k].ordering);
		cr_assert_eq(m.errors, k == 2 ? SAKER_ERRORS_COMPLETE : SAKER_ERRORS_VERBS);
		for (int i = 0; i < 2; i++)
			lanes[k].qp[i] = frig.n[i].qp;
		lanes[k].from = frig.n[0].mem + k * FRIG_DEPTH * UNIT;
		lanes[k].to = frig.n[1].mem + k * FRIG_DEPTH * UNIT;
	}
	frig.bad = 60;
	for (unsigned round = 1; round <= ROUNDS; round++)
		lanes_round(lanes, 3, round);
	cr_assert_gt(frig.lost, 0);
	cr_assert_eq(lanes[0].gaps, 0, "strong: the data is placed in order");
	cr_assert_eq(lanes[0].inversions, 0, "strong: completions are in order");
	cr_assert_gt(lanes[1].gaps, 0, "weak: the data is placed as it comes");
	cr_assert_eq(lanes[1].inversions, 0, "weak: completions are in order");
	cr_assert_gt(lanes[2].gaps, 0, "none: the data is placed as it comes");
	cr_assert_gt(lanes[2].inversions, 0, "none: completions are as they come");
	frig.bad = 0;
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

/* A Write that its target refuses ends the one QP, and on the other the one request. */
Test(engine_falcon_modes, qps_of_two_hosts_keep_their_error_modes_rof_6_3)
{
	static const struct saker_modes verbs = {.errors = SAKER_ERRORS_VERBS},
					complete = {.errors = SAKER_ERRORS_COMPLETE};
	struct saker_qp *first[2];
	struct saker_listener *l;
	uint32_t good;

	frig_start(NULL);
	l = listen_with(&as_configured);
	cr_assert_eq(connect_with(&verbs, &verbs).errors, SAKER_ERRORS_VERBS);
	for (int i = 0; i < 2; i++)
		first[i] = frig.n[i].qp;
	cr_assert_eq(connect_with(&complete, &complete).errors, SAKER_ERRORS_COMPLETE);
	good = saker_mr_stag(frig.n[1].mr);
	for (int k = 0; k < 2; k++) {
		struct rd_sge sge = {(uintptr_t)frig.n[0].mem, 8, saker_mr_stag(frig.n[0].mr)};
		struct saker_wr wr = {.opcode = RD_WRITE,
			.flags = RD_SIGNALED,
			.nsge = 1,
			.sge = &sge,
			.remote_addr = (uintptr_t)frig.n[1].mem,
			.rkey = good + 1};

		cr_assert_eq(saker_post_send(k == 0 ? frig.n[0].qp : first[0], &wr, 1), 1);
		cr_assert_eq(frig_wc(0).status, RD_REM_ACCESS_ERR);
		if (k == 0)
			frig_works();
	}
	for (unsigned i = 0, ends = 0; i < TURNS && ends < 2; i++) {
		struct saker_event ev;

		frig_turn();
		for (int n = 0; n < 2; n++)
			if (saker_event(frig.n[n].s, &ev) == 1) {
				cr_assert_eq(ev.qp, first[n]);
				ends += ev.type == SAKER_EV_DISCONNECTED;
			}
	}
	frig_works();
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

/* ---- The choice ---- */

Test(engine_falcon_modes, mtu_and_flows_are_the_smaller_choice_of_both_sides)
{
	static const struct saker_modes four = {.flows = 4, .mtu = 512}, one = {.mtu = 256},
					large = {.flows = 4, .mtu = 8192};
	struct saker_listener *l;
	struct saker_modes m;

	frig_start(NULL);
	l = listen_with(&as_configured);
	m = connect_with(&four, &large);
	cr_assert_eq(m.flows, 4);
	cr_assert_eq(m.mtu, 512);
	frig_works();
	m = connect_with(&four, &one);
	cr_assert_eq(m.flows, 1, "as configured at the other side");
	cr_assert_eq(m.mtu, 256);
	frig_works();
	m = connect_with(&large, &large);
	cr_assert_eq(m.mtu, 1024, "as much as the port's MTU allows");
	frig_works();
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

Test(engine_falcon_modes, sides_that_differ_in_a_mode_do_not_connect)
{
	static const struct saker_modes weak = {.ordering = SAKER_ORDER_WEAK},
					complete = {.errors = SAKER_ERRORS_COMPLETE};
	const struct saker_modes *differ[2] = {&weak, &complete};
	static const char *const reason[2] = {"ROFX_ORDERING", "ROFX_ERRORS"};
	struct saker_listener *l;

	frig_start(NULL);
	l = listen_with(&as_configured);
	for (int i = 0; i < 2; i++) {
		struct saker_event ev = ask_with(differ[i]);

		cr_assert_eq(accept_with(&ev, &as_configured), 0, "%s", saker_error());
		cr_assert_eq(frig_event(0, SAKER_EV_UNREACHABLE).status, -EPROTO);
		frig_event(1, SAKER_EV_UNREACHABLE);
		cr_assert_eq(frig_count(0, "rofx", reason[i]), 1);
	}
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

Test(engine_falcon_modes, a_listener_chooses_for_the_acceptances_that_do_not)
{
	static const struct saker_modes weak = {.ordering = SAKER_ORDER_WEAK, .mtu = 256},
					strong = {.ordering = SAKER_ORDER_STRONG};
	struct saker_listener *l;
	struct saker_modes m;

	frig_start(NULL);
	l = listen_with(&weak);
	m = connect_with(&weak, &as_configured);
	cr_assert_eq(m.ordering, SAKER_ORDER_WEAK);
	cr_assert_eq(m.mtu, 256);
	m = connect_with(&strong, &strong);
	cr_assert_eq(m.ordering, SAKER_ORDER_STRONG, "the acceptance has precedence");
	cr_assert_eq(m.mtu, 256, "but for what it leaves open");
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

Test(engine_falcon_modes, a_listener_that_takes_any_mode_takes_that_of_the_peer)
{
	static const struct saker_modes any = {
		.ordering = SAKER_ORDER_ANY, .errors = SAKER_ERRORS_ANY};
	struct saker_listener *l;

	frig_start(NULL);
	l = listen_with(&any);
	for (uint8_t order = SAKER_ORDER_STRONG; order <= SAKER_ORDER_NONE; order++) {
		const struct saker_modes asked = {
			.ordering = order, .errors = SAKER_ERRORS_COMPLETE};
		struct saker_event ev = ask_with(&asked);

		cr_assert_eq(ev.cm.modes.ordering, order, "the event names what is requested");
		cr_assert_eq(ev.cm.modes.errors, SAKER_ERRORS_COMPLETE);
		cr_assert_eq(ev.cm.modes.psp, SAKER_PSP_NONE);
		cr_assert_eq(ev.cm.modes.flows, 1);
		cr_assert_eq(accept_with(&ev, &as_configured), 0, "%s", saker_error());
		cr_assert_eq(frig_event(1, SAKER_EV_ESTABLISHED).cm.modes.ordering, order);
		cr_assert_eq(frig_event(0, SAKER_EV_ESTABLISHED).cm.modes.ordering, order);
	}
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

Test(engine_falcon_modes, modes_that_cannot_be_are_refused)
{
	static const struct saker_modes wrong[] = {
		{.ordering = SAKER_ORDER_ANY + 1},
		{.errors = SAKER_ERRORS_ANY + 1},
		{.flows = 2},
		{.mtu = 128},
		{.mtu = 768},
		{.mtu = 16384},
		{.psp = 1 << 4},
	};
	static const struct saker_modes initiator[] = {
		{.ordering = SAKER_ORDER_ANY},
		{.errors = SAKER_ERRORS_ANY},
		{.ordering = SAKER_ORDER_NONE, .errors = SAKER_ERRORS_VERBS},
	};
	struct saker_conn_param p = {.ird = 4, .ord = 4, .crc = 2, .markers = 2};
	struct saker_listener *l, *none;
	struct saker_event ev;

	frig_start(NULL);
	l = listen_with(&as_configured);
	frig_qp(0, SAKER_FALCON);
	for (unsigned i = 0; i < SK_ARRAY_LEN(wrong); i++) {
		p.modes = wrong[i];
		cr_assert_eq(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, &p),
			-EINVAL, "%u", i);
		cr_assert_eq(saker_listen_as(frig.n[1].s, NULL, FRIG_PORT + 1, 4, &p, NULL, &none),
			-EINVAL, "%u", i);
	}
	for (unsigned i = 0; i < SK_ARRAY_LEN(initiator); i++) {
		p.modes = initiator[i];
		cr_assert_eq(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, &p),
			-EINVAL, "%u", i);
	}
	ev = ask_with(&as_configured);
	for (unsigned i = 0; i < SK_ARRAY_LEN(wrong); i++)
		cr_assert_eq(accept_with(&ev, &wrong[i]), -EINVAL, "%u", i);
	cr_assert_eq(accept_with(&ev, &initiator[2]), -EINVAL);
	cr_assert_eq(accept_with(&ev, &as_configured), 0, "the request is still there");
	frig_event(1, SAKER_EV_ESTABLISHED);
	frig_event(0, SAKER_EV_ESTABLISHED);
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

/* ---- PSP ---- */

static void
any_psp(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = KEYED | SAKER_PSP_NONE;
	cfg->falcon.tls = pair_tls('k');
}

static void
keyed_psp(struct eng_config *cfg, int node)
{
	any_psp(cfg, node);
	cfg->falcon.require_psp = true;
}

Test(engine_falcon_modes, connections_of_two_hosts_have_psp_versions_of_their_own)
{
	static const uint16_t versions[] = {SAKER_PSP_GCM128, SAKER_PSP_GCM256, SAKER_PSP_GMAC128,
		SAKER_PSP_GMAC256, SAKER_PSP_NONE};
	struct saker_qp *qp[SK_ARRAY_LEN(versions)][2];
	struct saker_listener *l;

	frig_start(any_psp);
	l = listen_with(&as_configured);
	cr_assert_eq(connect_with(&as_configured, &as_configured).psp, SAKER_PSP_GCM256);
	for (unsigned i = 0; i < SK_ARRAY_LEN(versions); i++) {
		const struct saker_modes one = {.psp = versions[i]};

		cr_assert_eq(connect_with(&one, &as_configured).psp, versions[i]);
		for (int n = 0; n < 2; n++)
			qp[i][n] = frig.n[n].qp;
	}
	for (unsigned i = 0; i < SK_ARRAY_LEN(versions); i++) {
		for (int n = 0; n < 2; n++)
			frig.n[n].qp = qp[i][n];
		frig_works();
	}
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

Test(engine_falcon_modes, a_program_cannot_choose_what_the_configuration_forbids)
{
	static const struct saker_modes clear = {.psp = SAKER_PSP_NONE},
					both = {.psp = SAKER_PSP_NONE | SAKER_PSP_GMAC128};
	struct saker_conn_param p = {.ird = 4, .ord = 4, .modes = clear};
	struct saker_listener *l;
	struct saker_event ev;

	frig_start(keyed_psp);
	l = listen_with(&as_configured);
	frig_qp(0, SAKER_FALCON);
	cr_assert_eq(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, FRIG_PORT, &p), -EACCES);
	ev = ask_with(&as_configured);
	cr_assert_eq(accept_with(&ev, &clear), -EACCES);
	cr_assert_eq(accept_with(&ev, &both), 0, "%s", saker_error());
	cr_assert_eq(frig_event(1, SAKER_EV_ESTABLISHED).cm.modes.psp, SAKER_PSP_GMAC128);
	cr_assert_eq(frig_event(0, SAKER_EV_ESTABLISHED).cm.modes.psp, SAKER_PSP_GMAC128);
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

/* ---- The configuration ---- */

static void
with_rows(struct eng_config *cfg, int node)
{
	struct eng_modes_config *row = cfg->falcon.modes;

	/* Falcon's own port, at which QPs modified by the program and hosts connect. */
	row[0] = (struct eng_modes_config){
		.present = true, .port = cfg->falcon.port, .modes = {.ordering = SHM_ORDER_NONE}};
	row[2] = (struct eng_modes_config){.present = true,
		.addr = addr("10.0.0.0"),
		.prefix = 96 + 30,
		.port = FRIG_PORT,
		.modes = {.ordering = SHM_ORDER_WEAK, .mtu = 512}};
	row[3] = (struct eng_modes_config){.present = true, .modes = {.mtu = 256}};
}

static struct saker_modes
connect_at(uint16_t port)
{
	struct saker_listener *l;
	struct saker_event ev;

	cr_assert_eq(saker_listen(frig.n[1].s, NULL, port, 4, NULL, &l), 0, "%s", saker_error());
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	cr_assert_eq(saker_connect(frig.n[0].qp, NULL, &frig.n[1].addr, port, NULL), 0);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(accept_with(&ev, &as_configured), 0, "%s", saker_error());
	frig_event(1, SAKER_EV_ESTABLISHED);
	ev = frig_event(0, SAKER_EV_ESTABLISHED);
	cr_assert_eq(saker_unlisten(l), 0);
	return ev.cm.modes;
}

Test(engine_falcon_modes, the_configuration_chooses_by_peer_and_port)
{
	static const struct saker_modes strong = {.ordering = SAKER_ORDER_STRONG};
	struct saker_listener *l;
	struct saker_modes m;

	frig_start(with_rows);
	m = connect_at(FRIG_PORT);
	cr_assert_eq(m.ordering, SAKER_ORDER_WEAK);
	cr_assert_eq(m.mtu, 512, "of two rows, the first");
	m = connect_at(FRIG_PORT + 1);
	cr_assert_eq(m.ordering, SAKER_ORDER_STRONG);
	cr_assert_eq(m.mtu, 256);
	l = listen_with(&as_configured);
	m = connect_with(&strong, &strong);
	cr_assert_eq(m.ordering, SAKER_ORDER_STRONG, "the program has precedence");
	cr_assert_eq(m.mtu, 512);
	cr_assert_eq(saker_unlisten(l), 0);
	frig_stop();
}

/* ---- QPs modified by the program ---- */

static void
hand_move(int node, enum rd_qp_state state, const struct saker_modes *modes, int expected)
{
	const struct saker_qp_move m = {.state = state,
		.remote = frig.n[!node].addr,
		.remote_qpn = saker_qp_num(frig.n[!node].qp),
		.ird = 4,
		.ord = 4,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ,
		.modes = *modes};

	cr_assert_eq(saker_qp_move(frig.n[node].qp, &m), expected, "%s", saker_error());
}

/* Connects QPs that exchange their numbers by other means. */
static void
hand_connect(const struct saker_modes *modes)
{
	for (int i = 0; i < 2; i++)
		frig_qp(i, SAKER_FALCON);
	for (int i = 0; i < 2; i++) {
		hand_move(i, RD_QP_INIT, &as_configured, 0);
		hand_move(i, RD_QP_RTR, modes, 0);
		hand_move(i, RD_QP_RTS, &as_configured, 0);
	}
	frig_works();
}

static uint32_t longest; /* frame, in bytes */

static void
measure(struct rte_mbuf *m, int node)
{
	longest = SK_MAX(longest, m->pkt_len);
}

Test(engine_falcon_modes, qps_modified_by_the_program_choose_with_rtr)
{
	static const struct saker_modes weak = {.ordering = SAKER_ORDER_WEAK, .mtu = 256},
					any = {.ordering = SAKER_ORDER_ANY},
					contradiction = {.ordering = SAKER_ORDER_NONE,
						.errors = SAKER_ERRORS_VERBS};

	frig_start(NULL);
	hand_connect(&as_configured);
	frig_turns(1000);
	frig.port = measure;
	hand_connect(&weak);
	frig_turns(1000);
	frig.port = NULL;
	cr_assert_lt(longest, 512, "%u", longest);
	for (int i = 0; i < 2; i++)
		frig_qp(i, SAKER_FALCON);
	hand_move(0, RD_QP_INIT, &as_configured, 0);
	hand_move(0, RD_QP_RTR, &any, -EINVAL);
	hand_move(0, RD_QP_RTR, &contradiction, -EINVAL);
	hand_move(0, RD_QP_RTR, &weak, 0);
	hand_move(0, RD_QP_RTS, &as_configured, 0);
	hand_move(1, RD_QP_INIT, &as_configured, 0);
	hand_move(1, RD_QP_RTR, &as_configured, 0);
	frig_post(0, RD_WRITE, 8, 0);
	frig_sleep(20000000);
	cr_assert_gt(frig_count(0, "rofx", "ROFX_ORDERING"), 0, "they must agree");
	frig_stop();
}
