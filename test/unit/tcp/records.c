/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: where TCP cuts them, when they share a segment, and that retransmission keeps them. Runs
 * of TSO, the path MTU, and a busy port. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
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

TestSuite(tcp_records, .init = establish, .fini = end);

Test(tcp_records, whole_records_share_a_segment)
{
	sc_send(&p, 20, 100);
	OUT(". 1:1401");
	cr_assert_eq(p.last.nrecs, 14);
	OUT("P. 1401:2001");
	NONE();
}

Test(tcp_records, record_that_does_not_fit_beside_others_goes_whole)
{
	sc_send(&p, 3, 1000);
	OUT(". 1:1001");
	OUT(". 1001:2001");
	OUT("P. 2001:3001");
	NONE();
}

Test(tcp_records, record_larger_than_the_emss_is_cut)
{
	sc_send(&p, 1, 3000);
	OUT(". 1:1461");
	OUT(". 1461:2921");
	OUT(". 2921:3001");
	IN(". 1:1 ack 3001");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_records, cut_without_memory_is_tried_again)
{
	p.no_split = true;
	sc_send(&p, 1, 3000);
	NONE();
	sc_poll(&p);
	NONE();
	p.no_split = false;
	sc_poll(&p);
	OUT(". 1:1461");
}

Test(tcp_records, retransmission_keeps_the_boundaries)
{
	sc_send(&p, 14, 100);
	sc_send(&p, 2, 300);
	sc_send(&p, 1, 77);
	OUT(". 1:1401");
	OUT(". 1401:2001");
	OUT(". 2001:2078");
	WAIT(2 * MS); /* probe */
	p.seen = p.nout;
	WAIT(20 * MS);
	OUT(". 1:1401");
	cr_assert_eq(p.last.nrecs, 14);
	IN(". 1:1 ack 1401");
	OUT(". 1401:2001");
	cr_assert_eq(p.last.nrecs, 2);
	OUT(". 2001:2078");
}

Test(tcp_records, part_of_a_segment_acknowledged_is_not_sent_again)
{
	sc_send(&p, 3, 400);
	OUT(". 1:1201");
	IN(". 1:1 ack 501"); /* a record and a quarter */
	cr_assert_eq(p.recs, 2);
	WAIT(20 * MS);
	OUT(". 501:1201");
	cr_assert_eq(p.last.off, 100);
	cr_assert_eq(p.last.nrecs, 2);
	IN(". 1:1 ack 1201");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_records, send_space_counts_until_the_acknowledgement)
{
	int64_t before = tcp_send_space(p.c);

	sc_send(&p, 2, 700);
	cr_assert_eq(tcp_send_space(p.c), before - 1400);
	cr_assert(!tcp_all_acked(p.c));
	IN(". 1:1 ack 701");
	cr_assert_eq(tcp_send_space(p.c), before - 700);
	cr_assert_eq(p.sent_ev, 1);
	IN(". 1:1 ack 1401");
	cr_assert_eq(tcp_send_space(p.c), before);
	cr_assert(tcp_all_acked(p.c));
}

/* ---- TSO ---- */

Test(tcp_records, tso_takes_a_run_of_equal_segments)
{
	tcp_set_tso(p.c, 65536);
	sc_send(&p, 5, 1400);
	OUT("P. 1:7001");
	cr_assert_eq(p.last.gso, 1400);
	cr_assert_eq(p.last.nrecs, 5);
	NONE();
}

Test(tcp_records, tso_run_ends_with_a_shorter_segment)
{
	tcp_set_tso(p.c, 65536);
	p.busy = true;
	sc_send(&p, 3, 1400);
	sc_send(&p, 1, 900);
	sc_send(&p, 1, 1400);
	p.busy = false;
	sc_poll(&p);
	OUT(". 1:5101");
	cr_assert_eq(p.last.gso, 1400);
	OUT("P. 5101:6501");
	cr_assert_eq(p.last.gso, 0);
}

