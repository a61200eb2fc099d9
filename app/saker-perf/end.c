/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the objects, the memory and the connections of one end. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/base/mem.h"
#include "perf.h"

#define RIGHTS                                                                                     \
	(RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC)
#define READS      128  /* outstanding Reads and Atomics of a QP: the engine's default limit */
#define SPIN_TURNS 2000 /* turns for which a client spins before it sleeps for NAP_US */
#define NAP_US     50
#define WAIT_NS    60000000000ull /* timeout of a connection event, reached only after a failure */

/* The private data of the connection, in host byte order: both ends must have the same. */
struct hello {
	uint64_t addr;
	uint32_t stag, qps, size, op, versus;
};

int
perf_fail(const char *what, int rc)
{
	fprintf(stderr, "saker-perf: %s: %s (%s)\n", what, strerror(-rc), saker_error());
	return -1;
}

uint8_t *
perf_out(const struct perf_end *e)
{
	return e->buf;
}

uint8_t *
perf_in(const struct perf_end *e)
{
	return e->buf + e->part;
}

uint64_t
perf_words_off(const struct perf_end *e, uint32_t qp)
{
	return 2 * e->part + qp * sizeof(struct perf_words);
}

uint64_t
perf_cell_off(const struct perf_end *e, uint32_t qp)
{
	return perf_words_off(e, qp) + offsetof(struct perf_words, cell);
}

uint64_t *
perf_cell(const struct perf_end *e, uint32_t qp)
{
	return (uint64_t *)(e->buf + perf_cell_off(e, qp));
}

uint64_t
perf_peer_word(const struct perf_end *e, uint32_t qp, enum perf_word w)
{
	const struct perf_words *words = (const void *)(e->buf + perf_words_off(e, qp));

	return __atomic_load_n(&words->w[w], __ATOMIC_ACQUIRE);
}

void
perf_idle(void *end)
{
	struct perf_end *e = end;

	if (e->engine != NULL)
		eng_poll(e->engine, 0, eng_clock());
	else if (e->waited++ < SPIN_TURNS)
		sched_yield();
	else
		usleep(NAP_US); /* the peer or the engine may need this core to answer */
}

/* Returns -1 if a connection has ended or failed: each test needs all of them. */
static int
check_events(struct perf_end *e)
{
	struct saker_event ev;

	while (saker_event(e->s, &ev) == 1) {
		if (ev.type == SAKER_EV_QP_FATAL || ev.type == SAKER_EV_CQ_OVERFLOW) {
			fprintf(stderr, "saker-perf: a QP or CQ has failed: %s\n", ev.async.reason);
			return -1;
		}
		if (ev.type == SAKER_EV_DISCONNECTED || ev.type == SAKER_EV_ENGINE_GONE) {
			fprintf(stderr, "saker-perf: the connection has ended\n");
			return -1;
		}
	}
	return 0;
}

int
perf_turn(struct perf_end *e)
{
	perf_idle(e);
	return ++e->turns % 16384 ? 0 : check_events(e);
}

void
perf_settle(struct perf_end *e)
{
	unsigned quiet = 0;

	/* Counts turns without work in addition to the time, because a thread that was preempted
	 * does no work, either. */
	for (uint64_t end = eng_clock() + 5000000;
		e->engine != NULL && (quiet < 4096 || eng_clock() < end);)
		quiet = eng_poll(e->engine, 0, eng_clock()) ? 0 : quiet + 1;
}

static int
make_qps(struct perf_end *e)
{
	for (uint32_t i = 0; i < e->nqp; i++) {
		bool works = i < e->o->qps;
		struct saker_qp_attr attr = {
			.send_cq = e->cq,
			.recv_cq = e->cq,
			.sq_depth = works ? e->o->depth : 16,
			.rq_depth = works ? e->o->depth : 16,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline = 8,
			.transport = e->o->transport,
			.user = (void *)(uintptr_t)i,
		};
		int rc = saker_qp_create(e->pd, &attr, &e->qp[i]);

		if (rc < 0)
			return perf_fail("creating a QP", rc);
	}
	return 0;
}

