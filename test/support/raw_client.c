/* SPDX-License-Identifier: BSD-3-Clause */
#include "raw_client.h"
#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define REPLY_NS (60ull * 1000 * 1000 * 1000) /* reached only when something is broken */

void (*raw_napper)(unsigned us);

void
raw_nap(unsigned us)
{
	const struct timespec t = {us / 1000000, us % 1000000 * 1000l};

	if (raw_napper != NULL)
		raw_napper(us);
	else
		nanosleep(&t, NULL);
}

static int
complain(bool quiet, int rc, const char *what)
{
	if (!quiet)
		fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	return rc;
}

/* ---- The socket ---- */

int
raw_dial(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int rc, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (snprintf(un.sun_path, sizeof(un.sun_path), "%s", path) < (int)sizeof(un.sun_path) &&
		connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0)
		return fd;
	rc = errno ? -errno : -ENAMETOOLONG;
	close(fd);
	return rc;
}

int
raw_socket_send(int fd, const struct shm_sock_msg *m, int pass)
{
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};

	if (pass >= 0) {
		struct cmsghdr *cm = (struct cmsghdr *)control;

		cm->cmsg_len = CMSG_LEN(sizeof(int));
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(cm), &pass, sizeof(int));
		h.msg_control = control;
		h.msg_controllen = sizeof(control);
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int
raw_socket_receive(int fd, struct shm_sock_msg *m, int fds[3], int flags)
{
	char control[CMSG_SPACE(3 * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &h, flags | MSG_CMSG_CLOEXEC);
	struct cmsghdr *cm;

	for (int i = 0; i < 3; i++)
		fds[i] = -1;
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	cm = CMSG_FIRSTHDR(&h);
	if (cm != NULL)
		memcpy(fds, CMSG_DATA(cm), cm->cmsg_len - CMSG_LEN(0));
	return 0;
}

int
raw_memfd(uint64_t len, unsigned flags)
{
	int rc, fd = memfd_create("raw", MFD_ALLOW_SEALING | MFD_CLOEXEC | flags);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)len) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int
raw_region(struct raw_client *c, int memfd, uint64_t size)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION, .size = size};
	int fds[3], rc = raw_socket_send(c->fd, &m, memfd);

	if (rc == 0)
		rc = raw_socket_receive(c->fd, &m, fds, 0);
	if (rc < 0)
		return rc;
	return m.op == SHM_REGION_IS ? (int)m.region : m.status < 0 ? m.status : -EPROTO;
}

/* ---- Attaching ---- */

/* Waits until saker has laid the home region out. */
static int
home_ready(struct raw_client *c)
{
	struct shm_header *h = (struct shm_header *)c->home;
	uint64_t end = now_ns() + REPLY_NS;

	while (__atomic_load_n(&h->magic, __ATOMIC_ACQUIRE) != SHM_MAGIC) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		raw_nap(100);
	}
	memcpy(&c->h, h, sizeof(c->h));
	shm_prod_init(&c->cmd, c->home, &c->h.cmd);
	shm_take_init(&c->evt, c->home, &c->h.evt);
	for (unsigned i = 0; i < c->h.nstages && i < SHM_MAX_STAGES; i++)
		shm_prod_init(&c->doorbell[i], c->home, &c->h.doorbell[i]);
	return 0;
}

static int
attach_socket(struct raw_client *c, const char *path, bool quiet)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_HELLO, .text = "raw client"};
	int rc, fds[3];

	c->fd = raw_dial(path);
	if (c->fd < 0)
		return complain(quiet, c->fd, path);
	/* A connection that is refused takes no HELLO, and has the refusal to receive. */
	raw_socket_send(c->fd, &m, -1);
	rc = raw_socket_receive(c->fd, &m, fds, 0);
	if (rc < 0)
		return complain(quiet, rc, "HELLO");
	if (m.op != SHM_WELCOME)
		return complain(quiet, m.status < 0 ? m.status : -EPROTO, m.text);
	c->home_fd = fds[0];
	c->wake_fd = fds[1];
	c->bell_fd = fds[2];
	c->size = m.size;
	c->home = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, c->home_fd, 0);
	if (c->home == MAP_FAILED) {
		c->home = NULL;
		return complain(quiet, -errno, "the home region cannot be mapped");
	}
	return home_ready(c);
}

