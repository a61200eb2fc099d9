/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iWARP connections on a transport stage. TCP sends FPDUs in records; the engine stage finds the
 * FPDUs in the received stream. Credit limits the bytes that the engine stage sends: it is the TCP
 * send space that was granted to the engine stage and that it has not used yet.
 */
#include "iwarp_priv.h"

#include <errno.h>

#include "../../../base/mem.h"

/* ---- The stage's part ---- */

static int
iwarp_link_create(struct eng_transport *t, uint64_t now)
{
	t->part[ENG_IWARP] = sk_mem_alloc(sizeof(struct eng_iwarp));
	return t->part[ENG_IWARP] == NULL ? -ENOMEM : 0;
}

static void
iwarp_link_destroy(struct eng_transport *t)
{
	sk_mem_free(t->part[ENG_IWARP], sizeof(struct eng_iwarp));
	t->part[ENG_IWARP] = NULL;
}

static const uint64_t *
iwarp_link_counters(const struct eng_transport *t, const struct sk_reason_list *list)
{
	const struct eng_iwarp *iw = t->part[ENG_IWARP];

	return list == &mpa_reasons ? iw->mpa_counters : NULL;
}

/* ---- From TCP to the engine stage ---- */

static bool
iwarp_link_deliver(struct eng_transport *t, struct eng_conn *c, struct tcp_slice *chain)
{
	/* Until ECONN_P_RESUME is done, earlier bytes may wait in eng_mpa.held. */
	if (!(c->pending & ECONN_P_RESUME) && eng_conn_send(t, c, ENG_E_DATA, (uintptr_t)chain, 0))
		return true;
	eng_conn_pend(t, c, ECONN_P_RESUME);
	return false;
}

/* Grants credit to the engine stage: TCP's send space minus the credit that it holds. Returns false
 * when the ring is full. */
static bool
send_space(struct eng_transport *t, struct eng_conn *c)
{
	int64_t more = tcp_send_space(c->tcp) - c->credit;
	uint32_t snd_buf = t->e->cfg.tcp.snd_buf;

	/* A stage with plenty of credit does not need a message for each acknowledgement. */
	if (more <= 0 || (more < snd_buf / 8 && c->credit > snd_buf / 2))
		return true;
	if (!eng_conn_send(t, c, ENG_E_SPACE, 0, (uint32_t)more))
		return false;
	c->credit += more;
	return true;
}

static void
iwarp_link_sent(struct eng_transport *t, struct eng_conn *c)
{
	if (!send_space(t, c))
		eng_conn_pend(t, c, ECONN_P_SPACE);
}

static void
iwarp_link_emss(struct eng_transport *t, struct eng_conn *c)
{
	eng_conn_pend(t, c, ECONN_P_EMSS);
}

/* Sends the EMSS because it may have changed since the notice to the control stage. */
static void
iwarp_link_bound(struct eng_transport *t, struct eng_conn *c)
{
	eng_conn_pend(t, c, ECONN_P_EMSS | ECONN_P_SPACE | ECONN_P_RESUME);
}

static bool
iwarp_link_resume(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_mpa *mpa = c->su != NULL ? eng_mpa_of(c) : NULL;

	if (mpa == NULL)
		return true;
	if (mpa->held != NULL) {
		if (!eng_conn_send(t, c, ENG_E_DATA, (uintptr_t)mpa->held, 0))
			return false;
		mpa->held = NULL;
	}
	if (!mpa->holds)
		eng_startup_free(t, c);
	return true;
}

static void
iwarp_link_pending_first(struct eng_transport *t, struct eng_conn *c)
{
}

static void
iwarp_link_pending(struct eng_transport *t, struct eng_conn *c)
{
	if ((c->pending & ECONN_P_SPEAK) && eng_conn_send(t, c, ENG_E_SPEAK, 0, 0)) {
		c->pending &= ~ECONN_P_SPEAK;
		eng_startup_free(t, c);
	}
	if ((c->pending & ECONN_P_EMSS) &&
		(c->tcp == NULL || eng_conn_send(t, c, ENG_E_EMSS, 0, tcp_emss(c->tcp))))
		c->pending &= ~ECONN_P_EMSS;
	if ((c->pending & ECONN_P_SPACE) && (c->tcp == NULL || send_space(t, c)))
		c->pending &= ~ECONN_P_SPACE;
}

/* ---- From the engine stage to TCP ---- */

static void
iwarp_link_drop(const struct eng_dmsg *m)
{
	if ((m->id_type & 15) == ENG_T_RECORD)
		eng_rec_free((struct tcp_rec *)(uintptr_t)m->u);
}

static void
send_record(struct eng_conn *c, struct tcp_rec *rec, uint32_t consumed)
{
	/* The header of the record's segment already has the new window. */
	if (consumed > 0)
		tcp_consumed(c->tcp, consumed);
	c->credit -= rec->len;
	rec->next = NULL;
	tcp_send(c->tcp, rec); /* -EPIPE: ENG_E_CLOSED reports the end of the connection */
}

static void
iwarp_link_message(struct eng_transport *t, struct eng_conn *c, const struct eng_dmsg *m)
{
	switch (m->id_type & 15) {
	case ENG_T_RECORD:
		send_record(c, (struct tcp_rec *)(uintptr_t)m->u, m->arg);
		break;
	case ENG_T_CONSUMED:
		c->whole = m->u != 0;
		tcp_consumed(c->tcp, m->arg);
		break;
	case ENG_T_LEAVE:
		tcp_consumed(c->tcp, m->arg);
		eng_conn_leave(t, c);
		break;
	default:
		eng_conn_drop(m);
	}
}

static void
iwarp_link_close(struct eng_transport *t, struct eng_conn *c)
{
	tcp_close(c->tcp, t->now);
}

static void
iwarp_link_abort(struct eng_transport *t, struct eng_conn *c)
{
	tcp_abort(c->tcp, t->now);
}

static void
iwarp_link_closed(struct eng_transport *t, struct eng_conn *c)
{
}

/* iWARP has no datagram services, and no self-connected QPs. */
static int
iwarp_link_refuse(struct eng_transport *t, struct eng_conn *c, const struct eng_ctl *m)
{
	return -ENOENT;
}

static int
iwarp_link_refuse_self(struct eng_transport *t, struct eng_conn *c)
{
	return -EINVAL;
}

const struct eng_link eng_link_iwarp = {
	.create = iwarp_link_create,
	.destroy = iwarp_link_destroy,
	.counters = iwarp_link_counters,
	.begins = eng_mpa_begins,
	.listen = eng_mpa_listen,
	.connect = eng_mpa_connect,
	.connected = eng_mpa_connected,
	.startup = eng_mpa_deliver,
	.accept = eng_mpa_accept,
	.reject = eng_mpa_reject,
	.found = iwarp_link_refuse,
	.self = iwarp_link_refuse_self,
	.expired = eng_mpa_expired,
	.retry = eng_mpa_retry,
	.abandon = eng_mpa_abandon,
	.startup_free = eng_mpa_free,
	.bound = iwarp_link_bound,
	.deliver = iwarp_link_deliver,
	.resume = iwarp_link_resume,
	.sent = iwarp_link_sent,
	.emss = iwarp_link_emss,
	.message = iwarp_link_message,
	.close = iwarp_link_close,
	.abort = iwarp_link_abort,
	.pending_first = iwarp_link_pending_first,
	.pending = iwarp_link_pending,
	.closed = iwarp_link_closed,
	.drop = iwarp_link_drop,
};
