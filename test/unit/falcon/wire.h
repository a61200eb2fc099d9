/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire in memory for Falcon packets, in virtual time. It carries packets as bytes; it loses,
 * duplicates, delays and reorders them from a seed, or as a test's filter decides.
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
	unsigned len; /* length of bytes[] */
	uint8_t bytes[];
};

struct wire {
	uint64_t delay_ns;
	/* Probabilities in a million: lost, sent twice, delayed by up to `jitter_ns` more, marked
	 * with CE. */
	uint32_t loss, twice, late, mark;
	uint64_t jitter_ns;
	/* Sees each packet first, and returns true to lose it; NULL: no filter. */
	bool (*filter)(void *ctx, unsigned from, const struct fa_out *out);
	void *ctx;
	uint64_t seed, sent, lost;
	struct wire_packet *first; /* by time of arrival */
};

uint32_t wire_random(struct wire *w);
/* Returns true with a probability of `ppm` in a million. */
bool wire_chance(struct wire *w, uint32_t ppm);
/* Sends from end `from` (0 or 1) to the other. */
void wire_send(struct wire *w, uint64_t now, unsigned from, const struct fa_out *out);
/* Returns the next packet that has arrived by `now`, or NULL. The caller frees it with free(). */
struct wire_packet *wire_take(struct wire *w, uint64_t now);
uint64_t wire_next(const struct wire *w); /* Returns the time of the next arrival, or SK_NEVER. */
void wire_drop_all(struct wire *w);

#endif
