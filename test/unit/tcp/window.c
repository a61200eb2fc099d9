/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of both directions (RFC 9293 3.8.6): acceptance, silly windows, closed windows and their
 * probes; delayed acknowledgements; keepalive. */
#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
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

TestSuite(tcp_window, .init = setup, .fini = end);

static void
establish(void)
{
	sc_start(&p);
	sc_establish(&p);
}

/* ---- Acknowledgements ---- */

Test(tcp_window, ack_is_delayed_rfc9293_3_8_6_3)
{
	establish();
	IN(". 1:101 ack 1");
	NONE();
	WAIT(p.cfg.delack_ns - 20 * US);
	NONE();
	WAIT(60 * US);
	OUT(". 1:1 ack 101");
}

/* A delay that ended without data to carry the acknowledgement is not worth another one, until this
 * side answers or the peer sends full segments. */
Test(tcp_window, ack_of_lone_segments_is_delayed_once)
{
	establish();
	IN(". 1:101 ack 1");
	WAIT(300 * US);
	OUT(". 1:1 ack 101");
	WAIT(10 * MS);
	IN(". 101:201 ack 1");
	OUT(". 1:1 ack 201");
	WAIT(10 * MS);
	IN(". 201:301 ack 1");
	OUT(". 1:1 ack 301");
	sc_send(&p, 1, 50); /* the answer */
	OUT(". 1:51 ack 301");
	IN(". 301:401 ack 51");
	NONE();
	sc_send(&p, 1, 50);
	OUT(". 51:101 ack 401");
}

Test(tcp_window, ack_of_lone_segments_is_delayed_again_after_full_ones_rfc9293_3_8_6_3)
{
	establish();
	IN(". 1:101 ack 1");
	WAIT(300 * US);
	OUT(". 1:1 ack 101");
	IN(". 101:1561 ack 1 nopoll");
	IN(". 1561:3021 ack 1");
	OUT(". 1:1 ack 3021");
	IN(". 3021:3121 ack 1");
	NONE();
	WAIT(300 * US);
	OUT(". 1:1 ack 3121");
}

Test(tcp_window, ack_for_each_second_full_segment_rfc9293_3_8_6_3)
{
	establish();
	IN(". 1:1461 ack 1");
	NONE();
	IN(". 1461:2921 ack 1");
	OUT(". 1:1 ack 2921");
}

Test(tcp_window, ack_rides_on_data)
{
	establish();
	IN(". 1:101 ack 1");
	sc_send(&p, 1, 50);
	OUT(". 1:51 ack 101");
	WAIT(300 * US);
	NONE();
}

Test(tcp_window, one_ack_per_poll_however_many_segments)
{
	establish();
	for (unsigned i = 0; i < 20; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1 nopoll", 1 + i * 1460, 1461 + i * 1460);
		IN(text);
	}
	sc_poll(&p);
	OUT(". 1:1 ack 29201");
	NONE();
}

Test(tcp_window, duplicate_data_is_acknowledged_at_once)
{
	establish();
	IN(". 1:101 ack 1");
	WAIT(MS);
	p.seen = p.nout;
	IN(". 1:101 ack 1");
	OUT(". 1:1 ack 101 sack 1:101");
	cr_assert_eq(sc_count(&p, TCP_DUP_PAYLOAD), 1);
	cr_assert_eq(p.delivered, 100);
}

/* ---- Receiving ---- */

Test(tcp_window, segment_behind_the_window_is_answered_rfc9293_3_10_7_4)
{
	establish();
	IN(". 3000001:3000101 ack 1");
	OUT(". 1:1 ack 1 nosack");
	cr_assert_eq(sc_count(&p, TCP_OUT_OF_WINDOW), 1);
	cr_assert_eq(p.delivered, 0);
}