Test(tcp_records, tso_run_ends_before_a_longer_segment)
{
	tcp_set_tso(p.c, 65536);
	p.busy = true;
	sc_send(&p, 2, 1400);
	sc_send(&p, 1, 1401);
	p.busy = false;
	sc_poll(&p);
	OUT(". 1:2801");
	cr_assert_eq(p.last.gso, 1400);
	OUT(". 2801:4202");
	cr_assert_eq(p.last.gso, 0);
}

Test(tcp_records, tso_segments_hold_several_whole_records)
{
	tcp_set_tso(p.c, 65536);
	sc_send(&p, 28, 100);
	OUT(". 1:2801");
	cr_assert_eq(p.last.gso, 1400);
	NONE();
}

Test(tcp_records, tso_keeps_to_its_bound_and_the_windows)
{
	tcp_set_tso(p.c, 4500);
	sc_send(&p, 12, 1460);
	OUT(". 1:4381");
	OUT(". 4381:8761");
	OUT(". 8761:13141");
	OUT(". 13141:14601"); /* ten segments: the initial window */
	NONE();
}

Test(tcp_records, tso_segments_are_lost_one_by_one)
{
	tcp_set_tso(p.c, 65536);
	sc_send(&p, 6, 1400);
	OUT(". 1:8401");
	p.now += 100 * US;
	IN(". 1:1 ack 1401 sack 2801:8401");
	OUT(". 1401:2801");
	cr_assert_eq(p.last.gso, 0);
}

/* ---- The path's MTU ---- */

Test(tcp_records, too_big_makes_smaller_segments_rfc1191_6)
{
	uint32_t cwnd = sc_info(&p).cwnd;

	sc_send(&p, 2, 1460);
	OUT(". 1:1461");
	OUT(". 1461:2921");
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 1000);
	cr_assert_eq(tcp_emss(p.c), 960);
	cr_assert_eq(p.emss_ev, 1);
	sc_poll(&p);
	OUT(". 1:961");
	OUT(". 961:1461");
	OUT(". 1461:2421");
	OUT(". 2421:2921");
	NONE();
	cr_assert_eq(sc_info(&p).cwnd, cwnd); /* not congestion */
	IN(". 1:1 ack 2921");
	cr_assert_eq(p.recs, 0);
	sc_send(&p, 1, 1000);
	OUT(". 2921:3881");
	OUT(". 3881:3921");
}

Test(tcp_records, too_big_keeps_small_records_whole)
{
	sc_send(&p, 14, 100);
	OUT(". 1:1401");
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 790); /* emss 750 */
	sc_poll(&p);
	OUT(". 1:701");
	cr_assert_eq(p.last.nrecs, 7);
	OUT(". 701:1401");
	cr_assert_eq(p.last.nrecs, 7);
}

Test(tcp_records, too_big_after_part_of_a_record_was_acknowledged)
{
	sc_send(&p, 1, 1400);
	OUT(". 1:1401");
	IN(". 1:1 ack 901");
	tcp_icmp_mtu(p.c, p.now, p.iss + 901, 576);
	sc_poll(&p);
	OUT(". 901:1401");
	cr_assert_eq(p.last.off, 900);
	tcp_icmp_mtu(p.c, p.now, p.iss + 901, 576);
	IN(". 1:1 ack 1401");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_records, too_big_must_quote_bytes_in_flight_rfc5927_7)
{
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 1000);
	cr_assert_eq(tcp_emss(p.c), 1460);
	sc_send(&p, 1, 100);
	tcp_icmp_mtu(p.c, p.now, p.iss, 1000);
	tcp_icmp_mtu(p.c, p.now, p.iss + 101, 1000);
	cr_assert_eq(tcp_emss(p.c), 1460);
	tcp_icmp_mtu(p.c, p.now, p.iss + 100, 1600); /* a report never raises the path MTU */
	cr_assert_eq(tcp_emss(p.c), 1460);
	tcp_icmp_mtu(p.c, p.now, p.iss + 100, 67); /* each IPv4 link carries 68 bytes */
	tcp_icmp_mtu(p.c, p.now, p.iss + 100, 1);
	cr_assert_eq(tcp_emss(p.c), 1460);
	cr_assert_eq(p.emss_ev, 0);
}

