/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fixture of the negative suite: a running engine, the victim, whose client has memory regions
 * of each kind between bytes that must not change; a scripted peer (rawpeer.h), which sends invalid
 * messages to the victim; and neighbours, which are clients of the same engine stage and port and
 * meanwhile exchange verified bytes with another engine.
 */
#ifndef TEST_ENGINE_NEGATIVE_H
#define TEST_ENGINE_NEGATIVE_H

#include <saker/saker.h>

#include "../../../lib/engine/engine.h"
#include "../../../lib/wire/wire.h"
#include "rawpeer.h"

#define NEG_REGION 4096 /* bytes of each region, and of the gaps before and after it */
#define NEG_RECV   100  /* bytes of each of the two receive buffers, at the start of WRITABLE */
#define NEG_IRD    4
#define NEG_PORT   7471

enum neg_stag {
	WRITABLE, /* remote Write */
	READABLE, /* remote Read, no local write */
	FOREIGN,  /* all rights, but in another protection domain */
	GONE,     /* all rights, but invalidated */
	LOCAL,    /* no remote right */
	ATOMIC,   /* remote Atomics */
	UNDER,    /* no remote right; the memory windows below can be bound to it */
	NEG_REGIONS,
	WINDOW,    /* window of type 1: remote Write to bytes 64 to 191 of UNDER */
	BOUND,     /* window of type 2: all rights to the same bytes, bound by another QP */
	UNBOUND,   /* window of type 2, never bound */
	OTHER_KEY, /* the slot of WRITABLE with another key */
	NO_SLOT,   /* a slot that no region has */
};

/* The contents of the victim's send queue: work requests 200 and 201, outstanding. */
enum neg_sq {
	SQ_READ,   /* a Read of 64 bytes into LOCAL + 8, and a Write that waits for it */
	SQ_ATOMIC, /* two FetchAdds into LOCAL and LOCAL + 8 */
	SQ_EMPTY,
};

struct neg_mode {
	enum neg_sq sq;
	bool markers;    /* the victim requests markers */
	bool bad_recv;   /* the first receive buffer is in a region that is invalid */
	uint32_t access; /* the access rights of the QP; 0: all */
};

/* One RDMA message, valid or invalid. Tagged offsets are relative to the start of the region. */
struct neg_msg {
	uint8_t op;
	bool tagged, more; /* more: the L bit is not set */
	uint8_t dv, rv;    /* versions of DDP and RDMAP; 0 stands for 1, the valid one */
	uint8_t atomic_op;
	enum neg_stag stag; /* in the tagged header, to invalidate, or in the request */
	int64_t to;
	uint32_t qn, msn, mo;
	uint32_t len; /* bytes after the DDP header */
	uint32_t read_len, id;
	uint64_t sink_to; /* Read Request */
	bool empty_stag;  /* Send: without an STag to invalidate */
};

/* The HdrCt bits of a Terminate: none; M and D; M, D and R. */
enum neg_quote { NOTHING, DDP_HEAD, BOTH_HEADS };

struct neg_term {
	uint8_t layer, etype, code;
	enum neg_quote quote;
};

extern struct neg {
	struct raw_switch sw;
	struct eng *eng[2];
	struct raw_conn conn; /* the connection of the peer to the victim */
	struct saker *s;      /* the client of the victim */
	struct saker_pd *pd, *other_pd;
	struct saker_cq *send_cq, *recv_cq;
	struct saker_qp *qp;
	struct saker_mr *mr[NEG_REGIONS];
	struct saker_mw *mw[3]; /* WINDOW, BOUND, UNBOUND */
	struct saker_listener *listener;
	uint8_t *mem;
	uint64_t moved; /* bytes that the neighbours have verified */
} neg;

/* The fixture of a suite: .init and .fini, and one turn of all engines. */
void neg_start(void);
void neg_stop(void);
void neg_turn(void);
/* Runs turns until `done` is true. Fails the test after very many turns. */
#define NEG_UNTIL(done, ...)                                                                       \
	do {                                                                                       \
		unsigned neg_left = 2000000;                                                       \
		while (!(done) && --neg_left)                                                      \
			neg_turn();                                                                \
		cr_assert(neg_left, __VA_ARGS__);                                                  \
	} while (0)

/* Returns the start of a region in the address space of the victim's program. */
uint64_t neg_base(enum neg_stag s);
uint32_t neg_stag(enum neg_stag s);
/* Returns the byte that the fixture wrote at offset `off` of the victim's memory. */
uint8_t neg_pattern(uint64_t off);
/* Checks that no byte of the victim's memory has changed, inside and outside of regions. */
void neg_untouched(const char *name);
uint64_t neg_counter(const char *layer, const char *reason);

/* ---- Connections */

/* Writes a start-up frame of the peer, a request or a reply. Returns its length in bytes. */
uint32_t neg_startup(uint8_t *buf, const struct wire_mpa_startup *su, const void *private_data);
/* Connects the peer with the victim, and posts the work requests of `mode`. */
void neg_victim(const struct neg_mode *mode);
/* Creates the victim's QP, and posts its receive requests 100 and 101. */
void neg_make_qp(const struct neg_mode *mode);
struct saker_event neg_event(const char *name, enum saker_event_type type);
struct rd_wc neg_wc(const char *name, struct saker_cq *cq);
/* Checks that the next completion has this wr_id and this status. */
void neg_expect_wc(const char *name, struct saker_cq *cq, uint64_t wr_id, enum rd_status status);
/* Checks that no completion and no event is left. */
void neg_silence(const char *name);
/* Closes the peer's side with a FIN if `fin`, and checks that the victim's program receives the
 * event of the end and that the remaining receive requests are flushed. */
void neg_end(const char *name, bool fin);
/* After the event of the end: destroys the QP, and checks that nothing else was reported and that
 * the neighbours still exchange messages. */
void neg_gone(const char *name);
/* Checks that the neighbours exchange at least two further messages in each direction. */
void neg_neighbours(const char *name);

/* ---- Messages */

/* Writes the ULPDU of `m` and returns its length. With `right`, the payload has the bytes that are
 * in the victim's memory already, so that its placement changes nothing. */
uint32_t neg_build(uint8_t *ulpdu, const struct neg_msg *m, bool right);
/* Frames a ULPDU without markers. Returns the length of the FPDU. */
uint32_t neg_frame(uint8_t *fpdu, const uint8_t *ulpdu, uint32_t len);
uint32_t neg_crc32c(const uint8_t *p, size_t len);
/* Receives the next FPDU of the victim. Returns the length of its ULPDU, or -1 when the stream has
 * ended. */
int neg_take(uint8_t *ulpdu);
/* Writes a Terminate about the segment `seg` (RFC 5040, section 4.8). Returns the length of the
 * ULPDU. */
uint32_t neg_terminate(
	uint8_t *ulpdu, const struct neg_term *t, const uint8_t *seg, uint32_t seg_len);
/* Checks that the victim has sent exactly this Terminate and has then closed its side. */
void neg_expect_terminate(
	const char *name, const struct neg_term *t, const uint8_t *seg, uint32_t seg_len);
/* Checks that the victim has closed its side without a Terminate. */
void neg_expect_no_terminate(const char *name);

#endif
