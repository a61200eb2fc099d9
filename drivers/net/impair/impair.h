/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile wire: a DPDK vdev that sits on another port and drops, duplicates, reorders, delays,
 * limits, marks and corrupts what passes. It is made as any vdev, on the command line or with
 * rte_vdev_init(), after the port that it sits on:
 *
 *	--vdev net_ring0 --vdev 'net_impair0,port=net_ring0,seed=7,drop=0.01'
 *
 * Keys: port (name or number; the only one that must be there), seed, drop, dup, reorder, ecn,
 * corrupt, corrupt_crc (probabilities, 0..1), delay_us, jitter_us, rate_mbps, reorder_frames,
 * reorder_us, dir (both, tx, rx), queue (frames that a queue holds at most, 64..65536), nic (1: an
 * offloading NIC, see below).
 *
 * The lower port belongs to the vdev: configured, started, stopped and closed with it. A frame that
 * is altered is copied first, from the mempool of the receive queue of the same number, since
 *others may share it.
 *
 * With the same seed, the same frames in the same order meet the same fate: each queue and
 * direction draws from its own generator, a fixed number of times for each frame. Only what has to
 * do with time (delay, rate, reorder_us) follows the clock.
 *
 * nic=1: offers IPv4, TCP and UDP checksums, TSO, multi-segment frames and the RSS hash. Sent
 * frames whose offload fields contradict the frame are counted (tx_offload_error) and dropped;
 * received ones are verified and flagged good or bad.
 */
#ifndef SAKER_NET_IMPAIR_H
#define SAKER_NET_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../lib/base/reason.h"

/* One block of these for each direction; xstats show them as tx_* and rx_*. */
#define IMPAIR_REASONS(X)                                                                          \
	X(IMPAIR_FRAMES, SK_NORMAL, "frames that came in")                                         \
	X(IMPAIR_PASSED, SK_NORMAL, "frames that went out")                                        \
	X(IMPAIR_DROP, SK_NORMAL, "frames dropped by chance")                                      \
	X(IMPAIR_DUP, SK_NORMAL, "frames sent twice")                                              \
	X(IMPAIR_REORDER, SK_NORMAL, "frames that were overtaken")                                 \
	X(IMPAIR_ECN, SK_NORMAL, "frames marked CE (RFC 3168)")                                    \
	X(IMPAIR_CORRUPT, SK_NORMAL, "frames altered so that the TCP or UDP checksum sees it")     \
	X(IMPAIR_CORRUPT_CRC, SK_NORMAL, "frames altered so that the TCP checksum stays right")    \
	X(IMPAIR_QUEUE_FULL, SK_NOTICE, "frames that found the queue full")                        \
	X(IMPAIR_NO_MBUF, SK_WARNING, "frames dropped because no mbuf was left for a copy")        \
	X(IMPAIR_FLUSHED, SK_NORMAL, "frames still held when the port stopped")                    \
	X(IMPAIR_OFFLOAD_ERROR, SK_WARNING, "frames whose offload fields contradict the frame")    \
	X(IMPAIR_TSO, SK_NORMAL, "frames that were segmented")                                     \
	X(IMPAIR_SEGMENTS, SK_NORMAL, "segments made of them")                                     \
	X(IMPAIR_CKSUM_FILLED, SK_NORMAL, "frames whose checksums were filled in")                 \
	X(IMPAIR_CKSUM_BAD, SK_NORMAL, "received frames with a wrong checksum")

SK_REASONS_DECLARE(impair, IMPAIR_NONE, IMPAIR_REASONS)

struct impair_cfg {
	uint64_t seed;
	double drop, dup, reorder, ecn; /* probabilities, 0..1 */
	double corrupt;                 /* one 16-bit word of a TCP segment or UDP datagram */
	double corrupt_crc;             /* two words of a TCP payload, checksum unchanged */
	/* Each frame waits delay_us, and up to jitter_us longer; the order is kept. */
	uint32_t delay_us, jitter_us;
	uint32_t rate_mbps;      /* 24 bytes of preamble, FCS and gap included; 0: no limit */
	uint32_t reorder_frames; /* a reordered frame lets 1..reorder_frames others pass, */
	uint32_t reorder_us;     /* or waits this long */
	bool tx, rx;             /* directions that are impaired */
};

/* May be called at any time, by any thread. The generators start anew from cfg->seed. Returns 0,
 * -ENODEV when the port is no such vdev, -EINVAL when a value is out of its range. */
int impair_set(uint16_t port_id, const struct impair_cfg *cfg);
int impair_get(uint16_t port_id, struct impair_cfg *cfg);
/* All that is held may go with the next bursts, in its order. */
int impair_flush(uint16_t port_id);
/* A counter of one direction, over all queues; 0 when the port is no such vdev. */
uint64_t impair_count(uint16_t port_id, bool tx, enum impair_reason reason);
/* Frames held now, both directions. */
uint32_t impair_held(uint16_t port_id);

#endif
