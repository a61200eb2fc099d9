/* SPDX-License-Identifier: BSD-3-Clause */
#include "cm_fake.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct saker {
	int unused;
};

struct saker_qp {
	LIST_ENTRY(saker_qp) next;
	struct vb_qp vb;
	uint32_t qpn;
};

struct saker_listener {
	void *user;
};

#define SAKERS 4

struct fake fake;
static struct saker sakers[SAKERS];
static struct vb_attachment attachments[SAKERS];
static struct vb_attachment *now = attachments;
static struct saker_device device;
static struct vb_device devices[VB_NKINDS] = {
	{.kind = &vb_kinds[SAKER_IWARP]}, {.kind = &vb_kinds[SAKER_FALCON]}};
static LIST_HEAD(, saker_qp) qps = LIST_HEAD_INITIALIZER(qps);
static uint32_t last_qpn;
static struct saker_listener *last_listener;
static vb_cm_fn *handler;
static vb_cm_gone_fn *handler_gone;
static pthread_mutex_t events = PTHREAD_MUTEX_INITIALIZER;

void
fake_reset(void)
{
	static const char *const addrs[] = {
		"192.0.2.1", "198.51.100.1", "2001:db8::1", "fe80::1", "fe80::2"};

	unsetenv("SAKER_DEVICE");
	memset(&fake, 0, sizeof(fake));
	memset(&device, 0, sizeof(device));
	for (unsigned i = 0; i < SAKERS; i++)
		attachments[i] = (struct vb_attachment){.saker = &sakers[i]};
	now = attachments;
	device.max_ird = 64;
	device.max_ord = 32;
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(sk_addr_parse(addrs[i], &device.addrs[i]), 0);
	device.naddrs = 5;
}

/* ---- The libibverbs side ---- */

struct vb_attachment *
vb_attach(void)
{
	now->refs++;
	return now;
}

void
vb_attachment_hold(struct vb_attachment *a)
{
	a->refs++;
}

void
vb_attachment_release(struct vb_attachment *a)
{
	cr_assert_gt(a->refs, 0);
	a->refs--;
}

bool
saker_gone(struct saker *s)
{
	return s != now->saker;
}

uint32_t
saker_objects(const struct saker *s)
{
	return (uint32_t)(fake.pds + fake.cqs + fake.qps);
}

int
saker_look(const char *socket)
{
	fake.looks++;
	if (fake.looks_fail == 0)
		return 0;
	fake.looks_fail--;
	return -ECONNREFUSED;
}

const struct saker_device *
vb_saker_device(void)
{
	if (fake.lookups++ < fake.lookups_find || fake.lookups_find == 0)
		return &device;
	errno = ECONNREFUSED;
	return NULL;
}

int
vb_rc(int rc, const char *what)
{
	if (rc < 0)
		errno = -rc;
	return rc < 0 ? -rc : 0;
}

int
vb_fail(int err, const char *fmt, ...)
{
	errno = err;
	return err;
}

struct vb_device *
vb_device_of(enum saker_transport transport)
{
	if (transport == SAKER_FALCON ? fake.no_falcon : fake.no_iwarp) {
		errno = ENODEV;
		return NULL;
	}
	return &devices[transport];
}

int
vb_alive(struct ibv_context *c)
{
	return 0;
}

void
vb_events_lock(void)
{
	pthread_mutex_lock(&events);
}

void
vb_events_unlock(void)
{
	pthread_mutex_unlock(&events);
}

int
vb_dispatch_start(struct vb_attachment *a)
{
	a->running = true;
	return 0;
}

void
vb_on_cm_event(vb_cm_fn *fn, vb_cm_gone_fn *gone)
{
	handler = fn;
	handler_gone = gone;
}

void
vb_qp_set_state(struct vb_qp *qp, enum ibv_qp_state state)
{
	qp->ex.qp_base.state = state;
}

struct ibv_context *
ibv_open_device(struct ibv_device *d)
{
	struct vb_context *c = calloc(1, sizeof(*c));

	c->kind = vb_container(d, struct vb_device, dev)->kind;
	c->at = vb_attach();
	c->saker = c->at->saker;
	c->info = device;
	fake.contexts++;
	return &c->vctx.context;
}

int
ibv_close_device(struct ibv_context *c)
{
	vb_attachment_release(vb_context(c)->at);
	free(vb_context(c));
	fake.contexts--;
	return 0;
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *c)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = c;
	fake.pds++;
	return pd;
}

int
ibv_dealloc_pd(struct ibv_pd *pd)
{
	fake.pds--;
	free(pd);
	return 0;
}

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *c)
{
	struct ibv_comp_channel *ch = calloc(1, sizeof(*ch));

	fake.channels++;
	ch->fd = fake.channels_unwatchable ? -1 : eventfd(0, EFD_NONBLOCK);
	return ch;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
	fake.channels--;
	close(ch->fd);
	free(ch);
	return 0;
}

