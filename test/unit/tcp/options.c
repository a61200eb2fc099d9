/* SPDX-License-Identifier: BSD-3-Clause */
/* MSS (RFC 9293 3.7.1), window scale and timestamps with PAWS (RFC 7323), SACK permitted (RFC
 * 2018). */
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

TestSuite(tcp_options, .init = setup, .fini = end);

Test(tcp_options, mss_follows_the_mtu_rfc9293_3_7_1)
{
	p.mtu = 9000;
	sc_start(&p);
	sc_connect(&p);
	OUT("S 0:0 mss 8960");
	IN("S. 0:0 ack 1 mss 8960");
	cr_assert_eq(tcp_emss(p.c), 8960);
}

Test(tcp_options, mss_of_the_peer_bounds_ours)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1000");
	cr_assert_eq(tcp_emss(p.c), 1000);
	p.seen = p.nout;
	sc_send(&p, 1, 1500);
	OUT(". 1:1001");
	OUT(". 1001:1501");
}

Test(tcp_options, mss_defaults_to_536_rfc9293_3_7_1)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1");
	cr_assert_eq(tcp_emss(p.c), 536);
}

Test(tcp_options, mss_that_is_absurd_is_raised)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1");
	cr_assert_eq(tcp_emss(p.c), 88);
}

Test(tcp_options, mss_of_ipv6_and_timestamps_leave_room)
{
	p.cfg.timestamps = true;
	sk_addr_parse("2001:db8::1", &p.t.laddr);
	sk_addr_parse("2001:db8::2", &p.t.raddr);
	sc_start(&p);
	sc_connect(&p);
	OUT("S 0:0 mss 1440");
	IN("S. 0:0 ack 1 mss 1440 ts 5/0");
	cr_assert_eq(tcp_emss(p.c), 1428);
}

Test(tcp_options, window_scale_applies_after_the_handshake_rfc7323_2_2)
{
	sc_start(&p);
	sc_connect(&p);
	OUT("S 0:0 win 65535 ws 7");
	IN("S. 0:0 ack 1 win 1000 ws 4");
	cr_assert_eq(sc_info(&p).snd_wnd, 1000); /* not scaled in a SYN */
	OUT(". 1:1 win 16384");
	cr_assert_eq(sc_info(&p).rcv_wnd, 16384 * 128);
	IN(". 1:1 ack 1 win 1000");
	cr_assert_eq(sc_info(&p).snd_wnd, 16000);
}

Test(tcp_options, window_scale_needs_both_sides_rfc7323_2_2)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 win 1000");
	p.seen = p.nout;
	IN(". 1:1001 ack 1 win 1000");
	cr_assert_eq(sc_info(&p).snd_wnd, 1000);
	cr_assert_leq(sc_info(&p).rcv_wnd, 65535);
}

Test(tcp_options, passive_side_offers_no_scale_unasked_rfc7323_2_2)
{
	sc_start(&p);
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	OUT("S. 0:0 ack 1 ws 255 nots");
	cr_assert(!p.last.tcp.sack_ok);
}

Test(tcp_options, window_scale_beyond_14_counts_as_14_rfc7323_2_3)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 ws 15");
	IN(". 1:1 ack 1 win 2");
	cr_assert_eq(sc_info(&p).snd_wnd, 2u << 14);
}

/* ---- Timestamps ---- */

static void
with_timestamps(void)
{
	p.cfg.timestamps = true;
	sc_start(&p);
	p.ts = true;
	sc_connect(&p);
	OUT("S 0:0 ts 0/0");
	IN("S. 0:0 ack 1 mss 1460 sackok ws 7 ts 1000/0");
	OUT(". 1:1 ts 0/1000");
}

Test(tcp_options, timestamps_are_echoed_rfc7323_4_3)
{
	with_timestamps();
	sc_send(&p, 1, 10);
	OUT(". 1:11 ts 0/1000");
	IN(". 1:11 ack 11 ts 1001/0");
	sc_send(&p, 1, 10);
	OUT(". 11:21 ts 0/1001");
	/* Two segments before our next acknowledgement: we echo the earlier one, so that the peer
	 * measures our delay, too. */
	IN(". 11:21 ack 21 ts 1002/0 nopoll");
	IN(". 21:31 ack 21 ts 1003/0");
	sc_send(&p, 1, 10);
	OUT(". 21:31 ts 0/1002");
}