Test(tcp_window, old_bytes_are_cut_off_the_front)
{
	establish();
	IN(". 1:101 ack 1");
	IN(". 51:151 ack 1");
	cr_assert_eq(p.delivered, 150);
	for (unsigned i = 0; i < 150; i++)
		cr_assert_eq(p.got[i], (uint8_t)(1 + i));
}

Test(tcp_window, bytes_beyond_the_window_are_cut_off_the_end)
{
	p.cfg.rcv_buf = 4096;
	p.cfg.rcv_wscale = 0;
	establish();
	p.keep_bytes = true;
	IN(". 1:5001 ack 1");
	cr_assert_eq(p.delivered, 4096);
	cr_assert_eq(sc_count(&p, TCP_RCV_FULL), 1);
	OUT(". 1:1 ack 4097 win 0");
}

Test(tcp_window, window_never_shrinks_rfc9293_3_8_6)
{
	p.cfg.rcv_buf = 8192;
	p.cfg.rcv_wscale = 0;
	establish();
	p.keep_bytes = true;
	for (unsigned i = 0; i < 40; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1", 1 + i * 100, 101 + i * 100);
		IN(text);
		cr_assert_eq(sc_info(&p).rcv_wnd, 8192 - 100 * (i + 1));
	}
}

Test(tcp_window, window_opens_in_full_segments_rfc9293_3_8_6_2_2)
{
	p.cfg.rcv_buf = 4096;
	p.cfg.rcv_wscale = 0;
	establish();
	p.keep_bytes = true;
	IN(". 1:1461 ack 1");
	IN(". 1461:2921 ack 1");
	IN(". 2921:4097 ack 1");
	WAIT(MS);
	p.seen = p.nout;
	tcp_consumed(p.c, 500); /* less than a segment: not advertised */
	sc_poll(&p);
	NONE();
	IN(". 4096:4096 ack 1"); /* not even when the peer sends a probe */
	OUT(". 1:1 ack 4097 win 0");
	tcp_consumed(p.c, 960);
	sc_poll(&p);
	OUT(". 1:1 ack 4097 win 1460");
}

/* Opens a connection whose buffer of 2 MB exceeds what the window field can express. */
static void
establish_without_scale(void)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1460 sackok");
	p.seen = p.nout;
	p.keep_bytes = true;
}

Test(tcp_window, reading_does_not_repeat_the_window_without_scale_rfc9293_3_8_6_2_2)
{
	establish_without_scale();
	for (unsigned i = 0; i < 20; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1", 1 + 1460 * i, 1461 + 1460 * i);
		IN(text);
	}
	WAIT(MS);
	cr_assert_eq(p.nout - p.seen, 10);
	p.seen = p.nout;
	for (unsigned i = 0; i < 29200; i += 100) {
		tcp_consumed(p.c, 100);
		sc_poll(&p);
		NONE(); /* the peer has seen the largest window */
	}
}

Test(tcp_window, closed_window_opens_by_a_quarter_without_scale_rfc9293_3_8_6_2_2)
{
	unsigned n = 0;

	establish_without_scale();
	/* The owner keeps all of its buffer. */
	for (uint32_t at = 1; at < 1 + p.cfg.rcv_buf; n++) {
		uint32_t len = SK_MIN(32768u, p.cfg.rcv_buf + 1 - at);
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1", at, at + len);
		IN(text);
		at += len;
	}
	WAIT(MS);
	cr_assert_eq(sc_info(&p).rcv_wnd, 0);
	p.seen = p.nout;
	tcp_consumed(p.c, 16384); /* a quarter of 65535 */
	sc_poll(&p);
	OUT(". 1:1 ack 2097152 win 16385"); /* one byte was not worth a segment before */
}

