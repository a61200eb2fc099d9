/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching over the Unix socket: HELLO, WELCOME with three descriptors, and later the memory
 * regions that the client passes to the engine. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../base/sock.h"
#include "../client_priv.h"

#define REPLY_MS    10000 /* how long a reply may take */
#define WELCOME_FDS 3

static int
sock_connect(const char *path)
{
	int rc = sk_sock_connect(path, SOCK_SEQPACKET, 0);

	if (rc == -ENAMETOOLONG)
		return cl_fail(rc, "the socket path %s is too long", path);
	return rc >= 0 ? rc : cl_fail(rc, "no saker answers at %s: %s", path, strerror(-rc));
}

/* Sends `m`, with a descriptor unless `fd` is -1. */
static int
sock_send(int sock, const struct shm_sock_msg *m, int fd)
{
	if (sk_sock_send(sock, m, sizeof(*m), &fd, fd >= 0, 0) == 0)
		return 0;
	return cl_fail(-EPIPE, "the saker has gone away");
}

/* Receives one reply, and its descriptors to fds[]. Returns how many, or -errno. */
static int
sock_recv(int sock, struct shm_sock_msg *m, int fds[WELCOME_FDS])
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	unsigned nfds;
	ssize_t got;
	int n;

	do
		n = poll(&p, 1, REPLY_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return cl_fail(-ETIMEDOUT, "the saker does not answer");
	got = sk_sock_recv(sock, m, sizeof(*m), fds, WELCOME_FDS, &nfds, 0);
	if (got <= 0 && got != -EPROTO)
		return cl_fail(-EPIPE, "the saker has gone away");
	if (got > 0 && m->magic == SHM_MAGIC && m->version == SHM_VERSION && m->op != SHM_REFUSED)
		return (int)nfds;
	while (nfds > 0)
		close(fds[--nfds]);
	if (got < 0 || m->magic != SHM_MAGIC || m->version != SHM_VERSION)
		return cl_fail(
			-EPROTO, "the reply is not that of a saker of version %u", SHM_VERSION);
	m->text[sizeof(m->text) - 1] = '\0';
	return cl_fail(cl_reason(m->status), "%s", m->text);
}

static void
sock_msg(struct shm_sock_msg *m, enum shm_sock_op op)
{
	memset(m, 0, sizeof(*m));
	m->magic = SHM_MAGIC;
	m->version = SHM_VERSION;
	m->op = op;
}

static int
attach_hello(struct saker *s, const char *name)
{
	struct shm_sock_msg m;
	int fds[WELCOME_FDS], n;
	void *home;

	sock_msg(&m, SHM_HELLO);
	snprintf(m.text, sizeof(m.text), "%s", name != NULL ? name : "");
	/* An engine without a place refuses the connection before it reads the HELLO, which cannot
	 * be sent then. */
	sock_send(s->sock, &m, -1);
	n = sock_recv(s->sock, &m, fds);
	if (n < 0)
		return n;
	if (m.op != SHM_WELCOME || n != WELCOME_FDS) {
		while (n > 0)
			close(fds[--n]);
		return cl_fail(-EPROTO, "the saker's welcome is invalid");
	}
	s->wait.wake = fds[1];
	s->wake_engine = fds[2];
	home = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	close(fds[0]);
	if (home == MAP_FAILED)
		return cl_fail(-errno, "the home region cannot be mapped: %s", strerror(errno));
	s->home = home;
	s->mapped = m.size;
	return cl_start(s, home, m.size);
}

static int
open_socket(const char *socket, const char *name, struct saker **out)
{
	struct saker *s;
	int rc = sock_connect(socket);

	if (rc < 0)
		return rc;
	s = cl_new();
	if (s == NULL) {
		close(rc);
		return cl_fail(-ENOMEM, "no memory for an attachment");
	}
	s->sock = rc;
	rc = attach_hello(s, name);
	if (rc < 0) {
		cl_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* Returns what follows "ivshmem:" in `where`, or NULL. */
static const char *
machine_of(const char *where)
{
	static const char bar[] = "ivshmem:";

	return strncmp(where, bar, sizeof(bar) - 1) == 0 ? where + sizeof(bar) - 1 : NULL;
}

/* Finds the path of the memory. `machine`: empty, a PCI address, or the path of a memory file. */
static int
bar_path(const char *machine, char path[CL_PATH])
{
	if (machine[0] == '\0')
		return cl_bar_find(NULL, path);
	if (snprintf(path, CL_PATH, machine[0] == '/' ? "%s" : CL_PCI_DEVICES "/%s/resource2",
		    machine) >= CL_PATH)
		return cl_fail(-ENAMETOOLONG, "the path %s is too long", machine);
	return 0;
}

/* Finds an ivshmem device after connect(2) has failed with `rc`: this may be a virtual machine.
 * Returns 0 with the path, or -errno. */
static int
machine_instead(int rc, char path[CL_PATH])
{
	if (rc != -ENOENT && rc != -ECONNREFUSED)
		return rc;
	if (cl_bar_find(NULL, path) == 0)
		return 0;
	return cl_fail(rc, "no saker answers at %s, and this machine has no ivshmem device",
		SAKER_SOCKET_DEFAULT);
}

int
saker_open(const char *socket, const char *name, struct saker **out)
{
	const char *where = socket != NULL ? socket : getenv("SAKER_SOCKET");
	const char *machine = where != NULL ? machine_of(where) : NULL;
	char path[CL_PATH];
	int rc;

	if (machine != NULL) {
		rc = bar_path(machine, path);
		return rc < 0 ? rc : cl_bar_open(path, name, out);
	}
	rc = open_socket(where != NULL ? where : SAKER_SOCKET_DEFAULT, name, out);
	if (rc == 0 || where != NULL)
		return rc;
	rc = machine_instead(rc, path);
	return rc < 0 ? rc : cl_bar_open(path, name, out);
}

int
saker_look(const char *socket)
{
	const char *where = socket != NULL ? socket : getenv("SAKER_SOCKET");
	const char *machine = where != NULL ? machine_of(where) : NULL;
	char path[CL_PATH];
	int rc;

	if (machine != NULL) {
		rc = bar_path(machine, path);
		return rc < 0 || access(path, R_OK | W_OK) == 0
			       ? rc
			       : cl_fail(-errno, "%s: %s", path, strerror(errno));
	}
	rc = sock_connect(where != NULL ? where : SAKER_SOCKET_DEFAULT);
	if (rc >= 0) {
		close(rc);
		return 0;
	}
	return where != NULL ? rc : machine_instead(rc, path);
}

int
cl_sock_region(struct saker *s, int fd, uint64_t size, uint32_t flags)
{
	struct shm_sock_msg m;
	int fds[WELCOME_FDS], n;

	sock_msg(&m, SHM_REGION);
	m.size = size;
	m.flags = flags;
	n = sock_send(s->sock, &m, fd);
	if (n == 0)
		n = sock_recv(s->sock, &m, fds);
	/* A late reply would be taken for the reply to the next message. */
	if (n == -ETIMEDOUT)
		shutdown(s->sock, SHUT_RDWR);
	if (n < 0)
		return n;
	while (n > 0)
		close(fds[--n]);
	if (m.op != SHM_REGION_IS || m.region >= SHM_MAX_REGIONS)
		return cl_fail(-EPROTO, "the saker's reply about a region is invalid");
	return (int)m.region;
}
