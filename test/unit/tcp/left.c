/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that their owner has left: what TCP still sends, what ends them, and their bounds. */
#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "script.h"

#define MINUTE (60000 * MS)

static struct script p;
static const struct tcp_note note = {{77, 78}};

static void
establish(void)
{
	sc_new(&p);
	sc_start(&p);
	sc_establish(&p);
}

static void
end(void)
{
	sc_end(&p);
}

TestSuite(tcp_left, .init = establish, .fini = end);

/* Leaves the connection, which the owner learns at once. */
static void
leave(void)
{
	unsigned sent = p.sent_ev, fin = p.peer_fin;

	tcp_set_user(p.c, &p);
	cr_assert_null(tcp_left(p.c));
	cr_assert(tcp_leave(p.c, p.now, &note));
	cr_assert_arr_eq(tcp_left(p.c), &note, sizeof(note));
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, -ECONNABORTED);
	cr_assert_eq(p.removed, 0);
	cr_assert_null(tcp_user(p.c));
	cr_assert_eq(sc_count(&p, TCP_LEFT), 1);
	cr_assert(p.sent_ev == sent && p.peer_fin == fin);
	sc_poll(&p);
}

/* Checks that the connection was reset without being left. */
static void
refused(void)
{
	cr_assert_not(tcp_leave(p.c, p.now, &note));
	STATE("CLOSED");
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, -ECONNABORTED);
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(sc_count(&p, TCP_LEFT), 0);
}

Test(tcp_left, queued_data_and_then_fin_rfc9293_3_6_case_1)
{
	p.busy = true;
	sc_send(&p, 3, 1000);
	p.busy = false;
	leave();
	STATE("FIN-WAIT-1");
	OUT(". 1:1001 ack 1");
	OUT(". 1001:2001 ack 1");
	OUT("F. 2001:3001 ack 1");
	NONE();
	IN(". 1:1 ack 1001");
	IN(". 1:1 ack 3002");
	STATE("FIN-WAIT-2");
	cr_assert_eq(p.recs, 0);
	IN("F. 1:1 ack 3002");
	OUT(". 3002:3002 ack 2");
	STATE("TIME-WAIT");
	WAIT(2 * p.cfg.msl_ns + MS);
	STATE("CLOSED");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.sent_ev + p.peer_fin, 0, "events without an owner");
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT), 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_END), 0);
}

Test(tcp_left, lost_data_and_a_lost_fin_are_sent_again_rfc6298_5)
{
	sc_send(&p, 2, 1000);
	OUT(". 1:1001 ack 1");
	OUT(". 1001:2001 ack 1");
	leave();
	OUT("F. 2001:2001 ack 1");
	IN(". 1:1 ack 1001");
	WAIT(20 * MS);
	OUT("F. 1001:2001 ack 1");
	IN(". 1:1 ack 2002");
	STATE("FIN-WAIT-2");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_left, after_the_peers_fin_rfc9293_3_6_case_2)
{
	IN("F. 1:1 ack 1");
	OUT(". 1:1 ack 2");
	sc_send(&p, 1, 10);
	OUT(". 1:11 ack 2");
	leave();
	STATE("LAST-ACK");
	OUT("F. 11:11 ack 2");
	IN(". 2:2 ack 12");
	STATE("CLOSED");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT), 0);
}

Test(tcp_left, after_its_own_close)
{
	sc_send(&p, 1, 10);
	tcp_close(p.c, p.now);
	sc_poll(&p);
	OUT(". 1:11 ack 1");
	OUT("F. 11:11 ack 1");
	leave();
	IN("F. 1:1 ack 12");
	STATE("TIME-WAIT");
	cr_assert_eq(p.recs, 0);
}

/* ---- Bytes of the peer that would be lost ---- */

Test(tcp_left, unread_data_means_a_reset_rfc1122_4_2_2_13)
{
	p.keep_bytes = true;
	IN(". 1:101 ack 1");
	sc_send(&p, 1, 10);
	OUT(". 1:11 ack 101");
	refused();
	OUT("R. 11:11 ack 101");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
}

