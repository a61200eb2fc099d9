/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The things that outlive a client: its id in messages of other threads, and the descriptors that
 * it keeps. And the places for clients, which the users share.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../lib/engine/control/core/core.h"
#include "../../../lib/engine/control/attach/socket_users.h"
#include "../../../lib/shm/shm_sock.h"
#include "served.h"

static struct script *s;

static void
put_region(uint32_t id, uint32_t number)
{
	struct ctl_inbox *in = calloc(1, sizeof(*in));

	in->kind = CTL_IN_REGION;
	in->region.id = id;
	in->region.number = number;
	in->region.map = (struct eng_region){.base = (uint8_t *)0x1000, .size = 4096, .fd = -1};
	ctl_inbox_push(s->control, in);
}

static void
push_region(uint32_t id, uint32_t number)
{
	put_region(id, number);
	script_turns(s, 4);
}

static uint32_t
regions(void)
{
	struct eng_totals t = {0};

	eng_control_totals(s->control, &t);
	return t.regions;
}

static void
leave(struct hand *c)
{
	cr_assert_eq(eng_control_detach(s->control, c->number), 0);
	for (int i = 0; i < 1000 && !eng_control_client_gone(s->control, c->number); i++)
		script_turn(s);
	cr_assert(eng_control_client_gone(s->control, c->number));
	hand_free(c);
}

Test(engine_attach, a_region_of_a_client_that_is_gone_reaches_no_client)
{
	struct hand old, new;

	s = script_new(NULL);
	hand_attach(&old, s);
	leave(&old);
	push_region((uint32_t)old.number, 5);
	cr_assert_eq(regions(), 0, "nobody has the number");
	hand_attach(&new, s);
	cr_assert_eq(CTL_ID_NUMBER(new.number), CTL_ID_NUMBER(old.number));
	cr_assert_neq(new.number, old.number);
	push_region((uint32_t)old.number, 5);
	cr_assert_eq(regions(), 0, "another client has the number");
	push_region((uint32_t) new.number, 5);
	cr_assert_eq(regions(), 1);
	leave(&new);
	cr_assert_eq(regions(), 0);
	script_free(s);
}

Test(engine_attach, a_region_of_a_client_that_is_being_removed_is_not_entered)
{
	struct hand c;

	s = script_new(NULL);
	hand_attach(&c, s);
	s->hold = ENG_CE_CLIENT_DEL;
	cr_assert_eq(eng_control_detach(s->control, c.number), 0);
	script_turns(s, 10);
	cr_assert_not(eng_control_client_gone(s->control, c.number));
	push_region((uint32_t)c.number, 5);
	cr_assert_eq(regions(), 0);
	script_release(s, 0);
	script_turns(s, 10);
	cr_assert(eng_control_client_gone(s->control, c.number));
	hand_free(&c);
	script_free(s);
}

Test(engine_attach, an_old_id_does_not_detach_the_next_client_with_the_number)
{
	struct hand old, new;
	struct ctl_inbox *in = calloc(1, sizeof(*in));

	s = script_new(NULL);
	hand_attach(&old, s);
	leave(&old);
	hand_attach(&new, s);
	cr_assert_eq(eng_control_detach(s->control, old.number), -EINVAL);
	/* The message that a detach leaves behind while the control stage has no reserve. */
	in->kind = CTL_IN_DETACH;
	in->detach = (uint32_t)old.number;
	ctl_inbox_push(s->control, in);
	script_turns(s, 50);
	cr_assert_not(eng_control_client_gone(s->control, new.number));
	leave(&new);
	script_free(s);
}

Test(engine_attach, a_turn_handles_a_bounded_number_of_messages)
{
	struct hand c;

	s = script_new(NULL);
	hand_attach(&c, s);
	for (uint32_t i = 0; i < 3 * CTL_INBOX; i++) {
		struct ctl_inbox *in = calloc(1, sizeof(*in));

		in->kind = CTL_IN_REGION;
		in->region.id = (uint32_t)c.number;
		in->region.number = i + 1;
		ctl_inbox_push(s->control, in);
	}
	for (uint32_t turn = 1; turn <= 3; turn++) {
		eng_control_poll(s->control, s->now);
		cr_assert_eq(regions(), turn * CTL_INBOX);
	}
	leave(&c);
	script_free(s);
}

/* The client learns the number of its region before the control stage does, when other messages
 * wait there. */
