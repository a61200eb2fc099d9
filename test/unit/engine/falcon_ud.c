/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams through running engines: many QPs share one host connection, which the engines make
 * without a request of a program; and datagrams that the receiver cannot accept. */
#include <errno.h>
#include <string.h>

#include <criterion/criterion.h>
#include <rte_ring.h>

#include "../../../lib/base/mem.h"
#include "falcon_rig.h"

TestSuite(engine_falcon_ud, .init = pair_eal);

#define QKEY  0x11111111u
#define GRH   40
#define TURNS 10000000u

static struct saker_qp *
datagram_qp(int node, uint32_t qkey)
{
	return frig_datagram_qp(&frig.n[node], qkey, 256, SAKER_ORDER_CONFIGURED);
}

static struct saker_ah *
handle_as(int node, const struct sk_addr *remote, enum saker_ordering ordering)
{
	struct saker_ah *ah;

	cr_assert_eq(
		saker_ah_create_as(frig.n[node].pd, remote, ordering, &ah), 0, "%s", saker_error());
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
	ah = frig_ah(0, &frig.n[1].addr);
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
	send_to(b, 1, frig_ah(1, &frig.n[0].addr), wc.src_qp, QKEY, 100 + GRH, 900);
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
	ah = frig_ah(0, &frig.n[1].addr);
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
		ah[node] = frig_ah(node, &frig.n[!node].addr);
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
	cr_assert_eq(t.conns, 2, "the connection and its carrier");
	frig_stop();
}

static void
with_ip6(struct eng_config *cfg, int node)
{
	struct eng_if_config *i = &cfg->ifs[cfg->nifs++];

	*i = cfg->ifs[0];
	i->addr = addr(node == 0 ? "fd00::1" : "fd00::2");
	i->prefix = 64;
}

Test(engine_falcon_ud, hosts_connect_over_ipv6_too)
{
	struct sk_addr v6[2] = {addr("fd00::1"), addr("fd00::2")};
	struct saker_qp *a, *b;
	const uint8_t *grh;

	frig_start(with_ip6);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, frig_ah(0, &v6[1]), saker_qp_num(b), QKEY, 0, 300);
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
	ah = frig_ah(0, &frig.n[0].addr);
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

Test(engine_falcon_ud, requests_before_there_is_a_connection_wait_and_the_excess_is_lost)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;
	struct rd_wc wc;
	unsigned got = 0;

	frig_start(NULL);
	frig.silent = true;
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = frig_ah(0, &frig.n[1].addr);
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

Test(engine_falcon_ud, a_host_that_never_answers_delays_others_for_a_short_time_only)
{
	struct saker_qp *a, *b;
	struct saker_ah *ah;
	struct sk_addr nobody = addr("10.0.0.77");

	frig_start(short_patience);
	a = datagram_qp(0, QKEY);
	b = datagram_qp(1, QKEY);
	ah = frig_ah(0, &frig.n[1].addr);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, frig_ah(0, &nobody), 1, QKEY, 0, 10);
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
	ah = frig_ah(0, &frig.n[1].addr);
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

/* ---- The orders of datagrams ---- */

#define BATCH  64u  /* datagrams of an order that are under way together */
#define PIECE  100u /* bytes of a datagram */
#define PLACE  200u /* bytes of its receive */
#define ROUNDS 20

/* A QP of each node, and what was seen of the datagrams from the one to the other. */
struct lane {
	struct saker_qp *from, *to;
	struct saker_ah *ah;
	unsigned sent, got;           /* completions of this round */
	unsigned late_sent, late_got; /* completions behind that of a later datagram */
	uint32_t last_sent, last_got; /* the latest datagrams of this round */
};

static struct lane
lane_with(enum saker_ordering ordering)
{
	return (struct lane){.from = frig_datagram_qp(&frig.n[0], QKEY, 256, ordering),
		.to = datagram_qp(1, QKEY),
		.ah = handle_as(0, &frig.n[1].addr, ordering)};
}

/* Posts the datagrams of lane `k`, and a receive for each. */
static void
lane_post(struct lane *l, unsigned k)
{
	l->sent = l->got = l->last_sent = l->last_got = 0;
	for (unsigned i = 0; i < BATCH; i++)
		receive(l->to, 1, i, (k * BATCH + i) * PLACE, PLACE);
	for (unsigned i = 0; i < BATCH; i++)
		send_to(l->from, 0, l->ah, saker_qp_num(l->to), QKEY, k * BATCH * PIECE + i * PIECE,
			PIECE);
}

