/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connections on a bad wire; either side closes or aborts them at random times. The received
 * bytes are always a prefix of the sent bytes. A connection without an abort ends in order on both
 * sides. Each end gets one event for the end, and all memory comes back.
 */
#include <criterion/criterion.h>

#include "vwire.h"

#define CONNS 12

struct half {
	struct tcp_conn *c; /* NULL: the connection has ended */
	uint64_t sent, got, limit;
	bool opened, aborted, fin, over;
	int reason;
};

struct pair {
	struct half half[2];
	struct storm *storm;
};

struct storm {
	struct vwire *w;
	struct pair pairs[CONNS];
};

static uint8_t
pattern(unsigned pair, unsigned end, uint64_t i)
{
	return (uint8_t)(i * 167 + (i >> 8) * 13 + pair * 31 + end * 101);
}

/* Both ends identify a pair by the port that vw_connect() chose. */
static struct pair *
find(struct storm *s, unsigned end, struct tcp_conn *c)
{
	uint16_t port = end ? tcp_tuple(c)->rport : tcp_tuple(c)->lport;

	cr_assert(port >= 10000 && port < 10000 + CONNS);
	return &s->pairs[port - 10000];
}

static void
push(struct vw_end *e, struct pair *pr)
{
	struct half *h = &pr->half[e->index];
	unsigned id = (unsigned)(pr - pr->storm->pairs);
	uint8_t buf[3000];

	while (h->c != NULL && h->sent < h->limit && tcp_send_space(h->c) > 0) {
		uint32_t n = 1 + (uint32_t)(vw_random(e->w) % sizeof(buf));

		if (n > h->limit - h->sent)
			n = (uint32_t)(h->limit - h->sent);
		for (uint32_t i = 0; i < n; i++)
			buf[i] = pattern(id, e->index, h->sent + i);
		if (vw_send(e, h->c, buf, n, 0))
			return;
		h->sent += n;
	}
	if (h->c != NULL && h->sent == h->limit)
		tcp_close(h->c, e->w->now);
}

static void
on_event(struct vw_end *e, struct tcp_conn *c, enum tcp_event ev)
{
	struct storm *s = e->arg;
	struct pair *pr = find(s, e->index, c);
	struct half *h = &pr->half[e->index];

	cr_assert(!h->over, "an event after the last");
	switch (ev) {
	case TCP_EV_CONNECTED:
		cr_assert(!h->opened);
		h->opened = true;
		h->c = c;
		push(e, pr);
		break;
	case TCP_EV_SENT:
		push(e, pr);
		break;
	case TCP_EV_PEER_FIN:
		h->fin = true;
		break;
	case TCP_EV_CLOSED:
		h->over = true;
		h->reason = tcp_close_reason(c);
		h->c = NULL;
		break;
	case TCP_EV_UNREAD:
	case TCP_EV_EMSS:
		break;
	}
}

static void
on_bytes(struct vw_end *e, struct tcp_conn *c, const uint8_t *data, uint32_t len)
{
	struct storm *s = e->arg;
	struct pair *pr = find(s, e->index, c);
	struct half *h = &pr->half[e->index];
	unsigned id = (unsigned)(pr - s->pairs);

	cr_assert(!h->fin, "bytes behind the FIN");
	for (uint32_t i = 0; i < len; i++)
		cr_assert_eq(data[i], pattern(id, !e->index, h->got + i));
	h->got += len;
}

/* Ends a connection abruptly: aborts it, or closes it before all bytes are sent. */
static void
disturb(struct storm *s)
{
	struct vwire *w = s->w;
	struct pair *pr = &s->pairs[vw_random(w) % CONNS];
	unsigned end = vw_random(w) & 1;
	struct half *h = &pr->half[end];

	if (h->c == NULL)
		return;
	if (vw_chance(w, 0.3)) {
		pr->half[0].aborted = pr->half[1].aborted = true;
		tcp_abort(h->c, w->now);
	} else {
		h->limit = h->sent;
		tcp_close(h->c, w->now);
	}
}

static void
check(struct storm *s, uint64_t seed)
{
	for (unsigned i = 0; i < CONNS; i++) {
		struct pair *pr = &s->pairs[i];

		for (unsigned e = 0; e < 2; e++) {
			struct half *me = &pr->half[e], *peer = &pr->half[!e];

			cr_assert_leq(me->got, peer->sent);
			cr_assert_eq(me->opened ? me->over : false, me->opened,
				"seed %lu pair %u end %u", seed, i, e);
			if (pr->half[0].aborted)
				continue;
			cr_assert(me->opened);
			cr_assert_eq(me->got, peer->sent, "seed %lu pair %u end %u: %lu of %lu",
				seed, i, e, me->got, peer->sent);
			cr_assert(me->fin);
			cr_assert_eq(me->reason, 0);
		}
	}
}

static void
storm(struct vw_params p, const struct tcp_config *cfg)
{
	struct vwire *w = vw_create(&p, cfg);
	struct storm s = {.w = w};

	for (unsigned e = 0; e < 2; e++) {
		w->end[e].arg = &s;
		w->end[e].hooks.bytes = on_bytes;
		w->end[e].hooks.event = on_event;
	}
	for (unsigned i = 0; i < CONNS; i++) {
		s.pairs[i].storm = &s;
		s.pairs[i].half[0].limit = vw_random(w) % 100000;
		s.pairs[i].half[1].limit = vw_random(w) % 100000;
		vw_connect(w, NULL);
	}
	for (unsigned i = 0; i < 30; i++) {
		vw_run(w, 300000);
		disturb(&s);
	}
	vw_run(w, 120000000000);
	check(&s, p.seed);
	cr_assert_eq(w->end[0].nconns + w->end[1].nconns, 0, "seed %lu: connections left", p.seed);
	vw_destroy(w);
}

Test(tcp_storm, random_closes_and_aborts)
{
	for (unsigned seed = 1; seed <= 30; seed++)
		storm((struct vw_params){.seed = seed,
			      .delay_ns = 20000,
			      .jitter_ns = 100000,
			      .reorder = 0.1,
			      .loss = seed % 3 * 0.02,
			      .dup = 0.02,
			      .refuse = seed % 2 ? 0.2 : 0,
			      .busy = 0.05},
			NULL);
}

Test(tcp_storm, small_buffers_and_closed_windows)
{
	struct tcp_config cfg;

	vw_config(&cfg);
	cfg.rcv_buf = 5000;
	cfg.snd_buf = 8000;
	cfg.rcv_wscale = 3;
	cfg.ooo_slices = 4;
	cfg.ooo_slices_total = 20;
	for (unsigned seed = 1; seed <= 20; seed++)
		storm((struct vw_params){.seed = 500 + seed,
			      .delay_ns = 20000,
			      .loss = 0.01,
			      .refuse = 0.3,
			      .path_mtu = seed % 2 ? 1000 : 0},
			&cfg);
}

Test(tcp_storm, path_that_is_narrower_than_the_port)
{
	for (unsigned seed = 1; seed <= 10; seed++)
		storm((struct vw_params){.seed = 900 + seed,
			      .delay_ns = 20000,
			      .path_mtu = 700 + seed * 50,
			      .loss = 0.01,
			      .tso = 16000,
			      .mtu = 9000},
			NULL);
}