static int
slot_claim(struct raw_client *c, const struct shm_bar *dir, bool quiet)
{
	struct shm_bar_slot *s = c->slot;
	uint64_t end = now_ns() + REPLY_NS;
	uint32_t token = (uint32_t)now_ns() | 1;

	/* The client before must be gone. */
	while (__atomic_load_n(&s->serves, __ATOMIC_ACQUIRE) != 0 && now_ns() < end)
		raw_nap(1000);
	snprintf(s->name, sizeof(s->name), "raw client");
	__atomic_store_n(&s->want, token, __ATOMIC_RELEASE);
	while (__atomic_load_n(&s->serves, __ATOMIC_ACQUIRE) != token) {
		raw_beat(c);
		if (__atomic_load_n(&s->refused, __ATOMIC_ACQUIRE) == token)
			return complain(quiet, s->status, "the slot");
		if (now_ns() > end)
			return complain(quiet, -ETIMEDOUT, "the slot");
		raw_nap(1000);
	}
	c->home = c->bar + dir->slot_at + (uint64_t)(s - dir->slots) * dir->slot_size;
	c->size = dir->slot_size;
	return home_ready(c);
}

static int
attach_bar(struct raw_client *c, const char *where, bool quiet)
{
	char path[108];
	unsigned slot;
	struct stat st;
	struct shm_bar *dir;
	int fd;

	if (sscanf(where, "%107[^:]:%u", path, &slot) != 2 || slot >= SHM_BAR_SLOTS)
		return complain(quiet, -EINVAL, where);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return complain(quiet, -errno, path);
	c->bar_size = (uint64_t)st.st_size;
	c->bar = mmap(NULL, c->bar_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (c->bar == MAP_FAILED) {
		c->bar = NULL;
		return complain(quiet, -errno, path);
	}
	dir = (struct shm_bar *)c->bar;
	if (__atomic_load_n(&dir->magic, __ATOMIC_ACQUIRE) != SHM_BAR_MAGIC || slot >= dir->nslots)
		return complain(quiet, -ENODEV, path);
	c->slot = &dir->slots[slot];
	return slot_claim(c, dir, quiet);
}

int
raw_attach(struct raw_client *c, const char *where, bool quiet)
{
	int rc;

	memset(c, 0, sizeof(*c));
	c->fd = c->home_fd = c->wake_fd = c->bell_fd = -1;
	rc = strncmp(where, "bar:", 4) == 0 ? attach_bar(c, where + 4, quiet)
					    : attach_socket(c, where, quiet);
	if (rc < 0)
		raw_detach(c);
	return rc;
}

void
raw_detach(struct raw_client *c)
{
	const int fds[] = {c->fd, c->home_fd, c->wake_fd, c->bell_fd};

	if (c->slot != NULL)
		__atomic_store_n(&c->slot->want, 0, __ATOMIC_RELEASE);
	if (c->bar != NULL)
		munmap(c->bar, c->bar_size);
	else if (c->home != NULL)
		munmap(c->home, c->size);
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	memset(c, 0, sizeof(*c));
	c->fd = c->home_fd = c->wake_fd = c->bell_fd = -1;
}

void
raw_beat(struct raw_client *c)
{
	if (c->slot != NULL)
		__atomic_fetch_add(&c->slot->beat, 1, __ATOMIC_RELAXED);
}

/* ---- Commands ---- */

void
raw_wake(struct raw_client *c)
{
	static const uint64_t one = 1;
	struct shm_header *h = (struct shm_header *)c->home;

	shm_fence();
	/* A full counter wakes saker as well. */
	if (c->bell_fd >= 0 && __atomic_load_n(&h->engine_sleeps, __ATOMIC_RELAXED) != 0 &&
		write(c->bell_fd, &one, sizeof(one)) < 0)
		return;
}

bool
raw_ring(struct raw_client *c, unsigned stage, uint32_t what)
{
	struct shm_doorbell *d;

	if (shm_prod_room(&c->doorbell[stage]) == 0)
		return false;
	d = shm_prod_entry(&c->doorbell[stage]);
	d->what = what;
	shm_prod_push(&c->doorbell[stage]);
	return true;
}

bool
raw_post(struct raw_client *c, struct shm_msg *m, enum shm_op op)
{
	if (shm_prod_room(&c->cmd) == 0)
		return false;
	m->op = (uint16_t)op;
	m->tag = ++c->tag;
	memcpy((uint8_t *)shm_prod_entry(&c->cmd) + sizeof(m->turn), (uint8_t *)m + sizeof(m->turn),
		sizeof(*m) - sizeof(m->turn));
	shm_prod_push(&c->cmd);
	raw_ring(c, 0, SHM_RING_MAILBOX);
	raw_wake(c);
	return true;
}

bool
raw_take(struct raw_client *c, struct shm_msg *m)
{
	const void *e = shm_take_peek(&c->evt);

	if (e == NULL)
		return false;
	memcpy(m, e, sizeof(*m));
	shm_take_pop(&c->evt);
	shm_take_publish(&c->evt);
	return true;
}

bool
raw_event(struct raw_client *c, struct shm_msg *m)
{
	if (c->event_first == c->event_end)
		return raw_take(c, m);
	*m = c->events[c->event_first++ % RAW_EVENTS];
	return true;
}

/* Returns whether saker still serves the client. */
static bool
is_alive(const struct raw_client *c)
{
	const struct shm_header *h = (const struct shm_header *)c->home;

	return __atomic_load_n(&h->engine_alive, __ATOMIC_ACQUIRE) != 0;
}

int
raw_try(struct raw_client *c, struct shm_msg *m, enum shm_op op)
{
	uint64_t tag, end = now_ns() + REPLY_NS;

	while (!raw_post(c, m, op)) {
		if (now_ns() > end || !is_alive(c))
			return -EPIPE;
		raw_nap(50);
	}
	tag = c->tag;
	for (unsigned turn = 0;; turn++) {
		if (raw_take(c, m)) {
			if (m->tag == tag)
				return m->status;
			if (m->tag == 0 && c->event_end - c->event_first < RAW_EVENTS)
				c->events[c->event_end++ % RAW_EVENTS] = *m;
			continue;
		}
		raw_beat(c);
		if (turn < 200)
			continue;
		if (now_ns() > end || !is_alive(c)) {
			snprintf(m->body.text, sizeof(m->body.text), "no reply to command %d", op);
			return -EPIPE;
		}
		raw_nap(20);
	}
}

int
raw_command(struct raw_client *c, struct shm_msg *m, enum shm_op op)
{
	int rc = raw_try(c, m, op);

	if (rc < 0)
		fprintf(stderr, "command %d: %.*s (%d)\n", op, (int)sizeof(m->body.text),
			m->body.text, rc);
	return rc;
}

/* ---- Objects ---- */

int
raw_pd(struct raw_client *c, uint32_t *pd)
{
	struct shm_msg m = {0};
	int rc = raw_command(c, &m, SHM_PD_CREATE);

	*pd = m.body.handle;
	return rc;
}

int
raw_cq(struct raw_client *c, uint32_t depth, struct raw_cq *cq)
{
	struct shm_msg m = {.body.cq.depth = depth};
	int rc = raw_command(c, &m, SHM_CQ_CREATE);

	if (rc < 0)
		return rc;
	cq->i = m.body.cq;
	cq->shared = (struct shm_cq *)(c->home + cq->i.at);
	cq->nsubs = 0;
	cq->max_subs = c->h.nstages;
	cq->home = c->home;
	return 0;
}

int
raw_qp(struct raw_client *c, uint32_t pd, const struct raw_cq *cq, uint32_t depth,
	uint8_t transport, struct raw_qp *qp)
{
	struct shm_msg m = {.body.qp = {.pd = pd,
				    .send_cq = cq->i.cq,
				    .recv_cq = cq->i.cq,
				    .srq = SHM_NONE,
				    .sq_depth = depth,
				    .rq_depth = depth,
				    .max_send_sge = 1,
				    .max_recv_sge = 1,
				    .transport = transport,
				    .xrcd = SHM_NONE}};
	int rc = raw_command(c, &m, SHM_QP_CREATE);

	if (rc < 0)
		return rc;
	qp->i = m.body.qp;
	qp->shared = (struct shm_qp *)(c->home + qp->i.at);
	shm_prod_start(&qp->sq, c->home, &qp->i.sq);
	shm_prod_start(&qp->rq, c->home, &qp->i.rq);
	return 0;
}

int
raw_destroy(struct raw_client *c, enum shm_op op, uint32_t handle)
{
	struct shm_msg m = {.body.handle = handle};

	return raw_try(c, &m, op);
}

/* Brings a memfd, or takes a part of the home region's memory. Fills in the extent. */
static int
memory_bring(struct raw_client *c, unsigned memfd_flags, struct raw_mem *m, struct shm_extent *e)
{
	int n;

	if (c->bar != NULL) {
		if (m->len > c->h.mem_len - c->mem_used)
			return -ENOSPC;
		*e = (struct shm_extent){
			.region = SHM_HOME, .offset = c->h.mem + c->mem_used, .len = m->len};
		m->at = c->home + e->offset;
		c->mem_used += m->len;
		return 0;
	}
	m->fd = raw_memfd(m->len, memfd_flags);
	if (m->fd < 0)
		return m->fd;
	/* The pages are there before the engine needs them, as those of a program are. */
	m->at = mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, m->fd, 0);
	if (m->at == MAP_FAILED) {
		m->at = NULL;
		return -errno;
	}
	n = raw_region(c, m->fd, m->len);
	*e = (struct shm_extent){.region = (uint32_t)n, .len = m->len};
	return n < 0 ? n : 0;
}

