/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted peer on the wire: a switch with three ports (the victim's engine, a neighbour's
 * engine, and the peer itself), and TCP connections of the peer, over which a test sends arbitrary
 * bytes. The wire loses no frame, so this TCP has no timers and no clock: it only numbers bytes,
 * acknowledges them, and accepts them in order.
 */
#ifndef TEST_ENGINE_RAWPEER_H
#define TEST_ENGINE_RAWPEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../lib/base/addr.h"

struct rte_mempool;
struct rte_ring;

#define RAW_STREAM (256u << 10) /* most bytes that a connection can receive in total */
#define RAW_MSS    1400

struct raw_switch {
	struct rte_ring *out[2], *in[2]; /* frames that an engine has sent; frames for the engine */
	struct rte_mempool *pool;        /* mbufs of the peer's frames */
	uint16_t port[2];                /* DPDK ports of the victim and of the neighbour */
	uint8_t mac[6], victim_mac[6];
	struct sk_addr addr, victim; /* addresses of the peer and of the victim */
	struct raw_conn *conns;
	uint16_t next_port, listen_port;
	struct raw_conn *accepting; /* accepts the next SYN to listen_port */
};

struct raw_conn {
	struct raw_switch *sw;
	struct raw_conn *next;
	uint16_t lport, rport;
	uint32_t snd_nxt, rcv_nxt;
	bool up, fin_in, fin_out, rst;
	uint32_t got, taken; /* bytes in `stream`: received; read by the test */
	uint8_t stream[RAW_STREAM];
};

/* Creates two ring ports (for eng_port_config) and the switch between them. EAL must be
 * initialized. */
void raw_switch_init(struct raw_switch *sw);
/* Exchanges MAC addresses between the peer and the victim, when the engines run. */
void raw_switch_greet(struct raw_switch *sw);
/* Forwards all queued frames. */
void raw_switch_turn(struct raw_switch *sw);
void raw_switch_fini(struct raw_switch *sw);

/* Begins a connection to the victim; c->up is set when it is established. */
void raw_connect(struct raw_switch *sw, struct raw_conn *c, uint16_t port);
/* Accepts the next connection that the victim opens to `port`. */
void raw_accept(struct raw_switch *sw, struct raw_conn *c, uint16_t port);
/* Sends `len` bytes in segments of at most `seg` bytes. */
void raw_send(struct raw_conn *c, const void *data, size_t len, size_t seg);
void raw_fin(struct raw_conn *c);
void raw_reset(struct raw_conn *c);
/* Removes the connection from the switch without a packet; its further segments are ignored. */
void raw_forget(struct raw_conn *c);

#endif
