/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange on libsaker: `saker_peer SOCKET listen ANY PORT` or `saker_peer SOCKET connect ADDR PORT`; behind it `quick`, and
 * `rev1` or `rev2` for the MPA revision to start with, `nocrc`, `markers`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "peer.h"

struct both {
	struct ex_peer ex;
	struct peer p;
	struct saker_mr *window;
};

static int
post_recv(struct ex_peer *ex, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct both *b = ex->priv;

	return peer_recv(&b->p, wr_id, off, len);
}

static int
post(struct ex_peer *ex, uint64_t wr_id, enum ex_op op, uint32_t off, uint32_t len, uint64_t remote,
	uint32_t rkey, uint32_t inv)
{
	static const enum rd_opcode opcodes[] = {
		[EX_SEND] = RD_SEND,
		[EX_SEND_SE] = RD_SEND,
		[EX_SEND_INV] = RD_SEND_INV,
		[EX_SEND_SE_INV] = RD_SEND_INV,
		[EX_WRITE] = RD_WRITE,
		[EX_READ] = RD_READ,
	};
	struct both *b = ex->priv;
	uint8_t flags = RD_SIGNALED;

	if (op == EX_SEND_SE || op == EX_SEND_SE_INV)
		flags |= RD_SOLICITED;
	return peer_post(&b->p, wr_id, opcodes[op], flags, off, len, remote, rkey, inv);
}

static int
wait_done(struct ex_peer *ex, struct ex_done *done, bool solicited)
{
	static char status[32];
	struct both *b = ex->priv;
	struct rd_wc wc;

	if (peer_wait(&b->p, &wc, solicited))
		return -1;
	snprintf(status, sizeof(status), "status %u, reason %u", wc.status, wc.vendor_err);
	done->wr_id = wc.wr_id;
	done->ok = wc.status == RD_SUCCESS;
	done->recv = wc.opcode >= RD_RECV;
	done->len = wc.byte_len;
	done->invalidated = wc.flags & RD_WC_INV ? wc.inv_stag : 0;
	done->status = status;
	return 0;
}

static int
window(struct ex_peer *ex, uint32_t *stag)
{
	struct both *b = ex->priv;
	int rc = saker_mr_create(b->p.pd, b->p.buf, EX_DATA_LEN,
		RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ, &b->window);

	if (rc < 0)
		return peer_fail("saker_mr_create", rc);
	*stag = saker_mr_stag(b->window);
	return 0;
}

static void
window_end(struct ex_peer *ex)
{
	struct both *b = ex->priv;

	saker_mr_destroy(b->window);
}

static const struct ex_verbs verbs = {post_recv, post, wait_done, window, window_end};

static int
prepare(void *arg)
{
	return exchange_prepare(arg);
}

int
main(int argc, char **argv)
{
	struct both b = {.ex.verbs = &verbs};
	bool quick = false, first;
	int rc;

	if (argc < 5) {
		fprintf(stderr, "usage: saker_peer SOCKET listen|connect ADDR PORT [quick] "
				"[rev1|rev2] [nocrc] [markers]\n");
		return 2;
	}
	first = strcmp(argv[2], "connect") == 0;
	b.ex.priv = &b;
	rc = peer_open(&b.p, argv[1], "saker_peer", EX_BUF_LEN);
	for (int i = 5; i < argc && rc == 0; i++) {
		quick = quick || strcmp(argv[i], "quick") == 0;
		if (strncmp(argv[i], "rev", 3) == 0)
			b.p.param.revision = (uint8_t)atoi(argv[i] + 3);
		if (strcmp(argv[i], "nocrc") == 0)
			b.p.param.crc = 0;
		if (strcmp(argv[i], "markers") == 0)
			b.p.param.markers = 1;
	}
	if (rc == 0) {
		b.ex.buf = b.p.buf;
		b.ex.stag = saker_mr_stag(b.p.mr);
		if (first)
			rc = prepare(&b.ex) || peer_connect(&b.p, argv[3], (uint16_t)atoi(argv[4]));
		else
			rc = peer_accept(&b.p, (uint16_t)atoi(argv[4]), prepare, &b.ex);
	}
	if (rc == 0)
		rc = exchange(&b.ex, first, quick);
	if (rc == 0 && first)
		rc = saker_disconnect(b.p.qp, false);
	if (rc == 0)
		rc = peer_wait_end(&b.p);
	peer_close(&b.p);
	printf("%s\n", rc == 0 ? "PASS" : "FAIL");
	return rc != 0;
}