static void
lane_sent(struct lane *l, const struct rd_wc *wc)
{
	cr_assert_eq(wc->status, RD_SUCCESS);
	l->sent++;
	l->late_sent += wc->wr_id < l->last_sent;
	l->last_sent = SK_MAX(l->last_sent, (uint32_t)wc->wr_id);
}

/* Receives are taken in their order, so the datagram is that of the next place. */
static void
lane_got(struct lane *l, unsigned k, const struct rd_wc *wc)
{
	cr_assert_eq(wc->status, RD_SUCCESS);
	cr_assert_eq(wc->wr_id, l->got++);
	cr_assert_arr_eq(frig.n[1].mem + (k * BATCH + wc->wr_id) * PLACE + GRH,
		frig.n[0].mem + wc->imm, PIECE);
	l->late_got += wc->imm < l->last_got;
	l->last_got = SK_MAX(l->last_got, (uint32_t)wc->imm);
}

static void
lanes_round(struct lane lanes[3])
{
	unsigned n = 0;
	struct rd_wc wc;

	for (unsigned k = 0; k < 3; k++)
		lane_post(&lanes[k], k);
	for (unsigned i = 0; i < TURNS && n < 2 * 3 * BATCH; i++) {
		frig_turn();
		for (; saker_cq_poll(frig.n[0].cq, &wc, 1) == 1; n++)
			for (unsigned k = 0; k < 3; k++)
				if (wc.qpn == saker_qp_num(lanes[k].from))
					lane_sent(&lanes[k], &wc);
		for (; saker_cq_poll(frig.n[1].cq, &wc, 1) == 1; n++)
			for (unsigned k = 0; k < 3; k++)
				if (wc.qpn == saker_qp_num(lanes[k].to))
					lane_got(&lanes[k], k, &wc);
	}
	for (unsigned k = 0; k < 3; k++) {
		cr_assert_eq(lanes[k].sent, BATCH);
		cr_assert_eq(lanes[k].got, BATCH);
	}
}

Test(engine_falcon_ud, datagrams_of_three_orders_keep_them_over_a_hostile_wire_rof_6_4)
{
	struct eng_totals t;
	struct lane lanes[3];

	frig_start(NULL);
	frig_connect(); /* resolves the neighbours, whose solicitations could get lost */
	fill(0);
	for (unsigned k = 0; k < 3; k++)
		lanes[k] = lane_with(SAKER_ORDER_STRONG + k);
	frig.bad = 60;
	for (unsigned i = 0; i < ROUNDS; i++)
		lanes_round(lanes);
	cr_assert_gt(frig.lost, 0);
	cr_assert_eq(lanes[0].late_got, 0, "strong: the data is in order");
	cr_assert_eq(lanes[0].late_sent, 0, "strong: completions are in order");
	cr_assert_gt(lanes[1].late_got, 0, "weak: the data is as it comes");
	cr_assert_eq(lanes[1].late_sent, 0, "weak: completions are in order");
	cr_assert_gt(lanes[2].late_got, 0, "none: the data is as it comes");
	cr_assert_gt(lanes[2].late_sent, 0, "none: completions are as they come");
	eng_totals(frig.p.e[0], &t);
	cr_assert_eq(t.conns, 4, "the carrier, that of the QPs, one in order, one without; not %u",
		t.conns);
	frig_stop();
}

static void
few_contexts(struct eng_config *cfg, int node)
{
	cfg->falcon.stack.pools.tx_pkt_req = 256;
}

/* An ordered connection is given up when Falcon refuses a request, so requests beyond Falcon's
 * resources must wait there, as many as a channel has. */
