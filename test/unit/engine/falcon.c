/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA over Falcon in running engines: making, refusing and ending connections in every way. The
 * tests of lib/rof cover the operations themselves.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../../lib/engine/transport/transport_priv.h"
#include "falcon_rig.h"

TestSuite(engine_falcon, .init = pair_eal);

/* ---- Connections ---- */

Test(engine_falcon, a_connection_carries_every_kind_of_operation)
{
	struct fnode *a = &frig.n[0], *b = &frig.n[1];
	uint64_t word = 40;
	struct rd_wc wc;

	frig_start(NULL);
	frig_connect();
	frig_works();
	memcpy(b->mem, &word, 8);
	frig_post(0, RD_FETCH_ADD, 8, 2);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	memcpy(&word, a->mem, 8);
	cr_assert_eq(word, 40);
	memcpy(&word, b->mem, 8);
	cr_assert_eq(word, 42);
	frig_post(0, RD_CMP_SWAP, 8, 42); /* the same value again */
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	memcpy(&word, a->mem, 8);
	cr_assert_eq(word, 42);
	frig_recv(1, 5);
	frig_post(0, RD_WRITE_IMM, 100, 0x12345678);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	wc = frig_wc(1);
	cr_assert(wc.opcode == RD_RECV_IMM && wc.wr_id == 5 && (wc.flags & RD_WC_IMM));
	cr_assert_eq((uint32_t)wc.imm, 0x12345678);
	frig_recv(1, 6);
	frig_post(0, RD_SEND_IMM, 64, 0xabcdef01);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	wc = frig_wc(1);
	cr_assert(wc.opcode == RD_RECV && wc.wr_id == 6 && (wc.flags & RD_WC_IMM));
	cr_assert_eq((uint32_t)wc.imm, 0xabcdef01);
	/* The passive side may post requests, too. */
	frig_post(1, RD_READ, 3000, 0);
	cr_assert_eq(frig_wc(1).status, RD_SUCCESS);
	cr_assert_arr_eq(b->mem, a->mem, 3000);
	frig_stop();
}

Test(engine_falcon, private_data_and_depths_go_both_ways)
{
	struct saker_conn_param p = {.ird = 3, .ord = 7, .private_data = "hello", .private_len = 5};
	struct saker_event ev;

	frig_start(NULL);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_qp(1, SAKER_FALCON);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.cm.private_len, 5);
	cr_assert_arr_eq(ev.cm.private_data, "hello", 5);
	cr_assert_eq(ev.cm.peer_ird, 3);
	cr_assert_eq(ev.cm.peer_ord, 7);
	cr_assert(sk_addr_eq(&ev.cm.remote, &frig.n[0].addr));
	p = (struct saker_conn_param){
		.ird = 5, .ord = 9, .private_data = "welcome", .private_len = 7};
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0, "%s", saker_error());
	ev = frig_event(1, SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.cm.ird, 5);
	cr_assert_eq(ev.cm.ord, 3, "no more than the peer admits");
	ev = frig_event(0, SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.cm.private_len, 7);
	cr_assert_arr_eq(ev.cm.private_data, "welcome", 7);
	cr_assert_eq(ev.cm.ord, 5);
	cr_assert_eq(ev.cm.ird, 3);
	frig_works();
	frig_stop();
}

/* A listener accepts Falcon and iWARP at the same port. */
Test(engine_falcon, both_transports_share_a_listener)
{
	struct saker_conn_param p = {.crc = 2, .markers = 2, .ird = 4, .ord = 4};
	struct saker_event ev;

	frig_start(NULL);
	frig_listen(1);
	for (int i = 0; i < 2; i++) {
		enum saker_transport transport = i == 0 ? SAKER_IWARP : SAKER_FALCON;

		frig_qp(0, transport);
		frig_qp(1, transport);
		frig_ask(&p);
		ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
		cr_assert_eq(ev.cm.transport, transport);
		cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
		frig_event(0, SAKER_EV_ESTABLISHED);
		frig_event(1, SAKER_EV_ESTABLISHED);
		frig_works();
	}
	frig_stop();
}