Test(tcp_records, too_big_without_an_mtu_means_576_rfc1191_5)
{
	sc_send(&p, 1, 1400);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 0);
	cr_assert_eq(tcp_emss(p.c), 536);
}

Test(tcp_records, too_big_below_1280_is_void_with_ipv6_rfc8201_4)
{
	sc_end(&p);
	sc_new(&p);
	sk_addr_parse("2001:db8::1", &p.t.laddr);
	sk_addr_parse("2001:db8::2", &p.t.raddr);
	sc_start(&p);
	sc_establish(&p);
	sc_send(&p, 1, 1400);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 1279);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 0);
	cr_assert_eq(tcp_emss(p.c), 1440);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 1280);
	cr_assert_eq(tcp_emss(p.c), 1220);
}

/* Sends two full segments on a path of `mtu` bytes, which answers each of them. Returns after the
 * timeout that proves the report. */
static void
small_path(uint32_t mtu)
{
	sc_send(&p, 2, 1460);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, mtu);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1461, mtu);
	cr_assert_eq(tcp_emss(p.c), 1460, "no evidence yet");
	p.seen = p.nout;
	WAIT(14 * MS);
	cr_assert_eq(tcp_emss(p.c), mtu - 40);
	cr_assert_eq(sc_count(&p, TCP_PMTU), 1);
	cr_assert_eq(p.emss_ev, 1);
}

Test(tcp_records, path_of_552_bytes_is_used_after_a_timeout_rfc1191_3)
{
	uint32_t at = 1;

	small_path(552);
	OUT(". 1461:2921"); /* the probe of the tail, before the timeout */
	for (unsigned i = 0; i < 10 && p.recs; i++) {
		char text[64];

		for (; p.seen < p.nout; p.seen++) {
			cr_assert_leq(p.out[p.seen].len, 512);
			at = p.out[p.seen].tcp.seq - p.iss + p.out[p.seen].len;
		}
		p.now += 100 * US;
		snprintf(text, sizeof(text), ". 1:1 ack %u", at);
		IN(text);
	}
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
}

Test(tcp_records, path_of_68_bytes_is_the_smallest_rfc1191_3)
{
	small_path(68);
	OUT(". 1461:2921");
	OUT(". 1:29");
	IN(". 1:1 ack 29");
	OUT(". 29:57");
}

Test(tcp_records, too_big_of_a_retransmission_is_used_at_once_rfc5927_7_2)
{
	sc_send(&p, 1, 1460);
	p.seen = p.nout;
	WAIT(2 * MS);
	OUT(". 1:1461"); /* the tail loss probe */
	tcp_icmp_mtu(p.c, p.now, p.iss + 1, 552);
	sc_poll(&p);
	OUT(". 1:513");
	cr_assert_eq(sc_count(&p, TCP_RTO), 0);
}

Test(tcp_records, too_big_that_an_ack_refutes_is_not_used_rfc5927_7_2)
{
	sc_send(&p, 2, 1460);
	IN(". 1:1 ack 1461"); /* the path carries 1500 bytes */
	tcp_icmp_mtu(p.c, p.now, p.iss + 1461, 1000);
	IN(". 1:1 ack 2921"); /* and did so again */
	sc_send(&p, 1, 1460);
	WAIT(30 * MS);
	cr_assert_geq(sc_count(&p, TCP_RTO), 1);
	cr_assert_eq(tcp_emss(p.c), 1460);
	IN(". 1:1 ack 4381");
	cr_assert_eq(sc_count(&p, TCP_PMTU), 0);
}

