/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shares of the records and Falcon payloads of a stage. A user holds a record from its
 * allocation until the transport stage frees it, which is when the peer has acknowledged it. The
 * stage that frees a record counts it on a cache line of its own, and this stage reads that count
 * only when a user has used up what it took from its share.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../base/mem.h"
#include "stage_priv.h"

#define SPARE_MAX 128 /* mbufs of s->store that no share counts: those in the caches of lcores */

int
eng_records_init(struct eng_stage *s)
{
	uint32_t size = s->e->cfg.limits.tx_mbufs, lines = s->e->cfg.ntransports + 1;
	size_t bytes = (size_t)s->nusers * lines * sizeof(s->returned[0]);

	s->returned = aligned_alloc(64, bytes);
	if (s->returned == NULL)
		return -ENOMEM;
	memset(s->returned, 0, bytes);
	for (uint32_t u = 0; u < s->nusers; u++)
		s->users[u].returned = s->returned + (size_t)u * lines;
	s->payer = &s->users[SK_USER_INSTANCE];
	return eng_share_init(
		&s->records, &s->e->cfg.limits, size - SK_MIN(size / 8, (uint32_t)SPARE_MAX), 1);
}

void
eng_records_fini(struct eng_stage *s)
{
	sk_share_fini(&s->records);
	free(s->returned);
}

/* Reads how many records of a user were freed by now. Returns how many more the user may allocate
 * without a further unit of its share. */
static uint32_t
refresh(struct eng_stage *s, struct eng_stage_user *u)
{
	uint32_t n = 0;

	for (unsigned k = 0; k <= s->e->cfg.ntransports; k++)
		n += __atomic_load_n(&u->returned[k].n, __ATOMIC_RELAXED);
	u->returned_seen = n;
	return u->share - (u->allocated - n);
}

/* Takes more units of the share. Returns false when the user may not have more records. */
static bool
record_more(struct eng_stage *s, struct eng_stage_user *u)
{
	uint32_t user = (uint32_t)(u - s->users), n = refresh(s, u);

	if (n > 0)
		return true;
	n = SK_MIN(sk_share_room(&s->records, user), (uint32_t)ENG_RECORD_CHUNK);
	if (n == 0 || sk_share_take(&s->records, user, n) != SK_SHARE_OK)
		return false;
	u->share += n;
	return true;
}

/* Returns whether the user may allocate one more record. */
static bool
may_allocate(struct eng_stage *s, struct eng_stage_user *u)
{
	if (u->allocated - u->returned_seen < u->share || record_more(s, u))
		return true;
	s->spent.no_record = true;
	sk_count(s->counters, ENG_TX_SHARE);
	return false;
}

static void
no_mbuf(struct eng_stage *s)
{
	s->spent.no_record = true;
	sk_count(s->counters, ENG_TX_NO_MBUF);
}

struct tcp_rec *
eng_record_get(struct eng_stage *s)
{
	struct eng_stage_user *u = s->payer;
	struct tcp_rec *rec;

	if (!may_allocate(s, u))
		return NULL;
	rec = eng_rec_alloc(s->store);
	if (rec == NULL) {
		no_mbuf(s);
		return NULL;
	}
	u->allocated++;
	*eng_rec_returned(rec) = &u->returned[0];
	return rec;
}

struct fa_buf *
eng_payload_get(struct eng_stage *s)
{
	struct eng_stage_user *u = s->payer;
	struct fa_buf *b;

	if (!may_allocate(s, u))
		return NULL;
	b = eng_fbuf_alloc(s->store);
	if (b == NULL) {
		no_mbuf(s);
		return NULL;
	}
	u->allocated++;
	*eng_fbuf_returned(b) = &u->returned[0];
	return b;
}

void
eng_record_wait(struct eng_stage *s, struct eng_qp *qp)
{
	struct eng_stage_user *u = qp->payer->user;

	qp->active = EQP_STARVED;
	TAILQ_INSERT_TAIL(&u->starved, qp, next);
	if (u->starving)
		return;
	u->starving = true;
	s->starving_rest = 0;
	s->nstarving++;
	TAILQ_INSERT_TAIL(&s->starving, u, next);
}

/* Returns the units of a share that its user has not used. */
static void
trim(struct eng_stage *s, struct eng_stage_user *u)
{
	uint32_t n = refresh(s, u);

	if (n == 0)
		return;
	sk_share_give(&s->records, (uint32_t)(u - s->users), n);
	u->share -= n;
}

/* Wakes QPs of the user for the records that it may have. Returns whether it may have one. */
static bool
wake(struct eng_stage *s, struct eng_stage_user *u)
{
	uint32_t room = refresh(s, u) + sk_share_room(&s->records, (uint32_t)(u - s->users));
	struct eng_qp *qp;

	for (uint32_t n = SK_MIN(room, (uint32_t)ENG_STARVING_WAKE);
		n > 0 && (qp = TAILQ_FIRST(&u->starved)) != NULL; n--)
		eng_qp_activate(s, qp);
	return room > 0;
}

void
eng_records_poll(struct eng_stage *s)
{
	if (s->starving_rest > 0) {
		s->starving_rest--;
		return;
	}
	for (uint32_t n = SK_MIN(s->nusers, (uint32_t)ENG_STARVING_TURN); n > 0; n--) {
		trim(s, &s->users[s->next_trim]);
		s->next_trim = (s->next_trim + 1) % s->nusers;
	}
	for (uint32_t n = SK_MIN(s->nstarving, (uint32_t)ENG_STARVING_TURN); n > 0; n--) {
		struct eng_stage_user *u = TAILQ_FIRST(&s->starving);

		TAILQ_REMOVE(&s->starving, u, next);
		s->starving_idle = wake(s, u) ? 0 : s->starving_idle + 1;
		u->starving = !TAILQ_EMPTY(&u->starved);
		if (u->starving)
			TAILQ_INSERT_TAIL(&s->starving, u, next);
		else
			s->nstarving--;
	}
	if (s->starving_idle >= s->nstarving) {
		s->starving_idle = 0;
		s->starving_rest = ENG_STARVING_REST;
	}
}