struct ibv_cq *
ibv_create_cq(
	struct ibv_context *c, int cqe, void *context, struct ibv_comp_channel *ch, int vector)
{
	struct ibv_cq *cq = calloc(1, sizeof(*cq));

	cq->cqe = cqe;
	cq->cq_context = context;
	cq->channel = ch;
	cq->context = c;
	fake.cqs++;
	return cq;
}

int
ibv_destroy_cq(struct ibv_cq *cq)
{
	fake.cqs--;
	free(cq);
	return 0;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	fake.srqs++;
	return calloc(1, sizeof(struct ibv_srq));
}

int
ibv_destroy_srq(struct ibv_srq *srq)
{
	fake.srqs--;
	free(srq);
	return 0;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct saker_qp *qp = calloc(1, sizeof(*qp));

	if (fake.answer < 0) {
		free(qp);
		errno = -fake.answer;
		return NULL;
	}
	qp->qpn = ++last_qpn;
	qp->vb.saker = qp;
	qp->vb.ex.qp_base.qp_num = qp->qpn;
	qp->vb.ex.qp_base.context = pd->context;
	qp->vb.ex.qp_base.pd = pd;
	qp->vb.ex.qp_base.send_cq = attr->send_cq;
	qp->vb.ex.qp_base.recv_cq = attr->recv_cq;
	LIST_INSERT_HEAD(&qps, qp, next);
	fake.qps++;
	return &qp->vb.ex.qp_base;
}

int
ibv_destroy_qp(struct ibv_qp *qp)
{
	if (fake.destroy_us > 0)
		usleep(fake.destroy_us);
	LIST_REMOVE(vb_qp(qp)->saker, next);
	free(vb_qp(qp)->saker);
	fake.qps--;
	return 0;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	qp->state = attr->qp_state;
	return 0;
}

/* ---- libsaker ---- */

struct saker_qp *
saker_qp_find(struct saker *s, uint32_t qpn)
{
	struct saker_qp *qp;

	LIST_FOREACH (qp, &qps, next)
		if (qp->qpn == qpn)
			return qp;
	return NULL;
}

void *
saker_qp_user(const struct saker_qp *qp)
{
	return (void *)(uintptr_t)&qp->vb;
}

void *
saker_listener_user(const struct saker_listener *l)
{
	return l->user;
}

static void
note_param(const struct saker_conn_param *p)
{
	fake.param = *p;
	if (p->private_len > 0)
		memcpy(fake.private_data, p->private_data, p->private_len);
}

int
saker_connect(struct saker_qp *qp, const struct sk_addr *local, const struct sk_addr *remote,
	uint16_t port, const struct saker_conn_param *p)
{
	fake.connects++;
	fake.any_local = local == NULL;
	if (local != NULL)
		fake.local = *local;
	fake.remote = *remote;
	fake.port = port;
	note_param(p);
	if (fake.answer == 0 && fake.at_once != NULL)
		fake.at_once(qp);
	return fake.answer;
}

int
vb_modes(struct ibv_context *c, struct saker_modes *out)
{
	*out = (struct saker_modes){.ordering = SAKER_ORDER_WEAK};
	return fake.modes_wrong ? EINVAL : 0;
}

int
saker_accept(
	struct saker *s, uint32_t request, struct saker_qp *qp, const struct saker_conn_param *p)
{
	fake.accepts++;
	fake.request = request;
	note_param(p);
	if (fake.answer == 0 && fake.at_once != NULL)
		fake.at_once(qp);
	return fake.answer;
}

int
saker_reject(struct saker *s, uint32_t request, const void *private_data, size_t len)
{
	fake.rejects++;
	fake.request = request;
	fake.param.private_len = (uint16_t)len;
	if (len > 0)
		memcpy(fake.private_data, private_data, len);
	return fake.answer;
}

int
saker_disconnect(struct saker_qp *qp, bool abortive)
{
	fake.disconnects++;
	fake.abortive = abortive;
	return fake.answer;
}

/* Call with vb_events_lock() held. */
static void
next_saker(void)
{
	const struct saker_event gone = {.type = SAKER_EV_ENGINE_GONE, .status = -EPIPE};

	now->gone = true;
	handler(now, &gone);
	now++;
	cr_assert_lt(now - attachments, SAKERS);
}

static int
listener(const struct sk_addr *addr, uint16_t port, uint32_t backlog, void *user,
	struct saker_listener **out)
{
	fake.listens++;
	fake.port = port;
	fake.backlog = backlog;
	fake.any_local = addr == NULL || sk_addr_is_any(addr);
	fake.v4_local = addr != NULL && sk_addr_is_v4(addr);
	if (fake.ports_in_use > 0) {
		fake.ports_in_use--;
		return -EADDRINUSE;
	}
	if (fake.listens_end > 0) {
		fake.listens_end--;
		next_saker();
		return -EPIPE;
	}
	if (fake.answer < 0)
		return fake.answer;
	*out = last_listener = calloc(1, sizeof(**out));
	last_listener->user = user;
	return 0;
}

