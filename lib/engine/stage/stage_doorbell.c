/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Doorbells. The stage polls the doorbell ring of a hot client in each turn, and the ring of a cold
 * client in every 16th turn, so that many idle clients cost little.
 */
#include "stage_priv.h"

#include "../../base/mem.h"

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

void
eng_doorbells_del(struct eng_stage *s, struct eng_client *c)
{
	struct eng_client_stage *cs = &c->stage[s->index];

	if (!cs->added)
		return;
	cs->added = false;
	TAILQ_REMOVE(cs->cold ? &s->cold : &s->hot, cs, next);
	cs->cold ? s->ncold-- : s->nhot--;
}

static void
set_cold(struct eng_stage *s, struct eng_client_stage *cs, bool cold)
{
	TAILQ_REMOVE(cs->cold ? &s->cold : &s->hot, cs, next);
	cs->cold ? s->ncold-- : s->nhot--;
	cs->cold = cold;
	cs->quiet = 0;
	TAILQ_INSERT_TAIL(cold ? &s->cold : &s->hot, cs, next);
	cold ? s->ncold++ : s->nhot++;
}

/* Executes one doorbell. Returns false when no notice is free: it then stays in the ring. */
static bool
ring(struct eng_stage *s, struct eng_client_stage *cs, uint32_t what)
{
	struct eng_ctl *m;
	struct eng_qp *qp;

	if (what == SHM_RING_MAILBOX) {
		m = eng_notice_get(s, ENG_EC_MAILBOX, cs->client);
		if (m == NULL)
			return false;
		eng_notice_send(s, m);
		return true;
	}
	qp = what < cs->nqps ? cs->qps[what] : NULL;
	if (qp == NULL) {
		sk_count(s->counters, ENG_BAD_DOORBELL);
		return true;
	}
	/* The flag is cleared before the queue is polled, so that a later post rings again. */
	shm_pend_clear(&qp->shared->pending);
	eng_qp_activate(s, qp);
	return true;
}

static bool
take_bells(struct eng_stage *s, struct eng_client_stage *cs)
{
	const struct shm_doorbell *e;
	unsigned n = 0;

	while (n < ENG_DOORBELLS && (e = shm_take_peek(&cs->doorbell)) != NULL) {
		if (!ring(s, cs, __atomic_load_n(&e->what, __ATOMIC_RELAXED)))
			break;
		shm_take_pop(&cs->doorbell);
		n++;
	}
	if (n > 0)
		shm_take_publish(&cs->doorbell);
	return n > 0;
}

static bool
poll_cold(struct eng_stage *s)
{
	uint32_t n = (s->ncold + (1u << ENG_COLD_SHARE_LOG2) - 1) >> ENG_COLD_SHARE_LOG2;
	bool work = false;

	while (n-- > 0) {
		struct eng_client_stage *cs = TAILQ_FIRST(&s->cold);

		if (cs == NULL)
			break;
		TAILQ_REMOVE(&s->cold, cs, next);
		TAILQ_INSERT_TAIL(&s->cold, cs, next);
		if (!cs->client->dead && take_bells(s, cs)) {
			set_cold(s, cs, false);
			work = true;
		}
	}
	return work;
}

bool
eng_doorbells_poll(struct eng_stage *s)
{
	struct eng_client_stage *cs, *next;
	bool work = false;

	for (cs = TAILQ_FIRST(&s->hot); cs != NULL; cs = next) {
		next = TAILQ_NEXT(cs, next);
		if (shm_take_peek(&cs->doorbell) != NULL && !cs->client->dead &&
			take_bells(s, cs)) {
			cs->quiet = 0;
			work = true;
		} else if (++cs->quiet >= ENG_COLD_AFTER && s->nhot > ENG_HOT_MIN) {
			set_cold(s, cs, true);
		}
	}
	if (s->ncold > 0)
		work |= poll_cold(s);
	return work;
}

bool
eng_stage_rung(struct eng_stage *s)
{
	struct eng_client_stage *cs;

	TAILQ_FOREACH (cs, &s->hot, next)
		if (!cs->client->dead && shm_take_peek(&cs->doorbell) != NULL)
			return true;
	TAILQ_FOREACH (cs, &s->cold, next)
		if (!cs->client->dead && shm_take_peek(&cs->doorbell) != NULL)
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
