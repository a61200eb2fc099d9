/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The exchange of write.c and server.c as a plain verbs program: no header of Saker, nothing linked
 * but libibverbs and librdmacm. It runs on any RDMA device, and on Saker under saker-run:
 *
 *     SAKER_SOCKET=/tmp/b.sock saker-run ./verbs 7000
 *     SAKER_SOCKET=/tmp/a.sock saker-run ./verbs 10.5.0.2 7000 "hello, memory"
 *
 * write.c has the commands that start the sakers.
 *
 * One argument makes it the server (of one client), three the client. SAKER_DEVICE=falcon selects
 * RDMA over Falcon instead of iWARP. It also works with server.c or write.c at the other end.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#define TEXT_BYTES 4096

/* The private data of the acceptance, big-endian. */
struct place {
	uint64_t addr;
	uint32_t rkey, len;
};

static void
need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* An endpoint with a QP: of a client, or, without a host, of those that a server accepts. */
static struct rdma_cm_id *
endpoint(const char *host, const char *port)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *found;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC};
	struct rdma_cm_id *id;

	hints.ai_flags = host == NULL ? RAI_PASSIVE : 0;
	need(rdma_getaddrinfo(host, port, &hints, &found) == 0, "rdma_getaddrinfo");
	need(rdma_create_ep(&id, found, NULL, &attr) == 0, "rdma_create_ep");
	rdma_freeaddrinfo(found);
	return id;
}

static void
check(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return;
	fprintf(stderr, "%s\n", ibv_wc_status_str(wc->status));
	exit(1);
}

static void
serve(const char *port)
{
	struct rdma_cm_id *listener = endpoint(NULL, port), *id;
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_recv_wr receive = {.num_sge = 0}, *bad; /* of an empty message */
	char *text = calloc(1, TEXT_BYTES);
	struct place place;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	need(rdma_listen(listener, 16) == 0, "rdma_listen");
	need(rdma_get_request(listener, &id) == 0, "rdma_get_request");
	mr = rdma_reg_write(id, text, TEXT_BYTES);
	need(mr != NULL, "rdma_reg_write");
	need(ibv_post_recv(id->qp, &receive, &bad) == 0, "ibv_post_recv");
	place.addr = htobe64((uintptr_t)text);
	place.rkey = htobe32(mr->rkey);
	place.len = htobe32(TEXT_BYTES);
	param.private_data = &place;
	param.private_data_len = sizeof(place);
	need(rdma_accept(id, &param) == 0, "rdma_accept");
	/* Sleeps on the receive queue's completion channel. */
	need(rdma_get_recv_comp(id, &wc) == 1, "rdma_get_recv_comp");
	check(&wc);
	printf("%.*s\n", TEXT_BYTES, text);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	free(text);
}

static void
write_text(const char *host, const char *port, const char *arg)
{
	struct rdma_cm_id *id = endpoint(host, port);
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct ibv_send_wr write,
		message = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	char *text = strdup(arg);
	struct ibv_mr *mr = rdma_reg_msgs(id, text, strlen(text) + 1);
	struct ibv_sge sge;
	struct place place;
	struct ibv_wc wc;

	need(mr != NULL, "rdma_reg_msgs");
	need(rdma_connect(id, &param) == 0, "rdma_connect");
	need(id->event->param.conn.private_data_len >= sizeof(place), "the server's private data");
	memcpy(&place, id->event->param.conn.private_data, sizeof(place));
	sge = (struct ibv_sge){
		.addr = (uintptr_t)text, .length = (uint32_t)strlen(text) + 1, .lkey = mr->lkey};
	write = (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.next = &message,
		.wr.rdma = {.remote_addr = be64toh(place.addr), .rkey = be32toh(place.rkey)}};
	need(ibv_post_send(id->qp, &write, &bad) == 0, "ibv_post_send");
	need(rdma_get_send_comp(id, &wc) == 1, "rdma_get_send_comp");
	check(&wc);
	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	free(text);
}

int
main(int argc, char **argv)
{
	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: verbs PORT | verbs ADDRESS PORT TEXT\n");
		return 2;
	}
	if (argc == 2)
		serve(argv[1]);
	else
		write_text(argv[1], argv[2], argv[3]);
	return 0;
}
