/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits on what unfinished FPDUs hold. A peer may leave an FPDU unfinished on each of many
 * connections. The shares bound the network's buffers that these bytes pin, so that the transport
 * stages always have buffers to receive other frames in, and then the memory that the bytes are
 * copied into.
 */
#include "mpa_rx_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "../base/mem.h"

#define OLDEST 8 /* receivers among which mpa_store_victim() chooses */

int
mpa_store_init(struct mpa_store *st, uint32_t slices, uint32_t bytes, uint32_t nusers,
	uint32_t reserved, unsigned percent_min, unsigned percent_most, uint64_t *counters)
{
	*st = (struct mpa_store){.counters = counters};
	/* The minimums take at most half of a share. */
	if (percent_min > 0)
		bytes = SK_MAX(bytes, 2 * SK_MIN(reserved, nusers) * MPA_UNFINISHED_MAX);
	bytes = SK_MAX(bytes, 2u * MPA_UNFINISHED_MAX);
	st->holders = calloc(nusers, sizeof(st->holders[0]));
	if (st->holders == NULL ||
		sk_share_init(&st->slices, slices, nusers, reserved,
			sk_share_percent(slices, percent_min, 1),
			sk_share_percent(slices, percent_most, 1)) != 0 ||
		sk_share_init(&st->bytes, bytes, nusers, reserved,
			sk_share_percent(bytes, percent_min, MPA_UNFINISHED_MAX),
			sk_share_percent(bytes, percent_most, MPA_UNFINISHED_MAX)) != 0)
		return -ENOMEM;
	for (uint32_t u = 0; u < nusers; u++)
		TAILQ_INIT(&st->holders[u]);
	return 0;
}

void
mpa_store_fini(struct mpa_store *st)
{
	sk_share_fini(&st->slices);
	sk_share_fini(&st->bytes);
	free(st->holders);
	st->holders = NULL;
}

void
mpa_rx_limit(struct mpa_rx *r, struct mpa_store *store, uint16_t user)
{
	r->store = store;
	r->user = user;
}

bool
mpa_store_take(struct mpa_rx *r, uint32_t bytes)
{
	if (r->store == NULL)
		return true;
	if (sk_share_take(&r->store->bytes, r->user, bytes) != SK_SHARE_OK) {
		r->starved = true;
		return false;
	}
	r->allocated += bytes;
	return true;
}

void
mpa_store_give(struct mpa_rx *r, uint32_t bytes)
{
	if (r->store == NULL)
		return;
	sk_share_give(&r->store->bytes, r->user, bytes);
	r->allocated -= bytes;
}

/* Makes the share count the slices that the receiver holds now. Returns false when there are more
 * than it counts, and the share is used up. */
static bool
store_count(struct mpa_rx *r)
{
	struct sk_share *slices = &r->store->slices;

	if (r->nslices > r->counted &&
		sk_share_take(slices, r->user, r->nslices - r->counted) != SK_SHARE_OK)
		return false;
	if (r->nslices < r->counted)
		sk_share_give(slices, r->user, r->counted - r->nslices);
	r->counted = r->nslices;
	return true;
}

/* Updates the place of the receiver among the holders of its user. */
static void
store_list(struct mpa_rx *r, bool progress)
{
	struct mpa_holders *holders = &r->store->holders[r->user];
	bool holds = r->head != NULL;

	if (r->listed && (progress || !holds)) {
		TAILQ_REMOVE(holders, r, link);
		r->listed = false;
	}
	if (!r->listed && holds) {
		TAILQ_INSERT_TAIL(holders, r, link);
		r->listed = true;
	}
}

bool
mpa_rx_keep(struct mpa_rx *r, bool progress)
{
	bool kept;

	if (r->store == NULL)
		return true;
	r->starved = false;
	kept = store_count(r) || r->no_memory || mpa_gather(r);
	if (kept)
		store_count(r);
	store_list(r, progress);
	return kept || r->no_memory;
}

void
mpa_store_leave(struct mpa_rx *r)
{
	if (r->store == NULL)
		return;
	store_count(r);
	store_list(r, false);
}

/* Returns the number of bytes that the receiver keeps from others. */
static uint64_t
held_bytes(const struct mpa_rx *r)
{
	return (uint64_t)r->allocated + r->slice_bytes;
}

struct mpa_rx *
mpa_store_victim(struct mpa_rx *r)
{
	const struct sk_share *bytes = &r->store->bytes;
	struct mpa_rx *at, *most = NULL;
	uint32_t user = r->user;
	unsigned n = 0;

	if (bytes->used[user] + MPA_UNFINISHED_MAX <= bytes->most)
		for (uint32_t u = 0; u < bytes->nusers; u++)
			if (bytes->used[u] > bytes->used[user])
				user = u;
	TAILQ_FOREACH (at, &r->store->holders[user], link) {
		if (most == NULL || held_bytes(at) > held_bytes(most))
			most = at;
		if (++n == OLDEST)
			break;
	}
	return most != NULL ? most : r;
}
