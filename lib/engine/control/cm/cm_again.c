/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connect commands that meet no listener. Many servers tell their clients where to connect before
 * they listen there. On other devices the client's resolution of the address takes longer than the
 * server needs to listen, and the client is not refused. Here nothing takes that long. Therefore
 * the control stage repeats a refused command for AGAIN_NS before it reports the refusal.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm.h"

#define MS_NS          1000000ull
#define AGAIN_NS       (500 * MS_NS) /* the time for the peer's listener to appear */
#define AGAIN_PAUSE_NS (5 * MS_NS)   /* pause after the first refusal; doubles each time */
#define AGAIN_MOST_NS  (40 * MS_NS)  /* longest pause */

void
cm_again_keep(struct eng_control *c, struct cm_conn *q, const struct eng_ctl *what)
{
	size_t len = offsetof(struct eng_ctl, private_data) + what->private_len;

	q->again = malloc(len); /* NULL: the first refusal is reported */
	if (q->again != NULL)
		memcpy(q->again, what, len);
	q->again_end = c->now + AGAIN_NS;
	q->pause = AGAIN_PAUSE_NS;
}

void
cm_again_drop(struct cm_conn *q)
{
	free(q->again);
	q->again = NULL;
}

bool
cm_again_later(struct eng_control *c, struct cm_conn *q)
{
	if (q->again == NULL || c->now + q->pause > q->again_end)
		return false;
	sk_count(c->counters, ENG_CONNECT_AGAIN);
	q->state = CM_REFUSED;
	q->reserved = false;
	sk_timer_set(&c->wheel, &q->timer, c->now + q->pause);
	q->pause = SK_MIN(2 * q->pause, AGAIN_MOST_NS);
	return true;
}

void
cm_again_fire(struct eng_control *c, struct cm_conn *q)
{
	if (cm_attempt_is_paced(c, q))
		cm_start_connect(c, q, q->again);
	else
		sk_timer_set(&c->wheel, &q->timer, q->attempt_at);
}