Test(tcp_window, window_in_large_units_is_sent_when_its_field_changes_rfc9293_3_8_6_2_2)
{
	p.cfg.rcv_buf = 131072;
	p.cfg.rcv_wscale = 14;
	establish();
	p.keep_bytes = true;
	for (unsigned i = 0; i < 4; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1", 1 + 32768 * i, 32769 + 32768 * i);
		IN(text);
	}
	WAIT(MS);
	p.seen = p.nout;
	for (unsigned i = 0; i < 11; i++) { /* 16060 bytes are less than a unit */
		tcp_consumed(p.c, 1460);
		sc_poll(&p);
		NONE();
	}
	tcp_consumed(p.c, 1460);
	sc_poll(&p);
	OUT(". 1:1 ack 131073 win 1");
}

Test(tcp_window, refused_bytes_close_the_window_and_are_offered_again)
{
	p.cfg.rcv_buf = 4096;
	p.cfg.rcv_wscale = 0;
	establish();
	p.refuse = true;
	IN(". 1:2001 ack 1");
	IN(". 2001:4097 ack 1");
	OUT(". 1:1 ack 4097 win 0");
	cr_assert_eq(p.delivered, 0);
	p.refuse = false;
	tcp_deliver_resume(p.c);
	cr_assert_eq(p.delivered, 4096);
	sc_poll(&p);
	OUT(". 1:1 ack 4097 win 4096");
}

Test(tcp_window, acknowledgements_count_while_the_window_is_closed_rfc9293_3_10_7_4)
{
	p.cfg.rcv_buf = 2048;
	p.cfg.rcv_wscale = 0;
	establish();
	p.keep_bytes = true;
	sc_send(&p, 1, 100);
	IN(". 1:2049 ack 1");
	p.seen = p.nout;
	IN(". 2049:2050 ack 101");
	OUT(". 101:101 ack 2049 win 0");
	cr_assert_eq(p.recs, 0);
	cr_assert_eq(p.delivered, 2048);
}

/* ---- Sending ---- */

Test(tcp_window, sender_keeps_inside_the_peers_window)
{
	establish();
	IN(". 1:1 ack 1 win 20"); /* 2560 bytes */
	sc_send(&p, 4, 1000);
	OUT(". 1:1001");
	OUT(". 1001:2001");
	NONE();
	IN(". 1:1 ack 1001 win 20");
	OUT(". 2001:3001");
	NONE();
	IN(". 1:1 ack 2001 win 30");
	OUT(". 3001:4001");
}

Test(tcp_window, old_segment_does_not_update_the_window_rfc9293_3_10_7_4)
{
	establish();
	IN(". 1:101 ack 1 win 100");
	IN(". 1:1 ack 1 win 5"); /* an older sequence number: not acceptable */
	cr_assert_eq(sc_info(&p).snd_wnd, 12800);
	IN(". 101:101 ack 1 win 50");
	cr_assert_eq(sc_info(&p).snd_wnd, 6400);
}

Test(tcp_window, record_is_cut_when_the_peer_never_offers_more_rfc9293_3_8_6_2_1)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1460 win 600");
	p.seen = p.nout;
	sc_send(&p, 1, 1000);
	OUT(". 1:601");
	IN(". 1:1 ack 601 win 200"); /* less than half of the largest window: silly */
	NONE();
	IN(". 1:1 ack 601 win 300");
	OUT(". 601:901");
}

Test(tcp_window, closed_window_is_probed_with_backoff_rfc9293_3_8_6_1)
{
	uint64_t t0;

	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 1, 100);
	NONE();
	t0 = p.now;
	WAIT(100 * MS);
	OUT(". 0:0 ack 1");
	cr_assert_geq(p.last.at - t0, p.cfg.rto_min_ns);
	t0 = p.last.at;
	OUT(". 0:0 ack 1");
	cr_assert_geq(p.last.at - t0, 2 * p.cfg.rto_min_ns);
	t0 = p.last.at;
	OUT(". 0:0 ack 1");
	cr_assert_geq(p.last.at - t0, 4 * p.cfg.rto_min_ns);
	NONE();
	cr_assert_eq(sc_count(&p, TCP_ZERO_WINDOW_PROBE), 3);
	IN(". 1:1 ack 1 win 100");
	OUT(". 1:101 ack 1");
	IN(". 1:1 ack 101 win 100");
	WAIT(1000 * MS);
	NONE();
}

