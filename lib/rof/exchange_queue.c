/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames that an exchange has for its peer: they wait until the owner passes them to a
 * carrier. */
#include <errno.h>
#include <string.h>

#include "../base/mem.h"
#include "../base/secret.h"
#include "exchange_priv.h"

static int
queue_create(struct rofx *x)
{
	x->out_room = x->su != NULL ? ROFX_FRAME_MAX + ROFX_OUT_LIVE : ROFX_OUT_LIVE;
	x->out = sk_secret_alloc(x->out_room);
	return x->out == NULL ? -ENOBUFS : 0;
}

static int
queue_put(struct rofx *x, struct rofx_frame *f, bool first)
{
	uint8_t buf[ROFX_FRAME_MAX];
	size_t len;
	int rc = 0;

	f->to = x->peer_id;
	f->from = x->id;
	len = rofx_frame_emit(buf, f);
	if (x->out == NULL)
		rc = queue_create(x);
	if (rc == 0 && len > (size_t)(x->out_room - x->out_len))
		rc = -ENOBUFS;
	if (rc == 0) {
		if (first)
			memmove(x->out + len, x->out, x->out_len);
		memcpy(x->out + (first ? 0 : x->out_len), buf, len);
		x->out_len = (uint16_t)(x->out_len + len);
	}
	explicit_bzero(buf, sizeof(buf));
	return rc;
}

int
rofx_send(struct rofx *x, struct rofx_frame *f)
{
	return queue_put(x, f, false);
}

int
rofx_send_first(struct rofx *x, struct rofx_frame *f)
{
	return queue_put(x, f, true);
}

void
rofx_forget(struct rofx *x)
{
	if (x->out_len > 0)
		explicit_bzero(x->out, x->out_len);
	x->out_len = 0;
}

/* Returns the length of the frame at `p`. */
static size_t
queue_frame_len(const uint8_t *p)
{
	return ROFX_HEADER_LEN + ((size_t)p[2] << 8 | p[3]);
}

/* Returns where the first frame of this type begins, or the end of the queue. */
static size_t
queue_find(const struct rofx *x, uint8_t type)
{
	size_t at = 0;

	while (at < x->out_len && x->out[at + 1] != type)
		at += queue_frame_len(x->out + at);
	return at;
}

/* Removes the frame at `at`. */
static void
queue_cut(struct rofx *x, size_t at)
{
	size_t len = queue_frame_len(x->out + at);

	x->out_len = (uint16_t)(x->out_len - len);
	memmove(x->out + at, x->out + at + len, x->out_len - at);
	explicit_bzero(x->out + x->out_len, len);
}

bool
rofx_queued(const struct rofx *x, uint8_t type)
{
	return queue_find(x, type) < x->out_len;
}

void
rofx_unqueue(struct rofx *x, uint8_t type)
{
	size_t at = queue_find(x, type);

	if (at < x->out_len)
		queue_cut(x, at);
	rofx_shrink(x);
}

bool
rofx_waits(const struct rofx *x)
{
	return x->out_len > 0;
}

bool
rofx_begins(const struct rofx *x)
{
	return x->out_len > 0 && (x->state == ROFX_S_ASKED || x->state == ROFX_S_LOOKUP) &&
	       x->peer_id == ROFX_NO_ID;
}

void
rofx_shrink(struct rofx *x)
{
	if (x->out_len > 0 || x->su != NULL)
		return;
	sk_secret_free(x->out, x->out_room);
	x->out = NULL;
}

int
rofx_pass(struct rofx *x, struct rofx_carrier *k)
{
	size_t len;
	uint8_t *to;

	if (x->out_len == 0)
		return -ENOENT;
	if (x->secure && !k->secure)
		return -EPERM;
	len = queue_frame_len(x->out);
	to = rofx_carrier_room(k, len);
	if (to == NULL)
		return -EAGAIN;
	memcpy(to, x->out, len);
	queue_cut(x, 0);
	x->passed = true;
	rofx_carrier_use(k);
	rofx_shrink(x);
	return 0;
}
