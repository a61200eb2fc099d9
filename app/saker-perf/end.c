/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates the objects and the memory of one end, and runs the turns in which it waits. */
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
#define SPIN_TURNS    2000 /* turns for which a client spins before it sleeps for NAP_US */
#define NAP_US        50
#define LINGER_NS     3000000000
#define LINGER_MS     100
#define EVENT_MS      100    /* --events: longest sleep, after which the connection is checked */
#define QUEUE_MIN     16     /* requests: room for the words between both ends */
#define CQ_DEPTH_MOST 65536u /* entries: deeper queues leave the processor's caches */
#define CREATE_MANY   256    /* idle QPs that one call creates */

int
perf_fail(const char *what, int rc)
{
	const char *why = saker_error();

	fprintf(stderr, "saker-perf: %s: %s%s%s\n", what, strerror(-rc), why[0] != '\0' ? ": " : "",
		why);
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

/* Arms the CQs, or, if they are armed and had no completion since, sleeps until one has. */
static void
sleep_for_event(struct perf_end *e)
{
	struct saker_cq *cq;

	if (e->armed)
		saker_wait(e->s, EVENT_MS);
	for (uint32_t i = 0; !e->armed && i < e->ncq; i++)
		saker_cq_arm(e->cq[i], false);
	while (e->armed && saker_cq_event(e->s, &cq) == 1)
		;
	e->armed = !e->armed;
}

void
perf_idle(void *end)
{
	struct perf_end *e = end;

	if (e->other != NULL)
		eng_poll(e->other, 0, eng_clock());
	if (e->engine != NULL)
		eng_poll(e->engine, 0, eng_clock());
	else if (e->o->events && !e->for_word)
		sleep_for_event(e);
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
	/* A turn that sleeps lasts much longer than one that polls. */
	return ++e->turns % (e->o->events ? 16 : 16384) ? 0 : check_events(e);
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

/* Creates CQs. Each request of a QP may be signalled, and as many receives may complete, so that a
 * CQ serves as many QPs as it has room for. */
static int
make_cqs(struct perf_end *e)
{
	uint32_t entries = 2 * (e->o->depth + QUEUE_MIN);
	struct saker_device dev;
	int rc = saker_device(e->s, &dev);

	if (rc < 0)
		return perf_fail("querying the device", rc);
	e->cq_qps =
		SK_MIN(SK_MAX(SK_MIN(dev.max_cq_depth, CQ_DEPTH_MOST) / entries, 1u), e->o->qps);
	e->cq = calloc((e->o->qps + e->cq_qps - 1) / e->cq_qps, sizeof(struct saker_cq *));
	if (e->cq == NULL)
		return perf_fail("allocating memory for the test", -ENOMEM);
	for (; e->ncq * e->cq_qps < e->o->qps; e->ncq++) {
		rc = saker_cq_create(e->s, entries * e->cq_qps, NULL, &e->cq[e->ncq]);
		if (rc < 0)
			return perf_fail("creating a CQ", rc);
	}
	return 0;
}

static int
make_qps(struct perf_end *e)
{
	for (uint32_t i = 0; i < e->nqp;) {
		bool works = i < e->o->qps;
		struct saker_cq *cq = e->cq[works ? i / e->cq_qps : 0];
		struct saker_qp_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.sq_depth = works ? SK_MAX(e->o->depth, QUEUE_MIN) : QUEUE_MIN,
			.rq_depth = works ? SK_MAX(e->o->depth, QUEUE_MIN) : QUEUE_MIN,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline = works ? SK_MAX(e->o->inline_max, 8u) : 8,
			.transport = e->o->transport,
		};
		uint32_t n = works ? 1 : SK_MIN(e->nqp - i, (uint32_t)CREATE_MANY);
		int rc = saker_qp_create_many(e->pd, &attr, n, &e->qp[i]);

		if (rc < (int)n)
			return perf_fail("creating a QP", rc);
		i += n;
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
	e->part = ((uint64_t)e->o->size_last + 4095) / 4096 * 4096;
	len = perf_words_off(e, e->o->qps);
	e->qp = calloc(e->nqp, sizeof(*e->qp));
	e->flow = calloc(e->o->qps, sizeof(*e->flow));
	TAILQ_INIT(&e->ready);
	e->buf = saker_alloc(s, len);
	if (e->qp == NULL || e->flow == NULL || e->buf == NULL)
		return perf_fail("allocating memory for the test", -ENOMEM);
	if ((rc = saker_pd_create(s, &e->pd)) < 0)
		return perf_fail("creating a PD", rc);
	if ((rc = saker_mr_create(e->pd, e->buf, len, RIGHTS, &e->mr)) < 0)
		return perf_fail("registering memory", rc);
	return make_cqs(e) || make_qps(e) ? -1 : 0;
}

void
perf_end_close(struct perf_end *e)
{
	if (e->s != NULL)
		saker_close(e->s);
	free(e->listener);
	free(e->cq);
	free(e->qp);
	free(e->flow);
	if (e->engine == NULL)
		return;
	if (e->s != NULL)
		eng_detach(e->engine, e->client);
	while (e->s != NULL && !eng_client_gone(e->engine, e->client))
		perf_idle(e);
	eng_destroy(e->engine);
}

void
perf_linger(struct perf_end *e)
{
	uint64_t last = eng_clock();
	struct saker_event ev;

	while (eng_clock() - last < LINGER_NS) {
		if (e->engine == NULL)
			saker_wait(e->s, LINGER_MS);
		else if (eng_poll(e->engine, 0, eng_clock()))
			last = eng_clock();
		if (saker_event(e->s, &ev) == 1 && ev.type == SAKER_EV_DISCONNECTED)
			return;
	}
}
