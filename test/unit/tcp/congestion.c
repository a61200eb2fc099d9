/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion control: slow start (RFC 5681), CUBIC (RFC 9438), DCTCP (RFC 8257), ECN (RFC 3168). */
#include <math.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "script.h"

#include "../../../lib/base/mem.h"

#define MSS 1460

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

TestSuite(tcp_congestion, .init = setup, .fini = end);

static void
establish(const char *cc, bool ecn)
{
	p.cfg.cc = cc;
	p.cfg.ecn = ecn;
	sc_start(&p);
	sc_establish(&p);
	IN(". 1:1 ack 1"); /* a large window */
}

static uint32_t sent_to = 1; /* the end of the sent bytes that ack_all() has acknowledged */

/* After `rtt`, the peer acknowledges all bytes in flight. */
static void
ack_all(uint64_t rtt, const char *flags)
{
	char text[64];

	for (; p.seen < p.nout; p.seen++)
		sent_to = p.out[p.seen].tcp.seq - p.iss + p.out[p.seen].len;
	p.nout = p.seen = 0;
	p.now += rtt;
	snprintf(text, sizeof(text), "%s 1:1 ack %u", flags, sent_to);
	IN(text);
}

static double
cwnd(void)
{
	return (double)sc_info(&p).cwnd / MSS;
}

Test(tcp_congestion, initial_window_is_ten_segments_rfc6928_2)
{
	establish("cubic", false);
	sc_send(&p, 20, MSS);
	cr_assert_eq(p.nout - p.seen, 10);
}

Test(tcp_congestion, slow_start_doubles_rfc5681_3_1)
{
	establish("cubic", false);
	sc_send(&p, 400, MSS);
	for (unsigned want = 20; want <= 160; want *= 2) {
		ack_all(MS, ".");
		cr_assert_float_eq(cwnd(), want, 0.01);
	}
}

/* Loses a burst of six segments that leaves more than half of the window unused and has no data
 * behind it, until the timeout. Then answers each round trip, and requires that it doubles. */
static void
lose_short_burst(const char *cc)
{
	establish(cc, cc[0] == 'd');
	sc_send(&p, 30, MSS);
	for (unsigned i = 0; i < 3; i++)
		ack_all(MS, ".");
	cr_assert_gt(cwnd(), 25);
	sc_send(&p, 12, MSS);
	WAIT(14 * MS);
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
	p.seen = p.nout - 1; /* the first segment, again */
	for (unsigned round = 1; round <= 4; round *= 2) {
		cr_assert_eq(p.nout - p.seen, round, "%u segments, not %u", p.nout - p.seen, round);
		ack_all(MS, ".");
	}
}

Test(tcp_congestion, timeout_of_a_limited_application_slow_starts_rfc5681_3_1)
{
	lose_short_burst("cubic");
}

Test(tcp_congestion, timeout_of_a_limited_application_slow_starts_with_dctcp_rfc8257_3_5)
{
	lose_short_burst("dctcp");
}

Test(tcp_congestion, window_that_the_peer_limits_does_not_grow_rfc9438_5_8)
{
	uint32_t before;

	establish("cubic", false);
	sc_send(&p, 60, MSS);
	ack_all(MS, ".");
	before = sc_info(&p).cwnd;
	cr_assert_float_eq(cwnd(), 20, 0.01);
	for (unsigned i = 0; i < 12; i++) {
		char text[64];

		/* Two segments of the peer's window per round trip. */
		p.now += MS;
		sent_to += 2 * MSS;
		snprintf(text, sizeof(text), ". 1:1 ack %u win 23", sent_to);
		IN(text);
		p.seen = p.nout;
	}
	cr_assert_leq(sc_info(&p).cwnd, before + 22 * MSS, "%u", sc_info(&p).cwnd);
}

Test(tcp_congestion, unused_window_does_not_grow_rfc9438_5_8)
{
	establish("cubic", false);
	for (unsigned i = 0; i < 50; i++) {
		sc_send(&p, 1, MSS);
		ack_all(MS, ".");
	}
	cr_assert_float_eq(cwnd(), 10, 0.01);
}

