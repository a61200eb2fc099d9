/* SPDX-License-Identifier: BSD-3-Clause */
/* A net_impair port on a net_ring port whose far ends are rings in the test's hand. */
#ifndef TEST_IMPAIR_FIXTURE_H
#define TEST_IMPAIR_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../../../drivers/net/impair/impair.h"
#include "../../../lib/wire/wire.h"

#define POOL 4095
#define HEAD 54 /* Ethernet, IPv4, TCP */

extern struct rte_mempool *pool;
extern struct rte_ring *wire_out, *wire_in; /* what the lower port sent; what it will receive */
extern uint16_t lower;

/* EAL, pool, rings and the lower port. The end asserts that every mbuf came home. */
void impair_fixture(void);
void impair_fixture_end(void);
/* Makes, configures and starts a vdev on the lower port; `args` come behind port=. Returns its port
 * number. */
uint16_t start(const char *args);
/* start() with offloads. */
uint16_t start_nic(const char *args, uint64_t tx_offloads, uint64_t rx_offloads);
void stop(uint16_t port);

/* A TCP frame with right checksums; `payload` bytes that depend on `n`, whose first four are n
 * itself (when they fit). */
struct rte_mbuf *tcp_frame(uint32_t n, unsigned payload, uint8_t ecn, bool v6);
uint32_t frame_number(struct rte_mbuf *m, bool v6);
/* Both checksums of an IPv4 TCP frame, or the TCP one of an IPv6 frame, by lib/wire. */
bool ip4_checksum_right(struct rte_mbuf *m);
bool l4_checksum_right(struct rte_mbuf *m);
/* Sends frames n..n+count-1 in bursts, all of which must be taken; moves what comes out to `got`;
 * returns how many. */
unsigned send_all(uint16_t port, uint32_t n, unsigned count, struct rte_mbuf **got, unsigned max);
unsigned take_out(uint16_t port, struct rte_mbuf **got, unsigned max);
void free_all(struct rte_mbuf **m, unsigned n);
struct impair_cfg config(uint16_t port);

#endif
