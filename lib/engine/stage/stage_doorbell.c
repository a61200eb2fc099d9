/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells. The stage polls the doorbell ring of a hot client in each turn, and the ring of a cold
 * client in every 64th turn. A look at a cold client is two loads, but its ring lies in a page of
 * its own, whose address the processor has to translate: 31 idle clients cost a neighbour a seventh
 * of its rate when a turn looked at two of them. A request after idleness waits 63 turns at most. A
 * turn takes a limited number of doorbells from each client and from all of them; the next turn
 * continues with the client at which it stopped.
 */
#include "stage_priv.h"

#include "../../base/mem.h"

#define SECOND_NS      1000000000ull
#define BELLS_LEAST    2  /* doorbells of a client that a turn takes in any case */
#define BELLS_PATIENCE 32 /* doorbells without work that halve this number */

void
eng_doorbells_add(struct eng_stage *s, struct eng_client *c)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	if (cs->added)
		return;
	cs->added = true;
	cs->cold = false;
	cs->quiet = 0;
	TAILQ_INSERT_TAIL(&s->hot, cs, next);
	s->nhot++;
}

static void
hot_leave(struct eng_stage *s, struct eng_client_stage *cs)
{
	if (s->next_bell == cs)
		s->next_bell = TAILQ_NEXT(cs, next);
	TAILQ_REMOVE(&s->hot, cs, next);
	s->nhot--;
}

/* Takes a client from s->cold. Another one moves to its place. */
static void
cold_leave(struct eng_stage *s, struct eng_client_stage *cs)
{
	struct eng_cold *at = &s->cold[cs->cold_at];

	*at = s->cold[--s->ncold];
	at->cs->cold_at = cs->cold_at;
	cs->cold = false;
}

void
eng_doorbells_del(struct eng_stage *s, struct eng_client *c)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	if (!cs->added)
		return;
	cs->added = false;
	cs->cold ? cold_leave(s, cs) : hot_leave(s, cs);
}

/* Makes a hot client cold. The stage takes no doorbell of a cold client, so that the place of the
 * next one stays the same. */
static __attribute__((noinline)) void
set_cold(struct eng_stage *s, struct eng_client_stage *cs)
{
	const struct shm_take *d = &cs->doorbell;

	hot_leave(s, cs);
	cs->cold = true;
	cs->cold_at = s->ncold++;
	s->cold[cs->cold_at] = (struct eng_cold){.bell = shm_take_at(d, d->next),
		.cs = cs,
		.turn = shm_turn(d->next, d->log2_count)};
}

static __attribute__((noinline)) void
set_hot(struct eng_stage *s, struct eng_client_stage *cs)
{
	cold_leave(s, cs);
	cs->quiet = 0;
	TAILQ_INSERT_TAIL(&s->hot, cs, next);
	s->nhot++;
}

/* Counts an invalid doorbell. A client that rings too many within a second is put out. */
static void
bad_doorbell(struct eng_stage *s, struct eng_client_stage *cs)
{
	sk_count(s->counters, ENG_BAD_DOORBELL);
	if (s->now - cs->bad_since >= SECOND_NS) {
		cs->bad_since = s->now;
		cs->bad_doorbells = 0;
	}
	if (++cs->bad_doorbells > cs->nqps + ENG_BAD_DOORBELLS)
		eng_notice_bad(s, cs);
}

/* Executes one doorbell. */
static void
ring(struct eng_stage *s, struct eng_client_stage *cs, uint32_t what)
{
	struct eng_qp *qp;

	if (what == SHM_RING_MAILBOX) {
		eng_notice_mailbox(s, cs);
		return;
	}
	qp = what < cs->nqps ? cs->qps[what] : NULL;
	if (qp == NULL) {
		bad_doorbell(s, cs);
		return;
	}
	/* The flag is cleared before the queue is polled, so that a later post rings again. */
	shm_pend_clear(&qp->shared->pending);
	if (qp->active == EQP_ACTIVE)
		eng_doorbell_useless(cs);
	else
		eng_qp_activate(s, qp);
}

/* Returns whether the ring of a client has a doorbell that the stage may take. */
static inline bool
has_bell(const struct eng_client_stage *cs)
{
	return shm_take_peek(&cs->doorbell) != NULL && !cs->client->dead && !cs->put_out;
}

/* Returns how many doorbells of a client a turn takes. Doorbells that cause no work make it fewer,
 * down to BELLS_LEAST, until one causes work: a client that only rings delays its neighbours less
 * than a client that works. */
static inline unsigned
bells_most(const struct eng_client_stage *cs)
{
	return SK_MAX(
		(unsigned)ENG_DOORBELLS >> (cs->useless / BELLS_PATIENCE), (unsigned)BELLS_LEAST);
}

/* Returns the QP of the doorbell `ahead` places behind the next one, or NULL. */
static inline const struct eng_qp *
bell_qp(const struct eng_client_stage *cs, uint32_t ahead)
{
	const struct shm_take *d = &cs->doorbell;
	const struct shm_doorbell *e = shm_take_at(d, d->next + ahead);
	uint32_t what;

	if (__atomic_load_n(&e->turn, __ATOMIC_ACQUIRE) != shm_turn(d->next + ahead, d->log2_count))
		return NULL;
	what = __atomic_load_n(&e->what, __ATOMIC_RELAXED);
	return what < cs->nqps ? cs->qps[what] : NULL;
}