Test(tcp_congestion, idle_connection_starts_again_rfc5681_4_1)
{
	establish("cubic", false);
	sc_send(&p, 100, MSS);
	for (unsigned i = 0; i < 4; i++)
		ack_all(MS, ".");
	cr_assert_gt(cwnd(), 20);
	ack_all(MS, ".");
	p.now += 1000 * MS;
	sc_send(&p, 1, MSS);
	cr_assert_float_eq(cwnd(), 10, 0.01);
}

/* ---- CUBIC ---- */

static void
one_second_path(void)
{
	p.rtt = 1000 * MS;
	p.cfg.rto_min_ns = 8000 * MS;
	p.cfg.rto_max_ns = 60000 * MS;
	p.cfg.rto_initial_ns = 8000 * MS;
	establish("cubic", false);
	sc_send(&p, 500, MSS);
}

/* The first segment in flight is lost. After a second, the peer reports all the others; after
 * another second, it has all. */
static void
lose_one(uint32_t first)
{
	const struct sc_out *last = &p.out[p.nout - 1];
	char text[64];

	p.now += 1000 * MS;
	snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", first, first + MSS,
		last->tcp.seq - p.iss + last->len);
	IN(text);
	sent_to = last->tcp.seq - p.iss + last->len;
	ack_all(1000 * MS, ".");
}

/* Runs `n` seconds, each with one acknowledgement for all bytes in flight, against the RFC's
 * functions. */
static void
follow_cubic(double w, double w_max, unsigned n)
{
	const double k = cbrt((w_max - w) / 0.4);
	double reno = w, want;

	for (unsigned t = 0; t < n; t++) {
		sent_to = p.out[p.nout - 1].tcp.seq - p.iss + p.out[p.nout - 1].len;
		ack_all(1000 * MS, ".");
		reno += 3 * 0.3 / 1.7;
		want = w_max + 0.4 * pow(t + 1 - k, 3); /* the target, a round trip ahead */
		want = fmin(fmax(want, w), 1.5 * w);
		if (w_max + 0.4 * pow(t - k, 3) < reno)
			want = reno;
		cr_assert_float_eq(cwnd(), want, 0.05 * want, "second %u: %f segments, not %f", t,
			cwnd(), want);
		w = want;
	}
}

Test(tcp_congestion, cubic_grows_by_the_formula_rfc9438_4_2)
{
	one_second_path();
	lose_one(1);
	cr_assert_float_eq(cwnd(), 7, 0.01);
	follow_cubic(7, 10, 9);
	cr_assert_gt(cwnd(), 60); /* far beyond W_max: this was the convex part */
}

Test(tcp_congestion, cubic_converges_fast_rfc9438_4_7)
{
	one_second_path();
	lose_one(1);
	cr_assert_float_eq(cwnd(), 7, 0.01);
	sent_to = p.out[p.nout - 1].tcp.seq - p.iss + p.out[p.nout - 1].len;
	/* A loss below the old maximum of 10: the new one is 0.85 of the 7, and soon reached. */
	lose_one(p.out[p.nout - 1].tcp.seq - p.iss + p.out[p.nout - 1].len - 7 * MSS);
	cr_assert_float_eq(cwnd(), 4.9, 0.1);
	follow_cubic(cwnd(), 7 * 0.85, 4);
}

/* Returns the number behind the last byte that was sent. */
static uint32_t
sent_end(void)
{
	uint32_t end = sent_to;

	for (unsigned i = 0; i < p.nout; i++)
		end = SK_MAX(end, p.out[i].tcp.seq - p.iss + p.out[i].len);
	return end;
}

/* The least ssthresh is two segments. Where that is above the last maximum, 0.85 of a window of
 * two, the window has no plateau to return to: K is 0. For two seconds Reno's window is larger.
 * Then W_cubic is, and the window grows by half in a round trip (4.4). */