Test(tcp_left, refused_data_means_a_reset_rfc1122_4_2_2_13)
{
	p.refuse = true;
	IN(". 1:101 ack 1");
	refused();
	OUT("R. 1:1 ack 101");
	cr_assert_eq(p.slices, 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
}

Test(tcp_left, data_out_of_order_means_a_reset_rfc1122_4_2_2_13)
{
	IN(". 101:201 ack 1");
	p.seen = p.nout;
	refused();
	OUT("R. 1:1 ack 1");
	cr_assert_eq(p.slices, 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
}

Test(tcp_left, data_that_the_owner_has_processed_does_not_hinder)
{
	p.keep_bytes = true;
	IN(". 1:101 ack 1");
	tcp_consumed(p.c, 100);
	leave();
	STATE("FIN-WAIT-1");
	OUT("F. 1:1 ack 101");
}

Test(tcp_left, new_data_means_a_reset_rfc2525_2_17)
{
	sc_send(&p, 1, 10);
	leave();
	p.seen = p.nout;
	IN(". 1:51 ack 1");
	OUT("R. 12:12 ack 1");
	STATE("CLOSED");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.delivered, 0);
	cr_assert(p.recs == 0 && p.slices == 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
	cr_assert_eq(p.closed, 1);
}

Test(tcp_left, new_data_in_fin_wait_2_means_a_reset_rfc2525_2_17)
{
	leave();
	IN(". 1:1 ack 2");
	STATE("FIN-WAIT-2");
	p.seen = p.nout;
	IN("F. 1:51 ack 2");
	OUT("R. 2:2 ack 1");
	STATE("CLOSED");
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
}

Test(tcp_left, new_data_out_of_order_means_a_reset_rfc2525_2_17)
{
	leave();
	p.seen = p.nout;
	IN(". 101:151 ack 1");
	OUT("R. 2:2 ack 1");
	STATE("CLOSED");
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
}

Test(tcp_left, old_data_that_comes_again_is_acknowledged_rfc9293_3_10_7_4)
{
	IN(". 1:101 ack 1");
	leave();
	p.seen = p.nout;
	IN(". 1:101 ack 1");
	OUT(". 2:2 ack 101 sack 1:101");
	IN(". 51:101 ack 1");
	OUT(". 2:2 ack 101 sack 51:101");
	STATE("FIN-WAIT-1");
	cr_assert_eq(sc_count(&p, TCP_DUP_PAYLOAD), 2);
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 0);
	IN(". 51:102 ack 1"); /* the last byte is new */
	OUT("R. 2:2 ack 101");
	STATE("CLOSED");
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 1);
}

Test(tcp_left, old_data_with_a_new_fin_is_no_loss_rfc9293_3_10_7_4)
{
	IN(". 1:101 ack 1");
	leave();
	p.seen = p.nout;
	IN("F. 51:101 ack 2");
	OUT(". 2:2 ack 102");
	STATE("TIME-WAIT");
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 0);
}

Test(tcp_left, acknowledgement_behind_a_gap_is_no_data_rfc9293_3_10_7_4)
{
	sc_send(&p, 1, 10);
	leave();
	IN(". 51:51 ack 12"); /* the data before it is on the way */
	STATE("FIN-WAIT-2");
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 0);
	cr_assert_eq(p.recs, 0);
}

Test(tcp_left, data_behind_the_window_is_only_acknowledged_rfc9293_3_10_7_4)
{
	leave();
	p.seen = p.nout;
	IN(". 100000000:100000050 ack 1");
	OUT(". 2:2 ack 1");
	STATE("FIN-WAIT-1");
	cr_assert_eq(sc_count(&p, TCP_OUT_OF_WINDOW), 1);
}

Test(tcp_left, data_behind_the_peers_fin_is_not_new)
{
	IN("F. 1:1 ack 1");
	leave();
	p.seen = p.nout;
	IN(". 2:52 ack 1");
	OUT(". 2:2 ack 2");
	STATE("LAST-ACK");
	cr_assert_eq(sc_count(&p, TCP_LEFT_UNREAD), 0);
}

Test(tcp_left, reset_of_the_peer_ends_it_rfc5961_3_2)
{
	sc_send(&p, 1, 10);
	leave();
	IN("R 1:1");
	STATE("CLOSED");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RESET_IN), 1);
}

Test(tcp_left, connection_that_is_not_established_is_ended)
{
	sc_end(&p);
	sc_new(&p);
	sc_start(&p);
	sc_connect(&p);
	refused();
}

/* ---- Bounds ---- */

Test(tcp_left, silent_peer_ends_it_in_bounded_time_rfc9293_3_8_3)
{
	uint64_t began = p.now;

	sc_send(&p, 4, 1000);
	leave();
	while (p.c != NULL && p.now - began < 2 * MINUTE) {
		WAIT(100 * MS);
		p.nout = p.seen = 0;
	}
	STATE("CLOSED");
	cr_assert_leq(p.now - began, MINUTE + 100 * MS);
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(sc_count(&p, TCP_TIMED_OUT), 1, "the retransmissions are used up before");
}

Test(tcp_left, zero_window_ends_it_in_bounded_time_rfc9293_3_8_6_1)
{
	uint64_t began;

	sc_send(&p, 4, 1000);
	IN(". 1:1 ack 4001 win 0");
	sc_send(&p, 4, 1000);
	leave();
	STATE("FIN-WAIT-1");
	began = p.now;
	while (p.c != NULL && p.now - began < 2 * MINUTE) {
		WAIT(100 * MS);
		p.nout = p.seen = 0;
		if (p.c != NULL)
			IN(". 1:1 ack 4001 win 0"); /* the peer answers, and takes nothing */
	}
	STATE("CLOSED");
	cr_assert(p.now - began >= MINUTE && p.now - began <= MINUTE + 200 * MS);
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_END), 1);
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT), 1);
}

