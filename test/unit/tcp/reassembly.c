/* SPDX-License-Identifier: BSD-3-Clause */
/* Payload out of order: reassembled byte for byte, and reported (RFC 2018 SACK, RFC 2883 DSACK). */
#include <stdio.h>
#include <stdlib.h>

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
	for (uint64_t i = 0; i < p.delivered; i++)
		cr_assert_eq(p.got[i], (uint8_t)(1 + i), "byte %lu", i);
	sc_end(&p);
}

TestSuite(tcp_reassembly, .init = establish, .fini = end);

Test(tcp_reassembly, gap_is_reported_and_filled_rfc2018_4)
{
	IN(". 101:201 ack 1");
	OUT(". 1:1 ack 1 sack 101:201");
	IN(". 201:301 ack 1");
	OUT(". 1:1 ack 1 sack 101:301");
	cr_assert_eq(p.delivered, 0);
	IN(". 1:101 ack 1");
	OUT(". 1:1 ack 301 nosack");
	cr_assert_eq(p.delivered, 300);
}

Test(tcp_reassembly, latest_block_comes_first_rfc2018_4)
{
	IN(". 101:201 ack 1");
	IN(". 301:401 ack 1");
	IN(". 501:601 ack 1");
	p.seen = p.nout;
	IN(". 701:801 ack 1");
	OUT(". 1:1 ack 1 sack 701:801,501:601,301:401,101:201");
	IN(". 901:1001 ack 1");
	OUT(". 1:1 ack 1 sack 901:1001,701:801,501:601,301:401");
	IN(". 201:301 ack 1"); /* joins two */
	OUT(". 1:1 ack 1 sack 101:401,901:1001,701:801,501:601");
	IN(". 1:101 ack 1");
	OUT(". 1:1 ack 401 sack 901:1001,701:801,501:601");
	cr_assert_eq(p.delivered, 400);
}

Test(tcp_reassembly, only_three_blocks_fit_beside_timestamps)
{
	/* 40 bytes of options: 12 for timestamps; 2 + 3 * 8 and padding for SACK. */
	sc_end(&p);
	sc_new(&p);
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_establish(&p);
	for (unsigned i = 0; i < 4; i++) {
		char text[64];

		snprintf(text, sizeof(text), ". %u:%u ack 1", 101 + 200 * i, 201 + 200 * i);
		IN(text);
	}
	cr_assert_eq(p.out[p.nout - 1].tcp.nsack, 3);
}

Test(tcp_reassembly, dsack_below_the_acknowledgement_rfc2883_4_1)
{
	IN(". 1:201 ack 1");
	WAIT(MS);
	p.seen = p.nout;
	IN(". 51:151 ack 1");
	OUT(". 1:1 ack 201 sack 51:151");
	IN(". 201:301 ack 1"); /* reported once only */
	WAIT(MS);
	OUT(". 1:1 ack 301 nosack");
}

Test(tcp_reassembly, dsack_inside_a_block_rfc2883_4_2)
{
	IN(". 101:301 ack 1");
	OUT(". 1:1 ack 1 sack 101:301");
	IN(". 151:251 ack 1");
	OUT(". 1:1 ack 1 sack 151:251,101:301");
	IN(". 251:401 ack 1"); /* half of it is new */
	OUT(". 1:1 ack 1 sack 251:301,101:401");
	IN(". 1:101 ack 1");
	cr_assert_eq(p.delivered, 400);
}

Test(tcp_reassembly, dsack_of_bytes_that_a_segment_in_order_repeats_rfc2883_4_2)
{
	IN(". 101:201 ack 1");
	OUT(". 1:1 ack 1 sack 101:201");
	IN(". 1:151 ack 1");
	OUT(". 1:1 ack 201 sack 101:151");
	IN(". 301:401 ack 1");
	OUT(". 1:1 ack 201 sack 301:401");
	IN(". 201:501 ack 1");
	OUT(". 1:1 ack 501 sack 301:401");
	cr_assert_eq(p.delivered, 500);
	cr_assert_eq(sc_count(&p, TCP_DUP_PAYLOAD), 2);
}