Test(tcp_window, segment_behind_a_closed_window_has_the_plain_rto_rfc9293_3_8_6_1)
{
	uint64_t t0;

	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 1, 100);
	for (unsigned i = 0; i < 30; i++) {
		WAIT(1000 * MS);
		IN(". 1:1 ack 1 win 0");
	}
	p.seen = p.nout;
	IN(". 1:1 ack 1 win 100");
	OUT(". 1:101 ack 1");
	t0 = p.last.at;
	WAIT(100 * MS); /* the segment is lost */
	OUT(". 1:101 ack 1");
	cr_assert_leq(p.last.at - t0, 2 * p.cfg.rto_min_ns);
	IN(". 1:1 ack 101 win 100");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_window, closed_window_lasts_as_long_as_the_peer_answers)
{
	p.cfg.zero_window_ns = 0;
	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 1, 100);
	for (unsigned i = 0; i < 40; i++) {
		WAIT(4100 * MS);
		cr_assert_gt(p.nout, p.seen);
		p.seen = p.nout;
		IN(". 1:1 ack 1 win 0");
	}
	STATE("ESTABLISHED");
	WAIT(60000 * MS); /* after this time, it is not valid */
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
}

/* The peer answers each probe and each segment with a closed window, but opens it by `take` bytes
 * (a multiple of 128) once in two seconds. Returns the time after which the connection is reset, or
 * 0 when it outlives `most`. */
static uint64_t
closed_time(uint32_t take, uint64_t most)
{
	uint64_t t0 = p.now, opened = t0;
	uint32_t acked = 1;

	while (p.now - t0 < most) {
		WAIT(10 * MS);
		for (; p.seen < p.nout && !p.closed; p.seen++) {
			const struct sc_out *o = &p.out[p.seen];
			bool open = o->len == 0 && p.now - opened >= 2000 * MS;
			char text[64];

			if (open)
				opened = p.now;
			acked = SK_MAX(acked, o->tcp.seq - p.iss + o->len);
			snprintf(text, sizeof(text), ". 1:1 ack %u win %u", acked,
				open ? take / 128 : 0);
			IN(text);
		}
		if (p.closed)
			return p.now - t0;
		p.seen = p.nout = 0;
	}
	return 0;
}

/* The peer answers each segment by `answer`, for `ns` or until the connection ends. Returns the
 * time that passed. */
static uint64_t
answer_all(const char *answer, uint64_t ns)
{
	uint64_t t0 = p.now;

	while (p.now - t0 < ns && !p.closed) {
		WAIT(MS);
		if (p.nout == p.seen || p.closed)
			continue;
		p.nout = p.seen = 0;
		IN(answer);
	}
	p.nout = p.seen = 0;
	return p.now - t0;
}

/* Four segments are in flight; the peer accepts one of them, and has no room for the others. */
static void
shrink(uint64_t zero_window_ns)
{
	p.cfg.zero_window_ns = zero_window_ns;
	establish();
	sc_send(&p, 4, 1460);
	p.seen = p.nout;
	IN(". 1:1 ack 1461 win 0");
}

Test(tcp_window, shrunk_window_keeps_the_connection_rfc9293_3_8_6)
{
	uint64_t t0;

	shrink(120000 * MS);
	answer_all(". 1:1 ack 1461 win 0", 100000 * MS);
	STATE("ESTABLISHED");
	t0 = p.now;
	IN(". 1:1 ack 1461 win 1000");
	WAIT(100 * MS);
	OUT(". 1461:2921");
	cr_assert_leq(p.last.at - t0, 2 * p.cfg.rto_min_ns);
	IN(". 1:1 ack 5841 win 1000");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_window, shrunk_window_ends_after_the_configured_time_rfc6429)
{
	uint64_t t;

	shrink(30000 * MS);
	t = answer_all(". 1:1 ack 1461 win 0", 60000 * MS);
	cr_assert_geq(t, 30000 * MS);
	cr_assert_leq(t, 30000 * MS + p.cfg.rto_max_ns);
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(sc_count(&p, TCP_ZERO_WINDOW_END), 1);
	cr_assert_eq(p.recs, 0);
}

