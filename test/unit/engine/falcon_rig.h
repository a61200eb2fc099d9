/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines that speak Falcon, joined by rings, each with a flat client, and a hand on the wire.
 * One thread drives all, and time is the rig's: a turn takes frig.step, however long it takes.
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
	unsigned bad;           /* of 1000 frames the wire loses so many, and as many each it
				   doubles and lets others overtake */
	uint64_t lost;          /* frames that it did */
	uint64_t step, now;     /* ns; a turn takes `step` */
	uint64_t rng;
	struct {
		struct rte_mbuf *m; /* overtaken: goes on at `at` */
		uint64_t at;
		int node;
	} held[32];
	unsigned nheld;
	bool delay; /* it holds up everything: in late[] */
	void *late[2][64];
	unsigned nlate[2];
	unsigned loop_idle;        /* bit k: loop k of either engine has no turns */
	bool one;                  /* both clients are node 0's */
	struct rte_mbuf *kept[64]; /* copies of frames that came past, while `keep` */
	unsigned nkept;
	int keep;                                   /* of frames to this node; -1: none */
	void (*port)(struct rte_mbuf *m, int node); /* NULL, or: what a port does to each frame that
						     * it gives to that node */
	struct rte_mempool *pool;
};

extern struct frig frig;

/* Both speak Falcon; `tweak` may change the configurations before the engines start. */
void frig_start(void (*tweak)(struct eng_config *cfg, int node));
/* The same, with both clients at node 0. */
void frig_start_one(void (*tweak)(struct eng_config *cfg, int node));
/* Detaches the clients: nothing may be left of them, and every mbuf comes home. */
void frig_stop(void);
void frig_turn(void);
void frig_turns(unsigned n);
/* Lets so much virtual time pass in a moment, in steps that a timer notices. */
void frig_sleep(uint64_t ns);
/* Ends a client without a word. */
void frig_kill(int node);
/* One more client of a node's engine, attached under this name; its end, with or without a word. */
void frig_client(int node, const char *name, struct fnode *n);
void frig_client_end(struct fnode *n);
void frig_client_kill(struct fnode *n);

struct saker_qp *frig_qp(int node, enum saker_transport transport);
struct saker_event frig_event(int node, enum saker_event_type type);
bool frig_no_event(int node);
struct rd_wc frig_wc(int node);
struct saker_listener *frig_listen(int node);
/* Makes a QP at each node and connects them, n[0]'s to n[1]'s. */
void frig_connect(void);
void frig_connect_over(enum saker_transport transport);
/* Begins: the QP is n[0].qp. */
void frig_ask(const struct saker_conn_param *p);
/* Both sides were told of the end; returns node 0's status, *other is node 1's. */
int frig_ended(int *other);

/* A request about the first `len` bytes of both memories; one of several that are under way. */
void frig_post(int node, uint8_t opcode, uint32_t len, uint64_t imm);
void frig_recv(int node, uint64_t wr_id);
/* Write, Read, Send: every byte right. */
void frig_works(void);
uint64_t frig_count(int node, const char *layer, const char *name);

/* Puts a frame on the wire to a node: in one piece, or as an mbuf of `cut` bytes and one of the
 * rest. */
void frig_inject(int node, const void *frame, size_t len);
void frig_inject_cut(int node, const void *frame, size_t len, size_t cut);

#endif
