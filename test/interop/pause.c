/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips after pauses: `pause SOCKET listen PORT` or `pause SOCKET connect ADDR PORT ROUNDS
 * PAUSE_US`. The connecting side reads a word of the listening side's memory, in which the peer's
 * program takes no part, once after each pause, and prints the median and the longest time in us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/clock.h"
#include "peer.h"

#define WORD       0x7061757365ull
#define ROUNDS_MAX 100000

/* The layout of the buffer. */
enum { OFF_PLACE = 0, OFF_WORD = 64, OFF_READ = 128, BUF_LEN = 4096 };

struct place { /* where the word is; both sides run on this machine */
	uint64_t addr;
	uint32_t rkey;
};

static struct peer p;

static int
taken(struct rd_wc *wc)
{
	if (peer_wait(&p, wc, false))
		return -1;
	if (wc->status == RD_SUCCESS)
		return 0;
	printf("status %u, reason %u\n", wc->status, wc->vendor_err);
	return -1;
}

static int
serve(uint16_t port)
{
	const uint64_t word = WORD;
	struct place at = {0};
	struct rd_wc wc;

	at.addr = (uintptr_t)p.buf + OFF_WORD;
	at.rkey = saker_mr_stag(p.mr);
	memcpy(p.buf + OFF_WORD, &word, sizeof(word));
	memcpy(p.buf + OFF_PLACE, &at, sizeof(at));
	if (peer_accept(&p, port, NULL, NULL) ||
		peer_post(&p, 1, RD_SEND, RD_SIGNALED, OFF_PLACE, sizeof(at), 0, 0, 0) ||
		taken(&wc))
		return -1;
	return peer_wait_end(&p);
}

/* Returns the time in us of one Read, or -1. Polls, so that only the two sakers sleep. */
static double
round_trip(const struct place *at)
{
	uint64_t word = 0, start = now_ns();
	struct rd_wc wc;

	memset(p.buf + OFF_READ, 0, sizeof(word));
	if (peer_post(&p, 2, RD_READ, RD_SIGNALED, OFF_READ, sizeof(word), at->addr, at->rkey, 0))
		return -1;
	while (saker_cq_poll(p.cq, &wc, 1) == 0)
		if (now_ns() - start > PEER_WAIT_MS * 1000000ull)
			return peer_fail("a Read", -110);
	memcpy(&word, p.buf + OFF_READ, sizeof(word));
	if (wc.status != RD_SUCCESS || word != WORD)
		return peer_fail("a Read", -5);
	return (double)(now_ns() - start) / 1000;
}

static int
shorter(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int
measure(const char *addr, uint16_t port, unsigned rounds, useconds_t pause_us)
{
	static double us[ROUNDS_MAX];
	struct saker_event ev;
	struct place at;
	struct rd_wc wc;

	if (peer_recv(&p, 1, OFF_PLACE, sizeof(at)) || peer_connect(&p, addr, port) || taken(&wc))
		return -1;
	memcpy(&at, p.buf + OFF_PLACE, sizeof(at));
	for (unsigned i = 0; i < rounds; i++) {
		usleep(pause_us);
		us[i] = round_trip(&at);
		if (us[i] < 0)
			return -1;
	}
	qsort(us, rounds, sizeof(us[0]), shorter);
	printf("%.0f %.0f\n", us[rounds / 2], us[rounds - 1]);
	return saker_disconnect(p.qp, false) < 0 || peer_expect(&p, SAKER_EV_DISCONNECTED, &ev);
}

int
main(int argc, char **argv)
{
	unsigned rounds = argc > 6 ? (unsigned)atoi(argv[5]) : 0;
	int rc;

	if (argc != 4 && (argc != 7 || rounds == 0 || rounds > ROUNDS_MAX)) {
		fprintf(stderr, "usage: pause SOCKET listen PORT | pause SOCKET connect ADDR PORT "
				"ROUNDS PAUSE_US\n");
		return 2;
	}
	rc = peer_open(&p, argv[1], "pause", BUF_LEN);
	if (rc == 0 && argc == 4)
		rc = serve((uint16_t)atoi(argv[3]));
	else if (rc == 0)
		rc = measure(argv[3], (uint16_t)atoi(argv[4]), rounds, (useconds_t)atoi(argv[6]));
	peer_close(&p);
	return rc != 0;
}
