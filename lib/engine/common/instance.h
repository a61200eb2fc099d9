/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An instance: its ports, its stages, and the loops that poll them. eng_create() sets it up; from
 * then on, only the fields that are marked atomic change. transport_priv.h, stage_priv.h and
 * control/core/core.h define the state of the stages.
 */
#ifndef SAKER_ENGINE_INSTANCE_H
#define SAKER_ENGINE_INSTANCE_H

#include "../../base/share.h"
#include "../device.h"
#include "../engine.h"
#include "msg.h"
#include "objects.h"

#define ENG_BURST     32   /* most frames or messages that a stage takes from a queue at once */
#define ENG_DATA_RING 4096 /* entries of a ring between a transport stage and an engine stage */
#define ENG_RSS_KEY   64   /* bytes; ports use the first 40 or 52 of them */
#define ENG_MAX_FRAME 65535
#define ENG_TSO_MAX   65000 /* bytes of TCP payload in a TSO frame */

/* Bytes as which a shorter answer to a Read or an Atomic counts in eng_bounds.arrived: a turn
 * answers 32 of them. The peer may have as many under way as its ORD, and waits until the turn
 * ends. */
#define ENG_ANSWER_LEAST 2048

struct eng_control;
struct eng_pages;
struct eng_waker;
struct eng_places;
struct eng_port_intr;
struct eng_transport;
struct eng_stage;
struct rte_rcu_qsbr;
struct rte_ring;

struct eng_port {
	uint32_t mtu; /* most bytes of an IP packet */
	uint8_t mac[6];
	bool started;
	bool cksum;         /* the port computes TCP checksums of sent frames */
	bool ip_cksum;      /* the port computes IPv4 header checksums */
	bool udp_cksum;     /* the port computes UDP checksums */
	uint32_t tso;       /* most TCP payload bytes of a TSO frame; 0: the port has no TSO */
	bool multi_seg;     /* the port sends frames of several segments */
	bool tagged;        /* it has addresses on VLANs: a tag that it has stripped is put back */
	bool foreign;       /* received frames lie in mbufs of the sender's pools */
	uint64_t left;      /* atomic: has a bit for each transport stage that has noted dev.gone */
	uint16_t most_segs; /* segments of a frame that is not for TSO; 0: any number */
	struct eng_port_intr *intr; /* its receive interrupts; NULL: none, or not used */
	/* A port may have fewer queues than there are transport stages. A stage below rx_queues
	 * receives from the port, and a stage below tx_queues sends to it. Any other stage s passes
	 * its frames through lane[s] to stage s % tx_queues, which sends them. */
	uint16_t rx_queues, tx_queues;
	uint32_t reta_mask; /* entries of the redirection table minus one: see handoff_priv.h */
	/* RTE_ETH_RSS_*: the packets that arrive at the queue of their home stage. */
	uint64_t rss;
	uint8_t rss_key[ENG_RSS_KEY]; /* e->rss_key, or the key that the device uses instead */
	struct eng_device dev;
	struct rte_ring *lane[ENG_MAX_TRANSPORTS]; /* of struct rte_mbuf * */
};

struct eng_loop {
	struct eng *e;
	unsigned index;
	unsigned ntransports, nstages;
	struct eng_transport *transports[ENG_MAX_TRANSPORTS];
	struct eng_stage *stages[ENG_MAX_STAGES];
	bool control;
	bool unsent; /* that of the last turn: see eng_transport_unsent() */
	bool look; /* this turn is the last poll before the loop sleeps: no work may be deferred */
	int epoll_fd;                /* waits for e->wake_fd; -1 unless idle = sleep */
	struct eng_loop_stats stats; /* only the loop writes it */
} __attribute__((aligned(64)));

/* The rings between the stages, each with a single producer and a single consumer. A ring is NULL
 * where the configuration has no such stage. The rings from and to the control stage carry
 * struct eng_ctl *. Those of struct eng_dmsg exist from the start between a transport stage and
 * the engine stage with the same number, if one loop polls both; eng_rings_link() makes all others,
 * each with the first connection that needs it. */
struct eng_rings {
	/* [nstages] each, of struct eng_dmsg */
	struct rte_ring **to_stage[ENG_MAX_TRANSPORTS], **to_transport[ENG_MAX_TRANSPORTS];
	struct rte_ring *control_transport[ENG_MAX_TRANSPORTS],
		*transport_control[ENG_MAX_TRANSPORTS];
	struct rte_ring *control_stage[ENG_MAX_STAGES], *stage_control[ENG_MAX_STAGES];
};

