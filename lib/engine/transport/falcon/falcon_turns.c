/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns of a stage's carriers.
 *
 * Turns of TLS. A message of TLS's handshake costs as much time as hundreds of packets, and any
 * host can send one. So the carriers that have such work take turns: one in a turn of the stage,
 * first come, first served, and after each one TLS pauses for PAUSE times the time that it took.
 * TLS has at most the share 1 / (PAUSE + 1) of the lcore, however many carriers begin. The time
 * that it took is the time from the turn to the stage's next turn: an upper bound.
 *
 * Turns of frames. A frame has as few as 12 bytes, so a segment has many, and a full receive window
 * has a hundred thousand. In a turn of the stage, all carriers together process FRAMES_TURN frames,
 * and what else is in the 256 bytes or the record of TLS that reach the number; other bytes wait. A
 * record costs as much as a frame, and may have one byte of it or none: records count, too.
 */
#include "../../../base/mem.h"
#include "falcon_priv.h"

#define PAUSE       3
#define FRAMES_TURN 64
#define MOST_NS     2000000u /* a longer turn was interrupted: its time is not that of TLS */

void
eng_falcon_tls_forget(struct eng_falcon *f, struct eng_falcon_carrier *k)
{
	if (!k->waits)
		return;
	TAILQ_REMOVE(&f->waiting, k, next);
	k->waits = false;
	eng_falcon_add(&f->nwaiting, -1);
}

bool
eng_falcon_may(struct eng_falcon *f, struct eng_falcon_carrier *k, bool begins)
{
	if (f->tls_turn == k || !rofx_carrier_handshakes(k->k))
		return true;
	k->begins |= begins;
	if (!k->waits) {
		TAILQ_INSERT_TAIL(&f->waiting, k, next);
		k->waits = true;
		eng_falcon_add(&f->nwaiting, 1);
	}
	return false;
}

void
eng_falcon_turn_over(struct eng_falcon *f, uint64_t now)
{
	uint64_t took = SK_MIN(now - f->tls_from, MOST_NS);

	f->tls_at = now + PAUSE * took;
	f->tls_from = SK_NEVER;
}

bool
eng_falcon_turn(struct eng_transport *t, uint64_t now)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_carrier *k = TAILQ_FIRST(&f->waiting);
	bool begins;

	if (k == NULL || f->tls_from != SK_NEVER || now < f->tls_at)
		return false;
	eng_falcon_tls_forget(f, k);
	begins = k->begins;
	k->begins = false;
	f->tls_from = now;
	f->tls_turn = k;
	if (begins)
		eng_falcon_carrier_begin(t, k);
	else
		tcp_deliver_resume(k->c->tcp);
	f->tls_turn = NULL;
	return true;
}

bool
eng_falcon_frames_left(const struct eng_falcon *f)
{
	return f->nframes < FRAMES_TURN;
}

bool
eng_falcon_frames_turn(struct eng_transport *t)
{
	struct eng_falcon *f = eng_falcon_of(t);
	struct eng_falcon_carrier *k;
	bool any = !TAILQ_EMPTY(&f->behind);

	f->nframes = 0;
	while (eng_falcon_frames_left(f) && (k = TAILQ_FIRST(&f->behind)) != NULL) {
		TAILQ_REMOVE(&f->behind, k, later);
		eng_falcon_carrier_resume(t, k);
	}
	return any;
}
