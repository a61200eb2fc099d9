/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket's thread. It attaches client processes, maps the memory that they pass, and detects
 * that they have exited. Mapping and unmapping take time, so the control stage, which must not
 * block, passes the memory to unmap to this thread.
 *
 * Each client has one end of a socket pair, into which it writes to wake the engine; this thread
 * watches the other end. No client has a descriptor that this thread watches, since the epoll set
 * would keep such a descriptor as long as the client does. An epoll entry names its connection by a
 * number and a generation, so an event that comes late never reaches another connection.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../../base/log.h"
#include "client.h"
#include "region_priv.h"
#include "../../common/sigbus.h"
#include "socket.h"

#define SOCK_EVENTS  16
#define SOCK_SPARE   64                  /* connections without a HELLO, besides those of clients */
#define SOCK_USER    16                  /* connections of one user without a HELLO */
#define SOCK_DRAIN   16                  /* wake-ups of one client that an event takes */
#define SOCK_FULL_NS (10 * 1000 * 1000l) /* pause when the process has no free descriptor */

enum source_kind { SOURCE_LISTEN, SOURCE_WAKE, SOURCE_CLIENT, SOURCE_DOORBELL };

/* The data of an epoll entry: the kind, the number of the connection, and its generation. */
#define SOURCE(kind, number, generation)                                                           \
	((uint64_t)(kind) | (uint64_t)(number) << 8 | (uint64_t)(generation) << 32)
#define SOURCE_KIND(data)       ((enum source_kind)((data)&0xff))
#define SOURCE_NUMBER(data)     ((uint32_t)(data) >> 8)
#define SOURCE_GENERATION(data) ((uint32_t)((data) >> 32))

struct sock_conn {
	TAILQ_ENTRY(sock_conn) next;
	bool used;
	uint32_t number, generation;
	int fd;            /* -1: closed, and the client's objects are being destroyed */
	int wake;          /* socket that wakes the client, until its ctl_client has it; or -1 */
	int doorbell;      /* the socket into whose peer the client writes; -1 before HELLO */
	uint64_t deadline; /* ns: for HELLO */
	struct ctl_client *cl;
	struct ucred cred;
	bool detached;
};

struct eng_socket {
	struct eng_control *c;
	pthread_t thread;
	int listen_fd, wake_fd, epoll_fd;
	bool stop;              /* atomic */
	struct sock_conn *conn; /* [limits.clients + SOCK_SPARE] */
	uint32_t nconns;
	TAILQ_HEAD(, sock_conn) conns; /* the connections that are in use */
	char path[108];
};

static uint64_t
socket_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static int
socket_watch(struct eng_socket *s, int fd, uint64_t source)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = source};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* Closes a descriptor that the thread watches. */
static void
socket_unwatch(struct eng_socket *s, int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, *fd, NULL);
	close(*fd);
	*fd = -1;
}

/* ---- Connections ---- */

/* Returns the connection that an epoll entry names, or NULL when it is not there any more. */
static struct sock_conn *
conn_of(struct eng_socket *s, uint64_t source)
{
	uint32_t n = SOURCE_NUMBER(source);
	struct sock_conn *k = n < s->nconns ? &s->conn[n] : NULL;

	return k != NULL && k->used && k->generation == SOURCE_GENERATION(source) ? k : NULL;
}

/* Returns a connection for a process of that user, or NULL when there are too many. */
static struct sock_conn *
conn_new(struct eng_socket *s, uid_t uid)
{
	struct sock_conn *k, *found = NULL;
	unsigned same = 0, fresh = 0;

	TAILQ_FOREACH (k, &s->conns, next) {
		fresh += k->cl == NULL;
		same += k->cl == NULL && k->cred.uid == uid;
	}
	if (same >= SOCK_USER || fresh >= SOCK_SPARE)
		return NULL;
	for (uint32_t i = 0; i < s->nconns && found == NULL; i++)
		if (!s->conn[i].used)
			found = &s->conn[i];
	if (found == NULL)
		return NULL;
	*found = (struct sock_conn){.used = true,
		.number = (uint32_t)(found - s->conn),
		.generation = found->generation + 1,
		.fd = -1,
		.wake = -1,
		.doorbell = -1,
		.deadline = socket_clock_ns() + SOCK_HELLO_NS};
	TAILQ_INSERT_TAIL(&s->conns, found, next);
	return found;
}

static void
conn_free(struct eng_socket *s, struct sock_conn *k)
{
	TAILQ_REMOVE(&s->conns, k, next);
	socket_unwatch(s, &k->fd);
	socket_unwatch(s, &k->doorbell);
	k->used = false;
}

