/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers without a connection: blind attacks (RFC 5961), SYN floods, and peers that try to hold
 * memory. */
#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "script.h"

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

TestSuite(tcp_hostile, .init = setup, .fini = end);

static void
establish(void)
{
	sc_start(&p);
	sc_establish(&p);
}

/* ---- RFC 5961 ---- */

Test(tcp_hostile, reset_inside_the_window_is_challenged_rfc5961_3_2)
{
	establish();
	IN("R 2:2");
	OUT(". 1:1 ack 1");
	STATE("ESTABLISHED");
	cr_assert_eq(sc_count(&p, TCP_CHALLENGE), 1);
	IN("R 3000000:3000000"); /* outside the window: no answer */
	NONE();
	IN("R 0:0");
	NONE();
	STATE("ESTABLISHED");
}

Test(tcp_hostile, syn_in_a_connection_is_challenged_rfc5961_4_2)
{
	establish();
	IN("S 1:1");
	OUT(". 1:1 ack 1");
	IN("S 100:100");
	OUT(". 1:1 ack 1");
	IN("S. 1:1 ack 1");
	OUT(". 1:1 ack 1");
	STATE("ESTABLISHED");
	cr_assert_eq(sc_count(&p, TCP_CHALLENGE), 3);
}

Test(tcp_hostile, ack_of_bytes_never_sent_is_challenged_rfc5961_5_2)
{
	establish();
	sc_send(&p, 1, 10);
	p.seen = p.nout;
	IN(". 1:11 ack 12");
	OUT(". 11:11 ack 1");
	cr_assert_eq(p.delivered, 0);
	cr_assert_eq(p.recs, 1);
	cr_assert_eq(sc_count(&p, TCP_FUTURE_ACK), 1);
}

Test(tcp_hostile, ack_older_than_the_window_is_challenged_rfc5961_5_2)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1460 win 1000");
	for (unsigned i = 0; i < 3; i++) {
		char text[64];

		sc_send(&p, 1, 1000);
		snprintf(text, sizeof(text), ". 1:1 ack %u win 1000", 1001 + i * 1000);
		IN(text);
	}
	p.seen = p.nout;
	/* The oldest valid acknowledgement: its payload is accepted. */
	IN(". 1:11 ack 2001 win 1000");
	cr_assert_eq(p.delivered, 10);
	IN(". 11:21 ack 2000 win 1000");
	cr_assert_eq(p.delivered, 10);
	OUT(". 3001:3001 ack 11");
	cr_assert_eq(sc_count(&p, TCP_CHALLENGE), 1);
}

Test(tcp_hostile, challenges_are_limited_rfc5961_7)
{
	establish();
	for (unsigned i = 0; i < 50; i++) {
		IN("S 1:1");
		p.now += MS;
	}
	cr_assert_eq(p.nout - p.seen, 10);
	cr_assert_eq(sc_count(&p, TCP_CHALLENGE_LIMIT), 40);
	p.seen = p.nout;
	p.now += 5000 * MS;
	IN("S 1:1");
	OUT(". 1:1 ack 1");
}

Test(tcp_hostile, segment_without_ack_is_dropped_rfc9293_3_10_7_4)
{
	establish();
	IN("P 1:11");
	NONE();
	cr_assert_eq(p.delivered, 0);
	cr_assert_eq(sc_count(&p, TCP_BAD_FLAGS), 1);
}

/* The peer's next segment has an older timestamp than the forged ones, and is accepted. */
static void
timestamp_is_not_taken_from(const char *forged)
{
	p.cfg.timestamps = true;
	establish();
	IN(". 1:11 ack 1 ts 2000/0");
	WAIT(MS);
	p.seen = p.nout;
	sc_in(&p, __LINE__, forged);
	sc_send(&p, 1, 10);
	for (; p.seen < p.nout; p.seen++)
		cr_assert_eq(p.out[p.seen].tcp.ts_ecr, 2000);
	IN(". 11:21 ack 1 ts 2001/0");
	cr_assert_eq(p.delivered, 20);
	cr_assert_eq(sc_count(&p, TCP_PAWS), 0);
}

