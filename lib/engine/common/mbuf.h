/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mbufs as the records and slices of lib/tcp and as the payload buffers of lib/falcon. The private
 * area of an mbuf holds the descriptor. All pools of all instances of a process have a private area
 * of the same size, since ports such as net_ring pass the mbufs of one instance to another.
 */
#ifndef SAKER_ENGINE_MBUF_H
#define SAKER_ENGINE_MBUF_H

#include <rte_mbuf.h>

#include "../../falcon/falcon.h"
#include "../../tcp/tcp.h"
#include "../engine.h"

/* The payload of a Falcon packet. */
struct eng_fbuf {
	struct fa_buf buf;
	uint8_t rnr; /* ENG_T_RNR: the code of the RNR timeout */
};

/* A count of mbufs that were freed. One stage writes it, on a cache line of its own; another stage
 * may read it, relaxed. */
struct eng_returned {
	_Alignas(64) uint32_t n;
};

union eng_mbuf_priv {
	struct tcp_rec rec;
	struct tcp_slice slice;
	struct eng_fbuf falcon;
	struct {
		uint8_t head[56]; /* of the record or payload */
		/* A record or payload whose freeing is counted, or NULL. The stage that owns the
		 * record writes the count. */
		struct eng_returned *to;
	} held;
	uint8_t line[64]; /* so that the data begins at a cache line */
};
_Static_assert(sizeof(struct tcp_rec) <= 56 && sizeof(struct eng_fbuf) <= 56, "room for `to`");
_Static_assert(sizeof(union eng_mbuf_priv) % RTE_MBUF_PRIV_ALIGN == 0, "as DPDK asks");

/* Return where the freeing of a record or of a payload buffer is counted: NULL, or what the owner
 * has stored there. */
static inline struct eng_returned **
eng_rec_returned(struct tcp_rec *rec)
{
	return &((union eng_mbuf_priv *)rec)->held.to;
}

static inline struct eng_returned **
eng_fbuf_returned(struct fa_buf *buf)
{
	return &((union eng_mbuf_priv *)buf)->held.to;
}

/* Returns a pool as eng_pool_create() does, whose mbufs take turns (turns.c). */
struct rte_mempool *eng_turns_create(const char *kind, unsigned instance, unsigned index,
	uint32_t count, uint32_t room, int socket);
/* Returns a record of 0 bytes in an mbuf of `mp`, or NULL when the pool is empty. */
struct tcp_rec *eng_rec_alloc(struct rte_mempool *mp);
void eng_rec_free(struct tcp_rec *chain);
/* Splits a record at byte `at`, as tcp_ops.rec_split requires, and returns the second part, or NULL
 * when the pool is empty. The second part is an indirect mbuf of `mp` that shares the bytes of the
 * first one. */
struct tcp_rec *eng_rec_split(struct rte_mempool *mp, struct tcp_rec *rec, uint32_t at);

/* Returns the bytes [off, off + len) of a received frame as a chain of slices, or NULL when `len`
 * is 0. Consumes the frame in any case; each slice owns its mbuf. */
struct tcp_slice *eng_slices(struct rte_mbuf *m, uint32_t off, uint32_t len);
void eng_slice_free(struct tcp_slice *chain);

/* Returns a payload buffer of 0 bytes in an mbuf of `mp`, or NULL when the pool is empty. */
struct fa_buf *eng_fbuf_alloc(struct rte_mempool *mp);
/* Returns the bytes [off, off + len) of an mbuf that is the only one of its frame as a payload
 * buffer. */
static inline struct fa_buf *
eng_fbuf_of(struct rte_mbuf *m, uint32_t off, uint32_t len)
{
	struct fa_buf *b = &((union eng_mbuf_priv *)rte_mbuf_to_priv(m))->falcon.buf;

	*eng_fbuf_returned(b) = NULL;
	b->next = NULL;
	b->data = rte_pktmbuf_mtod_offset(m, uint8_t *, off);
	b->data_len = b->len = len;
	b->owner = m;
	b->sum = 0;
	return b;
}
/* Returns the bytes [off, off + len) of a received frame as one contiguous payload buffer, or NULL
 * when `mp` has no mbuf to copy the segments of the frame into. Consumes the frame in any case. */
struct fa_buf *eng_fbuf(struct rte_mempool *mp, struct rte_mbuf *m, uint32_t off, uint32_t len);
void eng_fbuf_free(struct fa_buf *buf);
void eng_fbufs_free(struct fa_buf *chain);

/* Adds the bytes [off, off + len) of the frame to the Internet checksum `sum` (RFC 1071), which is
 * neither folded nor complemented, and returns the new sum. */
uint32_t eng_mbuf_sum(uint32_t sum, const struct rte_mbuf *m, uint32_t off, uint32_t len);

#endif