int
raw_memory(struct raw_client *c, uint32_t pd, uint64_t len, unsigned memfd_flags, struct raw_mem *m)
{
	struct shm_msg msg = {
		.body.mr = {.pd = pd,
			.access = RD_ACC_LOCAL_WRITE | RD_ACC_REMOTE_READ | RD_ACC_REMOTE_WRITE,
			.base = RAW_BASE,
			.len = len,
			.nextents = 1}};
	int rc;

	*m = (struct raw_mem){.base = RAW_BASE, .len = len, .fd = -1};
	rc = memory_bring(c, memfd_flags, m, &msg.body.mr.extents[0]);
	if (rc < 0)
		complain(false, rc, "memory for the client");
	else
		rc = raw_command(c, &msg, SHM_MR_CREATE);
	if (rc < 0) {
		raw_memory_free(m);
		return rc;
	}
	m->stag = msg.body.mr.stag;
	m->mr = msg.body.mr.mr;
	return 0;
}

void
raw_memory_free(struct raw_mem *m)
{
	bool owned = m->len > 0 && m->fd >= 0;

	if (owned && m->at != NULL)
		munmap(m->at, m->len);
	if (owned)
		close(m->fd);
	*m = (struct raw_mem){.fd = -1};
}

/* ---- Connections ---- */

