/* SPDX-License-Identifier: BSD-3-Clause */
/* See peer.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

#define SIW_DEAF_US 300000 /* far longer than siw ignores messages, even emulated */

#define ALL_RIGHTS                                                                                 \
	(RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_ATOMIC |    \
		RD_ACC_MW_BIND)

int
peer_fail(const char *what, int rc)
{
	printf("%s: %s (%s)\n", what, strerror(-rc), saker_error());
	return -1;
}

int
peer_setup(struct peer *p, uint32_t buf_len)
{
	struct saker_qp_attr attr = {
		.sq_depth = 64,
		.rq_depth = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.transport = getenv("PEER_FALCON") != NULL ? SAKER_FALCON : SAKER_IWARP,
	};
	int rc;

	p->buf = saker_alloc(p->s, buf_len);
	if (p->buf == NULL)
		return peer_fail("saker_alloc", -12);
	if ((rc = saker_pd_create(p->s, &p->pd)) < 0)
		return peer_fail("saker_pd_create", rc);
	if ((rc = saker_mr_create(p->pd, p->buf, buf_len, ALL_RIGHTS, &p->mr)) < 0)
		return peer_fail("saker_mr_create", rc);
	if ((rc = saker_cq_create(p->s, 256, NULL, &p->cq)) < 0)
		return peer_fail("saker_cq_create", rc);
	attr.send_cq = attr.recv_cq = p->cq;
	if ((rc = saker_qp_create(p->pd, &attr, &p->qp)) < 0)
		return peer_fail("saker_qp_create", rc);
	p->param.crc = p->param.markers = 2;
	p->param.ird = p->param.ord = 8;
	return 0;
}

int
peer_open(struct peer *p, const char *socket, const char *name, uint32_t buf_len)
{
	int rc = saker_open(socket, name, &p->s);

	return rc < 0 ? peer_fail("saker_open", rc) : peer_setup(p, buf_len);
}

int
peer_expect(struct peer *p, enum saker_event_type want, struct saker_event *ev)
{
	for (int naps = 0; naps < PEER_WAIT_MS / 100;) {
		int rc = saker_event(p->s, ev);

		if (rc == 1 && ev->type == want)
			return 0;
		if (rc == 1) {
			printf("event %d (status %d), not %d\n", ev->type, ev->status, want);
			return -1;
		}
		if (rc < 0)
			return peer_fail("saker_event", rc);
		if (saker_wait(p->s, 100) == 0)
			naps++;
	}
	printf("event %d did not come\n", want);
	return -1;
}

int
peer_connect(struct peer *p, const char *addr, uint16_t port)
{
	struct saker_event ev;
	struct sk_addr to;
	int rc;

	if (sk_addr_parse(addr, &to) < 0)
		return peer_fail(addr, -22);
	if ((rc = saker_connect(p->qp, NULL, &to, port, &p->param)) < 0)
		return peer_fail("saker_connect", rc);
	if (peer_expect(p, SAKER_EV_ESTABLISHED, &ev))
		return -1;
	/* siw sends its reply before it listens for the first FPDU, and ignores one that arrives in
	 * between until another one arrives. */
	usleep(SIW_DEAF_US);
	return 0;
}

int
peer_listen(struct peer *p, uint16_t port)
{
	int rc = saker_listen(p->s, NULL, port, 8, NULL, &p->listener);

	if (rc < 0)
		return peer_fail("saker_listen", rc);
	printf("listening\n");
	fflush(stdout);
	return 0;
}

int
peer_accept(struct peer *p, uint16_t port, int (*before)(void *arg), void *arg)
{
	struct saker_event ev;
	int rc;

	if (p->listener == NULL && peer_listen(p, port))
		return -1;
	if (peer_expect(p, SAKER_EV_CONNECT_REQUEST, &ev) || (before != NULL && before(arg)))
		return -1;
	if ((rc = saker_accept(p->s, ev.request, p->qp, &p->param)) < 0)
		return peer_fail("saker_accept", rc);
	return peer_expect(p, SAKER_EV_ESTABLISHED, &ev);
}

int
peer_wait(struct peer *p, struct rd_wc *wc, bool solicited_only)
{
	struct saker_cq *cq;

	for (int naps = 0; naps < PEER_WAIT_MS / 100;) {
		if (saker_cq_poll(p->cq, wc, 1) == 1)
			return 0;
		saker_cq_arm(p->cq, solicited_only);
		if (saker_cq_poll(p->cq, wc, 1) == 1)
			return 0;
		if (saker_wait(p->s, 100) == 0)
			naps++;
		while (saker_cq_event(p->s, &cq) == 1)
			;
	}
	printf("no completion came\n");
	return -1;
}

int
peer_wait_end(struct peer *p)
{
	struct saker_event ev;

	return peer_expect(p, SAKER_EV_DISCONNECTED, &ev);
}

int
peer_recv(struct peer *p, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct rd_sge sge = {(uintptr_t)p->buf + off, len, saker_mr_stag(p->mr)};
	struct saker_wr wr = {.wr_id = wr_id, .nsge = 1, .sge = &sge};
	int rc = saker_post_recv(p->qp, &wr, 1);

	return rc == 1 ? 0 : peer_fail("saker_post_recv", rc);
}

int
peer_post(struct peer *p, uint64_t wr_id, enum rd_opcode op, uint8_t flags, uint32_t off,
	uint32_t len, uint64_t remote, uint32_t rkey, uint32_t inv)
{
	struct rd_sge sge = {(uintptr_t)p->buf + off, len, saker_mr_stag(p->mr)};
	struct saker_wr wr = {
		.wr_id = wr_id,
		.opcode = op,
		.flags = flags,
		.nsge = 1,
		.sge = &sge,
		.remote_addr = remote,
		.rkey = rkey,
		.imm = inv,
	};
	int rc = saker_post_send(p->qp, &wr, 1);

	return rc == 1 ? 0 : peer_fail("saker_post_send", rc);
}

void
peer_close(struct peer *p)
{
	if (p->s != NULL)
		saker_close(p->s);
}
