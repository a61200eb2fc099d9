/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An instance: its ports, its stages, and the loops that poll them. Set up by eng_create() and
 * fixed from then on, but for what is marked atomic; each stage's own state is in transport_priv.h,
 * stage_priv.h and behind control_priv.h.
 */
#ifndef SAKER_ENGINE_INSTANCE_H
#define SAKER_ENGINE_INSTANCE_H

#include "../engine.h"
#include "msg.h"
#include "objects.h"

#define ENG_BURST     32   /* frames or messages that are taken at once */
#define ENG_DATA_RING 4096 /* entries of a ring between a transport stage and an engine stage */
#define ENG_RSS_KEY   64   /* bytes; ports take 40 or 52 of them */
#define ENG_MAX_FRAME 65535
#define ENG_TSO_MAX   65000 /* bytes of TCP payload in a TSO frame */

struct eng_control;
struct eng_transport;
struct eng_stage;
struct rte_rcu_qsbr;
struct rte_ring;
struct rofx_tls;

struct eng_port {
	uint16_t id;  /* DPDK's */
	uint32_t mtu; /* IP packet bytes */
	uint8_t mac[6];
	bool started;
	bool down;      /* atomic: its link, as eng_ports_look() found it */
	bool cksum;     /* fills in TCP checksums */
	bool ip_cksum;  /* and IPv4's */
	bool udp_cksum; /* and UDP's */
	uint32_t tso;   /* most TCP payload bytes of a frame that it cuts itself; 0: it does not */
	bool multi_seg; /* sends frames of several segments */
	/* A port with fewer queues than there are transport stages: stages below rx_queues receive
	 * from it, stages below tx_queues send by themselves, and stage s by way of stage
	 * s % tx_queues, through lane[s]. */
	uint16_t rx_queues, tx_queues;
	uint32_t reta_mask; /* entries of its redirection table less one: see handoff_priv.h */
	struct rte_ring *lane[ENG_MAX_TRANSPORTS]; /* rte_mbuf * */
};

struct eng_loop {
	struct eng *e;
	unsigned index;
	unsigned ntransports, nstages;
	struct eng_transport *transports[ENG_MAX_TRANSPORTS];
	struct eng_stage *stages[ENG_MAX_STAGES];
	bool control;
	bool look;    /* this turn is the last look before sleeping: nothing may be put off */
	int epoll_fd; /* waits for e->wake_fd; -1 but for idle = sleep */
	struct eng_loop_stats stats; /* written by the loop */
} __attribute__((aligned(64)));

/* The rings between the stages: single producer, single consumer; NULL where there is no such
 * stage. Control rings carry struct eng_ctl *. */
struct eng_rings {
	struct rte_ring *to_stage[ENG_MAX_TRANSPORTS][ENG_MAX_STAGES];     /* eng_dmsg */
	struct rte_ring *to_transport[ENG_MAX_TRANSPORTS][ENG_MAX_STAGES]; /* eng_dmsg */
	struct rte_ring *control_transport[ENG_MAX_TRANSPORTS],
		*transport_control[ENG_MAX_TRANSPORTS];
	struct rte_ring *control_stage[ENG_MAX_STAGES], *stage_control[ENG_MAX_STAGES];
};

/* What the assembly gives the control stage. */
struct eng_control_args {
	const struct eng_config *cfg; /* outlives the control stage */
	struct rte_ring *to_transport[ENG_MAX_TRANSPORTS], *from_transport[ENG_MAX_TRANSPORTS];
	struct rte_ring *to_stage[ENG_MAX_STAGES], *from_stage[ENG_MAX_STAGES];
	struct rte_rcu_qsbr *rcu; /* each loop is a reader */
	struct rd_mr_table *mrs;  /* of the whole instance: entries are added and removed by the
				     control stage alone */
	uint8_t mac[6];           /* of the first port */
	/* Called when a loop has something to do that it may be asleep for; any thread. May be
	 * NULL. */
	void (*wake)(void *arg, unsigned loop);
	void *wake_arg;
};

struct eng {
	struct eng_config cfg;
	unsigned id; /* tells the instances of a process apart: names of pools and rings */
	struct eng_port ports[ENG_MAX_PORTS];
	struct eng_transport *transports[ENG_MAX_TRANSPORTS];
	struct eng_stage *stages[ENG_MAX_STAGES];
	struct eng_control *control;
	struct eng_rings rings;
	uint8_t rss_key[ENG_RSS_KEY] __attribute__((aligned(4)));
	struct rd_mr_table *mrs;
	struct rofx_tls *tls;      /* of Falcon's exchange; NULL: in clear */
	struct sk_key cid_key;     /* Falcon's CIDs: falcon.c */
	struct rte_rcu_qsbr *qsbr; /* reader k is loop k */
	uint64_t (*clock)(void);   /* eng_clock(), but in tests */
	int wake_fd;               /* eventfd; a write wakes every loop that sleeps */
	uint32_t sleeping;         /* atomic: bit k: loop k sleeps or is about to */
	bool stop;                 /* atomic */
	struct eng_loop loops[ENG_MAX_LCORES];
};

/* Refuses a configuration that cannot work: returns -EINVAL with a sentence in `err`, or 0. */
int eng_config_check(const struct eng_config *cfg, char *err, size_t errlen);

/* A single-producer single-consumer ring between two stages; the name is made of the instance,
 * `kind` and both numbers. NULL: no memory. `esize`: bytes of an element. */
struct rte_ring *eng_ring_create(const struct eng *e, const char *kind, unsigned a, unsigned b,
	unsigned esize, unsigned count);

/* Returns the largest RDMA MTU, a power of two, that is configured and whose packets fit IP packets
 * of `path_mtu` bytes. */
uint16_t eng_falcon_mtu(const struct eng *e, uint32_t path_mtu);

#endif
