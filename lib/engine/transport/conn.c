/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections between TCP and an engine stage. What cannot be said at once, because a ring is full,
 * is remembered as a bit and said when there is room: nothing is lost, and TCP's window closes
 * meanwhile. An index is used again only when nobody can have a message under way that names it.
 */
#include <errno.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "falcon/falcon_priv.h"

struct eng_conn *
eng_conn_alloc(struct eng_transport *t, uint8_t state)
{
	struct eng_conn *c = TAILQ_FIRST(&t->free);

	if (c != NULL) {
		TAILQ_REMOVE(&t->free, c, next);
	} else if (t->fresh < t->nconns) {
		c = &t->conns[t->fresh];
		c->index = t->fresh++;
	} else {
		return NULL;
	}
	*c = (struct eng_conn){.index = c->index, .state = state};
	t->nused++;
	return c;
}

void
eng_conn_put(struct eng_transport *t, struct eng_conn *c)
{
	if (c->tcp != NULL || c->notice_out || c->release_due || (c->pending & ECONN_P_NOTICE) ||
		(c->state != ECONN_DEAD && c->state != ECONN_DRAIN))
		return;
	if (c->queued)
		TAILQ_REMOVE(&t->pending, c, next);
	c->queued = false;
	eng_startup_free(t, c);
	c->pending = 0;
	c->state = ECONN_FREE;
	t->nused--;
	TAILQ_INSERT_HEAD(&t->free, c, next);
}

void
eng_conn_pend(struct eng_transport *t, struct eng_conn *c, uint16_t what)
{
	if (!c->queued)
		TAILQ_INSERT_TAIL(&t->pending, c, next);
	c->queued = true;
	c->pending |= what;
}

bool
eng_conn_tell(struct eng_transport *t, const struct eng_conn *c, enum eng_to_stage type, uint64_t u,
	uint32_t arg)
{
	struct eng_dmsg m = {.u = u, .arg = arg, .id_type = ENG_DMSG(type, c->qp_index)};

	if (rte_ring_sp_enqueue_elem(t->to_stage[c->stage], &m, sizeof(m)) == 0)
		return true;
	sk_count(t->counters, ENG_RING_FULL);
	return false;
}

bool
eng_tcp_deliver(void *ctx, struct tcp_conn *conn, struct tcp_slice *chain)
{
	struct eng_transport *t = ctx;
	struct eng_conn *c = tcp_user(conn);

	if (c == NULL)
		return false;
	switch (c->state) {
	case ECONN_BOUND:
		if (c->falcon != NULL)
			return eng_falcon_deliver(t, c, chain);
		if (eng_conn_tell(t, c, ENG_E_DATA, (uintptr_t)chain, 0))
			return true;
		eng_conn_pend(t, c, ECONN_P_RESUME);
		return false;
	case ECONN_OPENING:
	case ECONN_WAITING:
	case ECONN_REQUESTED: /* too early: an error */
		return eng_startup_deliver(t, c, chain);
	case ECONN_DRAIN:
	case ECONN_DEAD:
		for (const struct tcp_slice *s = chain; s != NULL; s = s->next)
			tcp_consumed(conn, s->len);
		eng_slice_free(chain);
		return true;
	default:
		return false; /* offered again once it is bound */
	}
}

/* The engine stage may send more: what TCP has room for, less what the stage believes in already.
 */
static bool
tell_space(struct eng_transport *t, struct eng_conn *c)
{
	int64_t more = tcp_send_space(c->tcp) - c->credit;
	uint32_t snd_buf = t->e->cfg.tcp.snd_buf;

	if (c->falcon != NULL)
		return true;
	/* A stage that has plenty need not be told of each acknowledgement. */
	if (more <= 0 || (more < snd_buf / 8 && c->credit > snd_buf / 2))
		return true;
	if (!eng_conn_tell(t, c, ENG_E_SPACE, 0, (uint32_t)more))
		return false;
	c->credit += more;
	return true;
}

static bool
tell_closed(struct eng_transport *t, struct eng_conn *c)
{
	if (!eng_conn_tell(t, c, ENG_E_CLOSED, 0, (uint32_t)-c->error))
		return false;
	c->state = ECONN_DEAD;
	return true;
}

