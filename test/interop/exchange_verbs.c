/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange's functions on plain libibverbs and librdmacm. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange_verbs.h"

#define WAIT_MS 60000 /* generous; reached only when something is broken */

int
ex_rdma_fail(const char *what)
{
	perror(what);
	return -1;
}

static int
post_recv(struct ex_peer *ex, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct ex_rdma *p = ex->priv;
	struct ibv_sge sge = {(uintptr_t)ex->buf + off, len, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(p->id->qp, &wr, &bad) ? ex_rdma_fail("ibv_post_recv") : 0;
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
	struct ex_rdma *p = ex->priv;
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
		wr.wr.rdma.rkey = inv; /* rdma-core's siw provider reads the STag from this field */
	}
	return ibv_post_send(p->id->qp, &wr, &bad) ? ex_rdma_fail("ibv_post_send") : 0;
}

/* Sleeps on the channel until an event of the CQ arrives. */
static int
sleep_on_channel(struct ex_rdma *p)
{
	struct pollfd fd = {.fd = p->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, WAIT_MS) != 1) {
		printf("no completion event came\n");
		return -1;
	}
	if (ibv_get_cq_event(p->channel, &cq, &context))
		return ex_rdma_fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* siw raises no event for a receive when the CQ is armed for solicited completions only (it tests
 * the wrong flags), so this side always arms for any completion. */
static int
wait_done(struct ex_peer *ex, struct ex_done *done, bool solicited)
{
	struct ex_rdma *p = ex->priv;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 0) {
		if (ibv_req_notify_cq(p->cq, 0))
			return ex_rdma_fail("ibv_req_notify_cq");
		n = ibv_poll_cq(p->cq, 1, &wc);
		if (n)
			break;
		if (sleep_on_channel(p))
			return -1;
	}
	if (n < 0)
		return ex_rdma_fail("ibv_poll_cq");
	done->wr_id = wc.wr_id;
	done->ok = wc.status == IBV_WC_SUCCESS;
	done->status = ibv_wc_status_str(wc.status);
	done->recv = wc.opcode & IBV_WC_RECV;
	done->len = wc.byte_len;
	/* rdma-core's siw provider does not report which STag was invalidated. */
	done->invalidated = wc.wc_flags & IBV_WC_WITH_INV ? wc.invalidated_rkey : EX_UNTOLD;
	return 0;
}

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static int
window(struct ex_peer *ex, uint32_t *stag)
{
	struct ex_rdma *p = ex->priv;

	p->window = ibv_reg_mr(p->id->pd, ex->buf, EX_DATA_LEN, ACCESS);
	if (p->window == NULL)
		return ex_rdma_fail("ibv_reg_mr");
	*stag = p->window->rkey;
	return 0;
}

static void
window_end(struct ex_peer *ex)
{
	struct ex_rdma *p = ex->priv;

	ibv_dereg_mr(p->window);
}

static const struct ex_verbs verbs = {post_recv, post, wait_done, window, window_end};

int
ex_rdma_qp(struct ex_rdma *p, uint32_t depth)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = depth,
			.max_recv_wr = 64,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	p->channel = ibv_create_comp_channel(p->id->verbs);
	p->cq = p->channel != NULL
			? ibv_create_cq(p->id->verbs, 256 + (int)depth, NULL, p->channel, 0)
			: NULL;
	if (p->cq == NULL)
		return ex_rdma_fail("ibv_create_cq");
	attr.send_cq = attr.recv_cq = p->cq;
	if (rdma_create_qp(p->id, NULL, &attr))
		return ex_rdma_fail("rdma_create_qp");
	if (p->ex.buf == NULL)
		p->ex.buf = aligned_alloc(4096, EX_BUF_LEN);
	p->mr = ibv_reg_mr(p->id->pd, p->ex.buf, EX_BUF_LEN, ACCESS);
	if (p->mr == NULL)
		return ex_rdma_fail("ibv_reg_mr");
	p->ex.stag = p->mr->rkey;
	p->ex.verbs = &verbs;
	p->ex.priv = p;
	return 0;
}

void
ex_rdma_end(struct ex_rdma *p)
{
	if (p->id != NULL && p->id->qp != NULL)
		rdma_destroy_qp(p->id);
	if (p->mr != NULL)
		ibv_dereg_mr(p->mr);
	if (p->cq != NULL)
		ibv_destroy_cq(p->cq);
	if (p->channel != NULL)
		ibv_destroy_comp_channel(p->channel);
	if (p->id != NULL)
		rdma_destroy_id(p->id);
	p->mr = NULL;
	p->cq = NULL;
	p->channel = NULL;
	p->id = NULL;
}

int
ex_rdma_event(struct ex_rdma *p, struct ex_event *out)
{
	struct rdma_cm_event *ev;

	if (rdma_get_cm_event(p->events, &ev))
		return ex_rdma_fail("rdma_get_cm_event");
	*out = (struct ex_event){.type = ev->event,
		.status = ev->status,
		.id = ev->id,
		.responder_resources = ev->param.conn.responder_resources,
		.initiator_depth = ev->param.conn.initiator_depth,
		.private_len =
			ev->param.conn.private_data != NULL ? ev->param.conn.private_data_len : 0};
	if (out->private_len)
		memcpy(out->private_data, ev->param.conn.private_data, out->private_len);
	rdma_ack_cm_event(ev);
	return 0;
}

int
ex_rdma_expect(struct ex_rdma *p, enum rdma_cm_event_type want, struct ex_event *out)
{
	struct ex_event ev;

	if (ex_rdma_event(p, &ev))
		return -1;
	if (out != NULL)
		*out = ev;
	if (ev.type == want)
		return 0;
	printf("event %s (status %d), not %s\n", rdma_event_str(ev.type), ev.status,
		rdma_event_str(want));
	return -1;
}

int
ex_rdma_resolve(struct ex_rdma *p, struct sockaddr *to)
{
	if (rdma_create_id(p->events, &p->id, NULL, RDMA_PS_TCP) ||
		rdma_resolve_addr(p->id, NULL, to, 5000) ||
		ex_rdma_expect(p, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) ||
		rdma_resolve_route(p->id, 5000) ||
		ex_rdma_expect(p, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL))
		return ex_rdma_fail("resolving");
	return 0;
}

int
ex_rdma_listen(struct ex_rdma *p, struct sockaddr *at)
{
	if (rdma_create_id(p->events, &p->listener, NULL, RDMA_PS_TCP) ||
		rdma_bind_addr(p->listener, at) || rdma_listen(p->listener, 4))
		return ex_rdma_fail("listening");
	printf("listening\n");
	fflush(stdout);
	return 0;
}
