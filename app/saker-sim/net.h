/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network of packets, links and switches. A link is an output queue with the wire behind it.
 * Each host's port and each port of a switch sends into a link.
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

/* Bytes on the wire beside headers and payload: preamble, start, frame check sequence, gap. */
#define SIM_FRAMING 24
/* Room for the headers of a ULP, which travel as bytes; the rest of a payload is a length. */
#define SIM_ULP_MAX 128

struct sim_link;

/* A packet. Nodes pass it by pointer; its holder either passes it on or frees it. */
struct sim_packet {
	struct sim_link *link;   /* on which it travels at present */
	struct sim_packet *next; /* in the queue of a slow receiver */
	uint32_t src, dst;       /* numbers of hosts */
	uint32_t flow;           /* number of the flow, the same at both ends */
	uint32_t entropy;        /* hashed by ECMP beside the hosts: flow label or source port */
	uint32_t bytes;          /* on the wire, including SIM_FRAMING */
	uint32_t payload;        /* bytes behind the transport's header */
	uint8_t ttl;
	uint8_t ecn;     /* IP_ECN_* */
	uint8_t ulp_len; /* bytes of the payload that are in `ulp` */
	void *tag;       /* from the sender to the receiver: the message */
	uint8_t *block;  /* the bytes of the payload; NULL if it is only a length */
	uint32_t stamp;  /* Falcon: the timestamp of PSP's IV */
	union {
		struct wire_tcp tcp;
		struct wire_falcon falcon;
	};
	uint8_t ulp[SIM_ULP_MAX];
};

/* The pools of packets and of the bytes that some packets carry. */
struct sim_memory {
	struct sim_pool packets, blocks;
};

void sim_packet_free(struct sim_memory *m, struct sim_packet *p);

/* An end of a link: the first member of a host or a switch. `receive` owns the packet. */
struct sim_node {
	void (*receive)(struct sim_node *self, struct sim_packet *p, sim_time now);
};

/* ---- Links ---- */

struct sim_link_params {
	uint64_t bps;          /* bits per second, more than 0 */
	sim_time delay;        /* one way */
	uint32_t queue_bytes;  /* capacity of the queue; 0: no limit */
	uint32_t ecn_bytes;    /* ECT packets that find more bytes queued are marked; 0: never */
	double loss;           /* probability that a packet is lost on the wire */
	double burst;          /* mean number of consecutive losses; up to 1: independent losses */
	double reorder;        /* probability that a packet gets an additional delay */
	sim_time reorder_span; /* longest additional delay */
};

struct sim_link_stats {
	uint64_t packets, bytes; /* sent onto the wire */
	uint64_t dropped;        /* packets that found the queue full */
	uint64_t lost, reordered, marked;
	uint64_t deepest; /* longest queue that a packet found, bytes */
};

struct sim_link {
	struct sim_events *events;
	struct sim_memory *memory;
	struct sim_node *to;
	struct sim_link_params p;
	uint64_t ps_per_byte; /* in 65536ths */
	uint64_t carry;       /* remainder of the transmission time, in 65536ths of a picosecond */
	sim_time free_at;     /* when the whole queue will have been sent */
	bool losing;          /* inside a burst of losses */
	struct sim_random random;
	struct sk_hist *depths; /* queue length that each packet found, bytes; NULL: not recorded */
	struct sim_link_stats stats;
};

/* Initializes a link to the node `to`. `number` selects its random sequence of `seed`. */
void sim_link_init(struct sim_link *l, const struct sim_link_params *p, struct sim_events *events,
	struct sim_memory *memory, struct sim_node *to, uint64_t seed, uint64_t number);
/* Sends a packet, which arrives at `to` later, or is dropped or lost and counted. Consumes `p`. */
void sim_link_send(struct sim_link *l, struct sim_packet *p, sim_time now);
/* Returns the bytes in the queue, including the unsent part of the packet on the wire. */
uint32_t sim_link_backlog(const struct sim_link *l, sim_time now);
/* Returns the time at which no more than `bytes` will be in the queue. */
sim_time sim_link_drained(const struct sim_link *l, uint32_t bytes);

/* ---- Switches ---- */

/* The ports for packets to a host: `count` ports of equal cost from `first` on. */
struct sim_route {
	uint16_t first, count;
};

struct sim_switch {
	struct sim_node node;
	struct sim_link *ports;
	unsigned nports;
	struct sim_route *routes; /* [nhosts]; count 0: no route */
	unsigned nhosts;
	uint64_t salt; /* makes the hashes of switches differ */
	struct sim_memory *memory;
	uint64_t no_route, expired;
};

void sim_switch_init(struct sim_switch *s, unsigned nports, unsigned nhosts,
	struct sim_memory *memory, uint64_t salt);
void sim_switch_free(struct sim_switch *s);
/* Returns the output port of a packet, or -1 if there is no route. */
int sim_switch_port(const struct sim_switch *s, const struct sim_packet *p);

#endif
