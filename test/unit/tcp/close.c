/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9293 3.6: all ways to end a connection, resets, TIME-WAIT. */
#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "script.h"

static struct script p;

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

TestSuite(tcp_close, .init = establish, .fini = end);

Test(tcp_close, normal_rfc9293_3_6_case_1)
{
	tcp_close(p.c, p.now);
	STATE("FIN-WAIT-1");
	sc_poll(&p);
	OUT("F. 1:1 ack 1");
	IN(". 1:1 ack 2");
	STATE("FIN-WAIT-2");
	IN(". 1:51 ack 2");
	cr_assert_eq(p.delivered, 50); /* half-closed: data still arrives */
	IN("F. 51:51 ack 2");
	OUT(". 2:2 ack 52");
	STATE("TIME-WAIT");
	cr_assert_eq(p.peer_fin, 1);
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, 0);
	cr_assert_eq(p.removed, 0);
	WAIT(2 * p.cfg.msl_ns + MS);
	STATE("CLOSED");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.closed, 1);
}

Test(tcp_close, passive_rfc9293_3_6_case_2)
{
	IN("F. 1:1 ack 1");
	OUT(". 1:1 ack 2");
	STATE("CLOSE-WAIT");
	cr_assert_eq(p.peer_fin, 1);
	sc_send(&p, 1, 10);
	OUT(". 1:11 ack 2");
	tcp_close(p.c, p.now);
	STATE("LAST-ACK");
	sc_poll(&p);
	OUT("F. 11:11 ack 2");
	IN(". 2:2 ack 12");
	STATE("CLOSED");
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, 0);
}

Test(tcp_close, simultaneous_rfc9293_3_6_figure_13)
{
	tcp_close(p.c, p.now);
	sc_poll(&p);
	OUT("F. 1:1 ack 1");
	IN("F. 1:1 ack 1");
	STATE("CLOSING");
	OUT(". 2:2 ack 2");
	cr_assert_eq(p.closed, 0);
	IN(". 2:2 ack 2");
	STATE("TIME-WAIT");
	cr_assert_eq(p.closed, 1);
}

Test(tcp_close, fin_with_the_ack_of_ours_goes_to_time_wait)
{
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN("F. 1:1 ack 2");
	STATE("TIME-WAIT");
	cr_assert_eq(p.peer_fin, 1);
	cr_assert_eq(p.closed, 1);
}

Test(tcp_close, fin_follows_the_data_and_ends_sending)
{
	sc_send(&p, 1, 100);
	OUT(". 1:101 ack 1");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	OUT("F. 101:101");
	sc_send(&p, 1, 5); /* too late: refused, and the record comes back */
	NONE();
	cr_assert_eq(p.recs, 1);
}

Test(tcp_close, fin_rides_on_the_last_segment)
{
	p.busy = true;
	sc_send(&p, 1, 100);
	tcp_close(p.c, p.now);
	p.busy = false;
	sc_poll(&p);
	OUT("F. 1:101 ack 1");
	IN(". 1:1 ack 102");
	STATE("FIN-WAIT-2");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_close, lost_fin_is_sent_again_rfc6298_5)
{
	tcp_close(p.c, p.now);
	sc_poll(&p);
	OUT("F. 1:1 ack 1");
	WAIT(11 * MS);
	OUT("F. 1:1 ack 1");
	IN(". 1:1 ack 2");
	STATE("FIN-WAIT-2");
}

Test(tcp_close, fin_is_part_of_the_segment_that_is_sent_again)
{
	p.busy = true;
	sc_send(&p, 1, 100);
	tcp_close(p.c, p.now);
	p.busy = false;
	sc_poll(&p);
	OUT("F. 1:101 ack 1");
	WAIT(5 * MS); /* the tail loss probe */
	OUT("F. 1:101 ack 1");
}

Test(tcp_close, fin_out_of_order_waits_for_the_gap)
{
	IN("F. 101:201 ack 1");
	OUT(". 1:1 ack 1 sack 101:201");
	STATE("ESTABLISHED");
	cr_assert_eq(p.peer_fin, 0);
	IN(". 1:101 ack 1");
	OUT(". 1:1 ack 202 nosack");
	STATE("CLOSE-WAIT");
	cr_assert_eq(p.delivered, 200);
	cr_assert_eq(p.peer_fin, 1);
}

Test(tcp_close, fin_at_a_closed_window_keeps_it_closed_rfc9293_3_8_6)
{
	sc_end(&p);
	sc_new(&p);
	p.cfg.rcv_buf = 2048;
	p.cfg.rcv_wscale = 0;
	sc_start(&p);
	sc_establish(&p);
	p.keep_bytes = true;
	IN(". 1:2049 ack 1");
	WAIT(MS);
	OUT(". 1:1 ack 2049 win 0");
	IN("F. 2049:2049 ack 1 nopoll");
	cr_assert_eq(sc_info(&p).rcv_wnd, 0);
	sc_poll(&p);
	OUT(". 1:1 ack 2050 win 0");
	STATE("CLOSE-WAIT");
	cr_assert_eq(sc_info(&p).rcv_wnd, 0);
	IN(". 60000:60100 ack 1"); /* far behind the window */
	cr_assert_eq(sc_count(&p, TCP_OUT_OF_WINDOW), 1);
	OUT(". 1:1 ack 2050 win 0");
	tcp_consumed(p.c, 2048);
	sc_poll(&p);
	cr_assert_leq(sc_info(&p).rcv_wnd, 2048);
}

