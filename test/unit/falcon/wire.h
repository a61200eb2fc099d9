/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire in memory for Falcon packets, in virtual time: takes them as bytes, loses, repeats, delays
 * and overtakes from a seed, or as a test's filter says, and hands them to the other end.
 */
#ifndef TEST_FALCON_WIRE_H
#define TEST_FALCON_WIRE_H

#include "../../../lib/falcon/falcon.h"
#include "../../../lib/wire/falcon.h"

struct wire_packet {
	struct wire_packet *next;
	uint64_t at; /* when it arrives */
	uint64_t order;
	unsigned to;
	uint32_t cid, stamp, path;
	bool ce;
	unsigned len; /* of bytes[] */
	uint8_t bytes[];
};

struct wire {
	uint64_t delay_ns;
	/* In a million: lost, sent twice, delayed by up to `jitter_ns` more, marked. */
	uint32_t loss, twice, late, mark;
	uint64_t jitter_ns;
	/* NULL: none. Returns true: the packet is lost. Sees each before chance does. */
	bool (*filter)(void *ctx, unsigned from, const struct fa_out *out);
	void *ctx;
	uint64_t seed, sent, lost;
	struct wire_packet *first; /* by time */
};

uint32_t wire_random(struct wire *w);
/* One chance in a million, times `ppm`. */
bool wire_chance(struct wire *w, uint32_t ppm);
/* From end `from` (0 or 1) to the other. */
void wire_send(struct wire *w, uint64_t now, unsigned from, const struct fa_out *out);
/* The next packet that has arrived by `now`: the caller frees it with free(). NULL: none. */
struct wire_packet *wire_take(struct wire *w, uint64_t now);
uint64_t wire_next(const struct wire *w); /* SK_NEVER: empty */
void wire_drop_all(struct wire *w);

#endif
