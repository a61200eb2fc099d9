/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to carriers. An exchange with frames for its peer is a sender in a lane of its host. Users
 * take turns, frame by frame, and TCP's queue is kept short, so no exchange waits for another one's
 * frames for long.
 *
 * A peer with several stages has connections at each of them, and a carrier belongs to one. A
 * request goes to the stages of the peer in turn, and all later frames of the exchange to the same
 * one. A sender for whose stage there is no carrier is parked: it holds up no other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../../base/mem.h"
#include "falcon_priv.h"

#define ORPHANS_MOST 1024 /* ended connections of a host with frames to send */

/* ---- Senders ---- */

static void
lane_enter(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	if (s->queued)
		return;
	TAILQ_INSERT_TAIL(&h->lanes[s->lane], s, next);
	h->filled |= (uint16_t)(1u << s->lane);
	s->queued = true;
}

void
eng_falcon_sender_leave(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	if (s->parked) {
		TAILQ_REMOVE(&h->parked, s, next);
	} else if (s->queued) {
		TAILQ_REMOVE(&h->lanes[s->lane], s, next);
		if (TAILQ_EMPTY(&h->lanes[s->lane]))
			h->filled &= (uint16_t) ~(1u << s->lane);
	}
	s->queued = s->parked = false;
}

static void
lane_park(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	eng_falcon_sender_leave(h, s);
	TAILQ_INSERT_TAIL(&h->parked, s, next);
	s->queued = s->parked = true;
}

void
eng_falcon_unpark(struct eng_falcon_host *h)
{
	struct eng_falcon_sender *s;

	while ((s = TAILQ_FIRST(&h->parked)) != NULL) {
		eng_falcon_sender_leave(h, s);
		lane_enter(h, s);
	}
}

static void
orphan_free(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	eng_falcon_sender_leave(h, s);
	rofx_destroy(s->x);
	free(s);
	h->norphans--;
}

static void
lane_orphans_free(struct eng_falcon_host *h, struct eng_falcon_senders *list)
{
	struct eng_falcon_sender *s, *next;

	for (s = TAILQ_FIRST(list); s != NULL; s = next) {
		next = TAILQ_NEXT(s, next);
		if (s->orphan)
			orphan_free(h, s);
	}
}

void
eng_falcon_orphans_free(struct eng_falcon_host *h)
{
	for (unsigned i = 0; i < ENG_FALCON_LANES; i++)
		lane_orphans_free(h, &h->lanes[i]);
	lane_orphans_free(h, &h->parked);
}

void
eng_falcon_orphan_create(struct eng_falcon_host *h, struct eng_falcon_conn *fc)
{
	struct eng_falcon_sender *s = NULL;

	if (rofx_waits(fc->out.x) && h->norphans < ORPHANS_MOST)
		s = calloc(1, sizeof(*s));
	if (s == NULL) {
		rofx_destroy(fc->out.x);
		return;
	}
	s->x = fc->out.x;
	s->user = fc->out.user;
	s->lane = fc->out.lane;
	s->stage = fc->out.stage;
	s->bound = fc->out.bound;
	s->orphan = true;
	h->norphans++;
	lane_enter(h, s);
}

/* ---- Frames to carriers ---- */

bool
eng_falcon_host_is_self(const struct eng_falcon_host *h)
{
	return sk_addr_eq(&h->laddr, &h->raddr);
}

bool
eng_falcon_survives(const struct eng_falcon_carrier *k)
{
	const struct eng_falcon_host *h = k->host;

	return k->ours == (memcmp(h->laddr.b, h->raddr.b, sizeof(h->laddr.b)) > 0);
}

bool
eng_falcon_usable(const struct eng_transport *t, struct eng_falcon_carrier *k)
{
	const struct rofx_tls *tls = t->e->cfg.falcon.tls;

	if (!k->up || k->closing || (tls != NULL && !rofx_carrier_secure(k->k)))
		return false;
	k->retired |= rofx_carrier_outdated(k->k, tls);
	return true;
}

/* Returns whether the carrier leads to the stage of the sender. One that has been restarted may
 * have fewer stages. */
static bool
lane_leads(const struct eng_falcon_carrier *k, const struct eng_falcon_sender *s)
{
	return rofx_carrier_peer_stage(k->k) == s->stage % rofx_carrier_peer_stages(k->k);
}

