/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers share what TCP can hold: half-done connections, and slices out of order. No peer takes all
 * of it from the others. */
#include <stdio.h>

#include <criterion/criterion.h>

#include "script.h"

#define SECOND (1000 * MS)

static struct script p;

static void
setup(void)
{
	sc_new(&p);
}

static void
end(void)
{
	sc_end(&p);
}

TestSuite(tcp_shares, .init = setup, .fini = end);

/* ---- Half-done connections ---- */

/* Starts with a listener whose connections are half-done until tcp_settled(). */
static void
listen_early(uint32_t all, uint32_t of_listener, uint32_t of_prefix)
{
	p.cfg.max_conns = 1000;
	p.cfg.max_half_open = all;
	p.cfg.half_open_per_listener = of_listener;
	p.cfg.half_open_per_prefix = of_prefix;
	sc_start(&p);
	p.claim_early = true;
	p.l = tcp_listen(p.s, 1000, NULL);
}

/* The host `from` sends a SYN, and, with `ack`, completes the handshake. Returns the connection, or
 * NULL when the SYN was dropped. */
static struct tcp_conn *
syn_of(const char *from, bool ack)
{
	static uint16_t port = 1000;

	sk_addr_parse(from, &p.t.raddr);
	p.t.rport = port++;
	p.c = NULL;
	IN("S 0:0 mss 1460 sackok ws 7");
	if (p.c != NULL && ack)
		IN(". 1:1 ack 1");
	return p.c;
}

static unsigned
alive(void)
{
	return p.added - p.removed;
}

Test(tcp_shares, prefix_has_a_limit_of_half_done_connections)
{
	listen_early(64, 64, 10);
	for (unsigned i = 0; i < 30; i++)
		syn_of("192.0.2.2", true);
	cr_assert_eq(alive(), 10);
	cr_assert_eq(sc_count(&p, TCP_PREFIX_FULL), 20);
	cr_assert_not_null(syn_of("192.0.2.3", true), "another host");
}

Test(tcp_shares, prefix_of_ipv6_has_64_bits)
{
	char from[64];

	listen_early(64, 64, 10);
	sk_addr_parse("2001:db8::1", &p.t.laddr);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(from, sizeof(from), "2001:db8:0:1:%x::2", i + 1);
		syn_of(from, true);
	}
	cr_assert_eq(alive(), 10);
	cr_assert_not_null(syn_of("2001:db8:0:2::2", true), "another prefix");
}

Test(tcp_shares, half_done_connection_of_a_second_makes_room_for_its_prefix)
{
	listen_early(64, 64, 10);
	for (unsigned i = 0; i < 10; i++)
		syn_of("192.0.2.2", true);
	cr_assert_null(syn_of("192.0.2.2", true));
	WAIT(SECOND);
	for (unsigned i = 0; i < 10; i++)
		cr_assert_not_null(syn_of("192.0.2.2", true));
	cr_assert_eq(alive(), 10);
	cr_assert_eq(sc_count(&p, TCP_HALF_DONE_ENDED), 10);
	cr_assert_eq(p.closed, 10, "the owner gets the end of what it has claimed");
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT), 10);
	cr_assert_null(syn_of("192.0.2.2", true), "all of them are new again");
}

Test(tcp_shares, settled_connection_counts_no_more_and_stays)
{
	listen_early(64, 64, 10);
	for (unsigned i = 0; i < 50; i++) {
		struct tcp_conn *c = syn_of("192.0.2.2", true);

		cr_assert_not_null(c);
		tcp_settled(c);
	}
	WAIT(10 * SECOND);
	for (unsigned i = 0; i < 20; i++)
		syn_of("192.0.2.2", true);
	cr_assert_eq(alive(), 60);
	cr_assert_eq(sc_count(&p, TCP_HALF_DONE_ENDED), 0);
}

/* Two prefixes fill a listener. A third one takes the place of a connection of a prefix that has
 * more, immediately, until all have the same number. */
Test(tcp_shares, prefix_that_has_less_displaces_one_that_has_more)
{
	unsigned got = 0;

	listen_early(64, 40, 30);
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_not_null(syn_of("192.0.2.2", true));
		cr_assert_not_null(syn_of("192.0.2.3", true));
	}
	cr_assert_null(syn_of("192.0.2.2", true));
	cr_assert_eq(sc_count(&p, TCP_BACKLOG_FULL), 1);
	for (unsigned i = 0; i < 40; i++)
		got += syn_of("192.0.2.4", true) != NULL;
	cr_assert_geq(got, 12);
	cr_assert_leq(got, 20);
	cr_assert_eq(alive(), 40);
	cr_assert_eq(sc_count(&p, TCP_HALF_DONE_ENDED), got);
}

/* A listener with a small backlog has 32, which the connections of the handshake and the claimed
 * ones share. */
