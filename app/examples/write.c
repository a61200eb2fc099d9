/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a line of text into a server's memory: connect, register, RDMA Write, poll.
 *
 * Run two sakers, joined by shared memory:
 *
 *     saker --lcores 0@0 --no-pci --in-memory --file-prefix a \
 *         --vdev net_memif0,role=server,socket=/tmp/wire -- \
 *         --socket /tmp/a.sock --address 0=10.5.0.1/24
 *     saker --lcores 0@1 --no-pci --in-memory --file-prefix b \
 *         --vdev net_memif0,role=client,socket=/tmp/wire -- \
 *         --socket /tmp/b.sock --address 0=10.5.0.2/24
 *
 * then the server on one of them, and this program on the other:
 *
 *     SAKER_SOCKET=/tmp/b.sock server 7000
 *     SAKER_SOCKET=/tmp/a.sock write 10.5.0.2 7000 "hello, memory"
 *
 * A fourth argument, "falcon", selects RDMA over Falcon instead of iWARP; both sakers then need a
 * configuration with `enabled = yes` in its section [falcon].
 *
 * The server's acceptance carries the place of its buffer as private data. This program writes the
 * text there with an RDMA Write, in which the server takes no part, and then sends an empty
 * message, which completes a receive of the server. The text is complete when that message has
 * arrived.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <saker/saker.h>

/* The private data of the acceptance, big-endian. */
struct place {
	uint64_t addr;
	uint32_t rkey, len;
};

static void
need(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, saker_error());
	exit(1);
}

/* Waits for the next event, which has to be of this type. */
static void
expect(struct saker *s, enum saker_event_type type, struct saker_event *ev)
{
	while (saker_event(s, ev) == 0)
		saker_wait(s, -1);
	if (ev->type == type)
		return;
	fprintf(stderr, "event \"%s\" (%s)\n", saker_event_str(ev->type), strerror(-ev->status));
	exit(1);
}

/* Polls until one request is complete. */
static void
complete(struct saker_cq *cq, enum saker_transport transport)
{
	struct rd_wc wc;

	while (saker_cq_poll(cq, &wc, 1) == 0)
		;
	if (wc.status == RD_SUCCESS)
		return;
	fprintf(stderr, "%s, %s\n", saker_status_str(wc.status),
		saker_reason_str(transport, wc.vendor_err));
	exit(1);
}

static void
write_text(struct saker_qp *qp, const struct saker_mr *mr, const char *text,
	const struct saker_conn_info *peer)
{
	const struct rd_sge sge = {.addr = (uintptr_t)text,
		.len = (uint32_t)strlen(text) + 1,
		.lkey = saker_mr_stag(mr)};
	struct place at;

	if (peer->private_len < sizeof(at)) {
		fprintf(stderr, "the server sent no place to write to\n");
		exit(1);
	}
	memcpy(&at, peer->private_data, sizeof(at));
	const struct saker_wr wr[] = {
		{.opcode = RD_WRITE,
			.nsge = 1,
			.sge = &sge,
			.remote_addr = be64toh(at.addr),
			.rkey = be32toh(at.rkey)},
		{.opcode = RD_SEND, .flags = RD_SIGNALED},
	};

	/* The two requests are executed in order; only the second one has a completion. */
	if (saker_post_send(qp, wr, 2) != 2) {
		fprintf(stderr, "the requests cannot be posted\n");
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	struct saker_qp_attr attr = {.sq_depth = 2, .rq_depth = 1, .max_send_sge = 1};
	struct saker_event ev;
	struct sk_addr server;
	struct saker *s;
	struct saker_pd *pd;
	struct saker_cq *cq;
	struct saker_qp *qp;
	struct saker_mr *mr;
	char *text;

	if (argc < 4 || sk_addr_parse(argv[1], &server) < 0 || strlen(argv[3]) > 4000) {
		fprintf(stderr, "usage: write ADDRESS PORT TEXT [falcon]\n");
		return 2;
	}
	/* NULL: the saker at $SAKER_SOCKET, or at the usual place. */
	need(saker_open(NULL, "write", &s), "saker_open");
	need(saker_pd_create(s, &pd), "saker_pd_create");
	need(saker_cq_create(s, 16, NULL, &cq), "saker_cq_create");
	attr.send_cq = attr.recv_cq = cq;
	attr.transport = argc > 4 ? SAKER_FALCON : SAKER_IWARP;
	need(saker_qp_create(pd, &attr, &qp), "saker_qp_create");

	/* Any memory of the program can be registered. It needs no rights to be sent from. */
	text = strdup(argv[3]);
	need(saker_mr_create(pd, text, strlen(text) + 1, 0, &mr), "saker_mr_create");

	need(saker_connect(qp, NULL, &server, (uint16_t)atoi(argv[2]), NULL), "saker_connect");
	expect(s, SAKER_EV_ESTABLISHED, &ev);
	write_text(qp, mr, text, &ev.cm);
	complete(cq, attr.transport);
	need(saker_disconnect(qp, false), "saker_disconnect");
	expect(s, SAKER_EV_DISCONNECTED, &ev);

	/* Destroys the QP, the region and all else; `text` is private memory again. */
	saker_close(s);
	free(text);
	return 0;
}
