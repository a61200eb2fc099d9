/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host connections that end, or never exist. Each datagram QP that waits for one continues, and no
 * other QP is visited: a visit without work is charged to the client of the QP.
 */
#include <criterion/criterion.h>

#include "../../../lib/engine/common/places.h"
#include "../../../lib/engine/stage/stage_priv.h"
#include "../../../lib/rof/rof_priv.h"
#include "falcon_rig.h"

TestSuite(engine_falcon_ud_ends, .init = pair_eal_large);

#define QKEY   0x1234u
#define DEPTH  8u   /* of a short send queue: the stage takes ROF_REQS_MIN requests of it */
#define LONG   250u /* depth of a long one */
#define IDLE   16u
#define ROUNDS 5u
#define TURNS  10000000u

/* Posts a datagram of node 0. Returns whether the send queue had room. */
static bool
post(struct saker_qp *qp, const struct saker_ah *ah, uint32_t len)
{
	struct fnode *n = &frig.n[0];
	struct rd_sge sge = {(uintptr_t)n->mem, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.opcode = RD_SEND,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.ah = ah,
		.remote_qpn = 5,
		.remote_qkey = QKEY};

	return saker_post_send(qp, &wr, 1) == 1;
}

/* Posts `n` datagrams, and waits until the stage has taken as many as it can. */
static void
post_all(struct saker_qp *qp, const struct saker_ah *ah, unsigned n, uint32_t len)
{
	for (unsigned i = 0; i < TURNS && n > 0; i++) {
		n -= post(qp, ah, len);
		frig_turn();
	}
	cr_assert_eq(n, 0);
	frig_turns(100);
}

/* Waits for `n` completions of node 0. Returns the number of those with an error. */
static unsigned
complete_in(struct saker_cq *cq, unsigned n)
{
	unsigned done = 0, bad = 0;
	struct rd_wc wc;

	for (unsigned i = 0; i < TURNS && done < n; i++) {
		frig_turn();
		for (; saker_cq_poll(cq, &wc, 1) == 1; done++)
			bad += wc.status != RD_SUCCESS;
	}
	cr_assert_eq(done, n, "%u of %u: a QP waits for ever", done, n);
	return bad;
}

static unsigned
complete(unsigned n)
{
	return complete_in(frig.n[0].cq, n);
}

static struct eng_qp *
stage_qp(struct saker_qp *qp)
{
	const struct eng *e = frig.n[0].e;
	struct eng_qp *q;

	q = e->stages[0]->datagram_qps[eng_place_slot(e->places, saker_qp_num(qp))];
	cr_assert(q != NULL && q->rd.qpn == saker_qp_num(qp));
	return q;
}

/* Returns the host connection of node 0 to a host. */
static const struct eng_host *
host_to(const struct sk_addr *remote)
{
	const struct eng_stage *s = frig.n[0].e->stages[0];

	for (uint32_t i = 0; i < s->nqps; i++)
		if (s->qps[i] != NULL && s->qps[i]->host != NULL &&
			sk_addr_eq(&s->qps[i]->host->raddr, remote))
			return s->qps[i]->host;
	return NULL;
}

static void
impatient(struct eng_config *cfg, int node)
{
	cfg->falcon.patience_ns = 50000000;
	cfg->falcon.stack.max_retransmits = 3;
}

/* A host connection ends ROUNDS times before it is open, and once when the peer has left. The
 * client of the idle QPs is charged for none of that. */