Test(engine_falcon, both_ends_in_one_engine_meet_at_the_loop_port)
{
	frig_start_one(NULL);
	frig_connect();
	frig_works();
	cr_assert_gt(frig_count(0, "eng", "ENG_LOOP_PORT"), 0);
	frig_stop();
}

/* ---- Refusals ---- */

Test(engine_falcon, a_reject_carries_its_private_data)
{
	struct saker_conn_param p = {0};
	struct saker_event ev;

	frig_start(NULL);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	for (int i = 0; i < 2; i++) { /* the QP may try again */
		frig_ask(&p);
		ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
		cr_assert_eq(saker_reject(frig.n[1].s, ev.request, "no", 2), 0);
		ev = frig_event(0, SAKER_EV_REJECTED);
		cr_assert_eq(ev.cm.private_len, 2);
		cr_assert_arr_eq(ev.cm.private_data, "no", 2);
	}
	frig_stop();
}

Test(engine_falcon, a_port_without_listener_is_unreachable_and_may_be_tried_again)
{
	struct saker_conn_param p = {0};

	frig_start(NULL);
	frig_qp(0, SAKER_FALCON);
	for (int i = 0; i < 2; i++) {
		frig_ask(&p);
		cr_assert_eq(frig_event(0, SAKER_EV_UNREACHABLE).status, -ECONNREFUSED);
	}
	frig_connect();
	frig_works();
	frig_stop();
}

static void
second_has_few_places(struct eng_config *cfg, int node)
{
	if (node == 1)
		cfg->limits.conns = 9; /* 8 and their carrier */
}

/* [limits] connections is the limit of both transports. */
Test(engine_falcon, a_connection_beyond_the_limit_is_refused_at_once)
{
	struct saker_conn_param p = {0};
	uint64_t asked;

	frig_start(second_has_few_places);
	for (unsigned i = 0; i < 8; i++)
		frig_connect();
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	asked = frig.now;
	frig_ask(&p);
	cr_assert_eq(frig_event(0, SAKER_EV_UNREACHABLE).status, -ENOBUFS);
	cr_assert_lt(frig.now - asked, 5000000);
	frig_stop();
}

static void
second_has_no_falcon(struct eng_config *cfg, int node)
{
	if (node == 1)
		cfg->falcon.enabled = false;
}

Test(engine_falcon, a_listener_without_falcon_refuses)
{
	struct saker_qp_attr attr = {.send_cq = NULL};
	struct saker_conn_param p = {0};
	struct saker_qp *qp;

	frig_start(second_has_no_falcon);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	cr_assert(frig_no_event(1), "the listener heard of it");
	attr.send_cq = attr.recv_cq = frig.n[1].cq;
	attr.transport = SAKER_FALCON;
	attr.sq_depth = attr.rq_depth = 4;
	cr_assert_eq(saker_qp_create(frig.n[1].pd, &attr, &qp), -EPROTONOSUPPORT);
	frig_stop();
}

Test(engine_falcon, a_request_is_accepted_by_a_qp_of_its_transport_only)
{
	struct saker_conn_param p = {.crc = 2, .markers = 2, .ird = 4, .ord = 4};
	struct saker_event ev;

	frig_start(NULL);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	frig_qp(1, SAKER_IWARP);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), -EPROTOTYPE);
	cr_assert_not_null(strstr(saker_error(), "iWARP"), "%s", saker_error());
	/* The refused accept does not end the request. */
	frig_qp(1, SAKER_FALCON);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0);
	frig_event(1, SAKER_EV_ESTABLISHED);
	frig_event(0, SAKER_EV_ESTABLISHED);
	frig_works();
	frig_stop();
}

/* ---- Endings ---- */

Test(engine_falcon, disconnect_reaches_both_sides)
{
	int other;

	for (int by = 0; by < 2; by++) {
		if (by == 0)
			frig_start(NULL);
		frig_connect();
		cr_assert_eq(saker_disconnect(frig.n[by].qp, false), 0, "%s", saker_error());
		cr_assert_eq(frig_ended(&other), 0);
		cr_assert_eq(other, 0);
		frig_recv(0, 9); /* is flushed */
		cr_assert_eq(frig_wc(0).status, RD_WR_FLUSH_ERR);
	}
	frig_stop();
}

