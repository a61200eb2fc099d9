/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of several stages: each protection domain has its datagram QPs on one engine stage, and
 * sends over that stage's host connections. A datagram reaches its QP on whichever stage it is.
 */
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/engine/stage/stage_priv.h"
#include "falcon_rig.h"

TestSuite(engine_falcon_ud_stages, .init = pair_eal_large);

#define LOOPS 4u
#define QKEY  0x1234u
#define GRH   40u
#define LEN   500u
#define PLACE 1024u /* bytes of the memory for a QP to send from, or to receive into */
#define TURNS 10000000u

/* The datagram side of a protection domain. */
struct domain {
	struct saker_pd *pd;
	struct saker_mr *mr;
	struct saker_qp *qp;
	struct saker_ah *ah; /* to the other node */
};

static struct domain domain[2][LOOPS];

static void
make_qp(int node, struct domain *d, struct saker_srq *srq)
{
	struct saker_qp_move m = {.state = RD_QP_INIT, .qkey = QKEY};
	struct saker_qp_attr attr = {.send_cq = frig.n[node].cq,
		.recv_cq = frig.n[node].cq,
		.srq = srq,
		.sq_depth = 256,
		.rq_depth = 128,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_FALCON,
		.type = SAKER_UD};

	cr_assert_eq(saker_qp_create(d->pd, &attr, &d->qp), 0, "%s", saker_error());
	for (m.state = RD_QP_INIT; m.state <= RD_QP_RTS; m.state++)
		cr_assert_eq(saker_qp_move(d->qp, &m), 0, "%s", saker_error());
}

static unsigned
stage_of(const struct domain *d)
{
	struct saker_qp_info info;

	cr_assert_eq(saker_qp_query(d->qp, &info), 0, "%s", saker_error());
	return info.stage;
}

static void
make_domain(int node, struct domain *d)
{
	struct fnode *n = &frig.n[node];

	cr_assert_eq(saker_pd_create(n->s, &d->pd), 0, "%s", saker_error());
	cr_assert_eq(saker_mr_create(d->pd, n->mem, FRIG_MEM, RD_ACC_LOCAL_WRITE, &d->mr), 0);
	make_qp(node, d, NULL);
	cr_assert_eq(saker_ah_create(d->pd, &frig.n[!node].addr, &d->ah), 0, "%s", saker_error());
}

/* Starts the rig, with a domain on each engine stage of both nodes. */
static void
start_domains(void (*tweak)(struct eng_config *cfg, int node))
{
	frig_start_rss(LOOPS, tweak);
	for (int i = 0; i < 2; i++) {
		unsigned stages = frig.p.cfg[i].nstages;

		for (unsigned k = 0; k < LOOPS; k++) {
			make_domain(i, &domain[i][k]);
			cr_assert_eq(stage_of(&domain[i][k]), k % stages);
		}
	}
}

static void
send_one(int from, unsigned k, unsigned j, uint8_t fill)
{
	struct fnode *n = &frig.n[from];
	struct domain *d = &domain[from][k];
	struct rd_sge sge = {(uintptr_t)n->mem + k * PLACE, LEN, saker_mr_stag(d->mr)};
	struct saker_wr wr = {.wr_id = k,
		.opcode = RD_SEND,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.ah = d->ah,
		.remote_qpn = saker_qp_num(domain[!from][j].qp),
		.remote_qkey = QKEY};

	memset(n->mem + k * PLACE, fill, LEN);
	cr_assert_eq(saker_post_send(d->qp, &wr, 1), 1);
}

static uint8_t *
receive_one(int node, unsigned j)
{
	struct fnode *n = &frig.n[node];
	struct domain *d = &domain[node][j];
	uint8_t *at = n->mem + (LOOPS + j) * PLACE;
	struct rd_sge sge = {(uintptr_t)at, PLACE, saker_mr_stag(d->mr)};
	struct saker_wr wr = {.wr_id = 100 + j, .nsge = 1, .sge = &sge};

	memset(at, 0, PLACE);
	cr_assert_eq(saker_post_recv(d->qp, &wr, 1), 1);
	return at;
}

/* Sends a datagram from domain `k` of a node to domain `j` of the other one. */
static void
exchange(int from, unsigned k, unsigned j)
{
	const uint8_t *at = receive_one(!from, j);
	uint8_t fill = (uint8_t)(1 + 16 * k + j + 128 * from);
	struct rd_wc wc;

	send_one(from, k, j, fill);
	wc = frig_wc(!from);
	cr_assert_eq(wc.status, RD_SUCCESS);
	cr_assert_eq(wc.wr_id, 100 + j);
	cr_assert_eq(wc.qpn, saker_qp_num(domain[!from][j].qp));
	cr_assert_eq(wc.src_qp, saker_qp_num(domain[from][k].qp));
	cr_assert_eq(wc.byte_len, GRH + LEN);
	for (unsigned i = 0; i < LEN; i++)
		cr_assert_eq(at[GRH + i], fill, "byte %u", i);
	cr_assert_eq(at[GRH + LEN], 0);
	cr_assert_arr_eq(at + 32, frig.n[from].addr.b + 12, 4, "from");
	cr_assert_arr_eq(at + 36, frig.n[!from].addr.b + 12, 4, "to");
	wc = frig_wc(from);
	cr_assert_eq(wc.status, RD_SUCCESS);
	cr_assert_eq(wc.wr_id, k);
}