Test(engine_attach, a_command_waits_for_the_region_that_it_names)
{
	struct hand old, c;
	struct shm_msg m = {.body.mr = {.access = RD_ACC_LOCAL_WRITE,
				    .base = 0x1000,
				    .len = 4096,
				    .nextents = 1,
				    .extents = {{.region = 5, .len = 4096}}}};

	s = script_new(NULL);
	hand_attach(&old, s);
	leave(&old);
	hand_attach(&c, s);
	m.body.mr.pd = hand_pd(&c);
	for (uint32_t i = 0; i < 20 * CTL_INBOX; i++) {
		struct ctl_inbox *in = calloc(1, sizeof(*in));

		in->kind = CTL_IN_DETACH;
		in->detach = (uint32_t)old.number;
		ctl_inbox_push(s->control, in);
	}
	put_region((uint32_t)c.number, 5);
	cr_assert_eq(hand_do(&c, &m, SHM_MR_CREATE), 0, "%s", m.body.text);
	leave(&c);
	script_free(s);
}

/* ---- Places for clients ---- */

static int
attach_as(const char *name, void **home)
{
	*home = aligned_alloc(4096, SCRIPT_HOME);
	memset(*home, 0, SCRIPT_HOME);
	return eng_control_attach_flat(s->control, name, *home, SCRIPT_HOME, SCRIPT_MEM, -1);
}

static void
two_users(struct eng_config *cfg)
{
	cfg->limits.users = 1; /* and the instance */
	cfg->limits.user_min = 25;
	cfg->limits.user_most = 0;
}

static void
most_is_half(struct eng_config *cfg)
{
	cfg->limits.user_min = 0;
	cfg->limits.user_most = 50;
}

static void
all_leave(int *id, void **home, int n)
{
	for (int i = 0; i < n; i++)
		if (id[i] >= 0)
			cr_assert_eq(eng_control_detach(s->control, id[i]), 0);
	script_turns(s, 200);
	for (int i = 0; i < n; i++)
		free(home[i]);
	script_free(s);
}

Test(engine_attach, one_user_leaves_places_for_another)
{
	void *home[SCRIPT_CLIENTS + 2];
	int id[SCRIPT_CLIENTS + 2], held = 0, n = 0;

	s = script_new(two_users);
	/* The first user has a minimum of one place; the other minimum is the instance's. */
	id[n] = attach_as("first", &home[n]);
	cr_assert_geq(id[n], 0);
	n++;
	for (int i = 0; i < SCRIPT_CLIENTS; i++) {
		id[n] = attach_as("greedy", &home[n]);
		held += id[n] >= 0;
		if (id[n] < 0)
			cr_assert_eq(id[n], -EUSERS);
		n++;
	}
	cr_assert_eq(held, 2, "%d of 4 places: one is the first user's, one the instance's", held);
	all_leave(id, home, n);
}

Test(engine_attach, no_user_has_more_places_than_the_most)
{
	void *home[3];
	int id[3];

	s = script_new(most_is_half);
	for (int i = 0; i < 3; i++)
		id[i] = attach_as("greedy", &home[i]);
	cr_assert_geq(id[1], 0);
	cr_assert_eq(id[2], -EDQUOT);
	free(home[2]);
	id[2] = attach_as("another", &home[2]);
	cr_assert_geq(id[2], 0);
	all_leave(id, home, 3);
}

/* ---- The socket ---- */

static struct served served;

/* Sends HELLO. Fills in the descriptors of the WELCOME: home region, wake, doorbell. */
static void
hello(int fd, int fds[3])
{
	struct shm_sock_msg m = {
		.magic = SHM_MAGIC, .version = SHM_VERSION, .op = SHM_HELLO, .text = "t"};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))];
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	cr_assert_eq(send(fd, &m, sizeof(m), MSG_NOSIGNAL), (ssize_t)sizeof(m));
	cr_assert_eq(recvmsg(fd, &h, 0), (ssize_t)sizeof(m));
	cr_assert_eq(m.op, SHM_WELCOME, "%s", m.text);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&h)), 3 * sizeof(int));
}

/* A message there could have descriptors that do not close. */
Test(engine_attach, a_client_cannot_send_to_the_socket_that_wakes_it)
{
	int fd, fds[3];
	char byte;

	served_start(&served);
	fd = served_dial(&served);
	hello(fd, fds);
	cr_assert_eq(send(fds[1], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL), -1);
	cr_assert_eq(errno, EPIPE);
	while (script_last(served.s, ENG_CE_CLIENT_ADD) == NULL)
		usleep(1000);
	cr_assert_eq(send(script_last(served.s, ENG_CE_CLIENT_ADD)->client->wake_fd, "x", 1, 0), 1);
	cr_assert_eq(recv(fds[1], &byte, 1, 0), 1);
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
	close(fd);
	served_end(&served);
}