Test(engine_falcon_ud_ends, idle_qps_are_not_visited)
{
	struct sk_addr nobody = addr("10.0.0.77");
	const struct eng_client_stage *idle;
	const struct eng_host *host;
	struct saker_ah *ah[2];
	struct saker_qp *busy, *peer;
	struct fnode third;
	uint8_t before;

	frig_start(impatient);
	frig_client(0, "idle", &third);
	for (unsigned i = 0; i < IDLE; i++)
		peer = frig_datagram_qp(&third, QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	idle = stage_qp(peer)->payer;
	busy = frig_datagram_qp(&frig.n[0], QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	frig_datagram_qp(&frig.n[1], QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	ah[0] = frig_ah(0, &nobody);
	ah[1] = frig_ah(0, &frig.n[1].addr);
	frig_turns(100);
	before = idle->useless;
	for (unsigned i = 0; i < ROUNDS; i++) {
		cr_assert(post(busy, ah[0], 10));
		cr_assert_eq(complete(1), 0);
	}
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), ROUNDS);
	cr_assert(post(busy, ah[1], 10));
	cr_assert_eq(complete(1), 0);
	host = host_to(&frig.n[1].addr);
	cr_assert(host->open);
	frig_kill(1);
	for (unsigned i = 0; i < TURNS && host->open; i++)
		frig_turn();
	cr_assert(!host->open);
	frig_turns(100);
	cr_assert_eq(idle->useless, before, "%u visits without work", idle->useless - before);
	frig_client_end(&third);
	frig_stop();
}

Test(engine_falcon_ud_ends, a_full_qp_continues_when_its_host_never_answers)
{
	struct sk_addr nobody = addr("10.0.0.77");
	struct saker_qp *qp;

	frig_start(impatient);
	qp = frig_datagram_qp(&frig.n[0], QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	post_all(qp, frig_ah(0, &nobody), ROF_REQS_MIN + DEPTH, 10);
	cr_assert_eq(complete(ROF_REQS_MIN + DEPTH), 0);
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), ROF_REQS_MIN + DEPTH);
	frig_stop();
}

static void
small_mtu(struct eng_config *cfg, int node)
{
	if (node == 1)
		cfg->falcon.mtu = 512;
}

/* All datagrams that the stage has taken are longer than the MTU of the connection. */
Test(engine_falcon_ud_ends, a_full_qp_continues_when_its_connection_opens_with_a_small_mtu)
{
	struct saker_qp *qp;
	unsigned bad;

	frig_start(small_mtu);
	frig.silent = true;
	frig_datagram_qp(&frig.n[1], QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	qp = frig_datagram_qp(&frig.n[0], QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	post_all(qp, frig_ah(0, &frig.n[1].addr), ROF_REQS_MIN + DEPTH, 1000);
	frig.silent = false;
	bad = complete(ROF_REQS_MIN + DEPTH);
	cr_assert_eq(bad, DEPTH, "%u are refused, those that the stage had not taken", bad);
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), ROF_REQS_MIN);
	frig_stop();
}

/* Each datagram under way has an mbuf. */
static void
many_mbufs(struct eng_config *cfg, int node)
{
	cfg->falcon.patience_ns = 50000000;
	cfg->limits.tx_mbufs = 4096;
}

/* Posts more datagrams than a channel has room for, while the peer answers nothing. Returns the CQ
 * of their completions. */
static struct saker_cq *
fill_channel(void)
{
	struct saker_qp *qp[5];
	struct saker_ah *ah;
	struct fnode n;

	frig_start(many_mbufs);
	n = frig.n[0];
	cr_assert_eq(saker_cq_create(n.s, 5 * LONG, NULL, &n.cq), 0, "%s", saker_error());
	frig_datagram_qp(&frig.n[1], QKEY, DEPTH, SAKER_ORDER_CONFIGURED);
	ah = frig_ah(0, &frig.n[1].addr);
	for (unsigned k = 0; k < 5; k++)
		qp[k] = frig_datagram_qp(&n, QKEY, LONG, SAKER_ORDER_CONFIGURED);
	cr_assert(post(qp[0], ah, 10));
	cr_assert_eq(complete_in(n.cq, 1), 0);
	cr_assert(host_to(&frig.n[1].addr)->open);
	frig.silent = true;
	for (unsigned i = 0; i < 5 * LONG; i++) {
		cr_assert(post(qp[i % 5], ah, 10));
		if (i % 5 == 4)
			frig_turn();
	}
	frig_turns(50);
	cr_assert_not_null(stage_qp(qp[4])->rof->waits_for);
	return n.cq;
}

Test(engine_falcon_ud_ends, qps_that_wait_for_a_full_channel_continue_when_its_connection_ends)
{
	struct saker_cq *cq = fill_channel();

	frig_kill(1);
	frig.silent = false;
	cr_assert_eq(complete_in(cq, 5 * LONG), 0);
	frig_stop();
}

Test(engine_falcon_ud_ends, qps_that_wait_for_a_full_channel_continue_as_it_has_room)
{
	struct saker_cq *cq = fill_channel();

	frig.silent = false;
	cr_assert_eq(complete_in(cq, 5 * LONG), 0);
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_LOST"), 0);
	frig_stop();
}