/* A peer that opens its window now and then, and takes nothing, is not kept for longer. */
Test(tcp_window, shrunk_window_that_opens_for_nothing_is_still_closed_rfc6429)
{
	unsigned n = 0;

	shrink(30000 * MS);
	while (!p.closed && n++ < 60) {
		answer_all(". 1:1 ack 1461 win 0", 900 * MS);
		if (!p.closed)
			IN(". 1:1 ack 1461 win 1000");
		answer_all(". 1:1 ack 1461 win 1000", 5 * MS);
		if (!p.closed)
			IN(". 1:1 ack 1461 win 0");
	}
	STATE("CLOSED");
	cr_assert_eq(p.recs, 0);
}

Test(tcp_window, shrunk_window_of_a_silent_peer_ends_by_retries_rfc9293_3_8_3)
{
	shrink(0);
	WAIT(30000 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(p.recs, 0);
}

Test(tcp_window, fin_at_a_closed_window_is_repeated_while_the_peer_answers_rfc9293_3_8_6)
{
	establish();
	IN(". 1:1 ack 1 win 0");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	OUT("F. 1:1 ack 1");
	answer_all(". 1:1 ack 1 win 0", 100000 * MS);
	STATE("FIN-WAIT-1");
	IN(". 1:1 ack 2 win 0");
	STATE("FIN-WAIT-2");
}

Test(tcp_window, closed_window_ends_after_the_configured_time_rfc6429)
{
	uint64_t t;

	p.cfg.zero_window_ns = 30000 * MS;
	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 1, 100);
	t = closed_time(0, 100000 * MS);
	cr_assert_geq(t, 30000 * MS);
	cr_assert_leq(t, 30000 * MS + p.cfg.rto_max_ns);
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(sc_count(&p, TCP_ZERO_WINDOW_END), 1);
	cr_assert_eq(sc_count(&p, TCP_RESET_OUT), 1);
	cr_assert_eq(p.recs, 0);
}

Test(tcp_window, window_that_opens_by_a_little_is_still_closed_rfc6429)
{
	p.cfg.zero_window_ns = 30000 * MS;
	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 200, 1000);
	cr_assert_neq(closed_time(128, 60000 * MS), 0);
	cr_assert_eq(sc_count(&p, TCP_ZERO_WINDOW_END), 1);
}

/* The peer opens its closed window by a segment shortly before each probe. Its segments are plain
 * acknowledgements, and yet the time between them counts. */
Test(tcp_window, window_that_opens_before_each_probe_was_closed_rfc6429)
{
	uint64_t t0;

	p.cfg.zero_window_ns = 30000 * MS;
	p.cfg.rto_min_ns = 2000 * MS;
	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 40, 1460);
	NONE();
	t0 = p.now;
	for (unsigned acked = 1; acked < 1 + 40 * 1460; acked += 1460) {
		char text[64];

		WAIT(1900 * MS);
		if (p.closed)
			break;
		snprintf(text, sizeof(text), ". 1:1 ack %u win 12", acked);
		IN(text);
		p.seen = p.nout;
		snprintf(text, sizeof(text), ". 1:1 ack %u win 0", acked + 1460);
		IN(text);
	}
	cr_assert_leq(p.now - t0, 34000 * MS);
	cr_assert_eq(sc_count(&p, TCP_ZERO_WINDOW_END), 1);
}

Test(tcp_window, slow_reader_that_makes_progress_is_kept_rfc6429)
{
	p.cfg.zero_window_ns = 30000 * MS;
	establish();
	IN(". 1:1 ack 1 win 0");
	sc_send(&p, 1000, 1000);
	cr_assert_eq(closed_time(12800, 300000 * MS), 0);
	STATE("ESTABLISHED");
}