Test(tcp_shares, backlog_bounds_the_claimed_connections)
{
	listen_early(1000, 512, 256);
	tcp_unlisten(p.l, p.now);
	p.l = tcp_listen(p.s, 4, NULL);
	for (unsigned i = 0; i < 100; i++)
		syn_of("192.0.2.2", true);
	cr_assert_eq(alive(), 32);
	cr_assert_eq(sc_count(&p, TCP_BACKLOG_FULL), 68);
}

/* The half-done connections of all listeners leave room for those that are settled. */
Test(tcp_shares, half_done_connections_have_a_limit_in_total)
{
	struct tcp_listener *l[4];

	listen_early(100, 64, 64);
	l[0] = p.l;
	for (unsigned k = 1; k < 4; k++)
		l[k] = tcp_listen(p.s, 1000, NULL);
	for (unsigned i = 0; i < 400; i++) {
		p.l = l[i % 4];
		syn_of(i % 2 ? "192.0.2.2" : "192.0.2.3", true);
		cr_assert_leq(alive(), 100);
	}
	cr_assert_eq(alive(), 100);
	cr_assert_not_null(syn_of("192.0.2.4", true));
	cr_assert_eq(alive(), 100);
}

/* A flood of SYNs alone, without an answer to ours, does not displace what is established. */
Test(tcp_shares, flood_of_syns_leaves_the_established)
{
	struct tcp_conn *c;

	listen_early(64, 40, 256);
	c = syn_of("192.0.2.9", true);
	for (unsigned i = 0; i < 500; i++)
		syn_of("192.0.2.2", false);
	cr_assert_eq(alive(), 40);
	p.c = c;
	STATE("ESTABLISHED");
}

/* Fills a listener of 40 with connections of as many hosts, all of them new. */
static void
forty_hosts(void)
{
	char from[32];

	listen_early(64, 40, 8);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(from, sizeof(from), "198.51.100.%u", i + 1);
		cr_assert_not_null(syn_of(from, true));
	}
	cr_assert_eq(alive(), 40);
}

Test(tcp_shares, prefix_without_a_half_done_connection_always_gets_a_place)
{
	char from[32];

	forty_hosts();
	for (unsigned i = 0; i < 100; i++) {
		snprintf(from, sizeof(from), "192.0.2.%u", i + 2);
		cr_assert_not_null(syn_of(from, true), "host %u", i);
		cr_assert_eq(alive(), 40);
	}
	cr_assert_eq(sc_count(&p, TCP_BACKLOG_FULL), 0);
}

/* The prefixes that hold a place get no second one from each other before the time of a place is
 * over, so that they do not renew what they hold without end. */
Test(tcp_shares, prefixes_with_equal_numbers_displace_none_of_each_other)
{
	char from[32];

	forty_hosts();
	for (unsigned i = 0; i < 40; i++) {
		snprintf(from, sizeof(from), "198.51.100.%u", i + 1);
		cr_assert_null(syn_of(from, false));
	}
	cr_assert_eq(sc_count(&p, TCP_BACKLOG_FULL), 40);
	cr_assert_eq(sc_count(&p, TCP_HALF_DONE_ENDED), 0);
}

/* A peer that is about to complete its request keeps its place while others renew theirs: the draw
 * prefers prefixes with more, and what is older. */
Test(tcp_shares, newest_connection_of_a_small_prefix_is_displaced_last)
{
	struct tcp_conn *good;
	char from[32];

	forty_hosts();
	WAIT(1 * MS);
	good = syn_of("192.0.2.1", true);
	cr_assert_not_null(good);
	WAIT(1 * MS);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(from, sizeof(from), "203.0.113.%u", i + 1);
		syn_of(from, true);
	}
	p.c = good;
	STATE("ESTABLISHED");
}

/* The connections of the instance to itself take places of others, and no other takes theirs. */
Test(tcp_shares, instance_itself_gets_and_keeps_its_places)
{
	char from[32], own[SK_ADDR_STRLEN];
	struct tcp_conn *self[5];

	forty_hosts();
	sk_addr_str(&p.t.laddr, own);
	for (unsigned i = 0; i < 5; i++) {
		self[i] = syn_of(own, true);
		cr_assert_not_null(self[i], "connection %u", i);
	}
	for (unsigned k = 0; k < 3; k++) {
		WAIT(SECOND);
		p.nout = p.seen = 0;
		for (unsigned i = 0; i < 100; i++) {
			snprintf(from, sizeof(from), "203.0.113.%u", i + 1);
			syn_of(from, true);
		}
	}
	cr_assert_eq(alive(), 40);
	for (unsigned i = 0; i < 5; i++) {
		p.c = self[i];
		STATE("ESTABLISHED");
	}
}

/* A full backlog has the same rules: what it counts are half-open connections. */
static void
backlog_of(uint32_t n)
{
	listen_early(64, 64, 64);
	p.l = tcp_listen(p.s, n, NULL);
}