Test(tcp_records, too_big_of_another_segment_than_the_first_waits_rfc5927_7_2)
{
	sc_send(&p, 2, 1460);
	IN(". 1:1 ack 1461");
	sc_send(&p, 3, 1460);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1 + 3 * 1460, 600);
	WAIT(30 * MS);
	cr_assert_geq(sc_count(&p, TCP_RTO), 1);
	cr_assert_eq(tcp_emss(p.c), 1460);
}

Test(tcp_records, path_that_became_smaller_is_used_after_a_timeout_rfc5927_7_2)
{
	sc_send(&p, 1, 1460);
	IN(". 1:1 ack 1461");
	sc_send(&p, 1, 1460);
	tcp_icmp_mtu(p.c, p.now, p.iss + 1461, 1200);
	cr_assert_eq(tcp_emss(p.c), 1460);
	WAIT(30 * MS);
	cr_assert_eq(tcp_emss(p.c), 1160);
}

Test(tcp_records, path_mtu_is_tried_again_after_ten_minutes_rfc1191_6_3)
{
	small_path(552);
	IN(". 1:1 ack 2921");
	WAIT(599000 * MS);
	cr_assert_eq(tcp_emss(p.c), 512);
	WAIT(2000 * MS);
	cr_assert_eq(tcp_emss(p.c), 1460);
	cr_assert_eq(p.emss_ev, 2);
	p.seen = p.nout;
	sc_send(&p, 1, 1460);
	OUT(". 2921:4381");
	STATE("ESTABLISHED");
	cr_assert_neq(tcp_stack_deadline(p.s), UINT64_MAX);
	IN(". 1:1 ack 4381");
	WAIT(2000 * MS);
	cr_assert_eq(tcp_stack_deadline(p.s), UINT64_MAX, "no timer is left");
}

Test(tcp_records, path_mtu_and_keepalive_share_a_timer_rfc1191_6_3)
{
	sc_end(&p);
	sc_new(&p);
	p.cfg.keepalive_idle_ns = 500000 * MS;
	sc_start(&p);
	sc_establish(&p);
	small_path(552);
	IN(". 1:1 ack 2921");
	p.seen = p.nout;
	WAIT(500100 * MS);
	OUT(". 2920:2920");
	IN(". 1:1 ack 2921");
	WAIT(100100 * MS);
	cr_assert_eq(tcp_emss(p.c), 1460);
	WAIT(400100 * MS);
	OUT(". 2920:2920");
	NONE();
}

/* A lie at the moment of a timeout: the number of packets in flight does not grow. */
Test(tcp_records, tiny_path_does_not_multiply_the_packets_rfc1191_3)
{
	uint32_t acked = 1, most;

	sc_send(&p, 400, 1460);
	for (unsigned i = 0; i < 5; i++) {
		const struct sc_out *o = &p.out[p.nout - 1];
		char text[64];

		acked = o->tcp.seq - p.iss + o->len;
		p.nout = p.seen = 0;
		p.now += 100 * US;
		snprintf(text, sizeof(text), ". 1:1 ack %u", acked);
		IN(text);
	}
	most = sc_info(&p).cwnd / 1460;
	tcp_icmp_mtu(p.c, p.now, p.iss + acked, 68);
	WAIT(14 * MS);
	cr_assert_eq(tcp_emss(p.c), 28);
	for (unsigned i = 0; i < 12; i++) { /* slow start, up to the scaled ssthresh */
		const struct sc_out *o = &p.out[p.nout - 1];
		char text[64];

		acked = o->tcp.seq - p.iss + o->len;
		p.nout = p.seen = 0;
		p.now += 100 * US;
		snprintf(text, sizeof(text), ". 1:1 ack %u", acked);
		IN(text);
		cr_assert_leq(p.nout, most, "%u packets, and %u before", p.nout, most);
	}
}

/* ---- Cuts that the peer causes ---- */

#define CUTS 256 /* of a connection */