static void
exchange_all(void)
{
	for (unsigned k = 0; k < LOOPS; k++) {
		for (unsigned j = 0; j < LOOPS; j++) {
			exchange(0, k, j);
			exchange(1, k, j);
		}
	}
}

Test(engine_falcon_ud_stages, every_qp_reaches_every_qp)
{
	start_domains(NULL);
	exchange_all();
	for (int i = 0; i < 2; i++) {
		/* One that is sent by the stage with the number of the QP's stage arrives there. */
		cr_assert_eq(frig_count(i, "eng", "ENG_DATAGRAM"), LOOPS * (LOOPS - 1));
		cr_assert_eq(frig_count(i, "eng", "ENG_DATAGRAM_FULL"), 0);
		cr_assert_eq(frig_count(i, "rof", "ROF_UD_NO_QP"), 0);
		for (unsigned s = 0; s < LOOPS; s++)
			cr_assert_gt(frig.n[i].e->stages[s]->nlinked, 0, "stage %u", s);
	}
	frig_stop();
}

static void
fewer_at_node_1(struct eng_config *cfg, int node)
{
	if (node == 1)
		cfg->nstages = 2;
}

Test(engine_falcon_ud_stages, the_hosts_may_have_different_numbers_of_stages)
{
	start_domains(fewer_at_node_1);
	exchange_all();
	cr_assert_eq(frig_count(0, "rof", "ROF_UD_NO_QP"), 0);
	cr_assert_eq(frig_count(1, "rof", "ROF_UD_NO_QP"), 0);
	cr_assert_gt(frig_count(0, "eng", "ENG_DATAGRAM"), 0);
	cr_assert_gt(frig_count(1, "eng", "ENG_DATAGRAM"), 0);
	frig_stop();
}

static void
await(int node, const char *layer, const char *name, uint64_t n)
{
	for (unsigned i = 0; i < TURNS && frig_count(node, layer, name) < n; i++)
		frig_turn();
	cr_assert_eq(frig_count(node, layer, name), n, "%s", name);
}

Test(engine_falcon_ud_stages, a_datagram_for_a_qp_that_is_gone_is_dropped_where_it_arrives)
{
	uint32_t was;
	struct domain *d = &domain[1][2];

	start_domains(NULL);
	exchange(0, 0, 2);
	was = saker_qp_num(d->qp);
	send_one(0, 0, 2, 7); /* in flight while its QP is destroyed */
	cr_assert_eq(saker_qp_destroy(d->qp), 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	await(1, "rof", "ROF_UD_NO_QP", frig_count(1, "rof", "ROF_UD_NO_RECEIVE") == 0);
	make_qp(1, d, NULL);
	cr_assert_neq(saker_qp_num(d->qp), was);
	cr_assert_eq(stage_of(d), 2, "the stage of its protection domain");
	exchange(0, 0, 2);
	frig_stop();
}

Test(engine_falcon_ud_stages, a_stage_that_does_not_run_loses_what_its_ring_cannot_hold)
{
	/* A quarter of the receive mbufs, less one, as an rte_ring holds. */
	const unsigned all = 300, held = 512 / 4 - 1;

	start_domains(NULL);
	exchange(0, 0, 3);
	frig.loop_idle = 1u << 3;
	for (unsigned i = 0; i < all; i++) {
		send_one(0, 0, 3, 7);
		cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	}
	await(1, "eng", "ENG_DATAGRAM", 1 + held);
	await(1, "eng", "ENG_DATAGRAM_FULL", all - held);
	frig.loop_idle = 0;
	await(1, "rof", "ROF_UD_NO_RECEIVE", held);
	exchange(0, 0, 3);
	frig_stop();
}

Test(engine_falcon_ud_stages, a_shared_receive_queue_has_the_stage_of_its_domains_datagrams)
{
	struct saker_srq *srq;
	struct domain more;

	start_domains(NULL);
	for (unsigned k = 0; k < LOOPS; k++) {
		more = domain[0][k];
		cr_assert_eq(saker_srq_create(more.pd, 16, 1, &srq), 0, "%s", saker_error());
		make_qp(0, &more, srq);
		cr_assert_eq(stage_of(&more), k);
		cr_assert_eq(saker_qp_destroy(more.qp), 0);
		cr_assert_eq(saker_srq_destroy(srq), 0);
	}
	frig_stop();
}