Test(engine_falcon, an_abortive_disconnect_reaches_both_sides)
{
	int other;

	frig_start(NULL);
	frig_connect();
	cr_assert_eq(saker_disconnect(frig.n[0].qp, true), 0, "%s", saker_error());
	frig_ended(&other);
	frig_stop();
}

Test(engine_falcon, the_peer_of_a_dead_client_receives_an_event)
{
	frig_start(NULL);
	frig_connect();
	for (int i = 0; i < 8; i++)
		frig_post(0, RD_WRITE, 60000, 0);
	frig_turns(10);
	frig_kill(0);
	frig_event(1, SAKER_EV_DISCONNECTED);
	frig_stop();
}

Test(engine_falcon, a_qp_may_be_destroyed_at_any_time_of_its_connecting)
{
	struct saker_conn_param p = {0};
	struct saker_listener *l;

	frig_start(NULL);
	l = frig_listen(1);
	for (unsigned turns = 0; turns < 60; turns++) {
		struct saker_event ev;

		frig_qp(0, SAKER_FALCON);
		frig_qp(1, SAKER_FALCON);
		frig_ask(&p);
		for (unsigned i = 0; i < turns; i++) {
			frig_turn();
			if (saker_event(frig.n[1].s, &ev) == 1 &&
				ev.type == SAKER_EV_CONNECT_REQUEST)
				saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p);
		}
		cr_assert_eq(saker_qp_destroy(frig.n[turns % 2].qp), 0, "%s", saker_error());
		frig_turns(50);
		for (int i = 0; i < 2; i++)
			while (saker_event(frig.n[i].s, &ev) == 1)
				if (ev.type == SAKER_EV_CONNECT_REQUEST)
					saker_reject(frig.n[1].s, ev.request, NULL, 0);
		frig_turns(50);
		cr_assert_eq(saker_qp_destroy(frig.n[!(turns % 2)].qp), 0, "%s", saker_error());
	}
	frig_turns(100);
	while (!frig_no_event(0) || !frig_no_event(1))
		;
	cr_assert_eq(saker_unlisten(l), 0);
	frig_connect();
	frig_works();
	frig_stop();
}

Test(engine_falcon, a_qp_may_be_destroyed_in_mid_transfer)
{
	struct saker_event ev;

	frig_start(NULL);
	for (unsigned turns = 1; turns < 30; turns++) {
		frig_connect();
		for (int i = 0; i < 6; i++) {
			frig_post(0, i % 2 ? RD_READ : RD_WRITE, 60000, 0);
			frig_post(1, i % 2 ? RD_READ : RD_WRITE, 60000, 0);
		}
		frig_turns(turns);
		cr_assert_eq(saker_qp_destroy(frig.n[turns % 2].qp), 0, "%s", saker_error());
		frig_event(!(turns % 2), SAKER_EV_DISCONNECTED);
		cr_assert_eq(saker_qp_destroy(frig.n[!(turns % 2)].qp), 0, "%s", saker_error());
		for (int i = 0; i < 2; i++) {
			struct rd_wc wc;

			while (saker_event(frig.n[i].s, &ev) == 1)
				;
			while (saker_cq_poll(frig.n[i].cq, &wc, 1) == 1)
				;
		}
	}
	frig_connect();
	frig_works();
	frig_stop();
}

static void
impatient(struct eng_config *cfg, int node)
{
	cfg->falcon.stack.max_retransmits = 4;
}

static const char *control;

static void
controlled(struct eng_config *cfg, int node)
{
	struct fa_rue_params *p = &cfg->falcon.rue;

	cfg->falcon.cc = control;
	cfg->falcon.mtu = 1024;
	p->fixed.fcwnd = 3 * FA_CWND_ONE;
	p->swift.min = p->swift.initial = p->swift.max = 5 * FA_CWND_ONE;
	p->dctcp.min = p->dctcp.initial = p->dctcp.max = 7 * FA_CWND_ONE;
}

static unsigned datagrams;

static void
count_datagrams(struct rte_mbuf *m, int node)
{
	datagrams += node == 1 && m->pkt_len > 1024;
}

