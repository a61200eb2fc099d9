/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory protocols between two threads, for ThreadSanitizer: a client's side and an
 * engine's side with nothing but rings and flags between them. Each side polls only what the
 * protocol requires, so that a lost doorbell, event or wake-up stops everything, and the alarm ends
 * the program. Exits with status 1 if an entry is lost, duplicated or damaged.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../lib/shm/shm_ring.h"

#define QPS      5
#define LOG2_SQ  4
#define LOG2_CQ  8 /* room for all outstanding completions of QPS full queues */
#define LOG2_DB  3
#define ENTRIES  400000u /* requests of each QP */
#define DEADLINE 300     /* seconds; a healthy run takes a few */

struct entry { /* a request */
	uint32_t turn, seq;
	uint64_t check;
};

struct note { /* a doorbell or an event */
	uint32_t turn, what;
};

struct done { /* a completion */
	uint32_t turn, qp;
	uint64_t seq;
};

static struct home {
	struct shm_cons sq_cons[QPS], cq_cons, db_cons, ev_cons;
	struct entry sq[QPS][1u << LOG2_SQ];
	struct done cq[1u << LOG2_CQ];
	struct note db[1u << LOG2_DB], ev[1u << LOG2_DB];
	_Alignas(SHM_LINE) uint32_t pending[QPS];
	_Alignas(SHM_LINE) uint32_t arm;
	_Alignas(SHM_LINE) uint32_t engine_sleeps;
	_Alignas(SHM_LINE) uint32_t client_sleeps;
	_Alignas(SHM_LINE) uint32_t engine_wakes; /* takes the place of its eventfd */
	_Alignas(SHM_LINE) uint32_t client_wakes;
} home;

static struct shm_ring_at
at(const void *entries, const void *cons, size_t stride, uint8_t log2)
{
	const struct shm_ring_at a = {
		.entries = (uint64_t)((const uint8_t *)entries - (const uint8_t *)&home),
		.cons = (uint64_t)((const uint8_t *)cons - (const uint8_t *)&home),
		.stride = (uint16_t)stride,
		.log2_count = log2};

	return a;
}

static void
die(const char *what, uint64_t is, uint64_t should)
{
	fprintf(stderr, "ring: %s: %llu instead of %llu\n", what, (unsigned long long)is,
		(unsigned long long)should);
	exit(1);
}

/* Wakes the other side if it sleeps. Called after a push. */
static void
wake(const uint32_t *sleeps, uint32_t *wakes)
{
	shm_fence();
	if (__atomic_load_n(sleeps, __ATOMIC_RELAXED) != 0)
		__atomic_fetch_add(wakes, 1, __ATOMIC_RELEASE);
}

/* Sleeps unless `ring` has an entry: sets the flag, executes a fence and polls once more. */
static void
sleep_on(const struct shm_take *ring, uint32_t *sleeps, const uint32_t *wakes, uint32_t *seen)
{
	__atomic_store_n(sleeps, 1, __ATOMIC_SEQ_CST);
	shm_fence();
	if (shm_take_peek(ring) == NULL)
		while (__atomic_load_n(wakes, __ATOMIC_ACQUIRE) == *seen)
			sched_yield();
	*seen = __atomic_load_n(wakes, __ATOMIC_ACQUIRE);
	__atomic_store_n(sleeps, 0, __ATOMIC_RELEASE);
}

static void
note(struct shm_prod *p, uint32_t what)
{
	if (shm_prod_room(p) == 0)
		die("a doorbell or event ring is full", what, 0);
	((struct note *)shm_prod_entry(p))->what = what;
	shm_prod_push(p);
}

static bool
note_take(struct shm_take *t, uint32_t *what)
{
	const struct note *n = shm_take_peek(t);

	if (n == NULL)
		return false;
	*what = n->what;
	shm_take_pop(t);
	shm_take_publish(t);
	return true;
}

/* ---- The engine: takes requests of queues that rang, completes each ---- */

struct engine {
	struct shm_take db, sq[QPS];
	struct shm_prod cq, ev;
	uint32_t next[QPS], wakes_seen;
};

static void
engine_serve(struct engine *e, uint32_t q)
{
	const struct entry *in;
	bool any = false;

	while ((in = shm_take_peek(&e->sq[q])) != NULL) {
		struct done *out;

		if (in->seq != e->next[q] || in->check != ~((uint64_t)in->seq * QPS + q))
			die("a request is lost, doubled or damaged", in->seq, e->next[q]);
		shm_take_pop(&e->sq[q]);
		if (shm_prod_room(&e->cq) == 0)
			die("the completion queue is full", q, 0);
		/* A client that receives the completion finds the request's entry free. */
		shm_take_publish(&e->sq[q]);
		out = shm_prod_entry(&e->cq);
		out->qp = q;
		out->seq = e->next[q]++;
		shm_prod_push(&e->cq);
		any = true;
	}
	if (any && shm_arm_fire(&home.arm, false)) {
		note(&e->ev, q);
		wake(&home.client_sleeps, &home.client_wakes);
	}
}

