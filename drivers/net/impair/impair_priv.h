/* SPDX-License-Identifier: BSD-3-Clause */
/* The interfaces between the files of the hostile wire. */
#ifndef IMPAIR_PRIV_H
#define IMPAIR_PRIV_H

#include <rte_mbuf.h>
#include <rte_spinlock.h>

#include "impair.h"

#define IMPAIR_BURST       32
#define IMPAIR_ASIDE       64 /* the most frames of one lane that others may overtake at a time */
#define IMPAIR_WIRE_BYTES  24 /* preamble, FCS, inter-frame gap */
#define IMPAIR_MAX_QUEUES  64
#define IMPAIR_QUEUE_MIN   64
#define IMPAIR_QUEUE_MAX   65536
#define IMPAIR_RSS_KEY_LEN 40

/* Byte offsets of a frame's headers, and of the end of the IP packet, behind which padding may
 * follow. */
struct frame {
	uint16_t l2_len, l3_len, l4_len;
	bool v6;
	uint8_t proto;
	uint32_t end;
};

/* A frame that waits in a lane. */
struct lane_slot {
	struct rte_mbuf *m;
	uint64_t due;  /* TSC cycles */
	uint32_t span; /* number of frames that overtake it; 0: none */
};

struct lane_aside {
	struct rte_mbuf *m;
	uint64_t deadline; /* TSC cycles */
	uint32_t left;     /* number of frames that may still overtake it */
};

/* The configuration of a lane: probabilities as 53-bit thresholds, times in TSC cycles. */
struct lane_cfg {
	bool active; /* this direction is impaired */
	bool timed;  /* frames may have to wait, so a full queue drops frames */
	uint64_t drop, dup, reorder, ecn, corrupt, corrupt_crc;
	uint64_t delay, jitter, reorder_time;
	uint32_t reorder_frames;
	double cycles_per_byte; /* 0: no rate limit */
};

/* The state of one queue in one direction. */
struct lane {
	/* Needed because the receiving lcore also forwards sent frames, and impair_set() may be
	 * called by any thread. */
	rte_spinlock_t lock;
	struct lane_cfg cfg;
	uint64_t rng;
	uint64_t link_free; /* TSC at which the rate limiter will have sent all frames */
	uint64_t last_due;
	struct rte_mempool *pool; /* for copies; NULL: the pool of the frame to be copied */
	struct lane_slot *slots;
	uint32_t head, count, size;
	struct lane_aside aside[IMPAIR_ASIDE];
	unsigned naside;
	struct rte_mbuf *ready[IMPAIR_BURST]; /* due frames that the lower port has refused */
	unsigned nready;
	uint64_t bytes; /* number of bytes that have passed */
	uint64_t counters[impair_reason_count];
} __rte_cache_aligned;

/* lane.c */
/* Allocates the queue of `size` frames. Returns 0 or -ENOMEM. */
int impair_lane_init(struct lane *l, uint32_t size, struct rte_mempool *pool, int socket);
void impair_lane_fini(struct lane *l);
/* Sets the configuration and restarts the generator. `id` distinguishes lanes that use the same
 * seed. */
void impair_lane_set(struct lane *l, const struct impair_cfg *cfg, bool tx, unsigned id);
/* Puts a frame into the lane: draws its fate and queues, drops, duplicates or alters it. */
void impair_lane_put(struct lane *l, struct rte_mbuf *m, uint64_t now);
/* Takes up to `max` frames that are due. Returns their number. */
unsigned impair_lane_take(struct lane *l, uint64_t now, struct rte_mbuf **out, unsigned max);
/* Makes all held frames due. */
void impair_lane_flush(struct lane *l);
/* Frees all held frames and counts them. */
void impair_lane_free_held(struct lane *l);

static inline uint32_t
impair_lane_room(const struct lane *l)
{
	return l->size - l->count;
}

/* Returns the pool for copies of `m`. */
static inline struct rte_mempool *
impair_lane_pool(const struct lane *l, const struct rte_mbuf *m)
{
	return l->pool != NULL ? l->pool : m->pool;
}

static inline bool
impair_lane_is_idle(const struct lane *l)
{
	return l->count + l->naside + l->nready == 0;
}

/* frame.c: Finds the headers of a TCP or UDP packet on IPv4 or IPv6. Returns false for other frames
 * and for lengths that contradict each other. */
bool impair_frame_find(const struct rte_mbuf *m, struct frame *f);
/* Returns the address of the byte at `offset`, which is less than pkt_len. */
uint8_t *impair_frame_byte(struct rte_mbuf *m, uint32_t offset);
/* Returns the Internet checksum over pseudo-header, header and payload, the stored checksum
 * included: 0xffff if it is correct. */
uint16_t impair_frame_l4_sum(const struct rte_mbuf *m, const struct frame *f);

/* alter.c: each function replaces *m by an altered copy from `pool`. Returns 1 if it altered the
 * frame, 0 if the frame has nothing to alter, or -ENOMEM. */
int impair_alter_word(struct rte_mbuf **m, struct rte_mempool *pool, uint64_t random);
int impair_alter_neutral(struct rte_mbuf **m, struct rte_mempool *pool, uint64_t random);
int impair_alter_ecn(struct rte_mbuf **m, struct rte_mempool *pool);

/* nic.c */
/* Returns the number of frames that `m` becomes, or 0 if its offload fields contradict the
 * frame. */
unsigned impair_nic_tx_check(const struct rte_mbuf *m, uint16_t mtu);
/* Executes the offloads that `m` requests and puts the result, `frames` frames, into the lane.
 * Consumes `m`. Drops and counts frames for which no mbuf is available. */
void impair_nic_tx(struct lane *l, struct rte_mbuf *m, unsigned frames, uint64_t now);
/* Sets the checksum flags and, if there is a key, the RSS hash. */
void impair_nic_rx(struct lane *l, struct rte_mbuf *m, const uint8_t *rss_key);
uint16_t impair_nic_tx_prepare(void *queue, struct rte_mbuf **pkts, uint16_t n);
extern const uint8_t impair_nic_rss_key[IMPAIR_RSS_KEY_LEN];

#endif