/* Returns the records that cuts have made, in a queue of records of `len` bytes each. The first one
 * may be acknowledged in part. */
static int64_t
live_cuts(uint32_t len)
{
	return p.recs - sc_info(&p).queued / len;
}

/* Acknowledges all that was sent, and returns the number of the last byte. */
static uint32_t
ack_all(uint32_t acked)
{
	char text[64];

	for (unsigned i = 0; i < p.nout; i++)
		acked = SK_MAX(acked, p.out[i].tcp.seq - p.iss + p.out[i].len);
	p.nout = p.seen = 0;
	p.now += 50 * US;
	snprintf(text, sizeof(text), ". 1:1 ack %u", acked);
	IN(text);
	return acked;
}

Test(tcp_records, cuts_for_a_small_mss_are_bounded)
{
	uint32_t acked = 1;

	sc_end(&p);
	sc_new(&p);
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 win 65535 mss 88 sackok ws 7");
	p.nout = p.seen = 0;
	sc_send(&p, 4096, 256); /* three cuts each */
	for (unsigned i = 0; i < 1000 && p.recs > 0; i++) {
		acked = ack_all(acked);
		cr_assert_leq(live_cuts(256), CUTS + 1);
	}
	cr_assert_eq(acked, 4096 * 256 + 1);
	cr_assert_eq(p.recs, 0);
}

/* The path becomes tiny when the first segment of a large flight was retransmitted. The peer then
 * reports each retransmitted piece, from number `from` on, and acknowledges nothing. */
static void
cuts_for_a_small_path(uint32_t from)
{
	static struct sc_out out[SC_MAX_OUT];
	uint32_t acked = 1;
	char text[96];

	sc_send(&p, 400, 1460);
	for (unsigned i = 0; i < 5; i++)
		acked = ack_all(acked);
	p.nout = p.seen = 0;
	snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", acked, acked + 1460,
		acked + 5 * 1460);
	IN(text);
	tcp_icmp_mtu(p.c, p.now, p.iss + acked, 68);
	cr_assert_eq(tcp_emss(p.c), 28);
	for (unsigned i = 0; i < 500 && !p.closed; i++) {
		unsigned n = p.nout;

		memcpy(out, p.out, n * sizeof(out[0]));
		p.nout = p.seen = 0;
		WAIT(100 * US);
		for (unsigned k = 0; k < n; k++) {
			uint32_t at = out[k].tcp.seq - p.iss;

			if (out[k].len == 0 || at < acked + from)
				continue;
			snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", acked, at,
				at + out[k].len);
			IN(text);
		}
		cr_assert_leq(live_cuts(1460), CUTS + 8);
	}
	p.nout = p.seen = 0;
	for (unsigned i = 0; i < 4000 && p.recs > 0; i++) {
		acked = ack_all(acked);
		WAIT(20 * MS);
	}
	cr_assert_eq(acked, 400 * 1460 + 1);
	cr_assert_eq(p.recs, 0);
}

Test(tcp_records, cuts_for_a_small_path_are_bounded)
{
	cuts_for_a_small_path(1);
}

/* Nothing counts as in flight. */
Test(tcp_records, cuts_are_bounded_when_the_peer_reports_all_pieces)
{
	cuts_for_a_small_path(0);
}

/* ---- Unreachable ---- */

static void
unreachable_in_syn_sent(uint32_t off, bool hard)
{
	sc_end(&p);
	sc_new(&p);
	p.cfg.syn_retries = 2;
	sc_start(&p);
	sc_connect(&p);
	tcp_icmp_unreachable(p.c, p.now, p.iss + off, hard);
}

Test(tcp_records, hard_error_in_syn_sent_ends_the_open_rfc9293_3_9_2_2)
{
	unreachable_in_syn_sent(0, true);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ECONNREFUSED);
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(sc_count(&p, TCP_UNREACHABLE), 1);
}

