/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket's thread. It attaches client processes, maps the memory that they pass, and detects
 * that they have exited. Mapping and unmapping take time, so the control stage, which must not
 * block, passes the memory to unmap to this thread.
 *
 * The thread never waits for a descriptor that a client has sent (base/descriptors.h). Those that
 * it receives and does not map are closed by a thread of the user.
 *
 * No client has a descriptor that this thread watches, since the epoll set would keep such a
 * descriptor as long as the client does. An epoll entry names its connection by a number and a
 * generation, so an event that comes late never reaches another connection.
 *
 * The eventfd that a client writes to wake the engine is watched by the loops themselves: a thread
 * between them would add its own wake-up to the latency of each request that finds a loop asleep.
 * The entries of that eventfd name no client, and socket_silence() removes them before the eventfd
 * is closed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../../base/clock.h"
#include "../../../base/listen.h"
#include "../../../base/log.h"
#include "../../../base/sock.h"
#include "client.h"
#include "../../common/sigbus.h"
#include "region_priv.h"
#include "socket_priv.h"

#define SOCK_EVENTS   16
#define SOCK_UNREAD   4 /* messages of a connection that is refused */
#define SOCK_PAUSE_MS 5 /* time after which waiting connections are examined again */
#define SOCK_FULL_NS  (10 * 1000 * 1000l) /* pause when the process has no free descriptor */

/* Watches a descriptor; `source` is a SOURCE(). Returns 0 or -errno. */
static int
ctl_sock_watch(struct eng_socket *s, int fd, uint64_t source)
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
	sk_hurry_close(&s->hurry, *fd);
	*fd = -1;
}

/* Stops the doorbell of a connection from waking the loops, and closes it. */
static void
socket_silence(struct eng_socket *s, struct sock_conn *k)
{
	const struct eng_control_args *a = &s->c->a;

	if (k->doorbell < 0)
		return;
	if (a->doorbell != NULL)
		a->doorbell(a->wake_arg, k->doorbell, false);
	close(k->doorbell);
	k->doorbell = -1;
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

/* Returns a new connection. There are as many as ctl_users_join() admits. */
static struct sock_conn *
conn_new(struct eng_socket *s, struct sock_user *user, const struct ucred *cred, int fd)
{
	struct sock_conn *k = s->conn;

	while (k->used)
		k++;
	*k = (struct sock_conn){.used = true,
		.number = (uint32_t)(k - s->conn),
		.generation = k->generation + 1,
		.fd = fd,
		.wake = -1,
		.doorbell = -1,
		.user = user,
		.cred = *cred,
		.deadline = sk_clock_ns(CLOCK_MONOTONIC) + SOCK_HELLO_NS};
	TAILQ_INSERT_TAIL(&s->conns, k, next);
	return k;
}

/* Returns what the next message of the connection asks for. */
static enum sock_ask
conn_ask(const struct sock_conn *k)
{
	return k->cl != NULL ? SOCK_ASK_REGION : SOCK_ASK_HELLO;
}

/* Sets whether the thread receives messages of a connection. */
static void
conn_pause(struct eng_socket *s, struct sock_conn *k, bool pause)
{
	struct epoll_event ev = {.events = pause ? 0 : EPOLLIN | EPOLLRDHUP,
		.data.u64 = SOURCE(SOURCE_CLIENT, k->number, k->generation)};

	if (k->paused == pause)
		return;
	k->paused = pause;
	s->npaused += pause ? 1 : (uint32_t)-1;
	k->user->queued[conn_ask(k)] += pause ? 1 : (uint32_t)-1;
	if (k->fd >= 0)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, k->fd, &ev);
}

/* Continues to receive messages of a paused connection when its turn has come. The connections of a
 * user take turns: this one goes behind the others. */
static void
conn_continue(struct eng_socket *s, struct sock_conn *k, uint64_t now)
{
	if (!k->paused || !ctl_users_turn(k->user, conn_ask(k), now))
		return;
	conn_pause(s, k, false);
	k->turn = true;
	TAILQ_REMOVE(&s->conns, k, next);
	TAILQ_INSERT_TAIL(&s->conns, k, next);
}

static void
conn_free(struct eng_socket *s, struct sock_conn *k)
{
	conn_pause(s, k, false);
	TAILQ_REMOVE(&s->conns, k, next);
	ctl_users_leave(&s->users, k->user, k->cl != NULL);
	socket_unwatch(s, &k->fd);
	socket_silence(s, k);
	k->used = false;
}

