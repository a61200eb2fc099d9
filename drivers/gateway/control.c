/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control socket. A client that connects sends one line and reads the answer until the end of
 * the stream. Saker serves one connection at a time, without blocking; the others queue in the
 * kernel.
 */
#include "gateway_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MODE        0600
#define BACKLOG     16
#define PATIENCE_NS 2000000000ull /* longest duration of a connection */
#define LINE_LEN    1024

struct gw_control {
	int listen_fd;
	int fd; /* the connection, or -1 */
	char path[GW_PATH_MAX];
	uint64_t deadline;
	char line[LINE_LEN];
	size_t got;
	char *answer; /* NULL: the line is not complete yet */
	size_t len, sent;
};

static int
gateway_control_listen_at(const char *path)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	if (strlen(path) >= sizeof(un.sun_path)) {
		close(fd);
		return -ENAMETOOLONG;
	}
	strcpy(un.sun_path, path);
	/* An earlier saker process that died may have left its socket. */
	if (connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0 && errno == ECONNREFUSED)
		unlink(path);
	if (fchmod(fd, MODE) == 0 && bind(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
		chmod(path, MODE) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int
gw_control_open(struct gw *g, const char *path, char *err, size_t errlen)
{
	struct gw_control *c = calloc(1, sizeof(*c));
	int fd = c == NULL ? -ENOMEM : gateway_control_listen_at(path);

	if (fd < 0) {
		snprintf(err, errlen, "the control socket %s cannot be created: %s", path,
			strerror(-fd));
		free(c);
		return fd;
	}
	c->listen_fd = fd;
	c->fd = -1;
	snprintf(c->path, sizeof(c->path), "%s", path);
	g->control = c;
	return 0;
}

static void
gateway_control_hang_up(struct gw_control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->answer);
	c->fd = -1;
	c->answer = NULL;
	c->got = c->len = c->sent = 0;
}

void
gw_control_close(struct gw *g)
{
	struct gw_control *c = g->control;

	if (c == NULL)
		return;
	gateway_control_hang_up(c);
	unlink(c->path);
	close(c->listen_fd);
	free(c);
	g->control = NULL;
}

/* Executes the line, which may begin with "vm" as at the prompt. */
static void
gateway_control_execute(struct gw *g, struct gw_control *c)
{
	const char *line = strncmp(c->line, "vm ", 3) == 0 ? c->line + 3 : c->line;
	FILE *to = open_memstream(&c->answer, &c->len);

	if (to == NULL) {
		gateway_control_hang_up(c);
		return;
	}
	gw_command(g, line, to);
	fclose(to);
}

static void
read_line(struct gw *g, struct gw_control *c)
{
	ssize_t n = recv(c->fd, c->line + c->got, sizeof(c->line) - 1 - c->got, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		gateway_control_hang_up(c);
		return;
	}
	if (n < 0)
		return;
	c->got += (size_t)n;
	c->line[c->got] = '\0';
	if (strchr(c->line, '\n') != NULL)
		gateway_control_execute(g, c);
	else if (c->got == sizeof(c->line) - 1)
		gateway_control_hang_up(c);
}

static void
write_answer(struct gw_control *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->len - c->sent, MSG_NOSIGNAL);

	if (n > 0)
		c->sent += (size_t)n;
	if (c->sent == c->len || (n < 0 && errno != EAGAIN && errno != EINTR))
		gateway_control_hang_up(c);
}

void
gw_control_tend(struct gw *g, uint64_t now)
{
	struct gw_control *c = g->control;

	if (c->fd < 0) {
		c->fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		c->deadline = now + PATIENCE_NS;
	}
	if (c->fd >= 0 && c->answer == NULL)
		read_line(g, c);
	if (c->fd >= 0 && c->answer != NULL)
		write_answer(c);
	if (c->fd >= 0 && now >= c->deadline)
		gateway_control_hang_up(c);
}