/* Closes a connection. Removes its client, if there is one; the connection is then freed after the
 * client. */
static void
conn_close(struct eng_socket *s, struct sock_conn *k)
{
	if (k->cl == NULL) {
		conn_free(s, k);
		return;
	}
	socket_unwatch(s, &k->fd);
	if (!k->detached)
		k->detached = ctl_client_detach(s->c, (int)k->cl->id) == 0;
}

static void
socket_refuse(struct eng_socket *s, struct sock_conn *k, int status, const char *why)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REFUSED, .status = status};

	snprintf(m.text, sizeof(m.text), "%s", why);
	ctl_socket_send(k->fd, &m, NULL, 0);
}

/* ---- Messages of clients ---- */

/* Creates a socket pair that carries wake-ups. Its ends have separate file descriptions, so a
 * client cannot make the engine's end blocking. Returns 0 or -errno. */
static int
make_wake(int fds[2])
{
	return socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0 ? -errno
											  : 0;
}

static int
socket_attach(struct eng_socket *s, struct sock_conn *k, const char *name, const int theirs[2])
{
	const struct eng_config *cfg = s->c->cfg;
	struct shm_sock_msg m = {.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_WELCOME};
	struct client_home home = {0};
	struct eng_region r;
	int rc, fds[3];

	rc = ctl_region_make_home("saker-home", cfg->limits.client_home_bytes, cfg->huge_pages, &r);
	if (rc < 0)
		return rc;
	home = (struct client_home){.base = r.base,
		.size = r.size,
		.fd = r.fd,
		.page = r.page,
		.wake_fd = k->wake,
		.tenant = k->cred.uid,
		.conn = k->number};
	rc = ctl_client_create(s->c, name, &home, &k->cl);
	if (rc < 0) {
		munmap(r.base, r.size);
		close(r.fd);
		return rc;
	}
	k->wake = -1; /* k->cl closes it from here on */
	m.size = r.size;
	fds[0] = r.fd;
	fds[1] = theirs[0];
	fds[2] = theirs[1];
	return ctl_socket_send(k->fd, &m, fds, 3);
}

/* Creates the two socket pairs of a connection, and attaches its client. Returns 0 or -errno. */
static int
socket_welcome(struct eng_socket *s, struct sock_conn *k, const char *name)
{
	int wake[2] = {-1, -1}, doorbell[2] = {-1, -1}, theirs[2], rc = make_wake(wake);

	if (rc == 0)
		rc = make_wake(doorbell);
	k->wake = wake[0];
	k->doorbell = doorbell[0];
	theirs[0] = wake[1];
	theirs[1] = doorbell[1];
	if (rc == 0)
		rc = socket_watch(
			s, k->doorbell, SOURCE(SOURCE_DOORBELL, k->number, k->generation));
	if (rc == 0)
		rc = socket_attach(s, k, name, theirs);
	for (unsigned i = 0; i < SK_ARRAY_LEN(theirs); i++)
		if (theirs[i] >= 0)
			close(theirs[i]);
	if (k->wake >= 0)
		close(k->wake);
	k->wake = -1;
	return rc;
}

static const char *
hello_refusal(int rc)
{
	switch (rc) {
	case -EUSERS:
		return "the limit of clients is reached";
	case -EDQUOT:
		return "the limit of clients of one user is reached";
	default:
		return "there is no memory for another client";
	}
}

static void
socket_hello(struct eng_socket *s, struct sock_conn *k, const struct shm_sock_msg *m)
{
	int rc = socket_welcome(s, k, m->text);

	if (rc == 0) {
		sk_log(SK_LOG_INFO, "client %u (%s): process %d of user %u", k->cl->eng.index,
			k->cl->eng.name, k->cred.pid, k->cred.uid);
		return;
	}
	socket_refuse(s, k, rc, hello_refusal(rc));
	conn_close(s, k);
}

