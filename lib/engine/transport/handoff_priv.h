/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several transport stages on one port.
 *
 * The home stage of a connection, active or passive, is the transport stage
 *
 *	(Toeplitz hash of addresses and TCP ports of received segments & reta_mask) % ntransports
 *
 * The key of the hash is a random number of the instance. RSS computes the same function on a port
 * that accepted this key and a redirection table with the entries i % queues; such a port delivers
 * each segment to its home stage. Every stage can compute the function for any tuple, so the stages
 * share no variable state. An active open tries source ports until the home of the tuple is the
 * opening stage; therefore two stages cannot choose the same tuple.
 *
 * A Falcon connection belongs to the stage of the TCP connection that made it, and its CID names
 * the stage. On a port that distributes UDP packets in the same way, the stage lists the UDP source
 * ports whose packets it receives, and the peer sends from these ports (doc/falcon-cm.md).
 *
 * A stage that receives a TCP segment without a connection of its own passes the segment to its
 * home stage. The home stage never passes it on, even when it has no listener for it. ARP,
 * neighbour discovery and ICMP errors concern the net stacks of all stages: the stage that received
 * such a frame answers it and passes copies to the other stages, which update their tables without
 * an answer (net_overhear()).
 *
 * Stage s sends on queue s of a port. If the port has fewer queues, stage s passes its frames
 * through a lane to stage s % tx_queues, which sends them.
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

/* ---- home.c: the home stage of a connection, and RSS on ports ---- */

/* Returns the index of the home stage of the tuple `key`. Any thread. */
unsigned eng_home(const struct eng *e, const struct tcp_tuple *key);
#define ENG_HOME_RPORTS   32 /* ports that eng_home_rports() chooses */
#define ENG_HOME_CLASSES  4  /* the class of a port: its low two bits */
#define ENG_HOME_PORT_MIN 49152

/* Chooses, from ENG_HOME_PORT_MIN on, UDP source ports of packets that the remote end of `key`
 * sends and that arrive at the queue of `stage`; the class of ports[i] is i % ENG_HOME_CLASSES. All
 * are different, and each call chooses others. key->rport is not used. Returns false when the port
 * of `key` does not distribute UDP packets by them, or not to this stage. */
bool eng_home_rports(const struct eng *e, unsigned stage, const struct tcp_tuple *key,
	uint16_t ports[ENG_HOME_RPORTS]);
/* Sets RSS in `conf`, the configuration of a port, and p->rss, the types of packets that it
 * requests. p->rx_queues must be set, and p->rss 0. */
void eng_home_configure(struct eng *e, struct eng_port *p, const struct rte_eth_dev_info *info,
	struct rte_eth_conf *conf);
/* Fills in the redirection table of a port that runs, and sets p->reta_mask, p->rss and p->rss_key,
 * which the port may choose itself. If the port refuses the table, or its key is unknown, p->rss
 * becomes 0, and segments arrive at other stages than their homes, and these stages hand them off.
 */
void eng_home_spread(struct eng *e, struct eng_port *p);

/* ---- handoff.c ---- */

/* Adds an engine stage to t->far if another loop polls it. */
void eng_crossings_add(struct eng_transport *t, unsigned stage);
/* Counts the messages that have passed since the last call between this stage and those. */
void eng_crossings_count(struct eng_transport *t);

/* The functions below, except eng_handoff_frame(), require t->handoff != NULL. */

/* Passes a segment that belongs to no connection of this stage to the home stage of `key`. Returns
 * true when it took the frame, false when this stage is the home stage. */
bool eng_handoff_tcp(
	struct eng_transport *t, uint16_t port, const struct tcp_tuple *key, struct rte_mbuf *m);
/* Passes a frame of a connection of stage `to` to that stage. Returns true when it took the frame,
 * false when there is one transport stage only. */
bool eng_handoff_frame(struct eng_transport *t, unsigned to, uint16_t port, struct rte_mbuf *m);
/* Passes copies of a frame to all other stages if it concerns them. net_input() of this stage has
 * handled the frame before and returned `rc`. The caller keeps the frame. */
void eng_handoff_copy(struct eng_transport *t, uint16_t port, const struct wire_pkt *pkt, int rc,
	struct rte_mbuf *m);
/* Handles the frames that other stages passed to this one. Returns whether there were any. */
bool eng_handoff_rx(struct eng_transport *t);
/* Replaces rte_eth_tx_burst() for a stage without a send queue of the port: puts the frames into
 * its lane. Returns the number of frames that it took. */
uint16_t eng_handoff_send(struct eng_transport *t, uint16_t port, struct rte_mbuf **m, uint16_t n);
/* Moves the frames in the lanes of this stage's ports to its send queues. Returns whether there
 * were any. */
bool eng_handoff_collect(struct eng_transport *t);

#endif
