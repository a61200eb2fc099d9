/* SPDX-License-Identifier: BSD-3-Clause */
/* See talk.h. */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "talk.h"

#define MAGIC   0x74616c6b
#define SLOT    64
#define SLOTS   8
#define OFF_OUT (SLOTS * SLOT)

enum { WR_IN = 1, WR_OUT = 1000, WR_READ = 2000 };
enum { SAY_HELLO = 1, SAY_DONE, SAY_NOTHING };

unsigned
talk_wish_write(uint8_t *to, const struct talk_wish *w)
{
	uint32_t magic = htonl(MAGIC);
	uint16_t v[] = {htons(w->kind), htons(w->ird), htons(w->ord), 0};

	memcpy(to, &magic, sizeof(magic));
	memcpy(to + sizeof(magic), v, sizeof(v));
	return TALK_WISH_LEN;
}

int
talk_wish_read(struct talk_wish *w, const uint8_t *from, unsigned len)
{
	uint32_t magic;
	uint16_t v[4];

	if (len >= TALK_WISH_LEN) {
		memcpy(&magic, from, sizeof(magic));
		memcpy(v, from + sizeof(magic), sizeof(v));
		*w = (struct talk_wish){ntohs(v[0]), ntohs(v[1]), ntohs(v[2])};
		if (ntohl(magic) == MAGIC)
			return 0;
	}
	printf("%u bytes of private data are not a wish\n", len);
	return -1;
}

static uint64_t
word(unsigned i)
{
	return htobe64(0x5a00000000000000ull | i * 0x9e3779b9ull);
}

int
talk_prepare(struct talk *t, struct ex_peer *p)
{
	*t = (struct talk){.p = p};
	memset(p->buf, 0, TALK_SINK + TALK_WORDS * sizeof(uint64_t));
	for (unsigned i = 0; i < TALK_WORDS; i++) {
		uint64_t w = word(i);

		memcpy(p->buf + TALK_SOURCE + i * sizeof(w), &w, sizeof(w));
	}
	for (unsigned i = 0; i < SLOTS; i++)
		if (p->verbs->post_recv(p, WR_IN + i, i * SLOT, SLOT))
			return -1;
	return 0;
}

/* Takes one completion. */
static int
step(struct talk *t)
{
	struct ex_done d;

	if (t->p->verbs->wait(t->p, &d, false))
		return -1;
	if (!d.ok) {
		printf("completion of request %llu: %s\n", (unsigned long long)d.wr_id, d.status);
		return -1;
	}
	if (d.wr_id >= WR_READ)
		t->reads--;
	else if (d.wr_id >= WR_OUT)
		t->sent++;
	else
		t->in++;
	return 0;
}

static int
say(struct talk *t, uint32_t what)
{
	struct talk_note n = {
		.what = htonl(what),
		.stag = htonl(t->p->stag),
		.addr = htobe64((uintptr_t)t->p->buf),
		.ird = htons(t->mine.ird),
		.ord = htons(t->mine.ord),
		.seen_ird = htons(t->mine.seen_ird),
		.seen_ord = htons(t->mine.seen_ord),
	};
	uint32_t off = OFF_OUT + (t->out++ % SLOTS) * SLOT;

	memcpy(t->p->buf + off, &n, sizeof(n));
	if (t->p->verbs->post(t->p, WR_OUT, EX_SEND, off, sizeof(n), 0, 0, 0))
		return -1;
	while (t->sent < t->out)
		if (step(t))
			return -1;
	return 0;
}

static int
hear(struct talk *t, uint32_t what)
{
	struct talk_note n;

	do {
		while (t->in == t->taken)
			if (step(t))
				return -1;
		memcpy(&n, t->p->buf + (t->taken++ % SLOTS) * SLOT, sizeof(n));
	} while (ntohl(n.what) == SAY_NOTHING);
	t->peer = (struct talk_note){
		.what = ntohl(n.what),
		.stag = ntohl(n.stag),
		.addr = be64toh(n.addr),
		.ird = ntohs(n.ird),
		.ord = ntohs(n.ord),
		.seen_ird = ntohs(n.seen_ird),
		.seen_ord = ntohs(n.seen_ord),
	};
	if (t->peer.what == what)
		return 0;
	printf("the peer said %u instead of %u\n", t->peer.what, what);
	return -1;
}

int
talk_nudge(struct talk *t)
{
	return say(t, SAY_NOTHING);
}

int
talk_greet(struct talk *t, bool first)
{
	if (first)
		return say(t, SAY_HELLO) || hear(t, SAY_HELLO) ? -1 : 0;
	return hear(t, SAY_HELLO) || say(t, SAY_HELLO) ? -1 : 0;
}

/* Posts twice as many Reads as may be outstanding, so that some have to wait for others. */
int
talk_reads(struct talk *t)
{
	unsigned n = 2 * t->mine.ord;

	n = n < TALK_WORDS ? n : TALK_WORDS;
	for (unsigned i = 0; i < n; i++, t->reads++) {
		uint32_t at = i * (uint32_t)sizeof(uint64_t);

		while (t->careful && t->reads == t->mine.ord)
			if (step(t))
				return -1;

		if (t->p->verbs->post(t->p, WR_READ + i, EX_READ, TALK_SINK + at, sizeof(uint64_t),
			    t->peer.addr + TALK_SOURCE + at, t->peer.stag, 0))
			return -1;
	}
	while (t->reads > 0)
		if (step(t))
			return -1;
	for (unsigned i = 0; i < TALK_WORDS; i++) {
		uint64_t have, want = i < n ? word(i) : 0;

		memcpy(&have, t->p->buf + TALK_SINK + i * sizeof(have), sizeof(have));
		if (have != want) {
			printf("word %u of %u that were read is wrong\n", i, n);
			return -1;
		}
	}
	return 0;
}

int
talk_part(struct talk *t, bool first)
{
	if (first)
		return say(t, SAY_DONE) || hear(t, SAY_DONE) ? -1 : 0;
	return hear(t, SAY_DONE) || say(t, SAY_DONE) ? -1 : 0;
}

int
talk(struct talk *t, bool first)
{
	return talk_greet(t, first) || talk_reads(t) || talk_part(t, first) ? -1 : 0;
}

int
talk_broken(struct talk *t)
{
	struct ex_done d;

	do {
		if (t->p->verbs->wait(t->p, &d, false))
			return -1;
	} while (d.ok);
	for (unsigned i = 0; i < TALK_WORDS; i++) {
		uint64_t have;

		memcpy(&have, t->p->buf + TALK_SOURCE + i * sizeof(have), sizeof(have));
		if (have != word(i)) {
			printf("word %u of the source was changed\n", i);
			return -1;
		}
	}
	return 0;
}
