/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsocket_fake.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "../../../drivers/verbs/cm/cm_priv.h"
#include "../../../drivers/verbs/rsocket/rs_priv.h"

#define ENDS  40
#define DEPTH 4096

struct end {
	/* These may be destroyed, and others may have their addresses. The number is unique. */
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct end *peer;
	int channel;
	uint32_t qpn;
	struct recv {
		uint64_t wr_id;
		uint8_t *to;
		uint32_t len;
	} recvs[DEPTH];
	uint32_t head, count;
	struct ibv_wc wcs[DEPTH];
	uint32_t wc_head, wc_count;
	bool armed, rung;
};

struct rsf rsf;
static struct end ends[ENDS];
static unsigned nends;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct end *
end_of(struct ibv_qp *qp)
{
	for (unsigned i = 0; i < nends; i++)
		if (ends[i].qpn == qp->qp_num)
			return &ends[i];
	cr_assert(nends < ENDS);
	ends[nends].qp = qp;
	ends[nends].cq = qp->send_cq;
	ends[nends].channel = qp->send_cq->channel->fd;
	ends[nends].qpn = qp->qp_num;
	ends[nends].peer = &ends[nends ^ 1];
	return &ends[nends++];
}

static struct end *
end_of_cq(struct ibv_cq *cq)
{
	for (unsigned i = nends; i > 0; i--)
		if (ends[i - 1].cq == cq && saker_qp_find(NULL, ends[i - 1].qpn) != NULL)
			return &ends[i - 1];
	return NULL;
}

/* Adds a completion. Called with the lock. */
static void
complete(struct end *e, uint64_t wr_id, uint32_t bytes, enum ibv_wc_status status)
{
	const uint64_t one = 1;

	e->wcs[(e->wc_head + e->wc_count++) % DEPTH] =
		(struct ibv_wc){.wr_id = wr_id, .byte_len = bytes, .status = status};
	if (e->armed) {
		e->armed = false;
		e->rung = true;
		/* As in the library, this is no point of cancellation. */
		cr_assert_eq(syscall(SYS_write, e->channel, &one, sizeof(one)), sizeof(one));
	}
}

static bool
deliver(struct end *to, const void *bytes, uint32_t len)
{
	struct recv *r = &to->recvs[to->head];

	if (to->count == 0) {
		rsf.overruns++;
		return false;
	}
	cr_assert_leq(len, r->len);
	memcpy(r->to, bytes, len);
	to->head = (to->head + 1) % DEPTH;
	to->count--;
	complete(to, r->wr_id, len, IBV_WC_SUCCESS);
	return true;
}

static int
fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct end *e;

	pthread_mutex_lock(&lock);
	e = end_of(qp);
	if (wr->opcode == IBV_WR_SEND) {
		rsf.sends++;
		deliver(e->peer, (void *)wr->sg_list->addr, wr->sg_list->length);
	} else {
		rsf.writes++;
		memcpy((void *)wr->wr.rdma.remote_addr, (void *)wr->sg_list->addr,
			wr->sg_list->length);
	}
	complete(e, wr->wr_id, 0, IBV_WC_SUCCESS);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int
fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct end *e;

	pthread_mutex_lock(&lock);
	e = end_of(qp);
	cr_assert_lt(e->count, DEPTH);
	e->recvs[(e->head + e->count++) % DEPTH] =
		(struct recv){wr->wr_id, (void *)wr->sg_list->addr, wr->sg_list->length};
	pthread_mutex_unlock(&lock);
	return 0;
}

static int
fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct end *e;
	int got = 0;

	pthread_mutex_lock(&lock);
	e = end_of_cq(cq);
	for (; e != NULL && e->wc_count > 0 && got < n; got++) {
		wc[got] = e->wcs[e->wc_head];
		e->wc_head = (e->wc_head + 1) % DEPTH;
		e->wc_count--;
	}
	pthread_mutex_unlock(&lock);
	return got;
}

