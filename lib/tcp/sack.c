/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's scoreboard (RFC 2018, RFC 2883): the segments in flight that the peer reports as
 * received. A segment counts when a block covers all of it. Each acknowledgement walks over the
 * segments once, and there are TCP_MAX_SEGS of them at most.
 */
#include "tcp_priv.h"

/* RFC 2883 4: the first block reports a duplicate when it lies below the cumulative acknowledgement
 * or inside the second block. */
static bool
is_dsack(const struct wire_tcp *seg)
{
	const struct wire_sack *b = seg->sack;

	if (tcp_seq_le(b[0].right, seg->ack))
		return true;
	return seg->nsack > 1 && tcp_seq_le(b[1].left, b[0].left) &&
	       tcp_seq_le(b[0].right, b[1].right);
}

/* Copies the valid blocks, ordered by their left edges, to `out`. Returns their number. */
static unsigned
sort_blocks(const struct tcp_conn *c, const struct wire_tcp *seg, unsigned from,
	struct wire_sack out[TCP_MAX_SACK])
{
	unsigned n = 0, at;

	for (unsigned i = from; i < seg->nsack && i < TCP_MAX_SACK; i++) {
		struct wire_sack b = seg->sack[i];

		if (!tcp_seq_lt(b.left, b.right) || tcp_seq_lt(c->snd_nxt, b.right) ||
			tcp_seq_lt(b.left, seg->ack))
			continue;
		/* Of an overtaken acknowledgement, a block may begin below snd_una. */
		b.left = tcp_seq_max(b.left, c->snd_una);
		for (at = n++; at > 0 && tcp_seq_lt(b.left, out[at - 1].left); at--)
			out[at] = out[at - 1];
		out[at] = b;
	}
	return n;
}

static void
mark_sacked(struct tcp_conn *c, struct tcp_rec *seg, struct tcp_acked *a)
{
	if (seg->flags & R_LOST) {
		seg->flags &= ~R_LOST;
		c->lost_out -= seg->seg_len;
	}
	seg->flags |= R_SACKED;
	c->sacked_out += seg->seg_len;
	c->nsacked++;
	a->sacked += seg->seg_len;
	tcp_rack_delivered(c, seg, a);
}

void
tcp_sack_process(struct tcp_conn *c, const struct wire_tcp *seg, struct tcp_acked *a)
{
	struct wire_sack block[TCP_MAX_SACK];
	struct tcp_rec *r = c->seg_head;
	unsigned n, i = 0;

	a->dsack = is_dsack(seg);
	n = sort_blocks(c, seg, a->dsack, block);
	while (i < n && r != NULL) {
		if (tcp_seq_lt(r->seq, block[i].left)) {
			r = r->seg_next;
		} else if (tcp_seq_le(r->seq + r->seg_len, block[i].right)) {
			if (!(r->flags & R_SACKED))
				mark_sacked(c, r, a);
			r = r->seg_next;
		} else {
			i++;
		}
	}
}

void
tcp_sack_forget(struct tcp_conn *c)
{
	for (struct tcp_rec *r = c->seg_head; r != NULL; r = r->seg_next)
		r->flags &= ~R_SACKED;
	c->sacked_out = c->nsacked = 0;
}
