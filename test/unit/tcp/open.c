/* SPDX-License-Identifier: BSD-3-Clause */
/* RFC 9293 3.5: active, passive and simultaneous open, and the errors meanwhile. */
#include <errno.h>
#include <stdio.h>

#include <criterion/criterion.h>

#include "script.h"

static struct script p;

static void
start(void)
{
	sc_new(&p);
	sc_start(&p);
}

static void
end(void)
{
	sc_end(&p);
}

TestSuite(tcp_open, .init = start, .fini = end);

Test(tcp_open, active_rfc9293_3_5)
{
	sc_connect(&p);
	STATE("SYN-SENT");
	OUT("S 0:0 mss 1460 sackok ws 7 win 65535");
	IN("S. 0:0 ack 1 mss 1460 sackok ws 7");
	STATE("ESTABLISHED");
	OUT(". 1:1 ack 1 win 16384");
	NONE();
}

Test(tcp_open, passive_rfc9293_3_5)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460 sackok ws 7");
	STATE("SYN-RECEIVED");
	OUT("S. 0:0 ack 1 mss 1460 sackok ws 7 win 65535");
	cr_assert_eq(p.connected, 0);
	IN(". 1:1 ack 1");
	STATE("ESTABLISHED");
	cr_assert_eq(p.connected, 1);
	NONE();
}

Test(tcp_open, passive_with_data_on_the_handshakes_ack)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460 sackok ws 7");
	OUT("S. 0:0 ack 1");
	IN(". 1:101 ack 1");
	STATE("ESTABLISHED");
	cr_assert_eq(p.delivered, 100);
}

Test(tcp_open, simultaneous_rfc9293_3_5_figure_7)
{
	sc_connect(&p);
	OUT("S 0:0");
	IN("S 0:0 mss 1460 sackok ws 7");
	STATE("SYN-RECEIVED");
	OUT("S. 0:0 ack 1");
	IN("S. 0:0 ack 1 mss 1460 sackok ws 7");
	STATE("ESTABLISHED");
	cr_assert_eq(p.connected, 1);
}

Test(tcp_open, syn_sent_resets_a_wrong_ack_rfc9293_3_10_7_3)
{
	sc_connect(&p);
	OUT("S 0:0");
	IN("S. 0:0 ack 2");
	OUT("R 2:2");
	STATE("SYN-SENT");
	IN("R. 0:0 ack 2"); /* a reset gets no answer, and this one is not valid */
	NONE();
	STATE("SYN-SENT");
	IN("R 0:0");
	STATE("SYN-SENT");
}

Test(tcp_open, reset_in_syn_sent_means_refused_rfc9293_3_10_7_3)
{
	sc_connect(&p);
	IN("R. 0:0 ack 1");
	STATE("CLOSED");
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, -ECONNREFUSED);
	cr_assert_eq(p.removed, 1);
}

Test(tcp_open, syn_is_repeated_with_backoff_then_given_up_rfc6298_5)
{
	uint64_t first = p.now;

	sc_connect(&p);
	WAIT(60000 * MS);
	STATE("CLOSED");
	cr_assert_eq(p.reason, -ETIMEDOUT);
	cr_assert_eq(p.nout, 1 + p.cfg.syn_retries);
	cr_assert_geq(p.out[1].at - first, p.cfg.rto_initial_ns);
	cr_assert_leq(p.out[1].at - first, p.cfg.rto_initial_ns + 40 * US);
	cr_assert_geq(p.out[2].at - p.out[1].at, 2 * p.cfg.rto_initial_ns);
	cr_assert_geq(p.out[3].at - p.out[2].at, 4 * p.cfg.rto_initial_ns);
}

Test(tcp_open, syn_received_repeats_its_answer)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	OUT("S. 0:0 ack 1");
	IN("S 0:0 mss 1460");
	OUT("S. 0:0 ack 1");
	WAIT(p.cfg.rto_initial_ns + MS);
	OUT("S. 0:0 ack 1");
	STATE("SYN-RECEIVED");
}

Test(tcp_open, syn_that_waits_for_the_port_is_not_sent_once_established)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	OUT("S. 0:0 ack 1");
	p.busy = true;
	IN("S 0:0 mss 1460");
	IN(". 1:1 ack 1");
	p.busy = false;
	sc_send(&p, 1, 10);
	OUT(". 1:11 ack 1");
	NONE();
}

