/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several transport stages on one port.
 *
 * The rule: a connection's home is the transport stage
 *
 *	(Toeplitz hash of what its received segments carry & reta_mask) % ntransports
 *
 * with the instance's own random key, active and passive alike. It is what RSS computes on a port
 * that got that key and a redirection table of entries i % queues, so there packets come home by
 * themselves; every stage can compute it for any tuple, so nothing is shared that changes. An
 * active open tries source ports until one hashes home, and so no two stages can choose the same
 * tuple.
 *
 * A TCP segment whose tuple is unknown where it arrived goes to its home stage, once: the home
 * keeps it, listener or not. ARP, neighbour discovery and ICMP errors concern every stage's net
 * stack: the stage that received one answers it and gives the others copies, which they overhear.
 *
 * Stage s sends on queue s of a port. Where there are fewer, it hands its frames in a lane to stage
 * s % tx_queues, which sends them.
 */
#ifndef SAKER_ENGINE_HANDOFF_PRIV_H
#define SAKER_ENGINE_HANDOFF_PRIV_H

#include "transport.h"

struct eng_transport;
struct rte_eth_conf;
struct rte_eth_dev_info;
struct rte_mbuf;

#define ENG_HANDOFF_RING 1024 /* frames from one stage to another; a power of two */
#define ENG_LANE_RING    256  /* frames of one stage for one port; a power of two */

/* ---- home.c: the rule, and ports that know it ---- */

/* The index of the transport stage that has or would have the connection `key`. Any thread. */
unsigned eng_home(const struct eng *e, const struct tcp_tuple *key);
/* What of it goes into the port's configuration; p->rx_queues is known. */
void eng_home_configure(struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf);
/* Fills in the redirection table of a port that runs. One that refuses delivers to other stages
 * than the home, and frames are handed off. */
void eng_home_spread(struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info);

/* ---- handoff.c ---- */

/* The following are called by stages with t->handoff != NULL only. */

/* A segment of no connection of this stage. True: it went to its home, and the mbuf with it. */
bool eng_handoff_tcp(
	struct eng_transport *t, uint16_t port, const struct tcp_tuple *key, struct rte_mbuf *m);
/* A frame of a connection that belongs to stage `to`: as above. */
bool eng_handoff_frame(struct eng_transport *t, unsigned to, uint16_t port, struct rte_mbuf *m);
/* A frame that the stage's own net stack had, with the outcome `rc`: copies to the others if it
 * may concern them. The mbuf stays the caller's. */
void eng_handoff_copy(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, int rc,
	struct rte_mbuf *m);
/* Takes what others have handed to this stage. */
bool eng_handoff_rx(struct eng_transport *t);
/* In the place of rte_eth_tx_burst() for a stage that has no queue: how many frames were taken. */
uint16_t eng_handoff_send(struct eng_transport *t, uint16_t port, struct rte_mbuf **m, uint16_t n);
/* Takes other stages' frames into this stage's send buffers. */
bool eng_handoff_collect(struct eng_transport *t);

#endif