int
raw_listen(struct raw_client *c, uint16_t port)
{
	struct shm_msg m = {.body.cm = {.lport = port, .crc = 2, .markers = 2, .backlog = 64}};

	return raw_command(c, &m, SHM_LISTEN);
}

static int
join_event(struct raw_link *l, struct shm_msg *m, unsigned *established)
{
	struct shm_msg a = {.body.cm = {.request = m->body.cm.request,
				    .qp = l->to->i.qp,
				    .crc = 2,
				    .markers = 2,
				    .ird = 4,
				    .ord = 4}};

	switch (m->op) {
	case SHM_EV_CONNECT_REQUEST:
		return raw_post(l->server, &a, SHM_ACCEPT) ? 0 : -ENOBUFS;
	case SHM_EV_ESTABLISHED:
		++*established;
		return 0;
	case SHM_EV_REJECTED:
		l->why = "rejected";
		return -ECONNREFUSED;
	case SHM_EV_UNREACHABLE:
	case SHM_EV_DISCONNECTED:
		l->why = strerror(-m->status);
		return m->status < 0 ? m->status : -ECONNRESET;
	default:
		if (m->status >= 0)
			return 0;
		l->why = m->op == SHM_CONNECT ? "the command CONNECT failed"
					      : "the command ACCEPT failed";
		return m->status;
	}
}