Test(tcp_close, fin_out_of_order_at_the_windows_end_is_taken_rfc9293_3_8_6)
{
	sc_end(&p);
	sc_new(&p);
	p.cfg.rcv_buf = 2048;
	p.cfg.rcv_wscale = 0;
	sc_start(&p);
	sc_establish(&p);
	p.keep_bytes = true;
	IN("F. 1001:2049 ack 1");
	OUT(". 1:1 ack 1 win 2048");
	IN(". 1:1001 ack 1");
	OUT(". 1:1 ack 2050 win 0");
	STATE("CLOSE-WAIT");
	cr_assert_eq(sc_info(&p).rcv_wnd, 0);
}

Test(tcp_close, peer_fin_is_reported_after_the_last_refused_byte)
{
	p.refuse = true;
	IN("F. 1:101 ack 1");
	STATE("CLOSE-WAIT");
	cr_assert_eq(p.peer_fin, 0);
	p.refuse = false;
	tcp_deliver_resume(p.c);
	cr_assert_eq(p.delivered, 100);
	cr_assert_eq(p.peer_fin, 1);
}

Test(tcp_close, refused_bytes_outlive_the_close_of_both_sides)
{
	p.refuse = true;
	IN("F. 1:101 ack 1");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN(". 102:102 ack 2");
	cr_assert_eq(p.closed, 0);
	WAIT(10 * p.cfg.msl_ns);
	p.refuse = false;
	tcp_deliver_resume(p.c);
	cr_assert_eq(p.delivered, 100);
	cr_assert_eq(p.peer_fin, 1);
	cr_assert_eq(p.closed, 1);
}

Test(tcp_close, data_after_the_peers_fin_is_not_taken)
{
	IN("F. 1:1 ack 1");
	OUT(". 1:1 ack 2");
	IN(". 2:52 ack 1");
	OUT(". 1:1 ack 2");
	cr_assert_eq(p.delivered, 0);
}

Test(tcp_close, fin_wait_2_does_not_last_for_ever)
{
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN(". 1:1 ack 2");
	STATE("FIN-WAIT-2");
	WAIT(61000 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
}

/* Enters FIN-WAIT-2. */
static void
half_close(void)
{
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN(". 1:1 ack 2");
	STATE("FIN-WAIT-2");
}

Test(tcp_close, segments_without_new_bytes_do_not_extend_fin_wait_2_rfc9293_3_6)
{
	uint64_t t0 = p.now;

	half_close();
	for (unsigned i = 0; i < 12; i++) {
		WAIT(7000 * MS);
		if (p.closed)
			break;
		IN(". 0:0 ack 2");   /* a keepalive probe */
		IN(". 1:1 ack 2");   /* a duplicate */
		IN(". 21:31 ack 2"); /* behind a gap */
	}
	STATE("CLOSED");
	cr_assert_leq(p.now - t0, 65000 * MS);
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(p.slices, 0);
}

/* The peer sends ten new bytes, `every` ns after the last ones, `n` times or until the end. */
static void
drip(unsigned n, uint64_t every)
{
	for (unsigned i = 0; i < n; i++) {
		char text[64];

		WAIT(every);
		if (p.closed)
			return;
		snprintf(text, sizeof(text), ". %u:%u ack 2", 1 + 10 * i, 11 + 10 * i);
		IN(text);
	}
}

Test(tcp_close, new_bytes_extend_fin_wait_2_rfc9293_3_6)
{
	half_close();
	drip(20, 50000 * MS);
	STATE("FIN-WAIT-2");
	cr_assert_eq(p.delivered, 200);
	WAIT(121000 * MS);
	STATE("CLOSED");
}

Test(tcp_close, limited_life_ends_a_half_closed_connection_in_use)
{
	uint64_t t0 = p.now;

	tcp_limit_life(p.c, p.now);
	half_close();
	tcp_limit_life(p.c, p.now + MS); /* the first call counts */
	drip(12, 7000 * MS);
	STATE("CLOSED");
	cr_assert_leq(p.now - t0, 65000 * MS);
	cr_assert_eq(p.reason, -ETIMEDOUT);
}

Test(tcp_close, limited_life_resets_a_connection_that_is_acknowledged_byte_by_byte)
{
	uint64_t t0 = p.now;

	tcp_limit_life(p.c, p.now);
	sc_send(&p, 1, 100);
	for (unsigned i = 0; i < 12; i++) {
		char text[64];

		p.nout = p.seen = 0;
		WAIT(7000 * MS);
		if (p.closed)
			break;
		snprintf(text, sizeof(text), ". 1:1 ack %u", 2 + i);
		IN(text);
	}
	STATE("CLOSED");
	cr_assert_leq(p.now - t0, 65000 * MS);
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT), 1);
	cr_assert_eq(sc_count(&p, TCP_LEFT_END), 0);
	cr_assert_eq(p.recs, 0);
}

