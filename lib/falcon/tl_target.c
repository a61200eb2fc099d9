/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target (section 8.5): the local ULP's outcomes of the peer's requests, and its pull data.
 * tl_admit.c admits a request, tl_order.c determines the order in which requests reach the ULP.
 */
#include "conn_priv.h"

void
tl_target_finish(struct tl_txn *t)
{
	struct fa_conn *c = t->c;
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;

	tl_rnr_leave(t);
	if (t->state == TL_DATA_WAITS) {
		TAILQ_REMOVE(&tl->data_waits, t, queue);
		tl_data_list(c);
	} else if (t->state == TL_ULP_TX)
		tl->out--;
	else if (t->state == TL_HELD && !c->params.ordered)
		TAILQ_REMOVE(&tl->ready, t, queue);
	if (c->params.ordered && (t->state == TL_HELD || t->state == TL_REFUSED_BY_ULP ||
					 t->state == TL_PASSED_OVER))
		tl_hold(tl, t, -1u);
	if (tl->head == t)
		tl->head = NULL;
	tl_remove(&s->tl.requests, t);
	TAILQ_REMOVE(&tl->ins, t, link);
	fa_buf_free(s, t->buf);
	tl_net_free(s, t);
}

void
tl_pass_over(struct tl_txn *t, uint64_t now)
{
	struct fa_conn *c = t->c;
	struct tl_conn *tl = &c->tl;

	if (!c->params.ordered) {
		tl_target_finish(t);
		return;
	}
	tl_rnr_leave(t);
	fa_buf_free(c->s, t->buf);
	t->buf = NULL;
	tl_net_buf_done(c->s, t);
	t->state = TL_PASSED_OVER;
	if (t->pkt.rsn != tl->rx_rsn)
		return;
	tl->head = NULL;
	if (tl->rnr == TL_RNR_WAIT) /* the request that blocked the connection */
		tl->rnr = TL_RNR_NONE;
	if (tl->rnr == TL_RNR_NONE)
		tl_find_head(c, now);
}

/* ---- Verdicts: the effect of each on a request that the ULP has ---- */

static void
push_taken(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	if (!t->no_ack)
		pdl_ulp_ack(t->c, now, t->psn);
	tl_target_finish(t);
}

static void
push_failed(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	static const uint8_t codes[] = {[FA_CIE] = FALCON_NACK_CIE,
		[FA_FATAL_ERROR] = FALCON_NACK_NON_RECOVERABLE,
		[FA_WRONG_CID] = FALCON_NACK_INVALID_CID};

	/* The Resync that follows takes the push's place in the window; PDL repeats the NACK until
	 * then. */
	if (!t->no_ack)
		pdl_nack(t->c, now, false, t->psn, codes[o->verdict], 0, o->ulp_code);
	tl_target_finish(t);
}

static void
pull_taken(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	t->state = TL_PULL_TAKEN;
	t->c->tl.out--;
	tl_net_done(t->c->s, t);
}

/* Frees the resources; the initiator's transaction will time out (section 11). */
static void
pull_reclaimed(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	tl_target_finish(t);
}

/* The verdict does not apply (11): the ULP completes a pull in error by its pull data. */
static void
pull_not_so(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	fa_count(t->c->s, FA_BAD_OUTCOME);
	pull_reclaimed(t, now, o);
}

static void
refused(struct tl_txn *t, uint64_t now, const struct fa_outcome *o)
{
	t->c->tl.out--;
	tl_rnr_refused(t, now, o);
}

typedef void (*verdict_fn)(struct tl_txn *t, uint64_t now, const struct fa_outcome *o);

static const verdict_fn push_verdicts[] = {[FA_TAKEN] = push_taken,
	[FA_RNR] = refused,
	[FA_CIE] = push_failed,
	[FA_FATAL_ERROR] = push_failed,
	[FA_WRONG_CID] = push_failed};
