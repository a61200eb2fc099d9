/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread that fetches missing pages. It takes the requests of all stages from their rings,
 * queues them by client, and fetches for the clients in turn. It sleeps on an eventfd when it has
 * no request.
 */
#include "pages.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_ring.h>

#include "../../base/wake.h"
#include "sigbus.h"

#define PAGES_TAKE 64 /* requests that the thread takes from a ring at once */

TAILQ_HEAD(pages_turn, pages_client);

struct pages_client {
	struct eng_fetch_req *first, **end; /* its requests */
	TAILQ_ENTRY(pages_client) next;     /* in `turn`, while it has requests */
};

struct eng_pages {
	unsigned nstages;
	struct rte_ring *in[ENG_MAX_STAGES], *out[ENG_MAX_STAGES]; /* of struct eng_fetch_req * */
	struct eng_fetch_req *reqs[ENG_MAX_STAGES];
	void (*wake)(void *arg, unsigned stage);
	void *arg;
	int fd;       /* eventfd: requests are in the rings, or `stop` is set */
	bool asleep;  /* atomic: a write to `fd` is necessary */
	bool stop;    /* atomic */
	bool running; /* of the thread that starts it */
	pthread_t thread;
	/* the thread */
	struct pages_client *clients; /* [nclients] */
	uint32_t nclients;
	struct pages_turn turn;
};

static void
pages_queue(struct eng_pages *p, struct eng_fetch_req *r)
{
	struct pages_client *c = &p->clients[r->client % p->nclients];

	r->next = NULL;
	if (c->first == NULL) {
		c->end = &c->first;
		TAILQ_INSERT_TAIL(&p->turn, c, next);
	}
	*c->end = r;
	c->end = &r->next;
}

static void
pages_take(struct eng_pages *p)
{
	void *r[PAGES_TAKE];

	for (unsigned s = 0; s < p->nstages; s++) {
		unsigned n = rte_ring_sc_dequeue_burst(p->in[s], r, PAGES_TAKE, NULL);

		for (unsigned i = 0; i < n; i++)
			pages_queue(p, r[i]);
	}
}

/* Serves one request of the client whose turn it is. */
static void
pages_serve(struct eng_pages *p)
{
	struct pages_client *c = TAILQ_FIRST(&p->turn);
	struct eng_fetch_req *r = c->first;
	unsigned stage = r->stage;

	TAILQ_REMOVE(&p->turn, c, next);
	c->first = r->next;
	if (c->first != NULL)
		TAILQ_INSERT_TAIL(&p->turn, c, next);
	eng_fetch(r->guard, r->at, r->len);
	/* The ring has an entry for each request of the stage, so it is never full. */
	rte_ring_sp_enqueue(p->out[stage], r);
	p->wake(p->arg, stage);
}

static bool
pages_empty(const struct eng_pages *p)
{
	for (unsigned s = 0; s < p->nstages; s++)
		if (!rte_ring_empty(p->in[s]))
			return false;
	return true;
}

/* Sleeps until a stage passes a request. The stage reads `asleep` after it has passed the request,
 * and the thread reads the rings after it has set `asleep`. */
static void
pages_sleep(struct eng_pages *p)
{
	struct pollfd f = {.fd = p->fd, .events = POLLIN};
	uint64_t n;

	__atomic_store_n(&p->asleep, true, __ATOMIC_SEQ_CST);
	shm_fence();
	if (pages_empty(p) && !__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE))
		poll(&f, 1, -1);
	__atomic_store_n(&p->asleep, false, __ATOMIC_SEQ_CST);
	while (read(p->fd, &n, sizeof(n)) > 0)
		;
}

static void *
pages_run(void *arg)
{
	const struct sched_param ordinary = {0};
	struct eng_pages *p = arg;

	/* The thread may share its processor with programs, which a busy client must not hold up.
	 * A filter of system calls may forbid the change, which is rarely necessary. */
	if (sched_getscheduler(0) != SCHED_OTHER)
		pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
	while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {
		pages_take(p);
		if (TAILQ_EMPTY(&p->turn))
			pages_sleep(p);
		else
			pages_serve(p);
	}
	return NULL;
}

/* Creates the requests and the rings of a stage. A ring has one entry less than its size. Returns
 * false when memory is exhausted. */
static bool
pages_stage(struct eng_pages *p, const struct eng *e, unsigned s, uint32_t requests)
{
	uint32_t entries = 2;

	while (entries <= requests)
		entries *= 2;
	p->in[s] = eng_ring_create(e, "pi", s, 0, sizeof(void *), entries);
	p->out[s] = eng_ring_create(e, "po", s, 0, sizeof(void *), entries);
	p->reqs[s] = calloc(requests, sizeof(p->reqs[s][0]));
	if (p->in[s] == NULL || p->out[s] == NULL || p->reqs[s] == NULL)
		return false;
	for (uint32_t i = 0; i < requests; i++) {
		p->reqs[s][i].number = i;
		p->reqs[s][i].stage = (uint8_t)s;
	}
	return true;
}

struct eng_pages *
eng_pages_create(const struct eng *e, unsigned nstages, uint32_t requests,
	void (*wake)(void *arg, unsigned stage), void *arg)
{
	struct eng_pages *p = calloc(1, sizeof(*p));
	bool all = true;

	if (p == NULL)
		return NULL;
	p->nstages = nstages;
	p->wake = wake;
	p->arg = arg;
	p->nclients = e->cfg.limits.clients;
	p->clients = calloc(p->nclients, sizeof(p->clients[0]));
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	TAILQ_INIT(&p->turn);
	for (unsigned s = 0; s < nstages; s++)
		all &= pages_stage(p, e, s, requests);
	if (all && p->clients != NULL && p->fd >= 0)
		return p;
	eng_pages_destroy(p);
	return NULL;
}

void
eng_pages_destroy(struct eng_pages *p)
{
	if (p == NULL)
		return;
	if (p->running) {
		__atomic_store_n(&p->stop, true, __ATOMIC_SEQ_CST);
		sk_wake(p->fd);
		pthread_join(p->thread, NULL);
	}
	for (unsigned s = 0; s < p->nstages; s++) {
		rte_ring_free(p->in[s]);
		rte_ring_free(p->out[s]);
		free(p->reqs[s]);
	}
	if (p->fd >= 0)
		close(p->fd);
	free(p->clients);
	free(p);
}

int
eng_pages_start(struct eng_pages *p)
{
	int rc = 0;

	if (!p->running)
		rc = rte_ctrl_thread_create(&p->thread, "saker-pages", NULL, pages_run, p);
	p->running |= rc == 0;
	return rc > 0 ? -rc : rc;
}

struct eng_fetch_req *
eng_pages_req(struct eng_pages *p, unsigned stage, uint32_t number)
{
	return &p->reqs[stage][number];
}

void
eng_pages_submit(struct eng_pages *p, struct eng_fetch_req *r)
{
	r->busy = true;
	rte_ring_sp_enqueue(p->in[r->stage], r);
	shm_fence();
	if (__atomic_load_n(&p->asleep, __ATOMIC_RELAXED))
		sk_wake(p->fd);
}

bool
eng_pages_any(const struct eng_pages *p, unsigned stage)
{
	return !rte_ring_empty(p->out[stage]);
}

struct eng_fetch_req *
eng_pages_done(struct eng_pages *p, unsigned stage)
{
	struct eng_fetch_req *r;
	void *out;

	if (rte_ring_sc_dequeue(p->out[stage], &out) != 0)
		return NULL;
	r = out;
	r->busy = false;
	return r;
}