/* Returns the number of descriptors in all epoll sets of this process. */
static unsigned
watched(void)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	struct dirent *e;
	char name[300], line[256];
	unsigned n = 0;

	while ((e = readdir(dir)) != NULL) {
		FILE *f;

		snprintf(name, sizeof(name), "/proc/self/fdinfo/%s", e->d_name);
		f = fopen(name, "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			n += strncmp(line, "tfd:", 4) == 0;
		if (f != NULL)
			fclose(f);
	}
	closedir(dir);
	return n;
}

static bool
all_gone(unsigned base)
{
	for (int i = 0; i < 20000; i++) {
		if (watched() == base)
			return true;
		usleep(1000);
	}
	return false;
}

/* Returns whether a doorbell would wake a loop. */
static bool
rings(void)
{
	struct epoll_event ev;

	return epoll_wait(served.s->doorbells, &ev, 1, 0) == 1;
}

Test(engine_attach, nothing_that_a_client_keeps_stays_in_the_epoll_set)
{
	static const uint64_t one = 1;
	int fd[SCRIPT_CLIENTS], kept[SCRIPT_CLIENTS][3];
	unsigned base = watched() + 2; /* the socket, and the eventfd that wakes its thread */

	served_start(&served);
	for (int i = 0; i < SCRIPT_CLIENTS; i++) {
		fd[i] = served_dial(&served);
		hello(fd[i], kept[i]);
	}
	cr_assert_eq(watched(), base + 2 * SCRIPT_CLIENTS);
	/* Each wake-up counts, although nobody reads those before it. */
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(write(kept[0][2], &one, sizeof(one)), (ssize_t)sizeof(one));
		cr_assert(rings() && !rings());
	}
	for (int i = 0; i < SCRIPT_CLIENTS; i++)
		close(fd[i]);
	cr_assert(all_gone(base), "%u descriptors are watched instead of %u", watched(), base);
	for (int i = 0; i < SCRIPT_CLIENTS; i++) {
		cr_assert_eq(write(kept[i][2], &one, sizeof(one)), (ssize_t)sizeof(one));
		cr_assert_not(rings(), "the doorbell of a client that has left wakes a loop");
		for (int k = 0; k < 3; k++)
			close(kept[i][k]);
	}
	served_end(&served);
}

Test(engine_attach, one_user_has_a_bounded_number_of_connections_without_hello)
{
	int fd[SOCK_WAITING_ONE + 1];
	struct shm_sock_msg m;

	served_start(&served);
	for (int i = 0; i <= SOCK_WAITING_ONE; i++)
		fd[i] = served_dial(&served);
	/* The socket's thread refuses the last one, and keeps the others. */
	cr_assert_eq(recv(fd[SOCK_WAITING_ONE], &m, sizeof(m), 0), (ssize_t)sizeof(m));
	cr_assert_eq(m.op, SHM_REFUSED);
	cr_assert_eq(recv(fd[SOCK_WAITING_ONE], &m, sizeof(m), 0), 0);
	for (int i = 0; i < SOCK_WAITING_ONE; i++) {
		cr_assert_eq(recv(fd[i], &m, 1, MSG_DONTWAIT), -1, "connection %d", i);
		cr_assert_eq(errno, EAGAIN);
	}
	for (int i = 0; i <= SOCK_WAITING_ONE; i++)
		close(fd[i]);
	served_end(&served);
}

Test(engine_attach, connections_without_hello_take_no_place_of_another_user)
{
	int fd[SOCK_WAITING_ONE], fds[3], status;
	pid_t child;

	if (geteuid() != 0)
		cr_skip_test("a process of another user needs root");
	served_start(&served);
	for (int i = 0; i < SOCK_WAITING_ONE; i++)
		fd[i] = served_dial(&served);
	child = fork();
	if (child == 0) {
		if (chmod(served.path, 0666) < 0 || setuid(65533) < 0)
			_exit(2);
		hello(served_dial(&served), fds);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	for (int i = 0; i < SOCK_WAITING_ONE; i++)
		close(fd[i]);
	served_end(&served);
}
