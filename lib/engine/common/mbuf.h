/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records, slices and Falcon's payloads live in the private area of mbufs. All pools of all
 * instances of a process have a private area of the same size, since ports such as net_ring hand
 * the mbufs of one instance to another.
 */
#ifndef SAKER_ENGINE_MBUF_H
#define SAKER_ENGINE_MBUF_H

#include <rte_mbuf.h>

#include "../../falcon/falcon.h"
#include "../../tcp/tcp.h"
#include "../engine.h"

/* A Falcon packet's payload. */
struct eng_fbuf {
	struct fa_buf buf;
	uint8_t rnr; /* ENG_T_RNR: code of the timeout */
};

union eng_mbuf_priv {
	struct tcp_rec rec;
	struct tcp_slice slice;
	struct eng_fbuf falcon;
	uint8_t line[64]; /* data starts on a line of its own */
};
_Static_assert(sizeof(union eng_mbuf_priv) % RTE_MBUF_PRIV_ALIGN == 0, "as DPDK asks");

/* A record with an empty buffer; NULL: the pool is empty. */
struct tcp_rec *eng_rec_alloc(struct rte_mempool *mp);
void eng_rec_free(struct tcp_rec *chain);
/* As tcp_ops.rec_split: the second half is an mbuf of `mp` that shares the first one's bytes. */
struct tcp_rec *eng_rec_split(struct rte_mempool *mp, struct tcp_rec *rec, uint32_t at);

/* Takes a received frame apart: a chain of slices of its bytes [off, off + len), each of which owns
 * its mbuf. NULL when len is 0; the frame is used up in any case. */
struct tcp_slice *eng_slices(struct rte_mbuf *m, uint32_t off, uint32_t len);
void eng_slice_free(struct tcp_slice *chain);

/* An empty payload; NULL: the pool is empty.
 */
struct fa_buf *eng_fbuf_alloc(struct rte_mempool *mp);
/* The bytes [off, off + len) of a received frame as a payload, in one piece. The frame is used up.
 * NULL: no mbuf to put the pieces together in. */
struct fa_buf *eng_fbuf(struct rte_mempool *mp, struct rte_mbuf *m, uint32_t off, uint32_t len);
void eng_fbuf_free(struct fa_buf *buf);

/* Adds the Internet checksum over the frame's bytes [off, off + len) to `sum`. */
uint32_t eng_mbuf_sum(uint32_t sum, const struct rte_mbuf *m, uint32_t off, uint32_t len);

#endif
