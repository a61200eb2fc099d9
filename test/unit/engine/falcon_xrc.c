/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC through running engines: the connection of one client fills the receive queues of another,
 * with the memory and into the CQ of that client. A client outside the XRC domain has no access.
 * Node 0 sends; the engine of node 1 has a second client of the same tenant.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "falcon_rig.h"

TestSuite(engine_falcon_xrc, .init = pair_eal);

#define DEV   77
#define INO   1234
#define DEPTH 8

/* The second client of node 1. */
static struct fnode third;

static struct saker_xrcd *
domain(struct saker *s, uint64_t ino, bool create)
{
	struct saker_xrcd *x;

	cr_assert_eq(saker_xrcd_open(s, DEV, ino, create, false, &x), 0, "%s", saker_error());
	return x;
}

static struct saker_srq *
queue(struct fnode *n, struct saker_xrcd *x)
{
	struct saker_srq_attr attr = {.depth = DEPTH, .max_sge = 1, .xrcd = x, .cq = n->cq};
	struct saker_srq *srq;

	cr_assert_eq(saker_srq_create_as(n->pd, &attr, &srq), 0, "%s", saker_error());
	cr_assert_neq(saker_srq_num(srq), 0);
	return srq;
}

static struct saker_qp *
typed(struct fnode *n, enum saker_qp_type type, struct saker_xrcd *x)
{
	struct saker_qp_attr attr = {.send_cq = type == SAKER_XRC_SEND ? n->cq : NULL,
		.sq_depth = FRIG_DEPTH,
		.max_send_sge = 2,
		.transport = SAKER_FALCON,
		.type = (uint8_t)type,
		.xrcd = x};

	cr_assert_eq(saker_qp_create(n->pd, &attr, &n->qp), 0, "%s", saker_error());
	return n->qp;
}

/* Connects the send QP of node 0 to the receive QP of node 1 in `x`. */
static void
connect_xrc(struct saker_xrcd *x)
{
	struct saker_conn_param p = {.ird = 4, .ord = 4};
	struct saker_listener *l = frig_listen(1);
	struct saker_event ev;

	typed(&frig.n[0], SAKER_XRC_SEND, NULL);
	typed(&frig.n[1], SAKER_XRC_RECV, x);
	frig_ask(&p);
	ev = frig_event(1, SAKER_EV_CONNECT_REQUEST);
	cr_assert_eq(ev.cm.type, SAKER_XRC_RECV);
	cr_assert_eq(
		saker_accept(frig.n[1].s, ev.request, frig.n[1].qp, &p), 0, "%s", saker_error());
	frig_event(1, SAKER_EV_ESTABLISHED);
	frig_event(0, SAKER_EV_ESTABLISHED);
	cr_assert_eq(saker_unlisten(l), 0, "%s", saker_error());
}

static void
receive(struct fnode *n, struct saker_srq *srq, uint64_t id, uint32_t off, uint32_t len)
{
	struct rd_sge sge = {(uintptr_t)n->mem + off, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = id, .nsge = 1, .sge = &sge};

	cr_assert_eq(saker_post_srq(srq, &wr, 1), 1);
}

static void
request(uint8_t opcode, uint32_t srqn, uint32_t len, const struct fnode *target)
{
	struct fnode *n = &frig.n[0];
	struct rd_sge sge = {(uintptr_t)n->mem, len, saker_mr_stag(n->mr)};
	struct saker_wr wr = {.wr_id = opcode,
		.opcode = opcode,
		.flags = RD_SIGNALED,
		.nsge = 1,
		.sge = &sge,
		.remote_srqn = srqn,
		.remote_addr = (uintptr_t)target->mem + 1000,
		.rkey = saker_mr_stag(target->mr)};

	cr_assert_eq(saker_post_send(n->qp, &wr, 1), 1);
}

static struct rd_wc
wc_of(struct fnode *n)
{
	struct rd_wc wc = {0};

	for (unsigned i = 0; i < 10000000; i++) {
		frig_turn();
		if (saker_cq_poll(n->cq, &wc, 1) == 1)
			return wc;
	}
	cr_assert_fail("no completion came");
	return wc;
}

static void
start(void)
{
	frig_start(NULL);
	frig_client(1, "test", &third);
	for (unsigned i = 0; i < FRIG_MEM; i++)
		frig.n[0].mem[i] = (uint8_t)(i * 11 + (i >> 8));
}

static void
stop(void)
{
	frig_client_end(&third);
	frig_stop();
}

