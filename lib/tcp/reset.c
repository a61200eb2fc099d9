/* SPDX-License-Identifier: BSD-3-Clause */
/* Resets. A reset belongs to no connection, or to one that is about to end, so those that the port
 * cannot send yet wait here. */
#include "../base/bucket.h"
#include "tcp_priv.h"

static int
rst_out(struct tcp_stack *s, struct tcp_conn *c, const struct tcp_tuple *to,
	const struct wire_tcp *tcp)
{
	struct tcp_out out = {.tcp = *tcp};

	return s->ops.output(s->ctx, c, to, &out);
}

void
tcp_rst_send(struct tcp_stack *s, struct tcp_conn *c, const struct tcp_tuple *to,
	const struct wire_tcp *tcp)
{
	tcp_count(s, TCP_RESET_OUT);
	if (rst_out(s, c, to, tcp) != -EAGAIN)
		return;
	tcp_count(s, TCP_OUTPUT_BUSY);
	if (s->nrst < TCP_RST_QUEUE) /* else the peer's next segment causes another one */
		s->rst[s->nrst++] = (struct tcp_rst){*to, *tcp};
}

unsigned
tcp_rst_flush(struct tcp_stack *s)
{
	unsigned sent = 0;

	while (sent < s->nrst && rst_out(s, NULL, &s->rst[sent].to, &s->rst[sent].tcp) != -EAGAIN)
		sent++;
	s->nrst -= sent;
	for (unsigned i = 0; i < s->nrst; i++)
		s->rst[i] = s->rst[i + sent];
	return sent;
}

void
tcp_rst_answer(
	struct tcp_stack *s, const struct tcp_tuple *to, const struct wire_tcp *seg, uint32_t len)
{
	struct wire_tcp t = {
		.sport = to->lport, .dport = to->rport, .flags = TCP_RST, .wscale = 0xff};

	if (seg->flags & TCP_RST)
		return;
	if (!sk_bucket_take(&s->rst_full, s->now, TCP_RST_INTERVAL, TCP_RST_BURST)) {
		tcp_count(s, TCP_RESET_LIMIT);
		return;
	}
	if (seg->flags & TCP_ACK) {
		t.seq = seg->ack;
	} else {
		t.flags |= TCP_ACK;
		t.ack = seg->seq + len + !!(seg->flags & TCP_SYN) + !!(seg->flags & TCP_FIN);
	}
	tcp_rst_send(s, NULL, to, &t);
}

void
tcp_orphan_input(struct tcp_stack *s, uint64_t now, const struct tcp_tuple *t,
	const struct wire_tcp *seg, struct tcp_slice *payload)
{
	uint32_t len = tcp_slice_len(payload);

	s->now = now;
	tcp_slice_drop(s, payload);
	tcp_count(s, TCP_NO_CONN);
	tcp_rst_answer(s, t, seg, len);
}
