/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mapped memory: riomap() registers a buffer and sends the peer its offset, address and key, in
 * order with the stream. riowrite() there writes into it (RDMA Write), before any message that the
 * program sends later.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rs_priv.h"

/* Returns the connected socket of a descriptor, locked and with a reference, or NULL with errno. */
static struct vb_rs *
iomap_lock(int fd)
{
	struct vb_rs *rs = vb_rs_get(fd);
	int err = 0;

	if (rs == NULL)
		return NULL;
	if (vb_rs_raw(rs, fd, &err))
		err = EOPNOTSUPP;
	pthread_mutex_lock(&rs->lock);
	if (err == 0 && rs->state != RS_CONNECTED)
		err = ENOTCONN;
	if (err == 0)
		return rs;
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	errno = err;
	return NULL;
}

static void
iomap_unlock(struct vb_rs *rs)
{
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
}

/* Takes a slot, for which it waits. Returns 0 or errno. */
static int
slot_wait(struct vb_rs *rs, int flags, uint32_t *slot)
{
	int err = 0, s;

	for (;;) {
		vb_rs_progress(rs);
		if (rs->state != RS_CONNECTED || rs->tx_shut)
			return EPIPE;
		s = vb_rs_slot_take(rs);
		vb_rs_show(rs);
		if (s >= 0)
			break;
		err = vb_rs_wait(rs, POLLOUT, flags);
		if (err != 0)
			return err;
	}
	*slot = (uint32_t)s;
	return 0;
}

/* Sends a mapping, or its end, to the peer. Returns 0 or errno. */
static int
map_send(struct vb_rs *rs, enum rs_type type, const struct rs_map *m)
{
	struct rs_map_msg msg = {.offset = htobe64(m->offset),
		.len = htobe64(m->len),
		.addr = htobe64(m->addr),
		.rkey = htonl(m->rkey)};
	uint32_t slot;
	int err = slot_wait(rs, 0, &slot);

	if (err != 0)
		return err;
	memcpy(vb_rs_slot_at(rs, slot), &msg, sizeof(msg));
	vb_rs_slot_queue(rs, slot, type, sizeof(msg));
	return 0;
}

/* ---- The program's own mappings ---- */

/* Returns whether a range of offsets has a part of one of the mappings, which it writes to *end. */
static bool
overlaps(const struct vb_rs *rs, uint64_t offset, uint64_t len, uint64_t *end)
{
	for (uint32_t i = 0; i < rs->nmaps; i++) {
		const struct rs_map *m = &rs->maps[i];

		if (m->mr != NULL && offset < m->offset + m->len && m->offset < offset + len) {
			*end = m->offset + m->len;
			return true;
		}
	}
	return false;
}

static uint64_t
offset_choose(const struct vb_rs *rs, uint64_t len)
{
	uint64_t offset = 0;

	while (overlaps(rs, offset, len, &offset))
		;
	return offset;
}

/* Registers the buffer of a new mapping. Returns 0 or errno. */
static int
map_register(struct vb_rs *rs, struct rs_map *m, off_t offset)
{
	uint64_t end;
	uint32_t remote = 0;

	for (uint32_t i = 0; i < rs->nmaps; i++)
		remote += rs->maps[i].mr != NULL;
	if (remote >= rs->peer_maps_max)
		return vb_fail(ENOSPC, "riomap: the peer permits %u mappings (RDMA_IOMAPSIZE)",
			rs->peer_maps_max);
	m->offset = offset == -1 ? offset_choose(rs, m->len) : (uint64_t)offset;
	if (offset != -1 && overlaps(rs, m->offset, m->len, &end))
		return vb_fail(
			EEXIST, "riomap: there is a mapping at the offset %lld", (long long)offset);
	m->mr = ibv_reg_mr(rs->id->pd, (void *)(uintptr_t)m->addr, m->len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (m->mr == NULL)
		return errno;
	m->rkey = m->mr->rkey;
	return 0;
}

/* Removes a mapping of the program, unless another thread has removed it. */
static void
map_forget(struct vb_rs *rs, const struct rs_map *m)
{
	for (uint32_t i = 0; i < rs->nmaps; i++) {
		if (rs->maps[i].addr != m->addr || rs->maps[i].len != m->len)
			continue;
		if (rs->maps[i].mr != NULL)
			ibv_dereg_mr(rs->maps[i].mr);
		rs->maps[i] = rs->maps[--rs->nmaps];
		return;
	}
}

static int
map_add(struct vb_rs *rs, void *buf, size_t len, int prot, off_t *offset)
{
	struct rs_map m = {.addr = (uintptr_t)buf, .len = len};
	int err = 0;

	if (rs->nmaps == RS_IOMAPS)
		return ENOSPC;
	if (rs->maps == NULL)
		rs->maps = calloc(RS_IOMAPS, sizeof(*rs->maps));
	if (rs->maps == NULL)
		return ENOMEM;
	if (prot == PROT_WRITE)
		err = map_register(rs, &m, *offset);
	if (err != 0)
		return err;
	/* Another thread may use the socket, and end it, while this one waits. */
	rs->maps[rs->nmaps++] = m;
	*offset = (off_t)m.offset;
	err = prot == PROT_WRITE ? map_send(rs, RS_MAP, &m) : 0;
	if (err != 0)
		map_forget(rs, &m);
	return err;
}

VB_EXPORT off_t
riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct vb_rs *rs;
	int err;

	if (buf == NULL || len == 0 || flags != 0 || (prot != PROT_WRITE && prot != PROT_NONE) ||
		offset < -1)
		return vb_rs_end(EINVAL);
	rs = iomap_lock(socket);
	if (rs == NULL)
		return -1;
	err = map_add(rs, buf, len, prot, &offset);
	iomap_unlock(rs);
	return err == 0 ? offset : vb_rs_end(err);
}

