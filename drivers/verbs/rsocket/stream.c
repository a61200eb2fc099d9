/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream: messages in slots of registered memory. The receiver grants a credit for each receive
 * of its own; a message of data, and one that names a mapping, takes one. RS_CONTROL further
 * receives are for credits and the end of the stream: a side sends credits when a quarter of its
 * receives or more is due, so that at most four such messages are on the way, and the end once.
 * A peer that exceeds this ends its own connection, for lack of a receive.
 *
 * A message that waits for a credit is filled up by further writes.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rs_priv.h"

#define BATCH 16

enum { WR_RX, WR_TX };

static uint64_t
wr_id(uint32_t kind, uint32_t slot)
{
	return (uint64_t)kind << 32 | slot;
}

/* ---- Queues of slots ---- */

static int
queue_new(struct rs_queue *q, uint32_t size)
{
	*q = (struct rs_queue){.slot = calloc(size, sizeof(*q->slot)), .size = size};
	return q->slot != NULL ? 0 : ENOMEM;
}

static void
queue_push(struct rs_queue *q, uint32_t slot)
{
	q->slot[(q->head + q->count++) % q->size] = (uint16_t)slot;
}

static uint32_t
queue_first(const struct rs_queue *q)
{
	return q->slot[q->head];
}

static uint32_t
queue_pop(struct rs_queue *q)
{
	uint32_t slot = queue_first(q);

	q->head = (q->head + 1) % q->size;
	q->count--;
	return slot;
}

static uint8_t *
rx_at(const struct vb_rs *rs, uint32_t slot)
{
	return rs->mem + (size_t)slot * RS_SLOT;
}

static uint8_t *
tx_at(const struct vb_rs *rs, uint32_t slot)
{
	return rs->mem + (size_t)(rs->nrx + slot) * RS_SLOT;
}

uint8_t *
vb_rs_slot_at(struct vb_rs *rs, uint32_t slot)
{
	return tx_at(rs, slot) + sizeof(struct rs_hdr);
}

/* ---- Creating and destroying ---- */

static int
rx_post(struct vb_rs *rs, uint32_t slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)rx_at(rs, slot), .length = RS_SLOT, .lkey = rs->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id(WR_RX, slot), .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(rs->id->qp, &wr, &bad);
}

static int
memory_new(struct vb_rs *rs)
{
	rs->mem_len = (size_t)(rs->nrx + rs->ntx) * RS_SLOT;
	rs->mem =
		mmap(NULL, rs->mem_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rs->mem == MAP_FAILED) {
		rs->mem = NULL;
		return ENOMEM;
	}
	rs->rx_len = calloc(rs->nrx, sizeof(*rs->rx_len));
	rs->tx_len = calloc(rs->ntx, sizeof(*rs->tx_len));
	rs->tx_type = calloc(rs->ntx, sizeof(*rs->tx_type));
	if (rs->rx_len == NULL || rs->tx_len == NULL || rs->tx_type == NULL ||
		queue_new(&rs->rx, rs->nrx) != 0 || queue_new(&rs->tx, rs->ntx) != 0 ||
		queue_new(&rs->tx_free, rs->ntx) != 0 || queue_new(&rs->ctl_free, rs->ntx) != 0)
		return ENOMEM;
	for (uint32_t i = 0; i < rs->ntx; i++)
		queue_push(i < RS_CONTROL ? &rs->ctl_free : &rs->tx_free, i);
	rs->mr = ibv_reg_mr(rs->id->pd, rs->mem, rs->mem_len, IBV_ACCESS_LOCAL_WRITE);
	return rs->mr != NULL ? 0 : errno;
}

static int
queues_new(struct vb_rs *rs, struct ibv_comp_channel *channel)
{
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = rs->ntx,
			.max_recv_wr = rs->nrx,
			.max_send_sge = 1,
			.max_recv_sge = 1}};

	rs->cq = ibv_create_cq(rs->id->verbs, (int)(rs->nrx + rs->ntx), rs, channel, 0);
	if (rs->cq == NULL)
		return errno;
	attr.send_cq = attr.recv_cq = rs->cq;
	if (rdma_create_qp(rs->id, rs->id->pd, &attr) != 0)
		return errno;
	return ibv_req_notify_cq(rs->cq, 0);
}

