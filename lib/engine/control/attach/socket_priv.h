/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of the socket's thread (socket.c), and what their messages cause
 * (socket_serve.c). */
#ifndef SAKER_ENGINE_SOCKET_PRIV_H
#define SAKER_ENGINE_SOCKET_PRIV_H

#include <pthread.h>
#include <sys/socket.h>

#include "../../../base/descriptors.h"
#include "client.h"
#include "socket.h"
#include "socket_users.h"

enum source_kind { SOURCE_LISTEN, SOURCE_WAKE, SOURCE_CLIENT };

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
	int doorbell;      /* the eventfd that the client writes; -1 before HELLO */
	uint64_t deadline; /* ns: for HELLO */
	struct ctl_client *cl;
	struct ucred cred;
	struct sock_user *user;
	bool detached;
	bool paused; /* its message waits, because its user has sent too many */
	bool turn;   /* the turn of its message has come */
};

struct eng_socket {
	struct eng_control *c;
	pthread_t thread;
	int listen_fd, wake_fd, epoll_fd;
	bool stop;              /* atomic */
	struct sock_conn *conn; /* [limits.clients + SOCK_WAITING] */
	uint32_t nconns;
	/* Those in use. A connection whose turn has come goes last. */
	TAILQ_HEAD(sock_conns, sock_conn) conns;
	struct sock_users users;
	uint32_t npaused;
	struct sk_hurry hurry;
	char path[108];
};

/* Closes a connection. Removes its client, if there is one; the connection is then freed after the
 * client. */
void ctl_sock_close(struct eng_socket *s, struct sock_conn *k);
/* Sends REFUSED with a status, -errno, and a sentence. */
void ctl_sock_refuse(int fd, int status, const char *why);

/* Attaches the process that has sent HELLO, or refuses it and closes the connection. */
void ctl_sock_hello(struct eng_socket *s, struct sock_conn *k, const struct shm_sock_msg *m);
/* Maps the memory of a REGION, whose memfd is `fd`. Returns whether that was possible. The caller
 * closes `fd`. */
bool ctl_sock_region(
	struct eng_socket *s, struct sock_conn *k, const struct shm_sock_msg *m, int fd);

#endif
