/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transmit windows (9.1.1): packets by PSN, and one bit each for outstanding, held by the
 * peer's ULP, and lost. An empty window has no ring, so that idle connections are small; the stack
 * keeps spare rings.
 */
#include <stdlib.h>

#include "conn_priv.h"

void
pdl_txw_init(struct pdl_txw *w, uint32_t psn, uint16_t size)
{
	w->base = w->next = psn;
	w->highest = psn - 1;
	w->size = size;
}

static struct fa_pkt **
ring_get(struct fa_stack *s, unsigned class)
{
	struct pdl_ring_block *b = s->pdl.rings[class];

	if (b == NULL)
		return malloc(((size_t)PDL_RING_MIN << class) * sizeof(struct fa_pkt *));
	s->pdl.rings[class] = b->next;
	return (struct fa_pkt **)b;
}

static void
ring_put(struct fa_stack *s, struct pdl_txw *w)
{
	unsigned class = (unsigned)__builtin_ctz((w->ring_mask + 1u) / PDL_RING_MIN);
	struct pdl_ring_block *b = (struct pdl_ring_block *)w->ring;

	b->next = s->pdl.rings[class];
	s->pdl.rings[class] = b;
	w->ring = NULL;
}

void
pdl_rings_free(struct fa_stack *s)
{
	for (unsigned i = 0; i < PDL_RING_CLASSES; i++) {
		while (s->pdl.rings[i] != NULL) {
			struct pdl_ring_block *b = s->pdl.rings[i];

			s->pdl.rings[i] = b->next;
			free(b);
		}
	}
}

bool
pdl_txw_grow(struct fa_stack *s, struct pdl_txw *w)
{
	uint32_t room = w->ring != NULL ? (w->ring_mask + 1u) * 2 : PDL_RING_MIN;
	struct fa_pkt **ring = ring_get(s, (unsigned)__builtin_ctz(room / PDL_RING_MIN));

	if (ring == NULL)
		return false;
	if (w->ring != NULL) {
		for (uint32_t psn = w->base; psn != w->next; psn++)
			ring[psn & (room - 1)] = pdl_txw_get(w, psn);
		ring_put(s, w);
	}
	w->ring = ring;
	w->ring_mask = (uint16_t)(room - 1);
	return true;
}

void
pdl_txw_add(struct pdl_txw *w, struct fa_pkt *p)
{
	p->psn = w->next++;
	w->ring[p->psn & w->ring_mask] = p;
	pdl_bit_set(w->live, PDL_WINDOW_MAX, p->psn);
	w->flow_out[p->flow]++;
	if (pdl_is_request(p))
		w->orc++;
}

void
pdl_txw_found(struct pdl_txw *w, struct fa_pkt *p)
{
	if (!pdl_bit(w->lost, PDL_WINDOW_MAX, p->psn))
		return;
	pdl_bit_clear(w->lost, PDL_WINDOW_MAX, p->psn);
	w->lost_count--;
}

static void
leave_orrc(struct pdl_txw *w, struct fa_pkt *p)
{
	if (p->flags & PKT_ORRC)
		w->orrc--;
	p->flags &= (uint8_t)~PKT_ORRC;
}

void
pdl_txw_remove(struct pdl_txw *w, struct fa_pkt *p)
{
	pdl_txw_found(w, p);
	leave_orrc(w, p);
	pdl_bit_clear(w->live, PDL_WINDOW_MAX, p->psn);
	pdl_bit_clear(w->held, PDL_WINDOW_MAX, p->psn);
	w->flow_out[p->flow]--;
	if (pdl_is_request(p))
		w->orc--;
}

void
pdl_txw_lost(struct pdl_txw *w, struct fa_pkt *p, uint8_t why)
{
	if (pdl_bit(w->lost, PDL_WINDOW_MAX, p->psn))
		return;
	leave_orrc(w, p); /* eligible again: 9.1.2 */
	p->flags = (uint8_t)((p->flags & ~(PKT_WHY | PKT_RNR)) | why);
	pdl_bit_clear(w->held, PDL_WINDOW_MAX, p->psn);
	pdl_bit_set(w->lost, PDL_WINDOW_MAX, p->psn);
	w->lost_count++;
}

void
pdl_txw_rebase(struct fa_stack *s, struct pdl_txw *w, uint32_t base)
{
	w->base = base;
	if (pdl_before(w->highest, base - 1))
		w->highest = base - 1;
	if (w->base == w->next && w->ring != NULL)
		ring_put(s, w);
}

static inline uint64_t
word_of(const struct pdl_txw *w, unsigned i, enum pdl_which which)
{
	switch (which) {
	case PDL_LIVE:
		return w->live[i];
	case PDL_LOST:
		return w->lost[i];
	case PDL_WAITING:
		return w->live[i] & ~w->lost[i];
	case PDL_ABSENT:
		return w->live[i] & ~w->held[i];
	default:
		return w->live[i] & ~w->lost[i] & ~w->held[i];
	}
}

bool
pdl_txw_find(const struct pdl_txw *w, uint32_t *psn, enum pdl_which which)
{
	uint32_t at = *psn;

	while (pdl_before(at, w->next)) {
		uint64_t bits = word_of(w, at % PDL_WINDOW_MAX / 64, which) >> (at % 64);

		if (bits) {
			at += (uint32_t)__builtin_ctzll(bits);
			break;
		}
		at += 64 - at % 64;
	}
	*psn = at;
	return pdl_before(at, w->next);
}
