/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rig of the Falcon tests: two engines with Falcon, connected by rings, each with a flat
 * client. The rig can drop, delay, copy and inject frames on the wire between them. One thread
 * polls both engines. The clock is virtual: each turn takes frig.step.
 */
#ifndef TEST_ENGINE_FALCON_RIG_H
#define TEST_ENGINE_FALCON_RIG_H

#include <saker/saker.h>

#include "../../../lib/rof/exchange.h"
#include "../../../lib/rof/rof.h"
#include "pair.h"

#define FRIG_PORT  7000
#define FRIG_MEM   65536u
#define FRIG_DEPTH 16
#define FRIG_STEP  1000ull /* ns: frig.step, unless a test sets another */

struct fnode {
	struct eng *e;
	struct saker *s;
	void *home;
	int client;
	struct sk_addr addr;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_mr *mr;
	struct saker_qp *qp;
	uint8_t *mem; /* [FRIG_MEM], registered with all rights */
};

struct frig {
	struct pair p;
	struct fnode n[2];
	struct rte_ring *to[2]; /* frames on their way to each node */
	bool silent;            /* the wire loses everything */
	/* Of 1000 frames, the wire loses `bad`, duplicates as many, and delays as many. */
	unsigned bad;
	uint64_t lost;      /* frames that were lost in this way */
	uint64_t step, now; /* ns; a turn takes `step` */
	uint64_t rng;
	struct {
		struct rte_mbuf *m; /* a frame that others overtake, delivered at the time `at` */
		uint64_t at;
		int node;
	} held[32];
	unsigned nheld;
	bool delay; /* the wire delays all frames, in late[] */
	void *late[2][64];
	unsigned nlate[2];
	unsigned queues;           /* of the ports; more than one: frig_start_rss() */
	unsigned loop_idle;        /* bit k: loop k of both engines is not polled */
	bool one;                  /* both clients are attached to node 0 */
	struct rte_mbuf *kept[64]; /* copies of the frames that `keep` selects */
	unsigned nkept;
	int keep; /* the node whose received frames are copied, or -1 */
	/* Called for each frame to a node, to do what a port does to it; or NULL. */
	void (*port)(struct rte_mbuf *m, int node);
	struct rte_mempool *pool;
};

extern struct frig frig;

/* Starts both engines with Falcon enabled. `tweak` may change the configurations before. */
void frig_start(void (*tweak)(struct eng_config *cfg, int node));
/* Starts the rig with both clients at node 0. */
void frig_start_one(void (*tweak)(struct eng_config *cfg, int node));
/* Starts both engines with so many loops, each with a transport stage, an engine stage and a queue
 * of the port. The ports distribute TCP segments and UDP datagrams by RSS. Of the wire's faults, a
 * rig with several queues has only `silent`. */
void frig_start_rss(unsigned loops, void (*tweak)(struct eng_config *cfg, int node));
/* Detaches the clients, and checks that no object is left and every mbuf was freed. */
void frig_stop(void);
/* Runs one turn, or `n` turns, of the wire and of all loops. */
void frig_turn(void);
void frig_turns(unsigned n);
/* Advances the virtual time by `ns` in steps that are small enough for the timers. */
void frig_sleep(uint64_t ns);
/* Detaches the client of a node without closing its objects. */
void frig_kill(int node);
/* Attach one more client with a name to the engine of a node; end it with saker_close(), or detach
 * it without. */
void frig_client(int node, const char *name, struct fnode *n);
void frig_client_end(struct fnode *n);
void frig_client_kill(struct fnode *n);

/* Creates a QP of a client whose send queue has `depth` places. frig_qp() also makes it n[node].qp,
 * with FRIG_DEPTH. */
struct saker_qp *frig_deep_qp(
	const struct fnode *n, enum saker_transport transport, uint32_t depth);
struct saker_qp *frig_qp(int node, enum saker_transport transport);
/* Creates a datagram QP of a client whose send queue has `depth` places, and moves it to RTS. */
struct saker_qp *frig_datagram_qp(
	const struct fnode *n, uint32_t qkey, uint32_t depth, enum saker_ordering ordering);
struct saker_ah *frig_ah(int node, const struct sk_addr *remote);
struct saker_event frig_event(int node, enum saker_event_type type);
bool frig_no_event(int node);
struct rd_wc frig_wc(int node);
struct saker_listener *frig_listen(int node);
/* Creates a QP at each node and connects the QP of n[0] to the QP of n[1]. */
void frig_connect(void);
void frig_connect_over(enum saker_transport transport);
/* Does the same with so many outstanding Reads and Atomics. */
void frig_connect_reads(enum saker_transport transport, uint16_t reads);
/* Starts to connect n[0].qp. */
void frig_ask(const struct saker_conn_param *p);
/* Waits for the disconnected event at both sides. Returns the status at node 0; *other is that at
 * node 1. */
int frig_ended(int *other);

/* Posts a signaled request on the first `len` bytes of both memories; wr_id is the opcode. */
void frig_post(int node, uint8_t opcode, uint32_t len, uint64_t imm);
/* Posts a receive into all of the memory of a node. */
void frig_recv(int node, uint64_t wr_id);
/* Runs a Write, a Read and a Send, and checks every byte. */
void frig_works(void);
uint64_t frig_count(int node, const char *layer, const char *name);

/* Put a frame on the wire to a node: in one piece, or as an mbuf of `cut` bytes and one of the
 * rest. */
void frig_inject(int node, const void *frame, size_t len);
void frig_inject_cut(int node, const void *frame, size_t len, size_t cut);

#endif
