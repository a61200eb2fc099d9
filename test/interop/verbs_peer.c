/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange on ordinary libibverbs and librdmacm, for Linux's soft-iWARP: `verbs_peer listen
 * ADDR PORT` or `verbs_peer connect ADDR PORT`, either with `quick` behind it.
 */
#include <infiniband/verbs.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"

#define WAIT_MS 60000 /* a generous bound: reached only when something is broken */

struct peer {
	struct ex_peer ex;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *window;
	bool connected_first;
};

static int
fail(const char *what)
{
	perror(what);
	return -1;
}

static int
post_recv(struct ex_peer *ex, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct peer *p = ex->priv;
	struct ibv_sge sge = {(uintptr_t)ex->buf + off, len, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(p->id->qp, &wr, &bad) ? fail("ibv_post_recv") : 0;
}

static int
post(struct ex_peer *ex, uint64_t wr_id, enum ex_op op, uint32_t off, uint32_t len, uint64_t remote,
	uint32_t rkey, uint32_t inv)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[EX_SEND] = IBV_WR_SEND,
		[EX_SEND_SE] = IBV_WR_SEND,
		[EX_SEND_INV] = IBV_WR_SEND_WITH_INV,
		[EX_SEND_SE_INV] = IBV_WR_SEND_WITH_INV,
		[EX_WRITE] = IBV_WR_RDMA_WRITE,
		[EX_READ] = IBV_WR_RDMA_READ,
	};
	struct peer *p = ex->priv;
	struct ibv_sge sge = {(uintptr_t)ex->buf + off, len, p->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcodes[op],
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (op == EX_SEND_SE || op == EX_SEND_SE_INV)
		wr.send_flags |= IBV_SEND_SOLICITED;
	if (op == EX_WRITE || op == EX_READ) {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	} else {
		wr.invalidate_rkey = inv;
		wr.wr.rdma.rkey = inv; /* where rdma-core's siw provider looks for it */
	}
	return ibv_post_send(p->id->qp, &wr, &bad) ? fail("ibv_post_send") : 0;
}

/* Sleeps on the channel until an event of the CQ has come. */
static int
sleep_on_channel(struct peer *p)
{
	struct pollfd fd = {.fd = p->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, WAIT_MS) != 1) {
		printf("no completion event came\n");
		return -1;
	}
	if (ibv_get_cq_event(p->channel, &cq, &context))
		return fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* siw raises no event on a solicited-only arm when a receive completes (it looks at the wrong
 * flags), so this side always arms for any completion. */
static int
wait_done(struct ex_peer *ex, struct ex_done *done, bool solicited)
{
	struct peer *p = ex->priv;
	struct ibv_wc wc;
	int n;

	(void)solicited;
	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 0) {
		if (ibv_req_notify_cq(p->cq, 0))
			return fail("ibv_req_notify_cq");
		n = ibv_poll_cq(p->cq, 1, &wc);
		if (n)
			break;
		if (sleep_on_channel(p))
			return -1;
	}
	if (n < 0)
		return fail("ibv_poll_cq");
	done->wr_id = wc.wr_id;
	done->ok = wc.status == IBV_WC_SUCCESS;
	done->status = ibv_wc_status_str(wc.status);
	done->recv = wc.opcode & IBV_WC_RECV;
	done->len = wc.byte_len;
	/* rdma-core's siw provider does not pass on which STag was invalidated. */
	done->invalidated = wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : EX_UNTOLD;
	return 0;
}

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int
window(struct ex_peer *ex, uint32_t *stag)
{
	struct peer *p = ex->priv;

	p->window = ibv_reg_mr(p->id->pd, ex->buf, EX_DATA_LEN, ACCESS);
	if (!p->window)
		return fail("ibv_reg_mr");
	*stag = p->window->rkey;
	return 0;
}

static void
window_end(struct ex_peer *ex)
{
	struct peer *p = ex->priv;

	ibv_dereg_mr(p->window);
}

static const struct ex_verbs verbs = {post_recv, post, wait_done, window, window_end};

static int
make_qp(struct peer *p)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	p->channel = ibv_create_comp_channel(p->id->verbs);
	p->cq = p->channel ? ibv_create_cq(p->id->verbs, 256, NULL, p->channel, 0) : NULL;
	if (!p->cq)
		return fail("ibv_create_cq");
	attr.send_cq = attr.recv_cq = p->cq;
	if (rdma_create_qp(p->id, NULL, &attr))
		return fail("rdma_create_qp");
	p->ex.buf = aligned_alloc(4096, EX_BUF_LEN);
	p->mr = ibv_reg_mr(p->id->pd, p->ex.buf, EX_BUF_LEN, ACCESS);
	if (!p->mr)
		return fail("ibv_reg_mr");
	p->ex.stag = p->mr->rkey;
	p->ex.verbs = &verbs;
	p->ex.priv = p;
	return exchange_prepare(&p->ex);
}

/* The next event, which must be `want`. */
static int
expect(struct peer *p, enum rdma_cm_event_type want, struct rdma_cm_id **id)
{
	struct rdma_cm_event *ev;
	int ok;

	if (rdma_get_cm_event(p->events, &ev))
		return fail("rdma_get_cm_event");
	ok = ev->event == want;
	if (!ok)
		printf("event %s (status %d), not %s\n", rdma_event_str(ev->event), ev->status,
			rdma_event_str(want));
	if (id)
		*id = ev->id;
	rdma_ack_cm_event(ev);
	return ok ? 0 : -1;
}

static int
do_connect(struct peer *p, struct sockaddr *to, struct rdma_conn_param *param)
{
	if (rdma_create_id(p->events, &p->id, NULL, RDMA_PS_TCP) ||
		rdma_resolve_addr(p->id, NULL, to, 5000) ||
		expect(p, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) || rdma_resolve_route(p->id, 5000) ||
		expect(p, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL))
		return fail("resolving");
	if (make_qp(p))
		return -1;
	if (rdma_connect(p->id, param))
		return fail("rdma_connect");
	return expect(p, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

static int
do_accept(struct peer *p, struct sockaddr *at, struct rdma_conn_param *param)
{
	if (rdma_create_id(p->events, &p->listener, NULL, RDMA_PS_TCP) ||
		rdma_bind_addr(p->listener, at) || rdma_listen(p->listener, 4))
		return fail("listening");
	printf("listening\n");
	fflush(stdout);
	if (expect(p, RDMA_CM_EVENT_CONNECT_REQUEST, &p->id) || make_qp(p))
		return -1;
	if (rdma_accept(p->id, param))
		return fail("rdma_accept");
	return expect(p, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

int
main(int argc, char **argv)
{
	struct rdma_conn_param param = {.responder_resources = 8, .initiator_depth = 8};
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *ai;
	struct peer p = {0};
	int rc;

	if (argc < 4 || getaddrinfo(argv[2], argv[3], &hints, &ai)) {
		fprintf(stderr, "usage: verbs_peer listen|connect ADDR PORT [quick]\n");
		return 2;
	}
	p.connected_first = strcmp(argv[1], "connect") == 0;
	p.events = rdma_create_event_channel();
	if (!p.events)
		return fail("rdma_create_event_channel"), 1;
	rc = p.connected_first ? do_connect(&p, ai->ai_addr, &param)
			       : do_accept(&p, ai->ai_addr, &param);
	if (rc == 0)
		rc = exchange(&p.ex, p.connected_first, argc > 4 && strcmp(argv[4], "quick") == 0);
	if (rc == 0 && p.connected_first)
		rdma_disconnect(p.id);
	if (rc == 0)
		rc = expect(&p, RDMA_CM_EVENT_DISCONNECTED, NULL);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
