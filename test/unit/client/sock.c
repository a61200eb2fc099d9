/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching over the Unix socket, passing memory to the engine, and an engine that goes away. */
#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake_sock.h"

#define MIB (1ull << 20)

static struct fake_sock k;
static struct saker *s;

static void
setup(void)
{
	memset(&k, 0, sizeof(k));
	k.region_most = 64 * MIB;
}

TestSuite(client_sock, .init = setup);

static void
attach(void)
{
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, "a test", &s), 0, "%s", saker_error());
}

Test(client_sock, hello_names_the_program_and_commands_pass)
{
	struct saker_device dev;

	attach();
	cr_assert_str_eq(k.name, "a test");
	cr_assert_eq(saker_device(s, &dev), 0);
	cr_assert_str_eq(dev.name, "fake");
	saker_close(s);
	fake_sock_stop(&k);
}

Test(client_sock, the_socket_is_named_by_the_environment)
{
	fake_sock_start(&k);
	setenv("SAKER_SOCKET", k.path, 1);
	cr_assert_eq(saker_open(NULL, NULL, &s), 0);
	saker_close(s);
	fake_sock_stop(&k);
}

Test(client_sock, a_missing_saker_is_reported_with_the_path)
{
	char path[300];

	cr_assert_eq(saker_open("/nonexistent/saker.sock", NULL, &s), -ENOENT);
	cr_assert_not_null(strstr(saker_error(), "/nonexistent/saker.sock"));
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	cr_assert_eq(saker_open(path, NULL, &s), -ENAMETOOLONG);
}

Test(client_sock, a_look_attaches_nothing)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/saker-look.XXXXXX", bar[64];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	cr_assert_not_null(mkdtemp(dir));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/sock", dir);
	snprintf(bar, sizeof(bar), "ivshmem:%s/sock", dir);
	cr_assert_eq(saker_look(un.sun_path), -ENOENT);
	cr_assert_not_null(strstr(saker_error(), un.sun_path));
	cr_assert_eq(saker_look(bar), -ENOENT);
	cr_assert_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	cr_assert_eq(saker_look(un.sun_path), -ECONNREFUSED);
	cr_assert_eq(
		saker_look(bar), 0); /* the file exists; only saker_open() checks its content */
	cr_assert_eq(listen(fd, 1), 0);
	setenv("SAKER_SOCKET", un.sun_path, 1);
	cr_assert_eq(saker_look(NULL), 0);
	close(fd);
	unlink(un.sun_path);
	rmdir(dir);
}

Test(client_sock, a_refused_hello_is_the_engines_sentence)
{
	k.refuse_hello = "there are 64 clients already";
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, NULL, &s), -EUSERS);
	cr_assert_str_eq(saker_error(), "there are 64 clients already");
	fake_sock_stop(&k);
}

Test(client_sock, a_refusal_with_a_reason_that_is_no_errno_is_a_protocol_error)
{
	k.refuse_hello = "no";
	k.refuse_status = INT32_MIN;
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, NULL, &s), -EPROTO);
	fake_sock_stop(&k);
}

Test(client_sock, a_welcome_that_lacks_something_is_refused)
{
	k.few_fds = true;
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, NULL, &s), -EPROTO);
	fake_sock_stop(&k);
	setup();
	k.wrong_magic = true;
	fake_sock_start(&k);
	cr_assert_eq(saker_open(k.path, NULL, &s), -EPROTO);
	fake_sock_stop(&k);
}

Test(client_sock, memory_is_brought_sealed_and_is_the_engines_memory_too)
{
	struct saker_pd *pd;
	struct saker_mr *mr;
	uint8_t *p, *q;

	attach();
	p = saker_alloc(s, 10000);
	q = saker_alloc(s, 5000);
	cr_assert_not_null(p);
	cr_assert_not_null(q);
	cr_assert_eq(k.regions, 1, "one arena serves both");
	cr_assert(k.sealed);
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	cr_assert_eq(saker_mr_create(pd, q + 8, 100, 0, &mr), 0);
	cr_assert_eq(k.f.last.body.mr.extents[0].region, 11);
	q[8] = 0x5a;
	cr_assert_eq(k.region[0][k.f.last.body.mr.extents[0].offset], 0x5a);
	saker_close(s);
	fake_sock_stop(&k);
}

Test(client_sock, an_arena_beyond_the_quota_is_tried_in_the_size_that_is_needed)
{
	k.region_most = 4 * MIB;
	attach();
	cr_assert_not_null(saker_alloc(s, 3 * MIB));
	cr_assert_eq(k.refused_regions, 1);
	cr_assert_eq(k.region_size[0], 4 * MIB);
	cr_assert_null(saker_alloc(s, 5 * MIB));
	cr_assert_str_eq(saker_error(), "the quota of memory is used up");
	cr_assert_not_null(saker_alloc(s, MIB), "a refusal changes nothing");
	cr_assert_eq(k.regions, 1);
	saker_close(s);
	fake_sock_stop(&k);
}

Test(client_sock, an_arena_that_came_empty_goes_back_but_for_the_first)
{
	void *a, *b;

	attach();
	a = saker_alloc(s, 15 * MIB);
	b = saker_alloc(s, 10 * MIB);
	cr_assert_not_null(b);
	cr_assert_eq(k.regions, 2);
	saker_free(s, b, 10 * MIB);
	cr_assert_eq(k.f.seen[SHM_REGION_DROP], 1);
	cr_assert_eq(k.f.last.body.handle, 12);
	saker_free(s, a, 15 * MIB);
	cr_assert_eq(k.f.seen[SHM_REGION_DROP], 1);
	cr_assert_not_null(saker_alloc(s, MIB));
	cr_assert_eq(k.regions, 2);
	saker_close(s);
	fake_sock_stop(&k);
}

Test(client_sock, an_engine_that_dies_is_noticed)
{
	struct saker_event ev;
	struct saker_pd *pd;

	attach();
	cr_assert_eq(saker_pd_create(s, &pd), 0);
	fake_sock_stop(&k);
	cr_assert_eq(saker_wait(s, -1), 1);
	cr_assert_eq(saker_event(s, &ev), 1);
	cr_assert_eq(ev.type, SAKER_EV_ENGINE_GONE);
	cr_assert_eq(saker_wait(s, -1), -EPIPE);
	cr_assert_null(saker_alloc(s, 1));
	cr_assert_eq(saker_pd_destroy(pd), 0);
	saker_close(s);
}

Test(client_sock, a_program_that_only_polls_notices_too)
{
	struct saker_event ev;
	int n = 0;

	attach();
	fake_sock_stop(&k);
	while (saker_event(s, &ev) == 0)
		cr_assert_lt(n++, 1000);
	cr_assert_eq(ev.type, SAKER_EV_ENGINE_GONE);
	saker_close(s);
}
