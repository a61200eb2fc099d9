/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transaction sublayer alone, between a packet delivery that records the calls that it gets and
 * a ULP that records its deliveries. One stack has some connections. One log has all records, so
 * that a test reads as a sequence of events.
 */
#ifndef TEST_FALCON_TL_FAKE_H
#define TEST_FALCON_TL_FAKE_H

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../../lib/falcon/conn_priv.h"

#define FAKE_LOG   65536
#define FAKE_SENT  8192
#define FAKE_CONNS 80

enum fake_kind {
	F_DELIVER,  /* a: fa_delivery_type, b: rsn, c: completion, d: ulp_code or request_len */
	F_ACK,      /* pdl_ulp_ack; b: psn */
	F_NACK,     /* a: code, b: psn, c: rnr, d: ulp_code */
	F_SEND,     /* a: packet type, b: rsn, c: length of the payload */
	F_WITHDRAW, /* a: packet type, b: rsn, c: code */
	F_EVENT,    /* a: fa_event, b: 0 of the stack, 1 + index of the connection */
	F_FAIL,     /* fa_conn_fail; a: code, b: index of the connection */
};

struct fake_entry {
	enum fake_kind kind;
	uint32_t a, b, c, d;
	bool restart;
	struct fa_buf *buf; /* of a delivery: the ULP has it now */
};

struct fake {
	struct fa_stack s;
	struct fa_conn c[FAKE_CONNS];
	struct fake_entry log[FAKE_LOG];
	unsigned count, read; /* entries; entries that the test has read */
	struct fa_pkt *sent[FAKE_SENT];
	struct fa_conn *sent_by[FAKE_SENT];
	unsigned sent_count;
	uint64_t timer[FAKE_CONNS]; /* SK_NEVER: not set */
	long bufs;                  /* payloads that are not freed */
	unsigned room;              /* deliveries that the queue to the ULP accepts */
	bool withdraw;              /* the result of pdl_withdraw() */
	uint32_t in_doubt;          /* the result of pdl_data_in_doubt() */
	uint64_t now;
	/* Called at each delivery, if set: the ULP's immediate reaction. */
	void (*react)(struct fa_conn *c, const struct fa_delivery *d);
};

extern struct fake fk;

/* Creates the stack. `tune` (or NULL) may change the configuration before. Users have connections
 * in turns: connection `i` is one of user i % users. */
void fake_start(bool ordered, void (*tune)(struct fa_config *cfg, struct fa_params *p));
/* Ends both connections and the stack, and asserts that nothing is left. */
void fake_stop(void);

struct fa_buf *fake_buf(uint32_t len);
/* Delivers a packet of the peer to connection `i`. */
enum tl_take fake_rx(unsigned i, uint8_t type, uint32_t rsn, uint32_t psn, uint32_t len);
enum tl_take fake_rx_pull(unsigned i, uint32_t rsn, uint32_t psn, uint32_t response_len);
enum tl_take fake_rx_again(unsigned i, uint32_t rsn, uint32_t psn, uint32_t len);
enum tl_take fake_resync(unsigned i, uint8_t type, uint32_t rsn, uint32_t psn);
/* Reports that PDL is done with the packet of that RSN and type. */
void fake_sent(unsigned i, uint8_t type, uint32_t rsn, enum fa_completion how, uint8_t ulp_code);
void fake_outcome(unsigned i, uint32_t rsn, enum fa_verdict v);
void fake_rnr(unsigned i, uint32_t rsn, uint8_t code);
/* Advances time by `ns`, timers included. */
void fake_wait(uint64_t ns);
/* Does the work of fa_stack_poll() for a connection that failed. */
void fake_bury(unsigned i);

/* Asserts that the next entry of the log is of this kind, and returns it. */
struct fake_entry *fake_next(enum fake_kind kind);
/* Asserts that it is a delivery of this type and RSN, and returns it. */
struct fake_entry *fake_expect(enum fa_delivery_type type, uint32_t rsn);
/* Asserts that the log has no further entry. */
void fake_quiet(void);
uint64_t fake_counted(enum fa_reason r);

#endif
