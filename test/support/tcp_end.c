/* SPDX-License-Identifier: BSD-3-Clause */
/* See tcp_end.h. */
#include "tcp_end.h"

#include <stdlib.h>
#include <string.h>

static void *
tcp_end_alloc(size_t size)
{
	void *block = calloc(1, size);

	if (block == NULL)
		abort();
	return block;
}

static uint8_t *
tcp_end_bytes(const uint8_t *data, uint32_t len)
{
	uint8_t *bytes = tcp_end_alloc(len);

	if (data != NULL)
		memcpy(bytes, data, len);
	return bytes;
}

struct tcp_rec *
tcp_end_rec(int64_t *live, const uint8_t *data, uint32_t len)
{
	struct tcp_rec *rec = tcp_end_alloc(sizeof(*rec));

	rec->len = len;
	if (data != NULL)
		rec->owner = rec->data = tcp_end_bytes(data, len);
	++*live;
	return rec;
}

struct tcp_rec *
tcp_end_rec_split(int64_t *live, struct tcp_rec *rec, uint32_t at)
{
	const uint8_t *behind = rec->data != NULL ? rec->data + at : NULL;
	struct tcp_rec *rest = tcp_end_rec(live, behind, rec->len - at);

	rec->len = at;
	return rest;
}

void
tcp_end_rec_free(int64_t *live, struct tcp_rec *chain)
{
	struct tcp_rec *next;

	for (; chain != NULL; chain = next) {
		next = chain->next;
		free(chain->owner);
		free(chain);
		--*live;
	}
}

struct tcp_slice *
tcp_end_slice(int64_t *live, const uint8_t *data, uint32_t len)
{
	struct tcp_slice *slice = tcp_end_alloc(sizeof(*slice));
	uint8_t *bytes = tcp_end_bytes(data, len);

	*slice = (struct tcp_slice){.data = bytes, .len = len, .owner = bytes};
	++*live;
	return slice;
}

void
tcp_end_slice_free(int64_t *live, struct tcp_slice *chain)
{
	struct tcp_slice *next;

	for (; chain != NULL; chain = next) {
		next = chain->next;
		free(chain->owner);
		free(chain);
		--*live;
	}
}
