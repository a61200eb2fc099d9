/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the negative suite stands on: a running engine, the victim, whose client has regions of each
 * kind in the midst of memory that must not change; a scripted peer (rawpeer.h) that sends it what
 * it should not; and neighbours, clients of the same engine stage and port, that move verified
 * bytes to another engine all the while.
 */
#ifndef TEST_ENGINE_NEGATIVE_H
#define TEST_ENGINE_NEGATIVE_H

#include <saker/saker.h>

#include "../../../lib/engine/engine.h"
#include "../../../lib/wire/wire.h"
#include "rawpeer.h"

#define NEG_REGION 4096 /* bytes of each region, and of the gap before and behind each */
#define NEG_RECV   100  /* bytes of each of the two receives, at the start of WRITABLE */
#define NEG_IRD    4
#define NEG_PORT   7471

enum neg_stag {
	WRITABLE, /* remote Write */
	READABLE, /* remote Read, and no local write */
	FOREIGN,  /* every right, of another protection domain */
	GONE,     /* every right, invalidated */
	LOCAL,    /* no remote right */
	ATOMIC,   /* remote Atomics */
	UNDER,    /* no remote right; windows may be bound to it: */
	NEG_REGIONS,
	WINDOW,    /* of type 1, remote Write, bytes 64 to 191 of UNDER */
	BOUND,     /* of type 2, every right, the same bytes, bound by another QP */
	UNBOUND,   /* of type 2, never bound */
	OTHER_KEY, /* WRITABLE's slot, another key */
	NO_SLOT,   /* no region has that slot */
};

/* What the victim's send queue holds: requests 200 and 201, outstanding. */
enum neg_sq {
	SQ_READ,   /* a Read of 64 bytes into LOCAL + 8, and a Write that waits behind it */
	SQ_ATOMIC, /* two FetchAdds into LOCAL and LOCAL + 8 */
	SQ_EMPTY,
};

struct neg_mode {
	enum neg_sq sq;
	bool markers;    /* the victim wants markers */
	bool bad_recv;   /* the first receive lies in a region that is invalid */
	uint32_t access; /* what the QP grants; 0: all */
};

/* One RDMA message, right or wrong. Tagged offsets count from the start of the region named. */
struct neg_msg {
	uint8_t op;
	bool tagged, more; /* more: without the L bit */
	uint8_t dv, rv;    /* 0: 1, as it should be */
	uint8_t atomic_op;
	enum neg_stag stag; /* of the header, to invalidate, or in the request */
	int64_t to;
	uint32_t qn, msn, mo;
	uint32_t len; /* of what stands behind the DDP header */
	uint32_t read_len, id;
	uint64_t sink_to; /* Read Request */
	bool empty_stag;  /* Send: no STag to invalidate */
};

enum neg_quote { NOTHING, DDP_HEAD, BOTH_HEADS }; /* HdrCt: none, M and D, M and D and R */

struct neg_term {
	uint8_t layer, etype, code;
	enum neg_quote quote;
};

extern struct neg {
	struct raw_switch sw;
	struct eng *eng[2];
	struct raw_conn conn; /* the peer's, to the victim */
	struct saker *s;      /* the victim's client */
	struct saker_pd *pd, *other_pd;
	struct saker_cq *send_cq, *recv_cq;
	struct saker_qp *qp;
	struct saker_mr *mr[NEG_REGIONS];
	struct saker_mw *mw[3]; /* WINDOW, BOUND, UNBOUND */
	struct saker_listener *listener;
	uint8_t *mem;
	uint64_t moved; /* bytes that the neighbours have verified */
} neg;

/* Fixture of a suite. */
void neg_start(void);
void neg_stop(void);
void neg_turn(void);
/* Turns until `done`; a generous bound fails the test. */
#define NEG_UNTIL(done, ...)                                                                       \
	do {                                                                                       \
		unsigned neg_left = 2000000;                                                       \
		while (!(done) && --neg_left)                                                      \
			neg_turn();                                                                \
		cr_assert(neg_left, __VA_ARGS__);                                                  \
	} while (0)

/* Where a region starts, as the victim's program sees it. */
uint64_t neg_base(enum neg_stag s);
uint32_t neg_stag(enum neg_stag s);
/* The byte that stands at `off` of the victim's memory. */
uint8_t neg_pattern(uint64_t off);
/* No byte of the victim's memory has changed, in a region or between them. */
void neg_untouched(const char *name);
uint64_t neg_counter(const char *layer, const char *reason);

/* ---- Connections */

/* A start-up frame of the peer: request or reply. Returns its length. */
uint32_t neg_startup(uint8_t *buf, const struct wire_mpa_startup *su, const void *private_data);
/* Connects the peer with the victim and brings it to where a row begins. */
void neg_victim(const struct neg_mode *mode);
/* A QP of the victim's, its receives (100, 101) posted. */
void neg_make_qp(const struct neg_mode *mode);
struct saker_event neg_event(const char *name, enum saker_event_type type);
struct rd_wc neg_wc(const char *name, struct saker_cq *cq);
/* The next completion is this one. */
void neg_expect_wc(const char *name, struct saker_cq *cq, uint64_t wr_id, enum rd_status status);
/* No completion and no event is left. */
void neg_silence(const char *name);
/* The peer ends its side (`fin`); the victim hears of the end, receives left over are flushed. */
void neg_end(const char *name, bool fin);
/* Once the end was heard of: the QP goes, nothing else is said, the neighbours go on. */
void neg_gone(const char *name);
/* The neighbours go on: at least two messages each way from here on. */
void neg_neighbours(const char *name);

/* ---- Messages */

/* The ULPDU; `right`: it carries what stands in memory already, so that placing it is not seen. */
uint32_t neg_build(uint8_t *ulpdu, const struct neg_msg *m, bool right);
/* Frames a ULPDU; returns the FPDU's length. No markers. */
uint32_t neg_frame(uint8_t *fpdu, const uint8_t *ulpdu, uint32_t len);
uint32_t neg_crc32c(const uint8_t *p, size_t len);
/* The next FPDU that the victim has sent; its ULPDU's length, -1 when the stream ended before. */
int neg_take(uint8_t *ulpdu);
/* A Terminate as RFC 5040 4.8 has it, about `seg`. Returns the ULPDU's length. */
uint32_t neg_terminate(
	uint8_t *ulpdu, const struct neg_term *t, const uint8_t *seg, uint32_t seg_len);
/* The victim has sent exactly this Terminate and then ended its side. */
void neg_expect_terminate(
	const char *name, const struct neg_term *t, const uint8_t *seg, uint32_t seg_len);
/* It ended its side, and without one. */
void neg_expect_no_terminate(const char *name);

#endif