Test(tcp_congestion, cubic_above_its_last_maximum_is_convex_at_once_rfc9438_4_8)
{
	static const double want[] = {3, 4, 6, 9, 13.5};
	char text[64];

	one_second_path();
	for (unsigned i = 0; i < 7; i++) {
		p.now += 1000 * MS;
		snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", sent_to, sent_to + MSS,
			sent_end());
		IN(text);
		WAIT(1000 * MS);
		sent_to = sent_end();
		ack_all(0, ".");
	}
	cr_assert_float_eq(cwnd(), 2, 0.01);
	for (unsigned t = 0; t < SK_ARRAY_LEN(want); t++) {
		sent_to = sent_end();
		ack_all(1000 * MS, ".");
		cr_assert_float_eq(cwnd(), want[t], 0.01, "second %u: %f", t, cwnd());
	}
}

Test(tcp_congestion, cubic_is_friendly_to_reno_rfc9438_4_3)
{
	double w = 7;

	p.rtt = MS;
	establish("cubic", false);
	sc_send(&p, 500, MSS);
	p.now += MS;
	IN(". 1:1 ack 1 sack 1461:14601");
	ack_all(MS, ".");
	/* With a round trip of 1 ms, W_cubic does not move: alpha segments per round trip, and 1
	 * above the old window. */
	for (unsigned i = 0; i < 12; i++) {
		sent_to = p.out[p.nout - 1].tcp.seq - p.iss + p.out[p.nout - 1].len;
		ack_all(MS, ".");
		w += w < 10 ? 3 * 0.3 / 1.7 : 1;
		cr_assert_float_eq(cwnd(), w, 1.1, "round %u: %f, not %f", i, cwnd(), w);
	}
	cr_assert_gt(cwnd(), 12);
}

/* ---- Proportional rate reduction ---- */

/* Fills a window of 20 segments, with data behind it. The first segment in flight has the number
 * 14601, in a script 1 + 10 * MSS. */
static void
twenty_in_flight(void)
{
	p.rtt = MS;
	establish("cubic", false);
	sc_send(&p, 100, MSS);
	ack_all(MS, ".");
	cr_assert_eq(p.nout - p.seen, 20);
	p.seen = p.nout;
	p.now += MS;
}

/* The peer reports the segments [from, to) in flight; the first one is lost. Returns the bytes that
 * leave in answer. */
static uint32_t
report(unsigned from, unsigned to)
{
	uint32_t first = 1 + 10 * MSS, sent = 0;
	char text[64];

	snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", first, first + from * MSS,
		first + to * MSS);
	IN(text);
	for (; p.seen < p.nout; p.seen++)
		sent += p.out[p.seen].len;
	return sent;
}

Test(tcp_congestion, recovery_sends_in_proportion_to_what_arrives_rfc9937_6)
{
	uint32_t sent = 0, silent = 0;

	twenty_in_flight();
	/* Each of two reports releases a segment (RFC 3042). The third one begins recovery: of the
	 * 20 segments that are still in flight, 14 shall remain. */
	cr_assert_eq(report(1, 2) + report(1, 3), 2 * MSS);
	for (unsigned n = 1; n <= 17; n++) {
		uint32_t now = report(1, 3 + n);

		sent += now;
		silent = now ? 0 : silent + 1;
		cr_assert_leq(now, 2 * MSS, "a burst");
		cr_assert_leq(silent, 2, "a silence");
		cr_assert_float_eq((double)sent / MSS, n * 14.0 / 20, 1.5, "%u: %u", n, sent);
	}
	sent_to = p.out[p.nout - 1].tcp.seq - p.iss + MSS;
	ack_all(MS, ".");
	cr_assert_float_eq(cwnd(), 14, 0.01, "%f", cwnd());
}