/* While nothing is acknowledged, the window decides how many packets of a Write are sent. */
static void
has_window(const char *name, unsigned window)
{
	control = name;
	frig_start(controlled);
	frig_connect();
	frig_works();
	datagrams = 0;
	frig.silent = true;
	frig.port = count_datagrams;
	frig_post(0, RD_WRITE, 32768, 0);
	frig_turns(20);
	cr_assert_eq(datagrams, window, "%s: %u", name, datagrams);
	frig.silent = false;
	frig.port = NULL;
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	frig_stop();
}

Test(engine_falcon, congestion_control_by_name_fixed_10_6)
{
	has_window("fixed", 3);
}

Test(engine_falcon, congestion_control_by_name_swift_10_6)
{
	has_window("swift", 5);
}

Test(engine_falcon, congestion_control_by_name_dctcp_10_6)
{
	has_window("dctcp", 7);
}

/* The wire loses all frames: the first outstanding request fails with a retry error, the rest is
 * flushed, and the program receives an event. */
Test(engine_falcon, a_silent_wire_ends_the_connection)
{
	struct rd_wc wc;

	frig_start(impatient);
	frig_connect();
	frig_works();
	frig.silent = true;
	frig_post(0, RD_WRITE, 3000, 0);
	frig_post(0, RD_READ, 3000, 0);
	wc = frig_wc(0);
	cr_assert_eq(wc.status, RD_RETRY_EXC_ERR, "status %u", wc.status);
	wc = frig_wc(0);
	cr_assert_eq(wc.status, RD_WR_FLUSH_ERR, "status %u", wc.status);
	cr_assert_eq(frig_event(0, SAKER_EV_DISCONNECTED).status, -ETIMEDOUT);
	/* The other side has nothing to send. It notices the end as soon as frames arrive again. */
	frig.silent = false;
	cr_assert_eq(frig_event(1, SAKER_EV_DISCONNECTED).status, -ETIMEDOUT);
	cr_assert_eq(frig_count(1, "rofx", "ROFX_TIMEOUT"), 1);
	frig_stop();
}

/* A reset would be sent only once, and may be lost. */
Test(engine_falcon, an_abortive_end_reaches_an_idle_peer_over_a_bad_wire)
{
	uint64_t began;
	int other;

	frig_start(NULL);
	frig.step = 10000;
	for (unsigned round = 0; round < 20; round++) {
		frig_connect();
		frig.bad = 250;
		began = frig.now;
		cr_assert_eq(saker_qp_destroy(frig.n[round % 2].qp), 0, "%s", saker_error());
		other = frig_event(!(round % 2), SAKER_EV_DISCONNECTED).status;
		cr_assert_eq(other, -ECONNRESET, "%d", other);
		frig.bad = 0;
		cr_assert_lt(frig.now - began, 9000000000, "not by its keepalive");
		cr_assert_eq(saker_qp_destroy(frig.n[!(round % 2)].qp), 0);
	}
	frig_stop();
}

/* The reason still reaches the peer, on the carrier. */
Test(engine_falcon, a_connection_that_is_aborted_leaves_its_place_at_once)
{
	const struct sk_share *share;
	int other;

	frig_start(NULL);
	share = &frig.n[0].e->transports[0]->conn_share;
	for (uint32_t round = 1; round <= 3; round++) {
		frig_connect();
		cr_assert_eq(share->held, 2, "%u: the connection and the carrier", share->held);
		frig.silent = true;
		cr_assert_eq(saker_qp_destroy(frig.n[0].qp), 0, "%s", saker_error());
		frig_sleep(10000000);
		cr_assert_eq(share->held, 1, "round %u: %u", round, share->held);
		frig.silent = false;
		other = frig_event(1, SAKER_EV_DISCONNECTED).status;
		cr_assert_eq(other, -ECONNRESET, "%d", other);
		cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	}
	frig_stop();
}

static void
attentive(struct eng_config *cfg, int node)
{
	cfg->falcon.keepalive_ns = 1000000000;
}