static void
region(struct eng_socket *s, struct sock_conn *k, const struct shm_sock_msg *m, int fd)
{
	struct shm_sock_msg reply = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REGION_IS, .size = m->size};
	struct ctl_inbox *in = calloc(1, sizeof(*in));
	char why[sizeof(reply.text)] = "there is no memory";
	struct eng_region r;
	int n = in != NULL ? ctl_region_map_fd(fd, m->size, (m->flags & SHM_REGION_SPARSE) != 0, &r,
				     why, sizeof(why))
			   : -ENOMEM;

	if (n == 0) {
		n = ctl_region_take(s->c, k->cl, &r, why, sizeof(why));
		if (n < 0)
			munmap(r.base, r.size);
	}
	if (n < 0) {
		free(in);
		socket_refuse(s, k, n, why);
		return;
	}
	in->kind = CTL_IN_REGION;
	in->region.id = k->cl->id;
	in->region.number = (uint32_t)n;
	in->region.map = r;
	ctl_inbox_push(s->c, in);
	reply.region = (uint32_t)n;
	if (ctl_socket_send(k->fd, &reply, NULL, 0) < 0)
		conn_close(s, k);
}

static void
conn_input(struct eng_socket *s, struct sock_conn *k)
{
	struct shm_sock_msg m, raw;
	const char *why;
	unsigned nfds;
	int fd = -1, rc, n = ctl_socket_recv(k->fd, &raw, sizeof(raw), &fd, 1, &nfds);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n == 0 || n == -ECONNRESET) {
		conn_close(s, k);
		return;
	}
	rc = ctl_socket_parse(&raw, n < 0 ? 0 : (size_t)n, nfds, k->cl != NULL, &m, &why);
	if (rc < 0) {
		socket_refuse(s, k, rc, why);
		conn_close(s, k);
	} else if (m.op == SHM_HELLO) {
		socket_hello(s, k, &m);
	} else {
		region(s, k, &m, fd);
	}
	if (nfds)
		close(fd);
}

/* ---- The thread ---- */

static void
accept_one(struct eng_socket *s)
{
	static const struct timespec nap = {.tv_nsec = SOCK_FULL_NS};
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);
	struct sock_conn *k;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			nanosleep(&nap, NULL);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	k = conn_new(s, cred.uid);
	if (k == NULL) {
		close(fd);
		return;
	}
	k->fd = fd;
	k->cred = cred;
	if (socket_watch(s, fd, SOURCE(SOURCE_CLIENT, k->number, k->generation)) < 0)
		conn_free(s, k);
}

/* Frees the clients of which only the memory is left, and their connections. */
static void
socket_bury(struct eng_socket *s)
{
	struct ctl_client *cl = __atomic_exchange_n(&s->c->gone, NULL, __ATOMIC_ACQUIRE), *next;

	for (; cl != NULL; cl = next) {
		struct sock_conn *k = &s->conn[cl->conn];

		next = cl->next_gone;
		ctl_client_free(s->c, cl);
		conn_free(s, k);
	}
}

static void
unmap_dropped(struct eng_socket *s)
{
	struct sock_conn *k;

	TAILQ_FOREACH (k, &s->conns, next) {
		uint64_t bits = k->cl != NULL
					? __atomic_exchange_n(&k->cl->dropped, 0, __ATOMIC_ACQUIRE)
					: 0;

		for (; bits; bits &= bits - 1)
			ctl_region_unmap(k->cl, (uint32_t)__builtin_ctzll(bits));
	}
}

static void
woken(struct eng_socket *s)
{
	uint64_t v;

	if (read(s->wake_fd, &v, sizeof(v)) < 0)
		return;
	unmap_dropped(s);
	socket_bury(s);
}

static void
wake_engine(struct eng_socket *s)
{
	const struct eng_control_args *a = &s->c->a;

	for (unsigned i = 0; a->wake != NULL && i < s->c->cfg->nloops; i++)
		a->wake(a->wake_arg, i);
}

static void
socket_expire(struct eng_socket *s, uint64_t now)
{
	struct sock_conn *k, *next;

	for (k = TAILQ_FIRST(&s->conns); k != NULL; k = next) {
		next = TAILQ_NEXT(k, next);
		if (k->cl == NULL && now >= k->deadline)
			conn_close(s, k);
		else if (k->cl != NULL && k->fd < 0 && !k->detached)
			conn_close(s, k); /* eng_control_detach() had no memory before */
	}
}

/* Takes the wake-ups that a client has written. A client that writes more than it may wake the
 * engine with keeps the rest for the next event. */
static void
doorbell_input(struct eng_socket *s, struct sock_conn *k)
{
	uint64_t v;

	for (unsigned i = 0; i < SOCK_DRAIN; i++)
		if (recv(k->doorbell, &v, sizeof(v), MSG_DONTWAIT) < 0)
			break;
	wake_engine(s);
}