Test(tcp_reassembly, dsack_of_a_segment_that_continues_a_block_rfc2883_4_2)
{
	IN(". 101:201 ack 1");
	IN(". 301:401 ack 1");
	p.seen = p.nout;
	IN(". 201:351 ack 1"); /* touches the first block, and repeats half of the second */
	OUT(". 1:1 ack 1 sack 301:351,101:401");
	cr_assert_eq(sc_count(&p, TCP_DUP_PAYLOAD), 1);
}

Test(tcp_reassembly, dsack_reports_the_first_of_two_repeats_rfc2883_4_3)
{
	IN(". 101:201 ack 1");
	IN(". 301:401 ack 1");
	IN(". 501:601 ack 1");
	p.seen = p.nout;
	IN(". 151:551 ack 1");
	OUT(". 1:1 ack 1 sack 151:201,101:601");
	IN(". 1:141 ack 1");
	OUT(". 1:1 ack 601 sack 101:141");
	/* Of old bytes and waiting ones, the old ones come first. */
	IN(". 701:801 ack 1");
	p.seen = p.nout;
	IN(". 551:751 ack 1");
	OUT(". 1:1 ack 801 sack 551:601");
	cr_assert_eq(sc_count(&p, TCP_DUP_PAYLOAD), 3);
}

Test(tcp_reassembly, segment_that_repeats_nothing_has_no_dsack_rfc2883_4)
{
	IN(". 101:201 ack 1");
	OUT(". 1:1 ack 1 sack 101:201");
	IN(". 201:301 ack 1");
	OUT(". 1:1 ack 1 sack 101:301");
	IN(". 51:101 ack 1");
	OUT(". 1:1 ack 1 sack 51:301");
	IN(". 1:51 ack 1");
	OUT(". 1:1 ack 301 nosack");
	cr_assert_eq(sc_count(&p, TCP_DUP_PAYLOAD), 0);
}

Test(tcp_reassembly, slice_that_covers_several_runs)
{
	IN(". 101:201 ack 1");
	IN(". 301:401 ack 1");
	IN(". 451:501 ack 1");
	p.seen = p.nout;
	IN(". 51:471 ack 1");
	cr_assert_eq(p.out[p.nout - 1].tcp.nsack, 2); /* DSACK and one run */
	IN(". 1:61 ack 1");
	cr_assert_eq(p.delivered, 500);
	cr_assert_eq(p.slices, 0);
}

Test(tcp_reassembly, in_order_segment_that_covers_what_waits)
{
	IN(". 101:201 ack 1");
	IN(". 301:401 ack 1");
	IN(". 1:351 ack 1");
	cr_assert_eq(p.delivered, 400);
	cr_assert_eq(p.slices, 0);
	IN(". 401:501 ack 1");
	cr_assert_eq(p.delivered, 500);
}

Test(tcp_reassembly, waiting_bytes_do_not_reach_beyond_the_window)
{
	IN(". 2096000:2098000 ack 1");
	cr_assert_eq(p.slices, 1);
	cr_assert_eq(sc_count(&p, TCP_RCV_FULL), 1);
	p.seen = p.nout;
	IN(". 101:102 ack 1");
	OUT(". 1:1 ack 1 sack 101:102,2096000:2097153");
}

Test(tcp_reassembly, every_order_of_overlapping_pieces_gives_the_same_bytes)
{
	/* 4096 random segments of up to 300 bytes over a stream of 20 000 bytes: each byte is
	 * delivered once. */
	uint32_t rng = 12345;
	char text[64];

	for (unsigned i = 0; i < 4096; i++) {
		uint32_t from, len;

		rng = rng * 1664525 + 1013904223;
		from = 1 + (rng >> 8) % 20000;
		rng = rng * 1664525 + 1013904223;
		len = 1 + (rng >> 8) % 300;
		snprintf(text, sizeof(text), ". %u:%u ack 1", from, from + len);
		IN(text);
		p.nout = p.seen = 0;
	}
	for (unsigned at = 1; at < 20301; at += 100) {
		snprintf(text, sizeof(text), ". %u:%u ack 1", at, at + 100);
		IN(text);
		p.nout = p.seen = 0;
	}
	cr_assert_eq(p.delivered, 20300);
	cr_assert_eq(p.slices, 0);
}