/* Both ends are idle while the wire between them starts to lose all frames. */
Test(engine_falcon, a_host_that_is_silent_is_missed_in_time)
{
	uint64_t began;

	frig_start(attentive);
	frig.step = 20000;
	frig_connect();
	frig.silent = true;
	began = frig.now;
	cr_assert_eq(frig_event(0, SAKER_EV_DISCONNECTED).status, -ETIMEDOUT);
	cr_assert_geq(frig.now - began, 1900000000);
	cr_assert_leq(frig.now - began, 2400000000);
	cr_assert_eq(frig_event(1, SAKER_EV_DISCONNECTED).status, -ETIMEDOUT);
	frig_stop();
}

/* ---- Placements ---- */

static void
two_loops(struct eng_config *cfg, int node)
{
	cfg->nloops = 2;
	cfg->stage_loop[0] = 1;
}

Test(engine_falcon, stages_may_be_apart)
{
	int other;

	frig_start(two_loops);
	frig_connect();
	frig_works();
	cr_assert_eq(saker_disconnect(frig.n[1].qp, false), 0);
	frig_ended(&other);
	frig_stop();
}

/* An engine stage is not polled for a while: the rings to it become full, and nothing is lost. */
Test(engine_falcon, a_stage_that_stands_still_loses_nothing)
{
	frig_start(two_loops);
	frig_connect();
	for (unsigned round = 0; round < 6; round++) {
		for (unsigned i = 0; i < FRIG_MEM; i++)
			frig.n[0].mem[i] = (uint8_t)(i * 3 + round);
		for (unsigned i = 0; i < FRIG_DEPTH / 2; i++) {
			frig_post(0, RD_WRITE, FRIG_MEM, 0);
			frig_post(1, RD_READ, FRIG_MEM, 0);
		}
		frig_turns(round * 5);
		frig.loop_idle = 1u << (round % 2);
		frig_turns(200);
		frig.loop_idle = 0;
		for (unsigned i = 0; i < FRIG_DEPTH / 2; i++) {
			cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
			cr_assert_eq(frig_wc(1).status, RD_SUCCESS);
		}
		cr_assert_arr_eq(frig.n[1].mem, frig.n[0].mem, FRIG_MEM);
	}
	frig_stop();
}

static void
fixed_window(struct eng_config *cfg, int node)
{
	cfg->falcon.cc = "fixed"; /* 128 packets: more than a transport stage keeps for a port */
}

/* The engine stage of the loop then serves few QPs. */
Test(engine_falcon, packets_that_wait_for_room_at_the_port_are_unsent)
{
	const struct eng_transport *t;
	void *filler = &frig, *m;

	frig_start(fixed_window);
	frig_connect();
	t = frig.p.e[0]->loops[0].transports[0];
	cr_assert_not(eng_transport_unsent(t));
	while (rte_ring_enqueue(frig.to[1], filler) == 0)
		;
	for (unsigned i = 0; i < 4; i++)
		frig_post(0, RD_WRITE, FRIG_MEM, 0);
	for (unsigned i = 0; i < 100; i++)
		eng_poll(frig.p.e[0], 0, frig.now);
	cr_assert(eng_transport_unsent(t));
	while (rte_ring_dequeue(frig.to[1], &m) == 0)
		cr_assert_eq(m, filler);
	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	cr_assert_not(eng_transport_unsent(t));
	frig_stop();
}

/* More frames arrive while a host does not run than a turn receives: it reads all of them before it
 * holds any packet for lost. */
Test(engine_falcon, a_stop_of_the_loop_causes_no_retransmission)
{
	frig_start(NULL);
	frig_connect_reads(SAKER_FALCON, 128);
	for (unsigned round = 0; round < 4; round++) {
		unsigned waiting;

		for (unsigned i = 0; i < FRIG_DEPTH; i++)
			frig_post(0, RD_READ, FRIG_MEM, 0);
		frig_turn();
		for (unsigned i = 0; i < 30; i++) {
			frig.now += frig.step;
			eng_poll(frig.n[1].e, 0, frig.now);
		}
		waiting = rte_ring_count(frig.to[0]);
		cr_assert_gt(waiting, ENG_BURST);
		frig.now += 300000000;
		for (unsigned i = 0; i < FRIG_DEPTH; i++)
			cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	}
	cr_assert_eq(frig_count(0, "fa", "FA_RETRANSMIT"), 0);
	cr_assert_eq(frig_count(1, "fa", "FA_RETRANSMIT"), 0);
	frig_stop();
}

