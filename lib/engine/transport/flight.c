/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flight recorder: the last rare events of all connections of a transport stage, in one ring of
 * fixed size, whatever the number of connections is. The events of a connection form a list through
 * the ring, from the newest one back; the list ends where a number has been overwritten. When a
 * connection fails, a copy of its events is kept. In a storm of failures only the first ones of
 * each second are kept, so that copying them never delays the loop for long.
 */
#include <errno.h>

#include "../../base/mem.h"
#include "link.h"

#define RING          65536u /* events; a power of two */
#define KEPT          64     /* failed connections */
#define KEPT_A_SECOND 16
#define SECOND_NS     1000000000u

struct note {
	uint64_t at, srtt_ns, rto_ns;
	const struct sk_reason_list *list;
	uint32_t reason, window, in_flight, before; /* number of the connection's event before */
};

struct eng_recorder {
	struct note ring[RING]; /* event n, from 1 on, is in ring[n % RING] */
	uint32_t last;          /* number of the newest event */
	struct eng_flight kept[KEPT];
	uint64_t kept_at[KEPT];
	uint32_t nkept;  /* in all */
	uint64_t second; /* begin of the second in which `fresh` were kept */
	uint32_t fresh;
};

struct eng_recorder *
eng_recorder_create(void)
{
	struct eng_recorder *r = sk_mem_alloc(sizeof(*r));

	return r;
}

void
eng_recorder_free(struct eng_recorder *r)
{
	if (r != NULL)
		sk_mem_free(r, sizeof(*r));
}

void
eng_flight_note(struct eng_transport *t, struct eng_conn *c, const struct sk_reason_list *list,
	unsigned reason, const struct eng_event *values)
{
	struct eng_recorder *r = t->recorder;
	uint32_t number = ++r->last;

	if (number == 0) /* the numbers begin again: the lists end here */
		number = ++r->last;
	r->ring[number % RING] = (struct note){.at = t->now,
		.srtt_ns = values->srtt_ns,
		.rto_ns = values->rto_ns,
		.list = list,
		.reason = reason,
		.window = values->window,
		.in_flight = values->in_flight,
		.before = c->noted};
	c->noted = number;
}

void
eng_tcp_trace(void *ctx, struct tcp_conn *conn, unsigned reason)
{
	struct eng_conn *c = tcp_user(conn);
	struct tcp_info info;

	if (c == NULL)
		return;
	tcp_get_info(conn, &info);
	eng_flight_note(ctx, c, &tcp_reasons, reason,
		&(struct eng_event){.srtt_ns = info.srtt_ns,
			.rto_ns = info.rto_ns,
			.window = info.cwnd,
			.in_flight = info.in_flight});
}

/* Copies the events of a connection, the oldest first, with their age at the time `now`. */
static void
flight_copy(const struct eng_recorder *r, uint32_t number, uint64_t now, struct eng_flight *out)
{
	uint32_t at[ENG_EVENTS], n = 0;

	while (number != 0 && r->last - number < RING && n < ENG_EVENTS) {
		at[n++] = number;
		number = r->ring[number % RING].before;
	}
	out->n = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct note *e = &r->ring[at[n - 1 - i] % RING];

		out->event[i] = (struct eng_event){.name = e->list->reasons[e->reason].name,
			.help = e->list->reasons[e->reason].help,
			.age_ns = now - e->at,
			.srtt_ns = e->srtt_ns,
			.rto_ns = e->rto_ns,
			.window = e->window,
			.in_flight = e->in_flight};
	}
}

void
eng_flight_keep(struct eng_transport *t, const struct eng_conn *c)
{
	struct eng_recorder *r = t->recorder;
	struct eng_flight *k;

	if (c->error == 0)
		return;
	if (t->now - r->second >= SECOND_NS) {
		r->second = t->now;
		r->fresh = 0;
	}
	if (r->fresh == KEPT_A_SECOND)
		return;
	r->fresh++;
	k = &r->kept[r->nkept % KEPT];
	r->kept_at[r->nkept++ % KEPT] = t->now;
	k->tuple = eng_conn_ends(t, c);
	k->error = -c->error;
	flight_copy(r, c->noted, t->now, k);
}

int
eng_flight_events(struct eng_transport *t, const struct eng_conn *c, struct eng_ctl *m)
{
	if (!eng_conn_alive(c))
		return -ENOTCONN;
	m->flight.view->tuple = eng_conn_ends(t, c);
	flight_copy(t->recorder, c->noted, t->now, m->flight.view);
	m->flight.n = 1;
	return 0;
}

int
eng_flight_failed(struct eng_transport *t, struct eng_ctl *m)
{
	const struct eng_recorder *r = t->recorder;
	uint32_t n = SK_MIN(SK_MIN(r->nkept, (uint32_t)KEPT), m->flight.n);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = (r->nkept - 1 - i) % KEPT;

		m->flight.view[i] = r->kept[at];
		m->flight.view[i].age_ns = t->now - r->kept_at[at];
	}
	m->flight.n = n;
	return 0;
}