static const verdict_fn pull_verdicts[] = {[FA_TAKEN] = pull_taken,
	[FA_RNR] = refused,
	[FA_CIE] = pull_not_so,
	[FA_FATAL_ERROR] = pull_not_so,
	[FA_WRONG_CID] = pull_reclaimed};

/* Returns whether the local ULP took a request behind one that it refused, in whichever order it
 * reports the two outcomes. */
static bool
breaks_order(const struct tl_conn *tl, const struct fa_outcome *o)
{
	if (o->verdict == FA_RNR)
		return (int32_t)(o->rsn - tl->judged) < 0;
	return (int32_t)(o->rsn - tl->rx_rsn) >= 0;
}

/* Processes one outcome. Returns false when it fails the connection. */
static bool
outcome(struct fa_conn *c, uint64_t now, const struct fa_outcome *o)
{
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;
	struct tl_txn *t = tl_request(c, o->rsn);

	if (t == NULL || t->state != TL_ULP_TX || o->verdict > FA_WRONG_CID) {
		fa_count(s, FA_BAD_OUTCOME);
		fa_buf_free(s, o->buf);
		return true;
	}
	if (c->params.ordered && breaks_order(tl, o)) {
		fa_count(s, FA_BAD_OUTCOME);
		fa_buf_free(s, o->buf);
		fa_conn_fail(c, now, FA_OPERATION_ERROR);
		return false;
	}
	if (o->verdict != FA_RNR) {
		fa_buf_free(s, o->buf);
		if ((int32_t)(o->rsn + 1 - tl->judged) > 0)
			tl->judged = o->rsn + 1;
		tl_rnr_over(t, now);
	}
	(t->type == FALCON_PUSH_DATA ? push_verdicts : pull_verdicts)[o->verdict](t, now, o);
	return true;
}

void
fa_outcome(struct fa_conn *c, uint64_t now, const struct fa_outcome *o)
{
	uint32_t left = o->verdict == FA_TAKEN ? o->more + 1u : 1;
	struct fa_outcome one = *o;
	struct tl_conn *tl = &c->tl;

	if (c->dead) {
		fa_buf_free(c->s, o->buf);
		return;
	}
	while (left > 0) {
		uint32_t n = o->verdict == FA_TAKEN ? tl_span_taken(c, now, one.rsn, left) : 0;

		if (n == 0) {
			if (!outcome(c, now, &one))
				return;
			n = 1;
		}
		one.rsn += n;
		left -= n;
	}
	if (tl->held && tl->head == NULL && tl->rnr == TL_RNR_NONE)
		tl_find_head(c, now);
	tl_run(c, now);
}

/* ---- Pull data ---- */

/* Returns whether the share of the connection has room for one more packet of pull data. */
static bool
data_room(const struct fa_conn *c)
{
	uint32_t limit = c->s->cfg.conn_data;

	return (!limit || c->tl.data_out < limit) && tl_data_share(c);
}

void
tl_data_list(struct fa_conn *c)
{
	struct tl_conn *tl = &c->tl;
	bool ready = !TAILQ_EMPTY(&tl->data_waits) && data_room(c);

	if (ready == tl->listed[TL_DATA])
		return;
	if (ready)
		tl_list(c, TL_DATA);
	else
		tl_unlist(c, TL_DATA);
}

static bool
send_data(struct tl_txn *t, uint64_t now)
{
	struct fa_conn *c = t->c;
	struct fa_stack *s = c->s;

	if (!tl_pull_to_data(s, t, t->buf != NULL ? t->buf->len : 0))
		return false;
	tl_remove(&s->tl.requests, t);
	TAILQ_REMOVE(&c->tl.ins, t, link);
	t->state = TL_DATA_TX;
	t->pkt.type = FALCON_PULL_DATA;
	t->pkt.buf = t->buf;
	t->pkt.since = fa_observed(s, now);
	t->buf = NULL;
	pdl_send(c, now, &t->pkt);
	return true;
}