static int
fake_req_notify(struct ibv_cq *cq, int solicited)
{
	struct end *e;

	pthread_mutex_lock(&lock);
	e = end_of_cq(cq);
	/* A queue is armed before its first receive is posted. */
	if (e == NULL && nends < ENDS)
		e = &ends[nends];
	if (e != NULL)
		e->armed = true;
	pthread_mutex_unlock(&lock);
	return 0;
}

int
ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **user)
{
	struct end *e = NULL;
	uint64_t n;

	pthread_mutex_lock(&lock);
	/* The queue of an end is destroyed after its QP. */
	for (unsigned i = 0; i < nends && e == NULL; i++)
		if (ends[i].rung && saker_qp_find(NULL, ends[i].qpn) != NULL)
			e = &ends[i];
	if (e != NULL) {
		e->rung = false;
		*cq = e->cq;
		*user = (*cq)->cq_context;
	} else if (read(ch->fd, &n, sizeof(n)) < 0) {
		errno = EAGAIN;
	}
	pthread_mutex_unlock(&lock);
	return e != NULL ? 0 : -1;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	mr->pd = pd;
	mr->addr = addr;
	mr->length = len;
	mr->rkey = 7;
	return mr;
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	free(mr);
	return 0;
}

/* Opens the device of the present saker. */
static void
device_ready(void)
{
	struct cm_device *dev = vb_cm_device_open(SAKER_IWARP);

	cr_assert_not_null(dev);
	dev->verbs->ops.post_send = fake_post_send;
	dev->verbs->ops.post_recv = fake_post_recv;
	dev->verbs->ops.poll_cq = fake_poll_cq;
	dev->verbs->ops.req_notify_cq = fake_req_notify;
}

void
rsf_reset(void)
{
	fake_reset();
	device_ready();
}

void
rsf_restart(void)
{
	fake_restart(-1);
	pthread_mutex_lock(&lock);
	memset(ends, 0, sizeof(ends));
	nends = 0;
	pthread_mutex_unlock(&lock);
	device_ready();
}

void
rsf_end(void)
{
	for (unsigned i = 0; i < nends; i++) {
		struct saker_event ev = {.type = SAKER_EV_DISCONNECTED};

		ev.qp = saker_qp_find(NULL, ends[i].qpn);
		if (ev.qp != NULL)
			fake_event(&ev);
	}
}

/* ---- Connections ---- */

struct ibv_qp *
rsf_qp(unsigned end)
{
	cr_assert_lt(end, nends);
	return ends[end].qp;
}

void
rsf_inject(unsigned end, const void *bytes, uint32_t len)
{
	pthread_mutex_lock(&lock);
	cr_assert(deliver(&ends[end], bytes, len));
	pthread_mutex_unlock(&lock);
}

static struct sockaddr_in
address(const char *text)
{
	struct sockaddr_in in;

	memcpy(&in, fake_addr(text, 7471), sizeof(in));
	return in;
}

