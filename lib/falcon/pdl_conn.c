/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Initialization and release of packet delivery, for a stack and for a connection; its turn in the
 * loop.
 */
#include <stdlib.h>

#include "conn_priv.h"

void
pdl_stack_init(struct fa_stack *s)
{
	TAILQ_INIT(&s->pdl.tx);
	TAILQ_INIT(&s->pdl.acks);
	s->pdl.random = s->cfg.seed | 1; /* the generator's state must not be 0 */
}

void
pdl_stack_fini(struct fa_stack *s)
{
	pdl_rings_free(s);
}

/* xorshift64* (Marsaglia, Vigna), for gaps and paths: an attacker may predict these. */
uint32_t
pdl_random(struct fa_stack *s)
{
	uint64_t x = s->pdl.random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	s->pdl.random = x;
	return (uint32_t)(x * 0x2545f4914f6cdd1d >> 32);
}

static void
fifo_init(struct pdl_fifo *f)
{
	f->head = NULL;
	f->tail = &f->head;
}

void
pdl_conn_init(struct fa_conn *c)
{
	struct pdl_conn *d = &c->pdl;
	const struct fa_params *p = &c->params;

	d->flows = p->flows;
	fifo_init(&d->pulls);
	fifo_init(&d->pushes);
	fifo_init(&d->pull_data);
	d->rtx_due = d->loss_due = d->tlp_due = d->pace_due = d->timer_at = SK_NEVER;
	pdl_txw_init(&d->tx[PDL_REQUEST], p->tx_request_psn,
		(uint16_t)(p->tx_window ? p->tx_window : FA_REQUEST_WINDOW));
	pdl_txw_init(&d->tx[PDL_DATA], p->tx_data_psn,
		(uint16_t)(p->tx_window ? p->tx_window : FA_DATA_WINDOW));
	d->rx.rbase = p->rx_request_psn;
	d->rx.dbase = p->rx_data_psn;
	for (unsigned i = 0; i < FA_FLOWS_MAX; i++) {
		d->flow[i].ack_due = SK_NEVER;
		d->flow[i].rx_path = i;
	}
	pdl_cc_init(c);
}

static void
pdl_conn_give_back(struct fa_conn *c, uint64_t now, struct fa_pkt *p, enum fa_completion how)
{
	if (how == FA_DONE)
		tl_pkt_free(c, p);
	else
		tl_sent(c, now, p, how, 0);
}

static void
empty_fifo(struct fa_conn *c, uint64_t now, struct pdl_fifo *f, enum fa_completion how)
{
	struct fa_pkt *p, *next;

	for (p = f->head; p != NULL; p = next) {
		next = p->next;
		pdl_conn_give_back(c, now, p, how);
	}
	fifo_init(f);
}

static void
empty_window(struct fa_conn *c, uint64_t now, struct pdl_txw *w, enum fa_completion how)
{
	for (uint32_t psn = w->base; pdl_txw_find(w, &psn, PDL_LIVE); psn++) {
		struct fa_pkt *p = pdl_txw_get(w, psn);

		pdl_txw_remove(w, p);
		pdl_conn_give_back(c, now, p, how);
	}
	pdl_txw_rebase(c->s, w, w->next);
}

void
pdl_conn_fini(struct fa_conn *c, uint64_t now, enum fa_completion how)
{
	struct pdl_conn *d = &c->pdl;

	if (d->on_tx)
		TAILQ_REMOVE(&c->s->pdl.tx, c, pdl.tx_link);
	d->on_tx = false;
	pdl_rxack_forget(c);
	fa_timer_set(c->s, &c->pdl.timer, SK_NEVER);
	d->timer_at = SK_NEVER;
	empty_window(c, now, &d->tx[PDL_REQUEST], how);
	empty_window(c, now, &d->tx[PDL_DATA], how);
	empty_fifo(c, now, &d->pulls, how);
	empty_fifo(c, now, &d->pushes, how);
	empty_fifo(c, now, &d->pull_data, how);
	d->queued = 0;
	free(d->rx.refusal);
	d->rx.refusal = NULL;
}

bool
pdl_busy(const struct fa_stack *s)
{
	return s->pdl.nack_count || !TAILQ_EMPTY(&s->pdl.acks) || !TAILQ_EMPTY(&s->pdl.tx);
}

/* Sends acknowledgements before packets: they open the peer's windows. */
unsigned
pdl_poll(struct fa_stack *s, uint64_t now, unsigned budget)
{
	unsigned n;

	s->pdl.ticks = fa_ticks(now);
	n = pdl_rxack_poll(s, budget);
	return n + pdl_tx_poll(s, now, budget - n);
}
