/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams through running engines: many QPs share one host connection, which the engines make
 * without a request of a program; and datagrams that the receiver cannot accept. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_ring.h>

#include "falcon_rig.h"

TestSuite(engine_falcon_ud, .init = pair_eal);

#define QKEY  0x11111111u
#define GRH   40
#define TURNS 10000000u

static struct saker_qp *
datagram_qp(int node, uint32_t qkey)
{
	struct fnode *n = &frig.n[node];
	struct saker_qp_move m = {.state = RD_QP_INIT, .qkey = qkey};
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = 256,
		.rq_depth = 128,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.transport = SAKER_FALCON,
		.type = SAKER_UD};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(n->pd, &attr, &qp), 0, "%s", saker_error());
	for (m.state = RD_QP_INIT; m.state <= RD_QP_RTS; m.state++)
		cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	return qp;
}

static struct saker_ah *
handle(int node, const struct sk_addr *remote)
{
	struct saker_ah *ah;

	cr_assert_eq(saker_ah_create(frig.n[node].pd, remote, &ah), 0, "%s", saker_error());
	return ah;
}

static void
send_to(struct saker_qp *qp, int node, const struct saker_ah *ah, uint32_t qpn, uint32_t qkey,
	uint32_t off, uint32_t len)
{
	struct fnode *n = &frig.n[node];
	struct rd_sge sge = {(uintptr_t)n->mem + off, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = off,
		.opcode = RD_SEND_IMM,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.ah = ah,
		.remote_qpn = qpn,
		.remote_qkey = qkey,
		.imm = off};

	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
}

static void
receive(struct saker_qp *qp, int node, uint64_t id, uint32_t off, uint32_t len)
{
	struct fnode *n = &frig.n[node];
	struct rd_sge sge = {(uintptr_t)n->mem + off, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = id, .nsge = 1, .sge = &sge};

	cr_assert_eq(saker_post_recv(qp, &wr, 1), 1);
}

static void
fill(int node)
{
	for (unsigned i = 0; i < FRIG_MEM; i++)
		frig.n[node].mem[i] = (uint8_t)(i * 13 + (i >> 8));
}

static void
sent(int node)
{
	struct rd_wc wc = frig_wc(node);

	cr_assert_eq(wc.opcode, RD_SEND_IMM);
	cr_assert_eq(wc.status, RD_SUCCESS, "%u", wc.status);
}

static void
await(int node, const char *name, uint64_t n)
{
	for (unsigned i = 0; i < TURNS && frig_count(node, "rof", name) < n; i++)
		frig_turn();
	cr_assert_eq(frig_count(node, "rof", name), n, "%s", name);
}

Test(engine_falcon_ud, a_datagram_finds_its_way_and_comes_with_its_addresses_rof_6_6_3)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;
	const uint8_t *grh;
	struct rd_wc wc;

	frig_start(NULL);
	fill(0);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY + 1);
	ah = handle(0, &frig.n[1].addr);
	receive(b, 1, 9, 100, 4000);
	send_to(a, 0, ah, saker_qp_num(b), QKEY + 1, 5, 900);
	wc = frig_wc(1);
	cr_assert_eq(wc.wr_id, 9);
	cr_assert_eq(wc.status, RD_SUCCESS);
	cr_assert_eq(wc.byte_len, GRH + 900);
	cr_assert_eq(wc.flags, RD_WC_GRH | RD_WC_IP4 | RD_WC_IMM);
	cr_assert_eq(wc.imm, 5);
	cr_assert_eq(wc.src_qp, saker_qp_num(a));
	cr_assert_eq(wc.qpn, saker_qp_num(b));
	sent(0);
	cr_assert_arr_eq(frig.n[1].mem + 100 + GRH, frig.n[0].mem + 5, 900);
	cr_assert_eq(frig.n[1].mem[100 + GRH + 900], 0);
	grh = frig.n[1].mem + 100;
	cr_assert_eq(grh[20], 0x45);
	cr_assert_eq(grh[22] << 8 | grh[23], 20 + 900);
	cr_assert_arr_eq(grh + 32, frig.n[0].addr.b + 12, 4, "from");
	cr_assert_arr_eq(grh + 36, frig.n[1].addr.b + 12, 4, "to");
	/* The answer uses the same host connection. */
	receive(a, 0, 1, 30000, 2000);
	send_to(b, 1, handle(1, &frig.n[0].addr), wc.src_qp, QKEY, 100 + GRH, 900);
	cr_assert_eq(frig_wc(0).wr_id, 1);
	cr_assert_arr_eq(frig.n[0].mem + 30000 + GRH, frig.n[0].mem + 5, 900);
	sent(1);
	frig_stop();
}