static void
reach_syn_received(void)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460 sackok ws 7");
	OUT("S. 0:0 ack 1");
	STATE("SYN-RECEIVED");
}

Test(tcp_open, syn_received_challenges_a_reset_in_the_window_rfc5961_3_2)
{
	reach_syn_received();
	IN("R 65535:65535");
	OUT(". 1:1 ack 1 win 16384");
	cr_assert_eq(sc_count(&p, TCP_CHALLENGE), 1);
	IN("R 3000000:3000000"); /* outside the window */
	NONE();
	STATE("SYN-RECEIVED");
	IN(". 1:1 ack 1");
	STATE("ESTABLISHED");
	NONE(); /* no surplus acknowledgement */
}

Test(tcp_open, syn_received_challenges_a_syn_in_the_window_rfc5961_4_2)
{
	reach_syn_received();
	IN("S 2:2");
	OUT(". 1:1 ack 1");
	STATE("SYN-RECEIVED");
	IN(". 1:101 ack 1");
	cr_assert_eq(p.delivered, 100);
}

Test(tcp_open, syn_received_answers_what_is_not_acceptable_rfc9293_3_10_7_4)
{
	reach_syn_received();
	IN(". 70001:70101 ack 1");
	OUT(". 1:1 ack 1");
	STATE("SYN-RECEIVED");
	NONE();
}

Test(tcp_open, syn_received_answers_an_old_timestamp_rfc7323_5_3)
{
	sc_end(&p);
	sc_new(&p);
	p.cfg.timestamps = true;
	sc_start(&p);
	sc_listen(&p);
	IN("S 0:0 mss 1460 ts 1000/0");
	OUT("S. 0:0 ack 1 ts 0/1000");
	IN(". 1:1 ack 1 ts 999/0");
	OUT(". 1:1 ack 1 ts 0/1000");
	STATE("SYN-RECEIVED");
}

Test(tcp_open, challenges_in_syn_received_are_limited_rfc5961_7)
{
	reach_syn_received();
	for (unsigned i = 0; i < 50; i++)
		IN("R 2:2");
	cr_assert_eq(p.nout - p.seen, 10);
}

Test(tcp_open, acknowledgement_in_syn_received_waits_for_the_port)
{
	reach_syn_received();
	p.busy = true;
	IN("R 2:2");
	p.busy = false;
	sc_poll(&p);
	OUT(". 1:1 ack 1");
	NONE();
}

Test(tcp_open, syn_received_resets_a_wrong_ack_rfc9293_3_10_7_4)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	OUT("S. 0:0 ack 1");
	IN(". 1:1 ack 7");
	OUT("R 7:7");
	STATE("SYN-RECEIVED");
}

Test(tcp_open, reset_in_syn_received_returns_to_listen)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	IN("R 1:1");
	STATE("CLOSED");
	cr_assert_eq(p.closed, 0); /* the owner had no event of it */
	cr_assert_eq(p.removed, 1);
	IN("S 0:0 mss 1460");
	STATE("SYN-RECEIVED");
}

Test(tcp_open, listen_resets_an_ack_and_ignores_a_reset_rfc9293_3_10_7_2)
{
	sc_listen(&p);
	IN("R 0:0");
	NONE();
	IN(". 0:0 ack 9");
	OUT("R 9:9");
	IN("F 0:0");
	NONE();
	cr_assert_eq(sc_count(&p, TCP_BAD_FLAGS), 1);
	cr_assert_eq(p.added, 0);
}

Test(tcp_open, data_queued_before_the_handshake_goes_with_its_ack)
{
	sc_connect(&p);
	OUT("S 0:0");
	sc_send(&p, 2, 100);
	NONE();
	IN("S. 0:0 ack 1 mss 1460 sackok ws 7");
	OUT(". 1:201 ack 1");
	NONE();
}

Test(tcp_open, close_in_syn_sent_ends_it_at_once_rfc9293_3_10_4)
{
	sc_connect(&p);
	tcp_close(p.c, p.now);
	STATE("CLOSED");
	cr_assert_eq(p.closed, 1);
	cr_assert_eq(p.reason, 0);
}

Test(tcp_open, close_in_syn_received_waits_for_the_handshake_rfc9293_3_10_4)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	OUT("S. 0:0 ack 1");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	NONE();
	IN(". 1:1 ack 1");
	OUT("F. 1:1 ack 1");
	STATE("FIN-WAIT-1");
}