Test(tcp_shares, full_backlog_takes_no_place_of_the_instance_itself)
{
	char from[32], own[SK_ADDR_STRLEN];
	struct tcp_conn *self;
	uint16_t port;

	backlog_of(20);
	sk_addr_str(&p.t.laddr, own);
	self = syn_of(own, false);
	port = tcp_tuple(self)->rport;
	for (unsigned i = 0; i < 100; i++) {
		snprintf(from, sizeof(from), "203.0.113.%u", i + 1);
		cr_assert_not_null(syn_of(from, false), "host %u", i);
		cr_assert_eq(alive(), i < 18 ? i + 2 : 20);
	}
	cr_assert_eq(tcp_tuple(self)->rport, port, "another connection has its place");
}

Test(tcp_shares, full_backlog_gives_a_prefix_that_has_most_no_place_of_another)
{
	struct tcp_conn *good;
	uint16_t port;

	backlog_of(20);
	good = syn_of("192.0.2.1", false);
	port = tcp_tuple(good)->rport;
	for (unsigned i = 0; i < 100; i++)
		cr_assert_not_null(syn_of("203.0.113.1", false), "SYN %u", i);
	cr_assert_eq(alive(), 20);
	cr_assert_eq(tcp_tuple(good)->rport, port, "another connection has its place");
}

/* ---- Slices out of order ---- */

#define CONNS 20

static struct tcp_conn *conn[CONNS];
static uint32_t iss[CONNS];

static void
conns_start(unsigned n, uint32_t total)
{
	p.cfg.ooo_slices = 1000;
	p.cfg.ooo_slices_total = total;
	sc_start(&p);
	for (unsigned k = 0; k < n; k++) {
		p.c = NULL;
		p.connected = 0;
		p.t.rport++;
		sc_establish(&p);
		conn[k] = p.c;
		iss[k] = p.iss;
	}
}

static void
in_of(unsigned k, uint32_t from, uint32_t to)
{
	char text[64];

	p.c = conn[k];
	p.iss = iss[k];
	snprintf(text, sizeof(text), ". %u:%u ack 1 nopoll", from, to);
	IN(text);
}

/* The peer of connection k sends n bytes with gaps between them. Returns the slices that TCP
 * kept. */
static int64_t
with_gaps(unsigned k, unsigned n)
{
	int64_t before = p.slices;

	for (unsigned i = 0; i < n; i++)
		in_of(k, 3 + 2 * i, 4 + 2 * i);
	return p.slices - before;
}

Test(tcp_shares, four_connections_do_not_hold_all_slices)
{
	conns_start(6, 400);
	for (unsigned k = 0; k < 4; k++)
		cr_assert_geq(with_gaps(k, 400), 25);
	cr_assert_geq(with_gaps(4, 400), 12);
	cr_assert_geq(with_gaps(5, 6), 6);
	cr_assert_eq(sc_count(&p, TCP_OOO_DISCARDED), 0);
}

/* When others hold all slices, a connection still keeps eight: the one that made no progress for
 * the longest time discards its own, and the peer sends them again (RFC 2018 8). */
Test(tcp_shares, connection_always_keeps_a_few_slices_out_of_order)
{
	unsigned last = CONNS - 1;

	conns_start(CONNS, 64);
	for (unsigned round = 0; round < 3; round++)
		for (unsigned k = 0; k < last; k++)
			with_gaps(k, 64);
	cr_assert_leq(p.slices, 64);
	cr_assert_eq(with_gaps(last, 0), 0);
	for (unsigned i = 0; i < 8; i++)
		in_of(last, 3 + 2 * i, 4 + 2 * i);
	cr_assert_leq(p.slices, 64);
	cr_assert_geq(sc_count(&p, TCP_OOO_DISCARDED), 1);
	p.delivered = 0;
	for (unsigned i = 0; i < 8; i++)
		in_of(last, 1 + 2 * i, 3 + 2 * i);
	cr_assert_eq(p.delivered, 17, "the slices fill the gaps");
}

/* The slices that were discarded are reported no more, and the stream stays whole when the peer
 * sends them again. */
Test(tcp_shares, discarded_slices_are_received_again_rfc2018_8)
{
	conns_start(10, 9);
	in_of(0, 101, 201);
	cr_assert_eq(p.slices, 1);
	for (unsigned k = 1; k < 10; k++)
		with_gaps(k, 8);
	cr_assert_geq(sc_count(&p, TCP_OOO_DISCARDED), 1);
	p.delivered = 0;
	p.seen = p.nout;
	in_of(0, 1, 101);
	cr_assert_eq(p.delivered, 100);
	sc_poll(&p);
	in_of(0, 101, 201);
	cr_assert_eq(p.delivered, 200);
}
