/* SPDX-License-Identifier: BSD-3-Clause */
/* The scripted peer: acts as the owner of the stack, records the segments that the stack sends, and
 * compares them with lines of text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <criterion/criterion.h>

#include "../../../lib/base/mem.h"
#include "../../support/tcp_end.h"
#include "script.h"
#include "script_line.h"

/* ---- The owner ---- */

static int
on_output(void *ctx, struct tcp_conn *c, const struct tcp_tuple *to, const struct tcp_out *out)
{
	struct script *p = ctx;
	struct sc_out *o = &p->out[p->nout];
	uint32_t n = 0;

	if (p->busy)
		return -EAGAIN;
	cr_assert_lt(p->nout, SC_MAX_OUT);
	memset(o, 0, sizeof(*o));
	p->nout++;
	*o = (struct sc_out){.at = p->now,
		.tcp = out->tcp,
		.len = out->len,
		.gso = out->gso_size,
		.off = out->off,
		.ecn = out->ecn,
		.orphan = c == NULL};
	cr_assert_eq(out->tcp.sport, to->lport);
	cr_assert_eq(out->tcp.dport, to->rport);
	if (out->tcp.flags & TCP_SYN)
		p->iss = out->tcp.seq;
	for (const struct tcp_rec *r = out->first; r != NULL && n < out->len + out->off;
		r = r->next) {
		if (o->nrecs < SK_ARRAY_LEN(o->rec_len))
			o->rec_len[o->nrecs++] = r->len;
		n += r->len;
	}
	cr_assert_eq(n, out->len + out->off, "whole records");
	if (out->tcp.ts)
		p->ts_echo = out->tcp.ts_val;
	return 0;
}

static void
on_slice_free(void *ctx, struct tcp_slice *chain)
{
	struct script *p = ctx;

	tcp_end_slice_free(&p->slices, chain);
}

static bool
on_deliver(void *ctx, struct tcp_conn *c, struct tcp_slice *chain)
{
	struct script *p = ctx;
	uint32_t n = 0;

	if (p->refuse)
		return false;
	for (struct tcp_slice *s = chain; s != NULL; s = s->next) {
		p->got = realloc(p->got, p->delivered + s->len);
		memcpy(p->got + p->delivered, s->data, s->len);
		p->delivered += s->len;
		n += s->len;
	}
	on_slice_free(ctx, chain);
	if (p->abort_in_deliver)
		tcp_abort(c, p->now);
	else if (!p->keep_bytes)
		tcp_consumed(c, n);
	return true;
}

static void
on_rec_free(void *ctx, struct tcp_rec *chain)
{
	struct script *p = ctx;

	tcp_end_rec_free(&p->recs, chain);
}

static struct tcp_rec *
on_rec_split(void *ctx, struct tcp_conn *c, struct tcp_rec *rec, uint32_t at)
{
	struct script *p = ctx;

	cr_assert(at > 0 && at < rec->len);
	return p->no_split ? NULL : tcp_end_rec_split(&p->recs, rec, at);
}

static void
on_event(void *ctx, struct tcp_conn *c, enum tcp_event ev)
{
	struct script *p = ctx;

	cr_assert_neq(c, p->closed_conn, "an event after TCP_EV_CLOSED");
	switch (ev) {
	case TCP_EV_CONNECTED:
		p->connected++;
		if (tcp_conn_listener(c) != NULL && !p->no_claim)
			(p->claim_early ? tcp_claim_early : tcp_claim)(c, NULL);
		break;
	case TCP_EV_SENT:
		p->sent_ev++;
		break;
	case TCP_EV_UNREAD:
		p->unread_ev++;
		if (p->reports)
			tcp_consumed(c, UINT32_MAX);
		break;
	case TCP_EV_EMSS:
		p->emss_ev++;
		break;
	case TCP_EV_PEER_FIN:
		p->peer_fin++;
		break;
	case TCP_EV_CLOSED:
		p->closed++;
		p->closed_conn = c;
		p->reason = tcp_close_reason(c);
		break;
	}
}

static void
on_added(void *ctx, struct tcp_conn *c, struct tcp_listener *l)
{
	struct script *p = ctx;

	p->added++;
	p->c = c;
	p->closed_conn = NULL;
}

static void
on_removed(void *ctx, struct tcp_conn *c)
{
	struct script *p = ctx;

	p->removed++;
	if (p->c == c)
		p->c = NULL;
}

/* ---- The script ---- */

void
sc_new(struct script *p)
{
	memset(p, 0, sizeof(*p));
	tcp_config_default(&p->cfg);
	p->cfg.max_conns = 64;
	p->cfg.max_half_open = 8;
	p->cfg.max_time_wait = p->cfg.max_left = 8;
	p->cfg.isn_key = (struct sk_key){{3, 4}};
	p->cfg.ecn = false;
	p->cfg.timestamps = false;
	p->cfg.keepalive_held_ns = 0;
	p->now = 1000000000;
	p->mtu = 1500;
	p->rtt = 10 * US;
	p->t = (struct tcp_tuple){.lport = 4000, .rport = 999, .vlan = ETH_NO_VLAN};
	sk_addr_parse("192.0.2.1", &p->t.laddr);
	sk_addr_parse("192.0.2.2", &p->t.raddr);
	p->peer_ts = 1000;
}