Test(tcp_left, slow_peer_does_not_extend_the_time)
{
	uint64_t began = p.now;
	uint32_t acked = 1;
	char text[64];

	sc_send(&p, 8, 1000);
	leave();
	while (p.c != NULL && p.now - began < 2 * MINUTE) {
		WAIT(100 * MS);
		p.nout = p.seen = 0;
		snprintf(text, sizeof(text), ". 1:1 ack %u win 1", ++acked);
		if (p.c != NULL)
			IN(text);
	}
	cr_assert(p.now - began >= MINUTE && p.now - began <= MINUTE + 200 * MS);
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_END), 1);
}

Test(tcp_left, peer_that_never_closes_does_not_extend_the_time)
{
	uint64_t began = p.now;

	leave();
	WAIT(1000 * MS);
	IN(". 1:1 ack 2");
	STATE("FIN-WAIT-2");
	WAIT(MINUTE - 1200 * MS);
	IN(". 0:1 ack 2"); /* a keepalive probe */
	STATE("FIN-WAIT-2");
	WAIT(400 * MS);
	STATE("CLOSED");
	cr_assert_leq(p.now - began, MINUTE + 200 * MS);
	cr_assert_eq(sc_count(&p, TCP_TIMED_OUT), 1);
	cr_assert_eq(sc_count(&p, TCP_LEFT_END), 0);
}

Test(tcp_left, smaller_path_mtu_does_not_extend_the_time)
{
	uint64_t began = p.now;

	sc_send(&p, 20, 1400);
	leave();
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 1300);
	cr_assert_eq(sc_count(&p, TCP_PMTU), 1);
	cr_assert_eq(p.emss_ev, 0);
	while (p.c != NULL && p.now - began < 2 * MINUTE) {
		WAIT(100 * MS);
		p.nout = p.seen = 0;
		if (p.c != NULL)
			IN(". 1:1 ack 14001 win 0");
	}
	cr_assert(p.now - began >= MINUTE && p.now - began <= MINUTE + 200 * MS);
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_LEFT_END), 1);
}

Test(tcp_left, connections_beyond_the_bound_are_reset)
{
	for (unsigned i = 0; i < p.cfg.max_left; i++) {
		cr_assert(tcp_leave(p.c, p.now, &note), "connection %u", i);
		p.t.rport++;
		p.connected = p.closed = 0;
		sc_establish(&p);
	}
	cr_assert_eq(sc_count(&p, TCP_LEFT), p.cfg.max_left);
	sc_send(&p, 1, 10);
	p.seen = p.nout;
	cr_assert_not(tcp_leave(p.c, p.now, &note));
	OUT("R. 11:11 ack 1");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(sc_count(&p, TCP_LEFT_FULL), 1);
	WAIT(MINUTE + MS); /* the others end, and one can be left again */
	p.nout = p.seen = 0;
	p.t.rport++;
	p.connected = p.closed = 0;
	sc_establish(&p);
	cr_assert(tcp_leave(p.c, p.now, &note));
}

/* Left connections take no places of the others: as many new ones as before can begin. */
Test(tcp_left, all_places_for_connections_remain)
{
	struct tcp_conn *c;

	sc_end(&p);
	sc_new(&p);
	p.cfg.max_half_open = p.cfg.max_time_wait = 1;
	sc_start(&p);
	sc_establish(&p);
	for (unsigned i = 0; i < p.cfg.max_left; i++) {
		cr_assert(tcp_leave(p.c, p.now, &note));
		p.t.rport++;
		p.connected = p.closed = 0;
		sc_establish(&p);
	}
	for (unsigned i = 1; i < p.cfg.max_conns; i++) {
		p.t.rport++;
		cr_assert_eq(tcp_connect(p.s, p.now, &p.t, p.mtu, NULL, &c), 0, "%u", i);
	}
	p.t.rport++;
	cr_assert_eq(tcp_connect(p.s, p.now, &p.t, p.mtu, NULL, &c), -ENOBUFS);
}

static bool
has_rport(const void *ctx, const struct tcp_tuple *t)
{
	return t->rport == *(const uint16_t *)ctx;
}

Test(tcp_left, owner_resets_the_ones_that_it_picks)
{
	uint16_t port = p.t.rport;
	struct tcp_conn *second;

	sc_send(&p, 2, 10);
	cr_assert_eq(tcp_queued_records(p.c), 2);
	leave();
	p.t.rport++;
	p.connected = p.closed = 0;
	sc_establish(&p);
	second = p.c;
	cr_assert_eq(tcp_queued_records(second), 0);
	cr_assert(tcp_leave(second, p.now, &note));
	sc_poll(&p);
	p.seen = p.nout;
	tcp_left_reset(p.s, p.now, has_rport, &port);
	cr_assert_eq(p.nout - p.seen, 1);
	cr_assert_eq(p.out[p.seen].tcp.flags, TCP_RST | TCP_ACK);
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(p.c, second);
	STATE("FIN-WAIT-1");
}
