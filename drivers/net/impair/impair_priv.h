/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the hostile wire share. */
#ifndef IMPAIR_PRIV_H
#define IMPAIR_PRIV_H

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "impair.h"

#define IMPAIR_BURST       32
#define IMPAIR_ASIDE       64 /* frames that one lane lets be overtaken at a time */
#define IMPAIR_WIRE_BYTES  24 /* preamble, FCS, inter-frame gap */
#define IMPAIR_MAX_QUEUES  64
#define IMPAIR_QUEUE_MIN   64
#define IMPAIR_QUEUE_MAX   65536
#define IMPAIR_RSS_KEY_LEN 40

/* Where the headers of a frame are: byte offsets, and where the IP packet ends (padding comes
 * behind). */
struct frame {
	uint16_t l2_len, l3_len, l4_len;
	bool v6;
	uint8_t proto;
	uint32_t end;
};

/* A frame that waits. */
struct lane_slot {
	struct rte_mbuf *m;
	uint64_t due;  /* TSC */
	uint32_t span; /* frames that overtake it; 0: none */
};

struct lane_aside {
	struct rte_mbuf *m;
	uint64_t deadline; /* TSC */
	uint32_t left;     /* frames that may still pass it */
};

/* Probabilities as 53-bit thresholds, times in TSC cycles. */
struct lane_cfg {
	bool active; /* this direction is impaired */
	bool timed;  /* frames may have to wait, so a full queue drops */
	uint64_t drop, dup, reorder, ecn, corrupt, corrupt_crc;
	uint64_t delay, jitter, reorder_time;
	uint32_t reorder_frames;
	double cycles_per_byte; /* 0: no rate limit */
};

/* One queue in one direction. */
struct lane {
	rte_spinlock_t lock; /* the receiving lcore moves sent frames on, too; impair_set comes from
				anywhere */
	struct lane_cfg cfg;
	uint64_t rng;
	uint64_t link_free; /* TSC when the rate limiter will have sent all */
	uint64_t last_due;
	struct rte_mempool *pool; /* for copies; NULL: the frame's own */
	struct lane_slot *slots;
	uint32_t head, count, size;
	struct lane_aside aside[IMPAIR_ASIDE];
	unsigned naside;
	struct rte_mbuf *ready[IMPAIR_BURST]; /* due, but refused by the lower port */
	unsigned nready;
	uint64_t bytes; /* passed */
	uint64_t counters[impair_reason_count];
} __rte_cache_aligned;

/* lane.c */
int lane_init(struct lane *l, uint32_t size, struct rte_mempool *pool, int socket);
void lane_fini(struct lane *l);
/* `id` tells lanes with one seed apart. */
void lane_set(struct lane *l, const struct impair_cfg *cfg, bool tx, unsigned id);
void lane_put(struct lane *l, struct rte_mbuf *m, uint64_t now);
unsigned lane_take(struct lane *l, uint64_t now, struct rte_mbuf **out, unsigned max);
void lane_flush(struct lane *l);
void lane_free_held(struct lane *l);

static inline uint32_t
lane_room(const struct lane *l)
{
	return l->size - l->count;
}

/* Where copies of `m` come from. */
static inline struct rte_mempool *
lane_pool(const struct lane *l, const struct rte_mbuf *m)
{
	return l->pool != NULL ? l->pool : m->pool;
}

static inline bool
lane_is_idle(const struct lane *l)
{
	return l->count + l->naside + l->nready == 0;
}

/* frame.c: false unless it is TCP or UDP on IPv4 or IPv6 with lengths that agree. */
bool frame_find(const struct rte_mbuf *m, struct frame *f);
/* The byte at `offset`, which is below pkt_len. */
uint8_t *frame_byte(struct rte_mbuf *m, uint32_t offset);
/* The Internet checksum over pseudo-header, header and payload: 0xffff when what is stored is
 * right, as summed. */
uint16_t frame_l4_sum(const struct rte_mbuf *m, const struct frame *f);

/* alter.c: each copies *m from `pool` and replaces it. 1: altered, 0: nothing to alter there,
 * -ENOMEM. */
int alter_word(struct rte_mbuf **m, struct rte_mempool *pool, uint64_t random);
int alter_neutral(struct rte_mbuf **m, struct rte_mempool *pool, uint64_t random);
int alter_ecn(struct rte_mbuf **m, struct rte_mempool *pool);

/* nic.c */
/* How many frames it will become; 0: its offload fields contradict it. */
unsigned nic_tx_check(const struct rte_mbuf *m, uint16_t mtu);
/* Does to `m` what its offload fields ask for and puts the result, `frames` of them, into the lane.
 * `m` is consumed; what finds no mbuf for its copy is lost, and counted. */
void nic_tx(struct lane *l, struct rte_mbuf *m, unsigned frames, uint64_t now);
/* Sets the checksum flags, and the RSS hash when there is a key. */
void nic_rx(struct lane *l, struct rte_mbuf *m, const uint8_t *rss_key);
uint16_t nic_tx_prepare(void *queue, struct rte_mbuf **pkts, uint16_t n);
extern const uint8_t nic_rss_key[IMPAIR_RSS_KEY_LEN];

#endif
