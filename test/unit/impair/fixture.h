/* SPDX-License-Identifier: BSD-3-Clause */
/* A net_impair port on top of a net_ring port, whose far ends are rings that the test reads and
 * writes. */
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
/* The rings to which the lower port sends and from which it receives. */
extern struct rte_ring *wire_out, *wire_in;
extern uint16_t lower;

/* impair_fixture() initializes EAL, pool, rings and the lower port. impair_fixture_end() asserts
 * that every mbuf has been freed. */
void impair_fixture(void);
void impair_fixture_end(void);
/* Creates, configures and starts a vdev on the lower port, with `args` behind port=. Returns its
 * port number. */
uint16_t start(const char *args);
/* Does the work of start() with offloads. */
uint16_t start_nic(const char *args, uint64_t tx_offloads, uint64_t rx_offloads);
void stop(uint16_t port);

/* Returns a TCP frame with correct checksums. Its `payload` bytes depend on `n`; the first four
 * contain n itself (if they fit). */
struct rte_mbuf *tcp_frame(uint32_t n, unsigned payload, uint8_t ecn, bool v6);
uint32_t frame_number(struct rte_mbuf *m, bool v6);
/* Check with lib/wire the IPv4 header checksum and the TCP checksum (IPv4 and IPv6). */
bool ip4_checksum_right(struct rte_mbuf *m);
bool l4_checksum_right(struct rte_mbuf *m);
/* Sends frames n to n + count - 1 in bursts, all of which must be accepted. Takes what arrives into
 * got[] and returns the number of frames. */
unsigned send_all(uint16_t port, uint32_t n, unsigned count, struct rte_mbuf **got, unsigned max);
unsigned take_out(uint16_t port, struct rte_mbuf **got, unsigned max);
void free_all(struct rte_mbuf **m, unsigned n);
struct impair_cfg config(uint16_t port);

#endif
