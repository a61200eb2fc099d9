/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream of an exchange: an opening in each direction, in clear; then frames, in clear or in
 * TLS. The stream gathers one frame at a time, in a buffer for the longest valid one, and refuses
 * an invalid frame by its header.
 */
#include <errno.h>
#include <string.h>

#include "../base/mem.h"
#include "exchange_priv.h"

/* ---- Out ---- */

/* Wipes bytes of frames that were taken; they may have been keys. */
static void
gone(struct rofx *x, size_t n)
{
	explicit_bzero(x->out + x->out_at, n);
	x->out_at = (uint16_t)(x->out_at + n);
}

/* Seals the frames that wait for TLS. */
static int
exchange_stream_seal(struct rofx *x)
{
	while (x->link != NULL && x->out_at < x->out_len) {
		int n = rofx_link_write(x->link, x->out + x->out_at, x->out_len - x->out_at);

		if (n <= 0)
			return n;
		gone(x, (size_t)n);
	}
	return 0;
}

static void
compact(struct rofx *x)
{
	uint16_t len = (uint16_t)(x->out_len - x->out_at);

	memmove(x->out, x->out + x->out_at, len);
	explicit_bzero(x->out + len, (size_t)(x->out_len - len));
	x->out_len = len;
	x->out_at = 0;
}

int
rofx_send(struct rofx *x, const struct rofx_frame *f)
{
	uint8_t buf[ROFX_FRAME_MAX];
	size_t len = rofx_frame_emit(buf, f);

	compact(x);
	if (len > (size_t)(x->out_room - x->out_len)) {
		explicit_bzero(buf, sizeof(buf));
		return -ENOBUFS;
	}
	memcpy(x->out + x->out_len, buf, len);
	x->out_len = (uint16_t)(x->out_len + len);
	explicit_bzero(buf, sizeof(buf));
	return 0;
}

void
rofx_send_opening(struct rofx *x, const struct rofx_opening *o)
{
	rofx_opening_emit(x->opening, o);
	x->opening_at = 0;
}

static size_t
exchange_stream_take(uint8_t *buf, size_t room, const uint8_t *from, size_t have)
{
	size_t n = SK_MIN(room, have);

	if (n > 0)
		memcpy(buf, from, n);
	return n;
}

size_t
rofx_output(struct rofx *x, uint8_t *buf, size_t room)
{
	size_t n = exchange_stream_take(
		buf, room, x->opening + x->opening_at, (size_t)(ROFX_OPENING_LEN - x->opening_at));
	size_t frames;

	x->opening_at = (uint8_t)(x->opening_at + n);
	if (x->opening_at < ROFX_OPENING_LEN)
		return n;
	if (x->link != NULL) {
		/* An error becomes visible with the peer's answer, or without one by the
		 * timeout. */
		exchange_stream_seal(x);
		return n + rofx_link_take(x->link, buf + n, room - n);
	}
	/* An initiator that required TLS and was refused sends nothing in clear. */
	if (x->secure)
		return n;
	frames = exchange_stream_take(
		buf + n, room - n, x->out + x->out_at, (size_t)(x->out_len - x->out_at));
	gone(x, frames);
	return n + frames;
}

/* ---- In ---- */

/* The bytes to read: in clear, a window on the received bytes; in TLS, the opened bytes. */
struct source {
	struct rofx_link *link;
	const uint8_t *data;
	size_t len;
};

/* Fills the frame buffer up to `want` bytes. Returns 1 when it is filled, 0 when bytes are missing,
 * or -reason. */
static int
exchange_stream_gather(struct rofx *x, struct source *s, size_t want)
{
	while (x->frame_have < want) {
		size_t room = want - x->frame_have;
		int n;

		if (s->link != NULL) {
			n = rofx_link_read(s->link, x->frame + x->frame_have, room);
		} else {
			n = (int)exchange_stream_take(
				x->frame + x->frame_have, room, s->data, s->len);
			s->data += n;
			s->len -= (size_t)n;
		}
		if (n <= 0)
			return n;
		x->frame_have = (uint16_t)(x->frame_have + n);
	}
	return 1;
}

static int
read_opening(struct rofx *x, struct source *s)
{
	struct rofx_opening o;
	int n = exchange_stream_gather(x, s, ROFX_OPENING_LEN);

	if (n <= 0)
		return n;
	x->frame_have = 0;
	if (rofx_opening_parse(&o, x->frame) != 0 || o.reply != x->initiator)
		return rofx_fail_silent(x, ROFX_BAD_KEY);
	n = rofx_opened(x, &o);
	return n < 0 ? n : 1;
}

/* Returns 1 when a frame was read, 0 when bytes are missing, or -reason. */
static int
read_frame(struct rofx *x, uint64_t now, struct source *s)
{
	struct rofx_frame f = {0};
	int len, n = exchange_stream_gather(x, s, ROFX_HEADER_LEN);

	if (n <= 0)
		return n < 0 ? rofx_fail_silent(x, -n) : 0;
	len = rofx_header_parse(&f.type, x->frame);
	if (len < 0)
		return rofx_fail(x, -len);
	if (!rofx_expected(x, f.type))
		return rofx_fail(x, ROFX_UNEXPECTED);
	if (ROFX_HEADER_LEN + len > x->frame_room)
		return rofx_fail(x, ROFX_BAD_FRAME);
	n = exchange_stream_gather(x, s, (size_t)(ROFX_HEADER_LEN + len));
	if (n <= 0)
		return n < 0 ? rofx_fail_silent(x, -n) : 0;
	n = rofx_frame_parse(&f, x->frame + ROFX_HEADER_LEN, (size_t)len);
	n = n != 0 ? rofx_fail(x, n) : rofx_step(x, now, &f);
	explicit_bzero(&f, sizeof(f));
	explicit_bzero(x->frame, x->frame_have);
	x->frame_have = 0;
	return n < 0 ? n : 1;
}

static int
exchange_stream_read_all(struct rofx *x, uint64_t now, struct source *s)
{
	int n = 1;

	while (n > 0 && !x->opened)
		n = read_opening(x, s);
	if (n <= 0)
		return n;
	if (x->link != NULL) {
		n = rofx_link_feed(x->link, s->data, s->len);
		if (n < 0)
			return rofx_fail_silent(x, -n);
		s->link = x->link;
	}
	while (n >= 0 && x->state < ROFX_S_DONE) {
		n = read_frame(x, now, s);
		if (n == 0)
			break;
	}
	if (n >= 0 && exchange_stream_seal(x) < 0)
		n = rofx_fail_silent(x, ROFX_TLS);
	if (n >= 0 && x->link != NULL && rofx_link_pending(x->link) > ROFX_BACKLOG_MAX)
		n = rofx_fail_silent(x, ROFX_FLOOD);
	return n;
}

int
rofx_input(struct rofx *x, uint64_t now, const uint8_t *data, size_t len)
{
	struct source s = {NULL, data, len};
	int n;

	if (x->state == ROFX_S_FAILED)
		return -(int)x->why;
	if (len == 0 || x->state == ROFX_S_DONE)
		return (int)len;
	n = exchange_stream_read_all(x, now, &s);
	return n < 0 ? n : (int)len;
}
