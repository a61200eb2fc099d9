/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program on <rdma/rsocket.h> that never blocks.
 *
 *     rsocket_peer serve PORT CONNECTIONS           returns what it receives; rpoll(2)
 *     rsocket_peer echo ADDRESS PORT CONNECTIONS BYTES   compares what comes back; epoll(7)
 *     rsocket_peer refused ADDRESS PORT             nobody listens there
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define MOST  64
#define CHUNK 20000

static void
peer_die(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in6
address(const char *text, const char *port)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(port))};
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') != NULL ? "" : "::ffff:", text);
	if (inet_pton(AF_INET6, mapped, &a.sin6_addr) != 1)
		peer_die(text);
	return a;
}

/* ---- The server ---- */

struct conn {
	uint8_t bytes[CHUNK];
	size_t have, sent;
	bool eof;
};
static struct conn conns[MOST];

/* Reads and writes what is possible. Returns false at the end of the connection. */
static bool
serve_one(struct pollfd *p, struct conn *c)
{
	ssize_t n;

	if ((p->revents & POLLIN) != 0 && c->have == 0) {
		n = rrecv(p->fd, c->bytes, sizeof(c->bytes), 0);
		if (n < 0 && errno != EAGAIN)
			peer_die("rrecv");
		c->have = n > 0 ? (size_t)n : 0;
		c->eof = n == 0;
	}
	if (c->have > c->sent) {
		n = rsend(p->fd, c->bytes + c->sent, c->have - c->sent, 0);
		if (n < 0 && errno != EAGAIN)
			peer_die("rsend");
		c->sent += n > 0 ? (size_t)n : 0;
	}
	if (c->sent == c->have)
		c->sent = c->have = 0;
	p->events = c->have > 0 ? POLLOUT : POLLIN;
	if (c->eof)
		rclose(p->fd);
	return !c->eof;
}

