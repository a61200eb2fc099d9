/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run in progress: hosts joined by links and switches, each with a stack of the transport that
 * the scenario names, and flows between them. A flow is one connection that carries messages from
 * `src` to `dst`; a message is a number of bytes whose way is timed.
 */
#ifndef SAKER_SIM_WORLD_H
#define SAKER_SIM_WORLD_H

#include "net.h"
#include "scenario.h"

struct sim_world;
struct sim_flow;
struct sim_host;
struct sim_counts;

/* ---- Hosts ---- */

#define SIM_TTL 64 /* of packets that leave a host */

/* A library behind a host's port. All run inside the host's turn but for create and destroy. */
struct sim_transport {
	const char *name;
	/* A stack, host->stack. 0 or a negative errno. */
	int (*create)(struct sim_host *h);
	void (*destroy)(struct sim_host *h);
	/* Starts flow `f`, both ends of it, before anything else happens. */
	int (*connect)(struct sim_flow *f);
	/* Takes the packet. */
	void (*input)(struct sim_host *h, struct sim_packet *p, uint64_t now_ns);
	/* Sends as much of the flow's messages as the transport takes (sim_flow_take). */
	void (*offer)(struct sim_flow *f, uint64_t now_ns);
	unsigned (*poll)(struct sim_host *h, uint64_t now_ns, unsigned budget);
	uint64_t (*deadline)(struct sim_host *h);
	/* Adds to the world's counts. */
	void (*count)(struct sim_host *h, struct sim_counts *c);
};

extern const struct sim_transport sim_tcp, sim_iwarp, sim_falcon, sim_rof;

struct sim_host {
	struct sim_node node;
	struct sim_world *w;
	uint32_t id;
	struct sim_link nic; /* outwards */
	void *stack;
	sim_time wake_at; /* the one planned turn that counts */
	bool blocked;     /* the port was full in this turn */
	/* Flows of this host that have something new to send, first come, first served. */
	struct sim_flow *offers, **offers_end;
};

/* Plans a turn of the host, if none is planned before. */
void sim_host_wake(struct sim_host *h, sim_time at);
/* A packet to send with addresses and size filled in; NULL: the port is full, ask again later.
 * `header`: bytes above IP. */
struct sim_packet *sim_host_packet(struct sim_host *h, struct sim_flow *f, uint32_t header,
	uint32_t payload, uint32_t entropy);
void sim_host_send(struct sim_host *h, struct sim_packet *p);
void sim_host_init(struct sim_host *h, struct sim_world *w, uint32_t id);

/* ---- Flows and messages ---- */

struct sim_message {
	struct sim_message *next; /* in the order of their start */
	struct sim_flow *flow;
	sim_time start;
	uint64_t taken, delivered; /* bytes given to the transport, and out at the other end */
};

/* One end of a flow, as its transport sees it. */
struct sim_end {
	struct sim_flow *flow;
	struct sim_host *host;
	void *conn;         /* the transport's */
	void *ulp;          /* what is above the transport's connection, if anything */
	uint32_t in_flight; /* Falcon: transactions; of these, completed in all */
	uint64_t completed;
	bool refusing; /* Falcon, ordered: all requests until the refused one comes again */
};

struct sim_flow {
	struct sim_world *w;
	uint32_t id;
	struct sim_host *src, *dst;
	struct sim_end end[2]; /* source, destination */
	struct sim_flow *next_offer;
	bool offered, ready, started;
	struct sim_message *oldest;  /* that was not delivered whole */
	struct sim_message *filling; /* the first with bytes that were not taken */
	struct sim_message *newest;
	uint64_t begun, done; /* messages started, delivered */
	uint64_t acked;       /* bytes that the source knows to have arrived */
	uint64_t delivered;   /* bytes at the destination */
	uint64_t measured;    /* of these while it was measured */
	sim_time first, last; /* message started, byte delivered */
};

/* The connection is there: messages may start. */
void sim_flow_ready(struct sim_flow *f, sim_time now);
/* Up to `max` bytes of the oldest message that is not sent whole: its part of one packet. 0: no
 * message waits. */
uint32_t sim_flow_take(struct sim_flow *f, uint32_t max, struct sim_message **m);
/* The source has learnt that so many more bytes arrived: further messages may start. */
void sim_flow_acked(struct sim_flow *f, uint64_t bytes, sim_time now);
/* Bytes of `m` came out at the destination. */
void sim_flow_delivered(struct sim_message *m, uint64_t bytes, sim_time now);
/* The same for a transport that delivers a stream. */
void sim_flow_delivered_in_order(struct sim_flow *f, uint64_t bytes, sim_time now);
/* Something waits to be sent: the source has it offered in its next turn. */
void sim_flow_offer(struct sim_flow *f, sim_time now);
/* A transaction failed. */
void sim_flow_failed(struct sim_flow *f);
/* The connection is lost. */
void sim_flow_dead(struct sim_flow *f);
/* Makes all flows of the scenario's pattern, not yet connected. */
void sim_traffic_create(struct sim_world *w);

/* ---- The world ---- */

struct sim_counts {
	uint64_t packets, retransmits, early, timeouts, probes, nacks, repaths;
};

/* Counts, 64 bits each: of the transports, of the hosts' links, of the switches' ports. */
struct sim_totals {
	struct sim_counts counts;
	struct sim_link_stats nics, ports;
};

struct sim_world {
	const struct sim_scenario *sc;
	struct sim_events events;
	struct sim_memory memory;
	struct sim_pool messages;
	struct sim_random random;
	const struct sim_transport *transport;
	struct sim_host *hosts;
	struct sim_flow *flows;
	uint32_t nflows, nready, ndone, ndead;
	uint32_t max_conns; /* of a host */
	uint64_t failed;    /* transactions */
	struct sim_switch *switches;
	unsigned nswitches;
	struct sim_link_params host_link; /* of a host's port */
	uint64_t nlinks;                  /* numbers for their chance */
	/* measuring: */
	bool measuring;
	struct sim_totals before;
	sim_time from, until;      /* of the measurement; 0: not begun */
	struct sk_hist completion; /* ns from start to last byte, messages started inside */
	struct sk_hist depths;     /* bytes found waiting in switch ports */
	uint64_t delivered;        /* bytes while measuring */
	sim_time last_delivery;
	struct sim_pool series; /* who writes the course of the run */
	uint64_t wrong;         /* bytes delivered that were never sent: a fault */
};

/* NULL with `why`. */
struct sim_world *sim_world_create(const struct sim_scenario *sc, char why[SIM_WHY]);
void sim_world_destroy(struct sim_world *w);
/* Until the end of the scenario. 0, or -ETIME when its limit came first. */
int sim_world_run(struct sim_world *w);
/* Since the measurement began. */
void sim_world_totals(struct sim_world *w, struct sim_totals *t);
/* Hosts, switches and links between them. */
void sim_topology_create(struct sim_world *w);

#endif
