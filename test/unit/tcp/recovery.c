/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss recovery: the scoreboard of SACK (RFC 2018), RACK and TLP (RFC 8985), RTO (RFC 6298),
 * NewReno for peers without SACK, and undo by DSACK. */
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

TestSuite(tcp_recovery, .init = establish, .fini = end);

/* Sends `n` full segments, which count as seen. A round trip takes 100 us from here on. */
static void
flight(unsigned n)
{
	sc_send(&p, n, 1460);
	cr_assert_eq(p.nout - p.seen, n);
	p.seen = p.nout;
	p.now += 100 * US;
}

/* ---- RACK ---- */

Test(tcp_recovery, three_sacked_segments_reveal_a_loss_rfc8985_6_2)
{
	flight(5);
	IN(". 1:1 ack 1 sack 1461:2921");
	IN(". 1:1 ack 1 sack 1461:4381");
	NONE(); /* the segment may be late: min_rtt / 4 has not passed */
	IN(". 1:1 ack 1 sack 1461:5841");
	OUT(". 1:1461");
	NONE();
	cr_assert_eq(sc_count(&p, TCP_RACK_LOSS), 1);
	IN(". 1:1 ack 7301");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_recovery, one_sacked_segment_suffices_after_the_reordering_window_rfc8985_6_2)
{
	flight(1);
	IN(". 1:1 ack 1461"); /* min_rtt is that of the handshake, 10 us; srtt grew */
	flight(3);
	IN(". 1:1 ack 1461 sack 2921:4381");
	NONE();
	WAIT(60 * US);
	OUT(". 1461:2921");
	IN(". 1:1 ack 5841");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_recovery, segments_sent_after_the_delivered_one_are_not_lost_rfc8985_6_2)
{
	flight(4);
	IN(". 1:1 ack 1 sack 1461:2921");
	WAIT(60 * US);
	OUT(". 1:1461");
	NONE(); /* the third and the fourth segment were sent after the second */
}

Test(tcp_recovery, reordering_widens_the_window_rfc8985_6_2)
{
	flight(6);
	IN(". 1:1 ack 1 sack 4381:5841");
	IN(". 1:1 ack 1461 sack 4381:5841"); /* the first was late: RACK notes the reordering */
	IN(". 1:1 ack 1461 sack 2921:5841");
	IN(". 1:1 ack 1461 sack 2921:8761"); /* four segments beyond do not mean a loss any more */
	NONE();
	WAIT(60 * US);
	OUT(". 1461:2921");
}

Test(tcp_recovery, lost_retransmission_is_found_rfc8985_2)
{
	flight(8);
	IN(". 1:1 ack 1 sack 1461:7301");
	OUT(". 1:1461");
	sc_send(&p, 2, 1460);
	p.seen = p.nout;
	p.now += 100 * US;
	/* A segment that was sent after the retransmission arrived. */
	IN(". 1:1 ack 1 sack 1461:13141");
	WAIT(60 * US);
	OUT(". 1:1461");
	cr_assert_eq(sc_count(&p, TCP_RTO), 0);
}

Test(tcp_recovery, every_hole_is_filled_once)
{
	flight(10);
	IN(". 1:1 ack 1 sack 1461:2921,4381:5841,7301:14601");
	OUT(". 1:1461");
	OUT(". 2921:4381");
	OUT(". 5841:7301");
	NONE();
	IN(". 1:1 ack 2921 sack 4381:5841,7301:14601");
	NONE();
	IN(". 1:1 ack 14601");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RETRANSMIT), 3);
}

Test(tcp_recovery, recovery_reduces_the_window_once_rfc5681_3_2)
{
	uint32_t before = sc_info(&p).cwnd;

	flight(10);
	IN(". 1:1 ack 1 sack 1461:5841");
	cr_assert_eq(sc_info(&p).cwnd, (uint32_t)(before * 0.7));
	IN(". 1:1 ack 1 sack 1461:5841,7301:14601");
	cr_assert_eq(sc_info(&p).cwnd, (uint32_t)(before * 0.7));
}

