/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soak: links (connected pairs of QPs) between two flat clients, on which both sides act at
 * random. This process is both clients, so that it knows what each byte of either must be.
 */
#ifndef TEST_INTEROP_SOAK_H
#define TEST_INTEROP_SOAK_H

#include "rig.h"
#include "watch.h"

#define MSG_MAX  (256u << 10)
#define SLOT_LEN (MSG_MAX + 64) /* what stands behind a message must stay as it was */
#define SLOTS    6              /* operations that a side has under way */
#define RECVS    8              /* receives that stand posted */
#define FIFO     32             /* > requests of SLOTS operations and a nudge */
#define LINKS    4
#define SIDE_LEN ((2ul * SLOTS + RECVS) * SLOT_LEN)

enum kind { SEND, SEND_SE, SEND_INV, SEND_SE_INV, WRITE, READ, KINDS };

struct op {
	enum kind kind;
	bool busy;
	bool acted; /* completed here */
	bool seen;  /* its bytes were verified where they went */
	uint32_t len;
	uint64_t key;            /* of the pattern */
	struct saker_mr *window; /* what a Send invalidates */
};

struct posted { /* a request in the send queue */
	uint64_t wr_id;
	uint8_t opcode;
	bool signaled;
	int slot; /* -1: none waits for it */
};

struct coming {       /* a message on its way */
	uint8_t slot; /* of the sender's operation */
	bool notice;  /* says that a Write was done */
};

struct side {
	struct soak *soak;
	struct side *far;
	int at; /* client 0 or 1 */
	struct saker_qp *qp;
	struct saker_pd *pd;
	struct saker_mr *mr;
	uint8_t *mem; /* SIDE_LEN */
	struct op op[SLOTS];
	struct posted sq[FIFO];
	unsigned sq_in, sq_out, silent; /* silent: unsignalled requests in a row */
	uint64_t recv_id[RECVS];
	unsigned recv_in, recv_out; /* posted, completed */
	struct coming coming[RECVS];
	unsigned coming_in, coming_out;
	bool up, gone, broken; /* broken: a request failed or an error event came */
	char reason[64];
};

enum link_state { LINK_NEW, LINK_CONNECTING, LINK_UP, LINK_DYING, LINK_ENDING, LINK_CLOSED };

struct link {
	struct side side[2];
	enum link_state state;
	uint8_t index;
	unsigned lives;
};

struct soak_options {
	uint64_t bytes, seed;
	double drop, dup, reorder, corrupt, corrupt_crc;
	bool split, one, v6, nic;
	uint32_t mtu, vlan;
	const char *pcap;
};

struct soak {
	struct soak_options o;
	struct rig rig;
	struct watch watch;
	struct saker_cq *cq[2][2]; /* of client, for links of even and odd number (these have their
				      receives apart) */
	struct saker_cq *recv_cq[2];
	struct saker_listener *listener;
	struct link link[LINKS];
	uint64_t rng, serial, moved, count[KINDS];
	uint64_t progress;                /* eng_clock() when something last happened */
	unsigned deaths, detected, noise; /* noise: how often corruption was switched */
	bool corrupting;
	int failed;
};

/* A mistake: counted, said (the first few), and the run will fail. */
void soak_fail(struct soak *s, const struct side *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t soak_random(struct soak *s);
/* 0..n-1 */
static inline uint32_t
soak_pick(struct soak *s, uint32_t n)
{
	return (uint32_t)((soak_random(s) >> 32) * n >> 32);
}

/* ---- soak_bytes.c: what each byte must be */
#define OLD 0xee /* what stands where nothing was placed */
void bytes_fill(uint8_t *p, uint32_t len, uint64_t key);
/* A slot holds the message, and OLD behind it. */
bool bytes_right(const uint8_t *slot, uint32_t len, uint64_t key);
/* A message broke off: each byte is right or old. */
bool bytes_right_or_old(const uint8_t *slot, uint32_t len, uint64_t key);

/* ---- soak_side.c: one side's requests and completions */
uint8_t *side_local(const struct side *sd, int slot);
uint8_t *side_remote(const struct side *sd, int slot);
uint8_t *side_recv(const struct side *sd, unsigned n);
void side_post_recvs(struct side *sd);
/* Starts an operation if there is room for one. */
void side_act(struct side *sd);
/* A signalled request of no bytes behind unsignalled ones, so that all get accounted for. */
void side_nudge(struct side *sd);
bool side_idle(const struct side *sd);
/* Nothing posted is without its completion, but for unsignalled requests. */
bool side_drained(const struct side *sd);
void side_completion(struct side *sd, const struct rd_wc *wc);
/* After the end of a broken link: what did not finish has placed right bytes or none. */
void side_audit(struct side *sd);

/* ---- soak_link.c: the life of a link */
int link_step(struct link *l);
void link_event(struct soak *s, int at, const struct saker_event *ev);

#endif
