/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: where TCP cuts them, when they share a segment, and that retransmission keeps them. Runs
 * of TSO, the path MTU, and a busy port. */
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
	tcp_icmp_mtu(p.c, p.now, p.iss + 901, 340); /* counts as 576 */
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
	tcp_icmp_mtu(p.c, p.now, p.iss + 100, 68);
	cr_assert_eq(tcp_emss(p.c), 536); /* not below the size that IPv4 hosts accept */
	cr_assert_eq(p.emss_ev, 1);
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

Test(tcp_records, idle_stack_wants_no_poll)
{
	WAIT(1000 * MS); /* the handshake's deadlines */
	cr_assert_eq(tcp_stack_deadline(p.s), UINT64_MAX);
	sc_send(&p, 1, 10);
	cr_assert_lt(tcp_stack_deadline(p.s), p.now + p.cfg.rto_min_ns);
}
