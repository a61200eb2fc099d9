/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hostile wire: a DPDK vdev on top of another port that drops, duplicates, reorders, delays,
 * rate-limits, ECN-marks and corrupts frames. It is created like any vdev, on the command line or
 * with rte_vdev_init(), after the lower port:
 *
 *	--vdev net_ring0 --vdev 'net_impair0,port=net_ring0,seed=7,drop=0.01'
 *
 * Keys: port (name or number of the lower port; the only mandatory key), seed, drop, dup, reorder,
 * ecn, corrupt, corrupt_crc (probabilities, 0..1), delay_us, jitter_us, rate_mbps, reorder_frames,
 * reorder_us, dir (both, tx, rx), queue (the most frames that a queue holds, 64..65536), nic (1: an
 * offloading NIC, see below).
 *
 * The vdev owns the lower port: it configures, starts, stops and closes it. A frame is copied
 * before it is altered, into the mempool of the receive queue with the same number, since others
 * may share the frame's mbufs.
 *
 * With the same seed, the same frames in the same order have the same fate: each queue and
 * direction draws from its own generator, a fixed number of times for each frame. Only the effects
 * of time (delay, rate, reorder_us) depend on the clock.
 *
 * nic=1: the vdev offers IPv4, TCP and UDP checksums, TSO, multi-segment frames and the RSS hash.
 * It counts (tx_offload_error) and drops sent frames whose offload fields contradict the frame. It
 * verifies received frames and flags their checksums as good or bad.
 */
#ifndef SAKER_NET_IMPAIR_H
#define SAKER_NET_IMPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../lib/base/reason.h"

/* The counters of one direction. Each direction has a block of them; xstats show them as tx_* and
 * rx_*. */
#define IMPAIR_REASONS(X)                                                                          \
	X(IMPAIR_FRAMES, SK_NORMAL, "frames that entered the wire")                                \
	X(IMPAIR_PASSED, SK_NORMAL, "frames that left the wire")                                   \
	X(IMPAIR_DROP, SK_NORMAL, "frames dropped by chance")                                      \
	X(IMPAIR_DUP, SK_NORMAL, "frames sent twice")                                              \
	X(IMPAIR_REORDER, SK_NORMAL, "frames that were overtaken")                                 \
	X(IMPAIR_ECN, SK_NORMAL, "frames marked CE (RFC 3168)")                                    \
	X(IMPAIR_CORRUPT, SK_NORMAL, "frames altered so that the TCP or UDP checksum is wrong")    \
	X(IMPAIR_CORRUPT_CRC, SK_NORMAL, "frames altered so that the TCP checksum stays right")    \
	X(IMPAIR_QUEUE_FULL, SK_NOTICE, "frames dropped because the queue was full")               \
	X(IMPAIR_NO_MBUF, SK_WARNING, "frames dropped because no mbuf was left for a copy")        \
	X(IMPAIR_FLUSHED, SK_NORMAL, "frames dropped because the port stopped")                    \
	X(IMPAIR_OFFLOAD_ERROR, SK_WARNING, "frames whose offload fields contradict the frame")    \
	X(IMPAIR_TSO, SK_NORMAL, "frames that were segmented")                                     \
	X(IMPAIR_SEGMENTS, SK_NORMAL, "segments made of segmented frames")                         \
	X(IMPAIR_CKSUM_FILLED, SK_NORMAL, "frames whose checksums were filled in")                 \
	X(IMPAIR_CKSUM_BAD, SK_NORMAL, "received frames with a wrong checksum")

SK_REASONS_DECLARE(impair, IMPAIR_NONE, IMPAIR_REASONS)

struct impair_cfg {
	uint64_t seed;
	double drop, dup, reorder, ecn; /* probabilities, 0..1 */
	/* Changes one 16-bit word of a TCP segment or UDP datagram. */
	double corrupt;
	double corrupt_crc; /* changes two words of a TCP payload, checksum unchanged */
	/* Each frame waits delay_us and up to jitter_us more; the order is kept. */
	uint32_t delay_us, jitter_us;
	/* Counts 24 bytes of preamble, FCS and gap per frame; 0: no limit. */
	uint32_t rate_mbps;
	uint32_t reorder_frames; /* a reordered frame is overtaken by 1..reorder_frames others, */
	uint32_t reorder_us;     /* or waits this long, whichever comes first */
	bool tx, rx;             /* the directions that are impaired */
};

/* Sets the configuration of a running vdev and restarts its generators from cfg->seed. May be
 * called at any time by any thread. Returns 0, -ENODEV if the port is not an impair vdev, or
 * -EINVAL if a value is out of its range. */
int impair_set(uint16_t port_id, const struct impair_cfg *cfg);
/* Copies the present configuration to *cfg. Returns 0 or -ENODEV. */
int impair_get(uint16_t port_id, struct impair_cfg *cfg);
/* Makes all held frames due, so that the next bursts forward them in their order. Returns 0 or
 * -ENODEV. */
int impair_flush(uint16_t port_id);
/* Returns a counter of one direction, summed over all queues, or 0 if the port is not an impair
 * vdev. */
uint64_t impair_count(uint16_t port_id, bool tx, enum impair_reason reason);
/* Returns the number of frames held at present in both directions. */
uint32_t impair_held(uint16_t port_id);

#endif