Test(engine_falcon_xrc, one_connection_fills_the_queues_of_two_clients_rof_6_6_2)
{
	struct saker_xrcd *x, *y;
	struct saker_srq *a, *b;
	struct rd_wc wc;

	start();
	x = domain(frig.n[1].s, INO, true);
	y = domain(third.s, INO, false);
	a = queue(&frig.n[1], x);
	b = queue(&third, y);
	connect_xrc(x);
	receive(&frig.n[1], a, 1, 0, 10000);
	receive(&third, b, 2, 0, 10000);
	request(RD_SEND, saker_srq_num(b), 9000, &third);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	wc = wc_of(&third);
	cr_assert_eq(wc.wr_id, 2);
	cr_assert_eq(wc.status, RD_SUCCESS);
	cr_assert_eq(wc.byte_len, 9000);
	cr_assert_eq(wc.qpn, saker_qp_num(frig.n[1].qp));
	cr_assert_arr_eq(third.mem, frig.n[0].mem, 9000);
	cr_assert_eq(third.mem[9000], 0);
	request(RD_SEND, saker_srq_num(a), 10, &third);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	wc = frig_wc(1);
	cr_assert_eq(wc.wr_id, 1);
	cr_assert_eq(saker_cq_poll(third.cq, &wc, 1), 0);
	stop();
}

Test(engine_falcon_xrc, a_request_uses_the_memory_of_the_queue_that_it_names_rof_8_3_9)
{
	struct saker_srq *a, *b;
	struct saker_xrcd *x;

	start();
	x = domain(frig.n[1].s, INO, true);
	a = queue(&frig.n[1], x);
	b = queue(&third, domain(third.s, INO, false));
	connect_xrc(x);
	request(RD_WRITE, saker_srq_num(b), 5000, &third);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	cr_assert_arr_eq(third.mem + 1000, frig.n[0].mem, 5000);
	request(RD_WRITE, saker_srq_num(a), 100, &frig.n[1]);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	memset(frig.n[0].mem, 0, 6000);
	request(RD_READ, saker_srq_num(b), 5000, &third);
	cr_assert_eq(frig_wc(0).status, RD_SUCCESS);
	cr_assert_arr_eq(frig.n[0].mem, third.mem + 1000, 5000);
	/* The request combines the key of one client's memory with the queue of the other. */
	memset(third.mem, 0, 6000);
	request(RD_WRITE, saker_srq_num(a), 100, &third);
	cr_assert_eq(frig_wc(0).status, RD_REM_ACCESS_ERR);
	cr_assert_eq(third.mem[1000], 0);
	cr_assert_eq(frig_count(1, "rof", "ROF_STAG_PD"), 1);
	frig_event(1, SAKER_EV_QP_FATAL);
	stop();
}

Test(engine_falcon_xrc, a_queue_of_another_domain_is_none_rof_8_3_9)
{
	struct saker_xrcd *x;
	struct saker_srq *b;

	start();
	x = domain(frig.n[1].s, INO, true);
	b = queue(&third, domain(third.s, INO + 1, true));
	connect_xrc(x);
	receive(&third, b, 2, 0, 1000);
	request(RD_SEND, saker_srq_num(b), 100, &third);
	cr_assert_eq(frig_wc(0).status, RD_REM_INV_REQ_ERR);
	cr_assert_eq(third.mem[0], 0);
	cr_assert_eq(frig_count(1, "rof", "ROF_XRC_SRQ"), 1);
	frig_event(1, SAKER_EV_QP_FATAL);
	stop();
}

Test(engine_falcon_xrc, writes_too_need_a_queue_of_the_domain_rof_8_3_9)
{
	start();
	connect_xrc(domain(frig.n[1].s, INO, true));
	request(RD_WRITE, 0x1234, 100, &frig.n[1]);
	cr_assert_eq(frig_wc(0).status, RD_REM_INV_REQ_ERR);
	cr_assert_eq(frig.n[1].mem[1000], 0);
	frig_event(1, SAKER_EV_QP_FATAL);
	stop();
}

Test(engine_falcon_xrc, clients_of_another_tenant_are_not_met)
{
	struct saker_xrcd *x, *y;
	struct fnode other;

	start();
	frig_client(1, "stranger", &other);
	x = domain(frig.n[1].s, INO, true);
	cr_assert_eq(saker_xrcd_open(other.s, DEV, INO, false, false, &y), -ENOENT);
	cr_assert_eq(saker_xrcd_open(third.s, DEV, INO, true, true, &y), -EEXIST);
	y = domain(other.s, INO, true);
	typed(&frig.n[1], SAKER_XRC_RECV, x);
	cr_assert_eq(saker_qp_open(y, saker_qp_num(frig.n[1].qp), &other.qp), -ENOENT);
	cr_assert_eq(saker_xrcd_close(x), -EBUSY);
	cr_assert_eq(saker_qp_destroy(frig.n[1].qp), 0);
	cr_assert_eq(saker_xrcd_close(x), 0, "%s", saker_error());
	cr_assert_eq(saker_xrcd_open(frig.n[1].s, DEV, INO, false, false, &x), -ENOENT,
		"the last one takes it away");
	frig_client_end(&other);
	stop();
}

