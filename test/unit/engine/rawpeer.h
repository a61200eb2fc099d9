/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted peer on the wire: a switch with three places (the victim's engine, a neighbour's
 * engine, and the peer itself), and TCP connections of the peer's own over which a test sends any
 * bytes at all. The wire loses nothing, so this TCP has no timers: it numbers, acknowledges and
 * takes in order, no more. No clock.
 */
#ifndef TEST_ENGINE_RAWPEER_H
#define TEST_ENGINE_RAWPEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../lib/base/addr.h"

struct rte_mempool;
struct rte_ring;

#define RAW_STREAM (256u << 10) /* bytes that a connection may receive in its life */
#define RAW_MSS    1400

struct raw_switch {
	struct rte_ring *out[2], *in[2]; /* an engine's frames on their way out; to it */
	struct rte_mempool *pool;        /* of the peer's frames */
	uint16_t port[2];                /* of the victim and of the neighbour */
	uint8_t mac[6], victim_mac[6];
	struct sk_addr addr, victim; /* the peer's, the victim's */
	struct raw_conn *conns;
	uint16_t next_port, listen_port;
	struct raw_conn *accepting; /* takes the next SYN to listen_port */
};

struct raw_conn {
	struct raw_switch *sw;
	struct raw_conn *next;
	uint16_t lport, rport;
	uint32_t snd_nxt, snd_una, rcv_nxt;
	bool up, fin_in, fin_out, rst;
	uint32_t got, taken; /* bytes at stream: received, and looked at by the test */
	uint8_t stream[RAW_STREAM];
};

/* Makes two ring ports (for eng_port_config) and the switch between them. EAL is up. */
void raw_switch_init(struct raw_switch *sw);
/* Once the engines run: the peer learns the victim's address and makes its own known. */
void raw_switch_greet(struct raw_switch *sw);
/* Moves all frames that wait. */
void raw_switch_turn(struct raw_switch *sw);
void raw_switch_fini(struct raw_switch *sw);

/* Begins to connect to the victim; `up` says when it is done. */
void raw_connect(struct raw_switch *sw, struct raw_conn *c, uint16_t port);
/* Takes the next connection that the victim opens to `port`. */
void raw_accept(struct raw_switch *sw, struct raw_conn *c, uint16_t port);
/* Sends bytes, in segments of at most `seg` bytes. */
void raw_send(struct raw_conn *c, const void *data, size_t len, size_t seg);
void raw_fin(struct raw_conn *c);
void raw_reset(struct raw_conn *c);
/* No more is heard of it. */
void raw_forget(struct raw_conn *c);

#endif
