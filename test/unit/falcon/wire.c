/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/wheel.h"
#include "wire.h"

uint32_t
wire_random(struct wire *w)
{
	w->seed = w->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w->seed >> 33);
}

bool
wire_chance(struct wire *w, uint32_t ppm)
{
	return ppm && wire_random(w) % 1000000 < ppm;
}

static void
put(struct wire *w, struct wire_packet *p)
{
	struct wire_packet **at = &w->first;

	while (*at != NULL && (*at)->at <= p->at)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

static void
one(struct wire *w, uint64_t now, unsigned from, const struct fa_out *out)
{
	uint32_t payload = out->payload != NULL ? out->payload->data_len : 0;
	struct wire_packet *p = calloc(1, sizeof(*p) + FALCON_MAX + payload);

	p->len = wire_falcon_emit(p->bytes, out->hdr);
	if (payload)
		memcpy(p->bytes + p->len, out->payload->data, payload);
	p->len += payload;
	p->to = !from;
	p->cid = out->hdr->cid;
	p->stamp = out->stamp;
	p->path = out->path;
	p->ce = wire_chance(w, w->mark);
	p->at = now + w->delay_ns;
	if (wire_chance(w, w->late))
		p->at += wire_random(w) % (w->jitter_ns + 1);
	put(w, p);
}

void
wire_send(struct wire *w, uint64_t now, unsigned from, const struct fa_out *out)
{
	w->sent++;
	if ((w->filter != NULL && w->filter(w->ctx, from, out)) || wire_chance(w, w->loss)) {
		w->lost++;
		return;
	}
	one(w, now, from, out);
	if (wire_chance(w, w->twice))
		one(w, now, from, out);
}

struct wire_packet *
wire_take(struct wire *w, uint64_t now)
{
	struct wire_packet *p = w->first;

	if (p == NULL || p->at > now)
		return NULL;
	w->first = p->next;
	return p;
}

uint64_t
wire_next(const struct wire *w)
{
	return w->first != NULL ? w->first->at : SK_NEVER;
}

void
wire_drop_all(struct wire *w)
{
	while (w->first != NULL) {
		struct wire_packet *p = w->first;

		w->first = p->next;
		free(p);
	}
}