void
sc_start(struct script *p)
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

	p->s = tcp_stack_create(&p->cfg, &ops, p, p->now);
	cr_assert(p->s);
}

void
sc_end(struct script *p)
{
	tcp_stack_destroy(p->s);
	cr_assert_eq(p->recs, 0, "records leaked");
	cr_assert_eq(p->slices, 0, "slices leaked");
	free(p->got);
}

void
sc_poll(struct script *p)
{
	tcp_stack_poll(p->s, p->now, 1000);
}

void
sc_wait(struct script *p, uint64_t ns)
{
	uint64_t end = p->now + ns, d;

	while ((d = tcp_stack_deadline(p->s)) <= end && p->now < end) {
		p->now = SK_MAX(d, p->now + US);
		sc_poll(p);
	}
	p->now = SK_MAX(end, p->now);
	sc_poll(p);
}

static struct tcp_slice *
make_slice(struct script *p, uint32_t from, uint32_t len)
{
	struct tcp_slice *s = tcp_end_slice(&p->slices, NULL, len);
	uint8_t *bytes = s->owner;

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(from + i);
	return s;
}

void
sc_in(struct script *p, int at, const char *text)
{
	struct tcp_slice *payload = NULL;
	struct wire_tcp t = {.sport = p->t.rport, .dport = p->t.lport, .wscale = 0xff};
	struct script_line l;
	uint8_t ecn;

	script_line_parse(&l, at, text);
	ecn = l.ce ? IP_ECN_CE : l.ect ? IP_ECN_ECT0 : IP_ECN_NOT;
	t.flags = l.flags;
	t.seq = SC_PEER_ISN + l.from;
	t.ack = l.flags & TCP_ACK ? p->iss + l.ack : 0;
	t.window = l.has_win ? l.win : 0xffff;
	t.mss = l.mss;
	if (l.has_ws)
		t.wscale = (uint8_t)l.ws;
	t.sack_ok = l.sackok;
	t.ts = l.has_ts || (p->ts && !l.nots && !(l.flags & TCP_RST));
	t.ts_val = l.has_ts ? l.ts_val : p->peer_ts + (uint32_t)(p->now >> 20);
	t.ts_ecr = l.has_ts ? l.ts_ecr : p->ts_echo;
	for (t.nsack = 0; t.nsack < l.nsack; t.nsack++)
		t.sack[t.nsack] =
			(struct wire_sack){p->iss + l.left[t.nsack], p->iss + l.right[t.nsack]};
	if (l.to > l.from)
		payload = make_slice(p, l.from, l.to - l.from);
	if (p->c != NULL && (p->l == NULL || !tcp_reopen(p->c, p->now, &t)))
		tcp_input(p->c, p->now, &t, payload, ecn);
	else if (p->l != NULL)
		tcp_listen_input(p->l, p->now, &p->t, p->mtu, &t, payload, ecn);
	else
		tcp_orphan_input(p->s, p->now, &p->t, &t, payload);
	if (!l.nopoll)
		sc_poll(p);
}

void
sc_out(struct script *p, int at, const char *text)
{
	struct script_line l;

	script_line_parse(&l, at, text);
	cr_assert_lt(p->seen, p->nout, "line %d: nothing was sent, expected \"%s\"", at, text);
	p->last = p->out[p->seen++];
	script_line_compare(p, at, text, &l);
}

void
sc_none(struct script *p, int at)
{
	const struct sc_out *o = &p->out[p->seen];

	if (p->seen == p->nout)
		return;
	cr_assert_fail("line %d: unexpected segment, flags %02x %u:%u ack %u", at, o->tcp.flags,
		o->tcp.seq - p->iss, o->tcp.seq - p->iss + o->len, o->tcp.ack - SC_PEER_ISN);
}

void
sc_send(struct script *p, unsigned n, uint32_t len)
{
	struct tcp_rec *first = NULL, **tail = &first;

	for (unsigned i = 0; i < n; i++) {
		*tail = tcp_end_rec(&p->recs, NULL, len);
		tail = &(*tail)->next;
	}
	tcp_send(p->c, first);
	sc_poll(p);
}

void
sc_connect(struct script *p)
{
	cr_assert_eq(tcp_connect(p->s, p->now, &p->t, p->mtu, NULL, &p->c), 0);
	sc_poll(p);
}

void
sc_listen(struct script *p)
{
	p->l = tcp_listen(p->s, 4, NULL);
	cr_assert(p->l);
}

void
sc_establish(struct script *p)
{
	char text[128];

	p->ts = p->cfg.timestamps;
	sc_connect(p);
	p->seen = p->nout;
	p->now += p->rtt;
	snprintf(text, sizeof(text), "S.%s 0:0 ack 1 mss 1460 sackok ws 7%s", p->cfg.ecn ? "E" : "",
		p->ts ? " ts 1000/0" : "");
	sc_in(p, __LINE__, text);
	cr_assert_eq(p->connected, 1);
	p->seen = p->nout;
}

struct tcp_info
sc_info(struct script *p)
{
	struct tcp_info i;

	tcp_get_info(p->c, &i);
	return i;
}

const char *
sc_state(struct script *p)
{
	return p->c != NULL ? sc_info(p).state : "CLOSED";
}

uint64_t
sc_count(struct script *p, enum tcp_reason r)
{
	return tcp_stack_counters(p->s)[r];
}