int
vb_rs_stream_new(struct vb_rs *rs, struct ibv_comp_channel *channel)
{
	int err = 0;

	rs->rx_off = rs->credits_due = 0;
	rs->nrx = rs->slots_rx + RS_CONTROL;
	rs->ntx = rs->slots_tx + RS_CONTROL;
	if (channel == NULL)
		err = errno;
	if (err == 0)
		err = memory_new(rs);
	if (err == 0)
		err = queues_new(rs, channel);
	for (uint32_t i = 0; err == 0 && i < rs->nrx; i++)
		err = rx_post(rs, i);
	if (err != 0)
		vb_rs_stream_free(rs);
	return err;
}

void
vb_rs_stream_free(struct vb_rs *rs)
{
	if (rs->id != NULL && rs->id->qp != NULL)
		rdma_destroy_qp(rs->id);
	if (rs->cq != NULL)
		ibv_destroy_cq(rs->cq);
	vb_rs_maps_free(rs);
	if (rs->mr != NULL)
		ibv_dereg_mr(rs->mr);
	if (rs->mem != NULL)
		munmap(rs->mem, rs->mem_len);
	rs->cq = NULL;
	rs->mr = NULL;
	rs->mem = NULL;
	free(rs->rx_len);
	free(rs->tx_len);
	free(rs->tx_type);
	free(rs->rx.slot);
	free(rs->tx.slot);
	free(rs->tx_free.slot);
	free(rs->ctl_free.slot);
	rs->rx_len = rs->tx_len = NULL;
	rs->tx_type = NULL;
	rs->rx = rs->tx = rs->tx_free = rs->ctl_free = (struct rs_queue){0};
}

/* ---- The exchange at the start ---- */

void
vb_rs_hello_fill(const struct vb_rs *rs, struct rs_hello *h)
{
	*h = (struct rs_hello){.magic = htonl(RS_MAGIC),
		.version = htons(RS_VERSION),
		.slots = htons((uint16_t)rs->slots_rx),
		.slot_bytes = htonl(RS_SLOT),
		.maps = htons((uint16_t)rs->maps_max)};
}

int
vb_rs_hello_take(struct vb_rs *rs, const void *data, size_t len)
{
	struct rs_hello h;
	uint32_t bytes;

	if (data == NULL || len < sizeof(h))
		return vb_fail(EPROTO, "the peer is no socket of Saker");
	memcpy(&h, data, sizeof(h));
	bytes = ntohl(h.slot_bytes);
	if (ntohl(h.magic) != RS_MAGIC || ntohs(h.version) != RS_VERSION)
		return vb_fail(EPROTO, "the peer is no socket of Saker of version %u", RS_VERSION);
	if (ntohs(h.slots) < RS_SLOTS_MIN || ntohs(h.slots) > RS_SLOTS_MAX || bytes < RS_SLOT_MIN)
		return vb_fail(
			EPROTO, "the peer offers %u messages of %u bytes", ntohs(h.slots), bytes);
	rs->peer_slots = rs->credits = ntohs(h.slots);
	rs->peer_bytes = (bytes < RS_SLOT ? bytes : RS_SLOT) - (uint32_t)sizeof(struct rs_hdr);
	rs->peer_maps_max = ntohs(h.maps);
	return 0;
}

/* ---- Sending ---- */

void
vb_rs_break(struct vb_rs *rs, int err)
{
	if (rs->state == RS_CONNECTING) {
		vb_rs_connect_fail(rs, err);
		return;
	}
	if (rs->broken)
		return;
	rs->broken = true;
	if (rs->err == 0 && !rs->rx_eof)
		rs->err = err;
	rs->state = RS_CLOSED;
	if (rs->id != NULL && rs->id->qp != NULL)
		rdma_disconnect(rs->id);
}

static int
slot_post(struct vb_rs *rs, uint32_t slot, enum ibv_wr_opcode op, uint8_t *from, uint32_t len,
	uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = {.addr = (uintptr_t)from, .length = len, .lkey = rs->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id(WR_TX, slot),
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = op,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {.remote_addr = addr, .rkey = rkey}};
	int err = ibv_post_send(rs->id->qp, &wr, &bad);

	if (err != 0)
		vb_rs_break(rs, ECONNRESET);
	return err;
}

