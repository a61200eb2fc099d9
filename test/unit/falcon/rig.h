/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig for packet delivery alone: one stack with one connection, whose transactions are a recorder
 * and whose peer is the test. What goes out is recorded, what comes in is written by hand. Windows
 * are what the test says (rig.fcwnd, rig.ncwnd). One rig per process.
 */
#ifndef TEST_FALCON_RIG_H
#define TEST_FALCON_RIG_H

#include <criterion/criterion.h>

#include "../../../lib/falcon/conn_priv.h"

#define RIG_LOG 4096
#define US      1000ull
#define RTT     (20 * US) /* what rig_in() makes acknowledgements look like */
#define NONE    UINT32_MAX

struct rig_sent {
	uint64_t at;
	struct wire_falcon h;
	uint32_t len, stamp, path;
	bool again;
};

struct rig_rx {
	uint8_t type;
	uint32_t psn, rsn;
	bool again;
};

struct rig_done {
	uint8_t type, how, ulp_code;
	uint32_t psn, rsn;
};

struct rig {
	struct fa_config cfg;
	struct fa_params params;
	struct fa_stack *s;
	struct fa_conn *c;
	uint64_t now;
	uint32_t fcwnd, ncwnd,
		ipg; /* FA_CWND_ONE: a packet; ticks. The next event takes them over */
	bool repath; /* the next event asks for another path */
	/* What transactions answer. */
	enum tl_take take;
	bool ulp_acks; /* pushes at once */
	uint8_t level;
	int output_rc;
	/* Logs. */
	struct rig_sent sent[RIG_LOG];
	struct rig_rx rx[RIG_LOG];
	struct rig_done done[RIG_LOG];
	struct fa_rue_event ev[RIG_LOG];
	unsigned sents, rxs, dones, evs;
	unsigned packets, bufs; /* not freed */
	unsigned deaths, death_code;
};
extern struct rig rig;

/* Fills rig.cfg and rig.params with a base that the test may change before rig_start(). PSNs:
 * request 100, data 300 to the peer; 1100 and 1300 from it. RSNs are the test's. */
void rig_init(void);
void rig_start(void);
/* Destroys all and asserts that no packet and no buffer is left. */
void rig_end(void);

struct fa_pkt *rig_send(uint8_t type, uint32_t rsn);
void rig_pushes(uint32_t rsn, unsigned n);
/* Time goes on by `ns`, then one poll; returns how many packets went out in it. */
unsigned rig_run(uint64_t ns);
/* Time goes on by `ns` in steps of 2 us, each with a poll. */
unsigned rig_let(uint64_t ns);
/* A packet from the peer; version, CID and protocol are filled in; the times of acknowledgements,
 * unless given, are those of a round trip of RTT. */
void rig_in(struct wire_falcon h);
/* The same, with path, ttl and CE. */
void rig_in_as(struct wire_falcon h, uint32_t path, uint8_t ttl, bool ce);
/* A BACK with these bases. */
void rig_back(uint32_t rbpsn, uint32_t dbpsn);

/* The last packet sent of `type`, NULL: none. */
const struct rig_sent *rig_last(uint8_t type);
unsigned rig_count(uint8_t type);
/* The RSNs of the packets sent since log entry `from` are these. */
void rig_expect_rsns(unsigned from, const uint32_t *rsn, unsigned n);
uint64_t rig_reason(enum fa_reason r);

#endif
