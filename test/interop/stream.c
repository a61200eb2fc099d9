/* SPDX-License-Identifier: BSD-3-Clause */
/* See stream.h. */
#include <stdio.h>
#include <string.h>

#include "../support/clock.h"
#include "stream.h"

#define PIECE    65536u
#define TOKENS   4u  /* Sends in progress, of both sides together */
#define RECVS    16u /* posted receives: more than there are tokens */
#define RECV_LEN 64u
#define SOURCE   STREAM_WINDOW
#define RECV_OFF (2 * STREAM_WINDOW)
#define SEND_OFF (RECV_OFF + RECVS * RECV_LEN)
#define MINE     0xa7 /* the contents of the source */
#define WAIT_NS  30000000000ull

enum { WR_WRITE, WR_READ, WR_SEND, WR_RECV };

struct hello {
	uint64_t addr;
	uint32_t stag;
};

static int
post_recv(struct stream *s)
{
	uint32_t off = RECV_OFF + s->next_recv++ % RECVS * RECV_LEN;

	s->posted++;
	return peer_recv(&s->p, WR_RECV, off, RECV_LEN);
}

static int
post(struct stream *s, uint64_t wr_id, uint32_t off, uint32_t len)
{
	static const enum rd_opcode opcodes[] = {RD_WRITE, RD_READ, RD_SEND};

	s->posted++;
	return peer_post(&s->p, wr_id, opcodes[wr_id], RD_SIGNALED, off, len,
		wr_id == WR_READ ? s->far_addr + PIECE : s->far_addr, s->far_stag, 0);
}

int
stream_open(struct stream *s, const char *socket, const char *name)
{
	int rc;

	memset(s, 0, sizeof(*s));
	if (peer_open(&s->p, socket, name, STREAM_LEN))
		return -1;
	memset(s->p.buf + SOURCE, MINE, STREAM_WINDOW);
	rc = saker_mr_create(s->p.pd, s->p.buf, STREAM_WINDOW,
		RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &s->window);
	if (rc)
		return peer_fail("saker_mr_create", rc);
	for (unsigned i = 0; i < RECVS; i++)
		if (post_recv(s))
			return -1;
	return 0;
}

static int
say_hello(struct stream *s)
{
	struct hello h = {(uintptr_t)s->p.buf, saker_mr_stag(s->window)};

	memcpy(s->p.buf + SEND_OFF, &h, sizeof(h));
	return post(s, WR_SEND, SEND_OFF, sizeof(h));
}

static int
hear_hello(struct stream *s)
{
	struct rd_wc wc;
	struct hello h;

	do {
		if (peer_wait(&s->p, &wc, false))
			return -1;
		s->completed++;
		if (wc.status != RD_SUCCESS) {
			printf("greeting: status %u\n", wc.status);
			return -1;
		}
	} while (wc.opcode < RD_RECV);
	memcpy(&h, s->p.buf + RECV_OFF, sizeof(h));
	s->far_addr = h.addr;
	s->far_stag = h.stag;
	return post_recv(s);
}

int
stream_join(struct stream *s, const char *addr, uint16_t port)
{
	if (addr != NULL ? peer_connect(&s->p, addr, port) || say_hello(s) || hear_hello(s)
			 : peer_accept(&s->p, port, NULL, NULL) || hear_hello(s) || say_hello(s))
		return -1;
	printf("streaming\n");
	fflush(stdout);
	for (unsigned i = 0; i < 4; i++)
		if (post(s, WR_WRITE, SOURCE + i * PIECE, PIECE) || post(s, WR_READ, PIECE, PIECE))
			return -1;
	for (unsigned i = 0; addr != NULL && i < TOKENS; i++)
		if (post(s, WR_SEND, SEND_OFF, RECV_LEN))
			return -1;
	return 0;
}

/* Posts the successor of a successful request, or returns a received token. */
static int
again(struct stream *s, const struct rd_wc *wc)
{
	switch (wc->wr_id) {
	case WR_WRITE:
		return post(s, WR_WRITE, SOURCE, PIECE);
	case WR_READ:
		return post(s, WR_READ, PIECE, PIECE);
	case WR_RECV:
		s->messages++;
		return post_recv(s) || post(s, WR_SEND, SEND_OFF, RECV_LEN) ? -1 : 0;
	default:
		return 0;
	}
}

static void
take_events(struct stream *s)
{
	struct saker_event ev;

	while (saker_event(s->p.s, &ev) == 1) {
		s->broken = s->told = true;
		printf("event %d, status %d%s%s\n", ev.type, ev.status,
			ev.type == SAKER_EV_QP_FATAL ? ", " : "",
			ev.type == SAKER_EV_QP_FATAL ? ev.async.reason : "");
	}
}

int
stream_turn(struct stream *s)
{
	struct rd_wc wc[16];
	struct saker_cq *cq;
	int n;

	take_events(s);
	n = saker_cq_poll(s->p.cq, wc, 16);
	for (int i = 0; i < n; i++) {
		s->completed++;
		if (wc[i].status != RD_SUCCESS)
			s->broken = true;
		else if (!s->broken && again(s, &wc[i]))
			return -1;
	}
	if (n > 0)
		return 0;
	saker_cq_arm(s->p.cq, false);
	saker_wait(s->p.s, 20);
	while (saker_cq_event(s->p.s, &cq) == 1)
		;
	return 0;
}

static bool
untouched(const uint8_t *p)
{
	return p[0] == MINE && memcmp(p, p + 1, STREAM_WINDOW - 1) == 0;
}

int
stream_audit(struct stream *s)
{
	uint64_t until = now_ns() + WAIT_NS;

	while ((s->completed < s->posted || !s->told) && now_ns() < until)
		if (stream_turn(s))
			return -1;
	for (int i = 0; i < 10; i++) /* no completion may come twice */
		stream_turn(s);
	printf("%llu requests posted, %llu completed, %llu messages; told: %d\n",
		(unsigned long long)s->posted, (unsigned long long)s->completed,
		(unsigned long long)s->messages, s->told);
	if (!untouched(s->p.buf + SOURCE)) {
		printf("memory outside the window was changed\n");
		return -1;
	}
	return s->completed == s->posted && s->told ? 0 : -1;
}