Test(engine_falcon_xrc, a_queue_outlives_the_client_whose_qp_fills_it)
{
	struct saker_xrcd *x, *y;
	struct saker_event ev;
	struct saker_srq *b;
	struct rd_wc wc;

	start();
	x = domain(frig.n[1].s, INO, true);
	y = domain(third.s, INO, false);
	b = queue(&third, y);
	connect_xrc(x);
	cr_assert_eq(
		saker_qp_open(y, saker_qp_num(frig.n[1].qp), &third.qp), 0, "%s", saker_error());
	receive(&third, b, 5, 0, 1000);
	frig_kill(1);
	frig_event(0, SAKER_EV_DISCONNECTED);
	cr_assert_eq(saker_event(third.s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_QP_FATAL);
	cr_assert_eq(ev.qp, third.qp);
	cr_assert_eq(saker_cq_poll(third.cq, &wc, 1), 0, "the receive is still there");
	cr_assert_eq(saker_qp_destroy(third.qp), 0, "%s", saker_error());
	stop();
}

Test(engine_falcon_xrc, messages_for_a_client_that_died_fail_the_others_stay_whole)
{
	struct saker_xrcd *x;
	struct saker_srq *b;

	start();
	x = domain(frig.n[1].s, INO, true);
	b = queue(&third, domain(third.s, INO, false));
	connect_xrc(x);
	receive(&third, b, 2, 0, 1000);
	frig_client_kill(&third);
	request(RD_SEND, saker_srq_num(b), 100, &frig.n[1]);
	cr_assert_eq(frig_wc(0).status, RD_REM_INV_REQ_ERR);
	cr_assert_eq(frig_count(1, "rof", "ROF_XRC_SRQ"), 1);
	frig_event(1, SAKER_EV_QP_FATAL);
	stop();
}

Test(engine_falcon_xrc, what_a_type_does_not_have_is_refused)
{
	struct saker_qp_attr attr = {.transport = SAKER_FALCON, .sq_depth = 4, .max_send_sge = 1};
	struct saker_xrcd *x;
	struct saker_srq *srq;
	struct saker_qp *qp;
	struct saker_wr wr = {.opcode = RD_WRITE};

	start();
	x = domain(frig.n[1].s, INO, true);
	srq = queue(&frig.n[1], x);
	attr.type = SAKER_XRC_RECV;
	cr_assert_eq(saker_qp_create(frig.n[1].pd, &attr, &qp), -EINVAL, "without a domain");
	attr.type = SAKER_XRC_SEND;
	attr.send_cq = frig.n[1].cq;
	attr.srq = srq;
	cr_assert_eq(saker_qp_create(frig.n[1].pd, &attr, &qp), -EINVAL, "with receives");
	attr.type = SAKER_RC;
	attr.recv_cq = attr.send_cq;
	attr.srq = srq;
	cr_assert_eq(saker_qp_create(frig.n[1].pd, &attr, &qp), -EINVAL, "XRC's queue");
	attr.type = 9;
	attr.srq = NULL;
	cr_assert_eq(saker_qp_create(frig.n[1].pd, &attr, &qp), -EOPNOTSUPP);
	attr.type = SAKER_XRC_SEND;
	attr.transport = SAKER_IWARP;
	cr_assert_eq(saker_qp_create(frig.n[1].pd, &attr, &qp), -EOPNOTSUPP);
	typed(&frig.n[1], SAKER_XRC_RECV, x);
	cr_assert_eq(saker_post_send(frig.n[1].qp, &wr, 1), -EINVAL);
	cr_assert_eq(saker_post_recv(frig.n[1].qp, &wr, 1), -EINVAL);
	stop();
}

/* ---- The limit of a shared receive queue ---- */

static bool
limit_came(struct fnode *n, struct saker_srq *srq)
{
	struct saker_event ev;

	frig_turns(2000);
	if (saker_event(n->s, &ev) == 0)
		return false;
	cr_assert_eq(ev.type, SAKER_EV_SRQ_LIMIT);
	cr_assert_eq(ev.srq, srq);
	return true;
}

Test(engine_falcon_xrc, a_receive_queue_reports_once_that_it_is_below_its_limit)
{
	struct saker_xrcd *x;
	struct saker_srq *a;

	start();
	x = domain(frig.n[1].s, INO, true);
	a = queue(&frig.n[1], x);
	connect_xrc(x);
	for (unsigned i = 0; i < 4; i++)
		receive(&frig.n[1], a, i, 0, 1000);
	cr_assert_eq(saker_srq_set_limit(a, 3), 0, "%s", saker_error());
	cr_assert_not(limit_came(&frig.n[1], a), "four are not below three");
	request(RD_SEND, saker_srq_num(a), 10, &frig.n[1]);
	frig_wc(1);
	cr_assert_not(limit_came(&frig.n[1], a), "nor are three");
	request(RD_SEND, saker_srq_num(a), 10, &frig.n[1]);
	frig_wc(1);
	cr_assert(limit_came(&frig.n[1], a), "two are");
	request(RD_SEND, saker_srq_num(a), 10, &frig.n[1]);
	frig_wc(1);
	cr_assert_not(limit_came(&frig.n[1], a), "it is disarmed");
	cr_assert_eq(saker_srq_set_limit(a, 2), 0);
	cr_assert(limit_came(&frig.n[1], a), "it is below already");
	cr_assert_eq(saker_srq_set_limit(a, DEPTH + 1), -EINVAL);
	cr_assert_eq(saker_srq_set_limit(a, 0), 0);
	cr_assert_not(limit_came(&frig.n[1], a));
	stop();
}
