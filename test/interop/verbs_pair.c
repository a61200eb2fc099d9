/* SPDX-License-Identifier: BSD-3-Clause */
/* See verbs_pair.h. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs_pair.h"

#define RESOLVE_MS 5000
#define STATUS_S   60

uint16_t pair_port = 7471;

static void
need(bool done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

int
pair_event(struct rdma_event_channel *channel, struct rdma_cm_id **id)
{
	struct rdma_cm_event *ev;
	int type;

	need(rdma_get_cm_event(channel, &ev) == 0, "an event");
	type = ev->event;
	if (id != NULL)
		*id = ev->id;
	rdma_ack_cm_event(ev);
	return type;
}

static void
expect(struct rdma_event_channel *channel, int type, struct rdma_cm_id **id)
{
	int got = pair_event(channel, id);

	if (got == type)
		return;
	fprintf(stderr, "event %d instead of %d\n", got, type);
	exit(1);
}

static union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
} sockaddr_buf;

static struct sockaddr *
sockaddr_of(const char *address, uint16_t port)
{
	memset(&sockaddr_buf, 0, sizeof(sockaddr_buf));
	if (strchr(address, ':') != NULL) {
		sockaddr_buf.in6.sin6_family = AF_INET6;
		sockaddr_buf.in6.sin6_port = htons(port);
		inet_pton(AF_INET6, address, &sockaddr_buf.in6.sin6_addr);
	} else {
		sockaddr_buf.in.sin_family = AF_INET;
		sockaddr_buf.in.sin_port = htons(port);
		inet_pton(AF_INET, address, &sockaddr_buf.in.sin_addr);
	}
	return &sockaddr_buf.sa;
}

void
side_resolve(struct side *s, const char *address, uint16_t port)
{
	memset(s, 0, sizeof(*s));
	s->channel = rdma_create_event_channel();
	need(s->channel != NULL, "an event channel");
	need(rdma_create_id(s->channel, &s->id, NULL, RDMA_PS_TCP) == 0, "an id");
	need(rdma_resolve_addr(s->id, NULL, sockaddr_of(address, port), RESOLVE_MS) == 0,
		"rdma_resolve_addr");
	expect(s->channel, RDMA_CM_EVENT_ADDR_RESOLVED, NULL);
	need(rdma_resolve_route(s->id, RESOLVE_MS) == 0, "rdma_resolve_route");
	expect(s->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL);
}

void
side_make(struct side *s, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};

	s->id = id;
	s->pd = ibv_alloc_pd(id->verbs);
	need(s->pd != NULL, "a protection domain");
	s->mem = aligned_alloc(PAIR_BYTES, PAIR_BYTES);
	memset(s->mem, 0, PAIR_BYTES);
	s->mr = ibv_reg_mr(s->pd, s->mem, PAIR_BYTES,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	need(s->mr != NULL, "a memory region");
	attr.send_cq = s->scq = ibv_create_cq(id->verbs, PAIR_CQE, NULL, NULL, 0);
	attr.recv_cq = s->rcq = ibv_create_cq(id->verbs, PAIR_CQE, NULL, NULL, 0);
	need(s->scq != NULL && s->rcq != NULL, "completion queues");
	need(rdma_create_qp(id, s->pd, &attr) == 0, "a queue pair");
}

void
side_unmake(struct side *s)
{
	if (s->id->qp != NULL)
		rdma_destroy_qp(s->id);
	need(ibv_destroy_cq(s->scq) == 0 && ibv_destroy_cq(s->rcq) == 0, "ibv_destroy_cq");
	need(ibv_dereg_mr(s->mr) == 0, "ibv_dereg_mr");
	need(ibv_dealloc_pd(s->pd) == 0, "ibv_dealloc_pd");
	need(rdma_destroy_id(s->id) == 0, "rdma_destroy_id");
	if (s->channel != NULL)
		rdma_destroy_event_channel(s->channel);
	free(s->mem);
}

static void
listen_at(struct pair *p, const char *address)
{
	p->b.channel = rdma_create_event_channel();
	need(p->b.channel != NULL, "an event channel");
	need(rdma_create_id(p->b.channel, &p->listener, NULL, RDMA_PS_TCP) == 0, "an id");
	need(rdma_bind_addr(p->listener, sockaddr_of(address, pair_port)) == 0, "rdma_bind_addr");
	need(rdma_listen(p->listener, 8) == 0, "rdma_listen");
}

void
pair_connect(struct pair *p, const char *address, const struct pair *host)
{
	/* A Send without a posted receive is retried a few times only. */
	struct rdma_conn_param param = {.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 3,
		.rnr_retry_count = 2};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	memset(p, 0, sizeof(*p));
	p->guest = host != NULL;
	if (host == NULL)
		listen_at(p, address);
	channel = host != NULL ? host->b.channel : p->b.channel;
	side_resolve(&p->a, address, pair_port);
	side_make(&p->a, p->a.id);
	need(rdma_connect(p->a.id, &param) == 0, "rdma_connect");
	expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST, &id);
	side_make(&p->b, id);
	need(rdma_accept(id, &param) == 0, "rdma_accept");
	expect(channel, RDMA_CM_EVENT_ESTABLISHED, NULL);
	expect(p->a.channel, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

void
pair_end(struct pair *p)
{
	struct rdma_event_channel *channel = p->b.channel;

	p->b.channel = NULL;
	side_unmake(&p->a);
	side_unmake(&p->b);
	if (p->guest)
		return;
	need(rdma_destroy_id(p->listener) == 0, "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
}

int
pair_status(struct ibv_cq *cq)
{
	time_t until = time(NULL) + STATUS_S;
	struct ibv_wc wc;

	while (time(NULL) < until) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n != 0)
			return n < 0 ? n : (int)wc.status;
	}
	return -ETIMEDOUT;
}

static bool
hears(struct rdma_event_channel *channel, int ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1 && pair_event(channel, NULL) == RDMA_CM_EVENT_DISCONNECTED;
}

bool
pair_ended(struct pair *p, int ms)
{
	return hears(p->a.channel, ms) && hears(p->b.channel, ms);
}

bool
pair_async(struct pair *p, int ms, struct ibv_async_event *ev)
{
	struct pollfd fd = {.fd = p->a.id->verbs->async_fd, .events = POLLIN};

	if (poll(&fd, 1, ms) != 1)
		return false;
	/* The descriptor may be readable because of another device's event; then there is none to
	 * take. */
	fcntl(fd.fd, F_SETFL, fcntl(fd.fd, F_GETFL) | O_NONBLOCK);
	return ibv_get_async_event(p->a.id->verbs, ev) == 0;
}