Test(tcp_hostile, timestamp_of_a_refused_ack_is_not_taken_rfc5961_5_2)
{
	timestamp_is_not_taken_from("F. 11:11 ack 9999 ts 200000/0");
}

Test(tcp_hostile, timestamp_of_a_too_old_ack_is_not_taken_rfc5961_5_2)
{
	timestamp_is_not_taken_from(". 1:1011 ack 2000000000 ts 200000/0");
}

Test(tcp_hostile, timestamp_of_a_challenged_reset_is_not_taken_rfc5961_3_2)
{
	timestamp_is_not_taken_from("R. 1:1011 ack 1 ts 200000/0");
}

Test(tcp_hostile, timestamp_of_a_challenged_syn_is_not_taken_rfc5961_4_2)
{
	timestamp_is_not_taken_from("S. 1:1011 ack 1 ts 200000/0");
}

Test(tcp_hostile, timestamp_of_a_wrong_ack_in_syn_received_is_not_taken_rfc7323_4_3)
{
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_listen(&p);
	IN("S 0:0 mss 1460 ts 1000/0");
	OUT("S. 0:0 ack 1 ts 0/1000");
	IN(". 1:1 ack 7 ts 200000/0");
	OUT("R 7:7");
	IN(". 1:1 ack 1 ts 1001/0");
	STATE("ESTABLISHED");
}

Test(tcp_hostile, timestamp_of_a_segment_without_ack_is_not_taken_rfc7323_4_3)
{
	timestamp_is_not_taken_from("P 1:1011 ts 200000/0");
}

/* ---- SYN floods ---- */

static void
syn_from(uint16_t port)
{
	p.c = NULL;
	p.t.rport = port;
	IN("S 0:0 mss 1460 sackok ws 7");
}

Test(tcp_hostile, syn_flood_turns_over_half_open_connections_only)
{
	struct tcp_conn *good;
	uint32_t iss;

	sc_start(&p);
	p.l = tcp_listen(p.s, 100, NULL);
	syn_from(1);
	IN(". 1:1 ack 1");
	good = p.c;
	iss = p.iss;
	STATE("ESTABLISHED");
	for (unsigned i = 0; i < 500; i++)
		syn_from((uint16_t)(1000 + i));
	cr_assert_eq(p.added - p.removed, 1 + p.cfg.max_half_open);
	cr_assert_eq(sc_count(&p, TCP_HALF_OPEN_FULL), 500 - p.cfg.max_half_open);
	cr_assert_eq(p.closed, 0); /* the owner gets no event of them */
	p.c = good;
	p.iss = iss;
	IN(". 1:101 ack 1");
	cr_assert_eq(p.delivered, 100);
}

Test(tcp_hostile, backlog_of_established_connections_refuses_more)
{
	sc_start(&p);
	p.no_claim = true;
	p.l = tcp_listen(p.s, 2, NULL);
	for (uint16_t i = 1; i <= 2; i++) {
		syn_from(i);
		IN(". 1:1 ack 1");
	}
	p.seen = p.nout;
	syn_from(3);
	NONE();
	cr_assert_null(p.c);
	cr_assert_eq(sc_count(&p, TCP_BACKLOG_FULL), 1);
}

Test(tcp_hostile, claiming_makes_room_in_the_backlog)
{
	sc_start(&p);
	p.l = tcp_listen(p.s, 1, NULL);
	for (uint16_t i = 1; i <= 5; i++) {
		syn_from(i);
		cr_assert_not_null(p.c);
		IN(". 1:1 ack 1");
		STATE("ESTABLISHED");
	}
}

