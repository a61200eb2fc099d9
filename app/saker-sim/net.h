/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What packets go through: links and switches. A link is an output queue with the wire behind it;
 * a host's port and each port of a switch sends into one.
 */
#ifndef SAKER_SIM_NET_H
#define SAKER_SIM_NET_H

#include <stdbool.h>

#include "../../lib/base/hist.h"
#include "../../lib/wire/falcon.h"
#include "../../lib/wire/wire.h"
#include "events.h"
#include "pool.h"
#include "random.h"

/* Bytes on the wire that belong to no header: preamble, start, check sequence, gap. */
#define SIM_FRAMING 24
/* Room for ULP headers: the bytes of a payload that are more than a length. */
#define SIM_ULP_MAX 128

struct sim_link;

/* A packet is passed by pointer from one to the next; who has it either passes it on or gives it
 * back to the pool. Payload is a length. */
struct sim_packet {
	struct sim_link *link; /* on which it travels */
	uint32_t src, dst;     /* hosts */
	uint32_t flow;         /* whose it is: both ends number flows alike */
	uint32_t entropy;      /* what ECMP hashes beside the hosts: flow label or source port */
	uint32_t bytes;        /* on the wire, SIM_FRAMING included */
	uint32_t payload;      /* bytes behind the transport's header */
	uint8_t ttl;
	uint8_t ecn;     /* IP_ECN_* */
	uint8_t ulp_len; /* of the payload, so many bytes are in `ulp` */
	void *tag;       /* what the sender wants the receiver to see: the message */
	uint8_t *block;  /* the payload, if it is more than a length; NULL */
	uint32_t stamp;  /* Falcon: the timestamp of PSP's IV */
	union {
		struct wire_tcp tcp;
		struct wire_falcon falcon;
	};
	uint8_t ulp[SIM_ULP_MAX];
};

/* Where packets, and the bytes that some carry, come from. */
struct sim_memory {
	struct sim_pool packets, blocks;
};

void sim_packet_free(struct sim_memory *m, struct sim_packet *p);

/* Anything that a link can end at. Embedded as the first member. */
struct sim_node {
	void (*receive)(struct sim_node *self, struct sim_packet *p, sim_time now);
};

/* ---- Links ---- */

struct sim_link_params {
	uint64_t bps;          /* more than 0 */
	sim_time delay;        /* one way */
	uint32_t queue_bytes;  /* what may wait; 0: no limit */
	uint32_t ecn_bytes;    /* mark ECT packets that find more than this waiting; 0: never */
	double loss;           /* probability that a packet is lost on the wire */
	double burst;          /* mean number of packets lost in a row; up to 1: independent */
	double reorder;        /* probability that a packet is late ... */
	sim_time reorder_span; /* ... by up to this */
};

struct sim_link_stats {
	uint64_t packets, bytes; /* that went onto the wire */
	uint64_t dropped;        /* the queue was full */
	uint64_t lost, reordered, marked;
	uint64_t deepest; /* bytes found waiting, at most */
};

struct sim_link {
	struct sim_events *events;
	struct sim_memory *memory;
	struct sim_node *to;
	struct sim_link_params p;
	uint64_t ps_per_byte; /* in 65536ths */
	uint64_t carry;       /* of serialisation, below a picosecond, in 65536ths */
	sim_time free_at;     /* when the queue will have been sent */
	bool losing;          /* inside a burst of losses */
	struct sim_random random;
	struct sk_hist *depths; /* bytes found waiting by each packet; NULL: not wanted */
	struct sim_link_stats stats;
};

void sim_link_init(struct sim_link *l, const struct sim_link_params *p, struct sim_events *events,
	struct sim_memory *memory, struct sim_node *to, uint64_t seed, uint64_t number);
/* Takes the packet: it arrives at `to` later, or is counted and gone. */
void sim_link_send(struct sim_link *l, struct sim_packet *p, sim_time now);
/* Bytes that wait, the one that is being sent included as far as it is not out. */
uint32_t sim_link_backlog(const struct sim_link *l, sim_time now);
/* When no more than so many bytes will be waiting. */
sim_time sim_link_drained(const struct sim_link *l, uint32_t bytes);

/* ---- Switches ---- */

/* Where packets for a host may go: `count` ports from `first` on, equally good. */
struct sim_route {
	uint16_t first, count;
};

struct sim_switch {
	struct sim_node node;
	struct sim_link *ports;
	unsigned nports;
	struct sim_route *routes; /* by host; count 0: none */
	unsigned nhosts;
	uint64_t salt; /* so that not all switches hash alike */
	struct sim_memory *memory;
	uint64_t no_route, expired;
};

void sim_switch_init(struct sim_switch *s, unsigned nports, unsigned nhosts,
	struct sim_memory *memory, uint64_t salt);
void sim_switch_free(struct sim_switch *s);
/* The port that a packet leaves by; -1: no route. */
int sim_switch_port(const struct sim_switch *s, const struct sim_packet *p);

#endif