/* Start-up is over once what came behind its frame has gone on; then TCP's own. */
static bool
engine_conn_resume(struct eng_transport *t, struct eng_conn *c)
{
	if (c->su != NULL && c->su->held != NULL) {
		if (!eng_conn_tell(t, c, ENG_E_DATA, (uintptr_t)c->su->held, 0))
			return false;
		c->su->held = NULL;
	}
	/* Of Falcon it is over when the peer has said so. */
	if (c->falcon != NULL ? c->falcon->fa != NULL : c->su != NULL && !c->su->holds)
		eng_startup_free(t, c);
	c->pending &= ~ECONN_P_RESUME;
	tcp_deliver_resume(c->tcp);
	return !(c->pending & ECONN_P_RESUME);
}

/* What had to wait until TCP was not in the middle of something. */
static void
engine_conn_end(struct eng_transport *t, struct eng_conn *c)
{
	uint16_t what = c->pending & (ECONN_P_ABORT | ECONN_P_CLOSE);

	c->pending &= ~(ECONN_P_ABORT | ECONN_P_CLOSE);
	if (c->tcp == NULL)
		return;
	t->tcp_work = true;
	if (what & ECONN_P_ABORT)
		tcp_abort(c->tcp, t->now);
	else
		tcp_close(c->tcp, t->now);
}

/* Tries what waits, in the order in which it must be said. */
static bool
conn_pending(struct eng_transport *t, struct eng_conn *c)
{
	uint16_t was = c->pending;

	if (c->pending & (ECONN_P_ABORT | ECONN_P_CLOSE))
		engine_conn_end(t, c);
	if (c->pending & ECONN_P_FAIL) {
		c->pending &= ~ECONN_P_FAIL;
		if (c->falcon != NULL)
			eng_falcon_failed(t, c);
	}
	if (c->pending & ECONN_P_NOTICE) {
		if (!eng_startup_say(t, c))
			return false;
		c->pending &= ~ECONN_P_NOTICE;
	}
	if ((c->pending & ECONN_P_OPEN) && eng_falcon_tell_open(t, c))
		c->pending &= ~ECONN_P_OPEN;
	if ((c->pending & ECONN_P_RESUME) && !engine_conn_resume(t, c))
		return false;
	if ((c->pending & ECONN_P_SPEAK) && eng_conn_tell(t, c, ENG_E_SPEAK, 0, 0)) {
		c->pending &= ~ECONN_P_SPEAK;
		eng_startup_free(t, c);
	}
	if ((c->pending & ECONN_P_EMSS) &&
		(c->tcp == NULL || eng_conn_tell(t, c, ENG_E_EMSS, 0, tcp_emss(c->tcp))))
		c->pending &= ~ECONN_P_EMSS;
	if ((c->pending & ECONN_P_SPACE) && (c->tcp == NULL || tell_space(t, c)))
		c->pending &= ~ECONN_P_SPACE;
	if ((c->pending & ECONN_P_FIN) && eng_conn_tell(t, c, ENG_E_FIN, 0, 0))
		c->pending &= ~ECONN_P_FIN;
	if (c->pending == ECONN_P_CLOSED && tell_closed(t, c))
		c->pending = 0;
	return c->pending != was;
}

bool
eng_conns_pending(struct eng_transport *t)
{
	struct eng_conn *c, *next;
	bool work = false;

	for (c = TAILQ_FIRST(&t->pending); c != NULL; c = next) {
		next = TAILQ_NEXT(c, next);
		work |= conn_pending(t, c);
		if (c->pending == 0 && c->queued) {
			TAILQ_REMOVE(&t->pending, c, next);
			c->queued = false;
			eng_conn_put(t, c);
		}
	}
	return work;
}

static void
conn_closed(struct eng_transport *t, struct eng_conn *c)
{
	if (c->error == 0)
		c->error = tcp_close_reason(c->tcp);
	/* It may live on in TIME_WAIT, and answer from there without us. */
	tcp_set_user(c->tcp, NULL);
	c->tcp = NULL;
	eng_conn_lost(t, c);
}

void
eng_conn_lost(struct eng_transport *t, struct eng_conn *c)
{
	if (c->falcon != NULL)
		eng_falcon_close(t, c->falcon);
	c->falcon = NULL;
	if (c->state == ECONN_BOUND) {
		/* What is still pending about a closed connection but its end is of no use. */
		c->pending &= ECONN_P_NOTICE | ECONN_P_FIN;
		eng_conn_pend(t, c, ECONN_P_CLOSED);
		return;
	}
	if (c->state == ECONN_OPENING || c->state == ECONN_WAITING || c->state == ECONN_REQUESTED ||
		c->state == ECONN_ESTABLISHED)
		eng_startup_closed(t, c);
	eng_conn_put(t, c);
}

static void
linger_end(struct eng_transport *t, struct eng_conn *c)
{
	c->lingers = false;
	eng_conn_pend(t, c, ECONN_P_CLOSE);
}

