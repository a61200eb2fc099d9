/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The positions of an FPDU's bytes on the stream (RFC 5044 4.1, 4.3), for the sender and the
 * receiver.
 *
 * Markers stand at the stream positions that are multiples of 512. The markers themselves count, so
 * 508 other bytes lie between two of them. A marker that falls between two FPDUs belongs to the
 * later one. FPDUs and markers are multiples of 4 bytes long, hence no marker splits a length field
 * or a CRC.
 */
#ifndef SAKER_MPA_PRIV_H
#define SAKER_MPA_PRIV_H

#include "mpa.h"

#define MPA_BETWEEN (MPA_MARKER_EVERY - MPA_MARKER_LEN)

/* Returns the bytes of an FPDU without markers: length field, ULPDU, pad, CRC. */
static inline uint32_t
mpa_plain_len(uint32_t ulpdu_len)
{
	return ((MPA_LEN_FIELD + ulpdu_len + 3) & ~3u) + MPA_CRC_LEN;
}

/* Returns the number of markers in front of byte `n` (counted from 0, without markers) of the FPDU
 * that starts at stream position `pos`. */
static inline uint32_t
mpa_markers_before(uint32_t pos, uint32_t n)
{
	uint32_t first = -pos % MPA_MARKER_EVERY;

	return n < first ? 0 : 1 + (n - first) / MPA_BETWEEN;
}

/* Returns the stream bytes of an FPDU that starts at position `pos`. */
static inline uint32_t
mpa_stream_len(bool markers, uint32_t pos, uint32_t ulpdu_len)
{
	uint32_t plain = mpa_plain_len(ulpdu_len);

	return markers ? plain + MPA_MARKER_LEN * mpa_markers_before(pos, plain - 1) : plain;
}

#endif
