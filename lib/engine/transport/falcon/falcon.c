/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Falcon's stack on a transport stage, and its connections. A CID is a keyed permutation of stage
 * and slot, so that it tells nothing, and every stage can find out whose a packet is.
 */
#include "falcon_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "../../../base/mem.h"

#define FALCON_BUDGET    256      /* packets that a turn sends */
#define REPLAY_MARGIN_NS 10000000 /* more than a data centre reorders */

/* ---- What lib/falcon asks for ---- */

static bool
op_deliver(void *ctx, struct fa_conn *conn, const struct fa_delivery *d)
{
	static const uint8_t types[] = {
		[FA_PUSH] = ENG_E_PUSH,
		[FA_PULL] = ENG_E_PULL,
		[FA_PULL_DATA] = ENG_E_PULL_DATA,
		[FA_COMPLETION] = ENG_E_COMPLETION,
	};
	struct eng_transport *t = ctx;
	struct eng_falcon_conn *fc = fa_conn_user(conn);
	uint64_t u = d->type == FA_COMPLETION ? ENG_OUTCOME(d->completion, d->ulp_code)
					      : (uintptr_t)d->buf | d->restart;

	/* Until it is bound nobody knows where to. */
	if (fc->c->state == ECONN_BOUND && fc->start == NULL &&
		eng_conn_tell(t, fc->c, (enum eng_to_stage)types[d->type], u, d->rsn))
		return true;
	if (!fc->busy)
		TAILQ_INSERT_TAIL(&t->falcon->busy, fc, next);
	fc->busy = true;
	return false;
}

static void
op_buf_free(void *ctx, struct fa_buf *buf)
{
	(void)ctx;
	eng_fbuf_free(buf);
}

/* Xoff and Xon need no answer: what the engine stages may start is bounded by their credits. */
static void
op_event(void *ctx, struct fa_conn *conn, enum fa_event ev)
{
	struct eng_falcon_conn *fc = conn == NULL ? NULL : fa_conn_user(conn);

	if (ev != FA_EV_DEAD)
		return;
	eng_falcon_fail(ctx, fc->c, ROFX_TIMEOUT, -ETIMEDOUT);
}

bool
eng_falcon_tell_open(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon_start *start = c->falcon->start;

	if (start == NULL)
		return true;
	if (!eng_conn_tell(t, c, ENG_E_OPEN, (uintptr_t)start, 0))
		return false;
	c->falcon->start = NULL;
	return true;
}

/* ---- The stack ---- */