/* ---- Resets ---- */

Test(tcp_close, abort_sends_a_reset_rfc9293_3_10_5)
{
	sc_send(&p, 1, 100);
	OUT(". 1:101");
	tcp_abort(p.c, p.now);
	OUT("R. 101:101 ack 1");
	STATE("CLOSED");
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, -ECONNABORTED);
	cr_assert_eq(p.recs, 0);
}

Test(tcp_close, a_reset_that_the_port_could_not_take_goes_later)
{
	p.busy = true;
	tcp_abort(p.c, p.now);
	NONE();
	p.busy = false;
	sc_poll(&p);
	OUT("R. 1:1 ack 1");
}

Test(tcp_close, reset_at_rcv_nxt_ends_it_rfc5961_3_2)
{
	sc_send(&p, 3, 100);
	IN("R 1:1");
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ECONNRESET);
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RESET_IN), 1);
}

Test(tcp_close, segment_without_connection_is_reset_rfc9293_3_10_7_1)
{
	tcp_abort(p.c, p.now);
	p.seen = p.nout;
	IN(". 5:15 ack 77");
	OUT("R 77:77");
	cr_assert(p.last.orphan);
	IN("S 5:5");
	cr_assert_eq(p.out[p.seen].tcp.flags, TCP_RST | TCP_ACK);
	cr_assert_eq(p.out[p.seen].tcp.seq, 0);
	cr_assert_eq(p.out[p.seen].tcp.ack, SC_PEER_ISN + 6);
	p.seen++;
	IN("R 5:5");
	NONE();
	cr_assert_eq(sc_count(&p, TCP_NO_CONN), 3);
}

Test(tcp_close, resets_for_segments_without_connection_are_limited_in_rate)
{
	const struct wire_tcp syn = {.sport = 9, .dport = 10, .flags = TCP_SYN, .wscale = 0xff};
	uint64_t before;

	tcp_abort(p.c, p.now);
	before = sc_count(&p, TCP_RESET_OUT);
	for (unsigned i = 0; i < 1000; i++) {
		tcp_orphan_input(p.s, p.now, &p.t, &syn, NULL);
		p.nout = 0;
	}
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT) - before, 256);
	cr_assert_eq(sc_count(&p, TCP_RESET_LIMIT), 1000 - 256);
	for (unsigned i = 0; i < 1000; i++) {
		tcp_orphan_input(p.s, p.now + 10000000, &p.t, &syn, NULL);
		p.nout = 0;
	}
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT) - before, 256 + 100, "10000 a second");
}

Test(tcp_close, abort_from_inside_deliver_is_safe)
{
	p.abort_in_deliver = true;
	IN("F. 1:101 ack 1");
	OUT("R. 1:1 ack 101");
	STATE("CLOSED");
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.peer_fin, 0);
}

Test(tcp_close, connection_that_ends_with_work_to_do_leaves_the_round)
{
	IN("F. 1:1 ack 1");
	sc_send(&p, 1, 10);
	tcp_close(p.c, p.now);
	sc_poll(&p);
	p.seen = p.nout;
	/* Data that requires an answer, and the end of LAST-ACK, in one segment. */
	IN(". 2:12 ack 12");
	STATE("CLOSED");
	p.t.rport++;
	p.connected = 0;
	sc_establish(&p); /* uses the same memory */
	sc_send(&p, 1, 10);
	OUT(". 1:11 ack 1");
	NONE();
}

/* ---- TIME-WAIT ---- */

static void
to_time_wait(void)
{
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN("F. 1:1 ack 2");
	STATE("TIME-WAIT");
	p.seen = p.nout;
}

Test(tcp_close, time_wait_acknowledges_a_repeated_fin_and_starts_again)
{
	to_time_wait();
	WAIT(p.cfg.msl_ns);
	IN("F. 1:1 ack 2");
	OUT(". 2:2 ack 2");
	WAIT(p.cfg.msl_ns + p.cfg.msl_ns / 2);
	STATE("TIME-WAIT");
	WAIT(p.cfg.msl_ns);
	STATE("CLOSED");
}

Test(tcp_close, time_wait_is_not_cut_short_by_a_reset_rfc1337)
{
	to_time_wait();
	IN("R 2:2");
	STATE("TIME-WAIT");
}

Test(tcp_close, time_wait_beyond_the_bound_drops_the_oldest)
{
	to_time_wait();
	for (unsigned i = 0; i < p.cfg.max_time_wait; i++) {
		p.c = NULL;
		p.t.rport++;
		p.connected = p.closed = p.removed = 0;
		sc_establish(&p);
		to_time_wait();
		cr_assert_eq(p.removed, i + 1 == p.cfg.max_time_wait, "connection %u", i + 1);
	}
}
