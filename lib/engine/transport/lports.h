/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The local ports of active connections, by destination: the tuple without its local port. The
 * search for a free port then costs about the same however many connections go to the destination.
 * The sets only make the search fast. The table of tuples decides whether a port is free, so a set
 * for which there was no memory does no harm.
 */
#ifndef SAKER_ENGINE_LPORTS_H
#define SAKER_ENGINE_LPORTS_H

#include <stdbool.h>

#include "../../base/prf.h"
#include "../../tcp/tcp.h"

struct eng_lports_dest;

struct eng_lports {
	struct sk_key key;               /* of the hash, and of the offsets of RFC 6056 */
	uint16_t min, max;               /* the range of local ports */
	uint16_t next;                   /* the counter of RFC 6056, section 3.3.3 */
	uint16_t jumps;                  /* calls of eng_lports_jump() */
	uint32_t mask;                   /* number of buckets - 1 */
	struct eng_lports_dest **bucket; /* lists of the destinations, by hash */
};

/* Returns whether this stage may use the tuple: its home is this stage (*home), and no connection
 * has it. */
typedef bool eng_lports_free(void *ctx, const struct tcp_tuple *tuple, bool *home);

/* Initializes the sets for about `conns` connections with ports of min..max. Returns 0 or
 * -ENOMEM. */
int eng_lports_init(struct eng_lports *l, uint16_t min, uint16_t max, uint32_t conns);
void eng_lports_fini(struct eng_lports *l);
/* Note that a connection uses, or no longer uses, the local port of the tuple. Ports outside of the
 * range, and tuples that were not added, are allowed. */
void eng_lports_add(struct eng_lports *l, const struct tcp_tuple *tuple);
void eng_lports_del(struct eng_lports *l, const struct tcp_tuple *tuple);
/* Returns a port of the range for which `is_free` returns true, or 0 when there is none.
 * tuple->lport is ignored. Remembers the ports of a destination with many connections whose home is
 * another stage. */
uint16_t eng_lports_choose(
	struct eng_lports *l, const struct tcp_tuple *tuple, eng_lports_free *is_free, void *ctx);
/* Lets the next search begin far from the last ones. Ports that follow each other differ in few
 * bits, of which the peer's RSS may not make each of its queues. A random port could be one that
 * was freed a moment ago, whose last connection the peer keeps in TIME-WAIT. */
void eng_lports_jump(struct eng_lports *l);

#endif
