/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every RFC 5040 operation in both directions between two peers, every byte verified. The exchange
 * is written once, over a handful of verbs; two programs supply those: one on libibverbs (Linux
 * siw), one on libsaker.
 *
 * Both peers run the list of steps twice: first the connecting side acts and the accepting side
 * verifies, then the other way round.
 */
#ifndef TEST_INTEROP_EXCHANGE_H
#define TEST_INTEROP_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#define EX_DATA_LEN   (4u << 20) /* of the buffer that operations act on */
#define EX_CTRL_LEN   64         /* a control message between the peers */
#define EX_CTRL_SLOTS 8
#define EX_UNTOLD     0xffffffffu
#define EX_BUF_LEN    (EX_DATA_LEN + 2 * EX_CTRL_SLOTS * EX_CTRL_LEN)

/* The last two act through the grant of ex_verbs.window, and are followed by a Send without bytes
 * that invalidates it; they are steps, never posted as such. */
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
	uint32_t invalidated; /* STag, 0: none; EX_UNTOLD: this peer's verbs do not say */
	const char *status;
};

/* What a program supplies. Offsets are in its buffer of EX_BUF_LEN bytes. Functions return 0, or
 * anything else after having said what failed. */
struct ex_peer {
	const struct ex_verbs *verbs;
	uint8_t *buf;
	uint32_t stag; /* of the buffer, as the peer must name it */
	void *priv;
};

struct ex_verbs {
	int (*post_recv)(struct ex_peer *p, uint64_t wr_id, uint32_t off, uint32_t len);
	/* remote/rkey: Write and Read; inv: the STag that the Send shall invalidate. */
	int (*post)(struct ex_peer *p, uint64_t wr_id, enum ex_op op, uint32_t off, uint32_t len,
		uint64_t remote, uint32_t rkey, uint32_t inv);
	/* Waits, bounded, for the next completion. `solicited`: sleep on the completion channel,
	 * armed for solicited completions only. */
	int (*wait)(struct ex_peer *p, struct ex_done *done, bool solicited);
	/* A grant of the data part by an STag of its own, that a Send may invalidate: a memory
	 * window, bound on the QP, or a second registration. It holds before what is posted next
	 * reaches the peer. And its end. */
	int (*window)(struct ex_peer *p, uint32_t *stag);
	void (*window_end)(struct ex_peer *p);
};

/* Before connecting or accepting: iWARP has no "receiver not ready", so a receive stands posted
 * before its Send can come.
 */
int exchange_prepare(struct ex_peer *p);
/* `first`: this peer connected; it speaks first (RFC 5044 7.1.2) and acts first. Returns how many
 * steps failed, or -1 when the connection broke. */
int exchange(struct ex_peer *p, bool first, bool quick);

#endif
