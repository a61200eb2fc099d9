/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The soak: links (connected pairs of QPs) between two flat clients, on which both sides act at
 * random. This process is both clients, so that it can compute each expected byte of either.
 */
#ifndef TEST_INTEROP_SOAK_H
#define TEST_INTEROP_SOAK_H

#include "rig.h"
#include "watch.h"

#define MSG_MAX  (256u << 10)
#define SLOT_LEN (MSG_MAX + 64) /* the bytes behind a message must not change */
#define SLOTS    6              /* operations that a side has in progress */
#define RECVS    8              /* posted receives */
#define FIFO     32 /* more than the requests of SLOTS operations, a nudge and a flood */
#define LINKS    4
#define SIDE_LEN ((2ul * SLOTS + RECVS + 1) * SLOT_LEN)

enum kind { SEND, SEND_SE, SEND_INV, SEND_SE_INV, WRITE, READ, KINDS };

struct op {
	enum kind kind;
	bool busy;
	bool acted; /* completed at the requester */
	bool seen;  /* its bytes were verified at their destination */
	uint32_t len;
	uint64_t key;            /* of the pattern */
	struct saker_mr *window; /* the window that a Send invalidates */
};

struct posted { /* a request in the send queue */
	uint64_t wr_id;
	uint8_t opcode;
	bool signaled;
	int slot; /* -1: no operation waits for it */
};

struct coming {       /* a message on its way */
	uint8_t slot; /* of the sender's operation */
	bool notice;  /* announces that a Write was done */
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
	unsigned sq_in, sq_out, silent; /* silent: number of consecutive unsignaled requests */
	uint64_t recv_id[RECVS];
	unsigned recv_in, recv_out; /* posted, completed */
	struct coming coming[RECVS];
	unsigned coming_in, coming_out;
	bool up, gone, broken; /* broken: a request failed or an error event arrived */
	char reason[64];
};

enum link_state { LINK_NEW, LINK_CONNECTING, LINK_UP, LINK_DYING, LINK_ENDING, LINK_CLOSED };

struct link {
	struct side side[2];
	enum link_state state;
	uint8_t index;
	unsigned lives;
	bool flooded; /* in this life */
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
	/* Indexed by client, and by even or odd number of the link. The odd links have CQs of their
	 * own for receives. */
	struct saker_cq *cq[2][2];
	struct saker_cq *recv_cq[2];
	struct saker_listener *listener;
	struct link link[LINKS];
	uint64_t rng, serial, moved, count[KINDS];
	uint64_t progress;      /* eng_clock() at the last progress */
	unsigned deaths, noise; /* noise: how often corruption was switched */
	bool corrupting;
	int failed;
};

/* Counts and prints an error (the first few), and fails the run. */
void soak_fail(struct soak *s, const struct side *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t soak_random(struct soak *s);
/* Returns a random number from 0 to n - 1. */
static inline uint32_t
soak_pick(struct soak *s, uint32_t n)
{
	return (uint32_t)((soak_random(s) >> 32) * n >> 32);
}

/* ---- soak_bytes.c: the expected bytes */
#define OLD 0xee /* the value of bytes that nothing was placed in */
void bytes_fill(uint8_t *p, uint32_t len, uint64_t key);
/* Checks that a slot contains the message, followed by OLD. */
bool bytes_right(const uint8_t *slot, uint32_t len, uint64_t key);
/* Checks a message that broke off: each byte is right or OLD. */
bool bytes_right_or_old(const uint8_t *slot, uint32_t len, uint64_t key);

/* ---- soak_side.c: one side's requests and completions */
uint8_t *side_local(const struct side *sd, int slot);
uint8_t *side_remote(const struct side *sd, int slot);
uint8_t *side_recv(const struct side *sd, unsigned n);
void side_post_recvs(struct side *sd);
/* Starts an operation if there is room for one. */
void side_act(struct side *sd);
/* Posts a signaled request of no bytes behind unsignaled ones, so that all of them are accounted
 * for. */
void side_nudge(struct side *sd);
/* Posts a Write that is longer than any FPDU, to memory that nobody checks. */
void side_flood(struct side *sd);
bool side_idle(const struct side *sd);
/* Returns whether every posted request has completed, except for unsignaled ones. */
bool side_drained(const struct side *sd);
void side_completion(struct side *sd, const struct rd_wc *wc);
/* Called after the end of a broken link: checks that unfinished operations have placed right bytes
 * or none. */
void side_audit(struct side *sd);

/* ---- soak_link.c: the life of a link */
int link_step(struct link *l);
/* Both sides of a link that is up send more bytes than an FPDU can have, once in its life: a
 * receiver that waits for the rest of an FPDU whose length was damaged finds the damage. */
void link_flood(struct link *l);
void link_event(struct soak *s, int at, const struct saker_event *ev);

#endif