void
ctl_sock_close(struct eng_socket *s, struct sock_conn *k)
{
	if (k->cl == NULL) {
		conn_free(s, k);
		return;
	}
	conn_pause(s, k, false);
	socket_unwatch(s, &k->fd);
	if (!k->detached)
		k->detached = ctl_client_detach(s->c, (int)k->cl->id) == 0;
}

void
ctl_sock_refuse(int fd, int status, const char *why)
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_REFUSED, .status = status};

	snprintf(m.text, sizeof(m.text), "%s", why);
	sk_sock_send(fd, &m, sizeof(m), NULL, 0, MSG_DONTWAIT);
}

/* Refuses a connection whose HELLO is not read. A socket that is closed with unread messages resets
 * its peer, which would not receive the sentence; and after shutdown() none arrives. */
static void
socket_turn_away(struct eng_socket *s, int fd, const char *why)
{
	char byte;

	sk_count(s->c->counters, ENG_SOCKET_FULL);
	shutdown(fd, SHUT_RD);
	sk_hurry_begin(&s->hurry);
	for (unsigned i = 0; i < SOCK_UNREAD && recv(fd, &byte, 1, MSG_DONTWAIT) > 0; i++)
		;
	sk_hurry_end(&s->hurry);
	ctl_sock_refuse(fd, -EUSERS, why);
}

/* ---- Messages of clients ---- */

/* Returns whether the connection has a message whose turn has come. Another message waits. Ends a
 * connection that its client has closed: that takes no turn. */
static bool
conn_may_send(struct eng_socket *s, struct sock_conn *k)
{
	char byte;
	ssize_t n = 0; /* the event of a paused connection is that its client has closed it */

	if (!k->paused)
		n = recv(k->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		ctl_sock_close(s, k);
		return false;
	}
	if (k->turn || ctl_users_take(k->user, conn_ask(k), sk_clock_ns(CLOCK_MONOTONIC))) {
		k->turn = false;
		return true;
	}
	sk_count(s->c->counters, ENG_SOCKET_RATE);
	conn_pause(s, k, true);
	return false;
}

static void
conn_input(struct eng_socket *s, struct sock_conn *k)
{
	struct shm_sock_msg m, raw;
	const char *why;
	struct sock_user *user = k->user;
	bool mapped = false;
	unsigned nfds;
	int fd = -1, rc;
	ssize_t n;

	if (!conn_may_send(s, k))
		return;
	if (sk_closer_is_full(user->closer)) {
		socket_turn_away(s, k->fd, "the user has sent descriptors that are still closing");
		ctl_sock_close(s, k);
		return;
	}
	sk_hurry_begin(&s->hurry);
	n = sk_sock_take(k->fd, &raw, sizeof(raw), &fd, 1, &nfds, MSG_DONTWAIT);
	sk_hurry_end(&s->hurry);
	rc = ctl_socket_parse(&raw, n < 0 ? 0 : (size_t)n, nfds, k->cl != NULL, &m, &why);
	if (rc < 0) {
		ctl_sock_refuse(k->fd, rc, why);
		ctl_sock_close(s, k);
	} else if (m.op == SHM_HELLO) {
		ctl_sock_hello(s, k, &m);
	} else {
		mapped = ctl_sock_region(s, k, &m, fd);
	}
	if (mapped || (nfds && ctl_region_closes_at_once(fd)))
		close(fd); /* the mapping holds the file */
	else if (nfds)
		sk_closer_put(&user->closer, fd);
}

/* ---- The thread ---- */

/* Ends a connection of a user that has not attached, so that another user gets its place: the
 * newest one, if possible without a HELLO whose turn has come. */
static void
conn_displace(struct eng_socket *s, const struct sock_user *loser)
{
	struct sock_conn *k, *found = NULL;

	for (k = TAILQ_LAST(&s->conns, sock_conns); k != NULL;
		k = TAILQ_PREV(k, sock_conns, next)) {
		if (k->user != loser || k->cl != NULL)
			continue;
		found = k;
		if (!k->turn)
			break;
	}
	socket_turn_away(s, found->fd,
		"another user needs one of the places for connections that have not attached");
	ctl_sock_close(s, found);
}

