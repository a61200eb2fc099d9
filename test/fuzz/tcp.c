/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes lib/tcp with a peer that sends anything at any time. The input is a list of steps:
 * segments around the window with any flags and options, time that passes, an owner that sends,
 * closes and refuses, and a port that is busy. Each byte of the peer's stream is a function of its
 * sequence number, so that delivered bytes can be checked.
 */
#include <errno.h>

#include "../../lib/tcp/tcp.h"
#include "../support/tcp_end.h"
#include "fuzz.h"

#define PEER_ISN 0xfffff000u
#define MTU      1500
#define EMSS_MIN (68 - 40 - 12) /* of the least MTU of IPv4 (RFC 791), with timestamps */

#define OOO_SLICES     64
#define SEGMENT_SLICES 2 /* of a segment of the peer */

static struct world {
	struct tcp_stack *s;
	struct tcp_listener *l;
	struct tcp_conn *c;
	struct tcp_tuple t;
	uint64_t now;
	/* `next`: the sequence number that the owner expects; `edge`: right edge of the window. */
	uint32_t iss, next, edge;
	bool refuse, busy, have_edge, over;
	uint8_t wscale;
	int64_t recs, slices;
} w;

/* ---- The owner ---- */

/* Checks that the window shrinks by less than the granularity of its scale (RFC 7323 2.4). */
static void
check_window(const struct wire_tcp *t)
{
	uint32_t edge = t->ack + ((uint32_t)t->window << (t->flags & TCP_SYN ? 0 : w.wscale));

	if (t->flags & TCP_SYN)
		w.have_edge = false;
	if (!(t->flags & TCP_ACK) || t->flags & TCP_RST)
		return;
	CLAIM(!w.have_edge || (int32_t)(edge - w.edge) > -(1 << w.wscale));
	if (!w.have_edge || (int32_t)(edge - w.edge) > 0)
		w.edge = edge;
	w.have_edge = true;
}

static int
on_output(void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	uint8_t hdr[TCP_MAX];
	struct wire_tcp back;
	uint32_t n = 0, seg = out->gso_size ? out->gso_size : out->len;
	unsigned len = wire_tcp_emit(hdr, &out->tcp);

	CLAIM(wire_tcp_parse(&back, hdr, len) == (int)len);
	CLAIM(seg + len + IP4_LEN <= MTU);
	CLAIM(!!out->first == !!out->len);
	for (const struct tcp_rec *r = out->first; r && n < out->off + out->len; r = r->next)
		n += r->len;
	CLAIM(out->len == 0 || n == out->off + out->len); /* whole records */
	if (w.busy)
		return -EAGAIN;
	if (out->tcp.flags & TCP_SYN) { /* a new connection, perhaps after TIME-WAIT */
		w.iss = out->tcp.seq;
		w.next = out->tcp.ack;
		w.wscale = out->tcp.wscale == 0xff ? 0 : out->tcp.wscale;
	}
	if (c)
		check_window(&out->tcp);
	return 0;
}

static void
on_slice_free(void *ctx, struct tcp_slice *chain)
{
	tcp_end_slice_free(&w.slices, chain);
}

static bool
on_deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	uint32_t n = 0;

	CLAIM(tcp_left(c) == NULL);
	if (w.refuse)
		return false;
	for (struct tcp_slice *s = chain; s; s = s->next) {
		CLAIM(s->len > 0 && s->seq == w.next + n);
		for (uint32_t i = 0; i < s->len; i++)
			CLAIM(s->data[i] == (uint8_t)((s->seq + i) * 7));
		n += s->len;
	}
	w.next += n;
	on_slice_free(ctx, chain);
	tcp_consumed(c, n);
	return true;
}

static void
on_rec_free(void *ctx, struct tcp_rec *chain)
{
	tcp_end_rec_free(&w.recs, chain);
}

static struct tcp_rec *
on_rec_split(void *ctx, struct tcp_conn *c, struct tcp_rec *rec, uint32_t at)
{
	CLAIM(at > 0 && at < rec->len);
	return tcp_end_rec_split(&w.recs, rec, at);
}

static void
on_event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
	CLAIM(!w.over);
	if (ev == TCP_EV_CONNECTED && tcp_conn_listener(c))
		tcp_claim(c, &w);
	if (ev == TCP_EV_CLOSED)
		w.over = true;
}

static void
on_added(void *ctx, struct tcp_conn *c, struct tcp_listener *l)
{
	CLAIM(!w.c);
	w.c = c;
	w.over = false;
	w.have_edge = false;
}

static void
on_removed(void *ctx, struct tcp_conn *c)
{
	CLAIM(w.c == c);
	w.c = NULL;
}

/* ---- Steps ---- */

static struct tcp_slice *
make_payload(uint32_t seq, uint32_t len)
{
	struct tcp_slice *s = tcp_end_slice(&w.slices, NULL, len);
	uint8_t *bytes = s->owner;

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((seq + i) * 7);
	return s;
}

static void
options(struct fuzz_input *in, struct wire_tcp *t)
{
	unsigned what = fuzz_take(in, 1);

	t->wscale = what & 1 ? fuzz_take(in, 1) % 16 : 0xff;
	t->mss = what & 2 ? fuzz_take(in, 2) : 0;
	t->sack_ok = what & 4;
	t->ts = what & 8;
	if (t->ts) {
		t->ts_val = (uint32_t)(w.now >> 20) + (int8_t)fuzz_take(in, 1);
		t->ts_ecr = fuzz_take(in, 1);
	}
	for (t->nsack = 0; t->nsack < (what >> 4 & 3); t->nsack++) {
		t->sack[t->nsack].left = w.iss + fuzz_take(in, 2);
		t->sack[t->nsack].right = t->sack[t->nsack].left + fuzz_take(in, 2);
	}
}

