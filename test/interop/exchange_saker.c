/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange's functions on libsaker. */
#include <stdio.h>

#include "exchange_saker.h"

static int
post_recv(struct ex_peer *ex, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct ex_saker *b = ex->priv;

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
	struct ex_saker *b = ex->priv;
	uint8_t flags = RD_SIGNALED;

	if (op == EX_SEND_SE || op == EX_SEND_SE_INV)
		flags |= RD_SOLICITED;
	return peer_post(&b->p, wr_id, opcodes[op], flags, off, len, remote, rkey, inv);
}

static int
wait_done(struct ex_peer *ex, struct ex_done *done, bool solicited)
{
	struct ex_saker *b = ex->priv;
	struct rd_wc wc;

	if (peer_wait(&b->p, &wc, solicited))
		return -1;
	snprintf(b->status, sizeof(b->status), "status %u, reason %u", wc.status, wc.vendor_err);
	done->wr_id = wc.wr_id;
	done->ok = wc.status == RD_SUCCESS;
	done->recv = wc.opcode >= RD_RECV;
	done->len = wc.byte_len;
	done->invalidated = wc.flags & RD_WC_INV ? wc.inv_stag : 0;
	done->status = b->status;
	return 0;
}

static int
window(struct ex_peer *ex, uint32_t *stag)
{
	struct ex_saker *b = ex->priv;
	struct saker_mw_bind bind = {
		.key = ++b->key,
		.mr = b->p.mr,
		.addr = (uintptr_t)b->p.buf,
		.len = EX_DATA_LEN,
		.access = RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ,
	};
	int rc = b->window != NULL ? 0 : saker_mw_alloc(b->p.pd, RD_MW_TYPE_2, &b->window);

	if (rc < 0)
		return peer_fail("saker_mw_alloc", rc);
	rc = saker_mw_bind(b->p.qp, b->window, &bind);
	if (rc < 0)
		return peer_fail("saker_mw_bind", rc);
	*stag = saker_mw_stag(b->window);
	return 0;
}

/* The peer has invalidated the window; if it had not, the next bind would fail. */
static void
window_end(struct ex_peer *ex)
{
}

static const struct ex_verbs verbs = {post_recv, post, wait_done, window, window_end};

static int
prepare(void *arg)
{
	return exchange_prepare(arg);
}

void
exchange_saker_init(struct ex_saker *b)
{
	b->ex.verbs = &verbs;
	b->ex.priv = b;
	b->ex.buf = b->p.buf;
	b->ex.stag = saker_mr_stag(b->p.mr);
}

int
exchange_saker(struct ex_saker *b, const char *addr, uint16_t port, bool quick)
{
	bool first = addr != NULL;
	int rc = first ? prepare(&b->ex) || peer_connect(&b->p, addr, port)
		       : peer_accept(&b->p, port, prepare, &b->ex);

	if (rc == 0)
		rc = exchange(&b->ex, first, quick);
	if (rc == 0 && first)
		rc = saker_disconnect(b->p.qp, false);
	return rc == 0 ? peer_wait_end(&b->p) : rc;
}
