/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pulls of a weakly ordered channel that overtook requests before them. They are executed in the
 * order of their sequence numbers, when all before them have arrived, so that a Read or Atomic
 * takes effect after the Writes, Sends and Atomics before it. Falcon gets the outcome FA_TAKEN
 * immediately: a pull that waits must not hold the resources that the missing request needs. The
 * buffer for the answer is reserved at the same time, since a pull that was taken cannot be
 * refused for lack of one.
 */
#include "rof_priv.h"

#include <stdlib.h>

struct rof_parked {
	struct rof_parked *next;
	struct rof_in in; /* without its buffer */
};

bool
rof_parked_first(const struct rof_chan *c, uint32_t sn)
{
	return sn == c->sn_next && (c->parked == NULL || (int32_t)(c->parked->in.h.sn - sn) > 0);
}

static void
parked_insert(struct rof_chan *c, struct rof_parked *p)
{
	struct rof_parked **at = &c->parked;

	while (*at != NULL && (int32_t)((*at)->in.h.sn - p->in.h.sn) < 0)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

bool
rof_parked_add(struct rof_chan *c, const struct rof_in *in)
{
	struct rof_parked *p = malloc(sizeof(*p));
	uint32_t n = SK_MIN(in->h.length, c->p.mtu);
	struct fa_buf *b = p == NULL ? NULL : c->st->ops.buf_get(c->st->ctx, ROF_MAX + n + 3);

	if (b == NULL) {
		free(p);
		return false;
	}
	c->st->ops.buf_put(c->st->ctx, in->buf);
	p->in = *in;
	p->in.buf = NULL;
	p->in.reserved = b;
	parked_insert(c, p);
	return true;
}

struct rof_in *
rof_parked_next(const struct rof_chan *c)
{
	bool open = c->rc != NULL && c->rc->phase == ROF_PHASE_OPEN;

	if (c->parked == NULL || (open && !rof_sn_reached(c, c->parked->in.h.sn)))
		return NULL;
	return &c->parked->in;
}

void
rof_parked_remove(struct rof_chan *c)
{
	struct rof_parked *p = c->parked;

	c->parked = p->next;
	if (p->in.reserved != NULL)
		c->st->ops.buf_put(c->st->ctx, p->in.reserved);
	free(p);
}
