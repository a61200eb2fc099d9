/* SPDX-License-Identifier: BSD-3-Clause */
#include "server_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/listen.h"

#define MODE_LEN   16 /* bytes of a request's first word, with its 0 */
#define HEADER_LEN 32

static void server_execute(struct cmd_server *s, struct connection *c);
static void server_too_long(struct connection *c);

static const struct cmd_protocol lines = {"\n", CMD_REQUEST, server_execute, server_too_long};

struct cmd_server *
cmd_server_new(int listen_fd, const char *path, const struct cmd_protocol *protocol)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct cmd_server *s = listen_fd >= 0 ? calloc(1, sizeof(*s)) : NULL;

	if (s == NULL) {
		if (listen_fd >= 0)
			close(listen_fd);
		return NULL;
	}
	s->protocol = protocol;
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++)
		s->conns[i].fd = -1;
	snprintf(s->path, sizeof(s->path), "%s", path);
	s->listen_fd = listen_fd;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &ev) == 0)
		return s;
	cmd_server_close(s);
	return NULL;
}

struct cmd_server *
cmd_server_open(const struct cmd_table *table, const char *path, const char *group, uint32_t mode,
	char *err, size_t errlen)
{
	int fd = sk_listen(path, SOCK_STREAM, group, mode, err, errlen);
	struct cmd_server *s = cmd_server_new(fd, path, &lines);

	if (s != NULL)
		s->table = table;
	else if (fd >= 0)
		snprintf(err, errlen, "no memory or descriptor for the control socket %s", path);
	return s;
}

int
cmd_server_fd(const struct cmd_server *s)
{
	return s->epoll_fd;
}

/* Closing the descriptor removes it from the epoll set: no other process has it. */
static void
server_hang_up(const struct cmd_server *s, struct connection *c)
{
	sk_hurry_close(&s->hurry, c->fd);
	free(c->answer);
	*c = (struct connection){.fd = -1};
}

void
cmd_server_close(struct cmd_server *s)
{
	if (s == NULL)
		return;
	sk_hurry_init(&s->hurry);
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++)
		if (s->conns[i].fd >= 0)
			server_hang_up(s, &s->conns[i]);
	if (s->path[0] != '\0')
		unlink(s->path);
	sk_hurry_close(&s->hurry, s->listen_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	sk_hurry_fini(&s->hurry);
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
		server_hang_up(s, c);
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

void
cmd_server_answer(struct connection *c, const char *header, const char *text, size_t len)
{
	size_t head = strlen(header);

	c->answer = malloc(head + len);
	if (c->answer == NULL)
		return;
	memcpy(c->answer, header, head);
	memcpy(c->answer + head, text, len);
	c->len = head + len;
}

static void
server_answer(struct connection *c, int status, const char *text, size_t len)
{
	char header[HEADER_LEN];

	snprintf(header, sizeof(header), "%d %zu\n", status, len);
	cmd_server_answer(c, header, text, len);
}

static void
server_too_long(struct connection *c)
{
	char text[64];

	snprintf(text, sizeof(text), "the line is longer than %d bytes\n", CMD_LINE - 1);
	server_answer(c, 1, text, strlen(text));
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
server_execute(struct cmd_server *s, struct connection *c)
{
	const struct cmd_table *t = s->table;
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

/* Receives a part of the request. The kernel drops descriptors that come with it. Returns the
 * number of bytes, 0 at the end, or -errno. */
static ssize_t
server_receive(const struct cmd_server *s, struct connection *c, size_t room)
{
	ssize_t n;

	sk_hurry_begin(&s->hurry);
	n = recv(c->fd, c->request + c->got, room, 0);
	n = n < 0 ? -errno : n;
	sk_hurry_end(&s->hurry);
	return n;
}

static void
server_read(struct cmd_server *s, struct connection *c)
{
	struct epoll_event ev = {.events = EPOLLOUT};
	size_t room = s->protocol->most - 1 - c->got;
	ssize_t n = server_receive(s, c, room);
	char *end;

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		server_hang_up(s, c);
		return;
	}
	c->got += (size_t)n;
	end = memmem(c->request, c->got, s->protocol->end, strlen(s->protocol->end));
	if (end == NULL && (size_t)n < room)
		return;
	if (end == NULL) {
		s->protocol->too_long(c);
	} else {
		*end = '\0';
		s->protocol->execute(s, c);
	}
	if (c->answer == NULL || epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev) < 0)
		server_hang_up(s, c);
}

static void
server_write(const struct cmd_server *s, struct connection *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->len - c->sent, MSG_NOSIGNAL);

	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent == c->len || (n < 0 && errno != EAGAIN && errno != EINTR))
		server_hang_up(s, c);
}

void
cmd_server_turn(struct cmd_server *s, uint64_t now)
{
	sk_hurry_init(&s->hurry);
	server_accept(s, now);
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++) {
		struct connection *c = &s->conns[i];

		if (c->fd >= 0 && c->answer == NULL)
			server_read(s, c);
		if (c->fd >= 0 && c->answer != NULL)
			server_write(s, c);
		if (c->fd >= 0 && now >= c->deadline)
			server_hang_up(s, c);
	}
	server_watch(s);
	sk_hurry_fini(&s->hurry);
}