/* Ends a mapping. The connection may have ended before. Returns 0 or errno. */
static int
map_remove(struct vb_rs *rs, const struct rs_map *m)
{
	int err = 0;

	if (m->mr != NULL && rs->state == RS_CONNECTED && !rs->tx_shut)
		err = map_send(rs, RS_UNMAP, m);
	if (err != 0 && err != EPIPE)
		return err;
	map_forget(rs, m);
	return 0;
}

VB_EXPORT int
riounmap(int socket, void *buf, size_t len)
{
	struct vb_rs *rs = vb_rs_get(socket);
	int err = EINVAL;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	for (uint32_t i = 0; rs->epoch == vb_rs_epoch() && i < rs->nmaps; i++) {
		const struct rs_map m = rs->maps[i];

		if (m.addr != (uintptr_t)buf || m.len != len)
			continue;
		err = map_remove(rs, &m);
		break;
	}
	iomap_unlock(rs);
	return vb_rs_end(err);
}

/* ---- The peer's ---- */

static int
peer_map_add(struct vb_rs *rs, const struct rs_map *m)
{
	if (rs->npeer_maps >= rs->maps_max || m->len == 0 || m->offset + m->len < m->offset)
		return EPROTO;
	if (rs->peer_maps == NULL)
		rs->peer_maps = calloc(rs->maps_max, sizeof(*rs->peer_maps));
	if (rs->peer_maps == NULL)
		return ENOMEM;
	rs->peer_maps[rs->npeer_maps++] = *m;
	return 0;
}

int
vb_rs_map_received(struct vb_rs *rs, enum rs_type type, const uint8_t *data, uint32_t len)
{
	struct rs_map_msg msg;
	struct rs_map m;

	if (len != sizeof(msg))
		return EPROTO;
	memcpy(&msg, data, sizeof(msg));
	m = (struct rs_map){.offset = be64toh(msg.offset),
		.len = be64toh(msg.len),
		.addr = be64toh(msg.addr),
		.rkey = ntohl(msg.rkey)};
	if (type == RS_MAP)
		return peer_map_add(rs, &m);
	for (uint32_t i = 0; i < rs->npeer_maps; i++)
		if (rs->peer_maps[i].offset == m.offset && rs->peer_maps[i].len == m.len) {
			rs->peer_maps[i] = rs->peer_maps[--rs->npeer_maps];
			return 0;
		}
	return EPROTO;
}

static const struct rs_map *
peer_map_at(const struct vb_rs *rs, uint64_t offset)
{
	for (uint32_t i = 0; i < rs->npeer_maps; i++)
		if (offset - rs->peer_maps[i].offset < rs->peer_maps[i].len)
			return &rs->peer_maps[i];
	return NULL;
}

/* Writes the first bytes of a range, as far as one slot and one mapping permit. Returns how many,
 * or -errno. */
static ssize_t
write_part(struct vb_rs *rs, const uint8_t *from, size_t count, uint64_t offset, int flags)
{
	const struct rs_map *m;
	uint64_t n, addr;
	uint32_t slot, rkey;
	int err = slot_wait(rs, flags, &slot);

	if (err != 0)
		return -err;
	m = peer_map_at(rs, offset);
	n = m != NULL ? m->offset + m->len - offset : 0;
	if (n > count)
		n = count;
	if (n > RS_SLOT - sizeof(struct rs_hdr))
		n = RS_SLOT - sizeof(struct rs_hdr);
	addr = m != NULL ? m->addr + (offset - m->offset) : 0;
	rkey = m != NULL ? m->rkey : 0;
	memcpy(vb_rs_slot_at(rs, slot), from, n);
	if (m == NULL) {
		vb_rs_slot_give_back(rs, slot);
		return -vb_fail(EINVAL, "riowrite: the peer has no mapping at the offset %llu",
			(unsigned long long)offset);
	}
	err = vb_rs_slot_write(rs, slot, (uint32_t)n, addr, rkey);
	return err != 0 ? -err : (ssize_t)n;
}

VB_EXPORT size_t
riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct vb_rs *rs = iomap_lock(socket);
	size_t done = 0;
	ssize_t n = 0;

	if (rs == NULL)
		return (size_t)-1;
	while (n >= 0 && done < count) {
		n = write_part(rs, (const uint8_t *)buf + done, count - done,
			(uint64_t)offset + done, flags);
		done += n > 0 ? (size_t)n : 0;
	}
	iomap_unlock(rs);
	return done > 0 || n >= 0 ? done : (size_t)vb_rs_end((int)-n);
}

void
vb_rs_maps_free(struct vb_rs *rs)
{
	for (uint32_t i = 0; i < rs->nmaps; i++)
		if (rs->maps[i].mr != NULL)
			ibv_dereg_mr(rs->maps[i].mr);
	free(rs->maps);
	free(rs->peer_maps);
	rs->maps = rs->peer_maps = NULL;
	rs->nmaps = rs->npeer_maps = 0;
}
