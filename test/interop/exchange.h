/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every RFC 5040 operation in both directions between two peers, with a check of every byte. The
 * exchange is written once, on top of a few functions that two programs supply: one with libibverbs
 * (Linux siw), one with libsaker.
 *
 * Both peers run the list of steps twice: first the connecting side acts and the accepting side
 * verifies, then the other way round.
 */
#ifndef TEST_INTEROP_EXCHANGE_H
#define TEST_INTEROP_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#define EX_DATA_LEN   (4u << 20) /* bytes of the buffer that operations use */
#define EX_CTRL_LEN   64         /* bytes of a control message between the peers */
#define EX_CTRL_SLOTS 8
#define EX_UNTOLD     0xffffffffu
#define EX_BUF_LEN    (EX_DATA_LEN + 2 * EX_CTRL_SLOTS * EX_CTRL_LEN)

/* The last two operations use the grant of ex_verbs.window and are followed by a Send without bytes
 * that invalidates it. They are steps and are never posted as such. */
enum ex_op {
	EX_SEND,
	EX_SEND_SE,
	EX_SEND_INV,
	EX_SEND_SE_INV,
	EX_WRITE,
	EX_READ,
	EX_WRITE_WINDOW,
	EX_READ_WINDOW,
	EX_OPS,
};

struct ex_done { /* a work completion */
	uint64_t wr_id;
	bool ok, recv;
	uint32_t len;
	uint32_t invalidated; /* STag; 0: none; EX_UNTOLD: this peer's verbs do not report it */
	const char *status;
};

/* The functions that a program supplies. Offsets are in its buffer of EX_BUF_LEN bytes. A function
 * returns 0, or another value after it has printed what failed. */
struct ex_peer {
	const struct ex_verbs *verbs;
	uint8_t *buf;
	uint32_t stag; /* of the buffer, for the peer's requests */
	void *priv;
};

struct ex_verbs {
	int (*post_recv)(struct ex_peer *p, uint64_t wr_id, uint32_t off, uint32_t len);
	/* remote, rkey: for Write and Read; inv: the STag that the Send invalidates. */
	int (*post)(struct ex_peer *p, uint64_t wr_id, enum ex_op op, uint32_t off, uint32_t len,
		uint64_t remote, uint32_t rkey, uint32_t inv);
	/* Waits, with a limit, for the next completion. `solicited`: sleeps on the completion
	 * channel, armed for solicited completions only. */
	int (*wait)(struct ex_peer *p, struct ex_done *done, bool solicited);
	/* Grants access to the data part by an STag of its own that a Send may invalidate: a memory
	 * window bound on the QP, or a second registration. The grant is valid before the next
	 * request reaches the peer. window_end() ends it. */
	int (*window)(struct ex_peer *p, uint32_t *stag);
	void (*window_end)(struct ex_peer *p);
};

/* Posts the first receive. Called before connecting or accepting: iWARP has no "receiver not
 * ready", so a receive must be posted before the peer's Send can arrive. */
int exchange_prepare(struct ex_peer *p);
/* Runs the exchange. `first`: this peer connected; it sends first (RFC 5044 7.1.2) and acts first.
 * Returns the number of failed steps, or -1 when the connection broke. */
int exchange(struct ex_peer *p, bool first, bool quick);

#endif