/* Handles one event of a batch. An earlier event of the batch may have closed the connection. */
static void
one_event(struct eng_socket *s, uint64_t source, bool *wake)
{
	struct sock_conn *k;

	switch (SOURCE_KIND(source)) {
	case SOURCE_LISTEN:
		accept_one(s);
		return;
	case SOURCE_WAKE:
		*wake = true;
		return;
	case SOURCE_CLIENT:
		k = conn_of(s, source);
		if (k != NULL && k->fd >= 0)
			conn_input(s, k);
		return;
	case SOURCE_DOORBELL:
		k = conn_of(s, source);
		if (k != NULL)
			doorbell_input(s, k);
		return;
	}
}

static void *
socket_run(void *arg)
{
	struct eng_socket *s = arg;
	struct epoll_event ev[SOCK_EVENTS];

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		int n = epoll_wait(s->epoll_fd, ev, SOCK_EVENTS, 500);
		bool wake = false;

		for (int i = 0; i < n; i++)
			one_event(s, ev[i].data.u64, &wake);
		if (wake)
			woken(s);
		socket_expire(s, socket_clock_ns());
	}
	return NULL;
}

/* ---- Start and stop ---- */

static void
socket_free(struct eng_socket *s)
{
	struct sock_conn *k;

	while ((k = TAILQ_FIRST(&s->conns)) != NULL) {
		if (k->cl != NULL && !k->detached)
			ctl_client_detach(s->c, (int)k->cl->id);
		conn_free(s, k);
	}
	if (s->listen_fd >= 0) {
		unlink(s->path);
		close(s->listen_fd);
	}
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s->conn);
	free(s);
}

/* Reports once for the process that pages of clients' memory are allocated by the loops. */
static void
watch_report(void)
{
	static uint32_t reported;
	int rc = eng_watch_permitted();

	if (rc < 0 && !__atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED))
		sk_log(SK_LOG_WARNING,
			"userfaultfd is not available (%s): a loop that touches a missing page of "
			"a client's memory allocates it, while its other clients wait",
			strerror(-rc));
}

static int
open_all(struct eng_socket *s, char *err, size_t errlen)
{
	int rc = eng_sigbus_install();

	snprintf(err, errlen, "no descriptors for the socket's thread");
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (rc < 0 || s->wake_fd < 0 || s->epoll_fd < 0)
		return -EMFILE;
	s->listen_fd = ctl_socket_listen(
		s->path, s->c->cfg->socket_group, s->c->cfg->socket_mode, err, errlen);
	if (s->listen_fd < 0)
		return s->listen_fd;
	watch_report();
	rc = socket_watch(s, s->listen_fd, SOURCE(SOURCE_LISTEN, 0, 0));
	return rc < 0 ? rc : socket_watch(s, s->wake_fd, SOURCE(SOURCE_WAKE, 0, 0));
}

int
ctl_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen)
{
	struct eng_socket *s = calloc(1, sizeof(*s));
	struct shm_header h;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->nconns = c->cfg->limits.clients + SOCK_SPARE;
	s->conn = calloc(s->nconns, sizeof(*s->conn));
	if (s->conn == NULL) {
		free(s);
		return -ENOMEM;
	}
	s->c = c;
	s->listen_fd = s->wake_fd = s->epoll_fd = -1;
	TAILQ_INIT(&s->conns);
	if (ctl_client_layout(c->cfg, c->cfg->limits.client_home_bytes, 0, &h) < 0) {
		snprintf(err, errlen, "a home region of %llu bytes is too small for the limits",
			(unsigned long long)c->cfg->limits.client_home_bytes);
		rc = -EINVAL;
	} else if (snprintf(s->path, sizeof(s->path), "%s", path) >= (int)sizeof(s->path)) {
		snprintf(err, errlen, "the socket path %s is too long", path);
		rc = -ENAMETOOLONG;
	} else {
		rc = open_all(s, err, errlen);
	}
	if (rc == 0) {
		__atomic_store_n(&c->sock_fd, s->wake_fd, __ATOMIC_RELEASE);
		rc = -pthread_create(&s->thread, NULL, socket_run, s);
	}
	if (rc < 0) {
		__atomic_store_n(&c->sock_fd, -1, __ATOMIC_RELEASE);
		socket_free(s);
		return rc;
	}
	c->socket = s;
	return 0;
}

void
ctl_socket_stop(struct eng_control *c)
{
	struct eng_socket *s = c->socket;

	if (s == NULL)
		return;
	c->socket = NULL;
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	ctl_wake_socket(c);
	pthread_join(s->thread, NULL);
	__atomic_store_n(&c->sock_fd, -1, __ATOMIC_RELEASE);
	socket_free(s);
}