int
perf_end_open(struct perf_end *e, struct saker *s)
{
	uint64_t len;
	int rc;

	e->s = s;
	e->nqp = e->o->qps + e->o->idle_qps;
	e->part = ((uint64_t)e->o->size + 4095) / 4096 * 4096;
	len = perf_words_off(e, e->o->qps);
	e->qp = calloc(e->nqp, sizeof(*e->qp));
	e->flow = calloc(e->o->qps, sizeof(*e->flow));
	e->buf = saker_alloc(s, len);
	if (e->qp == NULL || e->flow == NULL || e->buf == NULL)
		return perf_fail("allocating memory for the test", -ENOMEM);
	if ((rc = saker_pd_create(s, &e->pd)) < 0)
		return perf_fail("creating a PD", rc);
	if ((rc = saker_mr_create(e->pd, e->buf, len, RIGHTS, &e->mr)) < 0)
		return perf_fail("registering memory", rc);
	/* Each request may be signalled, and as many receives may complete. */
	if ((rc = saker_cq_create(s, 2 * (e->o->depth + 16) * e->o->qps, NULL, &e->cq)) < 0)
		return perf_fail("creating a CQ", rc);
	return make_qps(e);
}

static int
next_event(struct perf_end *e, struct saker_event *ev)
{
	for (uint64_t end = eng_clock() + WAIT_NS; eng_clock() < end; perf_idle(e)) {
		if (saker_event(e->s, ev) == 1)
			return 0;
	}
	return perf_fail("connecting", -ETIMEDOUT);
}

static int
unexpected(const struct saker_event *ev)
{
	return perf_fail("connecting", ev->status ? ev->status : -ECONNABORTED);
}

static struct hello
hello_of(const struct perf_end *e)
{
	return (struct hello){(uintptr_t)e->buf, saker_mr_stag(e->mr), e->nqp, e->o->size, e->o->op,
		e->o->versus};
}

static int
check_hello(struct perf_end *e, const struct saker_conn_info *cm)
{
	struct hello h, mine = hello_of(e);

	if (cm->private_len < sizeof(h))
		return perf_fail("checking the other end's private data", -EPROTO);
	memcpy(&h, cm->private_data, sizeof(h));
	if (h.qps != mine.qps || h.size != mine.size || h.op != mine.op ||
		h.versus != mine.versus) {
		fprintf(stderr,
			"saker-perf: --op, --versus, --size or --qps differ at the other end\n");
		return -1;
	}
	e->peer_addr = h.addr;
	e->peer_stag = h.stag;
	return 0;
}

static struct saker_conn_param
params(const struct perf_end *e, const struct hello *h)
{
	return (struct saker_conn_param){
		.ird = READS,
		.ord = READS,
		.crc = e->o->crc,
		.markers = e->o->markers,
		.private_data = h,
		.private_len = sizeof(*h),
	};
}

int
perf_end_connect(struct perf_end *e, const struct sk_addr *addr)
{
	struct hello h = hello_of(e);
	struct saker_conn_param p = params(e, &h);
	struct saker_event ev;

	for (uint32_t i = 0; i < e->nqp; i++) {
		int rc = saker_connect(e->qp[i], NULL, addr, e->o->tcp_port, &p);

		if (rc < 0)
			return perf_fail("connecting", rc);
		if (next_event(e, &ev) < 0)
			return -1;
		if (ev.type != SAKER_EV_ESTABLISHED)
			return unexpected(&ev);
		if (check_hello(e, &ev.cm) < 0)
			return -1;
		if (e->nqp >= 1000 && i % 1000 == 999)
			perf_progress(e->o, "%u QPs connected", i + 1);
	}
	return 0;
}

int
perf_end_accept(struct perf_end *e)
{
	struct hello h = hello_of(e);
	struct saker_conn_param p = params(e, &h);
	struct saker_listener *l;
	struct saker_event ev;
	int rc = saker_listen(e->s, NULL, e->o->tcp_port, 64, NULL, &l);

	if (rc < 0)
		return perf_fail("listening", rc);
	if (e->o->listen)
		fprintf(stderr, "listening\n"); /* scripts then start the other end */
	/* If frames are lost, a request may arrive before the previous connection stands. */
	for (uint32_t accepted = 0, established = 0; established < e->nqp;) {
		if (next_event(e, &ev) < 0)
			return -1;
		if (ev.type == SAKER_EV_ESTABLISHED) {
			established++;
		} else if (ev.type == SAKER_EV_CONNECT_REQUEST && accepted < e->nqp) {
			if (check_hello(e, &ev.cm) < 0)
				return -1;
			if ((rc = saker_accept(e->s, ev.request, e->qp[accepted++], &p)) < 0)
				return perf_fail("accepting", rc);
		} else {
			return unexpected(&ev);
		}
	}
	saker_unlisten(l);
	return 0;
}

void
perf_end_close(struct perf_end *e)
{
	if (e->s != NULL)
		saker_close(e->s);
	free(e->qp);
	free(e->flow);
}