int
eng_falcon_create(struct eng_transport *t, uint64_t now)
{
	const struct fa_ops ops = {.output = eng_falcon_output,
		.deliver = op_deliver,
		.buf_free = op_buf_free,
		.event = op_event};
	struct fa_config cfg = t->e->cfg.falcon.stack;
	struct eng_falcon *f = sk_mem_alloc(sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	t->falcon = f;
	f->swift = fa_swift;
	f->swift.param = &t->e->cfg.falcon.swift;
	TAILQ_INIT(&f->free);
	TAILQ_INIT(&f->busy);
	sk_random(&cfg.seed, sizeof(cfg.seed));
	psp_device_init(&f->device);
	f->device.match_cookie = t->e->cfg.falcon.pcid;
	eng_falcon_keys_init(t, now);
	f->nconns = cfg.max_conns;
	f->conns = sk_mem_alloc(f->nconns * sizeof(f->conns[0]));
	f->crypto = psp_crypto_create();
	if (f->conns == NULL || f->crypto == NULL)
		return -ENOMEM;
	f->fa = fa_stack_create(&cfg, &ops, t, now);
	return f->fa == NULL ? -EINVAL : 0;
}

void
eng_falcon_destroy(struct eng_transport *t)
{
	struct eng_falcon *f = t->falcon;

	if (f == NULL)
		return;
	for (uint32_t i = 0; i < f->fresh; i++)
		if (f->conns[i].c != NULL)
			eng_falcon_close(t, &f->conns[i]);
	if (f->fa != NULL)
		fa_stack_destroy(f->fa);
	if (f->crypto != NULL)
		psp_crypto_destroy(f->crypto);
	sk_mem_free(f->conns, f->nconns * sizeof(f->conns[0]));
	sk_mem_free(f, sizeof(*f));
	t->falcon = NULL;
}

/* Offers again what an engine stage had no room for. */
static bool
falcon_resume(struct eng_falcon *f, uint64_t now)
{
	struct eng_falcon_conn *fc, *last = TAILQ_LAST(&f->busy, eng_falcon_conns);

	while (last != NULL) {
		fc = TAILQ_FIRST(&f->busy);
		TAILQ_REMOVE(&f->busy, fc, next);
		fc->busy = false;
		fa_deliver_resume(fc->fa, now);
		if (fc == last)
			break;
	}
	return last != NULL;
}

void
eng_falcon_timers(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = t->falcon;

	if (now < f->due)
		return;
	fa_stack_timers(f->fa, now);
	eng_falcon_keys_poll(t, now);
	f->due = SK_MIN(fa_stack_deadline(f->fa), f->keys_due);
	f->work = true;
}

bool
eng_falcon_poll(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = t->falcon;
	unsigned n;

	if (!TAILQ_EMPTY(&f->busy))
		f->work |= falcon_resume(f, now);
	if (!f->work)
		return false;
	f->work = false; /* set again when the port takes no more */
	n = fa_stack_send(f->fa, now, FALCON_BUDGET);
	f->due = SK_MIN(fa_stack_deadline(f->fa), f->keys_due);
	return n > 0;
}

uint64_t
eng_falcon_deadline(const struct eng_falcon *f)
{
	return f->work || !TAILQ_EMPTY(&f->busy) ? 0 : f->due;
}

const uint64_t *
eng_falcon_counters(const struct eng_falcon *f, const struct sk_reason_list *list)
{
	if (list == &fa_reasons)
		return fa_stack_counters(f->fa);
	if (list == &rofx_reasons)
		return f->rofx_counters;
	return list == &psp_reasons ? f->psp_counters : NULL;
}

/* ---- Connections ---- */

unsigned
eng_falcon_stage(const struct eng *e, uint32_t cid, uint32_t *slot)
{
	uint32_t v = sk_perm24_inv(&e->cid_key, cid);

	*slot = v / e->cfg.ntransports;
	return v % e->cfg.ntransports;
}

struct eng_falcon_conn *
eng_falcon_reserve(struct eng_transport *t, struct eng_conn *c)
{
	struct eng_falcon *f = t->falcon;
	struct eng_falcon_conn *fc = TAILQ_FIRST(&f->free);
	uint32_t slot;

	if (fc != NULL) {
		TAILQ_REMOVE(&f->free, fc, next);
		slot = fc->slot;
	} else if (f->fresh < f->nconns) {
		slot = f->fresh++;
		fc = &f->conns[slot];
	} else {
		return NULL;
	}
	*fc = (struct eng_falcon_conn){.c = c, .slot = slot};
	fc->cid = sk_perm24(&t->e->cid_key, slot * t->e->cfg.ntransports + t->index);
	return fc;
}

static int
open_psp(struct eng_falcon *f, struct eng_falcon_conn *fc, const struct eng_falcon_open *o)
{
	uint8_t key[PSP_KEY_MAX] = {0};

	if (f->device.generation - fc->generation > 1) /* its key is gone */
		return -ESTALE;
	if (o->psp != PSP_NO_CRYPTO)
		psp_derive_key(
			f->crypto, key, psp_device_key(&f->device, o->rx_spi), o->rx_spi, o->psp);
	fc->rx_sa = psp_sa_create(f->crypto, o->psp, o->rx_spi, key);
	fc->tx_sa = psp_sa_create(f->crypto, o->psp, o->tx_spi, o->tx_key);
	explicit_bzero(key, sizeof(key));
	psp_rx_init(&fc->accept, &f->device, o->rx_spi, psp_rx_margin(REPLAY_MARGIN_NS));
	fc->accept.generation = fc->generation;
	fc->accept.cookie = o->rx_cookie;
	fc->tx_psp.version = o->psp;
	fc->tx_psp.spi = o->tx_spi;
	fc->accept.bounded = o->psp == PSP_NO_CRYPTO;
	return fc->rx_sa == NULL || fc->tx_sa == NULL ? -ENOMEM : 0;
}

static void
close_psp(struct eng_falcon_conn *fc)
{
	if (fc->tx_sa != NULL)
		psp_sa_destroy(fc->tx_sa);
	if (fc->rx_sa != NULL)
		psp_sa_destroy(fc->rx_sa);
	fc->tx_sa = fc->rx_sa = NULL;
	eng_falcon_tunnel_close(fc);
}

int
eng_falcon_open(
	struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_falcon_open *o)
{
	struct fa_params p = o->fa;
	int rc = eng_falcon_tunnel_open(t, fc, o);

	if (rc == 0)
		rc = open_psp(t->falcon, fc, o);
	p.cid = fc->cid;
	p.user = fc;
	p.algorithm = &t->falcon->swift;
	if (rc == 0)
		rc = fa_conn_create(t->falcon->fa, t->now, &p, &fc->fa);
	if (rc < 0)
		close_psp(fc);
	else
		eng_falcon_keys_start(t, fc);
	return rc;
}

void
eng_falcon_close(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon *f = t->falcon;

	if (fc->busy)
		TAILQ_REMOVE(&f->busy, fc, next);
	eng_falcon_keys_stop(t, fc);
	if (fc->fa != NULL)
		fa_conn_destroy(fc->fa);
	close_psp(fc);
	if (fc->x != NULL)
		rofx_destroy(fc->x);
	free(fc->start);
	*fc = (struct eng_falcon_conn){.slot = fc->slot};
	TAILQ_INSERT_TAIL(&f->free, fc, next); /* last: a CID rests before it is used again */
}

void
eng_falcon_message(struct eng_transport *t, struct eng_falcon_conn *fc, const struct eng_dmsg *m)
{
	struct fa_buf *buf = (struct fa_buf *)(uintptr_t)m->u;
	struct fa_outcome o = {.rsn = m->arg};

	t->falcon->work = true;
	switch (m->id_type & 15) {
	case ENG_T_PUSH:
		fa_push(fc->fa, t->now, buf);
		break;
	case ENG_T_PULL:
		fa_pull(fc->fa, t->now, buf, m->arg);
		break;
	case ENG_T_PULL_DATA:
		fa_pull_data(fc->fa, t->now, m->arg, buf);
		break;
	case ENG_T_OUTCOME:
		o.verdict = (uint8_t)m->u;
		o.ulp_code = (uint8_t)(m->u >> 8);
		fa_outcome(fc->fa, t->now, &o);
		break;
	case ENG_T_RNR:
		o.verdict = FA_RNR;
		o.rnr = ((struct eng_fbuf *)buf)->rnr;
		o.buf = buf;
		fa_outcome(fc->fa, t->now, &o);
		break;
	}
}