/* Chooses the stage of the peer for a sender that begins an exchange: the next one, or, when the
 * peer's other stages could not be reached, one that has a carrier. */
static void
lane_bind(const struct eng_transport *t, struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	struct eng_falcon_carrier *k;
	unsigned n = 0, nth;

	TAILQ_FOREACH (k, &h->carriers, of_host)
		n += eng_falcon_usable(t, k) && !k->retired;
	if (n == 0)
		return;
	nth = h->next_stage % n;
	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (eng_falcon_usable(t, k) && !k->retired && nth-- == 0)
			break;
	s->stage = t->now < h->few_until ? rofx_carrier_peer_stage(k->k)
					 : h->next_stage % rofx_carrier_peer_stages(k->k);
	s->bound = true;
	h->next_stage++;
}

/* Returns the carrier for the first frame of the sender, or NULL. */
static struct eng_falcon_carrier *
host_pick(const struct eng_transport *t, struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	bool begins = rofx_begins(s->x);
	struct eng_falcon_carrier *k, *best = NULL;

	if (!s->bound)
		lane_bind(t, h, s);
	if (!s->bound)
		return NULL;
	TAILQ_FOREACH (k, &h->carriers, of_host) {
		if (!eng_falcon_usable(t, k) || (begins && k->retired) || !lane_leads(k, s))
			continue;
		/* Of two that one side has opened, the older one may be that of a peer that has
		 * been restarted. */
		if (best == NULL || best->retired > k->retired ||
			(best->retired == k->retired &&
				(eng_falcon_survives(k) || !eng_falcon_survives(best))))
			best = k;
	}
	return best;
}

/* Removes a sender that has no more frames from its lane, or moves it behind the others. */
static void
lane_again(struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	eng_falcon_sender_leave(h, s);
	if (rofx_waits(s->x))
		lane_enter(h, s);
	else if (s->orphan)
		orphan_free(h, s);
}

/* Passes one frame. Returns whether there may be more to pass in the lane. */
static bool
host_pass(struct eng_transport *t, struct eng_falcon_host *h, struct eng_falcon_sender *s)
{
	struct eng_falcon_carrier *k = NULL;
	int rc = -ENOENT;

	if (rofx_waits(s->x)) {
		k = host_pick(t, h, s);
		if (k == NULL) {
			lane_park(h, s);
			return true;
		}
		if (!eng_falcon_carrier_open_for(t, k))
			return false;
		rc = rofx_pass(s->x, k->k);
		if (rc == -EAGAIN && eng_falcon_carrier_flush(t, k) == 0)
			rc = rofx_pass(s->x, k->k);
	}
	if (rc != 0 && rc != -ENOENT)
		return false;
	if (rc == 0) {
		k->used_at = t->now;
		if (!s->orphan)
			SK_CONTAINER(s, struct eng_falcon_conn, out)->via = k->number;
	}
	lane_again(h, s);
	return true;
}

void
eng_falcon_flush(struct eng_transport *t, struct eng_falcon_host *h)
{
	struct eng_falcon_carrier *k;
	uint16_t stuck = 0, left;

	while ((left = (uint16_t)(h->filled & ~stuck)) != 0) {
		unsigned lane = h->lane;

		while ((left & 1u << lane) == 0)
			lane = (lane + 1) % ENG_FALCON_LANES;
		h->lane = (uint8_t)((lane + 1) % ENG_FALCON_LANES);
		if (!host_pass(t, h, TAILQ_FIRST(&h->lanes[lane])))
			stuck |= (uint16_t)(1u << lane);
	}
	TAILQ_FOREACH (k, &h->carriers, of_host)
		if (k->up || k->unsent)
			eng_falcon_carrier_flush(t, k);
}

void
eng_falcon_send(struct eng_transport *t, struct eng_falcon_conn *fc)
{
	struct eng_falcon_host *h = fc->host;

	if (h == NULL || !rofx_waits(fc->out.x))
		return;
	if (fc->out.parked) /* another stage of the peer may have it now */
		eng_falcon_sender_leave(h, &fc->out);
	lane_enter(h, &fc->out);
	eng_falcon_flush(t, h);
	if (h->filled != 0 || !TAILQ_EMPTY(&h->parked))
		eng_falcon_host_wake(eng_falcon_of(t), h);
}