Test(tcp_congestion, recovery_of_a_heavy_loss_sends_what_was_delivered_rfc9937_6)
{
	twenty_in_flight();
	/* 17 segments are lost: the window has room for 14, and three have left the network. */
	cr_assert_eq(report(17, 20), 3 * MSS);
	cr_assert_eq(sc_count(&p, TCP_RACK_LOSS), 17);
	/* Progress without a new loss permits one segment more than was delivered. */
	IN(". 1:1 ack 16061 sack 39421:43801");
	cr_assert_eq(p.nout - p.seen, 2);
	p.seen = p.nout;
	IN(". 1:1 ack 18981 sack 39421:43801");
	cr_assert_eq(p.nout - p.seen, 3);
}

Test(tcp_congestion, undone_recovery_restores_the_window_rfc9937_6)
{
	twenty_in_flight();
	cr_assert_leq(report(1, 4), 2 * MSS);
	IN(". 1:1 ack 43801 sack 14601:16061"); /* the segment was only late */
	cr_assert_geq(cwnd(), 20);
}

Test(tcp_congestion, timeout_in_recovery_reduces_from_its_target_rfc9937_6)
{
	twenty_in_flight();
	report(17, 20);
	WAIT(30 * MS);
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
	cr_assert_leq(cwnd(), 4);
	cr_assert_geq(sc_info(&p).ssthresh, (uint32_t)(0.7 * 14 * MSS) - MSS);
}

/* ---- ECN ---- */

Test(tcp_congestion, ecn_is_negotiated_rfc3168_6_1_1)
{
	p.cfg.ecn = true;
	sc_start(&p);
	sc_connect(&p);
	OUT("SEW 0:0");
	IN("S.E 0:0 ack 1 mss 1460 sackok ws 7");
	OUT(". 1:1");
	cr_assert_eq(p.last.ecn, IP_ECN_NOT); /* not on a pure acknowledgement */
	sc_send(&p, 1, 100);
	OUT(". 1:101 ect");
}

Test(tcp_congestion, ecn_is_accepted_rfc3168_6_1_1)
{
	p.cfg.ecn = true;
	sc_start(&p);
	sc_listen(&p);
	IN("SEW 0:0 mss 1460");
	OUT("S.E 0:0 ack 1");
	IN(". 1:1 ack 1");
	sc_send(&p, 1, 100);
	OUT(". 1:101 ect");
}

Test(tcp_congestion, ecn_needs_both_rfc3168_6_1_1)
{
	p.cfg.ecn = true;
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1460");
	p.seen = p.nout;
	sc_send(&p, 1, 100);
	OUT(". 1:101");
	cr_assert_eq(p.last.ecn, IP_ECN_NOT);
}

Test(tcp_congestion, repeated_syn_does_not_ask_for_ecn_rfc3168_6_1_1_1)
{
	p.cfg.ecn = true;
	sc_start(&p);
	sc_connect(&p);
	OUT("SEW 0:0");
	WAIT(p.cfg.rto_initial_ns + MS);
	OUT("S 0:0");
}

Test(tcp_congestion, retransmissions_are_not_ect_rfc3168_6_1_5)
{
	establish("cubic", true);
	sc_send(&p, 1, 100);
	OUT(". 1:101 ect");
	WAIT(20 * MS);
	OUT(". 1:101");
	cr_assert_eq(p.last.ecn, IP_ECN_NOT);
}

Test(tcp_congestion, marks_are_echoed_until_cwr_rfc3168_6_1_3)
{
	establish("cubic", true);
	IN(". 1:101 ack 1 ce");
	OUT(".E 1:1 ack 101");
	IN(". 101:201 ack 1 ect");
	WAIT(MS);
	OUT(".E 1:1 ack 201");
	IN(".W 201:301 ack 1 ect");
	WAIT(MS);
	OUT(". 1:1 ack 301");
	cr_assert_eq(sc_count(&p, TCP_ECN_CE), 1);
}