static void *
engine_main(void *arg)
{
	struct engine *e = arg;
	uint64_t left = (uint64_t)QPS * ENTRIES;

	while (left > 0) {
		uint32_t q, before;

		if (!note_take(&e->db, &q)) {
			sleep_on(&e->db, &home.engine_sleeps, &home.engine_wakes, &e->wakes_seen);
			continue;
		}
		if (q >= QPS)
			die("a doorbell of nobody", q, 0);
		shm_pend_clear(&home.pending[q]);
		before = e->next[q];
		engine_serve(e, q);
		left -= e->next[q] - before;
	}
	return NULL;
}

/* ---- The client: posts while queues and credits allow it, else arms and sleeps ---- */

struct client {
	struct shm_prod db, sq[QPS];
	struct shm_take cq, ev;
	uint32_t posted[QPS], done[QPS], wakes_seen;
};

static bool
client_post(struct client *c, uint32_t q, uint32_t most)
{
	uint32_t n = 0;

	/* Each request has a completion. No more requests are outstanding than the queue is deep,
	 * so that the CQ has room for all. */
	while (n < most && c->posted[q] < ENTRIES && c->posted[q] - c->done[q] < 1u << LOG2_SQ &&
		shm_prod_room(&c->sq[q]) > 0) {
		struct entry *e = shm_prod_entry(&c->sq[q]);

		e->seq = c->posted[q]++;
		e->check = ~((uint64_t)e->seq * QPS + q);
		shm_prod_push(&c->sq[q]);
		n++;
	}
	if (n > 0 && shm_pend(&home.pending[q])) {
		note(&c->db, q);
		wake(&home.engine_sleeps, &home.engine_wakes);
	}
	return n > 0;
}

static bool
client_poll(struct client *c)
{
	const struct done *d;
	bool any = false;

	while ((d = shm_take_peek(&c->cq)) != NULL) {
		if (d->qp >= QPS || d->seq != c->done[d->qp])
			die("a completion is lost, doubled or damaged", d->seq, c->done[0]);
		c->done[d->qp]++;
		shm_take_pop(&c->cq);
		any = true;
	}
	shm_take_publish(&c->cq);
	return any;
}

static bool
client_finished(const struct client *c)
{
	for (uint32_t q = 0; q < QPS; q++)
		if (c->done[q] != ENTRIES)
			return false;
	return true;
}

static void
client_main(struct client *c)
{
	for (uint32_t round = 0; !client_finished(c); round++) {
		bool any = false;
		uint32_t which;

		/* Discards the events of an arm after which polling found the completion. */
		while (note_take(&c->ev, &which))
			;
		for (uint32_t q = 0; q < QPS; q++)
			any |= client_post(c, q, 1 + (round + q) % 7);
		any |= client_poll(c);
		if (any)
			continue;
		/* Arms, polls once more, and only then waits for the event. */
		shm_arm(&home.arm, false);
		if (client_poll(c))
			continue;
		while (!note_take(&c->ev, &which))
			sleep_on(&c->ev, &home.client_sleeps, &home.client_wakes, &c->wakes_seen);
	}
}

static void
init(struct engine *e, struct client *c)
{
	struct shm_ring_at a;

	for (uint32_t q = 0; q < QPS; q++) {
		a = at(home.sq[q], &home.sq_cons[q], sizeof(struct entry), LOG2_SQ);
		shm_prod_init(&c->sq[q], &home, &a);
		shm_take_init(&e->sq[q], &home, &a);
	}
	a = at(home.cq, &home.cq_cons, sizeof(struct done), LOG2_CQ);
	shm_prod_init(&e->cq, &home, &a);
	shm_take_init(&c->cq, &home, &a);
	a = at(home.db, &home.db_cons, sizeof(struct note), LOG2_DB);
	shm_prod_init(&c->db, &home, &a);
	shm_take_init(&e->db, &home, &a);
	a = at(home.ev, &home.ev_cons, sizeof(struct note), LOG2_DB);
	shm_prod_init(&e->ev, &home, &a);
	shm_take_init(&c->ev, &home, &a);
}

int
main(void)
{
	static struct engine engine;
	static struct client client;
	pthread_t t;

	alarm(DEADLINE);
	init(&engine, &client);
	pthread_create(&t, NULL, engine_main, &engine);
	client_main(&client);
	pthread_join(t, NULL);
	printf("ring: %u requests over %u queues, each completed once\n", QPS * ENTRIES, QPS);
	return 0;
}
