/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two instances that one thread polls, and the wire between them: the world of the fuzz targets of
 * the engine. The time is virtual. The wire loses, doubles and delays frames as the input demands,
 * and keeps copies of the last ones, which the input may change and send again.
 */
#ifndef SAKER_FUZZ_ENGINE_WORLD_H
#define SAKER_FUZZ_ENGINE_WORLD_H

#include "../../../lib/engine/common/instance.h"
#include "../fuzz.h"

/* The configurations of both instances. */
enum world_kind {
	WORLD_PLAIN,   /* one stage of each kind, no CRC, Falcon in clear text */
	WORLD_KEYED,   /* two of each kind, TLS, PSP with keys, tunnel mode, cookies, four flows */
	WORLD_MARKERS, /* two engine stages, IPv6, a VLAN, CRC, markers, MPA revision 1 allowed */
	WORLD_KINDS,
	/* The worlds of the target `fast`: two configurations, with and without the fast paths. */
	WORLD_FAST = WORLD_KINDS,
	WORLD_GENERAL,
	WORLD_FAST_CRC,
	WORLD_GENERAL_CRC,
	WORLD_ALL_KINDS
};

/* The fates of a frame: two bits of the pattern of world_fates(). */
enum world_fate { FATE_PASS, FATE_DROP, FATE_DOUBLE, FATE_LATE };

#define TURN_NS         2000u /* the time of a usual turn */
#define WORLD_KEPT      32    /* frames that the wire remembers */
#define WORLD_FRAME_MAX 2048  /* bytes of a frame that it remembers */

struct world {
	struct eng_config cfg[2];
	struct eng *e[2];
	struct rte_ring *to[2]; /* frames on their way to each instance */
	struct sk_addr addr[2]; /* address that the peer connects to */
	struct rte_mbuf *late[2];
	uint32_t fates; /* of the next 16 frames, lowest bits first */
};

/* Initializes EAL without huge pages, once. */
void world_eal(void);
/* Returns the world of that kind, which it creates at the first call, and makes it the current one:
 * the following functions refer to it. */
struct world *world_enter(enum world_kind kind);
/* Moves the time forward by `ns`, and runs one turn of the wire and of both instances. Returns
 * whether there was work. */
bool world_turn(uint64_t ns);
/* Returns the time, and sets it: what the worlds of one target do is compared from the same time
 * on. */
uint64_t world_now(void);
void world_set_now(uint64_t ns);
/* The observer of each frame that an instance sends and each reply, event and completion that a
 * client takes: `what` it is, the instance, and the bytes. NULL: none. */
typedef void world_observer(const char *what, int side, const void *p, size_t len);
void world_observe(world_observer *o);
void world_observed(const char *what, int side, const void *p, size_t len);
void world_fates(uint32_t pattern);
/* Puts a frame on the wire to instance `to`, in mbufs of at most `cut` bytes (0: in one). */
void world_inject(int to, const uint8_t *frame, size_t len, size_t cut);
/* Copies one of the last frames to `out` (WORLD_FRAME_MAX bytes). Returns its length, or 0. */
size_t world_kept(unsigned back, uint8_t *out);
/* Turns a packet of a Falcon connection over IPv4, without a VLAN tag, into the one that follows
 * `ahead` packets later (0: itself, unchanged), with `payload` bytes (at most 255). Returns the new
 * length. Changes no other frame. */
size_t world_later(uint8_t *frame, size_t len, unsigned ahead, size_t payload);
/* Corrects the checksums of IPv4, TCP and UDP in a frame, as far as it has them. */
void world_checksums(uint8_t *frame, size_t len);
/* Runs turns until no instance has a connection, a client or an object, and traps if this takes too
 * long, or if an mbuf is missing afterwards. The caller has detached all clients. */
void world_settle(void);

#endif