Test(tcp_recovery, blocks_that_cannot_be_are_ignored)
{
	flight(4);
	IN(". 1:1 ack 1 sack 9000:12000,1461:1461,4000:3000");
	IN(". 1:1 ack 1 sack 1461:9000"); /* more than was sent */
	IN(". 1:1 ack 1 sack 2000:2500"); /* part of a segment */
	WAIT(200 * US);
	NONE();
	cr_assert_eq(sc_info(&p).in_flight, 4 * 1460);
}

Test(tcp_recovery, blocks_of_an_overtaken_ack_count_rfc2018_5)
{
	flight(8);
	IN(". 1:1 ack 2921 sack 4381:5841"); /* overtakes the next one */
	IN(". 1:1 ack 1461 sack 4381:5841,7301:11681");
	OUT(". 2921:4381");
	OUT(". 5841:7301");
	NONE();
	cr_assert_eq(sc_info(&p).in_flight, 2 * 1460);
	cr_assert_eq(sc_count(&p, TCP_OLD_ACK), 1);
	IN(". 1:1 ack 11681");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_recovery, blocks_of_an_overtaken_ack_end_above_snd_una_rfc2018_5)
{
	flight(6);
	IN(". 1:1 ack 2921");
	/* The blocks reach below snd_una, lie below the acknowledgement that carries them, and
	 * reach beyond snd_nxt. */
	IN(". 1:1 ack 1461 sack 4381:9999,2000:4381");
	IN(". 1:1 ack 1461 sack 100:5841");
	cr_assert_eq(sc_info(&p).in_flight, 3 * 1460);
	WAIT(200 * US);
	NONE();
	IN(". 1:1 ack 8761");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_recovery, dsack_of_an_overtaken_ack_counts_rfc2883_4)
{
	uint32_t before = sc_info(&p).cwnd;

	flight(6);
	IN(". 1:1 ack 1 sack 1461:5841");
	OUT(". 1:1461");
	IN(". 1:1 ack 8761");
	IN(". 1:1 ack 5841 sack 1:1461"); /* the segment was only late */
	cr_assert_geq(sc_info(&p).cwnd, before);
	cr_assert_eq(sc_count(&p, TCP_SPURIOUS), 1);
}

Test(tcp_recovery, hole_behind_a_fresh_retransmission_is_found)
{
	flight(6);
	IN(". 1:1 ack 1 sack 1461:2921");
	WAIT(60 * US);
	OUT(". 1:1461");
	IN(". 1:1 ack 1 sack 1461:2921,4381:8761");
	OUT(". 2921:4381");
	NONE();
}

/* A round trip of 1 ms: RACK waits for a quarter of the minimum at first. */
static void
slow_path(void)
{
	sc_end(&p);
	sc_new(&p);
	p.rtt = MS;
	p.cfg.cc = "none";
	sc_start(&p);
	sc_establish(&p);
}

static uint32_t una = 1;

/* Loses the first of three segments. Returns the time from the report of the second segment to the
 * retransmission. */
static uint64_t
reordering_window(void)
{
	char text[64];
	uint64_t t0;

	sc_send(&p, 3, 1460);
	p.seen = p.nout;
	p.now += MS;
	t0 = p.now;
	snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", una, una + 1460, una + 2920);
	IN(text);
	NONE();
	WAIT(MS);
	cr_assert_gt(p.nout, p.seen);
	t0 = p.out[p.seen].at - t0;
	p.seen = p.nout;
	una += 3 * 1460;
	snprintf(text, sizeof(text), ". 1:1 ack %u", una);
	IN(text);
	return t0;
}

/* Reports that the latest retransmission was unnecessary. */
static void
duplicate(void)
{
	char text[64];

	snprintf(text, sizeof(text), ". 1:1 ack %u sack %u:%u", una, una - 4380, una - 2920);
	IN(text);
}

