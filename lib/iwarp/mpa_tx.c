/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of MPA (RFC 5044 4 and 5): the size of an FPDU that fits a segment, and FPDUs
 * written into contiguous memory. The part that each FPDU needs is inline in mpa.h; this file
 * contains the rest.
 */
#include "mpa_priv.h"

#include "../base/mem.h"

/* The length that DDP relies on, however small a peer's MSS is. TCP cuts a longer record. */
#define MULPDU_MIN 128
#define MULPDU_MAX (65535 - 18) /* limit of the ULPDU length field, less room for a DDP header */
#define EMSS_MAX   65532        /* with markers: an FPDU pointer has 16 bits */

void
mpa_tx_init(struct mpa_tx *t, bool crc, bool markers, uint32_t emss)
{
	*t = (struct mpa_tx){.emss = emss, .crc = crc, .markers = markers};
}

uint32_t
mpa_mulpdu(const struct mpa_tx *t)
{
	uint32_t emss = t->emss, overhead = MPA_LEN_FIELD + MPA_CRC_LEN;

	if (t->markers) {
		emss = SK_MIN(emss, EMSS_MAX);
		overhead += MPA_MARKER_LEN * ((emss + MPA_MARKER_EVERY - 1) / MPA_MARKER_EVERY);
	}
	overhead += emss % 4;
	if (emss < MULPDU_MIN + overhead)
		return MULPDU_MIN;
	return SK_MIN(emss - overhead, MULPDU_MAX);
}

uint32_t
mpa_fpdu_len(const struct mpa_tx *t, uint32_t pos, uint32_t ulpdu_len)
{
	return mpa_stream_len(t->markers, pos, ulpdu_len);
}

/* Returns the number of bytes from the writer's position to the next position of a marker; 0 if a
 * marker is due at the writer's position. */
static uint32_t
to_marker(const struct mpa_writer *w)
{
	return -(w->tx->pos + (uint32_t)(w->at - w->start)) % MPA_MARKER_EVERY;
}

void
mpa_write_marker(struct mpa_writer *w)
{
	uint32_t pos = w->tx->pos + (uint32_t)(w->at - w->start);

	if (pos % MPA_MARKER_EVERY != 0)
		return;
	wire_mpa_marker_emit(w->at, pos == w->tx->pos ? 0 : (uint16_t)(pos - w->start_pos));
	w->at += MPA_MARKER_LEN;
}

void
mpa_write_marked(struct mpa_writer *w, const void *src, uint32_t len)
{
	const uint8_t *p = src;

	while (len > 0) {
		uint32_t n;

		mpa_write_marker(w);
		n = SK_MIN(len, to_marker(w));
		memcpy(w->at, p, n);
		w->at += n;
		p += n;
		len -= n;
	}
}

void
mpa_write_checked(struct mpa_writer *w, const void *src, uint32_t len)
{
	bool odd = (w->at - w->start) % 2 != 0;

	if (odd)
		w->check.sum = sk_sum_odd(w->check.sum);
	w->check = sk_check_copy(w->check, w->at, src, len);
	if (odd)
		w->check.sum = sk_sum_odd(w->check.sum);
}
