/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work that a peer causes by segments that cost it little. Each waiting slice and each record
 * in flight has a page of its own. The test takes away the access to all of these pages; the
 * handler of SIGSEGV gives the access to one page back and counts it. So the count is that of the
 * slices and records that TCP touches.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "../../../lib/tcp/tcp.h"

#define PAGE     4096u
#define PAGES    8192u
#define PEER_ISN 0xfffffc00u /* wraps soon */
#define MSS      256u

static struct rig {
	struct tcp_config cfg;
	struct tcp_stack *s;
	struct tcp_conn *c;
	struct tcp_tuple t;
	uint64_t now;
	uint32_t iss;
	uint8_t *pages;
	unsigned used;
	volatile unsigned touched;
	unsigned kept, recs; /* slices and records that the stack owns */
} g;

/* ---- The pages ---- */

static void
on_fault(int sig, siginfo_t *info, void *context)
{
	size_t at = (size_t)((uint8_t *)info->si_addr - g.pages);

	if (at >= (size_t)PAGES * PAGE)
		_exit(1); /* a fault of another kind */
	mprotect(g.pages + at / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
	g.touched++;
}

static void *
page_take(void)
{
	cr_assert_lt(g.used, PAGES);
	return g.pages + (size_t)PAGE * g.used++;
}

static void
guard_all(void)
{
	g.touched = 0;
	cr_assert_eq(mprotect(g.pages, (size_t)g.used * PAGE, PROT_NONE), 0);
}

/* ---- The owner ---- */

static int
on_output(void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	if (out->tcp.flags & TCP_SYN)
		g.iss = out->tcp.seq;
	return 0;
}

static void
on_slice_free(void *ctx, struct tcp_slice *chain)
{
	for (; chain != NULL; chain = chain->next)
		g.kept--;
}

static bool
on_deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	on_slice_free(ctx, chain);
	return true;
}

static void
on_rec_free(void *ctx, struct tcp_rec *chain)
{
	for (; chain != NULL; chain = chain->next)
		g.recs--;
}

static struct tcp_rec *
on_rec_split(void *ctx, struct tcp_conn *c, struct tcp_rec *rec, uint32_t at)
{
	return NULL;
}

static void
on_event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
}

static void
on_added(void *ctx, struct tcp_conn *c, struct tcp_listener *l)
{
}

static void
on_removed(void *ctx, struct tcp_conn *c)
{
}

/* ---- The peer ---- */

/* Begins a segment of the peer that acknowledges `ack` bytes. */
static struct wire_tcp
peer_segment(uint32_t seq, uint32_t ack)
{
	return (struct wire_tcp){.sport = g.t.rport,
		.dport = g.t.lport,
		.seq = PEER_ISN + seq,
		.ack = g.iss + ack,
		.flags = TCP_ACK,
		.window = 0xffff,
		.wscale = 0xff};
}

static void
payload_in(uint32_t from, uint32_t end)
{
	struct tcp_slice *s = page_take();
	struct wire_tcp t = peer_segment(from, 1);

	*s = (struct tcp_slice){.len = end - from};
	g.kept++;
	tcp_input(g.c, g.now, &t, s, IP_ECN_NOT);
}

static void
cost_setup(void)
{
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
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	struct wire_tcp t;

	g.pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(g.pages, MAP_FAILED);
	sigaction(SIGSEGV, &sa, NULL);
	tcp_config_default(&g.cfg);
	g.cfg.max_conns = 4;
	g.cfg.ecn = g.cfg.timestamps = false;
	g.cfg.cc = "none";
	g.now = 1000000000;
	g.s = tcp_stack_create(&g.cfg, &ops, NULL, g.now);
	cr_assert_not_null(g.s);
	g.t = (struct tcp_tuple){.lport = 4000, .rport = 999, .vlan = ETH_NO_VLAN};
	sk_addr_parse("192.0.2.1", &g.t.laddr);
	sk_addr_parse("192.0.2.2", &g.t.raddr);
	cr_assert_eq(tcp_connect(g.s, g.now, &g.t, 1500, NULL, &g.c), 0);
	tcp_stack_poll(g.s, g.now, 1000);
	t = peer_segment(0, 1);
	t.flags |= TCP_SYN;
	t.mss = MSS;
	t.wscale = 7;
	t.sack_ok = true;
	g.now += 10000;
	tcp_input(g.c, g.now, &t, NULL, IP_ECN_NOT);
	tcp_stack_poll(g.s, g.now, 1000);
	g.now += 10000;
}