Test(tcp_recovery, reordering_window_follows_dsack_rfc8985_6_2)
{
	uint64_t w;

	slow_path();
	w = reordering_window();
	cr_assert(w >= 250 * US && w <= 300 * US, "%lu", w);
	duplicate();
	w = reordering_window();
	cr_assert(w >= 500 * US && w <= 550 * US, "%lu", w);
	duplicate();
	w = reordering_window();
	cr_assert(w >= 750 * US && w <= 800 * US, "%lu", w);
	/* After sixteen recoveries without a DSACK, the window is the first one again. */
	for (unsigned i = 0; i < 16; i++)
		reordering_window();
	w = reordering_window();
	cr_assert(w >= 250 * US && w <= 300 * US, "%lu", w);
}

Test(tcp_recovery, minimum_rtt_forgets_after_ten_seconds)
{
	cr_assert_eq(sc_info(&p).min_rtt_ns, 10 * US);
	flight(1);
	IN(". 1:1 ack 1461");
	cr_assert_eq(sc_info(&p).min_rtt_ns, 10 * US);
	p.now += 11000 * MS;
	flight(1);
	IN(". 1:1 ack 2921");
	cr_assert_eq(sc_info(&p).min_rtt_ns, 100 * US);
}

Test(tcp_recovery, ack_too_early_for_a_retransmission_is_ignored_rfc8985_6_2)
{
	slow_path();
	flight(3);
	WAIT(1950 * US);
	OUT(". 2921:4381");               /* the probe, after two round trips */
	IN(". 1:1 ack 1 sack 2921:4381"); /* this early, it acknowledges the original */
	NONE();
	cr_assert_eq(sc_count(&p, TCP_RACK_LOSS), 0);
}

Test(tcp_recovery, echo_of_an_earlier_transmission_is_ignored_rfc8985_6_2)
{
	uint32_t original;
	char text[64];

	sc_end(&p);
	sc_new(&p);
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_establish(&p);
	sc_send(&p, 3, 1448);
	original = p.out[p.nout - 1].tcp.ts_val;
	p.seen = p.nout;
	WAIT(3 * MS);
	OUT(". 2897:4345");
	p.now += 50 * US;
	snprintf(text, sizeof(text), ". 1:1 ack 1 sack 2897:4345 ts 2000/%u", original);
	IN(text);
	NONE();
	cr_assert_eq(sc_count(&p, TCP_RACK_LOSS), 0);
}

/* ---- Tail loss probe ---- */

Test(tcp_recovery, tail_loss_is_probed_rfc8985_7)
{
	uint64_t t0 = p.now;

	flight(4);
	IN(". 1:1 ack 2921");
	WAIT(3 * MS);
	OUT(". 4381:5841"); /* the last segment, not the first */
	cr_assert_lt(p.last.at - t0, p.cfg.rto_min_ns);
	cr_assert_eq(sc_count(&p, TCP_TLP), 1);
	IN(". 1:1 ack 2921 sack 4381:5841");
	WAIT(2 * MS);
	OUT(". 2921:4381");
	cr_assert_eq(sc_count(&p, TCP_RTO), 0);
}

Test(tcp_recovery, probe_of_a_lone_segment_waits_for_a_delayed_ack_rfc8985_7_2)
{
	uint64_t t0 = p.now;

	sc_send(&p, 1, 100);
	WAIT(2 * MS);
	cr_assert_geq(p.out[p.nout - 1].at - t0, 1020 * US);
	t0 = p.now;
	IN(". 1:1 ack 101");
	IN(". 1:1 ack 101 sack 1:101"); /* the probe was unnecessary */
	sc_send(&p, 2, 1460);
	WAIT(2 * MS);
	cr_assert_leq(p.out[p.nout - 1].at - t0, 900 * US);
	cr_assert_eq(sc_count(&p, TCP_TLP), 2);
}

