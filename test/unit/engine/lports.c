/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of local ports: which ones, and how many candidates a choice examines. */
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/engine/transport/lports.h"

#define MIN   49152
#define MAX   65535
#define RANGE (MAX - MIN + 1u)

static struct eng_lports l;
static unsigned asked; /* candidates so far */
static unsigned homes; /* every so many-th port has its home here; 1: all */

/* The sets are the only record of the ports in use here: a port that they forget is chosen
 * twice. */
static bool
is_free(void *ctx, const struct tcp_tuple *tuple, bool *home)
{
	asked++;
	*home = tuple->lport % homes == 0;
	return *home;
}

static void
setup(void)
{
	asked = 0;
	homes = 1;
	cr_assert_eq(eng_lports_init(&l, MIN, MAX, 100000), 0);
}

static void
teardown(void)
{
	eng_lports_fini(&l);
}

TestSuite(engine_lports, .init = setup, .fini = teardown);

static struct tcp_tuple
dest(const char *raddr, uint16_t rport)
{
	struct tcp_tuple t = {.rport = rport};

	cr_assert_geq(sk_addr_parse("10.0.0.1", &t.laddr), 0);
	cr_assert_geq(sk_addr_parse(raddr, &t.raddr), 0);
	return t;
}

/* Chooses a port and adds it. Returns it, or 0. */
static uint16_t
take(struct tcp_tuple *t)
{
	t->lport = eng_lports_choose(&l, t, is_free, NULL);
	if (t->lport != 0)
		eng_lports_add(&l, t);
	return t->lport;
}

/* Takes ports until there is none. Returns their number; seen[p - MIN] counts them. */
static unsigned
take_all(struct tcp_tuple *t, uint8_t seen[RANGE])
{
	unsigned n = 0;

	memset(seen, 0, RANGE);
	while (take(t) != 0) {
		cr_assert(t->lport >= MIN);
		seen[t->lport - MIN]++;
		cr_assert_leq(++n, RANGE);
	}
	return n;
}

Test(engine_lports, a_destination_can_use_every_port_once)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	uint8_t seen[RANGE];

	cr_assert_eq(take_all(&t, seen), RANGE);
	for (uint32_t i = 0; i < RANGE; i++)
		cr_assert_eq(seen[i], 1, "port %u", MIN + i);
}

Test(engine_lports, a_freed_port_is_found_at_once_among_used_ones)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	uint8_t seen[RANGE];

	take_all(&t, seen);
	for (uint16_t i = 0; i < 100; i++) {
		t.lport = (uint16_t)(MIN + (i * 7919u) % RANGE);
		eng_lports_del(&l, &t);
		asked = 0;
		cr_assert_eq(take(&t), (uint16_t)(MIN + (i * 7919u) % RANGE));
		cr_assert_eq(asked, 1, "%u candidates", asked);
		cr_assert_eq(take(&t), 0);
	}
}

Test(engine_lports, the_search_does_not_grow_with_the_connections)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	unsigned n;

	for (n = 0; n < RANGE; n++)
		cr_assert_neq(take(&t), 0);
	/* Without a bitmap, the few ports of a destination may be candidates again. */
	cr_assert_leq(asked, RANGE + 200, "%u candidates for %u ports", asked, n);
}

Test(engine_lports, a_port_of_another_home_is_examined_once)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	uint8_t seen[RANGE];

	homes = 8;
	cr_assert_eq(take_all(&t, seen), RANGE / 8);
	for (uint32_t i = 0; i < RANGE; i++)
		cr_assert_eq(seen[i], (MIN + i) % homes == 0);
	cr_assert_leq(asked, RANGE + 1000, "%u candidates", asked);
	t.lport = MIN;
	eng_lports_del(&l, &t);
	asked = 0;
	cr_assert_eq(take(&t), MIN);
	cr_assert_eq(asked, 1);
}

Test(engine_lports, destinations_have_ports_of_their_own)
{
	struct tcp_tuple t[3] = {
		dest("10.0.0.2", 7000), dest("10.0.0.3", 7000), dest("10.0.0.2", 7001)};
	uint8_t seen[RANGE];

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(take_all(&t[i], seen), RANGE);
	t[0].lport = MIN + 5;
	eng_lports_del(&l, &t[0]);
	cr_assert_eq(take(&t[1]), 0);
	cr_assert_eq(take(&t[2]), 0);
	cr_assert_eq(take(&t[0]), MIN + 5);
}

Test(engine_lports, a_destination_without_connections_is_forgotten)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);

	for (uint16_t n = 1; n <= 40; n++) {
		for (uint16_t i = 0; i < n; i++) {
			t.lport = (uint16_t)(MIN + i * 3);
			eng_lports_add(&l, &t);
		}
		for (uint16_t i = 0; i < n; i++) {
			t.lport = (uint16_t)(MIN + (i * 7u + 3) % n * 3);
			if (n % 7 == 0)
				t.lport = (uint16_t)(MIN + i * 3);
			eng_lports_del(&l, &t);
		}
		for (uint32_t b = 0; b <= l.mask; b++)
			cr_assert_null(l.bucket[b], "%u connections", n);
	}
}

Test(engine_lports, ports_outside_of_the_range_are_ignored)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	uint8_t seen[RANGE];

	t.lport = MIN - 1;
	eng_lports_add(&l, &t);
	eng_lports_del(&l, &t);
	t.lport = MIN; /* was not added */
	eng_lports_del(&l, &t);
	cr_assert_eq(take_all(&t, seen), RANGE);
}

/* RSS computes each bit of a queue's number from the bits of the port, so that few bits that change
 * may give few queues. */
Test(engine_lports, a_jump_changes_all_bits_of_the_next_port)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	uint16_t set = 0, clear = 0;

	for (unsigned i = 0; i < 128; i++) {
		eng_lports_jump(&l);
		t.lport = eng_lports_choose(&l, &t, is_free, NULL);
		set |= t.lport;
		clear |= (uint16_t)~t.lport;
	}
	cr_assert_eq(set & clear, RANGE - 1, "0x%04x", set & clear);
}

/* The peer keeps a connection that it has closed in TIME-WAIT (RFC 9293 3.6.1), where a port that
 * is used again at once costs a retransmission of its SYN. */
Test(engine_lports, a_port_that_was_freed_does_not_come_back_within_some_jumps)
{
	struct tcp_tuple t = dest("10.0.0.2", 7000);
	bool used[RANGE] = {false};

	homes = 64; /* there are 256 ports for this stage */
	for (unsigned i = 0; i < 96; i++) {
		eng_lports_jump(&l);
		cr_assert_neq(take(&t), 0);
		cr_assert_not(used[t.lport - MIN], "port %u, jump %u", t.lport, i);
		used[t.lport - MIN] = true;
		eng_lports_del(&l, &t);
	}
}
