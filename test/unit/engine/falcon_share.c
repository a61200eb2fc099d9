/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon's pools among the users of an instance: a client whose peer takes nothing holds requests
 * for as long as it wants, and the requests of another user continue.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "../../../lib/engine/transport/falcon/falcon_priv.h"
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

/* ---- Who pays ---- */

/* Returns the only connection of a node that has packets. */
static const struct eng_falcon_conn *
open_conn(int node)
{
	const struct eng_falcon *f = eng_falcon_of(frig.n[node].e->transports[0]);
	const struct eng_falcon_conn *found = NULL;

	for (uint32_t i = 0; i < f->fresh; i++) {
		if (f->conns[i].fa == NULL)
			continue;
		cr_assert_null(found);
		found = &f->conns[i];
	}
	cr_assert_not_null(found);
	return found;
}

static unsigned
conns_of(int node, uint16_t user)
{
	return frig.n[node].e->transports[0]->conn_share.used[user];
}

static void
await_datagram(struct fnode *n)
{
	struct rd_wc wc;

	for (unsigned i = 0; saker_cq_poll(n->cq, &wc, 1) == 0; i++) {
		frig_turn();
		cr_assert_lt(i, 1000000u);
	}
	cr_assert_eq(wc.status, RD_SUCCESS);
}

static struct saker_qp *
datagram_qp(struct fnode *n)
{
	struct saker_qp_attr attr = {.send_cq = n->cq,
		.recv_cq = n->cq,
		.sq_depth = 16,
		.rq_depth = 16,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = SAKER_FALCON,
		.type = SAKER_UD};
	struct saker_qp_move m = {.state = RD_QP_INIT, .qkey = 1};
	struct saker_qp *qp;

	cr_assert_eq(saker_qp_create(n->pd, &attr, &qp), 0, "%s", saker_error());
	for (; m.state <= RD_QP_RTS; m.state++)
		cr_assert_eq(saker_qp_move(qp, &m), 0, "%s", saker_error());
	return qp;
}

static void
send_datagram(struct fnode *n, struct saker_qp *qp, const struct saker_ah *ah)
{
	struct rd_sge sge = {(uintptr_t)n->mem, 8, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.opcode = RD_SEND,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.ah = ah,
		.remote_qpn = 7,
		.remote_qkey = 1};

	cr_assert_eq(saker_post_send(qp, &wr, 1), 1);
	await_datagram(n);
}

Test(engine_falcon_share, the_client_of_an_address_handle_pays_for_its_datagrams)
{
	const struct eng_falcon_conn *fc;
	struct saker_ah *ah;
	struct fnode other;

	frig_start(NULL);
	frig_client(0, "other", &other);
	cr_assert_eq(saker_ah_create(other.pd, &frig.n[1].addr, &ah), 0, "%s", saker_error());
	datagram_qp(&frig.n[1]);
	send_datagram(&other, datagram_qp(&other), ah);
	fc = open_conn(0);
	cr_assert_neq(fc->out.user, SK_USER_INSTANCE);
	cr_assert_eq(fc->c->user, fc->out.user);
	cr_assert_eq(conns_of(0, fc->out.user), 1);
	cr_assert_eq(open_conn(1)->out.user, SK_USER_INSTANCE, "a peer has requested it");
	frig_client_end(&other);
	frig_stop();
}

static void
move(int node, enum rd_qp_state state)
{
	const struct saker_qp_move m = {.state = state,
		.remote = frig.n[!node].addr,
		.remote_qpn = saker_qp_num(frig.n[!node].qp),
		.timeout = 14,
		.access = RD_ACC_REMOTE_WRITE};

	cr_assert_eq(saker_qp_move(frig.n[node].qp, &m), 0, "%s", saker_error());
}

Test(engine_falcon_share, the_client_of_a_modified_qp_pays_for_a_connection_that_it_accepts)
{
	frig_start(NULL);
	for (int i = 0; i < 2; i++)
		frig_qp(i, SAKER_FALCON);
	for (int i = 0; i < 2; i++) {
		move(i, RD_QP_INIT);
		move(i, RD_QP_RTR);
	}
	move(0, RD_QP_RTS);
	frig_post(0, RD_WRITE, 8, 0);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	for (int i = 0; i < 2; i++) {
		const struct eng_falcon_conn *fc = open_conn(i);

		cr_assert_neq(fc->out.user, SK_USER_INSTANCE, "node %d", i);
		cr_assert_eq(fc->c->user, fc->out.user);
		cr_assert_eq(conns_of(i, fc->out.user), 1);
	}
	frig_stop();
}

