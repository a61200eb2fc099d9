/* SPDX-License-Identifier: BSD-3-Clause */
/* The bounded server of short connections, which the control socket and the metrics share: one
 * request and one answer for each connection. */
#ifndef SAKER_COMMAND_SERVER_PRIV_H
#define SAKER_COMMAND_SERVER_PRIV_H

#include <sys/un.h>

#include "../base/descriptors.h"
#include "http.h"
#include "server.h"

#define REQUEST_MOST 4096 /* bytes of a request of any protocol, with a 0 */

struct connection {
	int fd; /* -1: free */
	uint64_t deadline;
	char request[REQUEST_MOST];
	size_t got;
	char *answer; /* NULL: the request is not complete yet */
	size_t len, sent;
};

struct cmd_protocol {
	const char *end; /* of a request */
	size_t most;     /* bytes of a request, with a 0; at most REQUEST_MOST */
	/* Handle a request, whose end is replaced by a 0, and one that is too long, by
	 * cmd_server_answer(). */
	void (*execute)(struct cmd_server *s, struct connection *c);
	void (*too_long)(struct connection *c);
};

struct cmd_server {
	const struct cmd_protocol *protocol;
	const struct cmd_table *table;
	cmd_http_page *page;
	void *page_arg;
	int listen_fd, epoll_fd;
	struct sk_hurry hurry; /* of the thread that calls cmd_server_turn(), until that returns */
	bool short_of;         /* descriptors or memory were missing for a connection */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "": not a Unix socket */
	struct connection conns[CMD_CONNECTIONS];
};

/* Returns a server for a listening descriptor, which it takes also when it fails and returns NULL.
 * A descriptor below 0 returns NULL. */
struct cmd_server *cmd_server_new(
	int listen_fd, const char *path, const struct cmd_protocol *protocol);
/* Sets the answer of a connection: a header and a text of `len` bytes. */
void cmd_server_answer(struct connection *c, const char *header, const char *text, size_t len);

#endif
