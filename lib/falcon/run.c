/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of received packets. From the third push of a run on, it is known how many more fit into the
 * windows and the pools: one that has the next numbers, and is like the last one in all the rest,
 * needs no further check. Such pushes are only counted, and recorded together.
 */
#include "conn_priv.h"

/* ---- Pushes that are like the one before ---- */

/* Makes the run expect pushes like the one with the header `h`, which is recorded. */
static void
expect(const struct fa_conn *c, struct fa_run *run, const struct wire_falcon_plain *h)
{
	run->next = *h;
	run->next.psn++;
	run->next.rsn++;
	run->fresh_ar[0] = run->fresh_ar[1] = 0;
	run->room = SK_MIN(pdl_run_room(c, run->next.psn), tl_run_room(c));
}

/* Returns whether a packet is the push that the run expects. */
static inline bool
expected(const struct fa_run *run, const struct wire_falcon_plain *h)
{
	const struct wire_falcon_plain *x = &run->next;

	return run->room > 0 && h->psn == x->psn && h->rsn == x->rsn && h->len == x->len &&
	       h->dbpsn == x->dbpsn && h->rbpsn == x->rbpsn && h->function == x->function &&
	       h->proto == x->proto && h->type == FALCON_PUSH_DATA;
}

static inline void
count_fresh(struct fa_run *run, bool ar)
{
	run->fresh_ar[run->fresh / 64] |= (uint64_t)ar << run->fresh % 64;
	run->fresh++;
	run->room--;
	run->next.psn++;
	run->next.rsn++;
}

/* Records the pushes that were only counted. */
static void
record_fresh(struct fa_conn *c, struct fa_run *run)
{
	if (run->fresh == 0)
		return;
	pdl_run_pushes(c, run->next.psn - run->fresh, run->fresh, run->fresh_ar);
	tl_run_pushes(c, run->fresh);
	run->halves = (uint16_t)(run->halves + run->fresh);
	run->fresh = 0;
	run->fresh_ar[0] = run->fresh_ar[1] = 0;
}

/* ---- Any packet ---- */

bool
fa_run_begin(struct fa_conn *c, uint64_t now, struct fa_run *run, const struct wire_falcon_plain *h)
{
	run->n = run->room = run->fresh = 0;
	if (c->dead || !tl_run_ready(c))
		return false;
	if (!pdl_run_acks(c, now, h))
		return true;
	tl_run(c, now);
	return !c->dead && tl_run_ready(c);
}

/* Does the work of fa_run_add() for a packet that needs all checks. */
static bool
add_checked(struct fa_conn *c, uint64_t now, struct fa_run *run, const struct wire_falcon_plain *h,
	const struct fa_in *in)
{
	/* Packets of one flow have one record of what acknowledgements report. */
	if (run->n > 0 && (h->type != run->type || pdl_flow_of(&c->pdl, in->path) !=
							   pdl_flow_of(&c->pdl, run->path)))
		return false;
	record_fresh(c, run);
	if (!pdl_run_fits(c, h) || !tl_run_accept(c, now, h))
		return false;
	if (run->n == 0) {
		run->rsn = h->rsn;
		run->type = h->type;
		run->halves = 0;
		run->ar = false;
	}
	pdl_run_add(c, run, h, in);
	if (run->n > 0 && h->type == FALCON_PUSH_DATA)
		expect(c, run, h);
	return true;
}

bool
fa_run_add(struct fa_conn *c, uint64_t now, struct fa_run *run, const struct wire_falcon_plain *h,
	const struct fa_in *in)
{
	if (expected(run, h) && !in->ce)
		count_fresh(run, h->ar);
	else if (!add_checked(c, now, run, h, in))
		return false;
	run->n++;
	run->stamp = in->stamp;
	run->path = in->path;
	run->waited = in->waited;
	run->ttl = in->ttl;
	return true;
}

void
fa_run_end(struct fa_conn *c, uint64_t now, struct fa_run *run)
{
	record_fresh(c, run);
	if (run->n > 0)
		pdl_run_end(c, now, run);
}

void
fa_run_done(struct fa_conn *c, uint64_t now)
{
	tl_run(c, now);
}