#define SILENT 12u /* hosts */

Test(engine_falcon_share, the_user_of_an_exchange_pays_for_its_carrier_until_that_is_ready)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct sk_addr to;
	struct fnode other;
	unsigned before;

	frig_start(NULL);
	frig_connect();
	before = conns_of(0, SK_USER_INSTANCE);
	cr_assert_eq(before, 1, "the carrier, which is ready");
	frig_client(0, "other", &other);
	for (unsigned i = 0; i < SILENT; i++) {
		to = frig.n[1].addr;
		to.b[15] = (uint8_t)(100 + i);
		cr_assert_eq(saker_connect(frig_deep_qp(&other, SAKER_FALCON, 1), NULL, &to,
				     FRIG_PORT, &p),
			0, "%s", saker_error());
	}
	frig_turns(1000);
	cr_assert_eq(conns_of(0, SK_USER_INSTANCE), before);
	cr_assert_eq(conns_of(0, open_conn(0)->out.user), 1);
	cr_assert_eq(frig.n[0].e->transports[0]->conn_share.held, 2 + 2 * SILENT);
	frig_client_end(&other);
	frig_stop();
}

/* A request for which no carrier can be paid fails, and those of other users to the same host do
 * not. */
Test(engine_falcon_share, a_user_without_room_for_a_carrier_fails_no_request_of_another)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct saker_event ev = {0};
	struct eng_transport *t;
	struct fnode other;
	struct saker_qp *qp;
	uint16_t user = 1;
	uint32_t n;

	frig_start(NULL);
	t = frig.n[0].e->transports[0];
	frig_client(0, "other", &other);
	/* The first connection shows the number of the user. */
	qp = frig_deep_qp(&other, SAKER_FALCON, 1);
	connect_to(&other, qp);
	user = open_conn(0)->out.user;
	cr_assert_eq(saker_qp_destroy(qp), 0, "%s", saker_error());
	frig_event(1, SAKER_EV_DISCONNECTED);
	frig_sleep(SK_MAX(2 * t->e->cfg.falcon.control_idle_ns, 1000000000ull));
	cr_assert_eq(t->conn_share.held, 0, "the carrier has ended");
	/* As if other connections of the user held all but one. */
	n = sk_share_room(&t->conn_share, user) - 1;
	cr_assert_eq(sk_share_take(&t->conn_share, user, n), SK_SHARE_OK);
	cr_assert_eq(saker_connect(frig_deep_qp(&other, SAKER_FALCON, 1), NULL, &frig.n[1].addr,
			     FRIG_PORT, &p),
		0, "%s", saker_error());
	connect_to(&frig.n[0], frig_qp(0, SAKER_FALCON));
	for (unsigned i = 0; i < 100000 && ev.type != SAKER_EV_UNREACHABLE; i++) {
		frig_turn();
		saker_event(other.s, &ev);
	}
	cr_assert_eq(ev.type, SAKER_EV_UNREACHABLE);
	cr_assert_eq(ev.status, -ENOBUFS);
	sk_share_give(&t->conn_share, user, n);
	frig_client_end(&other);
	frig_stop();
}

/* A QP that cannot accept tells its peer at once, instead of letting it wait for a minute. */
Test(engine_falcon_share, a_peer_learns_of_an_acceptance_that_its_user_cannot_pay)
{
	struct sk_share *share;
	uint16_t user;

	frig_start(NULL);
	share = &frig.n[1].e->transports[0]->conn_share;
	frig_connect();
	user = open_conn(1)->out.user;
	for (int i = 0; i < 2; i++)
		frig_qp(i, SAKER_FALCON);
	for (int i = 0; i < 2; i++) {
		move(i, RD_QP_INIT);
		move(i, RD_QP_RTR);
	}
	cr_assert_eq(sk_share_take(share, user, sk_share_room(share, user)), SK_SHARE_OK);
	move(0, RD_QP_RTS);
	frig_post(0, RD_WRITE, 8, 0);
	frig_turns(5000);
	cr_assert_gt(frig_count(1, "eng", "ENG_CONN_SHARE"), 0);
	cr_assert_gt(frig_count(0, "rofx", "ROFX_NO_RESOURCE"), 0);
	sk_share_give(share, user, share->used[user] - 1);
	frig_stop();
}