Test(engine_falcon_ud, an_ordered_burst_beyond_falcons_resources_waits_falcon_8_2_3)
{
	struct saker_qp *qp[5], *to;
	struct rd_wc wc;
	struct saker_ah *ah;
	unsigned done = 0;

	frig_start(few_contexts);
	fill(0);
	to = datagram_qp(1, QKEY);
	ah = handle_as(0, &frig.n[1].addr, SAKER_ORDER_STRONG);
	for (unsigned k = 0; k < 5; k++)
		qp[k] = frig_datagram_qp(&frig.n[0], QKEY, 256, SAKER_ORDER_STRONG);
	receive(to, 1, 1, 0, 4000);
	send_to(qp[0], 0, ah, saker_qp_num(to), QKEY, 0, 10);
	frig_wc(1);
	sent(0);
	frig.silent = true;
	for (unsigned i = 0; i < 5 * 250; i++) {
		send_to(qp[i % 5], 0, ah, saker_qp_num(to), QKEY, i, 10);
		frig_turn();
	}
	frig_turns(100);
	frig.silent = false;
	for (unsigned i = 0; i < TURNS && done < 5 * 250; i++) {
		frig_turn();
		for (; saker_cq_poll(frig.n[0].cq, &wc, 1) == 1; done++)
			cr_assert_eq(wc.status, RD_SUCCESS);
	}
	cr_assert_eq(done, 5 * 250);
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), 0);
	cr_assert_eq(frig_count(1, "rof", "ROF_UD_NO_RECEIVE"), 5 * 250, "each arrived");
	frig_stop();
}

static void
in_order(struct eng_config *cfg, int node)
{
	cfg->falcon.datagram_ordering = ROF_ORDER_STRONG;
}

/* Both hosts request each of the two connections at the same time. */
Test(engine_falcon_ud, the_order_of_a_handle_is_that_of_the_configuration_unless_chosen)
{
	struct saker_qp *qp[2];
	struct saker_ah *ah[2][2];
	struct eng_totals t;

	frig_start(in_order);
	fill(0);
	fill(1);
	for (int i = 0; i < 2; i++) {
		qp[i] = datagram_qp(i, QKEY);
		ah[i][0] = frig_ah(i, &frig.n[!i].addr);
		ah[i][1] = handle_as(i, &frig.n[!i].addr, SAKER_ORDER_STRONG);
	}
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 2; i++) {
			receive(qp[i], i, 1, 40000, 2000);
			send_to(qp[i], i, ah[i][k], saker_qp_num(qp[!i]), QKEY, 0, 100);
		}
		for (int i = 0; i < 2; i++) {
			frig_wc(i);
			frig_wc(i);
		}
		eng_totals(frig.p.e[0], &t);
		cr_assert_eq(t.conns, 2, "both in order, and the carrier");
	}
	for (int i = 0; i < 2; i++)
		ah[i][0] = handle_as(i, &frig.n[!i].addr, SAKER_ORDER_NONE);
	for (int i = 0; i < 2; i++) {
		receive(qp[i], i, 1, 40000, 2000);
		send_to(qp[i], i, ah[i][0], saker_qp_num(qp[!i]), QKEY, 0, 100);
	}
	for (int i = 0; i < 2; i++) {
		frig_wc(i);
		frig_wc(i);
	}
	frig_turns(20000);
	eng_totals(frig.p.e[0], &t);
	cr_assert_eq(t.conns, 3);
	frig_stop();
}

static struct saker_qp *
datagram_qp_with(int node, const struct saker_modes *modes, int status)
{
	struct saker_qp_move m = {.qkey = QKEY, .modes = *modes};
	struct saker_qp_attr attr = {.send_cq = frig.n[node].cq,
		.recv_cq = frig.n[node].cq,
		.sq_depth = 8,
		.rq_depth = 8,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_FALCON,
		.type = SAKER_UD};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(frig.n[node].pd, &attr, &qp), 0, "%s", saker_error());
	m.state = RD_QP_INIT;
	cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	m.state = RD_QP_RTR;
	cr_assert_eq(saker_qp_move(qp, &m), status, "%s", saker_error());
	m.state = RD_QP_RTS;
	if (status == 0)
		cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	return qp;
}

static void
send_bad(struct saker_qp *qp, const struct saker_ah *ah, uint64_t id)
{
	struct rd_sge sge = {(uintptr_t)frig.n[0].mem, 8, 0};
	struct saker_wr wr = {.wr_id = id,
		.opcode = RD_SEND,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.ah = ah,
		.remote_qpn = 5,
		.remote_qkey = QKEY};

	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
}

static void
verbs_errors(struct eng_config *cfg, int node)
{
	cfg->falcon.datagram_errors = ROF_ERRORS_VERBS;
}