static int
serve(const char *port, int left)
{
	struct sockaddr_in6 a = address("::", port);
	struct pollfd p[MOST + 1] = {{.fd = rsocket(AF_INET6, SOCK_STREAM, 0), .events = POLLIN}};
	nfds_t n = 1;

	if (p[0].fd < 0 || rbind(p[0].fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		rlisten(p[0].fd, MOST) < 0 || rfcntl(p[0].fd, F_SETFL, O_NONBLOCK) < 0)
		peer_die("listening");
	puts("listening");
	fflush(stdout);
	while (left > 0 || n > 1) {
		int fd = -1;

		if (rpoll(p, n, -1) < 0)
			peer_die("rpoll");
		for (nfds_t i = n - 1; i > 0; i--)
			if (p[i].revents != 0 && !serve_one(&p[i], &conns[i])) {
				p[i] = p[--n];
				conns[i] = conns[n];
			}
		if ((p[0].revents & POLLIN) != 0 && n <= MOST)
			fd = raccept(p[0].fd, NULL, NULL);
		if (fd < 0)
			continue;
		if (rfcntl(fd, F_SETFL, O_NONBLOCK) < 0)
			peer_die("rfcntl");
		memset(&conns[n], 0, sizeof(conns[n]));
		p[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
		left--;
	}
	return 0;
}

/* ---- The client ---- */

static uint8_t
byte_at(int conn, size_t i)
{
	return (uint8_t)(i * 2654435761u >> 13) ^ (uint8_t)conn;
}

struct flow {
	int fd;
	size_t sent, got;
	bool connected, over;
};

static void
flow_send(struct flow *f, int conn, size_t bytes)
{
	static uint8_t chunk[CHUNK];
	size_t n = bytes - f->sent < CHUNK ? bytes - f->sent : CHUNK;
	ssize_t rc;

	for (size_t i = 0; i < n; i++)
		chunk[i] = byte_at(conn, f->sent + i);
	rc = rsend(f->fd, chunk, n, 0);
	if (rc < 0 && errno != EAGAIN)
		peer_die("rsend");
	f->sent += rc > 0 ? (size_t)rc : 0;
	if (f->sent == bytes && rshutdown(f->fd, SHUT_WR) < 0)
		peer_die("rshutdown");
}

static void
flow_receive(struct flow *f, int conn)
{
	uint8_t chunk[CHUNK];
	ssize_t n = rrecv(f->fd, chunk, sizeof(chunk), 0);

	if (n < 0 && errno != EAGAIN)
		peer_die("rrecv");
	for (ssize_t i = 0; i < n; i++)
		if (chunk[i] != byte_at(conn, f->got + (size_t)i)) {
			printf("connection %d: byte %zu differs\n", conn, f->got + (size_t)i);
			exit(1);
		}
	f->got += n > 0 ? (size_t)n : 0;
	f->over = n == 0;
}

static int
so_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	if (rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		peer_die("rgetsockopt");
	return err;
}

static int
flow_begin(const struct sockaddr_in6 *a)
{
	int fd = rsocket(AF_INET6, SOCK_STREAM, 0);

	if (fd < 0 || rfcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		peer_die("rsocket");
	if (rconnect(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 && errno != EINPROGRESS)
		peer_die("rconnect");
	return fd;
}

static int
echo(const struct sockaddr_in6 *a, int n, size_t bytes)
{
	struct flow flows[MOST] = {0};
	int ep = epoll_create1(0), left = n;
	struct epoll_event ev[MOST];
	size_t got = 0;

	for (int i = 0; i < n; i++) {
		flows[i].fd = flow_begin(a);
		ev[0] = (struct epoll_event){.events = EPOLLOUT, .data.u32 = (uint32_t)i};
		if (epoll_ctl(ep, EPOLL_CTL_ADD, flows[i].fd, &ev[0]) < 0)
			peer_die("epoll_ctl");
	}
	while (left > 0) {
		int k = epoll_wait(ep, ev, MOST, -1);

		for (int i = 0; i < k; i++) {
			int conn = (int)ev[i].data.u32;
			struct flow *f = &flows[conn];

			if (!f->connected && so_error(f->fd) != 0)
				peer_die("connecting");
			f->connected = true;
			if ((ev[i].events & EPOLLOUT) != 0 && f->sent < bytes)
				flow_send(f, conn, bytes);
			if ((ev[i].events & EPOLLIN) != 0)
				flow_receive(f, conn);
			ev[i].events = EPOLLIN | (f->sent < bytes ? EPOLLOUT : 0u);
			epoll_ctl(ep, f->over ? EPOLL_CTL_DEL : EPOLL_CTL_MOD, f->fd, &ev[i]);
			if (!f->over)
				continue;
			got += f->got;
			left--;
			rclose(f->fd);
		}
	}
	printf("%d connections, %zu bytes came back\n", n, got);
	return got == bytes * (size_t)n ? 0 : 1;
}

/* Connects to a port where nobody listens: without and with waiting. */
static int
refused(const struct sockaddr_in6 *a)
{
	struct pollfd p = {.fd = flow_begin(a), .events = POLLOUT};
	int fd = rsocket(AF_INET6, SOCK_STREAM, 0), err;

	if (rpoll(&p, 1, 60000) != 1)
		peer_die("rpoll");
	err = so_error(p.fd);
	printf("SO_ERROR: %s\n", strerror(err));
	if (rconnect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0)
		return 1;
	printf("rconnect: %s\n", strerror(errno));
	return errno == ECONNREFUSED && err == ECONNREFUSED ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct sockaddr_in6 a;

	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], atoi(argv[3]));
	if (argc < 4)
		return 2;
	a = address(argv[2], argv[3]);
	if (strcmp(argv[1], "refused") == 0)
		return refused(&a);
	if (argc != 6 || atoi(argv[4]) < 1 || atoi(argv[4]) > MOST)
		return 2;
	return echo(&a, atoi(argv[4]), (size_t)atol(argv[5]));
}