Test(tcp_recovery, probe_is_new_data_if_there_is_some_rfc8985_7_3)
{
	flight(10); /* the window is full */
	sc_send(&p, 1, 1460);
	NONE();
	WAIT(2 * MS);
	OUT(". 14601:16061");
}

/* A port that is full delays the probe. An acknowledgement that arrives meanwhile changes nothing:
 * that of the probe ends its episode, and the next flight has a probe, too. */
Test(tcp_recovery, probe_that_left_late_ends_with_its_acknowledgement_rfc8985_7_4)
{
	flight(10); /* the window is full */
	p.busy = true;
	sc_send(&p, 1, 1460);
	WAIT(2 * MS);
	IN(". 1:1 ack 1461");
	NONE();
	p.busy = false;
	sc_poll(&p);
	OUT(". 14601:16061");
	cr_assert_eq(sc_count(&p, TCP_TLP), 1);
	IN(". 1:1 ack 16061");
	flight(2);
	WAIT(3 * MS);
	OUT(". 17521:18981");
	cr_assert_eq(sc_count(&p, TCP_TLP), 2);
}

Test(tcp_recovery, one_probe_per_flight_rfc8985_7_2)
{
	flight(2);
	WAIT(9 * MS);
	OUT(". 1461:2921");
	NONE();
	WAIT(4 * MS);
	OUT(". 1:1461"); /* then the RTO */
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
}

Test(tcp_recovery, probe_that_repaired_a_loss_counts_as_congestion_rfc8985_7_4)
{
	uint32_t before = sc_info(&p).cwnd;

	flight(4);
	WAIT(2 * MS);
	OUT(". 4381:5841");
	sc_send(&p, 1, 100);
	p.now += 100 * US;
	IN(". 1:1 ack 5941"); /* all bytes, and no duplicate reported: one copy was lost */
	cr_assert_lt(sc_info(&p).cwnd, before);
}

Test(tcp_recovery, probe_that_was_not_needed_is_no_congestion_rfc8985_7_4)
{
	uint32_t before = sc_info(&p).cwnd;

	flight(4);
	WAIT(2 * MS);
	OUT(". 4381:5841");
	IN(". 1:1 ack 5841");
	IN(". 1:1 ack 5841 sack 4381:5841"); /* DSACK */
	cr_assert_geq(sc_info(&p).cwnd, before);
	cr_assert_eq(sc_count(&p, TCP_SPURIOUS), 1);
}

/* ---- Waits that other connections have met ---- */

#define OTHERS 20

struct other {
	struct tcp_conn *c;
	uint32_t iss;
};

/* Exchanges the connection of the script for another one. */
static void
swap(struct other *o)
{
	struct other present = {p.c, p.iss};

	p.c = o->c;
	p.iss = o->iss;
	*o = present;
}

static void
others_open(struct other o[OTHERS])
{
	for (unsigned i = 0; i < OTHERS; i++) {
		o[i] = (struct other){p.c, p.iss};
		p.t.rport++;
		p.connected = 0;
		sc_establish(&p);
		swap(&o[i]);
	}
}

static void
others_send(struct other o[OTHERS])
{
	for (unsigned i = 0; i < OTHERS; i++) {
		swap(&o[i]);
		sc_send(&p, 1, 100);
		swap(&o[i]);
	}
	p.seen = p.nout;
}

/* All acknowledgements arrive in one turn. */
static void
others_acked(struct other o[OTHERS])
{
	for (unsigned i = 0; i < OTHERS; i++) {
		swap(&o[i]);
		IN(". 1:1 ack 101 nopoll");
		swap(&o[i]);
	}
	sc_poll(&p);
}

