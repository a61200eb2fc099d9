/* SPDX-License-Identifier: BSD-3-Clause */
#include "http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/listen.h"
#include "server_priv.h"

#define PLACE_LEN 64

union http_addr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* ---- The place ---- */

static bool
http_port(const char *text, in_port_t *port)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (!isdigit((unsigned char)text[0]) || *end != '\0' || n == 0 || n > 65535)
		return false;
	*port = htons((uint16_t)n);
	return true;
}

/* Parses ADDRESS:PORT. Returns the length of the socket address, or 0. */
static socklen_t
http_parse(const char *place, union http_addr *a)
{
	const char *colon = strrchr(place, ':');
	char host[PLACE_LEN];
	size_t n = colon != NULL ? (size_t)(colon - place) : 0;

	memset(a, 0, sizeof(*a));
	if (n == 0 || n >= sizeof(host))
		return 0;
	snprintf(host, sizeof(host), "%.*s", (int)n, place);
	if (host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		a->v6.sin6_family = AF_INET6;
		return inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) == 1 &&
				       http_port(colon + 1, &a->v6.sin6_port)
			       ? sizeof(a->v6)
			       : 0;
	}
	a->v4.sin_family = AF_INET;
	return inet_pton(AF_INET, host, &a->v4.sin_addr) == 1 &&
			       http_port(colon + 1, &a->v4.sin_port)
		       ? sizeof(a->v4)
		       : 0;
}

static bool
http_is_loopback(const union http_addr *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

int
cmd_http_check(const char *place, char *why, size_t len)
{
	union http_addr a;

	if (place[0] == '/')
		return 0;
	if (http_parse(place, &a) == 0)
		snprintf(why, len,
			"is neither the path of a Unix socket (/...) nor ADDRESS:PORT, such as "
			"127.0.0.1:9115");
	else if (!http_is_loopback(&a))
		snprintf(why, len, "is not a loopback address: other hosts could read the metrics");
	else
		return 0;
	return -EINVAL;
}

static int
http_listen(const char *place, char *err, size_t errlen)
{
	union http_addr a;
	socklen_t len = http_parse(place, &a);
	int on = 1;
	int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
		bind(fd, &a.any, len) == 0 && listen(fd, CMD_CONNECTIONS) == 0)
		return fd;
	snprintf(err, errlen, "no socket can listen at %s: %s", place, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- Requests ---- */

static void
http_answer(struct connection *c, const char *status, const char *type, const char *more,
	const char *text, size_t len)
{
	char header[320];

	snprintf(header, sizeof(header),
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
		"Cache-Control: no-store\r\nConnection: close\r\n\r\n",
		status, type, len, more);
	cmd_server_answer(c, header, text, len);
}

static void
http_refuse(struct connection *c, const char *status, const char *more)
{
	char text[80];
	int n = snprintf(text, sizeof(text), "%s\n", status);

	http_answer(c, status, "text/plain; charset=utf-8", more, text, (size_t)n);
}

static void
http_page(struct cmd_server *s, struct connection *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (to == NULL)
		return;
	s->page(s->page_arg, to);
	if (fclose(to) == 0)
		http_answer(c, "200 OK", CMD_HTTP_TYPE, "", text, len);
	free(text);
}

/* Handles a request line "GET /metrics HTTP/1.1". The header fields do not matter: the page has one
 * form, and a body is not read. */
static void
http_execute(struct cmd_server *s, struct connection *c)
{
	char *method = c->request, *path, *version;

	method[strcspn(method, "\r\n")] = '\0';
	path = strchr(method, ' ');
	version = path != NULL ? strchr(path + 1, ' ') : NULL;
	if (version == NULL || strncmp(version + 1, "HTTP/1.", 7) != 0 ||
		!isdigit((unsigned char)version[8]) || version[9] != '\0') {
		http_refuse(c, "400 Bad Request", "");
		return;
	}
	*path++ = *version = '\0';
	path[strcspn(path, "?")] = '\0';
	if (strcmp(method, "GET") != 0)
		http_refuse(c, "405 Method Not Allowed", "Allow: GET\r\n");
	else if (strcmp(path, "/metrics") != 0)
		http_refuse(c, "404 Not Found", "");
	else
		http_page(s, c);
}

static void
http_too_long(struct connection *c)
{
	http_refuse(c, "431 Request Header Fields Too Large", "");
}

struct cmd_server *
cmd_http_open(const char *place, const char *group, uint32_t mode, cmd_http_page *page, void *arg,
	char *err, size_t errlen)
{
	static const struct cmd_protocol http = {
		"\r\n\r\n", REQUEST_MOST, http_execute, http_too_long};
	bool local = place[0] == '/';
	int fd = local ? sk_listen(place, SOCK_STREAM, group, mode, err, errlen)
		       : http_listen(place, err, errlen);
	struct cmd_server *s = cmd_server_new(fd, local ? place : "", &http);

	if (s != NULL) {
		s->page = page;
		s->page_arg = arg;
	} else if (fd >= 0) {
		snprintf(err, errlen, "no memory or descriptor for the metrics at %s", place);
	}
	return s;
}