int
raw_join(struct raw_link *l, uint64_t patience)
{
	struct shm_msg m = {.body.cm = {.qp = l->from->i.qp,
				    .rport = l->port,
				    .crc = 2,
				    .markers = 2,
				    .ird = 4,
				    .ord = 4}};
	uint64_t end = now_ns() + patience;
	unsigned established = 0;
	int rc = sk_addr_parse(l->addr, &m.body.cm.remote);

	l->why = "the address is not valid";
	if (rc == 0)
		rc = raw_post(l->client, &m, SHM_CONNECT) ? 0 : -ENOBUFS;
	while (rc == 0 && established < 2) {
		if (raw_event(l->client, &m) ||
			(l->server != l->client && raw_event(l->server, &m))) {
			rc = join_event(l, &m, &established);
		} else if (now_ns() > end) {
			l->why = "timed out";
			rc = -ETIMEDOUT;
		} else {
			raw_beat(l->client);
			raw_beat(l->server);
			raw_nap(20);
		}
	}
	return rc;
}

/* ---- Requests ---- */

bool
raw_request(struct raw_client *c, struct raw_qp *qp, enum rd_opcode op, uint8_t flags,
	const struct rd_sge *sge, uint64_t remote, uint32_t rkey)
{
	struct shm_sqe *e;

	if (shm_prod_room(&qp->sq) == 0)
		return false;
	e = shm_prod_entry(&qp->sq);
	e->wr_id = qp->sq.next;
	e->remote_addr = remote;
	e->rkey = rkey;
	e->imm = 0;
	if (sge != NULL)
		e->sge[0] = *sge;
	shm_sqe_push(&qp->sq, e, 1, (uint8_t)op, flags, sge != NULL ? sizeof(*sge) : 0);
	if (shm_pend(&qp->shared->pending))
		raw_ring(c, qp->i.stage, qp->i.qp);
	raw_wake(c);
	return true;
}

bool
raw_recv(struct raw_qp *qp, const struct rd_sge *sge)
{
	struct shm_rqe *e;

	if (shm_prod_room(&qp->rq) == 0)
		return false;
	e = shm_prod_entry(&qp->rq);
	e->nsge = 1;
	e->wr_id = qp->rq.next;
	e->sge[0] = *sge;
	shm_prod_push(&qp->rq);
	return true;
}

/* Takes over the sub-rings that saker has made. */
static void
cq_grow(struct raw_cq *cq)
{
	uint32_t to = __atomic_load_n(&cq->shared->nsubs, __ATOMIC_ACQUIRE);

	for (; cq->nsubs < to && cq->nsubs < cq->max_subs; cq->nsubs++) {
		struct shm_ring_at at =
			shm_cq_ring(cq->shared->sub[cq->nsubs], shm_log2(cq->i.depth));

		shm_take_init(&cq->sub[cq->nsubs], cq->home, &at);
	}
}

bool
raw_poll(struct raw_cq *cq, struct shm_cqe *out)
{
	cq_grow(cq);
	for (unsigned i = 0; i < cq->nsubs; i++) {
		const struct shm_cqe *e = shm_take_peek(&cq->sub[i]);

		if (e == NULL)
			continue;
		*out = *e;
		shm_take_pop(&cq->sub[i]);
		shm_take_publish(&cq->sub[i]);
		return true;
	}
	return false;
}