/* Admits a connection of a user, or refuses it with a sentence. */
static void
conn_admit(struct eng_socket *s, int fd, const struct ucred *cred)
{
	char why[sizeof(((struct shm_sock_msg *)0)->text)];
	struct sock_user *loser, *user = ctl_users_join(&s->users, cred->uid,
					 sk_clock_ns(CLOCK_MONOTONIC), &loser, why, sizeof(why));
	struct sock_conn *k;

	if (user == NULL) {
		socket_turn_away(s, fd, why);
		sk_hurry_close(&s->hurry, fd);
		return;
	}
	if (loser != NULL)
		conn_displace(s, loser);
	k = conn_new(s, user, cred, fd);
	if (ctl_sock_watch(s, fd, SOURCE(SOURCE_CLIENT, k->number, k->generation)) < 0)
		conn_free(s, k);
}

static void
accept_one(struct eng_socket *s)
{
	static const struct timespec nap = {.tv_nsec = SOCK_FULL_NS};
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			nanosleep(&nap, NULL);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	conn_admit(s, fd, &cred);
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
socket_expire(struct eng_socket *s, uint64_t now)
{
	struct sock_conn *k, *next;

	for (k = TAILQ_FIRST(&s->conns); k != NULL; k = next) {
		next = TAILQ_NEXT(k, next);
		conn_continue(s, k, now);
		if (k->cl == NULL && !k->paused && !k->turn && now >= k->deadline)
			ctl_sock_close(s, k); /* no HELLO has come */
		else if (k->cl != NULL && k->fd < 0 && !k->detached)
			ctl_sock_close(s, k); /* eng_control_detach() had no memory before */
	}
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
	}
}

static void *
socket_run(void *arg)
{
	struct eng_socket *s = arg;
	struct epoll_event ev[SOCK_EVENTS];

	sk_hurry_init(&s->hurry);
	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		int n = epoll_wait(
			s->epoll_fd, ev, SOCK_EVENTS, s->npaused > 0 ? SOCK_PAUSE_MS : 500);
		bool wake = false;

		for (int i = 0; i < n; i++)
			one_event(s, ev[i].data.u64, &wake);
		if (wake)
			woken(s);
		socket_expire(s, sk_clock_ns(CLOCK_MONOTONIC));
	}
	sk_hurry_fini(&s->hurry);
	return NULL;
}

/* ---- Start and stop ---- */

static void
socket_free(struct eng_socket *s)
{
	struct sock_conn *k;

	sk_hurry_init(&s->hurry);
	socket_bury(s);
	while ((k = TAILQ_FIRST(&s->conns)) != NULL) {
		if (k->cl != NULL && !k->detached)
			ctl_client_detach(s->c, (int)k->cl->id);
		conn_free(s, k);
	}
	if (s->listen_fd >= 0) {
		unlink(s->path);
		sk_hurry_close(&s->hurry, s->listen_fd);
	}
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	sk_hurry_fini(&s->hurry);
	free(s->conn);
	ctl_users_fini(&s->users);
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
	s->listen_fd = sk_listen(s->path, SOCK_SEQPACKET, s->c->cfg->socket_group,
		s->c->cfg->socket_mode, err, errlen);
	if (s->listen_fd < 0)
		return s->listen_fd;
	watch_report();
	rc = ctl_sock_watch(s, s->listen_fd, SOURCE(SOURCE_LISTEN, 0, 0));
	return rc < 0 ? rc : ctl_sock_watch(s, s->wake_fd, SOURCE(SOURCE_WAKE, 0, 0));
}

int
ctl_socket_start(struct eng_control *c, const char *path, char *err, size_t errlen)
{
	struct eng_socket *s = calloc(1, sizeof(*s));
	struct shm_header h;
	int rc;

	if (s == NULL)
		return -ENOMEM;
	s->nconns = c->cfg->limits.clients + SOCK_WAITING;
	s->conn = calloc(s->nconns, sizeof(*s->conn));
	if (ctl_users_init(&s->users, s->nconns) < 0 || s->conn == NULL) {
		free(s->conn);
		ctl_users_fini(&s->users);
		free(s);
		return -ENOMEM;
	}
	s->c = c;
	s->listen_fd = s->wake_fd = s->epoll_fd = -1;
	TAILQ_INIT(&s->conns);
	if (ctl_client_layout(c->cfg->nstages, &c->cfg->limits, c->cfg->limits.client_home_bytes, 0,
		    &h) < 0) {
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
	pthread_setname_np(s->thread, "saker-socket");
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