Test(tcp_hostile, all_connections_in_use_refuses_syns)
{
	p.cfg.max_conns = 2;
	sc_start(&p);
	p.l = tcp_listen(p.s, 10, NULL);
	for (uint16_t i = 1; i <= 2; i++) {
		syn_from(i);
		IN(". 1:1 ack 1");
	}
	syn_from(3);
	cr_assert_null(p.c);
	cr_assert_eq(sc_count(&p, TCP_CONNS_FULL), 1);
	cr_assert_eq(p.out[p.nout - 1].tcp.flags, TCP_RST | TCP_ACK); /* the peer does not wait */
	cr_assert_eq(tcp_connect(p.s, p.now, &p.t, 1500, NULL, &p.c), -ENOBUFS);
}

Test(tcp_hostile, unlisten_resets_what_was_not_claimed)
{
	struct tcp_conn *claimed;

	sc_start(&p);
	p.l = tcp_listen(p.s, 10, NULL);
	syn_from(1);
	IN(". 1:1 ack 1");
	claimed = p.c;
	p.no_claim = true;
	syn_from(2);
	IN(". 1:1 ack 1");
	syn_from(3);
	p.seen = p.nout;
	tcp_unlisten(p.l, p.now);
	p.l = NULL;
	cr_assert_eq(p.removed, 2);
	cr_assert_eq(p.nout, p.seen + 2);
	cr_assert_eq(p.out[p.seen].tcp.flags, TCP_RST | TCP_ACK);
	cr_assert_eq(p.out[p.seen].tcp.dport, 3); /* the half-open connection */
	cr_assert_eq(p.out[p.seen + 1].tcp.dport, 2);
	p.c = claimed;
	STATE("ESTABLISHED");
}

/* ---- Memory ---- */

Test(tcp_hostile, one_byte_segments_out_of_order_pin_a_bounded_number_of_slices)
{
	p.cfg.ooo_slices = 100;
	establish();
	for (unsigned i = 0; i < 1000; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1 nopoll", 3 + 2 * i, 4 + 2 * i);
		IN(text);
		cr_assert_leq(p.slices, 100);
	}
	cr_assert_eq(sc_count(&p, TCP_OOO_FULL), 900);
	tcp_abort(p.c, p.now);
	cr_assert_eq(p.slices, 0);
}

Test(tcp_hostile, all_connections_together_pin_a_bounded_number_of_slices)
{
	p.cfg.ooo_slices = 100;
	p.cfg.ooo_slices_total = 150;
	establish();
	for (unsigned k = 0; k < 2; k++) {
		for (unsigned i = 0; i < 120; i++) {
			char text[64];

			snprintf(text, sizeof(text), ". %u:%u ack 1 nopoll", 3 + 2 * i, 4 + 2 * i);
			IN(text);
		}
		cr_assert_eq(p.slices, k ? 75 + 38 : 75);
		if (!k) {
			p.c = NULL;
			p.t.rport++;
			p.connected = 0;
			sc_establish(&p);
		}
	}
}

Test(tcp_hostile, one_byte_segments_that_the_owner_refuses_are_bounded)
{
	p.cfg.ooo_slices = 50;
	establish();
	p.refuse = true;
	for (unsigned i = 0; i < 500; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1 nopoll", 1 + i, 2 + i);
		IN(text);
	}
	cr_assert_eq(p.slices, 50);
	p.refuse = false;
	tcp_deliver_resume(p.c);
	cr_assert_eq(p.delivered, 50);
	sc_poll(&p);
	cr_assert_eq(p.out[p.nout - 1].tcp.ack, SC_PEER_ISN + 51);
}

Test(tcp_hostile, all_refused_slices_together_are_bounded)
{
	p.cfg.ooo_slices = 50;
	p.cfg.ooo_slices_total = 20;
	establish();
	p.refuse = true;
	for (unsigned i = 0; i < 100; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1 nopoll", 1 + i, 2 + i);
		IN(text);
	}
	cr_assert_eq(p.slices, 10, "half of the total");
	cr_assert_eq(sc_count(&p, TCP_OOO_FULL), 90);
}
