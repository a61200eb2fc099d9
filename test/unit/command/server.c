/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the control socket. Most tests call the server's turns themselves, with times of their own.
 */
#include <criterion/criterion.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../lib/command/server.h"
#include "../../support/dial.h"
#include "../../support/lingering.h"

#define BIG 100000 /* elements of the answer of "big": more than a socket's buffers take */

static int
small(void *app, const char *arg, struct cmd_out *out)
{
	++*(unsigned *)app;
	cmd_number(out, "n", 7);
	return 0;
}

static int
big(void *app, const char *arg, struct cmd_out *out)
{
	cmd_list(out, "all");
	for (unsigned i = 0; i < BIG; i++) {
		cmd_record(out, NULL);
		cmd_number(out, "n", i);
		cmd_end(out);
	}
	cmd_end(out);
	return 0;
}

static const struct cmd commands[] = {
	{"small", NULL, "a number", small}, {"big", NULL, "many numbers", big}};
static unsigned executed;
static const struct cmd_table table = {commands, 2, &executed};
static struct cmd_server *server;
static char path[64];
static bool stop; /* atomic */

static void
start(void)
{
	char err[256];

	snprintf(path, sizeof(path), "/tmp/saker-command-%d", (int)getpid());
	server = cmd_server_open(&table, path, "", 0600, err, sizeof(err));
	cr_assert_not_null(server, "%s", err);
}

static void
finish(void)
{
	cmd_server_close(server);
	cr_assert_neq(access(path, F_OK), 0, "the socket remains");
}

/* Checks what a connection has received, without waiting: "": nothing yet; NULL: it was closed. */
static void
received(int fd, const char *what)
{
	char buf[256] = "";
	ssize_t n = recv(fd, buf, sizeof(buf) - 1, MSG_DONTWAIT);

	if (what == NULL)
		cr_assert_eq(n, 0, "%s", buf);
	else if (what[0] == '\0')
		cr_assert_lt(n, 0, "%s", buf);
	else
		cr_assert_str_eq(buf, what);
}

