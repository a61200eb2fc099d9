/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the page of metrics over HTTP: its requests, and clients that do not behave. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../lib/command/http.h"
#include "../../../lib/command/server.h"
#include "../../support/dial.h"

static struct cmd_server *server;
static char path[64];
static unsigned pages;

static void
page(void *arg, FILE *to)
{
	++*(unsigned *)arg;
	fprintf(to, "a_total 1\n# EOF\n");
}

static void
start(void)
{
	char err[256];

	snprintf(path, sizeof(path), "/tmp/saker-http-%d", (int)getpid());
	server = cmd_http_open(path, "", 0600, page, &pages, err, sizeof(err));
	cr_assert_not_null(server, "%s", err);
}

static void
finish(void)
{
	cmd_server_close(server);
	cr_assert_neq(access(path, F_OK), 0, "the socket remains");
}

TestSuite(command_http, .init = start, .fini = finish);

/* Sends a request and returns the answer. */
static const char *
ask(const char *request)
{
	static char answer[8192];
	int fd = dial(path, SOCK_STREAM);
	size_t got = 0;
	ssize_t n;

	cr_assert_eq(send(fd, request, strlen(request), MSG_NOSIGNAL), (ssize_t)strlen(request));
	cmd_server_turn(server, 1);
	while ((n = recv(fd, answer + got, sizeof(answer) - 1 - got, MSG_DONTWAIT)) > 0)
		got += (size_t)n;
	answer[got] = '\0';
	close(fd);
	return answer;
}

Test(command_http, the_page_has_its_length_and_the_type_of_openmetrics)
{
	const char *a = ask("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n");

	cr_assert_eq(strncmp(a, "HTTP/1.1 200 OK\r\n", 17), 0, "%s", a);
	cr_assert_not_null(strstr(a, "Content-Type: application/openmetrics-text; version=1.0.0;"));
	cr_assert_not_null(strstr(a, "Content-Length: 16\r\n"));
	cr_assert_not_null(strstr(a, "\r\n\r\na_total 1\n# EOF\n"));
	cr_assert_eq(strncmp(ask("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "HTTP/1.1 200", 12), 0);
	cr_assert_eq(pages, 2);
}

Test(command_http, other_requests_are_refused_with_their_status)
{
	static const struct {
		const char *request, *status;
	} all[] = {{"GET / HTTP/1.1\r\n\r\n", "404"}, {"GET /metric HTTP/1.1\r\n\r\n", "404"},
		{"POST /metrics HTTP/1.1\r\n\r\n", "405"}, {"GET /metrics\r\n\r\n", "400"},
		{"GET /metrics HTTP/2.0\r\n\r\n", "400"}, {"GET /metrics HTTP/1.1x\r\n\r\n", "400"},
		{"GET  /metrics HTTP/1.1\r\n\r\n", "400"}, {"\r\n\r\n", "400"},
		{"GET /metrics HTTP/1.\r\n\r\n", "400"}, {"GET /metrics HTTP/1.1 \r\n\r\n", "400"}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const char *a = ask(all[i].request);

		cr_assert_eq(strncmp(a + 9, all[i].status, 3), 0, "%zu: %s", i, a);
	}
	cr_assert_eq(pages, 0);
}

Test(command_http, a_request_that_does_not_end_is_refused_or_closed)
{
	static char big[6000];
	char byte;
	int fd;

	memset(big, 'a', sizeof(big) - 1);
	cr_assert_eq(strncmp(ask(big), "HTTP/1.1 431", 12), 0);
	fd = dial(path, SOCK_STREAM);
	cr_assert_eq(send(fd, "GET /metrics HTTP/1.1\r\n", 23, 0), 23);
	cmd_server_turn(server, 5);
	cr_assert_eq(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	cr_assert_eq(errno, EAGAIN);
	cmd_server_turn(server, 5 + CMD_PATIENCE_NS);
	cr_assert_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
	cr_assert_eq(pages, 0);
}

Test(command_http, a_request_may_arrive_in_parts)
{
	char a[64] = "";
	int fd = dial(path, SOCK_STREAM);

	for (const char *p = "GET /metrics HTTP/1.1\r\n\r\n"; *p != '\0'; p++) {
		cr_assert_eq(send(fd, p, 1, 0), 1);
		cmd_server_turn(server, 1);
	}
	cr_assert_gt(recv(fd, a, 12, MSG_DONTWAIT), 0);
	cr_assert_str_eq(a, "HTTP/1.1 200");
	close(fd);
}

Test(command_http, places_other_than_a_path_and_a_loopback_address_are_refused)
{
	static const char *const bad[] = {"0.0.0.0:9115", "10.0.0.1:9115", "[::]:9115",
		"[2001:db8::1]:1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
		":1", "127.0.0.1:9x", "localhost:9115", "::1:9115", "x", "[::1:9115",
		"127.0.0.1:-1"};
	static const char *const good[] = {"127.0.0.1:9115", "127.9.9.9:1", "[::1]:65535", "/x"};
	char why[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(cmd_http_check(bad[i], why, sizeof(why)), -EINVAL, "%s", bad[i]);
	cr_assert_eq(cmd_http_check("0.0.0.0:1", why, sizeof(why)), -EINVAL);
	cr_assert_not_null(strstr(why, "is not a loopback address"));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert_eq(cmd_http_check(good[i], why, sizeof(why)), 0, "%s", good[i]);
}