/* Posts a message with the credits that are due. */
static void
message_post(struct vb_rs *rs, uint32_t slot, enum rs_type type, uint32_t len)
{
	struct rs_hdr h = {.type = (uint8_t)type,
		.credits = htons((uint16_t)rs->credits_due),
		.len = htonl(len)};

	rs->credits_due = 0;
	memcpy(tx_at(rs, slot), &h, sizeof(h));
	slot_post(rs, slot, IBV_WR_SEND, tx_at(rs, slot), (uint32_t)sizeof(h) + len, 0, 0);
}

void
vb_rs_flush(struct vb_rs *rs)
{
	if (rs->state != RS_CONNECTED)
		return;
	while (rs->tx.count > 0 && rs->credits > 0 && !rs->broken) {
		uint32_t slot = queue_pop(&rs->tx);

		rs->credits--;
		message_post(rs, slot, (enum rs_type)rs->tx_type[slot], rs->tx_len[slot]);
	}
	if (rs->credits_due >= rs->slots_rx / 4 && rs->ctl_free.count > 0 && !rs->broken)
		message_post(rs, queue_pop(&rs->ctl_free), RS_CREDIT, 0);
	if (rs->tx_shut && !rs->shut_sent && rs->tx.count == 0 && rs->ctl_free.count > 0 &&
		!rs->broken) {
		rs->shut_sent = true;
		message_post(rs, queue_pop(&rs->ctl_free), RS_SHUT, 0);
	}
}

bool
vb_rs_flushed(const struct vb_rs *rs)
{
	return rs->shut_sent && rs->tx_free.count + rs->ctl_free.count == rs->ntx;
}

int
vb_rs_slot_take(struct vb_rs *rs)
{
	return rs->tx_free.count > 0 ? (int)queue_pop(&rs->tx_free) : -1;
}

void
vb_rs_slot_give_back(struct vb_rs *rs, uint32_t slot)
{
	queue_push(&rs->tx_free, slot);
}

void
vb_rs_slot_queue(struct vb_rs *rs, uint32_t slot, enum rs_type type, uint32_t len)
{
	rs->tx_type[slot] = (uint8_t)type;
	rs->tx_len[slot] = len;
	queue_push(&rs->tx, slot);
	vb_rs_flush(rs);
}

int
vb_rs_slot_write(struct vb_rs *rs, uint32_t slot, uint32_t len, uint64_t addr, uint32_t rkey)
{
	return slot_post(rs, slot, IBV_WR_RDMA_WRITE, vb_rs_slot_at(rs, slot), len, addr, rkey);
}

/* Returns the last slot if it waits for a credit and has room for more data, or else -1. */
static int
slot_open(const struct vb_rs *rs)
{
	uint32_t slot;

	if (rs->tx.count == 0)
		return -1;
	slot = rs->tx.slot[(rs->tx.head + rs->tx.count - 1) % rs->tx.size];
	return rs->tx_type[slot] == RS_DATA && rs->tx_len[slot] < rs->peer_bytes ? (int)slot : -1;
}

bool
vb_rs_writable(const struct vb_rs *rs)
{
	if (rs->state == RS_CONNECTED)
		return rs->tx_free.count > 0 || slot_open(rs) >= 0 || rs->tx_shut;
	return (rs->state & (RS_CONNECTING | RS_LISTENING)) == 0;
}

size_t
vb_rs_give(struct vb_rs *rs, const uint8_t *from, size_t len)
{
	size_t done = 0;

	while (done < len && rs->state == RS_CONNECTED) {
		int open = slot_open(rs), slot = open >= 0 ? open : vb_rs_slot_take(rs);
		uint32_t have, n;

		if (slot < 0)
			break;
		have = open >= 0 ? rs->tx_len[slot] : 0;
		n = rs->peer_bytes - have;
		if (n > len - done)
			n = (uint32_t)(len - done);
		memcpy(vb_rs_slot_at(rs, (uint32_t)slot) + have, from + done, n);
		done += n;
		if (open >= 0)
			rs->tx_len[slot] += n;
		else
			vb_rs_slot_queue(rs, (uint32_t)slot, RS_DATA, n);
	}
	return done;
}

/* ---- Receiving ---- */

/* Posts a receive again. `credit`: the message had taken a credit. */
static void
rx_return(struct vb_rs *rs, uint32_t slot, bool credit)
{
	if ((rs->state & (RS_CONNECTING | RS_ACCEPTING | RS_CONNECTED)) == 0)
		return;
	if (rx_post(rs, slot) != 0)
		vb_rs_break(rs, ECONNRESET);
	else if (credit)
		rs->credits_due++;
}

