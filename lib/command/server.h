/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket, a Unix stream socket. A client sends one line and receives one answer:
 *
 *     MODE LINE \n        MODE: "text", "json", or "complete" for cmd_complete()
 *     STATUS BYTES \n     STATUS: 0, or 1 with the sentence of a refusal; in decimal digits
 *     BYTES bytes
 *
 * The server runs in one thread and never blocks. It serves at most CMD_CONNECTIONS connections;
 * others wait in the kernel's queue. A connection that is not complete CMD_PATIENCE_NS after its
 * begin is closed, so that no client keeps others out. Descriptors that a client sends are dropped.
 */
#ifndef SAKER_COMMAND_SERVER_H
#define SAKER_COMMAND_SERVER_H

#include "command.h"

#define CMD_CONNECTIONS 16
#define CMD_PATIENCE_NS UINT64_C(10000000000)
#define CMD_REQUEST     (CMD_LINE + 16) /* bytes of a request, with the end of its line */

#define CMD_SOCKET_DEFAULT "/run/saker/saker.control"

struct cmd_server;

/* Listens at `path`, as sk_listen() describes. `table` outlives the server. Returns NULL, with one
 * sentence in `err`, when this fails. */
struct cmd_server *cmd_server_open(const struct cmd_table *table, const char *path,
	const char *group, uint32_t mode, char *err, size_t errlen);
/* Returns a descriptor that is readable when cmd_server_turn() has work. */
int cmd_server_fd(const struct cmd_server *s);
/* Accepts, reads, executes and answers as far as that is possible now. `now` is in ns, of a clock
 * that never goes back. Call this at least once a second, for the connections that are too old. */
void cmd_server_turn(struct cmd_server *s, uint64_t now);
/* Closes all connections, and removes the socket. NULL is allowed. */
void cmd_server_close(struct cmd_server *s);

/* ---- The client's side ---- */

struct cmd_answer {
	int status;   /* 0, or 1: refused */
	char *text;   /* 0-terminated; cmd_ask() allocates it, and the caller frees it */
	size_t bytes; /* of `text`, without its 0 */
};

/* Sends a line with a mode and waits for the answer. Returns 0, or -errno when no saker answers:
 * -EPROTO for another program, or an answer that ends too early. */
int cmd_ask(const char *path, const char *mode, const char *line, struct cmd_answer *a);

#endif
