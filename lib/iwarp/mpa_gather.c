/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slices that a receiver holds. They refer to the network's buffers, so a peer that sends an
 * FPDU in segments of one byte could pin a buffer for each byte. Therefore, when more bytes arrive
 * while many slices with few bytes are held, the held bytes are copied into chunks of this library,
 * and the slices are freed. A byte is copied at most once.
 *
 * The list always consists of chunks, followed by TCP's slices.
 */
#include "mpa_rx_priv.h"

#include <stdlib.h>

#include "../base/mem.h"

#define CHUNK_LEN (16 * 1024)

struct chunk {
	struct tcp_slice slice;
	uint8_t bytes[CHUNK_LEN];
};

/* A chunk has the address of this variable in `owner`, which distinguishes it from TCP's slices. */
static const char chunk_tag;

static bool
is_chunk(const struct tcp_slice *s)
{
	return s->owner == &chunk_tag;
}

static struct chunk *
chunk_new(void)
{
	struct chunk *c = malloc(sizeof(*c));

	if (c != NULL)
		c->slice = (struct tcp_slice){
			.data = c->bytes, .owner = (void *)(uintptr_t)&chunk_tag};
	return c;
}

static void
chunks_free(struct tcp_slice *s)
{
	while (s != NULL) {
		struct tcp_slice *next = s->next;

		free(SK_CONTAINER(s, struct chunk, slice));
		s = next;
	}
}

/* Returns a chain of empty chunks with room for `len` bytes (NULL if len is 0). Sets *ok to false
 * if there is no memory. */
static struct tcp_slice *
chunks_for(uint32_t len, bool *ok)
{
	struct tcp_slice *first = NULL;

	for (uint32_t room = 0; room < len; room += CHUNK_LEN) {
		struct chunk *c = chunk_new();

		if (c == NULL) {
			chunks_free(first);
			*ok = false;
			return NULL;
		}
		c->slice.next = first;
		first = &c->slice;
	}
	*ok = true;
	return first;
}

/* Copies the chain `s`, from byte `off`, into the chain of chunks at `to`, and returns the last
 * chunk. */
static struct tcp_slice *
fill_chunks(struct tcp_slice *to, const struct tcp_slice *s, uint32_t off)
{
	for (; s != NULL; s = s->next, off = 0) {
		while (off < s->len) {
			struct chunk *c = SK_CONTAINER(to, struct chunk, slice);
			uint32_t n = SK_MIN(s->len - off, CHUNK_LEN - to->len);

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

static void
mpa_gather_tiny(struct mpa_rx *r)
{
	struct tcp_slice **link = &r->head, *last = NULL, *loose, *fresh;
	uint32_t off, len, room;
	bool ok;

	for (; *link != NULL && is_chunk(*link); link = &last->next)
		last = *link;
	loose = *link;
	off = loose == r->head ? r->off : 0;
	len = r->slice_bytes - off;
	room = last != NULL ? CHUNK_LEN - last->len : 0;
	fresh = chunks_for(len > room ? len - room : 0, &ok);
	if (!ok) {
		r->no_memory = true;
		return;
	}
	*link = fresh;
	if (last == NULL) {
		last = fresh;
		r->off = 0;
	}
	r->tail = fill_chunks(last, loose, off);
	r->slice_free(r->ctx, loose);
	r->nslices = 0;
	r->slice_bytes = 0;
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
		mpa_gather_tiny(r);
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
	struct tcp_slice *used = NULL, **link = &used;

	len += r->off;
	while (r->head != NULL && len >= r->head->len) {
		struct tcp_slice *s = r->head;

		len -= s->len;
		r->head = s->next;
		s->next = NULL;
		if (is_chunk(s)) {
			chunks_free(s);
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
}
