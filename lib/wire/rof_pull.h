/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The headers of Reads and Atomics of one packet over RC and of their responses, without CE,
 * composed and compared in registers for the data path: what wire_rof_emit() writes for
 * ROF_READ_REQUEST, ROF_FETCH_ADD, ROF_CMP_SWAP, ROF_READ_RESPONSE_ONLY and ROF_ATOMIC_RESPONSE
 * (RDMA over Falcon revision 0.9, section 8.3). The functions read and write only the fields of
 * these headers.
 */
#ifndef SAKER_WIRE_ROF_PULL_H
#define SAKER_WIRE_ROF_PULL_H

#include "rof.h"
#include "word.h"

#define ROF_READ_REQUEST_LEN    44
#define ROF_ATOMIC_LEN          56
#define ROF_READ_RESPONSE_LEN   24
#define ROF_ATOMIC_RESPONSE_LEN 32

/* Writes STETH (section 8.3.4), 12 bytes. */
static inline void
wire_rof_sink_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, in->sink_va);
	wire_rof_put(p + 4, in->sink_va << 32 | in->sink_lkey);
}

static inline bool
wire_rof_sink_is(const uint8_t *p, const struct wire_rof *want)
{
	return wire_be64(p) == want->sink_va && (uint32_t)wire_be64(p + 4) == want->sink_lkey;
}

/* Writes ROF_READ_REQUEST_LEN bytes; in->pad is 0. */
static inline void
wire_rof_read_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, wire_rof_first(in, ROF_READ_REQUEST, false));
	wire_rof_put(p + 8, (uint64_t)in->sn << 32);
	wire_rof_put(p + 12, in->va);
	wire_rof_put(p + 20, (uint64_t)in->rkey << 32 | in->length);
	wire_rof_put(p + 28, (uint64_t)in->rmsn << 32);
	wire_rof_sink_put(p + 32, in);
}

/* Writes ROF_ATOMIC_LEN bytes for in->opcode, ROF_FETCH_ADD or ROF_CMP_SWAP; in->pad is 0. */
static inline void
wire_rof_atomic_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, wire_rof_first(in, in->opcode, false));
	wire_rof_put(p + 8, (uint64_t)in->sn << 32);
	wire_rof_put(p + 12, in->va);
	wire_rof_put(p + 20, (uint64_t)in->rkey << 32);
	wire_rof_put(p + 24, in->swap_add);
	wire_rof_put(p + 32, in->compare);
	wire_rof_put(p + 40, (uint64_t)in->rmsn << 32);
	wire_rof_sink_put(p + 44, in);
}

/*
 * Parses a request for the QP out->dest_qp, of `len` bytes. Returns false for any other packet, for
 * one with flags or reserved bits, and for one that wire_rof_parse() refuses or that has bytes
 * behind its headers. Sets all fields but out->pad, which is 0.
 */
static inline bool
wire_rof_pull_parse(struct wire_rof *out, const uint8_t *p, size_t len)
{
	uint64_t first;

	if (len != ROF_READ_REQUEST_LEN && len != ROF_ATOMIC_LEN)
		return false;
	out->pad = 0;
	out->opcode = p[3];
	if (len == ROF_READ_REQUEST_LEN
			? out->opcode != ROF_READ_REQUEST
			: out->opcode != ROF_FETCH_ADD && out->opcode != ROF_CMP_SWAP)
		return false;
	first = wire_be64(p);
	if (first != wire_rof_first(out, out->opcode, false))
		return false;
	out->sn = (uint32_t)(wire_be64(p + 8) >> 32);
	out->va = wire_be64(p + 12);
	out->rkey = (uint32_t)(wire_be64(p + 20) >> 32);
	if (len == ROF_READ_REQUEST_LEN) {
		out->length = (uint32_t)wire_be64(p + 20);
	} else {
		out->swap_add = wire_be64(p + 24);
		out->compare = wire_be64(p + 32);
	}
	p += len - 12;
	out->sink_va = wire_be64(p);
	out->sink_lkey = (uint32_t)wire_be64(p + 4);
	return true;
}

/* Writes ROF_READ_RESPONSE_LEN bytes. */
static inline void
wire_rof_read_response_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, wire_rof_first(in, ROF_READ_RESPONSE_ONLY, false));
	wire_rof_put(p + 8, (uint64_t)in->sn << 32);
	wire_rof_sink_put(p + 12, in);
}

/* Writes ROF_ATOMIC_RESPONSE_LEN bytes; in->pad is 0. */
static inline void
wire_rof_atomic_response_put(uint8_t *p, const struct wire_rof *in)
{
	wire_rof_put(p, wire_rof_first(in, ROF_ATOMIC_RESPONSE, false));
	wire_rof_put(p + 8, (uint64_t)in->sn << 32);
	wire_rof_put(p + 12, in->original);
	wire_rof_sink_put(p + 20, in);
}

/* Return whether the headers at `p` are those of the response `want`, with its padding; of the
 * response of an Atomic, `original` is not compared. */
static inline bool
wire_rof_read_response_is(const uint8_t *p, const struct wire_rof *want)
{
	return wire_be64(p) == wire_rof_first(want, ROF_READ_RESPONSE_ONLY, false) &&
	       wire_be64(p + 8) >> 32 == want->sn && wire_rof_sink_is(p + 12, want);
}

static inline bool
wire_rof_atomic_response_is(const uint8_t *p, const struct wire_rof *want)
{
	return wire_be64(p) == wire_rof_first(want, ROF_ATOMIC_RESPONSE, false) &&
	       wire_be64(p + 8) >> 32 == want->sn && wire_rof_sink_is(p + 20, want);
}

static inline uint64_t
wire_rof_atomic_original(const uint8_t *p)
{
	return wire_be64(p + 12);
}

#endif
