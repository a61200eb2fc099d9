/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's scoreboard (RFC 2018, RFC 2883): the segments in flight that the peer reports as
 * received. A segment counts when a block covers all of it.
 *
 * An acknowledgement walks over the segments once. It jumps over what known blocks reported:
 * those of the acknowledgement before, and the latest one in each sixteenth of the send buffer. So
 * honest peers cause walks over the newly reported segments, however many acknowledgements arrive
 * in a turn, and short ones in between when the path reorders. A hostile peer chooses blocks that
 * the known ones do not help with: after TCP_SACK_TURN segments in a turn, the blocks are ignored.
 * They are advisory (RFC 2018 8), and the peer reports them again.
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

/* Forgets the known blocks whose last segment may be acknowledged. */
static void
known_trim(struct tcp_conn *c)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(c->known); i++) {
		if (!c->sacked_out || tcp_seq_lt(c->known[i].seq, c->snd_una))
			c->known[i].last = NULL;
	}
}

static void
known_add(struct tcp_conn *c, unsigned index, uint32_t left, struct tcp_rec *last)
{
	uint32_t share = c->s->cfg.snd_buf / TCP_KNOWN + 1;
	struct tcp_known k = {left, last->seq, last};

	c->known[TCP_KNOWN + index] = c->known[left / share % TCP_KNOWN] = k;
}

/* Returns `r`, or a later segment up to which the known blocks report all that lies behind
 * `left`. */
static struct tcp_rec *
known_skip(const struct tcp_conn *c, uint32_t left, struct tcp_rec *r)
{
	for (unsigned i = 0; i < SK_ARRAY_LEN(c->known); i++) {
		const struct tcp_known *k = &c->known[i];

		if (k->last != NULL && tcp_seq_le(k->left, left) && tcp_seq_lt(r->seq, k->seq))
			r = k->last;
	}
	return r;
}

/* Marks the segments of block `index`. The walk begins at `r`. Returns the segment at which it
 * ends, or NULL. */
static struct tcp_rec *
mark_block(struct tcp_conn *c, const struct wire_sack *block, unsigned index, struct tcp_rec *r,
	struct tcp_acked *a)
{
	const struct wire_sack *b = &block[index];
	struct tcp_walks *w = tcp_walks(c);
	struct tcp_rec *last = NULL;
	bool fresh = false; /* the segment before `r` was marked now */

	r = known_skip(c, b->left, r);
	while (r != NULL &&
		(tcp_seq_lt(r->seq, b->left) || tcp_seq_le(r->seq + r->seg_len, b->right))) {
		w->sack++;
		if (!tcp_seq_lt(r->seq, b->left)) {
			last = r;
			if (!(r->flags & R_SACKED)) {
				mark_sacked(c, r, a);
				fresh = true;
			} else if (fresh) {
				fresh = false;
				r = known_skip(c, r->seq, r);
				continue;
			}
		}
		r = r->seg_next;
	}
	if (last != NULL)
		known_add(c, index, b->left, last);
	return r;
}

void
tcp_sack_process(struct tcp_conn *c, const struct wire_tcp *seg, struct tcp_acked *a)
{
	struct wire_sack block[TCP_MAX_SACK];
	struct tcp_rec *r = c->seg_head;
	unsigned n;

	a->dsack = is_dsack(seg);
	n = sort_blocks(c, seg, a->dsack, block);
	if (!n || tcp_walks(c)->sack >= TCP_SACK_TURN)
		return;
	known_trim(c);
	for (unsigned i = 0; i < n && r != NULL; i++)
		r = mark_block(c, block, i, r, a);
}

void
tcp_sack_forget(struct tcp_conn *c)
{
	for (struct tcp_rec *r = c->seg_head; r != NULL; r = r->seg_next)
		r->flags &= ~R_SACKED;
	c->sacked_out = c->nsacked = 0;
	known_trim(c);
}