Test(tcp_options, timestamps_of_segments_out_of_order_are_not_echoed_rfc7323_4_3)
{
	with_timestamps();
	IN(". 101:201 ack 1 ts 1005/0");
	OUT(". 1:1 ack 1 ts 0/1000");
	IN(". 1:101 ack 1 ts 1004/0");
	OUT(". 1:1 ack 201 ts 0/1004");
}

Test(tcp_options, timestamps_not_asked_for_are_not_sent_rfc7323_3_2)
{
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1460");
	cr_assert_eq(tcp_emss(p.c), 1460);
	OUT("S 0:0");
	OUT(". 1:1 nots");
}

Test(tcp_options, segment_without_timestamp_is_dropped_rfc7323_3_2)
{
	with_timestamps();
	IN(". 1:11 ack 1 nots");
	NONE();
	cr_assert_eq(p.delivered, 0);
	cr_assert_eq(sc_count(&p, TCP_PAWS), 1);
}

Test(tcp_options, paws_drops_and_acknowledges_an_old_segment_rfc7323_5_3)
{
	with_timestamps();
	IN(". 1:11 ack 1 ts 2000/0");
	p.seen = p.nout;
	IN(". 11:21 ack 1 ts 1999/0");
	OUT(". 1:1 ack 11");
	cr_assert_eq(p.delivered, 10);
	cr_assert_eq(sc_count(&p, TCP_PAWS), 1);
	IN(". 11:21 ack 1 ts 2000/0");
	cr_assert_eq(p.delivered, 20);
}

Test(tcp_options, paws_compares_in_a_circle_rfc7323_5_2)
{
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_connect(&p);
	p.ts = true;
	IN("S. 0:0 ack 1 mss 1460 sackok ws 7 ts 4294967290/0");
	IN(". 1:11 ack 1 ts 3/0");
	cr_assert_eq(p.delivered, 10);
	IN(". 11:21 ack 1 ts 4294967290/0");
	cr_assert_eq(p.delivered, 10);
}

Test(tcp_options, paws_does_not_apply_to_a_reset_rfc7323_5_3)
{
	with_timestamps();
	IN("R 1:1 ts 1/0");
	STATE("CLOSED");
}

Test(tcp_options, paws_gives_up_after_24_days_rfc7323_5_5)
{
	with_timestamps();
	p.now += 25ull * 86400 * 1000 * MS;
	IN(". 1:11 ack 1 ts 1/0");
	cr_assert_eq(p.delivered, 10);
}

/* ---- SACK permitted ---- */

Test(tcp_options, sack_is_sent_only_if_permitted_rfc2018_2)
{
	sc_start(&p);
	sc_connect(&p);
	IN("S. 0:0 ack 1 mss 1460");
	p.seen = p.nout;
	IN(". 101:201 ack 1");
	OUT(". 1:1 ack 1 nosack");
}

Test(tcp_options, config_that_makes_no_sense_is_refused)
{
	struct tcp_ops none = {0};
	struct tcp_config c;

	sc_start(&p);
	c = p.cfg;
	c.cc = "bbr";
	cr_assert_null(tcp_stack_create(&c, &none, NULL, 0));
	c = p.cfg;
	c.rcv_wscale = 15;
	cr_assert_null(tcp_stack_create(&c, &none, NULL, 0));
	c = p.cfg;
	c.max_conns = 0;
	cr_assert_null(tcp_stack_create(&c, &none, NULL, 0));
	c = p.cfg;
	c.rto_min_ns = c.rto_max_ns + 1;
	cr_assert_null(tcp_stack_create(&c, &none, NULL, 0));
	c = p.cfg;
	c.rcv_buf = 100;
	cr_assert_null(tcp_stack_create(&c, &none, NULL, 0));
}