/* Prefetches what the doorbells behind the next one need. */
static inline void
bells_ahead(const struct eng_client_stage *cs)
{
	const struct eng_qp *qp = bell_qp(cs, ENG_AHEAD_PART);

	if (qp == NULL)
		return;
	eng_qp_part_ahead(qp);
	__builtin_prefetch(qp->shared);
	if (qp->sq.entries != NULL) {
		/* The entry, and the one behind it: the stage looks whether it is posted, too. */
		__builtin_prefetch(shm_take_at(&qp->sq, qp->sq.next));
		__builtin_prefetch(shm_take_at(&qp->sq, qp->sq.next + 1));
	}
	sk_prefetch(bell_qp(cs, ENG_AHEAD_QP), 3);
}

/* Takes up to `most` doorbells. Returns their number. */
static unsigned
take_bells(struct eng_stage *s, struct eng_client_stage *cs, unsigned most)
{
	const struct shm_doorbell *e;
	unsigned n = 0;

	most = SK_MIN(most, bells_most(cs));
	while (n < most && (e = shm_take_peek(&cs->doorbell)) != NULL && !cs->put_out) {
		bells_ahead(cs);
		ring(s, cs, __atomic_load_n(&e->what, __ATOMIC_RELAXED));
		shm_take_pop(&cs->doorbell);
		n++;
	}
	shm_take_publish(&cs->doorbell);
	eng_round_owe(cs, (int64_t)n * ENG_COST_VISIT);
	return n;
}

static inline bool
cold_has_bell(const struct eng_cold *c)
{
	return __atomic_load_n(&c->bell->turn, __ATOMIC_ACQUIRE) == c->turn;
}

/* Polls a part of the cold clients. Returns the number of doorbells taken. */
static __attribute__((noinline)) unsigned
poll_cold(struct eng_stage *s, unsigned most)
{
	unsigned taken = 0;

	s->cold_due = SK_MIN(s->cold_due, (uint32_t)ENG_COLD_TURNS) + s->ncold;
	while (s->cold_due >= ENG_COLD_TURNS && s->ncold > 0 && taken < most) {
		struct eng_client_stage *cs;

		if (s->next_cold >= s->ncold)
			s->next_cold = 0;
		cs = s->cold[s->next_cold].cs;
		if (cold_has_bell(&s->cold[s->next_cold]) && has_bell(cs)) {
			/* Leaves the list, and another client has its place now. */
			set_hot(s, cs);
			taken += take_bells(s, cs, most - taken);
		} else {
			s->next_cold++;
			s->cold_due -= ENG_COLD_TURNS;
		}
	}
	return taken;
}

/* Polls one hot client. Returns the number of doorbells taken, at most `most`. */
static unsigned
poll_hot(struct eng_stage *s, struct eng_client_stage *cs, unsigned most)
{
	if (has_bell(cs)) {
		cs->quiet = 0;
		return take_bells(s, cs, most);
	}
	if (++cs->quiet >= ENG_COLD_AFTER && s->nhot > ENG_HOT_MIN)
		set_cold(s, cs);
	return 0;
}

bool
eng_doorbells_poll(struct eng_stage *s)
{
	struct eng_client_stage *cs = s->next_bell;
	unsigned taken = 0;

	for (uint32_t n = s->nhot; n > 0 && taken < ENG_DOORBELLS_TURN; n--) {
		if (cs == NULL)
			cs = TAILQ_FIRST(&s->hot);
		s->next_bell = TAILQ_NEXT(cs, next);
		taken += poll_hot(s, cs, ENG_DOORBELLS_TURN - taken);
		cs = s->next_bell;
	}
	if (s->ncold > 0)
		taken += poll_cold(s, ENG_DOORBELLS);
	return taken > 0;
}

bool
eng_stage_rung(struct eng_stage *s)
{
	struct eng_client_stage *cs;

	TAILQ_FOREACH (cs, &s->hot, next)
		if (has_bell(cs))
			return true;
	for (uint32_t i = 0; i < s->ncold; i++)
		if (cold_has_bell(&s->cold[i]) && has_bell(s->cold[i].cs))
			return true;
	return false;
}

/* The flag has one bit for each loop, because a client may have QPs on stages of several loops. */
static void
show_sleep_to(struct eng_client_stage *cs, uint32_t bit, bool sleeps)
{
	uint32_t *flag = &cs->client->header->engine_sleeps;

	if (sleeps)
		__atomic_fetch_or(flag, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(flag, ~bit, __ATOMIC_SEQ_CST);
}

void
eng_stage_show_sleep(struct eng_stage *s, unsigned loop, bool sleeps)
{
	struct eng_client_stage *cs;

	TAILQ_FOREACH (cs, &s->hot, next)
		show_sleep_to(cs, 1u << loop, sleeps);
	for (uint32_t i = 0; i < s->ncold; i++)
		show_sleep_to(s->cold[i].cs, 1u << loop, sleeps);
}