void
eng_tcp_event(void *ctx, struct tcp_conn *conn, enum tcp_event ev)
{
	struct eng_transport *t = ctx;
	struct eng_conn *c = tcp_user(conn);

	if (c == NULL) {
		if (ev == TCP_EV_CONNECTED)
			eng_startup_passive(t, conn);
		return;
	}
	switch (ev) {
	case TCP_EV_CONNECTED:
		eng_startup_connected(t, c);
		break;
	case TCP_EV_SENT:
		if (c->state == ECONN_BOUND && !tell_space(t, c))
			eng_conn_pend(t, c, ECONN_P_SPACE);
		if (c->lingers && tcp_all_acked(conn))
			linger_end(t, c);
		break;
	case TCP_EV_EMSS:
		if (c->state == ECONN_BOUND && c->falcon == NULL)
			eng_conn_pend(t, c, ECONN_P_EMSS);
		break;
	case TCP_EV_PEER_FIN:
		c->fin = true;
		if (c->state == ECONN_BOUND)
			eng_conn_pend(t, c, ECONN_P_FIN);
		else if (c->state == ECONN_OPENING || c->state == ECONN_WAITING)
			eng_startup_fail(t, c, -ECONNRESET);
		else if (c->lingers || c->state == ECONN_DRAIN)
			linger_end(t, c);
		break;
	case TCP_EV_CLOSED:
		conn_closed(t, c);
		break;
	}
}

void
eng_conn_bind(struct eng_transport *t, struct eng_conn *c, uint8_t stage, uint32_t qp_index)
{
	c->stage = stage;
	c->qp_index = qp_index;
	c->release_due = true;
	c->state = ECONN_BOUND;
	if (c->tcp == NULL) {
		eng_conn_pend(t, c, ECONN_P_CLOSED);
		return;
	}
	/* The EMSS may have changed since the control stage was told. */
	if (c->falcon == NULL)
		eng_conn_pend(t, c, ECONN_P_EMSS | ECONN_P_SPACE | ECONN_P_RESUME);
	else
		eng_conn_pend(t, c, ECONN_P_OPEN | ECONN_P_RESUME);
	if (c->fin)
		eng_conn_pend(t, c, ECONN_P_FIN);
}

static void
send_record(struct eng_transport *t, struct eng_conn *c, struct tcp_rec *rec)
{
	c->credit -= rec->len;
	rec->next = NULL;
	t->tcp_work = true;
	tcp_send(c->tcp, rec); /* -EPIPE: the end of the connection is on its way */
}

void
eng_conn_drop(const struct eng_dmsg *m)
{
	switch (m->id_type & 15) {
	case ENG_T_RECORD:
		eng_rec_free((struct tcp_rec *)(uintptr_t)m->u);
		break;
	case ENG_T_PUSH:
	case ENG_T_PULL:
	case ENG_T_PULL_DATA:
	case ENG_T_RNR:
		eng_fbuf_free((struct fa_buf *)(uintptr_t)m->u);
		break;
	}
}

void
eng_conn_message(struct eng_transport *t, const struct eng_dmsg *m)
{
	uint32_t index = m->id_type >> 4, type = m->id_type & 15;
	struct eng_conn *c = index < t->fresh ? &t->conns[index] : NULL;

	if (type == ENG_T_RELEASE) {
		if (c != NULL && c->release_due) {
			c->release_due = false;
			eng_conn_put(t, c);
		}
		return;
	}
	if (c == NULL || c->tcp == NULL || c->state < ECONN_REQUESTED) {
		eng_conn_drop(m);
		sk_count(t->counters, ENG_STALE);
		return;
	}
	if (type >= ENG_T_PUSH) {
		if (c->falcon != NULL && c->falcon->fa != NULL)
			eng_falcon_message(t, c->falcon, m);
		else
			eng_conn_drop(m);
		return;
	}
	t->tcp_work = true;
	switch (type) {
	case ENG_T_RECORD:
		send_record(t, c, (struct tcp_rec *)(uintptr_t)m->u);
		break;
	case ENG_T_CONSUMED:
		tcp_consumed(c->tcp, m->arg);
		break;
	case ENG_T_CLOSE:
		tcp_close(c->tcp, t->now);
		break;
	case ENG_T_ABORT:
		if (c->falcon != NULL && c->falcon->fa != NULL)
			eng_falcon_fail(t, c, ROFX_REFUSED, -ECONNABORTED);
		else
			tcp_abort(c->tcp, t->now);
		break;
	}
}
