/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving side of MPA (RFC 5044 4): finds FPDUs in the in-order slices of a TCP stream,
 * whatever their alignment, and checks CRC and markers before any of their bytes is handed up. Most
 * FPDUs lie in one slice and contain no marker: they cost one CRC pass and a pointer. For the
 * others, a cursor walks over the slices. mpa_gather.c limits the number of tiny slices.
 */
#include "mpa_rx_priv.h"

#include "../base/mem.h"

/* A position on the held part of the stream. */
struct cursor {
	const struct tcp_slice *s;
	uint32_t off;
};

static struct cursor
cursor_at_next(const struct mpa_rx *r)
{
	return (struct cursor){r->head, r->off};
}

/* Returns the longest contiguous run of at most `max` (1 or more) bytes at the cursor, sets *len
 * and moves the cursor behind the run. The caller stays within the held bytes. */
static const uint8_t *
cursor_run(struct cursor *c, uint32_t max, uint32_t *len)
{
	const uint8_t *p;

	while (c->off == c->s->len) {
		c->s = c->s->next;
		c->off = 0;
	}
	p = c->s->data + c->off;
	*len = SK_MIN(max, c->s->len - c->off);
	c->off += *len;
	return p;
}

static void
cursor_skip(struct cursor *c, uint32_t len)
{
	for (uint32_t n; len > 0; len -= n)
		cursor_run(c, len, &n);
}

static void
cursor_copy(struct cursor *c, uint8_t *dst, uint32_t len)
{
	for (uint32_t n; len > 0; len -= n, dst += n) {
		const uint8_t *p = cursor_run(c, len, &n);

		memcpy(dst, p, n);
	}
}

static bool
crc_good(const struct mpa_rx *r, uint32_t stream_len)
{
	struct cursor c = cursor_at_next(r);
	uint32_t crc = SK_CRC32C_INIT;
	uint8_t field[MPA_CRC_LEN];

	for (uint32_t n, left = stream_len - MPA_CRC_LEN; left > 0; left -= n) {
		const uint8_t *p = cursor_run(&c, left, &n);

		crc = sk_crc32c(crc, p, n);
	}
	cursor_copy(&c, field, MPA_CRC_LEN);
	return wire_mpa_crc_parse(field) == sk_crc32c_final(crc);
}

/* Checks all markers of the FPDU. The two low bits of a marker's FPDU pointer are ignored (RFC 5044
 * 4.3). */
static bool
markers_good(const struct mpa_rx *r, uint32_t stream_len)
{
	struct cursor c = cursor_at_next(r);
	/* Offset of the marker from the FPDU's first byte. */
	uint32_t at = -r->pos % MPA_MARKER_EVERY;
	uint32_t lead = at == 0 ? MPA_MARKER_LEN : 0;

	cursor_skip(&c, SK_MIN(at, stream_len));
	while (at < stream_len) {
		uint16_t want = (uint16_t)(at == 0 ? 0 : at - lead);
		uint8_t field[MPA_MARKER_LEN];

		cursor_copy(&c, field, MPA_MARKER_LEN);
		if ((wire_mpa_marker_parse(field) & ~3) != want)
			return false;
		at += MPA_MARKER_EVERY;
		if (at < stream_len)
			cursor_skip(&c, MPA_BETWEEN);
	}
	return true;
}

/* Returns the offset of byte `n` of the ULPDU from the FPDU's first stream byte. */
static uint32_t
stream_off(const struct mpa_rx *r, uint32_t n)
{
	n += MPA_LEN_FIELD;
	return r->markers ? n + MPA_MARKER_LEN * mpa_markers_before(r->pos, n) : n;
}

static const uint8_t *
flat_ulpdu(const struct mpa_rx *r, uint32_t ulpdu_len)
{
	struct cursor c = cursor_at_next(r);
	uint32_t first = stream_off(r, 0), n;
	const uint8_t *p;

	if (stream_off(r, ulpdu_len - 1) - first != ulpdu_len - 1)
		return NULL;
	cursor_skip(&c, first);
	p = cursor_run(&c, ulpdu_len, &n);
	return n == ulpdu_len ? p : NULL;
}

uint32_t
mpa_rx_expected(const struct mpa_rx *r)
{
	struct cursor c = cursor_at_next(r);
	uint32_t lead = r->markers && r->pos % MPA_MARKER_EVERY == 0 ? MPA_MARKER_LEN : 0;
	uint8_t field[MPA_LEN_FIELD];

	if (r->have < lead + MPA_LEN_FIELD)
		return 0;
	cursor_skip(&c, lead);
	cursor_copy(&c, field, MPA_LEN_FIELD);
	return mpa_stream_len(r->markers, r->pos, wire_mpa_len_parse(field));
}

