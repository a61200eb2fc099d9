/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slices that a receiver holds. They refer to the network's buffers, so a peer that sends an
 * FPDU in segments of one byte could pin a buffer for each byte. Therefore, when more bytes arrive
 * while many slices with few bytes are held, or when the user's share of slices is used up
 * (mpa_store.c), the held bytes are copied into chunks of this library, and the slices are freed. A
 * byte is copied at most once.
 *
 * The list always consists of chunks, followed by TCP's slices.
 */
#include "mpa_rx_priv.h"

#include <stdlib.h>

#include "../base/mem.h"

#define CHUNK_LEN (16 * 1024)
#define CHUNK_MIN 256

struct chunk {
	struct tcp_slice slice;
	uint32_t room; /* bytes of bytes[] */
	uint8_t bytes[];
};

/* A chunk has the address of this variable in `owner`, which distinguishes it from TCP's slices. */
static const char chunk_tag;

static bool
is_chunk(const struct tcp_slice *s)
{
	return s->owner == &chunk_tag;
}

static struct chunk *
chunk_of(struct tcp_slice *s)
{
	return SK_CONTAINER(s, struct chunk, slice);
}

/* Returns an empty chunk, or NULL after it has set r->no_memory or r->starved. */
static struct chunk *
chunk_new(struct mpa_rx *r, uint32_t room)
{
	struct chunk *c;

	if (!mpa_store_take(r, room))
		return NULL;
	c = malloc(sizeof(*c) + room);
	if (c == NULL) {
		mpa_store_give(r, room);
		r->no_memory = true;
		return NULL;
	}
	c->room = room;
	c->slice = (struct tcp_slice){.data = c->bytes, .owner = (void *)(uintptr_t)&chunk_tag};
	return c;
}

static void
chunks_free(struct mpa_rx *r, struct tcp_slice *s)
{
	while (s != NULL) {
		struct tcp_slice *next = s->next;

		mpa_store_give(r, chunk_of(s)->room);
		free(chunk_of(s));
		s = next;
	}
}

/* Sets *first to a chain of empty chunks with room for `len` bytes (NULL if len is 0). The last
 * chunk also has room for the `more` bytes that are expected later, as far as its maximum permits.
 * Returns false when there is no memory for them. */
static bool
chunks_for(struct mpa_rx *r, uint32_t len, uint32_t more, struct tcp_slice **first)
{
	struct tcp_slice **link = first;

	*first = NULL;
	while (len > 0) {
		uint32_t room = SK_MIN(len + more, (uint32_t)CHUNK_LEN);
		struct chunk *c = chunk_new(r, SK_MAX(room, (uint32_t)CHUNK_MIN));

		if (c == NULL) {
			chunks_free(r, *first);
			return false;
		}
		*link = &c->slice;
		link = &c->slice.next;
		len -= SK_MIN(len, c->room);
	}
	return true;
}

/* Copies the chain `s`, from byte `off`, into the chain of chunks at `to`, and returns the last
 * chunk. */
static struct tcp_slice *
fill_chunks(struct tcp_slice *to, const struct tcp_slice *s, uint32_t off)
{
	for (; s != NULL; s = s->next, off = 0) {
		while (off < s->len) {
			struct chunk *c = chunk_of(to);
			uint32_t n = SK_MIN(s->len - off, c->room - to->len);

			if (n == 0) {
				to = to->next;
				continue;
			}
			memcpy(c->bytes + to->len, s->data + off, n);
			to->len += n;
			off += n;
		}
	}
	return to;
}

bool
mpa_gather(struct mpa_rx *r)
{
	struct tcp_slice **link = &r->head, *last = NULL, *loose, *fresh;
	uint32_t whole = mpa_rx_expected(r), off, len, room;

	for (; *link != NULL && is_chunk(*link); link = &last->next)
		last = *link;
	loose = *link;
	off = loose == r->head ? r->off : 0;
	len = r->slice_bytes - off;
	room = last != NULL ? chunk_of(last)->room - last->len : 0;
	if (!chunks_for(
		    r, len > room ? len - room : 0, whole > r->have ? whole - r->have : 0, &fresh))
		return false;
	*link = fresh;
	if (last == NULL) {
		last = fresh;
		r->off = 0;
	}
	r->tail = fill_chunks(last, loose, off);
	r->slice_free(r->ctx, loose);
	r->nslices = 0;
	r->slice_bytes = 0;
	if (r->store != NULL)
		sk_count(r->store->counters, MPA_GATHERED);
	return true;
}

void
mpa_rx_init(struct mpa_rx *r, bool crc, bool markers,
	void (*slice_free)(void *ctx, struct tcp_slice *chain), void *ctx)
{
	*r = (struct mpa_rx){.crc = crc, .markers = markers, .slice_free = slice_free, .ctx = ctx};
}

void
mpa_rx_add(struct mpa_rx *r, struct tcp_slice *chain)
{
	if (r->nslices > MPA_SLICES_MAX && r->slice_bytes / MPA_TINY < r->nslices)
		mpa_gather(r);
	if (r->head == NULL) {
		r->head = chain;
		r->off = 0;
	} else {
		r->tail->next = chain;
	}
	for (; chain != NULL; chain = chain->next) {
		r->tail = chain;
		r->have += chain->len;
		r->slice_bytes += chain->len;
		r->nslices++;
	}
}

void
mpa_rx_release(struct mpa_rx *r, uint32_t len)
{
	struct tcp_slice *used = NULL, **link = &used, *only = r->head;

	len += r->off;
	if (only != NULL && only->next == NULL && only->len == len && !is_chunk(only)) {
		r->head = NULL;
		r->off = 0;
		r->nslices--;
		r->slice_bytes -= len;
		r->slice_free(r->ctx, only);
		return;
	}
	while (r->head != NULL && len >= r->head->len) {
		struct tcp_slice *s = r->head;

		len -= s->len;
		r->head = s->next;
		s->next = NULL;
		if (is_chunk(s)) {
			chunks_free(r, s);
			continue;
		}
		r->nslices--;
		r->slice_bytes -= s->len;
		*link = s;
		link = &s->next;
	}
	r->off = len;
	if (used != NULL)
		r->slice_free(r->ctx, used);
}

void
mpa_rx_clear(struct mpa_rx *r)
{
	mpa_rx_release(r, r->have);
	r->have = 0;
	r->checked = false;
	mpa_store_leave(r);
}
