/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A run in progress: hosts connected by links and switches, each with a stack of the scenario's
 * transport, and flows between them. A flow is one connection that carries messages from `src` to
 * `dst`. A message is a number of bytes whose completion time is measured.
 */
#ifndef SAKER_SIM_WORLD_H
#define SAKER_SIM_WORLD_H

#include "net.h"
#include "receiver.h"
#include "scenario.h"

struct sim_world;
struct sim_flow;
struct sim_host;
struct sim_counts;

/* ---- Hosts ---- */

#define SIM_TTL 64 /* of packets that leave a host */

/* A transport library behind a host's port. All functions except `create`, `destroy` and `connect`
 * run inside the host's turn. */
struct sim_transport {
	const char *name;
	/* Creates the stack, host->stack. Returns 0 or a negative errno. */
	int (*create)(struct sim_host *h);
	void (*destroy)(struct sim_host *h);
	/* Creates both ends of flow `f`, before the run starts. Returns 0 or a negative errno. */
	int (*connect)(struct sim_flow *f);
	/* Processes a received packet. Consumes `p`. */
	void (*input)(struct sim_host *h, struct sim_packet *p, uint64_t now_ns);
	/* Sends as much of the flow's messages (sim_flow_take()) as the transport accepts. */
	void (*offer)(struct sim_flow *f, uint64_t now_ns);
	/* Sends up to `budget` packets. Returns how many were sent. */
	unsigned (*poll)(struct sim_host *h, uint64_t now_ns, unsigned budget);
	/* Returns the time of the next turn that the stack needs, ns. */
	uint64_t (*deadline)(struct sim_host *h);
	/* Adds the stack's counters to *c. */
	void (*count)(struct sim_host *h, struct sim_counts *c);
};

extern const struct sim_transport sim_tcp, sim_iwarp, sim_falcon, sim_rof;

struct sim_host {
	struct sim_node node;
	struct sim_world *w;
	uint32_t id;
	struct sim_link nic; /* outgoing */
	void *stack;
	bool slow; /* it is the destination of a flow, and `receiver` is its processor */
	struct sim_receiver receiver;
	uint64_t waited_ns; /* the packets of this turn waited for at most this time */
	sim_time wake_at;   /* the next scheduled turn; events of other times have no effect */
	bool blocked;       /* the port was full in this turn */
	/* Flows of this host that have new data to send, first come, first served. */
	struct sim_flow *offers, **offers_end;
};

/* Schedules a turn of the host, unless an earlier one is scheduled. */
void sim_host_wake(struct sim_host *h, sim_time at);
/* Returns a packet with its addresses and sizes filled in, or NULL when the port is full; the host
 * then runs a turn when there is room. `header` is the number of header bytes above IP. */
struct sim_packet *sim_host_packet(struct sim_host *h, struct sim_flow *f, uint32_t header,
	uint32_t payload, uint32_t entropy);
void sim_host_send(struct sim_host *h, struct sim_packet *p);
void sim_host_init(struct sim_host *h, struct sim_world *w, uint32_t id);

/* ---- Flows and messages ---- */

struct sim_message {
	struct sim_message *next; /* in the order of their start */
	struct sim_flow *flow;
	sim_time start;
	uint64_t taken, delivered; /* bytes passed to the transport, bytes at the destination */
};

/* One end of a flow, for its transport. */
struct sim_end {
	struct sim_flow *flow;
	struct sim_host *host;
	void *conn;         /* the transport's connection */
	void *ulp;          /* the ULP's state of the connection, or NULL */
	uint32_t in_flight; /* Falcon: outstanding transactions */
	uint64_t completed; /* Falcon: completed transactions */
	bool refusing;      /* Falcon, ordered: refuses requests until the refused one returns */
};

struct sim_flow {
	struct sim_world *w;
	uint32_t id;
	struct sim_host *src, *dst;
	struct sim_end end[2]; /* source, destination */
	struct sim_flow *next_offer;
	bool offered, ready, started;
	struct sim_message *oldest;  /* the first that is not completely delivered */
	struct sim_message *filling; /* the first with bytes that the transport has not taken */
	struct sim_message *newest;
	uint64_t begun, done; /* messages started, delivered */
	uint64_t acked;       /* bytes acknowledged at the source */
	uint64_t delivered;   /* bytes at the destination */
	uint64_t measured;    /* bytes of `delivered` during the measurement */
	sim_time first, last; /* start of the first message, delivery of the last byte */
};

/* Starts messages, because the connection is established. */
void sim_flow_ready(struct sim_flow *f, sim_time now);
/* Takes up to `max` bytes of the flow's next message, for one packet. Returns how many, or 0 if
 * there is no message, and stores the message in *m. */
uint32_t sim_flow_take(struct sim_flow *f, uint32_t max, struct sim_message **m);
/* Reports that `bytes` more bytes were acknowledged at the source, so that further messages may
 * start. */
void sim_flow_acked(struct sim_flow *f, uint64_t bytes, sim_time now);
/* Reports that bytes of `m` were delivered at the destination. */
void sim_flow_delivered(struct sim_message *m, uint64_t bytes, sim_time now);
/* The same for a transport that delivers a stream. */
void sim_flow_delivered_in_order(struct sim_flow *f, uint64_t bytes, sim_time now);
/* Queues the flow for the transport's `offer` in the source's next turn. */
void sim_flow_offer(struct sim_flow *f, sim_time now);
/* Counts a failed transaction. */
void sim_flow_failed(struct sim_flow *f);
/* Counts a lost connection. */
void sim_flow_dead(struct sim_flow *f);
/* Creates all flows of the scenario's pattern, not yet connected. */
void sim_traffic_create(struct sim_world *w);

/* ---- The world ---- */

struct sim_counts {
	uint64_t packets, retransmits, early, timeouts, probes, nacks, repaths;
};

/* Counters, 64 bits each: of the transports, of the hosts' links, of the switches' ports. */
struct sim_totals {
	struct sim_counts counts;
	struct sim_link_stats nics, ports;
	uint64_t receiver_drops;
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
	uint32_t max_conns; /* largest number of connections of a host */
	uint64_t failed;    /* transactions */
	struct sim_switch *switches;
	unsigned nswitches;
	struct sim_link_params host_link; /* of a host's port */
	uint64_t nlinks;                  /* numbers the links' random sequences */
	/* The measurement. */
	bool measuring;
	struct sim_totals before;
	sim_time from, until;      /* its start and end; 0: not begun */
	struct sk_hist completion; /* ns from start to last byte, of messages started in it */
	struct sk_hist depths;     /* queue length that packets found in switch ports, bytes */
	uint64_t delivered;        /* bytes delivered in it */
	sim_time last_delivery;
	struct sim_pool series; /* state of the time series */
	uint64_t wrong;         /* bytes delivered without having been sent: a fault */
};

/* Creates a run. Returns NULL on failure, with one sentence in `why`. */
struct sim_world *sim_world_create(const struct sim_scenario *sc, char why[SIM_WHY]);
void sim_world_destroy(struct sim_world *w);
/* Runs the scenario to its end. Returns 0, or -ETIME when run.limit-ms passed before. */
int sim_world_run(struct sim_world *w);
/* Returns in *t the counters since the start of the measurement. */
void sim_world_totals(struct sim_world *w, struct sim_totals *t);
/* Creates hosts, switches and the links between them. */
void sim_topology_create(struct sim_world *w);

#endif
