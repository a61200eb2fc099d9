/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon's pools among the users of an instance: a client whose peer takes nothing holds requests
 * for as long as it wants, and the requests of another user continue.
 */
#include <criterion/criterion.h>

#include "falcon_rig.h"

TestSuite(engine_falcon_share, .init = pair_eal);

#define POOL  64u  /* requests of the transport stage */
#define DEPTH 200u /* of the client that fills the pool */

static void
small_pool(struct eng_config *cfg, int node)
{
	struct fa_pools *p = &cfg->falcon.stack.pools;

	p->tx_pkt_req = p->rx_pkt_ulp = POOL;
	p->tx_buf_req = POOL * 64;
	p->rx_buf_ulp = POOL * 8;
}

static void
connect_to(struct fnode *from, struct saker_qp *qp)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct saker_listener *l = frig_listen(1);
	struct saker_event ev = {0};

	cr_assert_eq(
		saker_connect(qp, NULL, &frig.n[1].addr, FRIG_PORT, &p), 0, "%s", saker_error());
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(saker_accept(frig.n[1].s, ev.request, frig_qp(1, SAKER_FALCON), &p), 0, "%s",
		saker_error());
	frig_event(1, SAKER_EV_ESTABLISHED);
	for (unsigned i = 0; i < 100000 && ev.type != SAKER_EV_ESTABLISHED; i++) {
		frig_turn();
		saker_event(from->s, &ev);
	}
	cr_assert_eq(ev.type, SAKER_EV_ESTABLISHED);
	cr_assert_eq(saker_unlisten(l), 0, "%s", saker_error());
}

/* Posts a signaled request of 8 bytes. */
static void
post(struct fnode *n, struct saker_qp *qp, uint8_t opcode)
{
	struct rd_sge sge = {(uintptr_t)n->mem, 8, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.opcode = opcode,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = (uintptr_t)frig.n[1].mem,
		.rkey = saker_mr_stag(frig.n[1].mr)};

	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
}

Test(engine_falcon_share, sends_that_the_peer_is_not_ready_for_stop_no_other_user)
{
	struct fnode other;
	struct saker_qp *greedy, *honest;
	struct rd_wc wc;

	frig_start(small_pool);
	frig_client(0, "other", &other);
	greedy = frig_deep_qp(&frig.n[0], SAKER_FALCON, DEPTH);
	honest = frig_deep_qp(&other, SAKER_FALCON, DEPTH);
	connect_to(&frig.n[0], greedy);
	connect_to(&other, honest);
	for (unsigned i = 0; i < DEPTH; i++)
		post(&frig.n[0], greedy, RD_SEND); /* the peer has posted no receive */
	frig_turns(5000);
	cr_assert_gt(frig_count(0, "fa", "FA_POOL_EMPTY"), 0, "the user has its share");
	for (unsigned i = 0; i < 20; i++) {
		unsigned turns = 0;

		post(&other, honest, i % 2 ? RD_READ : RD_WRITE);
		while (saker_cq_poll(other.cq, &wc, 1) == 0) {
			frig_turn();
			cr_assert_lt(++turns, 2000u, "request %u of the other user waits", i);
		}
		cr_assert_eq(wc.status, RD_SUCCESS);
	}
	frig_client_end(&other);
	frig_stop();
}
