/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server that sleeps until something happens: listen, accept, completion events.
 *
 *     SAKER_SOCKET=/tmp/b.sock server 7000
 *
 * Each client gets a buffer, whose place the acceptance carries as private data; write.c is such a
 * client. The server prints what clients have written. It serves clients over iWARP and over Falcon
 * side by side. With a second argument it exits after so many clients.
 */
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saker/saker.h>

#define TEXT_BYTES 4096

/* The private data of the acceptance, big-endian. */
struct place {
	uint64_t addr;
	uint32_t rkey, len;
};

struct client {
	struct saker_qp *qp;
	struct saker_mr *mr;
	char *text;
};

static struct saker *s;
static struct saker_pd *pd;
static struct saker_cq *cq;
static long served;

static void
need(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, saker_error());
	exit(1);
}

static void
accept_client(const struct saker_event *ev)
{
	struct client *c = calloc(1, sizeof(*c));
	struct saker_qp_attr attr = {.send_cq = cq,
		.recv_cq = cq,
		.sq_depth = 1,
		.rq_depth = 1,
		.transport = (enum saker_transport)ev->cm.transport,
		.user = c};
	/* The depths that the client asks for; CRC and markers as configured. */
	struct saker_conn_param param = {
		.ird = ev->cm.ird, .ord = ev->cm.ord, .crc = 2, .markers = 2};
	const struct saker_wr receive = {.nsge = 0}; /* of an empty message */
	struct place place;

	c->text = saker_alloc(s, TEXT_BYTES);
	need(c->text != NULL ? 0 : -1, "saker_alloc");
	need(saker_mr_create(
		     pd, c->text, TEXT_BYTES, RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_WRITE, &c->mr),
		"saker_mr_create");
	need(saker_qp_create(pd, &attr, &c->qp), "saker_qp_create");
	need(saker_post_recv(c->qp, &receive, 1), "saker_post_recv");
	place.addr = htobe64((uintptr_t)c->text);
	place.rkey = htobe32(saker_mr_stag(c->mr));
	place.len = htobe32(TEXT_BYTES);
	param.private_data = &place;
	param.private_len = sizeof(place);
	need(saker_accept(s, ev->request, c->qp, &param), "saker_accept");
}

static void
take_completions(void)
{
	struct rd_wc wc;

	while (saker_cq_poll(cq, &wc, 1) == 1) {
		const struct client *c = saker_qp_user(saker_qp_find(s, wc.qpn));

		/* RD_WR_FLUSH_ERR: the receive of a client that left without a message. */
		if (wc.status == RD_SUCCESS)
			printf("%.*s\n", TEXT_BYTES, c->text);
		else if (wc.status != RD_WR_FLUSH_ERR)
			fprintf(stderr, "%s\n", saker_status_str(wc.status));
	}
}

static void
end_client(struct saker_qp *qp)
{
	struct client *c = saker_qp_user(qp);

	take_completions(); /* those of `qp` among them */
	saker_qp_destroy(c->qp);
	saker_mr_destroy(c->mr);
	saker_free(s, c->text, TEXT_BYTES);
	free(c);
	served++;
}

static void
handle(const struct saker_event *ev)
{
	switch (ev->type) {
	case SAKER_EV_CONNECT_REQUEST:
		accept_client(ev);
		break;
	case SAKER_EV_UNREACHABLE: /* it went away during the start-up */
	case SAKER_EV_DISCONNECTED:
	case SAKER_EV_QP_FATAL:
		end_client(ev->qp);
		break;
	case SAKER_EV_ENGINE_GONE:
		fprintf(stderr, "the saker has gone away\n");
		exit(1);
	default:
		break;
	}
}

int
main(int argc, char **argv)
{
	struct saker_listener *listener;
	struct saker_event ev;
	struct saker_cq *ready;
	struct pollfd p;

	if (argc < 2) {
		fprintf(stderr, "usage: server PORT [CLIENTS]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	need(saker_open(NULL, "server", &s), "saker_open");
	need(saker_pd_create(s, &pd), "saker_pd_create");
	need(saker_cq_create(s, 1024, NULL, &cq), "saker_cq_create");
	saker_cq_arm(cq, false);
	need(saker_listen(s, NULL, (uint16_t)atoi(argv[1]), 16, NULL, &listener), "saker_listen");

	/* One descriptor for all events, to be used beside a program's other descriptors. */
	p = (struct pollfd){.fd = saker_fd(s), .events = POLLIN};
	while (argc < 3 || served < atol(argv[2])) {
		poll(&p, 1, -1);
		while (saker_cq_event(s, &ready) == 1) {
			/* First arm, then poll, so that no completion falls between the two. */
			saker_cq_arm(ready, false);
			take_completions();
		}
		while (saker_event(s, &ev) == 1)
			handle(&ev);
	}
	saker_close(s);
	return 0;
}
