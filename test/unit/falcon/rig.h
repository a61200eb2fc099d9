/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig for packet delivery alone: one stack with one connection, whose transaction sublayer is a
 * recorder and whose peer is the test. Outgoing packets are recorded, incoming ones are composed by
 * the test, which also sets the windows (rig.fcwnd, rig.ncwnd). One rig per process.
 */
#ifndef TEST_FALCON_RIG_H
#define TEST_FALCON_RIG_H

#include <criterion/criterion.h>

#include "../../../lib/falcon/conn_priv.h"

#define RIG_LOG 4096
#define US      1000ull
#define RTT     (20 * US) /* round trip of the acknowledgements that rig_in() composes */
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
	uint32_t fcwnd, ncwnd, ipg; /* FA_CWND_ONE: one packet; ticks; from the next event on */
	bool repath;                /* the next event requests another path */
	uint32_t metadata;          /* of acknowledgements, from the next event on */
	/* The answers of the transaction sublayer. */
	enum tl_take take;
	bool ulp_acks;     /* acknowledges pushes immediately */
	uint32_t next_rsn; /* whose payload need not wait */
	uint8_t level;
	int output_rc;
	const struct fa_conn *full; /* the port of this connection is full; NULL: of none */
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

/* Fills rig.cfg and rig.params with defaults that the test may change before rig_start(). PSNs:
 * request 100, data 300 to the peer; 1100 and 1300 from it. The test chooses RSNs. */
void rig_init(void);
void rig_start(void);
/* Destroys all, and asserts that no packet and no payload is left. */
void rig_end(void);

struct fa_pkt *rig_send(uint8_t type, uint32_t rsn);
void rig_pushes(uint32_t rsn, unsigned n);
/* Advances time by `ns`, then polls once. Returns the number of packets sent. */
unsigned rig_run(uint64_t ns);
/* Advances time by `ns` in steps of 2 us, with a poll after each. Returns the number of packets
 * sent. */
unsigned rig_let(uint64_t ns);
/* Delivers a packet from the peer, with version, CID and protocol filled in. The times of an
 * acknowledgement, unless given, are those of a round trip of RTT. */
void rig_in(struct wire_falcon h);
/* Delivers a packet with path, TTL and CE. */
void rig_in_as(struct wire_falcon h, uint32_t path, uint8_t ttl, bool ce);
/* Delivers a BACK with these bases. */
void rig_back(uint32_t rbpsn, uint32_t dbpsn);

/* Returns the last packet sent of `type`, or NULL. */
const struct rig_sent *rig_last(uint8_t type);
unsigned rig_count(uint8_t type);
/* Asserts that the packets sent since log entry `from` have these RSNs. */
void rig_expect_rsns(unsigned from, const uint32_t *rsn, unsigned n);
uint64_t rig_reason(enum fa_reason r);

#endif