Test(tcp_window, silly_window_is_used_after_the_persist_time_rfc9293_3_8_6_2_1)
{
	establish();
	IN(". 1:1 ack 1 win 4"); /* 512 bytes; the window was much larger */
	sc_send(&p, 1, 1000);
	NONE();
	WAIT(20 * MS);
	OUT(". 1:513");
	NONE();
}

/* ---- Keepalive ---- */

Test(tcp_window, keepalive_probes_then_gives_up_rfc9293_3_8_4)
{
	p.cfg.keepalive_idle_ns = 1000 * MS;
	p.cfg.keepalive_interval_ns = 100 * MS;
	p.cfg.keepalive_probes = 3;
	establish();
	WAIT(990 * MS);
	NONE();
	WAIT(15 * MS);
	OUT(". 0:0 ack 1");
	IN(". 1:1 ack 1"); /* the peer answers */
	WAIT(990 * MS);
	NONE();
	WAIT(215 * MS);
	OUT(". 0:0 ack 1");
	OUT(". 0:0 ack 1");
	OUT(". 0:0 ack 1");
	STATE("ESTABLISHED");
	WAIT(100 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(sc_count(&p, TCP_KEEPALIVE), 4);
}

Test(tcp_window, keepalive_is_off_by_default_rfc9293_3_8_4)
{
	struct tcp_config cfg;

	tcp_config_default(&cfg);
	cr_assert_eq(cfg.keepalive_idle_ns, 0);
	p.cfg.keepalive_held_ns = cfg.keepalive_held_ns;
	establish();
	IN(". 1:101 ack 1"); /* the owner consumes all bytes */
	WAIT(MS);
	p.seen = p.nout;
	WAIT(86400000 * MS);
	NONE();
	STATE("ESTABLISHED");
	cr_assert_eq(p.unread_ev, 0);
}

/* A peer that vanishes in the middle of an FPDU, or behind a gap. */
static void
vanish_after(const char *segment)
{
	p.cfg.keepalive_held_ns = 1000 * MS;
	p.cfg.keepalive_interval_ns = 100 * MS;
	p.cfg.keepalive_probes = 3;
	p.keep_bytes = true;
	establish();
	sc_in(&p, __LINE__, segment);
	WAIT(10 * MS);
	p.seen = p.nout;
}

Test(tcp_window, keepalive_of_unfinished_bytes_ends_the_connection_rfc9293_3_8_4)
{
	vanish_after(". 1:101 ack 1");
	WAIT(980 * MS);
	NONE();
	WAIT(60 * MS);
	cr_assert_eq(p.unread_ev, 1);
	NONE(); /* the owner may report late */
	WAIT(400 * MS);
	OUT(". 0:0 ack 101");
	OUT(". 0:0 ack 101");
	OUT(". 0:0 ack 101");
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
}

Test(tcp_window, keepalive_of_bytes_out_of_order_ends_the_connection_rfc9293_3_8_4)
{
	vanish_after(". 101:201 ack 1");
	WAIT(1400 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.slices, 0);
}

Test(tcp_window, keepalive_ends_when_the_owner_has_processed_all_rfc9293_3_8_4)
{
	p.reports = true;
	vanish_after(". 1:101 ack 1");
	WAIT(10000 * MS);
	cr_assert_eq(p.unread_ev, 1);
	NONE();
	STATE("ESTABLISHED");
	p.reports = false;
	IN(". 101:201 ack 1");
	p.seen = p.nout;
	WAIT(2600 * MS);
	STATE("CLOSED");
}

Test(tcp_window, probe_from_the_peer_is_answered_rfc9293_3_8_4)
{
	establish();
	for (unsigned i = 0; i < 30; i++) {
		IN(". 0:0 ack 1");
		OUT(". 1:1 ack 1");
	}
}
