/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, destruction and inspection of a connection, and the entry of received packets. */
#include <errno.h>
#include <string.h>

#include "conn_priv.h"

#define TICKS_NS(t) ((uint64_t)(t)*FA_TICK_PS / 1000)

static bool
params_ok(const struct fa_params *p)
{
	return p->cid <= FALCON_CID_MAX && p->peer_cid <= FALCON_CID_MAX &&
	       p->peer_function <= 0xffffff && p->protocol < 8 && p->mtu &&
	       p->tx_window <= PDL_WINDOW_MAX && (p->flows == 1 || p->flows == FA_FLOWS_MAX);
}

static struct fa_conn *
fa_conn_alloc(struct fa_stack *s)
{
	struct fa_conn *c = TAILQ_FIRST(&s->free);

	if (c != NULL)
		TAILQ_REMOVE(&s->free, c, link);
	else if (s->pool_fresh < s->cfg.max_conns)
		c = &s->pool[s->pool_fresh++];
	if (c != NULL)
		memset(c, 0, sizeof(*c));
	return c;
}

int
fa_conn_create(struct fa_stack *s, uint64_t now, const struct fa_params *p, struct fa_conn **out)
{
	struct fa_conn *c;
	int rc;

	if (!params_ok(p))
		return -EINVAL;
	c = fa_conn_alloc(s);
	if (c == NULL)
		return -ENOBUFS;
	c->s = s;
	c->params = *p;
	pdl_conn_init(c);
	rc = tl_conn_init(c, now);
	if (rc) {
		TAILQ_INSERT_HEAD(&s->free, c, link);
		return rc;
	}
	c->live = true;
	*out = c;
	return 0;
}

void
fa_conn_destroy(struct fa_conn *c)
{
	struct fa_stack *s = c->s;

	if (c->failing)
		TAILQ_REMOVE(&s->failed, c, link);
	c->live = c->failing = false;
	c->dead = true;
	pdl_conn_fini(c, s->now, FA_DONE);
	tl_conn_fini(c);
	fa_tl_timer(c, SK_NEVER);
	TAILQ_INSERT_HEAD(&s->free, c, link);
}

void
fa_conn_fail(struct fa_conn *c, uint64_t now, enum fa_completion code)
{
	if (c->dead)
		return;
	c->dead = c->failing = true;
	c->fail_code = (uint8_t)(code ? code : FA_DEAD_CONNECTION);
	TAILQ_INSERT_TAIL(&c->s->failed, c, link);
}

void *
fa_conn_user(const struct fa_conn *c)
{
	return c->params.user;
}

void
fa_tl_timer(struct fa_conn *c, uint64_t deadline)
{
	fa_timer_set(c->s, &c->tl_timer, deadline);
}

void
fa_input(struct fa_conn *c, uint64_t now, const struct fa_in *in)
{
	if (c->dead) {
		fa_trace(c, FA_DEAD);
		fa_buf_free(c->s, in->payload);
		return;
	}
	pdl_input(c, now, in);
	tl_run(c, now);
}

void
fa_get_info(const struct fa_conn *c, struct fa_info *out)
{
	const struct pdl_conn *d = &c->pdl;
	const struct pdl_counts *n = &d->n;
	uint64_t fcwnd = 0, rtt = 0;

	for (unsigned i = 0; i < d->flows; i++) {
		fcwnd += d->flow[i].cc.fcwnd;
		rtt = SK_MAX(rtt, d->flow[i].cc.rtt);
	}
	*out = (struct fa_info){
		.cid = c->params.cid,
		.peer_cid = c->params.peer_cid,
		.flows = d->flows,
		.fcwnd_milli = (uint32_t)(fcwnd * 1000 / FA_CWND_ONE),
		.ncwnd_milli = (uint32_t)((uint64_t)d->nic.ncwnd * 1000 / FA_CWND_ONE),
		.rtt_ns = TICKS_NS(rtt),
		.rto_ns = d->rto_ns,
		.delay_ns = TICKS_NS(d->flow[0].cc.delay),
		.request_outstanding = d->tx[PDL_REQUEST].next - d->tx[PDL_REQUEST].base,
		.data_outstanding = d->tx[PDL_DATA].next - d->tx[PDL_DATA].base,
		.queued = d->queued,
		.packets_out = n->packets_out,
		.packets_in = n->packets_in,
		.retransmits = n->retransmits,
		.early_retransmits = n->early,
		.timeouts = n->timeouts,
		.probes = n->probes,
		.acks_out = n->acks_out,
		.acks_in = n->acks_in,
		.nacks_out = n->nacks_out,
		.nacks_in = n->nacks_in,
		.resyncs_out = n->resyncs_out,
		.repaths = n->repaths,
		.dead = c->dead,
	};
}