static void
several_stages(struct eng_config *cfg, int node)
{
	cfg->nloops = 2;
	cfg->ntransports = 2;
	cfg->nstages = 2;
	cfg->transport_loop[1] = cfg->stage_loop[1] = 1;
}

/* The port has one queue: one transport stage receives all frames, and connections belong to
 * both. */
Test(engine_falcon, frames_find_the_transport_stage_of_their_cid)
{
	frig_start(several_stages);
	for (int i = 0; i < 4; i++) {
		frig_connect();
		frig_works();
	}
	frig_stop();
}

/* ---- PSP ---- */

static uint8_t psp;
static bool keys_differ;

static void protected(struct eng_config *cfg, int node)
{
	cfg->falcon.psps = ROFX_PSP(psp);
	cfg->falcon.tls = pair_tls((uint8_t)('k' + (keys_differ ? node : 0)));
}

static void
works_under(uint8_t version)
{
	psp = version;
	frig_start(protected);
	frig_connect();
	frig_works();
	frig_stop();
}

Test(engine_falcon, a_connection_under_gcm_128)
{
	works_under(PSP_AES_GCM_128);
}

Test(engine_falcon, a_connection_under_gcm_256)
{
	works_under(PSP_AES_GCM_256);
}

Test(engine_falcon, a_connection_under_gmac_128)
{
	works_under(PSP_GMAC_128);
}

Test(engine_falcon, a_connection_under_gmac_256)
{
	works_under(PSP_GMAC_256);
}

Test(engine_falcon, another_psk_is_refused_on_both_sides)
{
	struct saker_conn_param p = {0};

	psp = PSP_AES_GCM_128;
	keys_differ = true;
	frig_start(protected);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	cr_assert(frig_no_event(1), "the listener heard of it");
	cr_assert_eq(frig_count(0, "rofx", "ROFX_TLS"), 1);
	cr_assert_eq(frig_count(1, "rofx", "ROFX_TLS"), 1);
	frig_stop();
}

static void
first_has_a_key(struct eng_config *cfg, int node)
{
	psp = node == 0 ? PSP_AES_GCM_128 : PSP_NO_CRYPTO;
	if (node == 0)
	protected(cfg, node);
}

Test(engine_falcon, tls_and_clear_do_not_go_together)
{
	struct saker_conn_param p = {0};

	frig_start(first_has_a_key);
	frig_listen(1);
	frig_qp(0, SAKER_FALCON);
	frig_ask(&p);
	cr_assert_lt(frig_event(0, SAKER_EV_UNREACHABLE).status, 0);
	cr_assert(frig_no_event(1), "the listener heard of it");
	frig_stop();
}

/* Detaches both clients, the second one `apart` turns later: with the right number, a side fails
 * its connection in the turn in which the peer's REJECT and FIN arrive. */
static void
both_leave(unsigned apart)
{
	struct eng_totals t;

	frig_start(NULL);
	frig_connect();
	frig_works();
	cr_assert_eq(eng_detach(frig.n[0].e, frig.n[0].client), 0);
	frig_turns(apart);
	cr_assert_eq(eng_detach(frig.n[1].e, frig.n[1].client), 0);
	for (int i = 0; i < 2; i++) {
		while (!eng_client_gone(frig.n[i].e, frig.n[i].client))
			frig_turn();
		frig.n[i].client = -1;
	}
	frig_sleep(10000000000ull); /* longer than TIME_WAIT */
	for (int i = 0; i < 2; i++) {
		eng_totals(frig.n[i].e, &t);
		cr_assert_eq(t.conns, 0, "%u turns apart: %u connections of node %d remain", apart,
			t.conns, i);
	}
	frig_stop();
}

Test(engine_falcon, clients_that_leave_at_once_leave_no_connection)
{
	both_leave(0);
}

Test(engine_falcon, clients_that_leave_one_after_the_other_leave_no_connection)
{
	both_leave(2);
}
