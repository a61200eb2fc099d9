/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP with plain messages: a message is a number of bytes of the stream, in records of one packet's
 * payload. */
#include "tcp_host.h"

static void
tcp_raw_deliver(struct tcp_host *t, struct sim_end *e, struct tcp_slice *chain)
{
	uint32_t bytes = 0;

	for (struct tcp_slice *s = chain; s != NULL; s = s->next)
		bytes += s->len;
	sim_tcp_slices_free(t, chain);
	tcp_consumed(e->conn, bytes);
	sim_flow_delivered_in_order(e->flow, bytes, t->h->w->events.now);
}

static void
tcp_raw_acked(struct tcp_host *t, struct sim_end *e, uint32_t bytes)
{
	sim_flow_acked(e->flow, bytes, t->h->w->events.now);
}

static void
tcp_raw_offer(struct sim_flow *f, uint64_t now)
{
	struct tcp_host *t = f->src->stack;
	struct sim_message *m;
	struct tcp_rec *rec;
	uint32_t n;

	if (f->end[0].conn == NULL)
		return;
	while (tcp_send_space(f->end[0].conn) > 0 &&
		(n = sim_flow_take(f, f->w->sc->payload, &m)) > 0) {
		rec = sim_tcp_rec_new(t, &f->end[0]);
		rec->len = n;
		tcp_send(f->end[0].conn, rec);
	}
}

static const struct tcp_ulp raw = {.deliver = tcp_raw_deliver, .acked = tcp_raw_acked};

static int
tcp_raw_create(struct sim_host *h)
{
	return sim_tcp_create(h, &raw);
}

const struct sim_transport sim_tcp = {
	.name = "tcp",
	.create = tcp_raw_create,
	.destroy = sim_tcp_destroy,
	.connect = sim_tcp_open,
	.input = sim_tcp_packet_input,
	.offer = tcp_raw_offer,
	.poll = sim_tcp_poll,
	.deadline = sim_tcp_deadline,
	.count = sim_tcp_count,
};