/* Processes a message other than data. Returns 0 or EPROTO. */
static int
control_received(struct vb_rs *rs, uint32_t slot, enum rs_type type, uint32_t len)
{
	int err = 0;

	if (type == RS_SHUT)
		rs->rx_eof = true;
	else if (type == RS_MAP || type == RS_UNMAP)
		err = vb_rs_map_received(rs, type, rx_at(rs, slot) + sizeof(struct rs_hdr), len);
	else if (type != RS_CREDIT)
		err = EPROTO;
	if (err == 0)
		rx_return(rs, slot, type == RS_MAP || type == RS_UNMAP);
	return err;
}

static void
message_received(struct vb_rs *rs, uint32_t slot, uint32_t bytes)
{
	struct rs_hdr h;
	uint32_t len, credits;
	int err = 0;

	memcpy(&h, rx_at(rs, slot), sizeof(h));
	len = ntohl(h.len);
	credits = ntohs(h.credits);
	if (bytes < sizeof(h) || len != bytes - sizeof(h) ||
		credits > rs->peer_slots - rs->credits) {
		vb_rs_break(rs, EPROTO);
		return;
	}
	rs->credits += credits;
	if (h.type != RS_DATA) {
		err = control_received(rs, slot, (enum rs_type)h.type, len);
	} else if (rs->rx_eof || len == 0) {
		err = EPROTO;
	} else if (rs->rx_shut) {
		rx_return(rs, slot, true);
	} else {
		rs->rx_len[slot] = len;
		queue_push(&rs->rx, slot);
	}
	if (err != 0)
		vb_rs_break(rs, err);
}

static void
stream_completed(struct vb_rs *rs, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;

	if (wc->wr_id >> 32 == WR_TX)
		queue_push(slot < RS_CONTROL ? &rs->ctl_free : &rs->tx_free, slot);
	if (wc->status != IBV_WC_SUCCESS) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			vb_rs_break(rs, ECONNRESET);
		return;
	}
	if (wc->wr_id >> 32 == WR_RX)
		message_received(rs, slot, wc->byte_len);
}

unsigned
vb_rs_progress(struct vb_rs *rs)
{
	struct ibv_wc wc[BATCH];
	unsigned all = 0;
	int n;

	if (rs->cq == NULL)
		return 0;
	do {
		n = ibv_poll_cq(rs->cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			stream_completed(rs, &wc[i]);
		all += n > 0 ? (unsigned)n : 0;
	} while (n == BATCH);
	vb_rs_flush(rs);
	return all;
}

size_t
vb_rs_available(const struct vb_rs *rs)
{
	size_t n = 0;

	for (uint32_t i = 0; i < rs->rx.count; i++)
		n += rs->rx_len[rs->rx.slot[(rs->rx.head + i) % rs->rx.size]];
	return n - rs->rx_off;
}

size_t
vb_rs_take(struct vb_rs *rs, uint8_t *to, size_t len, bool peek, size_t skip)
{
	uint32_t off = rs->rx_off, at = 0;
	size_t done = 0;

	while (at < rs->rx.count && done < len) {
		uint32_t slot = rs->rx.slot[(rs->rx.head + at) % rs->rx.size];
		size_t n = rs->rx_len[slot] - off;

		if (skip >= n) {
			skip -= n;
			off = 0;
			at++;
			continue;
		}
		off += (uint32_t)skip;
		n -= skip;
		skip = 0;
		if (n > len - done)
			n = len - done;
		if (to != NULL)
			memcpy(to + done, rx_at(rs, slot) + sizeof(struct rs_hdr) + off, n);
		done += n;
		off += (uint32_t)n;
		if (off < rs->rx_len[slot])
			break;
		off = 0;
		if (peek) {
			at++;
			continue;
		}
		queue_pop(&rs->rx);
		rx_return(rs, slot, true);
	}
	if (!peek)
		rs->rx_off = off;
	return done;
}

void
vb_rs_discard(struct vb_rs *rs)
{
	while (rs->rx.count > 0)
		rx_return(rs, queue_pop(&rs->rx), true);
	rs->rx_off = 0;
}