Test(tcp_records, error_in_syn_sent_must_quote_the_syn_rfc5927_4_1)
{
	unreachable_in_syn_sent(1, true);
	STATE("SYN-SENT");
	tcp_icmp_unreachable(p.c, p.now, p.iss - 1, true);
	STATE("SYN-SENT");
	cr_assert_eq(sc_count(&p, TCP_UNREACHABLE), 0);
}

Test(tcp_records, soft_error_is_the_reason_of_the_timeout_rfc9293_3_9_2_2)
{
	unreachable_in_syn_sent(0, false);
	STATE("SYN-SENT");
	WAIT(10000 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -EHOSTUNREACH);
}

Test(tcp_records, hard_error_does_not_end_an_established_connection_rfc5927_5_2)
{
	sc_send(&p, 1, 100);
	tcp_icmp_unreachable(p.c, p.now, p.iss + 1, true);
	STATE("ESTABLISHED");
	IN(". 1:1 ack 101");
	tcp_icmp_unreachable(p.c, p.now, p.iss + 101, true); /* nothing is in flight */
	cr_assert_eq(sc_count(&p, TCP_UNREACHABLE), 1);
}

Test(tcp_records, hard_error_in_syn_received_ends_the_open_rfc9293_3_9_2_2)
{
	sc_end(&p);
	sc_new(&p);
	sc_start(&p);
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	STATE("SYN-RECEIVED");
	tcp_icmp_unreachable(p.c, p.now, p.iss, true);
	STATE("CLOSED");
	cr_assert_eq(p.closed, 0); /* the owner had no event of it */
}

/* ---- A busy port ---- */

Test(tcp_records, busy_port_loses_nothing)
{
	p.busy = true;
	sc_send(&p, 3, 1000);
	IN("F. 1:101 ack 1");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	NONE();
	cr_assert_gt(sc_count(&p, TCP_OUTPUT_BUSY), 0);
	cr_assert_leq(tcp_stack_deadline(p.s), p.now);
	p.busy = false;
	sc_poll(&p);
	OUT(". 1:1001 ack 102");
	OUT(". 1001:2001 ack 102");
	OUT("F. 2001:3001 ack 102");
	NONE();
}

Test(tcp_records, busy_port_does_not_stop_the_timer_rfc6298_5)
{
	uint64_t t0 = p.now;

	sc_send(&p, 1, 1460);
	OUT(". 1:1461 ack 1");
	p.busy = true; /* neither the probe nor the retransmission leaves */
	while (!p.closed && p.now - t0 < 60000 * MS) {
		p.now += 10 * MS;
		sc_poll(&p);
	}
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(p.recs, 0);
	NONE();
}

Test(tcp_records, budget_is_shared_among_connections)
{
	struct tcp_conn *first = p.c;
	unsigned n[2] = {0, 0};

	sc_send(&p, 1, 1);
	IN(". 1:1 ack 2");
	p.busy = true;
	sc_send(&p, 10, 1460);
	p.t.rport++;
	p.connected = 0;
	p.busy = false;
	p.c = NULL;
	cr_assert_eq(tcp_connect(p.s, p.now, &p.t, p.mtu, NULL, &p.c), 0);
	cr_assert_neq(p.c, first);
	p.seen = p.nout;
	cr_assert_eq(tcp_stack_poll(p.s, p.now, 4), 4);
	for (unsigned i = p.seen; i < p.nout; i++)
		n[p.out[i].tcp.dport == p.t.rport]++;
	cr_assert_eq(n[1], 1, "the SYN does not wait behind the other's ten segments");
	cr_assert_eq(n[0], 3);
}

Test(tcp_records, idle_stack_needs_no_poll)
{
	WAIT(1000 * MS); /* the handshake's deadlines */
	cr_assert_eq(tcp_stack_deadline(p.s), UINT64_MAX);
	sc_send(&p, 1, 10);
	cr_assert_lt(tcp_stack_deadline(p.s), p.now + p.cfg.rto_min_ns);
}