Test(tcp_recovery, probe_waits_as_long_as_acknowledgements_of_others_rfc8985_7_2)
{
	struct other o[OTHERS];

	others_open(o);
	others_send(o);
	p.now += 5 * MS;
	others_acked(o);
	sc_send(&p, 1, 100);
	p.seen = p.nout;
	WAIT(9 * MS);
	NONE();
	WAIT(3 * MS);
	OUT(". 1:101");
	cr_assert_eq(sc_count(&p, TCP_TLP), 1);
}

Test(tcp_recovery, waits_count_that_grew_since_the_segment_was_sent_rfc8985_7_2)
{
	struct other o[OTHERS];

	others_open(o);
	sc_send(&p, 1, 100);
	others_send(o);
	p.now += 5 * MS;
	others_acked(o);
	NONE();
	IN(". 1:1 ack 101");
	WAIT(100 * MS);
	NONE();
	cr_assert_eq(sc_count(&p, TCP_TLP), 0);
	cr_assert_eq(sc_count(&p, TCP_RTO), 0);
}

Test(tcp_recovery, waits_of_others_delay_by_a_bounded_time_rfc6298_2)
{
	struct other o[OTHERS];

	others_open(o);
	others_send(o);
	p.now += 2000 * MS; /* of a host that is far away, or that means harm */
	others_acked(o);
	sc_send(&p, 2, 1460);
	p.seen = p.nout;
	WAIT(17 * MS);
	OUT(". 1461:2921"); /* the probe */
	WAIT(25 * MS);
	OUT(". 1:1461"); /* the RTO */
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
}

/* ---- RTO ---- */