static void
segment(struct fuzz_input *in)
{
	unsigned how = fuzz_take(in, 1);
	struct wire_tcp t = {.sport = w.t.rport, .dport = w.t.lport};
	uint32_t len = how & 1 ? fuzz_take(in, 1) * (how & 2 ? 8 : 1) : 0;
	struct tcp_slice *payload = NULL;

	t.flags = how & 4 ? TCP_ACK : fuzz_take(in, 1);
	t.seq = how & 8 ? w.next : w.next + (int16_t)fuzz_take(in, 2) * (how & 16 ? 64 : 1);
	t.ack = w.iss + (how & 32 ? fuzz_take(in, 2) : fuzz_take(in, 1));
	t.window = how & 64 ? 0xffff : fuzz_take(in, 2);
	t.wscale = 0xff;
	if (how & 128)
		options(in, &t);
	if (t.flags & TCP_SYN && !w.c)
		t.seq = PEER_ISN;
	if (len) {
		payload = make_payload(t.seq, len);
		if (how & 2 && len > 4) { /* two slices */
			payload->len = 4;
			payload->next = make_payload(t.seq + 4, len - 4);
		}
	}
	if (w.c && !tcp_reopen(w.c, w.now, &t))
		tcp_input(w.c, w.now, &t, payload, fuzz_take(in, 1) & 3);
	else
		tcp_listen_input(w.l, w.now, &w.t, MTU, &t, payload, 0);
}

static void
owner(struct fuzz_input *in)
{
	const struct tcp_note note = {{7, 8}};
	struct tcp_rec *chain;
	unsigned what = fuzz_take(in, 1), end;

	w.refuse = what & 64;
	w.busy = what & 128;
	if (!w.c || w.over)
		return;
	switch (what & 15) {
	case 0:
		tcp_close(w.c, w.now);
		break;
	case 1:
		end = fuzz_take(in, 1);
		if (end == 1)
			tcp_abort(w.c, w.now);
		else if (end == 2 && !tcp_leave(w.c, w.now, &note))
			CLAIM(!w.c);
		break;
	case 2:
		if (what & 32)
			tcp_icmp_unreachable(w.c, w.now, w.iss + fuzz_take(in, 1), what & 64);
		else
			tcp_icmp_mtu(w.c, w.now, w.iss + fuzz_take(in, 1), fuzz_take(in, 2));
		break;
	case 3:
		tcp_deliver_resume(w.c);
		break;
	case 4:
		tcp_set_tso(w.c, fuzz_take(in, 2));
		break;
	default:
		chain = tcp_end_rec(&w.recs, NULL, 1 + fuzz_take(in, 2) % 5000);
		if (what & 32)
			chain->next = tcp_end_rec(&w.recs, NULL, chain->len);
		tcp_send(w.c, chain);
	}
}

static void
check(void)
{
	struct tcp_info i;

	if (!w.c)
		return;
	tcp_get_info(w.c, &i);
	CLAIM(i.cwnd > 0 && i.emss >= EMSS_MIN && i.emss <= MTU - 40);
	CLAIM(i.rto_ns > 0 && i.rto_ns <= 4000000000);
	CLAIM(i.rcv_wnd <= 8192);
	CLAIM(w.slices <= OOO_SLICES + SEGMENT_SLICES);
	CLAIM(i.in_flight <= i.queued + 2); /* SYN, FIN */
}

static void
setup(uint8_t variant)
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
	struct tcp_config cfg;

	memset(&w, 0, sizeof(w));
	tcp_config_default(&cfg);
	cfg.max_conns = cfg.max_half_open = cfg.max_time_wait = cfg.max_left = 2;
	cfg.rcv_buf = 8192;
	cfg.ooo_slices = OOO_SLICES;
	cfg.isn_key = (struct sk_key){{1, 2}};
	cfg.cc = variant & 1 ? "dctcp" : "cubic";
	cfg.timestamps = variant & 2;
	cfg.sack = !(variant & 4);
	w.now = 1000000000;
	w.s = tcp_stack_create(&cfg, &ops, NULL, w.now);
	CLAIM(w.s);
	w.l = tcp_listen(w.s, 2, NULL);
	w.t = (struct tcp_tuple){.lport = 1, .rport = 2, .vlan = ETH_NO_VLAN};
	w.t.laddr = w.t.raddr = sk_addr_v4((const uint8_t[]){192, 0, 2, 1});
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {.p = data, .len = size};

	setup((uint8_t)fuzz_take(&in, 1));
	while (in.at < in.len) {
		switch (fuzz_take(&in, 1) & 3) {
		case 0:
		case 1:
			segment(&in);
			break;
		case 2:
			owner(&in);
			break;
		case 3:
			w.now += (uint64_t)fuzz_take(&in, 1) << (fuzz_take(&in, 1) % 28);
			break;
		}
		tcp_stack_poll(w.s, w.now, 16);
		check();
	}
	tcp_stack_destroy(w.s);
	CLAIM(w.recs == 0 && w.slices == 0);
	return 0;
}