Test(engine_falcon_ud, what_cannot_be_taken_is_lost_and_its_sender_none_the_wiser_rof_8_3_10)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;

	frig_start(NULL);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = handle(0, &frig.n[1].addr);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 0, 100);
	await(1, "ROF_UD_NO_RECEIVE", 1);
	sent(0);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, ah, saker_qp_num(b), QKEY + 1, 0, 100);
	await(1, "ROF_UD_QKEY", 1);
	sent(0);
	send_to(a, 0, ah, saker_qp_num(b) ^ 1, QKEY, 0, 100);
	await(1, "ROF_UD_NO_QP", 1);
	sent(0);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 0, 100);
	cr_assert_eq(frig_wc(1).wr_id, 1, "the receive is still there");
	sent(0);
	frig_stop();
}

Test(engine_falcon_ud, many_qps_share_one_connection_both_ways_rof_6_6_3)
{
	struct saker_qp *qp[2][4];
	struct saker_ah *ah[2];
	unsigned got[2] = {0}, done[2] = {0};
	struct eng_totals t;

	frig_start(NULL);
	fill(0);
	fill(1);
	for (int node = 0; node < 2; node++) {
		ah[node] = handle(node, &frig.n[!node].addr);
		for (unsigned i = 0; i < 4; i++) {
			qp[node][i] = datagram_qp(node, QKEY);
			for (unsigned k = 0; k < 16; k++)
				receive(qp[node][i], node, i, 40000, 2000);
		}
	}
	for (unsigned k = 0; k < 64; k++)
		for (int node = 0; node < 2; node++)
			send_to(qp[node][k % 4], node, ah[node], saker_qp_num(qp[!node][k / 16]),
				QKEY, k, 200);
	for (unsigned i = 0; i < TURNS && got[0] + got[1] + done[0] + done[1] < 256; i++) {
		frig_turn();
		for (int node = 0; node < 2; node++) {
			struct rd_wc wc;

			if (saker_cq_poll(frig.n[node].cq, &wc, 1) == 0)
				continue;
			cr_assert_eq(wc.status, RD_SUCCESS);
			if (wc.opcode == RD_RECV)
				got[node]++;
			else
				done[node]++;
		}
	}
	cr_assert_eq(got[0], 64);
	cr_assert_eq(got[1], 64);
	eng_totals(frig.p.e[0], &t);
	cr_assert_eq(t.conns, 1);
	frig_stop();
}

static void
with_ip6(struct eng_config *cfg, int node)
{
	struct eng_if_config *i = &cfg->ifs[cfg->nifs++];

	*i = cfg->ifs[0];
	i->addr = pair_addr(node == 0 ? "fd00::1" : "fd00::2");
	i->prefix = 64;
}

Test(engine_falcon_ud, hosts_connect_over_ipv6_too)
{
	struct sk_addr v6[2] = {pair_addr("fd00::1"), pair_addr("fd00::2")};
	struct saker_qp *a, *b;
	const uint8_t *grh;

	frig_start(with_ip6);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, handle(0, &v6[1]), saker_qp_num(b), QKEY, 0, 300);
	cr_assert_eq(frig_wc(1).byte_len, GRH + 300);
	sent(0);
	grh = frig.n[1].mem;
	cr_assert_eq(grh[0] >> 4, 6);
	cr_assert_eq(grh[4] << 8 | grh[5], 300);
	cr_assert_arr_eq(grh + 8, v6[0].b, 16, "from");
	cr_assert_arr_eq(grh + 24, v6[1].b, 16, "to");
	frig_stop();
}

Test(engine_falcon_ud, a_saker_sends_to_itself)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;

	frig_start_one(NULL);
	fill(0);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = handle(0, &frig.n[0].addr);
	receive(b, 1, 7, 0, 4000);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 0, 800);
	cr_assert_eq(frig_wc(1).wr_id, 7);
	cr_assert_arr_eq(frig.n[1].mem + GRH, frig.n[0].mem, 800);
	sent(0);
	receive(a, 0, 8, 20000, 4000);
	send_to(a, 0, ah, saker_qp_num(a), QKEY, 0, 800);
	frig_wc(0);
	frig_wc(0);
	cr_assert_arr_eq(frig.n[0].mem + 20000 + GRH, frig.n[0].mem, 800, "to the QP itself");
	frig_stop();
}

static void
short_patience(struct eng_config *cfg, int node)
{
	cfg->falcon.patience_ns = 50000000;
}