Test(tcp_recovery, rto_backs_off_and_gives_up_rfc6298_5)
{
	uint64_t last;

	flight(1);
	WAIT(p.cfg.rto_min_ns);
	WAIT(60000 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(p.recs, 0);
	/* One probe, then data_retries timeouts, each twice as long as the one before, up to the
	 * limit. */
	cr_assert_eq(p.nout - p.seen, 1 + p.cfg.data_retries);
	last = p.out[p.seen + 1].at;
	for (unsigned i = 2; i <= p.cfg.data_retries; i++) {
		uint64_t gap = p.out[p.seen + i].at - last, want = p.cfg.rto_min_ns << (i - 1);

		want = want < p.cfg.rto_max_ns ? want : p.cfg.rto_max_ns;
		cr_assert(gap >= want && gap < want + 50 * US, "timeout %u after %lu", i, gap);
		last = p.out[p.seen + i].at;
	}
}

Test(tcp_recovery, rto_collapses_the_window_rfc5681_3_1)
{
	flight(10);
	WAIT(14 * MS);
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
	cr_assert_eq(sc_info(&p).cwnd, 1460);
	cr_assert_eq(sc_info(&p).ssthresh, (uint32_t)(14600 * 0.7));
	OUT(". 13141:14601"); /* the probe */
	OUT(". 1:1461");
	NONE();
	IN(". 1:1 ack 1461");
	OUT(". 1461:2921"); /* slow start: two for one */
	OUT(". 2921:4381");
	NONE();
}

Test(tcp_recovery, karn_takes_no_sample_from_what_was_sent_twice_rfc6298_3)
{
	uint64_t before;

	flight(1);
	IN(". 1:1 ack 1461");
	before = sc_info(&p).srtt_ns;
	flight(1);
	WAIT(30 * MS);
	cr_assert_gt(sc_info(&p).retransmits, 0);
	IN(". 1:1 ack 2921");
	cr_assert_eq(sc_info(&p).srtt_ns, before);
}

Test(tcp_recovery, samples_make_the_rto_rfc6298_2)
{
	struct tcp_info i = sc_info(&p);

	cr_assert_eq(i.srtt_ns, 10 * US);  /* the handshake: R */
	cr_assert_eq(i.rttvar_ns, 5 * US); /* R / 2 */
	flight(1);
	IN(". 1:1 ack 1461");
	i = sc_info(&p);
	cr_assert_eq(i.rttvar_ns, (3 * 5 * US + 90 * US) / 4);
	cr_assert_eq(i.srtt_ns, (7 * 10 * US + 100 * US) / 8);
	cr_assert_eq(i.rto_ns, p.cfg.rto_min_ns);
}

Test(tcp_recovery, acknowledgement_ends_the_backoff)
{
	flight(1);
	WAIT(50 * MS);
	cr_assert_gt(sc_info(&p).rto_ns, p.cfg.rto_min_ns);
	IN(". 1:1 ack 1461");
	cr_assert_eq(sc_info(&p).rto_ns, p.cfg.rto_min_ns);
}

Test(tcp_recovery, reneging_peer_gets_everything_again_rfc2018_8)
{
	flight(3);
	WAIT(2 * MS);
	IN(". 1:1 ack 1 sack 1:1461"); /* reports the first bytes without acknowledging them */
	p.seen = p.nout;
	WAIT(300 * MS);
	OUT(". 1:1461");
}

Test(tcp_recovery, needless_recovery_is_taken_back_rfc3708)
{
	uint32_t before = sc_info(&p).cwnd;

	flight(6);
	IN(". 1:1 ack 1 sack 1461:5841");
	OUT(". 1:1461");
	cr_assert_lt(sc_info(&p).cwnd, before);
	IN(". 1:1 ack 8761"); /* the segment was only late */
	IN(". 1:1 ack 8761 sack 1:1461");
	cr_assert_geq(sc_info(&p).cwnd, before);
	cr_assert_eq(sc_count(&p, TCP_SPURIOUS), 1);
}

Test(tcp_recovery, echoed_timestamp_replaces_karns_missing_sample_rfc7323_4_1)
{
	uint32_t original;
	char text[64];

	sc_end(&p);
	sc_new(&p);
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_establish(&p);
	sc_send(&p, 1, 100);
	original = p.out[p.nout - 1].tcp.ts_val;
	WAIT(40 * MS);
	snprintf(text, sizeof(text), ". 1:1 ack 101 ts 2000/%u", original);
	IN(text);
	/* A peer that delays its acknowledgements by 40 ms does not cause timeouts forever. */
	cr_assert_gt(sc_info(&p).rto_ns, 40 * MS);
}

/* Sends ten segments with timestamps, then pauses for longer than the RTO. Returns the timestamp of
 * the first segment. */
static uint32_t
pause_beyond_rto(void)
{
	uint32_t original;

	sc_end(&p);
	sc_new(&p);
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_establish(&p);
	sc_send(&p, 10, 1448);
	original = p.out[p.seen].tcp.ts_val;
	WAIT(14 * MS);
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
	cr_assert_eq(sc_info(&p).cwnd, 1448);
	p.seen = p.nout;
	return original;
}

Test(tcp_recovery, timeout_that_the_echo_belies_is_taken_back_rfc3522_3_2)
{
	uint32_t original = pause_beyond_rto();
	char text[64];

	snprintf(text, sizeof(text), ". 1:1 ack 1449 ts 2000/%u", original);
	IN(text);
	NONE(); /* no segment in flight is retransmitted */
	cr_assert_geq(sc_info(&p).cwnd, 10 * 1448);
	cr_assert_eq(sc_info(&p).in_flight, 9 * 1448);
	cr_assert_eq(sc_count(&p, TCP_SPURIOUS), 1);
}

Test(tcp_recovery, timeout_that_the_echo_confirms_stays_rfc3522_3_2)
{
	uint32_t original = pause_beyond_rto();
	char text[64];

	/* The first acknowledgement echoes the retransmission; a later echo of an original is no
	 * evidence. */
	snprintf(text, sizeof(text), ". 1:1 ack 1449 ts 2000/%u", p.ts_echo);
	IN(text);
	OUT(". 1449:2897");
	OUT(". 2897:4345");
	snprintf(text, sizeof(text), ". 1:1 ack 2897 ts 2000/%u", original);
	IN(text);
	cr_assert_lt(sc_info(&p).cwnd, 5 * 1448);
	cr_assert_eq(sc_count(&p, TCP_SPURIOUS), 0);
}

/* ---- Without SACK ---- */

static void
without_sack(void)
{
	sc_end(&p);
	sc_new(&p);
	p.cfg.sack = false;
	sc_start(&p);
	sc_establish(&p);
}

Test(tcp_recovery, third_duplicate_ack_repairs_rfc5681_3_2)
{
	without_sack();
	IN(". 1:1 ack 1"); /* the first scaled window */
	flight(6);
	IN(". 1:1 ack 1");
	IN(". 1:1 ack 1");
	NONE();
	IN(". 1:1 ack 1");
	OUT(". 1:1461");
	NONE();
	/* A partial acknowledgement: the next segment is lost, too (RFC 6582 3.2). */
	IN(". 1:1 ack 2921");
	OUT(". 2921:4381");
	IN(". 1:1 ack 8761");
	cr_assert_eq(p.recs, 0);
}

/* Opens a flight of 20 segments from 14601 on, to a peer without SACK. */
static void
flight_without_sack(void)
{
	without_sack();
	IN(". 1:1 ack 1");
	flight(10);
	IN(". 1:1 ack 14601");
	flight(20);
}

Test(tcp_recovery, partial_ack_repairs_beyond_the_window_rfc6582_3_2)
{
	flight_without_sack();
	for (unsigned i = 0; i < 3; i++)
		IN(". 1:1 ack 14601");
	OUT(". 14601:16061");
	NONE();
	/* 19 segments are in flight for all the sender can see; the window is 14. */
	IN(". 1:1 ack 16061");
	OUT(". 16061:17521");
	NONE();
	IN(". 1:1 ack 43801");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RTO), 0);
}