/* Sends the oldest pull data of a connection that waits. */
static bool
data_step(struct fa_conn *c, uint64_t now)
{
	struct tl_txn *t = TAILQ_FIRST(&c->tl.data_waits);

	if (c->dead) {
		tl_target_finish(t);
		return true;
	}
	/* Others have used its part: it waits for an acknowledgement of its own. */
	if (!data_room(c)) {
		tl_unlist(c, TL_DATA);
		return true;
	}
	TAILQ_REMOVE(&c->tl.data_waits, t, queue);
	if (!send_data(t, now)) {
		TAILQ_INSERT_HEAD(&c->tl.data_waits, t, queue);
		return false;
	}
	tl_data_list(c);
	return true;
}

void
tl_data_resume(struct fa_stack *s, uint64_t now)
{
	tl_turns(s, TL_DATA, now, data_step);
}

/* Returns whether pull data of the connection may go out before all that waits. */
static bool
data_first(const struct fa_conn *c)
{
	const struct tl_stack *tl = &c->s->tl;

	return TAILQ_EMPTY(&c->tl.data_waits) &&
	       (tl->waits[TL_DATA].count == 0 ||
		       TAILQ_EMPTY(&tl->users[c->tl.share].waits[TL_DATA].conns)) &&
	       data_room(c);
}

void
fa_pull_data(struct fa_conn *c, uint64_t now, uint32_t rsn, struct fa_buf *buf)
{
	struct fa_stack *s = c->s;
	struct tl_txn *t = tl_request_find(c, rsn);

	if (c->dead || t == NULL || t->state != TL_PULL_TAKEN) {
		if (!c->dead)
			fa_count(s, FA_BAD_OUTCOME);
		fa_buf_free(s, buf);
		return;
	}
	/* A pull may request more bytes from the ULP than it announced to Falcon: empty pull data
	 * reports the failure, and ends the pull here. */
	if (buf != NULL && buf->len > t->pkt.request_len) {
		fa_count(s, FA_BAD_OUTCOME);
		fa_buf_free(s, buf);
		buf = NULL;
	}
	t->buf = buf;
	if (data_first(c) && send_data(t, now))
		return;
	t->state = TL_DATA_WAITS;
	TAILQ_INSERT_TAIL(&c->tl.data_waits, t, queue);
	tl_data_list(c);
}

/* Does what fa_outcome() and fa_pull_data() do for the answer to the oldest request, where nothing
 * waits for resources or for its order. Returns false, without any effect, otherwise. tl_run()
 * follows. */
static bool
answer_next(struct fa_conn *c, uint64_t now, uint32_t rsn, struct fa_buf *buf)
{
	struct tl_txn *t = TAILQ_FIRST(&c->tl.ins);
	struct fa_stack *s = c->s;
	struct tl_conn *tl = &c->tl;

	if (c->dead || s->cfg.general || !c->params.ordered || t == NULL || t->pkt.rsn != rsn ||
		t->type != FALCON_PULL_REQUEST || t->state != TL_ULP_TX || tl->rnr != TL_RNR_NONE ||
		tl->held > 0 || buf == NULL || buf->len > t->pkt.request_len || !data_first(c))
		return false;
	t->buf = buf;
	if (!send_data(t, now)) {
		t->buf = NULL;
		return false;
	}
	if ((int32_t)(rsn + 1 - tl->judged) > 0)
		tl->judged = rsn + 1;
	tl->out--;
	tl_net_done(s, t);
	return true;
}

void
fa_answer(struct fa_conn *c, uint64_t now, uint32_t rsn, struct fa_buf *buf)
{
	struct fa_outcome taken = {.rsn = rsn, .verdict = FA_TAKEN};
	struct fa_buf *next;
	bool run = false;

	do {
		next = buf != NULL ? buf->next : NULL;
		if (next != NULL)
			buf->next = NULL;
		if (answer_next(c, now, taken.rsn, buf)) {
			run = true;
		} else {
			fa_outcome(c, now, &taken);
			fa_pull_data(c, now, taken.rsn, buf);
		}
		taken.rsn++;
		buf = next;
	} while (buf != NULL);
	if (run)
		tl_run(c, now);
}