Test(engine_falcon_ud, who_posts_before_there_is_a_connection_waits_and_loses_what_is_too_much)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;
	struct rd_wc wc;
	unsigned got = 0;

	frig_start(NULL);
	frig.silent = true;
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = handle(0, &frig.n[1].addr);
	for (unsigned i = 0; i < ROF_HELD_MAX; i++)
		receive(b, 1, i, 0, 4000);
	for (unsigned i = 0; i < ROF_HELD_MAX + 36; i++)
		send_to(a, 0, ah, saker_qp_num(b), QKEY, i, 50);
	frig_turns(1000);
	cr_assert_eq(saker_cq_poll(frig.n[0].cq, &wc, 1), 0, "completions come in order");
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), 36);
	frig.silent = false;
	for (unsigned i = 0; i < TURNS && got < ROF_HELD_MAX; i++) {
		frig_turn();
		got += (unsigned)saker_cq_poll(frig.n[1].cq, &wc, 1);
	}
	cr_assert_eq(got, ROF_HELD_MAX);
	for (unsigned i = 0; i < ROF_HELD_MAX + 36; i++) {
		wc = frig_wc(0);
		cr_assert_eq(wc.status, RD_SUCCESS);
		cr_assert_eq(wc.wr_id, i);
	}
	frig_stop();
}

Test(engine_falcon_ud, a_host_that_never_answers_holds_up_nobody_for_long)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;
	struct sk_addr nobody = pair_addr("10.0.0.77");

	frig_start(short_patience);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = handle(0, &frig.n[1].addr);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, handle(0, &nobody), 1, QKEY, 0, 10);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 1, 10);
	cr_assert_eq(frig_wc(1).wr_id, 1, "the datagram behind it goes");
	sent(0);
	sent(0);
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), 1);
	frig_stop();
}

/* The wire loses, duplicates and reorders frames. */
Test(engine_falcon_ud, over_a_hostile_wire_each_comes_once_and_whole)
{
	unsigned got = 0, done = 0, posted = 0, seen[64] = {0};
	struct saker_qp *a, *b;
	struct saker_ah *ah;

	frig_start(NULL);
	frig_connect(); /* resolves the neighbours, whose solicitations could get lost */
	frig.bad = 100;
	fill(0);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = handle(0, &frig.n[1].addr);
	for (unsigned i = 0; i < 64; i++)
		receive(b, 1, i, i * 1000, 1000);
	for (unsigned i = 0; i < TURNS && got + done < 128; i++) {
		struct rd_wc wc;

		frig_turn();
		if (posted < 64 && i % 64 == 0) {
			send_to(a, 0, ah, saker_qp_num(b), QKEY, posted * 7, 900);
			posted++;
		}
		if (saker_cq_poll(frig.n[0].cq, &wc, 1) == 1)
			done++;
		if (saker_cq_poll(frig.n[1].cq, &wc, 1) == 0)
			continue;
		cr_assert_eq(wc.status, RD_SUCCESS);
		cr_assert_eq(seen[wc.imm / 7]++, 0, "at most once");
		cr_assert_arr_eq(
			frig.n[1].mem + wc.wr_id * 1000 + GRH, frig.n[0].mem + wc.imm, 900);
		got++;
	}
	cr_assert_eq(done, 64);
	cr_assert_eq(got, 64);
	cr_assert_gt(frig.lost, 0);
	frig_stop();
}

Test(engine_falcon_ud, handles_that_are_none_of_the_program_fail_its_request_alone)
{
	struct sk_addr group = pair_addr("224.0.0.5"), any = {{0}};
	struct saker_ah *ah, *other;
	struct saker_qp *a;
	struct saker_pd *pd;

	frig_start(NULL);
	a = datagram_qp(0, QKEY);
	cr_assert_eq(saker_ah_create(frig.n[0].pd, &group, &ah), -EINVAL, "multicast");
	cr_assert_eq(saker_ah_create(frig.n[0].pd, &any, &ah), -EINVAL);
	send_to(a, 0, NULL, 1, QKEY, 0, 10);
	cr_assert_eq(frig_wc(0).status, RD_LOC_QP_OP_ERR, "no handle");
	cr_assert_eq(saker_pd_create(frig.n[0].s, &pd), 0);
	cr_assert_eq(saker_ah_create(pd, &frig.n[1].addr, &other), 0, "%s", saker_error());
	send_to(a, 0, other, 1, QKEY, 0, 10);
	cr_assert_eq(frig_wc(0).status, RD_LOC_QP_OP_ERR, "another protection domain's");
	cr_assert_eq(saker_pd_destroy(pd), -EBUSY);
	cr_assert_eq(saker_ah_destroy(other), 0, "%s", saker_error());
	cr_assert_eq(saker_pd_destroy(pd), 0, "%s", saker_error());
	ah = handle(0, &frig.n[1].addr);
	send_to(a, 0, ah, 1, QKEY, 0, 9000);
	cr_assert_eq(frig_wc(0).status, RD_LOC_LEN_ERR, "more than one packet");
	send_to(a, 0, ah, 1, QKEY, 0, 10);
	sent(0);
	frig_stop();
}