Test(tcp_open, isn_is_keyed_and_advances_rfc6528_3)
{
	uint32_t a, b;

	sc_connect(&p);
	a = p.iss;
	tcp_abort(p.c, p.now);
	p.now += 4 * MS;
	sc_connect(&p);
	b = p.iss;
	cr_assert_eq(b - a, 1000); /* one per 4 us */
	tcp_abort(p.c, p.now);
	p.t.rport++;
	sc_connect(&p);
	cr_assert_gt((p.iss - b) & 0x7fffffff, 1000000);
}

Test(tcp_open, time_wait_lets_a_new_incarnation_in_rfc6191)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	IN(". 1:1 ack 1");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN("F. 1:1 ack 2");
	STATE("TIME-WAIT");
	IN("S 1:1 mss 1460"); /* not newer: it may be an old duplicate */
	STATE("TIME-WAIT");
	p.seen = p.nout;
	IN("S 5000:5000 mss 1460");
	STATE("SYN-RECEIVED");
	OUT("S. 0:0 ack 5001");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.added, 2);
}

/* Sends 1.2 MB in 8 ms, which outruns the clock of the ISN, and closes both sides. Returns the last
 * sequence number that was used. */
static uint32_t
outrun_the_clock_until_time_wait(void)
{
	uint32_t first, last;
	char text[64];

	sc_listen(&p);
	IN("S 0:0 mss 1460 sackok ws 7");
	IN(". 1:1 ack 1");
	first = p.iss;
	for (unsigned i = 1; i <= 80; i++) {
		sc_send(&p, 10, 1460);
		p.now += 100 * US;
		snprintf(text, sizeof(text), ". 1:1 ack %u", 1 + 14600 * i);
		IN(text);
	}
	tcp_close(p.c, p.now);
	sc_poll(&p);
	last = p.out[p.nout - 1].tcp.seq;
	cr_assert_eq(last - first, 1 + 80 * 14600);
	snprintf(text, sizeof(text), "F. 1:1 ack %u", last + 1 - first);
	IN(text);
	STATE("TIME-WAIT");
	return last;
}

Test(tcp_open, isn_after_time_wait_is_larger_than_the_last_number_rfc9293_3_6_1)
{
	uint32_t last = outrun_the_clock_until_time_wait();

	p.seen = p.nout;
	IN("S 5000:5000 mss 1460");
	OUT("S. 0:0 ack 5001");
	cr_assert_gt((int32_t)(p.iss - last), 0, "%u below the last one", last - p.iss);
	IN(". 5001:5101 ack 1");
	cr_assert_eq(p.delivered, 100);
}

Test(tcp_open, isn_after_time_wait_waits_for_room_at_the_listener_rfc9293_3_6_1)
{
	uint32_t last = outrun_the_clock_until_time_wait(), port = p.t.rport;
	struct tcp_listener *l = p.l;

	tcp_unlisten(p.l, p.now);
	p.l = tcp_listen(p.s, 0, NULL); /* refuses each SYN */
	cr_assert_neq(p.l, l);
	IN("S 5000:5000 mss 1460");
	cr_assert_null(p.c);
	tcp_unlisten(p.l, p.now);
	sc_listen(&p);
	p.t.rport = (uint16_t)(port + 1); /* another tuple does not use up the number */
	IN("S 0:0 mss 1460");
	p.c = NULL;
	p.t.rport = (uint16_t)port;
	IN("S 5000:5000 mss 1460");
	STATE("SYN-RECEIVED");
	cr_assert_gt((int32_t)(p.iss - last), 0, "%u below the last one", last - p.iss);
}

Test(tcp_open, time_wait_lets_a_new_incarnation_into_a_later_listener_rfc6191)
{
	sc_listen(&p);
	IN("S 0:0 mss 1460");
	IN(". 1:1 ack 1");
	tcp_close(p.c, p.now);
	sc_poll(&p);
	IN("F. 1:1 ack 2");
	STATE("TIME-WAIT");
	tcp_unlisten(p.l, p.now);
	p.l = NULL;
	IN("S 5000:5000 mss 1460");
	STATE("TIME-WAIT");
	sc_listen(&p);
	p.seen = p.nout;
	IN("S 5000:5000 mss 1460");
	STATE("SYN-RECEIVED");
	OUT("S. 0:0 ack 5001");
	cr_assert_eq(p.removed, 1);
	cr_assert_eq(p.added, 2);
}