int
rsf_listener(int domain)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(7471)};
	struct sockaddr_in in = address("192.0.2.1");
	int fd = rsocket(domain, SOCK_STREAM, 0);

	cr_assert_geq(fd, 0);
	if (domain == AF_INET)
		cr_assert_eq(rbind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	else
		cr_assert_eq(rbind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	cr_assert_eq(rlisten(fd, 8), 0);
	return fd;
}

static void
begin(int fd)
{
	struct sockaddr_in in = address("192.0.2.9");

	cr_assert_eq(rconnect(fd, (struct sockaddr *)&in, sizeof(in)), -1);
	cr_assert_eq(errno, EINPROGRESS);
}

int
rsf_connecting(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	begin(fd);
	return fd;
}

void
rsf_request(const void *hello, size_t len)
{
	struct saker_event ev = {.type = SAKER_EV_CONNECT_REQUEST, .request = 5};

	ev.cm.transport = SAKER_IWARP;
	ev.cm.ird = ev.cm.ord = 7;
	sk_addr_parse("192.0.2.1", &ev.cm.local);
	sk_addr_parse("192.0.2.9", &ev.cm.remote);
	ev.cm.lport = 7471;
	ev.cm.rport = 4444;
	ev.cm.private_len = (uint16_t)len;
	memcpy(ev.cm.private_data, hello, len);
	fake_event(&ev);
}

void
rsf_established(unsigned end, const void *hello, size_t len)
{
	struct saker_event ev = {.type = SAKER_EV_ESTABLISHED, .qp = vb_qp(rsf_qp(end))->saker};

	ev.cm.private_len = (uint16_t)len;
	if (len > 0)
		memcpy(ev.cm.private_data, hello, len);
	fake_event(&ev);
}

static volatile bool answered;

static void
answer(struct saker_qp *qp)
{
	answered = true;
}

void
rsf_connect_to_listener(int fd)
{
	const unsigned first = nends;
	uint8_t hello[64];
	size_t len;

	begin(fd);
	len = fake.param.private_len;
	memcpy(hello, fake.private_data, len);
	answered = false;
	fake.at_once = answer;
	rsf_request(hello, len);
	rsf_until(answered);
	len = fake.param.private_len;
	memcpy(hello, fake.private_data, len);
	ends[first].peer = &ends[first + 1];
	ends[first + 1].peer = &ends[first];
	rsf_established(first, hello, len);
	rsf_established(first + 1, NULL, 0);
	rsf_until((rsf_poll(fd) & POLLOUT) != 0);
	cr_assert_eq(rfcntl(fd, F_SETFL, 0), 0);
}

int
rsf_waiting(void)
{
	int fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	rsf_connect_to_listener(fd);
	return fd;
}

void
rsf_connect(int listener, int fds[2])
{
	fds[0] = rsf_waiting();
	fds[1] = raccept(listener, NULL, NULL);
	cr_assert_geq(fds[1], 0);
}

int
rsf_pair(int fds[2])
{
	int listener = rsf_listener(AF_INET);

	rsf_connect(listener, fds);
	return listener;
}

static uint8_t
pattern(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 11);
}

void
rsf_transfer(int from, int to, size_t bytes)
{
	static uint8_t out[50000], in[7001];
	size_t sent = 0, got = 0;

	while (got < bytes) {
		size_t n = bytes - sent < sizeof(out) ? bytes - sent : sizeof(out);
		ssize_t rc;

		for (size_t i = 0; i < n; i++)
			out[i] = pattern(sent + i);
		rc = n > 0 ? rsend(from, out, n, MSG_DONTWAIT) : 0;
		cr_assert(rc >= 0 || errno == EAGAIN);
		sent += rc > 0 ? (size_t)rc : 0;
		rc = rrecv(to, in, sizeof(in), MSG_DONTWAIT);
		cr_assert(rc > 0 || errno == EAGAIN);
		for (ssize_t i = 0; i < rc; i++)
			cr_assert_eq(in[i], pattern(got + (size_t)i));
		got += rc > 0 ? (size_t)rc : 0;
	}
	cr_assert_eq(got, sent);
}

short
rsf_poll(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};

	cr_assert_geq(rpoll(&p, 1, 0), 0);
	return p.revents;
}

static bool
is_destroyed(struct vb_rs *rs)
{
	bool is;

	pthread_mutex_lock(&rs->lock);
	is = rs->id == NULL && rs->b < 0;
	pthread_mutex_unlock(&rs->lock);
	return is;
}

struct vb_rs *
rsf_destroyed(int fd)
{
	struct saker_event ev = {.type = SAKER_EV_DISCONNECTED};
	struct vb_rs *rs = vb_rs_get(fd);

	ev.qp = saker_qp_find(NULL, rs->id->qp->qp_num);
	fake_event(&ev);
	cr_assert_eq(rclose(fd), 0);
	rsf_until(is_destroyed(rs));
	return rs;
}
