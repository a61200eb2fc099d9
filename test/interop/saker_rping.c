/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counterpart of rdma-core's `rping` on libsaker: `saker_rping SOCKET server PORT ROUNDS SIZE`
 * or `saker_rping SOCKET client ADDR PORT ROUNDS SIZE`.
 *
 * In each round the client advertises a source, and the server reads it and acknowledges; the
 * client advertises a sink, and the server writes there what it has read and acknowledges; the
 * client compares. An advertisement is a Send of 16 bytes: address, rkey, length, big-endian.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

enum { WR_RECV = 1, WR_SEND, WR_READ, WR_WRITE };

struct advert {
	uint64_t addr;
	uint32_t rkey, len;
};
_Static_assert(sizeof(struct advert) == 16, "rping's message");

/* The layout of the buffer: a receive slot, a send slot, then source and sink. */
enum { OFF_RECV = 0, OFF_SEND = 64, OFF_DATA = 4096 };

static struct peer p;
/* Number of advertisements that have arrived and have not been processed. */
static unsigned received;

static int
want_advert(void *arg)
{
	return peer_recv(&p, WR_RECV, OFF_RECV, sizeof(struct advert));
}

/* Takes completions until that of `wr_id`. */
static int
wait_for(uint64_t wr_id)
{
	for (;;) {
		struct rd_wc wc;

		if (wr_id == WR_RECV && received) {
			received--;
			return 0;
		}
		if (peer_wait(&p, &wc, false))
			return -1;
		if (wc.status != RD_SUCCESS) {
			printf("request %u: status %u, reason %u\n", (unsigned)wc.wr_id, wc.status,
				wc.vendor_err);
			return -1;
		}
		if (wc.wr_id == WR_RECV)
			received++;
		else if (wc.wr_id == wr_id)
			return 0;
	}
}

static int
advertise(uint32_t off, uint32_t len)
{
	struct advert a = {
		htobe64((uintptr_t)p.buf + off),
		htonl(saker_mr_stag(p.mr)),
		htonl(len),
	};

	memcpy(p.buf + OFF_SEND, &a, sizeof(a));
	return peer_post(&p, WR_SEND, RD_SEND, RD_SIGNALED, OFF_SEND, sizeof(a), 0, 0, 0) ||
	       wait_for(WR_SEND);
}

/* Takes an advertisement. The next receive is posted before the peer is answered. */
static int
take_advert(struct advert *a)
{
	if (wait_for(WR_RECV))
		return -1;
	memcpy(a, p.buf + OFF_RECV, sizeof(*a));
	a->addr = be64toh(a->addr);
	a->rkey = ntohl(a->rkey);
	a->len = ntohl(a->len);
	return want_advert(NULL);
}

static int
server_round(uint32_t size)
{
	struct advert a;

	if (take_advert(&a))
		return -1;
	if (a.len != size) {
		printf("rping advertises %u bytes, not %u\n", a.len, size);
		return -1;
	}
	if (peer_post(&p, WR_READ, RD_READ, RD_SIGNALED, OFF_DATA, a.len, a.addr, a.rkey, 0) ||
		wait_for(WR_READ) || advertise(OFF_DATA, 0) || take_advert(&a))
		return -1;
	if (peer_post(&p, WR_WRITE, RD_WRITE, RD_SIGNALED, OFF_DATA, a.len, a.addr, a.rkey, 0) ||
		wait_for(WR_WRITE))
		return -1;
	return advertise(OFF_DATA, 0);
}

static int
client_round(uint32_t size, unsigned round)
{
	uint8_t *src = p.buf + OFF_DATA, *sink = src + size;
	struct advert a;

	for (uint32_t i = 0; i < size; i++)
		src[i] = (uint8_t)('A' + (i + round) % 58);
	src[size - 1] = 0; /* rping's server treats the bytes as text */
	memset(sink, 0xee, size);
	if (advertise(OFF_DATA, size) || take_advert(&a) || advertise(OFF_DATA + size, size) ||
		take_advert(&a))
		return -1;
	if (memcmp(src, sink, size)) {
		printf("round %u: what came back differs\n", round);
		return -1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	bool server = argc == 6 && strcmp(argv[2], "server") == 0;
	int rounds, rc;
	uint32_t size;

	if (!server && (argc != 7 || strcmp(argv[2], "client"))) {
		fprintf(stderr, "usage: saker_rping SOCKET server PORT ROUNDS SIZE | "
				"SOCKET client ADDR PORT ROUNDS SIZE\n");
		return 2;
	}
	rounds = atoi(argv[argc - 2]);
	size = (uint32_t)atoi(argv[argc - 1]);
	rc = peer_open(&p, argv[1], "saker_rping", OFF_DATA + 2 * size);
	if (rc == 0 && server)
		rc = peer_accept(&p, (uint16_t)atoi(argv[3]), want_advert, NULL);
	else if (rc == 0)
		rc = want_advert(NULL) || peer_connect(&p, argv[3], (uint16_t)atoi(argv[4]));
	for (int i = 0; i < rounds && rc == 0; i++)
		rc = server ? server_round(size) : client_round(size, (unsigned)i);
	if (rc == 0 && !server)
		rc = saker_disconnect(p.qp, false);
	if (rc == 0)
		rc = peer_wait_end(&p);
	peer_close(&p);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
