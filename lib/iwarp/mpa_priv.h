/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the bytes of an FPDU lie on the stream (RFC 5044 4.1, 4.3), for the sender and the receiver
 * alike.
 *
 * Markers stand at the stream positions that are multiples of 512, counted with the markers
 * themselves, so that 508 other bytes lie between two of them. One that falls between two FPDUs
 * belongs to the later one. FPDUs and markers are multiples of 4 bytes long, hence no marker ever
 * splits a length field or a CRC.
 */
#ifndef SAKER_MPA_PRIV_H
#define SAKER_MPA_PRIV_H

#include "mpa.h"

#define MPA_BETWEEN (MPA_MARKER_EVERY - MPA_MARKER_LEN)

/* An FPDU without markers: length field, ULPDU, pad, CRC. */
static inline uint32_t
mpa_plain_len(uint32_t ulpdu_len)
{
	return ((MPA_LEN_FIELD + ulpdu_len + 3) & ~3u) + MPA_CRC_LEN;
}

/* Markers in front of byte `n` (from 0, markers not counted) of the FPDU that starts at stream
 * position `pos`. */
static inline uint32_t
mpa_markers_before(uint32_t pos, uint32_t n)
{
	uint32_t first = -pos % MPA_MARKER_EVERY;

	return n < first ? 0 : 1 + (n - first) / MPA_BETWEEN;
}

/* Stream bytes of an FPDU that starts at `pos`. */
static inline uint32_t
mpa_stream_len(bool markers, uint32_t pos, uint32_t ulpdu_len)
{
	uint32_t plain = mpa_plain_len(ulpdu_len);

	return markers ? plain + MPA_MARKER_LEN * mpa_markers_before(pos, plain - 1) : plain;
}

#endif