Test(engine_falcon_ud, a_client_that_dies_leaves_the_others_of_its_host_alone)
{
	struct saker_qp *a, *b, *c;
	struct fnode third;
	struct saker_ah *ah;

	frig_start(NULL);
	frig_client(1, "test", &third);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = handle(0, &frig.n[1].addr);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 0, 10);
	frig_wc(1);
	sent(0);
	c = datagram_qp(0, QKEY);
	receive(c, 0, 4, 0, 1000);
	handle(1, &frig.n[0].addr);
	frig_kill(1);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 0, 10);
	sent(0);
	frig_client_end(&third);
	frig_stop();
}

/* ---- Datagram services ---- */

#define SERVICE 7000 /* datagram services have a port space of their own */

static struct saker_event
question(struct saker_qp *qp, const char *text)
{
	cr_assert_eq(saker_ud_resolve(qp, &frig.n[1].addr, SERVICE, text, strlen(text)), 0, "%s",
		saker_error());
	return frig_event(1, SAKER_EV_CONNECT_REQUEST);
}

Test(engine_falcon_ud, who_serves_a_port_is_found_by_asking)
{
	struct saker_conn_param p = {.private_data = "here", .private_len = 4};
	struct saker_listener *l, *tcp;
	struct saker_qp *a, *b;
	struct saker_event ev;

	frig_start(NULL);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY + 7);
	cr_assert_eq(
		saker_ud_listen(frig.n[1].s, NULL, SERVICE, 4, NULL, &l), 0, "%s", saker_error());
	tcp = frig_listen(1); /* a TCP listener at the same port number */
	ev = question(a, "who?");
	cr_assert_eq(ev.listener, l);
	cr_assert_eq(ev.cm.space, SAKER_SPACE_UDP);
	cr_assert_eq(ev.cm.type, SAKER_UD);
	cr_assert_eq(ev.cm.lport, SERVICE);
	cr_assert(sk_addr_eq(&ev.cm.remote, &frig.n[0].addr));
	cr_assert_eq(ev.cm.private_len, 4);
	cr_assert_arr_eq(ev.cm.private_data, "who?", 4);
	cr_assert_eq(saker_ud_resolve(a, &frig.n[1].addr, SERVICE, NULL, 0), -EISCONN);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, b, &p), 0, "%s", saker_error());
	ev = frig_event(0, SAKER_EV_ESTABLISHED);
	cr_assert_eq(ev.qp, a);
	cr_assert_eq(ev.cm.remote_qpn, saker_qp_num(b));
	cr_assert_eq(ev.cm.remote_qkey, QKEY + 7);
	cr_assert_eq(ev.cm.rport, SERVICE);
	cr_assert_eq(ev.cm.private_len, 4);
	cr_assert_arr_eq(ev.cm.private_data, "here", 4);
	receive(b, 1, 3, 0, 4000);
	send_to(a, 0, handle(0, &frig.n[1].addr), ev.cm.remote_qpn, ev.cm.remote_qkey, 0, 10);
	cr_assert_eq(frig_wc(1).wr_id, 3);
	sent(0);
	cr_assert(frig_no_event(1), "nothing stays");
	cr_assert_eq(saker_unlisten(tcp), 0);
	frig_stop();
}

Test(engine_falcon_ud, a_service_may_refuse_or_not_be_there)
{
	struct saker_listener *l;
	struct saker_event ev;
	struct saker_qp *a;

	frig_start(NULL);
	a = datagram_qp(0, QKEY);
	cr_assert_eq(saker_ud_resolve(a, &frig.n[1].addr, SERVICE, NULL, 0), 0);
	cr_assert_eq(frig_event(0, SAKER_EV_UNREACHABLE).status, -ECONNREFUSED, "nobody");
	cr_assert_eq(saker_ud_listen(frig.n[1].s, &frig.n[1].addr, SERVICE, 4, NULL, &l), 0);
	ev = question(a, "");
	cr_assert_eq(saker_reject(frig.n[1].s, ev.request, "no", 2), 0, "%s", saker_error());
	ev = frig_event(0, SAKER_EV_REJECTED);
	cr_assert_eq(ev.cm.private_len, 2);
	cr_assert_arr_eq(ev.cm.private_data, "no", 2);
	/* A reliable QP can neither serve a datagram service nor look one up. */
	ev = question(a, "");
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig_qp(1, SAKER_FALCON), NULL), -EPROTOTYPE);
	cr_assert_eq(saker_ud_resolve(frig_qp(0, SAKER_FALCON), &frig.n[1].addr, SERVICE, NULL, 0),
		-EPROTOTYPE);
	cr_assert_eq(saker_unlisten(l), 0, "%s", saker_error());
	frig_event(0, SAKER_EV_REJECTED);
	frig_stop();
}
