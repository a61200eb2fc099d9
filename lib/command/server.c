/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../base/listen.h"

#define MODE_LEN   16 /* bytes of a request's first word, with its 0 */
#define HEADER_LEN 32

struct connection {
	int fd; /* -1: free */
	uint64_t deadline;
	char request[CMD_REQUEST];
	size_t got;
	char *answer; /* NULL: the request is not complete yet */
	size_t len, sent;
};

struct cmd_server {
	const struct cmd_table *table;
	int listen_fd, epoll_fd;
	bool short_of; /* descriptors or memory were missing for a connection */
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct connection conns[CMD_CONNECTIONS];
};

struct cmd_server *
cmd_server_open(const struct cmd_table *table, const char *path, const char *group, uint32_t mode,
	char *err, size_t errlen)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct cmd_server *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		snprintf(err, errlen, "no memory for the control socket");
		return NULL;
	}
	s->table = table;
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++)
		s->conns[i].fd = -1;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->listen_fd = sk_listen(path, SOCK_STREAM, group, mode, err, errlen);
	if (s->listen_fd >= 0)
		snprintf(s->path, sizeof(s->path), "%s", path);
	if (s->listen_fd >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &ev) == 0)
		return s;
	if (s->listen_fd >= 0)
		snprintf(err, errlen, "no descriptor for the control socket %s", path);
	cmd_server_close(s);
	return NULL;
}

int
cmd_server_fd(const struct cmd_server *s)
{
	return s->epoll_fd;
}

/* Closing the descriptor removes it from the epoll set: no other process has it. */
static void
server_hang_up(struct connection *c)
{
	close(c->fd);
	free(c->answer);
	*c = (struct connection){.fd = -1};
}

void
cmd_server_close(struct cmd_server *s)
{
	if (s == NULL)
		return;
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++)
		if (s->conns[i].fd >= 0)
			server_hang_up(&s->conns[i]);
	if (s->listen_fd >= 0) {
		unlink(s->path);
		close(s->listen_fd);
	}
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s);
}

/* Accepts a connection. Returns false when none waits, or none can be accepted now. */
static bool
server_accept_one(struct cmd_server *s, struct connection *c, uint64_t now)
{
	struct epoll_event ev = {.events = EPOLLIN};

	c->fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (c->fd < 0) {
		s->short_of = errno != EAGAIN;
		return false;
	}
	c->deadline = now + CMD_PATIENCE_NS;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev) < 0)
		server_hang_up(c);
	return true;
}

static void
server_accept(struct cmd_server *s, uint64_t now)
{
	bool more = true;

	s->short_of = false;
	for (unsigned i = 0; i < CMD_CONNECTIONS && more; i++)
		if (s->conns[i].fd < 0)
			more = server_accept_one(s, &s->conns[i], now);
}

/* Watches the listening socket while a place is free. After a failure, the next turn decides. */
static void
server_watch(struct cmd_server *s)
{
	struct epoll_event ev = {0};

	for (unsigned i = 0; i < CMD_CONNECTIONS && !s->short_of; i++)
		if (s->conns[i].fd < 0)
			ev.events = EPOLLIN;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listen_fd, &ev);
}

/* ---- Answers ---- */

/* Prints the answer's header and its text to a new string in the connection. */
static void
server_answer(struct connection *c, int status, const char *text, size_t len)
{
	c->answer = malloc(HEADER_LEN + len);
	if (c->answer == NULL)
		return;
	c->len = (size_t)snprintf(c->answer, HEADER_LEN, "%d %zu\n", status, len);
	memcpy(c->answer + c->len, text, len);
	c->len += len;
}

static void
server_print(const struct cmd_table *t, const char *mode, const char *line, struct cmd_out *out,
	FILE *to)
{
	if (strcmp(mode, "complete") == 0) {
		cmd_complete(t, line, to);
		return;
	}
	if (strcmp(mode, "json") != 0 && strcmp(mode, "text") != 0)
		cmd_refuse(out, "a request begins with text, json or complete");
	else
		cmd_run(t, line, out);
	if (cmd_refusal(out) != NULL)
		fprintf(to, "%s\n", cmd_refusal(out));
	else if (mode[0] == 'j')
		cmd_print_json(out, to);
	else
		cmd_print_text(out, to);
}

/* Executes the request, which is complete. */
static void
server_execute(const struct cmd_table *t, struct connection *c)
{
	struct cmd_out *out = cmd_out_new();
	char mode[MODE_LEN], *text = NULL;
	size_t n = strcspn(c->request, " "), len = 0;
	FILE *to = open_memstream(&text, &len);

	snprintf(mode, sizeof(mode), "%.*s", (int)n, c->request);
	if (out != NULL && to != NULL)
		server_print(t, mode, c->request + n + (c->request[n] == ' '), out, to);
	if (to != NULL && fclose(to) == 0 && out != NULL)
		server_answer(c, cmd_refusal(out) != NULL, text, len);
	free(text);
	cmd_out_free(out);
}

static void
server_read(struct cmd_server *s, struct connection *c)
{
	struct epoll_event ev = {.events = EPOLLOUT};
	size_t room = sizeof(c->request) - 1 - c->got;
	ssize_t n = recv(c->fd, c->request + c->got, room, 0);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		server_hang_up(c);
		return;
	}
	c->got += (size_t)n;
	end = memchr(c->request, '\n', c->got);
	if (end == NULL && (size_t)n < room)
		return;
	if (end == NULL) {
		snprintf(c->request, sizeof(c->request), "the line is longer than %d bytes\n",
			CMD_LINE - 1);
		server_answer(c, 1, c->request, strlen(c->request));
	} else {
		*end = '\0';
		server_execute(s->table, c);
	}
	if (c->answer == NULL || epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) < 0)
		server_hang_up(c);
}

static void
server_write(struct connection *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->len - c->sent, MSG_NOSIGNAL);

	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent == c->len || (n < 0 && errno != EAGAIN && errno != EINTR))
		server_hang_up(c);
}

void
cmd_server_turn(struct cmd_server *s, uint64_t now)
{
	server_accept(s, now);
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++) {
		struct connection *c = &s->conns[i];

		if (c->fd >= 0 && c->answer == NULL)
			server_read(s, c);
		if (c->fd >= 0 && c->answer != NULL)
			server_write(c);
		if (c->fd >= 0 && now >= c->deadline)
			server_hang_up(c);
	}
	server_watch(s);
}