int
saker_listen_as(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out)
{
	fake.listen_param = *p;
	return listener(addr, port, backlog, user, out);
}

int
saker_ud_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out)
{
	return listener(addr, port, backlog, user, out);
}

int
saker_listen_v6only(struct saker *s, enum saker_space space, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out)
{
	fake.v6only++;
	fake.listen_param = *p;
	return listener(NULL, port, backlog, user, out);
}

int
saker_ud_resolve(struct saker_qp *qp, const struct sk_addr *remote, uint16_t port,
	const void *private_data, size_t len)
{
	fake.ud_resolves++;
	fake.remote = *remote;
	fake.port = port;
	return fake.answer;
}

int
saker_unlisten(struct saker_listener *l)
{
	fake.unlistens++;
	free(l);
	return 0;
}

/* ---- For tests ---- */

void
fake_event(const struct saker_event *ev)
{
	struct saker_event copy = *ev;

	if (ev->type == SAKER_EV_CONNECT_REQUEST)
		copy.listener = last_listener;
	vb_events_lock();
	handler(now, &copy);
	vb_events_unlock();
}

void
fake_restart(int stop)
{
	vb_events_lock();
	next_saker();
	vb_events_unlock();
	handler_gone(stop);
}

unsigned
fake_holds(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SAKERS; i++)
		n += attachments[i].refs;
	return n;
}

void
fake_qp_event(struct ibv_qp *qp, enum saker_event_type type, int status)
{
	struct saker_event ev = {.type = type, .status = status, .qp = vb_qp(qp)->saker};

	ev.cm.ird = 3;
	ev.cm.ord = 5;
	ev.cm.private_len = 4;
	memcpy(ev.cm.private_data, "word", 4);
	fake_event(&ev);
}

void
fake_request(enum saker_transport transport, uint32_t request)
{
	struct saker_event ev = {.type = SAKER_EV_CONNECT_REQUEST, .request = request};

	ev.cm.transport = (uint8_t)transport;
	ev.cm.ird = 7;
	ev.cm.ord = 9;
	sk_addr_parse("192.0.2.1", &ev.cm.local);
	sk_addr_parse("192.0.2.9", &ev.cm.remote);
	ev.cm.lport = 7471;
	ev.cm.rport = 4444;
	ev.cm.private_len = 5;
	memcpy(ev.cm.private_data, "hello", 5);
	fake_event(&ev);
}

bool
fake_readable(struct rdma_event_channel *ch)
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

struct rdma_cm_event *
fake_next(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = NULL;

	cr_assert(fake_readable(ch), "there is no %s", rdma_event_str(type));
	cr_assert_eq(rdma_get_cm_event(ch, &ev), 0);
	cr_assert_eq(ev->event, type, "%s instead of %s", rdma_event_str(ev->event),
		rdma_event_str(type));
	return ev;
}

void
fake_expect(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *ev = fake_next(ch, type);

	cr_assert_eq(ev->status, status, "%s with %d", rdma_event_str(type), ev->status);
	cr_assert_eq(rdma_ack_cm_event(ev), 0);
}

struct sockaddr *
fake_addr(const char *text, uint16_t port)
{
	static struct sockaddr_storage places[4];
	static unsigned turn;
	struct sockaddr_storage *sa = &places[turn++ % 4];
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	memset(sa, 0, sizeof(*sa));
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		memcpy(sa, &in, sizeof(in));
	else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		memcpy(sa, &in6, sizeof(in6));
	else
		cr_assert_fail("%s is no address", text);
	return (struct sockaddr *)sa;
}

struct rdma_cm_id *
fake_active(struct rdma_event_channel **ch)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct rdma_cm_id *id;

	*ch = rdma_create_event_channel();
	cr_assert_not_null(*ch);
	cr_assert_eq(rdma_create_id(*ch, &id, &fake, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_resolve_addr(id, NULL, fake_addr("192.0.2.9", 7471), 100), 0);
	fake_expect(*ch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	cr_assert_eq(rdma_resolve_route(id, 100), 0);
	fake_expect(*ch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	cr_assert_eq(rdma_create_qp(id, NULL, &init), 0);
	return id;
}

struct rdma_cm_id *
fake_passive(struct rdma_event_channel **ch, const char *text)
{
	struct rdma_cm_id *id;

	*ch = rdma_create_event_channel();
	cr_assert_not_null(*ch);
	cr_assert_eq(rdma_create_id(*ch, &id, &fake, RDMA_PS_TCP), 0);
	cr_assert_eq(rdma_bind_addr(id, fake_addr(text, 7471)), 0);
	cr_assert_eq(rdma_listen(id, 5), 0);
	return id;
}

void
fake_set_tos(struct rdma_cm_id *id, uint8_t tos)
{
	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
}

void
fake_destroy(struct rdma_cm_id *id, struct rdma_event_channel *ch)
{
	rdma_destroy_qp(id);
	cr_assert_eq(rdma_destroy_id(id), 0);
	if (ch != NULL)
		rdma_destroy_event_channel(ch);
}