/* Of two QPs with the same fault, the first one fails, and the other one goes on. */
static void
first_one_fails(const struct saker_modes *first, const struct saker_modes *second)
{
	static const struct saker_modes unordered = {.ordering = SAKER_ORDER_NONE};
	struct saker_qp *qp[2] = {datagram_qp_with(0, first, 0), datagram_qp_with(0, second, 0)};
	struct saker_ah *ah = frig_ah(0, &frig.n[1].addr);
	struct saker_qp_info info;

	for (int k = 0; k < 2; k++) {
		send_bad(qp[k], ah, 1);
		cr_assert_eq(frig_wc(0).status, RD_LOC_PROT_ERR);
		if (k == 0)
			cr_assert_eq(frig_event(0, SAKER_EV_QP_FATAL).qp, qp[0]);
		cr_assert_eq(saker_qp_query(qp[k], &info), 0);
		cr_assert_eq(info.state, k == 0 ? RD_QP_ERR : RD_QP_RTS);
	}
	cr_assert(frig_no_event(0));
	send_bad(qp[0], ah, 2);
	cr_assert_eq(frig_wc(0).status, RD_WR_FLUSH_ERR);
	send_bad(qp[1], ah, 2);
	cr_assert_eq(frig_wc(0).status, RD_LOC_PROT_ERR, "each by itself");
	datagram_qp_with(0, &unordered, 0); /* which completes in error */
}

Test(engine_falcon_ud, the_error_mode_is_of_the_qp_rof_6_4)
{
	static const struct saker_modes verbs = {.errors = SAKER_ERRORS_VERBS}, open;

	frig_start(NULL);
	first_one_fails(&verbs, &open);
	frig_stop();
}

Test(engine_falcon_ud, the_error_mode_is_that_of_the_configuration_unless_chosen)
{
	static const struct saker_modes complete = {.errors = SAKER_ERRORS_COMPLETE}, open;

	frig_start(verbs_errors);
	first_one_fails(&open, &complete);
	frig_stop();
}

Test(engine_falcon_ud, unordered_datagrams_complete_in_error_rof_6_4)
{
	static const struct saker_modes neither = {
		.ordering = SAKER_ORDER_NONE, .errors = SAKER_ERRORS_VERBS};

	frig_start(NULL);
	datagram_qp_with(0, &neither, -EINVAL);
	cr_assert_str_eq(
		saker_error(), "unordered datagrams complete in error (RDMA over Falcon 6.4)");
	frig_stop();
}

Test(engine_falcon_ud, an_order_that_there_is_not_is_refused)
{
	struct saker_qp_move m = {.state = RD_QP_INIT, .modes = {.ordering = SAKER_ORDER_ANY}};
	struct saker_qp_attr attr = {.send_cq = NULL,
		.sq_depth = 4,
		.rq_depth = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_FALCON,
		.type = SAKER_UD};
	struct saker_ah *ah;
	struct saker_qp *qp;

	frig_start(NULL);
	cr_assert_eq(
		saker_ah_create_as(frig.n[0].pd, &frig.n[1].addr, SAKER_ORDER_ANY, &ah), -EINVAL);
	attr.send_cq = attr.recv_cq = frig.n[0].cq;
	cr_assert_eq(saker_qp_create(frig.n[0].pd, &attr, &qp), 0, "%s", saker_error());
	cr_assert_eq(saker_qp_move(qp, &m), 0, "of RTR only");
	m.state = RD_QP_RTR;
	cr_assert_eq(saker_qp_move(qp, &m), -EINVAL);
	m.modes.ordering = SAKER_ORDER_STRONG;
	cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	frig_stop();
}

Test(engine_falcon_ud, handles_that_are_none_of_the_program_fail_its_request_alone)
{
	struct sk_addr group = addr("224.0.0.5"), any = {{0}};
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
	ah = frig_ah(0, &frig.n[1].addr);
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
	ah = frig_ah(0, &frig.n[1].addr);
	receive(b, 1, 1, 0, 4000);
	send_to(a, 0, ah, saker_qp_num(b), QKEY, 0, 10);
	frig_wc(1);
	sent(0);
	c = datagram_qp(0, QKEY);
	receive(c, 0, 4, 0, 1000);
	frig_ah(1, &frig.n[0].addr);
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

Test(engine_falcon_ud, a_lookup_finds_the_qp_that_serves_a_port)
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
	send_to(a, 0, frig_ah(0, &frig.n[1].addr), ev.cm.remote_qpn, ev.cm.remote_qkey, 0, 10);
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