Test(tcp_congestion, echo_reduces_once_per_window_rfc3168_6_1_2)
{
	establish("cubic", true);
	sc_send(&p, 30, MSS);
	p.seen = p.nout;
	p.now += MS;
	IN(".E 1:1 ack 1461");
	cr_assert_float_eq(cwnd(), 7, 0.71);
	IN(".E 1:1 ack 2921");
	IN(".E 1:1 ack 4381");
	cr_assert_float_eq(cwnd(), 7, 0.71);
	IN(".E 1:1 ack 8761");
	OUT(".W 14601:16061 ect"); /* the next new data confirms it */
	cr_assert_eq(sc_info(&p).retransmits, 0);
	OUT(". 16061:17521 ect");
}

/* ---- DCTCP ---- */

Test(tcp_congestion, dctcp_alpha_decides_the_reduction_rfc8257_3_3)
{
	double alpha = 1, before;

	establish("dctcp", true);
	for (unsigned i = 0; i < 20; i++) { /* twenty windows without a mark */
		sc_send(&p, 1, MSS);
		ack_all(MS, ".");
		alpha *= 15.0 / 16;
	}
	before = cwnd();
	sc_send(&p, 1, MSS);
	ack_all(MS, ".E"); /* a window with marks only */
	alpha = alpha * 15 / 16 + 1.0 / 16;
	cr_assert_float_eq(cwnd(), before * (1 - alpha / 2), 0.01, "%f of %f, alpha %f", cwnd(),
		before, alpha);
}

Test(tcp_congestion, dctcp_first_mark_halves_rfc8257_3_3)
{
	establish("dctcp", true);
	sc_send(&p, 10, MSS);
	ack_all(MS, ".E");
	cr_assert_float_eq(cwnd(), 5, 0.01);
}

Test(tcp_congestion, dctcp_receiver_reports_each_change_rfc8257_3_2)
{
	establish("dctcp", true);
	IN(". 1:101 ack 1 ect nopoll");
	IN(". 101:201 ack 1 ce nopoll");
	OUT(". 1:1 ack 101"); /* acknowledges the bytes before the change, with the old state */
	IN(". 201:301 ack 1 ce nopoll");
	IN(". 301:401 ack 1 ect nopoll");
	OUT(".E 1:1 ack 301");
	WAIT(MS);
	OUT(". 1:1 ack 401");
	NONE();
}

Test(tcp_congestion, dctcp_loss_halves_rfc8257_3_5)
{
	establish("dctcp", true);
	sc_send(&p, 10, MSS);
	p.now += MS;
	IN(". 1:1 ack 1 sack 1461:14601");
	cr_assert_float_eq(cwnd(), 5, 0.01);
}

/* Byte by byte, from the window that a loss leaves. */
Test(tcp_congestion, dctcp_grows_by_a_segment_for_each_window_of_bytes_rfc8257_3_5)
{
	uint32_t w, end;
	char text[64];

	establish("dctcp", true);
	sc_send(&p, 40, MSS);
	p.now += MS;
	IN(". 1:1 ack 1 sack 1461:14601");
	ack_all(MS, "."); /* ends the recovery */
	w = sc_info(&p).cwnd;
	end = sent_to;
	p.now += MS;
	snprintf(text, sizeof(text), ". 1:1 ack %u", end + w - 1);
	IN(text);
	cr_assert_eq(sc_info(&p).cwnd, w);
	snprintf(text, sizeof(text), ". 1:1 ack %u", end + w);
	IN(text);
	cr_assert_eq(sc_info(&p).cwnd, w + MSS);
	for (unsigned i = 0; i < 8; i++)
		ack_all(MS, ".");
}

Test(tcp_congestion, none_neither_grows_nor_shrinks)
{
	uint32_t w;

	establish("none", false);
	w = sc_info(&p).cwnd;
	sc_send(&p, 300, MSS);
	cr_assert_eq(p.nout - p.seen, 300);
	p.now += MS;
	IN(". 1:1 ack 1 sack 1461:14601");
	ack_all(MS, ".");
	cr_assert_eq(sc_info(&p).cwnd, w);
}