/* The first and the third segment are lost. Each segment in flight was sent earlier than the
 * retransmission of the first one, but that is no sign of a loss without SACK. */
Test(tcp_recovery, partial_ack_resends_one_segment_rfc6582_3_2)
{
	flight_without_sack();
	for (unsigned i = 0; i < 18; i++)
		IN(". 1:1 ack 14601");
	OUT(". 14601:16061");
	NONE();
	WAIT(100 * US);
	IN(". 1:1 ack 17521");
	OUT(". 17521:18981");
	WAIT(100 * US);
	NONE();
	IN(". 1:1 ack 43801");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RETRANSMIT), 2);
	cr_assert_eq(sc_count(&p, TCP_RACK_LOSS), 0);
}

/* The timeout of the second segment does not mark the third one, which was sent just before it. */
Test(tcp_recovery, partial_ack_after_a_timeout_resends_a_segment_rfc6582_3_2)
{
	uint64_t t0;

	without_sack();
	flight(1);
	IN(". 1:1 ack 1461");
	sc_send(&p, 1, 1460);
	WAIT(sc_info(&p).rto_ns - 50 * US);
	sc_send(&p, 1, 1460);
	p.seen = p.nout;
	WAIT(100 * US);
	OUT(". 1461:2921");
	NONE();
	t0 = p.now;
	IN(". 1:1 ack 2921");
	OUT(". 2921:4381");
	cr_assert_eq(p.last.at, t0);
	IN(". 1:1 ack 4381");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(sc_count(&p, TCP_RTO), 1);
}

Test(tcp_recovery, window_updates_are_no_duplicates_rfc5681_2)
{
	without_sack();
	flight(4);
	for (unsigned i = 0; i < 5; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". 1:1 ack 1 win %u", 1000 + i);
		IN(text);
	}
	IN(". 1:11 ack 1");
	IN(". 11:21 ack 1");
	IN(". 21:31 ack 1");
	NONE();
	cr_assert_eq(sc_info(&p).retransmits, 0);
}
