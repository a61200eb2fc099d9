/* SPDX-License-Identifier: BSD-3-Clause */
/* A net_stack whose ops record their calls: sent frames, released frames, and reported errors. */
#ifndef TEST_NET_FIXTURE_H
#define TEST_NET_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../../lib/net/net.h"
#include "../../support/addr.h"

#define S 1000000000ULL

struct sent {
	uint16_t port;
	size_t len;
	uint8_t frame[2048];
	struct wire_pkt pkt; /* parsed; a frame that cannot be parsed fails the test */
};

struct released {
	uint16_t port;
	void *frame;
	bool dropped;
	uint8_t mac[6];
};

struct recorder {
	struct sent sent[64];
	unsigned nsent; /* keeps counting when the array is full */
	struct released released[64];
	unsigned nreleased;
	struct wire_icmp error;
	uint16_t error_vlan;
	unsigned nerrors;
};

extern struct recorder rec;
extern struct net_stack *net;
extern const uint8_t my_mac[6], peer_mac[6], other_mac[6], broadcast_mac[6];

/* Makes interface 0: port 3, untagged, 192.0.2.1/24 and 2001:db8::1/64, MTU 1500. The recorder is
 * empty. */
void net_fixture(void);
void net_fixture_end(void);

uint64_t counted(unsigned reason);
const struct sent *last_sent(void);

/* Build frames to us from `mac`, and return the value of net_input(). */
int in_arp(uint64_t now, uint16_t op, const uint8_t mac[6], const char *spa, const char *tpa,
	const uint8_t *eth_dst);
/* Returns a parsed ICMPv6 record with addresses, for a test to change. */
struct wire_pkt nd_pkt(enum wire_icmp_kind kind, const uint8_t mac[6], const char *src,
	const char *dst, const char *target);
int in_pkt(uint64_t now, const struct wire_pkt *pkt);

/* Opens a path and resolves it to peer_mac by ARP or neighbour discovery. */
void path_to(struct net_path *p, const char *dst);
void path_resolved(struct net_path *p, const char *dst, uint64_t now);
const char *state_of(const char *text, uint8_t mac[6]);

#endif