static void
cost_end(void)
{
	cr_assert_eq(mprotect(g.pages, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	tcp_stack_destroy(g.s);
	cr_assert_eq(g.kept, 0, "%u slices leaked", g.kept);
	cr_assert_eq(g.recs, 0, "%u records leaked", g.recs);
	munmap(g.pages, (size_t)PAGES * PAGE);
}

TestSuite(tcp_cost, .init = cost_setup, .fini = cost_end);

static uint64_t
count(enum tcp_reason reason)
{
	return tcp_stack_counters(g.s)[reason];
}

/* ---- Slices out of order ---- */

#define RUNS 1023u
#define PATH 64u /* no path of a tree of RUNS runs is nearly as long */

/* Byte number `i` of those that the peer sends with a hole before each. */
static void
single_byte(uint32_t i)
{
	payload_in(3 + 2 * i, 4 + 2 * i);
}

/* Returns the slices that the last of the segments touches which single_byte(i) sends. */
static unsigned
touched_by_byte(uint32_t i)
{
	guard_all();
	single_byte(i);
	return g.touched;
}

static void
each_place_costs_a_path(void)
{
	for (uint32_t i = 0; i < RUNS; i += 73)
		cr_assert_leq(touched_by_byte(i), PATH, "byte %u: %u slices", i, g.touched);
	cr_assert_leq(touched_by_byte(RUNS - 2), PATH, "%u slices", g.touched);
	cr_assert_eq(count(TCP_DUP_PAYLOAD), (RUNS + 72) / 73 + 1);
	cr_assert_eq(count(TCP_OOO_FULL), 0);
	single_byte(RUNS);
	cr_assert_leq(touched_by_byte(RUNS - 2), PATH, "%u slices", g.touched);
	cr_assert_eq(count(TCP_OOO_FULL), 1, "a repeated byte is dropped by a full queue, too");
}

Test(tcp_cost, repeated_byte_among_many_holes_touches_few_slices)
{
	for (uint32_t i = 0; i < RUNS; i++)
		single_byte(i);
	each_place_costs_a_path();
}

Test(tcp_cost, descending_bytes_touch_few_slices)
{
	for (uint32_t i = RUNS; i-- > 0;)
		single_byte(i);
	each_place_costs_a_path();
}

Test(tcp_cost, bytes_in_a_chosen_order_touch_few_slices)
{
	/* From both ends to the middle, where a tree without ranks is longest. */
	for (uint32_t i = 0; i < RUNS; i++)
		single_byte(i % 2 ? RUNS - 1 - i / 2 : i / 2);
	each_place_costs_a_path();
}

Test(tcp_cost, byte_before_a_long_run_touches_few_slices)
{
	for (uint32_t i = 0; i < 900; i++)
		payload_in(1000 + i, 1001 + i);
	for (uint32_t i = 1; i <= 100; i++) {
		guard_all();
		payload_in(1000 - i, 1002 - i); /* touches the run, and repeats its first byte */
		cr_assert_leq(g.touched, 8, "%u slices", g.touched);
	}
	/* The slices count once: the connection keeps as many as the configuration permits. */
	for (uint32_t i = 0; i < 100; i++)
		payload_in(5000 + 2 * i, 5001 + 2 * i);
	cr_assert_eq(g.kept, g.cfg.ooo_slices, "%u slices", g.kept);
}

/* ---- Acknowledgements ---- */

#define SEGS 4096u /* that may be in flight */
#define ACKS 64u   /* that a turn receives */

static struct tcp_info
info(void)
{
	struct tcp_info i;

	tcp_get_info(g.c, &i);
	return i;
}

/* Sends as many segments as may be in flight. The clock then stands a round trip later. */
static void
fill_flight(void)
{
	struct wire_tcp wide = peer_segment(1, 1); /* the window of the SYN was not scaled */

	tcp_input(g.c, g.now, &wide, NULL, IP_ECN_NOT);
	for (uint32_t i = 0; i < SEGS; i++) {
		struct tcp_rec *r = page_take();

		*r = (struct tcp_rec){.len = MSS};
		g.recs++;
		cr_assert_eq(tcp_send(g.c, r), 0);
	}
	while (tcp_stack_poll(g.s, g.now, 1000) > 0)
		g.now += 10;
	cr_assert_eq(info().in_flight, SEGS * MSS);
	g.now += 10000;
}

struct segs { /* the segments [from, end) in flight */
	uint32_t from, end;
};

/* Acknowledges no bytes, and reports `n` blocks. */
static void
blocks_in(const struct segs *b, uint8_t n)
{
	struct wire_tcp t = peer_segment(1, 1);

	for (t.nsack = 0; t.nsack < n; t.nsack++)
		t.sack[t.nsack] = (struct wire_sack){
			g.iss + 1 + b[t.nsack].from * MSS, g.iss + 1 + b[t.nsack].end * MSS};
	tcp_input(g.c, g.now, &t, NULL, IP_ECN_NOT);
}

/* Reports a segment. Returns the records that TCP touches. */
static unsigned
touched_by_block(uint32_t seg)
{
	guard_all();
	blocks_in(&(struct segs){seg, seg + 1}, 1);
	return g.touched;
}

static void
next_turn(void)
{
	tcp_stack_poll(g.s, g.now, 1000);
	g.now += 1000;
}

Test(tcp_cost, repeated_block_touches_few_records)
{
	unsigned all = 0;

	fill_flight();
	for (unsigned i = 0; i < ACKS; i++)
		all += touched_by_block(SEGS - 1);
	cr_assert_leq(all, SEGS + 2 * ACKS, "%u records", all);
	cr_assert_eq(count(TCP_RACK_LOSS), 0, "the reordering window has not passed");
}

Test(tcp_cost, blocks_in_a_chosen_order_touch_a_bounded_number_of_records_rfc2018_8)
{
	unsigned all = 0;

	fill_flight();
	/* In this order, each walk begins at the first segment. */
	for (uint32_t i = 0; i < ACKS; i++)
		all += touched_by_block(SEGS - 1 - 2 * i);
	cr_assert_leq(all, 5 * SEGS + ACKS, "%u records", all);
	cr_assert_geq(info().in_flight, (SEGS - 5) * MSS, "other blocks were ignored");
	guard_all();
	next_turn();
	cr_assert_leq(g.touched, SEGS);
	/* The peer reports what was ignored again. */
	all = info().in_flight;
	blocks_in(&(struct segs){SEGS - 1 - 2 * (ACKS - 1), SEGS}, 1);
	cr_assert_lt(info().in_flight, all);
}

Test(tcp_cost, losses_are_found_by_the_next_output_after_many_walks_rfc8985_6_2)
{
	fill_flight();
	/* The first acknowledgement uses up the walks of the turn; with the third reported segment,
	 * those before are lost. */
	blocks_in(&(struct segs){SEGS - 5, SEGS - 4}, 1);
	blocks_in(&(struct segs){SEGS - 5, SEGS - 3}, 1);
	blocks_in(&(struct segs){SEGS - 5, SEGS}, 1);
	cr_assert_eq(count(TCP_RACK_LOSS), 0);
	next_turn();
	cr_assert_eq(count(TCP_RACK_LOSS), SEGS - 5);
	cr_assert_gt(count(TCP_RETRANSMIT), 0);
}

/* An honest peer reports each segment that arrives, and the runs before it, as RFC 2018 4 asks. */
Test(tcp_cost, each_block_of_an_honest_peer_counts_rfc2018_4)
{
	enum { GAP = 8 }; /* each eighth segment is lost */
	unsigned acks = 0;

	fill_flight();
	for (uint32_t i = 1; i < SEGS; i++) {
		struct segs b[4];
		uint8_t n = 0;

		if (i % GAP == 0)
			continue;
		b[n++] = (struct segs){i - i % GAP + 1, i + 1};
		for (uint32_t run = i / GAP; run > 0 && n < 4; run--)
			b[n++] = (struct segs){(run - 1) * GAP + 1, run * GAP};
		blocks_in(b, n);
		if (++acks % ACKS == 0)
			next_turn();
	}
	next_turn();
	cr_assert_eq(count(TCP_RACK_LOSS), (SEGS + GAP - 1) / GAP);
	cr_assert_eq(count(TCP_RETRANSMIT), (SEGS + GAP - 1) / GAP);
}
