/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of carriers: each goes to the exchange that it names, if that is one with the host to
 * which the carrier leads. A request that is repeated goes to the exchange that it has begun.
 */
#include "falcon_priv.h"

/* Creates the connection of a request. Returns NULL when there is no place for it. */
static struct eng_falcon_conn *
falcon_frames_passive(
	struct eng_transport *t, const struct eng_falcon_carrier *k, const struct rofx_frame *f)
{
	struct eng_conn *c = eng_conn_alloc(t, ECONN_DRAIN);
	struct eng_falcon_conn *fc = NULL;
	struct rofx_config cfg;

	if (c == NULL)
		return NULL;
	c->link = &eng_link_falcon;
	c->path = k->c->path;
	if (eng_startup_create(c) == 0)
		fc = eng_falcon_reserve(t, c);
	if (fc != NULL)
		fc->out.x = rofx_listen(
			eng_falcon_exchange_config(t, &cfg), t->now, eng_falcon_name(fc), k->k, f);
	c->part = fc;
	c->rides = fc != NULL;
	if (fc == NULL || fc->out.x == NULL ||
		!eng_falcon_join(eng_falcon_of(t), k->host, fc, ENG_FALCON_STARTING)) {
		eng_falcon_release(t, c);
		eng_conn_put(t, c);
		return NULL;
	}
	c->state = ECONN_WAITING;
	return fc;
}

/* Returns the connection of a request, which exists already if the peer repeats the request. */
static struct eng_falcon_conn *
falcon_frames_begin(
	struct eng_transport *t, struct eng_falcon_carrier *k, const struct rofx_frame *f)
{
	struct eng_falcon_conn *fc =
		eng_falcon_starting(eng_falcon_of(t), k->host, rofx_frame_from(f));
	enum rofx_reason why = ROFX_NO_RESOURCE;

	k->retired |= rofx_carrier_outdated(k->k, t->e->cfg.falcon.tls);
	if (k->retired) {
		fc = NULL;
		why = ROFX_RETIRED;
	} else if (fc == NULL) {
		fc = falcon_frames_passive(t, k, f);
	}
	if (fc == NULL) {
		sk_count(eng_falcon_of(t)->rofx_counters, why);
		rofx_refuse(k->k, f, why);
	}
	return fc;
}

/* Returns the connection with the name in the frame, if it is one with the carrier's peer. */
static struct eng_falcon_conn *
addressed(struct eng_transport *t, const struct eng_falcon_carrier *k, const struct rofx_frame *f)
{
	struct eng_falcon *fs = eng_falcon_of(t);
	uint32_t to = rofx_frame_to(f), slot;
	struct eng_falcon_conn *fc;

	if (eng_falcon_stage(t->e, to & FALCON_CID_MAX, &slot) != t->index || slot >= fs->fresh)
		return NULL;
	fc = &fs->conns[slot];
	return fc->c != NULL && fc->host == k->host && eng_falcon_name(fc) == to ? fc : NULL;
}

/* The peer sends all frames of an exchange to the stage that has it, so no other one has the name.
 */
static void
stray(struct eng_transport *t, struct rofx_carrier *k, const struct rofx_frame *f)
{
	sk_count(eng_falcon_of(t)->rofx_counters, ROFX_UNKNOWN);
	rofx_unknown(k, f);
}

void
eng_falcon_frame(void *ctx, struct rofx_carrier *rk, const struct rofx_frame *f)
{
	struct eng_falcon_carrier *k = ctx;
	struct eng_transport *t = k->t;
	struct eng_falcon_conn *fc;

	k->used_at = t->now;
	eng_falcon_of(t)->nframes++;
	if (rofx_frame_begins(f)) {
		fc = falcon_frames_begin(t, k, f);
		if (fc == NULL)
			return;
	} else if (rofx_frame_withdraws(f)) {
		fc = eng_falcon_starting(eng_falcon_of(t), k->host, rofx_frame_from(f));
	} else {
		fc = addressed(t, k, f);
	}
	if (fc != NULL && rofx_frame_retires(f))
		k->retired = true;
	if (fc == NULL || rofx_take(fc->out.x, t->now, rk, f) == -ROFX_UNKNOWN) {
		stray(t, rk, f);
		return;
	}
	fc->via = k->number;
	fc->out.stage = rofx_carrier_peer_stage(rk);
	fc->out.bound = true;
	eng_falcon_advance(t, fc->c);
}