/* Returns the running CRC of an FPDU of `len` bytes at the next byte of the first slice, without
 * the CRC field: the CRC that came with the slice if the FPDU is all that the slice holds. */
static uint32_t
flat_crc(struct mpa_rx *r, uint32_t len)
{
	const struct tcp_slice *s = r->head;

	r->whole = r->off == 0 && s->len == len;
	if (r->whole && s->crc_len == len - MPA_CRC_LEN)
		return s->crc;
	return sk_crc32c(SK_CRC32C_INIT, s->data + r->off, len - MPA_CRC_LEN);
}

/* Does the work of mpa_rx_next() for any alignment, with or without markers. */
static int
next_scattered(struct mpa_rx *r, struct mpa_fpdu *f)
{
	struct cursor c = cursor_at_next(r);
	uint32_t lead = r->markers && r->pos % MPA_MARKER_EVERY == 0 ? MPA_MARKER_LEN : 0;
	uint8_t field[MPA_LEN_FIELD];

	if (r->have < lead + MPA_LEN_FIELD)
		return 0;
	cursor_skip(&c, lead);
	cursor_copy(&c, field, MPA_LEN_FIELD);
	f->ulpdu_len = wire_mpa_len_parse(field);
	f->stream_len = mpa_stream_len(r->markers, r->pos, f->ulpdu_len);
	if (r->have < f->stream_len)
		return 0;
	r->whole = false;
	if (!r->checked) {
		if (r->crc && !crc_good(r, f->stream_len))
			return -MPA_CRC;
		if (r->markers && !markers_good(r, f->stream_len))
			return -MPA_MARKER;
	}
	if (f->ulpdu_len < DDP_TAGGED_LEN)
		return -MPA_SHORT_ULPDU;
	r->checked = true;
	f->rx = r;
	f->flat = flat_ulpdu(r, f->ulpdu_len);
	return 1;
}

int
mpa_rx_next(struct mpa_rx *r, struct mpa_fpdu *f)
{
	const uint8_t *p;
	uint32_t here, ulpdu_len, len;

	if (r->no_memory)
		return -MPA_NO_MEMORY;
	if (r->head == NULL)
		return 0;
	here = r->head->len - r->off;
	if (r->markers || here < MPA_LEN_FIELD)
		return next_scattered(r, f);
	p = r->head->data + r->off;
	ulpdu_len = wire_mpa_len_parse(p);
	len = mpa_plain_len(ulpdu_len);
	if (here < len)
		return r->have < len ? 0 : next_scattered(r, f);
	if (r->crc && !r->checked) {
		uint32_t crc = flat_crc(r, len);

		if (wire_mpa_crc_parse(p + len - MPA_CRC_LEN) != sk_crc32c_final(crc))
			return -MPA_CRC;
	}
	if (ulpdu_len < DDP_TAGGED_LEN)
		return -MPA_SHORT_ULPDU;
	r->checked = true;
	*f = (struct mpa_fpdu){r, ulpdu_len, len, p + MPA_LEN_FIELD};
	return 1;
}

void
mpa_fpdu_copy(const struct mpa_fpdu *f, uint32_t off, void *dst, uint32_t len)
{
	const struct mpa_rx *r = f->rx;
	struct cursor c = cursor_at_next(r);
	uint8_t *to = dst;
	uint32_t at;

	if (f->flat != NULL) {
		memcpy(dst, f->flat + off, len);
		return;
	}
	at = stream_off(r, off);
	cursor_skip(&c, at);
	while (len > 0) {
		uint32_t n = len;

		if (r->markers) {
			uint32_t gap = -(r->pos + at) % MPA_MARKER_EVERY;

			if (gap == 0) {
				cursor_skip(&c, MPA_MARKER_LEN);
				at += MPA_MARKER_LEN;
				gap = MPA_BETWEEN;
			}
			n = SK_MIN(len, gap);
		}
		cursor_copy(&c, to, n);
		at += n;
		to += n;
		len -= n;
	}
}

uint32_t
mpa_rx_done(struct mpa_rx *r, const struct mpa_fpdu *f)
{
	r->pos += f->stream_len;
	r->have -= f->stream_len;
	r->checked = false;
	if (r->head->len - r->off > f->stream_len)
		r->off += f->stream_len;
	else
		mpa_rx_release(r, f->stream_len);
	return f->stream_len;
}