/* The arguments of the control stage, set by the assembly. */
struct eng_control_args {
	/* The caller keeps it until eng_control_destroy(). eng_change() changes it: see
	 * control_change.c. */
	struct eng_config *cfg;
	struct rte_ring *to_transport[ENG_MAX_TRANSPORTS], *from_transport[ENG_MAX_TRANSPORTS];
	struct rte_ring *to_stage[ENG_MAX_STAGES], *from_stage[ENG_MAX_STAGES];
	struct rte_rcu_qsbr *rcu; /* each loop is a reader */
	/* The STags of the whole instance. Only the control stage adds and removes entries. */
	struct rd_mr_table *mrs;
	/* Makes the rings between a transport stage and an engine stage: eng_rings_link(). NULL:
	 * there are all. */
	void (*link)(void *arg, unsigned transport, unsigned stage);
	uint8_t mac[6];        /* of the first port */
	const uint32_t *speed; /* of its link, Mb/s; atomic. NULL: unknown */
	/* Wakes loop `loop`, which may be asleep while there is work for it. The control stage
	 * calls it from any thread. May be NULL. */
	void (*wake)(void *arg, unsigned loop);
	/* Watches the eventfd of a client's doorbell with eng_doorbell_watch(), or ends that.
	 * Returns 0 or -errno. The socket's thread calls it. NULL: no loop sleeps. */
	int (*doorbell)(void *arg, int fd, bool watch);
	void *wake_arg; /* for the three */
	/* Fetches missing pages of memory that clients pass. NULL: no memory is watched. */
	struct eng_pages *pages;
	/* Wakes clients of the socket whose wake-ups take long. NULL: the loops wake all. */
	struct eng_waker *waker;
	/* It sets the keys, and enters the datagram QPs. NULL: nobody looks. */
	struct eng_places *places;
};

/* Limits of a turn that count messages between two stages. A run of packets is one message, so they
 * depend on whether packets take the fast paths. */
struct eng_bounds {
	/* The most that a stage takes from one other stage in a turn: messages, and for an engine
	 * stage also bytes of messages and of answers to them, each of which counts
	 * ENG_ANSWER_LEAST at least. After these bytes the peer gets the first answers, while this
	 * side copies the next ones. */
	uint32_t messages, arrived;
	uint32_t behind; /* waiting messages with which an engine stage is not yet behind */
};

extern const struct eng_bounds eng_bounds; /* those of eng_create() */

struct eng {
	struct eng_config cfg;
	struct eng_bounds bounds; /* eng_bounds except in tests */
	unsigned id; /* unique within the process; part of the names of pools and rings */
	struct eng_port ports[ENG_MAX_PORTS];
	struct eng_transport *transports[ENG_MAX_TRANSPORTS];
	struct eng_stage *stages[ENG_MAX_STAGES];
	struct eng_control *control;
	struct eng_pages *pages;
	struct eng_waker *waker;
	struct eng_rings rings;
	uint8_t rss_key[ENG_RSS_KEY] __attribute__((aligned(4)));
	struct rd_mr_table *mrs;
	struct eng_places *places; /* NULL: there is no Falcon */
	struct sk_key cid_key;     /* permutes Falcon's CIDs: see falcon.c */
	struct rte_rcu_qsbr *qsbr; /* reader k is loop k */
	uint64_t (*clock)(void);   /* returns ns; eng_clock() except in tests */
	int wake_fd;               /* eventfd; a write wakes every loop that sleeps */
	uint32_t sleeping;         /* atomic; bit k: loop k sleeps or is about to sleep */
	bool stop;                 /* atomic; the loops end after their turn */
	bool flat;                 /* atomic; a flat client attached: its doorbells wake no loop */
	struct eng_loop loops[ENG_MAX_LCORES];
};

/* Wakes the loops of the set `loops` (bit k: loop k) that sleep. If none does, the call costs a
 * fence and a load. Callable from any thread. */
void eng_wake(struct eng *e, uint32_t loops);
/* Makes each write to the eventfd `fd` wake the loops that sleep. No thread reads the eventfd. A
 * client may have `fd`, too. The events name no client, so that an event that arrives after its
 * client has ended only wakes a loop. Callable from any thread. Returns 0, or -errno of
 * epoll_ctl(2). */
int eng_doorbell_watch(struct eng *e, int fd);
/* Withdraws eng_doorbell_watch(). Without it, `fd` stays watched after it is closed, for as long as
 * the client has it. */
void eng_doorbell_unwatch(struct eng *e, int fd);

/* Creates a single-producer single-consumer ring of `count` elements of `esize` bytes between two
 * stages. Its name consists of the number of the instance, `kind`, `a` and `b`. Returns NULL, with
 * rte_errno set, when there is no memory. */
struct rte_ring *eng_ring_create(const struct eng *e, const char *kind, unsigned a, unsigned b,
	unsigned esize, unsigned count);

/* The same for a ring with several producers. Its name consists of the number of the instance,
 * `kind` and `a`. */
struct rte_ring *eng_ring_create_many(
	const struct eng *e, const char *kind, unsigned a, unsigned esize, unsigned count);

/* Initializes a share for a pool of `size` units, by the limits of the instance; a minimum is at
 * least `least` units. The user numbers are SK_USER_INSTANCE and eng_client.user. Returns 0 or
 * -ENOMEM. */
int eng_share_init(struct sk_share *s, const struct eng_limits *l, uint32_t size, uint32_t least);

/* Returns the RDMA MTU in bytes: the largest power of two that is not above `most` and whose
 * packets fit into IP packets of `path_mtu` bytes. */
uint16_t eng_falcon_mtu(const struct eng *e, uint32_t most, uint32_t path_mtu);

#endif
