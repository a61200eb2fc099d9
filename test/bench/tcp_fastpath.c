/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of a segment in lib/tcp alone: nanoseconds per received in-order data segment, per sent
 * segment, and per round of a ping-pong. The owner's callbacks do nothing; the peer is a loop that
 * makes segments. The program prints its results and checks nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/tcp/tcp.h"
#include "../support/clock.h"

#define ROUNDS  (1u << 20)
#define BURST   32
#define PAYLOAD 90 /* a 64-byte Write in its FPDU */

static struct tcp_conn *conn;
static uint32_t sent_to; /* sequence number behind the last byte that the connection sent */

static int
on_output(void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	sent_to = out->tcp.seq + out->len + !!(out->tcp.flags & TCP_SYN);
	return 0;
}

static bool
on_deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	tcp_consumed(c, chain->len);
	return true;
}

static void
on_slice_free(void *ctx, struct tcp_slice *chain)
{
}

static void
on_rec_free(void *ctx, struct tcp_rec *chain)
{
}

static struct tcp_rec *
on_rec_split(void *ctx, struct tcp_conn *c, struct tcp_rec *rec, uint32_t at)
{
	return NULL;
}

static void
on_event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
	if (ev == TCP_EV_CONNECTED)
		tcp_claim(c, NULL);
}

static void
on_added(void *ctx, struct tcp_conn *c, struct tcp_listener *l)
{
	conn = c;
}

static void
on_removed(void *ctx, struct tcp_conn *c)
{
}

static const struct tcp_ops ops = {
	.output = on_output,
	.deliver = on_deliver,
	.slice_free = on_slice_free,
	.rec_free = on_rec_free,
	.rec_split = on_rec_split,
	.event = on_event,
	.conn_added = on_added,
	.conn_removed = on_removed,
};

/* State of the simulated peer. */
static uint32_t seq = 1000, ts = 1;
static uint64_t now = 1000000;

static struct wire_tcp
peer(uint8_t flags)
{
	return (struct wire_tcp){.sport = 1,
		.dport = 2,
		.seq = seq,
		.ack = sent_to,
		.flags = flags,
		.window = 0xffff,
		.wscale = 0xff,
		.ts = true,
		.ts_val = ts};
}

static struct tcp_stack *
open_connection(void)
{
	struct tcp_tuple t = {.lport = 2, .rport = 1, .vlan = ETH_NO_VLAN};
	struct wire_tcp s = peer(TCP_SYN);
	struct tcp_listener *l;
	struct tcp_config cfg;
	struct tcp_stack *st;

	tcp_config_default(&cfg);
	st = tcp_stack_create(&cfg, &ops, NULL, now);
	if (st == NULL)
		exit(1);
	sk_addr_parse("10.0.0.1", &t.laddr);
	sk_addr_parse("10.0.0.2", &t.raddr);
	l = tcp_listen(st, 4, NULL);
	s.mss = 1460;
	s.wscale = 7;
	s.sack_ok = true;
	tcp_listen_input(l, now, &t, 1500, &s, NULL, 0);
	tcp_stack_poll(st, now, 8);
	seq++;
	s = peer(TCP_ACK);
	tcp_input(conn, now, &s, NULL, 0);
	tcp_stack_poll(st, now, 8);
	return st;
}

static void
report(const char *what, uint64_t ns, uint64_t n)
{
	printf("%-40s %7.1f ns\n", what, (double)ns / (double)n);
}

static void
receive(unsigned i)
{
	static struct tcp_slice slices[BURST];
	struct tcp_slice *p = &slices[i % BURST];
	struct wire_tcp s = peer(TCP_ACK | TCP_PSH);

	*p = (struct tcp_slice){.len = PAYLOAD};
	seq += PAYLOAD;
	tcp_input(conn, now, &s, p, 0);
}

static void
send_record(unsigned i)
{
	static struct tcp_rec recs[BURST];

	recs[i % BURST] = (struct tcp_rec){.len = PAYLOAD};
	tcp_send(conn, &recs[i % BURST]);
}

static void
acknowledge(void)
{
	struct wire_tcp s = peer(TCP_ACK);

	tcp_input(conn, now, &s, NULL, 0);
}

static void
bench_receive(struct tcp_stack *st)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < ROUNDS; i++) {
		now += 100;
		receive(i);
		if (i % BURST == BURST - 1)
			tcp_stack_poll(st, now, 64);
	}
	report("receive a segment, poll each 32", now_ns() - start, ROUNDS);
}

/* `each`: one poll per record, so one segment per record; else 32 records share three segments. */
static void
bench_send(struct tcp_stack *st, bool each)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < ROUNDS; i++) {
		now += 100;
		send_record(i);
		if (each || i % BURST == BURST - 1)
			tcp_stack_poll(st, now, 64);
		if (i % BURST == BURST - 1)
			acknowledge();
	}
	report(each ? "send a record in its segment, ack each 32"
		    : "send a record, 32 in three segments",
		now_ns() - start, ROUNDS);
}

static void
bench_ping_pong(struct tcp_stack *st)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < ROUNDS; i++) {
		now += 1000;
		receive(i); /* acknowledges our last segment */
		tcp_stack_poll(st, now, 64);
		send_record(i);
		tcp_stack_poll(st, now, 64);
	}
	report("ping-pong: receive, send, two polls", now_ns() - start, ROUNDS);
}

int
main(void)
{
	struct tcp_stack *st = open_connection();

	for (unsigned i = 0; i < 3; i++) {
		bench_receive(st);
		bench_send(st, true);
		bench_send(st, false);
		bench_ping_pong(st);
	}
	printf("connection: %zu bytes\n", tcp_conn_size());
	tcp_stack_destroy(st);
	return 0;
}
