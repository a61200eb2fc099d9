/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells. The stage polls the doorbell ring of a hot client in each turn, and the ring of a cold
 * client in every 16th turn, so that many idle clients cost little. A turn takes a limited number
 * of doorbells from each client and from all of them; the next turn continues with the client at
 * which it stopped.
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

/* Takes the client out of its list. */
static void
bells_leave(struct eng_stage *s, struct eng_client_stage *cs)
{
	if (s->next_bell == cs)
		s->next_bell = TAILQ_NEXT(cs, next);
	TAILQ_REMOVE(cs->cold ? &s->cold : &s->hot, cs, next);
	cs->cold ? s->ncold-- : s->nhot--;
}

void
eng_doorbells_del(struct eng_stage *s, struct eng_client *c)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	if (!cs->added)
		return;
	cs->added = false;
	bells_leave(s, cs);
}

static void
set_cold(struct eng_stage *s, struct eng_client_stage *cs, bool cold)
{
	bells_leave(s, cs);
	cs->cold = cold;
	cs->quiet = 0;
	TAILQ_INSERT_TAIL(cold ? &s->cold : &s->hot, cs, next);
	cold ? s->ncold++ : s->nhot++;
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

/* Takes up to `most` doorbells. Returns their number. */
static unsigned
take_bells(struct eng_stage *s, struct eng_client_stage *cs, unsigned most)
{
	const struct shm_doorbell *e;
	unsigned n = 0;

	most = SK_MIN(most, bells_most(cs));
	while (n < most && (e = shm_take_peek(&cs->doorbell)) != NULL && !cs->put_out) {
		ring(s, cs, __atomic_load_n(&e->what, __ATOMIC_RELAXED));
		shm_take_pop(&cs->doorbell);
		n++;
	}
	shm_take_publish(&cs->doorbell);
	cs->round.credit -= n * ENG_COST_VISIT;
	cs->user->round.credit -= n * ENG_COST_VISIT;
	return n;
}

/* Returns the number of doorbells taken. */
static unsigned
poll_cold(struct eng_stage *s, unsigned most)
{
	uint32_t n = (s->ncold + (1u << ENG_COLD_SHARE_LOG2) - 1) >> ENG_COLD_SHARE_LOG2;
	unsigned taken = 0;

	while (n-- > 0 && taken < most) {
		struct eng_client_stage *cs = TAILQ_FIRST(&s->cold);

		if (cs == NULL)
			break;
		TAILQ_REMOVE(&s->cold, cs, next);
		TAILQ_INSERT_TAIL(&s->cold, cs, next);
		if (!has_bell(cs))
			continue;
		taken += take_bells(s, cs, most - taken);
		set_cold(s, cs, false);
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
		set_cold(s, cs, true);
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
	TAILQ_FOREACH (cs, &s->cold, next)
		if (has_bell(cs))
			return true;
	return false;
}

/* The flag has one bit for each loop, because a client may have QPs on stages of several loops. */
void
eng_stage_show_sleep(struct eng_stage *s, unsigned loop, bool sleeps)
{
	const struct eng_client_list *lists[] = {&s->hot, &s->cold};
	uint32_t bit = 1u << loop;
	struct eng_client_stage *cs;

	for (unsigned k = 0; k < SK_ARRAY_LEN(lists); k++) {
		TAILQ_FOREACH (cs, lists[k], next) {
			uint32_t *flag = &cs->client->header->engine_sleeps;

			if (sleeps)
				__atomic_fetch_or(flag, bit, __ATOMIC_SEQ_CST);
			else
				__atomic_fetch_and(flag, ~bit, __ATOMIC_SEQ_CST);
		}
	}
}