static void
say(int fd, const char *text)
{
	cr_assert_eq(send(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

Test(command_server, a_request_in_pieces_is_answered_once)
{
	int fd;

	start();
	fd = dial(path, SOCK_STREAM);
	say(fd, "json sm");
	cmd_server_turn(server, 0);
	received(fd, "");
	say(fd, "all\n");
	cmd_server_turn(server, 1);
	received(fd, "0 8\n{\"n\":7}\n");
	received(fd, NULL);
	cr_assert_eq(executed, 1);
	close(fd);
	finish();
}

Test(command_server, refusals_have_a_status_and_a_sentence)
{
	int fd;

	start();
	fd = dial(path, SOCK_STREAM);
	say(fd, "text nothing\n");
	cmd_server_turn(server, 0);
	received(fd, "1 45\n'nothing' is not a command; 'help' lists all\n");
	close(fd);
	fd = dial(path, SOCK_STREAM);
	say(fd, "xml small\n");
	cmd_server_turn(server, 0);
	received(fd, "1 45\na request begins with text, json or complete\n");
	close(fd);
	finish();
}

Test(command_server, a_line_without_end_is_refused)
{
	char line[2 * CMD_REQUEST];
	int fd;

	start();
	fd = dial(path, SOCK_STREAM);
	memset(line, 'x', sizeof(line));
	cr_assert_eq(send(fd, line, sizeof(line), 0), (ssize_t)sizeof(line));
	cmd_server_turn(server, 0);
	received(fd, "1 35\nthe line is longer than 1023 bytes\n");
	close(fd);
	finish();
}

Test(command_server, a_client_that_does_not_read_delays_no_other)
{
	int slow, fd;

	start();
	slow = dial(path, SOCK_STREAM);
	say(slow, "text big\n");
	cmd_server_turn(server, 0);
	fd = dial(path, SOCK_STREAM);
	say(fd, "json small\n");
	cmd_server_turn(server, CMD_PATIENCE_NS - 1);
	received(fd, "0 8\n{\"n\":7}\n");
	close(fd);
	/* When its time is over, its connection is closed: it misses the rest of its answer. */
	cmd_server_turn(server, CMD_PATIENCE_NS);
	for (size_t got = 0;; got++) {
		char byte[4096];
		ssize_t n = recv(slow, byte, sizeof(byte), MSG_DONTWAIT);

		cr_assert_geq(n, 0, "the connection is open");
		if (n == 0)
			break;
	}
	close(slow);
	finish();
}

Test(command_server, connections_that_stay_keep_others_out_only_until_their_time_is_over)
{
	int idle[CMD_CONNECTIONS], fd;

	start();
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++)
		idle[i] = dial(path, SOCK_STREAM);
	fd = dial(path, SOCK_STREAM);
	say(fd, "json small\n");
	cmd_server_turn(server, 0);
	cmd_server_turn(server, CMD_PATIENCE_NS - 1);
	received(fd, "");
	cmd_server_turn(server, CMD_PATIENCE_NS);
	cmd_server_turn(server, CMD_PATIENCE_NS);
	received(fd, "0 8\n{\"n\":7}\n");
	for (unsigned i = 0; i < CMD_CONNECTIONS; i++) {
		received(idle[i], NULL);
		close(idle[i]);
	}
	close(fd);
	finish();
}

/* Descriptors that come with a request, that no turn receives, and of a connection that no turn
 * accepts. */
Test(command_server, a_client_whose_descriptors_do_not_close_delays_nobody, .timeout = 100)
{
	struct timespec began;
	int fd[3];

	start();
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (unsigned i = 0; i < 3; i++)
		fd[i] = dial(path, SOCK_STREAM);
	cmd_server_turn(server, 0);
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(send_lingering(fd[i]), 0);
		cr_assert_eq(send_lingering(fd[i]), 0);
	}
	cmd_server_turn(server, 0);
	cmd_server_turn(server, CMD_PATIENCE_NS);
	received(fd[0], NULL);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
	for (unsigned i = 0; i < 2; i++) {
		fd[i] = dial(path, SOCK_STREAM);
		cr_assert_eq(send_lingering(fd[i]), 0);
		if (i == 0)
			cmd_server_turn(server, CMD_PATIENCE_NS);
		cr_assert_eq(send_lingering(fd[i]), 0);
	}
	finish();
	cr_assert_not(has_lingered(&began));
	close(fd[0]);
	close(fd[1]);
}

static void *
serve(void *arg)
{
	for (uint64_t now = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); now++)
		cmd_server_turn(server, now);
	return NULL;
}

Test(command_server, the_client_receives_whole_answers)
{
	struct cmd_answer a;
	pthread_t thread;

	start();
	cr_assert_eq(pthread_create(&thread, NULL, serve, NULL), 0);
	cr_assert_eq(cmd_ask(path, "json", "big", &a), 0);
	cr_assert_eq(a.status, 0);
	cr_assert_eq(a.bytes, strlen(a.text));
	cr_assert_str_eq(a.text + a.bytes - 14, "{\"n\":99999}]}\n");
	free(a.text);
	cr_assert_eq(cmd_ask(path, "text", "bigger", &a), 0);
	cr_assert_eq(a.status, 1);
	cr_assert_str_eq(a.text, "'bigger' is not a command; 'help' lists all\n");
	free(a.text);
	cr_assert_eq(cmd_ask(path, "complete", "s", &a), 0);
	cr_assert_str_eq(a.text, "small\n");
	free(a.text);
	__atomic_store_n(&stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	finish();
	cr_assert_lt(cmd_ask(path, "text", "small", &a), 0);
}

Test(command_server, only_its_user_may_connect)
{
	struct stat st;

	start();
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	finish();
}
