/* SPDX-License-Identifier: BSD-3-Clause */
/* Falcon's payload buffers on the heap, for tests of the libraries above and below Falcon. */
#ifndef TEST_FA_PAYLOAD_H
#define TEST_FA_PAYLOAD_H

#include "../../lib/falcon/falcon.h"

#include "need.h"

/* Returns a zeroed buffer with `room` writable bytes at data. fa_payload_free() frees it. */
static inline struct fa_buf *
fa_payload_new(void *owner, uint32_t room)
{
	struct fa_buf *b = calloc(1, sizeof(*b));

	need(b != NULL);
	b->data = malloc(room ? room : 1);
	need(b->data != NULL);
	b->owner = owner;
	return b;
}

static inline void
fa_payload_free(struct fa_buf *b)
{
	free(b->data);
	free(b);
}

#endif
