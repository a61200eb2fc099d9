/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The common part of memory regions and memory windows: the STag and the retirement. An object that
 * the control stage has removed from the table is freed only when every loop has passed a quiet
 * point, because a stage may have found it in the table just before.
 */
#include <errno.h>
#include <rte_rcu_qsbr.h>

#include "registry.h"

int
ctl_stag_add(struct eng_control *c, struct rd_mr *mr)
{
	c->stag_keys++;
	return rd_mr_add(c->a.mrs, mr,
		(uint8_t)sk_siphash(&c->qpn_key, &c->stag_keys, sizeof(c->stag_keys)));
}

void
ctl_retire(struct eng_control *c, struct ctl_client *cl, struct ctl_retired *r)
{
	r->client = cl;
	cl->retiring++;
	r->token = rte_rcu_qsbr_start(c->a.rcu);
	TAILQ_INSERT_TAIL(&c->retiring, r, next);
}

static void
registry_stag_end(struct eng_control *c, struct ctl_retired *r)
{
	struct ctl_op *op = r->op;

	TAILQ_REMOVE(&c->retiring, r, next);
	r->client->retiring--;
	r->free(c, r);
	if (op != NULL)
		ctl_op_reply(c, op);
}

bool
ctl_retire_poll(struct eng_control *c)
{
	struct ctl_retired *r;
	unsigned n;

	/* Tokens increase, so the search ends at the first one whose quiet point has not passed. */
	for (n = 0; n < CTL_TURN_RETIRED && (r = TAILQ_FIRST(&c->retiring)) != NULL &&
		    rte_rcu_qsbr_check(c->a.rcu, r->token, false);
		n++)
		registry_stag_end(c, r);
	return n != 0;
}

void
ctl_retire_all(struct eng_control *c)
{
	while (!TAILQ_EMPTY(&c->retiring))
		registry_stag_end(c, TAILQ_FIRST(&c->retiring));
}
