/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets over RDMA: the stream, what poll(2) shows, connections, mappings, the end of a saker. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "rsocket_fake.h"

#include "../../../drivers/verbs/rsocket/rs_priv.h"

TestSuite(rsocket, .init = rsf_reset, .fini = rsf_end, .timeout = 60);

static int fds[2]; /* [0] has connected, [1] was accepted */
static int listener;

static void
connected(void)
{
	listener = rsf_listener(AF_INET);
	rsf_connect(listener, fds);
}

static uint8_t
pattern(size_t i)
{
	return (uint8_t)(i * 2654435761u >> 11);
}

/* ---- The thread ---- */

/* Returns the set of signals, a mask, that a thread of this process blocks. 0: there is none of
 * that name. */
static uint64_t
blocked_in(const char *name)
{
	char path[300], line[256];
	DIR *dir = opendir("/proc/self/task");
	uint64_t mask = 0, n;
	struct dirent *e;

	while ((e = readdir(dir)) != NULL) {
		bool is = false;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", e->d_name);
		f = fopen(path, "re");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
			if (strncmp(line, "Name:", 5) == 0)
				is = strstr(line, name) != NULL;
			if (is && sscanf(line, "SigBlk: %lx", &n) == 1)
				mask = n;
		}
		if (f != NULL)
			fclose(f);
	}
	closedir(dir);
	return mask;
}

Test(rsocket, the_thread_takes_faults_and_no_other_signals)
{
	uint64_t mask;

	connected();
	mask = blocked_in("saker-sockets");
	cr_assert_neq(mask & 1ull << (SIGALRM - 1), 0);
	cr_assert_eq(mask & 1ull << (SIGSEGV - 1), 0, "a page that moves would end the process");
	cr_assert_eq(mask & 1ull << (SIGBUS - 1), 0);
}

static unsigned nsockets;

static void
count_socket(struct vb_rs *rs)
{
	nsockets++;
}

/* As when no saker has answered yet. */
Test(rsocket, a_socket_without_the_thread_leaves_nothing_behind)
{
	const struct rlimit few = {.rlim_cur = 64, .rlim_max = 64};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), last = -1, n;

	cr_assert_geq(fd, 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	while ((n = dup(0)) >= 0)
		last = n;
	close(last);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(vb_rs_convert(fd), EMFILE);
		cr_assert_eq(rsocket(AF_INET, SOCK_STREAM, 0), -1);
		cr_assert_eq(errno, EMFILE);
	}
	cr_assert_eq(dup(0), last, "a descriptor has leaked");
	vb_rs_each(count_socket);
	cr_assert_eq(nsockets, 0);
}

/* ---- The stream ---- */

/* Writes and reads by turns without waiting, in pieces of odd sizes. */
static void
transfer(int from, int to, size_t bytes)
{
	static uint8_t out[50000], in[7001];
	size_t sent = 0, got = 0;

	while (got < bytes) {
		size_t n = bytes - sent < sizeof(out) ? bytes - sent : sizeof(out);
		ssize_t rc;

		for (size_t i = 0; i < n; i++)
			out[i] = pattern(sent + i);
		rc = n > 0 ? rsend(from, out, n, MSG_DONTWAIT) : 0;
		cr_assert(rc >= 0 || errno == EAGAIN);
		sent += rc > 0 ? (size_t)rc : 0;
		rc = rrecv(to, in, sizeof(in), MSG_DONTWAIT);
		cr_assert(rc > 0 || errno == EAGAIN);
		for (ssize_t i = 0; i < rc; i++)
			cr_assert_eq(in[i], pattern(got + (size_t)i));
		got += rc > 0 ? (size_t)rc : 0;
	}
	cr_assert_eq(got, sent);
}

Test(rsocket, bytes_arrive_whole_and_in_order_in_both_directions)
{
	connected();
	transfer(fds[0], fds[1], 3000000);
	transfer(fds[1], fds[0], 3000000);
	cr_assert_eq(rsf.overruns, 0);
}

Test(rsocket, a_sender_stops_when_its_peer_does_not_read_and_goes_on_when_it_does)
{
	static uint8_t bytes[100000], back[100000];
	size_t sent = 0, got = 0;
	ssize_t n;

	connected();
	memset(bytes, 'x', sizeof(bytes));
	while ((n = rsend(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	cr_assert_eq(errno, EAGAIN);
	cr_assert_leq(sent, 2 * RS_SLOTS * RS_SLOT);
	cr_assert_eq(rsf_poll(fds[0]) & POLLOUT, 0);
	cr_assert_eq(rsf.sends, RS_SLOTS, "one Send for each receive of the peer");
	while (got < sent) {
		n = rrecv(fds[1], back, sizeof(back), 0);
		cr_assert_gt(n, 0);
		got += (size_t)n;
	}
	rsf_until((rsf_poll(fds[0]) & POLLOUT) != 0);
	cr_assert_eq(rsf.overruns, 0);
}

Test(rsocket, small_writes_that_wait_for_credits_share_a_message)
{
	char back[4000];
	size_t got = 0;

	connected();
	for (unsigned i = 0; i < 4000; i++)
		cr_assert_eq(rsend(fds[0], "a", 1, MSG_DONTWAIT), 1);
	cr_assert_eq(rsf.sends, RS_SLOTS);
	while (got < sizeof(back))
		got += (size_t)rrecv(fds[1], back + got, sizeof(back) - got, 0);
	cr_assert_lt(rsf.sends, 2 * RS_SLOTS);
	cr_assert_eq(rsf.overruns, 0);
}

Test(rsocket, peeked_bytes_stay_and_waitall_fills_the_buffer)
{
	char a[16] = {0}, b[8] = {0};
	struct iovec v[2] = {{a, 4}, {b, 8}};

	connected();
	cr_assert_eq(rwrite(fds[0], "hello ", 6), 6);
	cr_assert_eq(rwrite(fds[0], "world!", 6), 6);
	cr_assert_eq(rrecv(fds[1], a, 12, MSG_PEEK), 12);
	cr_assert_arr_eq(a, "hello world!", 12);
	cr_assert_eq(rreadv(fds[1], v, 2), 12);
	cr_assert_arr_eq(b, "o world!", 8);
	cr_assert_eq(rwrite(fds[0], "12", 2), 2);
	cr_assert_eq(rwrite(fds[0], "34", 2), 2);
	cr_assert_eq(rrecv(fds[1], a, 4, MSG_WAITALL), 4);
	cr_assert_arr_eq(a, "1234", 4);
}

Test(rsocket, msg_trunc_discards_the_bytes_and_needs_no_buffer_tcp_7)
{
	char bytes[8] = "........";
	struct iovec v[2] = {{bytes, 3}, {bytes + 3, 2}};
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};

	connected();
	cr_assert_eq(rwrite(fds[0], "abcd", 4), 4);
	cr_assert_eq(rwrite(fds[0], "efghij", 6), 6);
	cr_assert_eq(rrecv(fds[1], NULL, 5, MSG_PEEK | MSG_TRUNC), 5);
	cr_assert_eq(rrecv(fds[1], NULL, 2, MSG_TRUNC), 2);
	cr_assert_eq(rrecvmsg(fds[1], &msg, MSG_TRUNC | MSG_WAITALL), 5);
	cr_assert_arr_eq(bytes, "........", 8);
	cr_assert_eq(rrecv(fds[1], bytes, sizeof(bytes), 0), 3);
	cr_assert_arr_eq(bytes, "hij.....", 8);
	cr_assert_eq(rrecv(fds[1], NULL, 1, MSG_TRUNC | MSG_DONTWAIT), -1);
	cr_assert_eq(errno, EAGAIN);
}

Test(rsocket, discarded_bytes_give_their_credits_back)
{
	const size_t all = 1000000;
	size_t sent = 0, got = 0;
	ssize_t n;

	connected();
	while (got < all) {
		static uint8_t bytes[20000];
		size_t left = all - sent < sizeof(bytes) ? all - sent : sizeof(bytes);

		n = rsend(fds[0], bytes, left, MSG_DONTWAIT);
		sent += n > 0 ? (size_t)n : 0;
		n = rrecv(fds[1], NULL, 7001, MSG_TRUNC | MSG_DONTWAIT);
		got += n > 0 ? (size_t)n : 0;
	}
	cr_assert_eq(sent, all);
	cr_assert_eq(rsf.overruns, 0);
}

Test(rsocket, a_shut_direction_ends_and_the_other_goes_on)
{
	char c;

	connected();
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rshutdown(fds[0], SHUT_WR), 0);
	cr_assert_eq(rwrite(fds[0], "y", 1), -1);
	cr_assert_eq(errno, EPIPE);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), 0);
	cr_assert_eq(rwrite(fds[1], "z", 1), 1);
	cr_assert_eq(rread(fds[0], &c, 1), 1);
	cr_assert_eq(c, 'z');
}

Test(rsocket, a_closed_socket_sends_what_was_written_and_then_disconnects)
{
	static uint8_t bytes[400000];
	char back[5000];
	size_t got = 0;
	ssize_t n, sent;

	connected();
	sent = rsend(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	sent += rsend(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	cr_assert_gt(sent, RS_SLOTS * RS_SLOT, "some of it waits for credits");
	cr_assert_eq(rclose(fds[0]), 0);
	cr_assert_eq(fake.disconnects, 0);
	while ((n = rread(fds[1], back, sizeof(back))) > 0)
		got += (size_t)n;
	cr_assert_eq(n, 0);
	cr_assert_eq(got, (size_t)sent);
	rsf_until(*(volatile unsigned *)&fake.disconnects == 1);
	cr_assert_not(fake.abortive);
}

Test(rsocket, close_waits_no_longer_than_so_linger_and_the_bytes_arrive_socket_7)
{
	const struct linger second = {.l_onoff = 1, .l_linger = 1};
	static uint8_t bytes[400000], back[400000];
	ssize_t sent;

	connected();
	cr_assert_eq(rsetsockopt(fds[0], SOL_SOCKET, SO_LINGER, &second, sizeof(second)), 0);
	sent = rsend(fds[0], bytes, sizeof(bytes), MSG_DONTWAIT);
	cr_assert_gt(sent, 0);
	cr_assert_eq(rclose(fds[0]), 0, "the peer does not read");
	cr_assert_eq(rrecv(fds[1], back, (size_t)sent, MSG_WAITALL), sent);
	cr_assert_eq(rread(fds[1], back, 1), 0);
}

static void *
reads(void *arg)
{
	char c;

	return rread(*(int *)arg, &c, 1) <= 0 ? NULL : arg;
}

Test(rsocket, a_thread_that_reads_ends_when_another_one_closes)
{
	struct vb_rs *rs;
	pthread_t thread;
	void *wrong;
	char c;

	connected();
	rs = vb_rs_get(fds[0]);
	cr_assert_eq(pthread_create(&thread, NULL, reads, &fds[0]), 0);
	rsf_until(__atomic_load_n(&rs->waiting, __ATOMIC_RELAXED) == 1);
	usleep(10000);
	cr_assert_eq(rclose(fds[0]), 0);
	cr_assert_eq(pthread_join(thread, &wrong), 0);
	cr_assert_null(wrong);
	cr_assert_eq(rread(fds[1], &c, 1), 0);
	vb_rs_put(rs);
}

static volatile sig_atomic_t handled;

static void
on_signal(int sig)
{
	handled++;
}

/* Returns whether a read returns what the peer writes after a signal. */
static bool
read_goes_on(int flags)
{
	const struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};
	struct vb_rs *rs = vb_rs_get(fds[0]);
	pthread_t thread;
	void *got;

	handled = 0;
	cr_assert_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	cr_assert_eq(pthread_create(&thread, NULL, reads, &fds[0]), 0);
	rsf_until(__atomic_load_n(&rs->waiting, __ATOMIC_RELAXED) == 1);
	usleep(10000);
	cr_assert_eq(pthread_kill(thread, SIGUSR1), 0);
	rsf_until(handled == 1);
	usleep(10000);
	cr_assert_eq(rwrite(fds[1], "x", 1), 1);
	cr_assert_eq(pthread_join(thread, &got), 0);
	vb_rs_put(rs);
	return got != NULL;
}

Test(rsocket, a_read_goes_on_after_a_handler_with_SA_RESTART_and_no_other)
{
	connected();
	cr_assert(read_goes_on(SA_RESTART));
	cr_assert_not(read_goes_on(0));
}

/* A thread that pthread_cancel(3) has marked ends at its next point of cancellation. */
static void *
cancelled_uses(void *arg)
{
	char c;

	pthread_cancel(pthread_self());
	rwrite(fds[0], "x", 1);
	rrecv(fds[1], &c, 1, MSG_DONTWAIT);
	rgetpeername(fds[0], NULL, NULL);
	rclose(rsocket(AF_INET, SOCK_STREAM, 0));
	rclose(listener);
	rclose(rsf_listener(AF_INET));
	pthread_testcancel();
	return NULL;
}

Test(rsocket, a_thread_that_is_cancelled_holds_no_lock_and_no_socket)
{
	struct vb_rs *rs;
	pthread_t thread;
	uint32_t refs;
	void *end;

	connected();
	rs = vb_rs_get(fds[0]);
	refs = rs->refs;
	cr_assert_eq(pthread_create(&thread, NULL, reads, &fds[0]), 0);
	rsf_until(__atomic_load_n(&rs->waiting, __ATOMIC_RELAXED) == 1);
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(rs->refs, refs);
	cr_assert_eq(rs->waiting, 0);
	cr_assert_eq(pthread_create(&thread, NULL, cancelled_uses, NULL), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(rs->refs, refs);
	transfer(fds[0], fds[1], 100000);
	vb_rs_put(rs);
}

static void *
cancelled_closes(void *arg)
{
	pthread_cancel(pthread_self());
	rclose(*(int *)arg);
	pthread_testcancel();
	return NULL;
}

Test(rsocket, a_thread_that_is_cancelled_closes_its_socket_to_the_end)
{
	struct vb_rs *rs;
	pthread_t thread;
	void *end;

	connected();
	rs = vb_rs_get(fds[0]);
	cr_assert_eq(pthread_create(&thread, NULL, cancelled_closes, &fds[0]), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(rs->refs, 2, "those of the test and of the list");
	vb_rs_put(rs);
}

Test(rsocket, the_connection_lasts_as_long_as_one_of_its_descriptors)
{
	char c = 0;
	int other;

	connected();
	other = rfcntl(fds[1], F_DUPFD, 0);
	cr_assert_geq(other, 0);
	cr_assert_eq(rclose(fds[1]), 0);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rread(other, &c, 1), 1);
	cr_assert_eq(c, 'x');
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EBADF);
}

/* ---- A peer that breaks the rules ---- */

static void
breaks(uint8_t type, uint16_t credits, uint32_t len, const void *content, uint32_t bytes)
{
	struct {
		struct rs_hdr h;
		uint8_t content[64];
	} m = {.h = {.type = type, .credits = htons(credits), .len = htonl(len)}};
	char c;

	connected();
	memcpy(m.content, content, bytes);
	rsf_inject(1, &m, (uint32_t)sizeof(m.h) + bytes);
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EPROTO);
	cr_assert_eq(rwrite(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EPIPE);
	cr_assert_eq(fake.disconnects, 1);
}

Test(rsocket, more_credits_than_receives_end_the_connection)
{
	breaks(RS_CREDIT, 1, 0, "", 0);
}

Test(rsocket, a_length_that_is_not_the_message_s_ends_the_connection)
{
	breaks(RS_DATA, 0, 9, "12345678", 8);
}

Test(rsocket, a_message_without_data_ends_the_connection)
{
	breaks(RS_DATA, 0, 0, "", 0);
}

Test(rsocket, an_unknown_message_ends_the_connection)
{
	breaks(77, 0, 0, "", 0);
}

Test(rsocket, a_mapping_beyond_the_permitted_number_ends_the_connection)
{
	struct rs_map_msg m = {.len = htobe64(1)};

	breaks(RS_MAP, 0, sizeof(m), &m, sizeof(m));
}

Test(rsocket, the_end_of_a_mapping_that_does_not_exist_ends_the_connection)
{
	struct rs_map_msg m = {.len = htobe64(1)};

	breaks(RS_UNMAP, 0, sizeof(m), &m, sizeof(m));
}

/* ---- What poll(2) and epoll(7) show ---- */

Test(rsocket, poll_shows_data_and_its_end)
{
	char c;

	connected();
	cr_assert_eq(rsf_poll(fds[1]), POLLOUT);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	rsf_until(rsf_poll(fds[1]) == (POLLIN | POLLOUT));
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rsf_poll(fds[1]), POLLOUT);
	cr_assert_eq(rshutdown(fds[0], SHUT_WR), 0);
	rsf_until(rsf_poll(fds[1]) == (POLLIN | POLLOUT | POLLRDHUP));
	cr_assert_eq(rread(fds[1], &c, 1), 0);
}

Test(rsocket, a_peer_that_has_closed_in_order_hangs_up_when_this_side_ends_too)
{
	char c;

	connected();
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rclose(fds[0]), 0);
	rsf_until(*(volatile unsigned *)&fake.disconnects == 1);
	fake_qp_event(rsf_qp(1), SAKER_EV_DISCONNECTED, 0);
	rsf_until(rwrite(fds[1], "y", 1) == -1 && errno == EPIPE);
	cr_assert_eq(rsf_poll(fds[1]), POLLIN | POLLOUT | POLLRDHUP, "there is data to read");
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), 0);
	cr_assert_eq(rshutdown(fds[1], SHUT_WR), 0);
	rsf_until((rsf_poll(fds[1]) & POLLHUP) != 0);
}

Test(rsocket, an_edge_comes_for_each_arrival_after_the_socket_was_empty)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(0);
	char c;

	connected();
	cr_assert_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], &ev), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(epoll_wait(ep, &ev, 1, 0), 0);
		cr_assert_eq(rwrite(fds[0], "x", 1), 1);
		cr_assert_eq(epoll_wait(ep, &ev, 1, 60000), 1);
		cr_assert_eq(rread(fds[1], &c, 1), 1);
	}
}

Test(rsocket, a_lost_connection_gives_what_came_before_and_then_the_error_once)
{
	char c;

	connected();
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	fake_qp_event(rsf_qp(1), SAKER_EV_DISCONNECTED, 0);
	rsf_until((rsf_poll(fds[1]) & POLLHUP) != 0);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, ECONNRESET);
	cr_assert_eq(rread(fds[1], &c, 1), 0);
}

Test(rsocket, a_call_waits_no_longer_than_the_time_limit)
{
	struct timeval tv = {.tv_usec = 20000};
	char c;

	connected();
	cr_assert_eq(rsetsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EAGAIN);
}

/* ---- Ports ---- */

static void
binds(const char *text, uint16_t port)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in in;

	memcpy(&in, fake_addr(text, port), sizeof(in));
	cr_assert_geq(fd, 0);
	cr_assert_eq(rbind(fd, (struct sockaddr *)&in, sizeof(in)), 0, "%s", strerror(errno));
	cr_assert_eq(rclose(fd), 0);
}

/* Makes connections that end as soon as the thread comes to them, each of which takes 2 ms. */
static void
streams_that_end(int streams[], unsigned n)
{
	const struct linger now = {.l_onoff = 1};

	for (unsigned i = 0; i < n; i++) {
		rsf_connect(listener, fds);
		streams[i] = fds[0];
		cr_assert_eq(rsetsockopt(fds[0], SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	}
	fake.destroy_us = 2000;
}

Test(rsocket, a_port_is_free_when_close_of_its_listener_returns_although_streams_end_before_it)
{
	int streams[16];

	listener = rsf_listener(AF_INET);
	streams_that_end(streams, 16);
	for (int i = 0; i < 16; i++)
		cr_assert_eq(rclose(streams[i]), 0);
	cr_assert_eq(rclose(listener), 0);
	binds("192.0.2.1", 7471);
	binds("192.0.2.1", 7471);
	rsf_until(*(volatile int *)&fake.qps == 16);
}

Test(rsocket, a_port_is_free_when_close_of_a_listener_that_was_shut_down_returns)
{
	int streams[4];

	listener = rsf_listener(AF_INET);
	streams_that_end(streams, 4);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(rclose(streams[i]), 0);
	cr_assert_eq(rshutdown(listener, SHUT_RDWR), 0);
	cr_assert_eq(rclose(listener), 0);
	binds("192.0.2.1", 7471);
}

/* As in a signal handler that has interrupted its thread within a call. */
Test(rsocket, close_of_a_listener_returns_although_the_thread_waits_for_a_lock_of_the_caller)
{
	struct vb_rs *rs;

	connected();
	rs = vb_rs_get(fds[1]);
	pthread_mutex_lock(&rs->lock);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1, "the thread serves the other end");
	cr_assert_eq(rclose(listener), 0);
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
}

/* ---- Connections ---- */

static int
so_error(int fd)
{
	int err = -1;
	socklen_t len = sizeof(err);

	cr_assert_eq(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
	return err;
}

Test(rsocket, a_socket_that_connects_is_writable_when_the_outcome_is_there)
{
	int fd = rsf_connecting();

	cr_assert_eq(rsf_poll(fd), 0);
	fake_qp_event(rsf_qp(0), SAKER_EV_REJECTED, 0);
	rsf_until(rsf_poll(fd) == (POLLIN | POLLOUT));
	cr_assert_eq(so_error(fd), ECONNREFUSED);
	cr_assert_eq(so_error(fd), 0);
	cr_assert_eq(rsf_poll(fd), POLLOUT);
}

static struct sockaddr_in
peer_address(void)
{
	struct sockaddr_in in;

	memcpy(&in, fake_addr("192.0.2.9", 7471), sizeof(in));
	return in;
}

static int
connects(int fd)
{
	const struct sockaddr_in in = peer_address();

	return rconnect(fd, (const struct sockaddr *)&in, sizeof(in)) == 0 ? 0 : errno;
}

static void *
connects_in_thread(void *arg)
{
	return (void *)(intptr_t)connects(*(int *)arg);
}

/* Calls rconnect(), which waits, and raises the event. Returns the errno of rconnect(). */
static int
connect_that_ends(int fd, enum saker_event_type type, int status)
{
	struct vb_rs *rs = vb_rs_get(fd);
	pthread_t thread;
	void *err;

	cr_assert_eq(pthread_create(&thread, NULL, connects_in_thread, &fd), 0);
	rsf_until(__atomic_load_n(&rs->waiting, __ATOMIC_RELAXED) == 1);
	fake_qp_event(rs->id->qp, type, status);
	cr_assert_eq(pthread_join(thread, &err), 0);
	vb_rs_put(rs);
	return (int)(intptr_t)err;
}

/* Connects a socket to a new listener, and carries bytes both ways. */
static void
connects_now(int fd)
{
	cr_assert_eq(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
	listener = rsf_listener(AF_INET);
	rsf_connect_to_listener(fd);
	fds[0] = fd;
	fds[1] = raccept(listener, NULL, NULL);
	cr_assert_geq(fds[1], 0);
	transfer(fds[0], fds[1], 100000);
	transfer(fds[1], fds[0], 100000);
}

/* Programs repeat connect(2) until the server listens. */
Test(rsocket, a_socket_that_was_refused_connects_when_the_server_listens)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect_that_ends(fd, SAKER_EV_REJECTED, 0), ECONNREFUSED);
	cr_assert_eq(connect_that_ends(fd, SAKER_EV_UNREACHABLE, -ETIMEDOUT), ETIMEDOUT);
	cr_assert_eq(connect_that_ends(fd, SAKER_EV_DISCONNECTED, 0), ECONNRESET);
	cr_assert_eq(so_error(fd), 0);
	connects_now(fd);
}

Test(rsocket, a_socket_that_does_not_block_gets_the_error_of_an_attempt_once)
{
	int fd = rsf_connecting();
	char c;

	fake_qp_event(rsf_qp(0), SAKER_EV_REJECTED, 0);
	rsf_until(rsf_poll(fd) == (POLLIN | POLLOUT));
	cr_assert_eq(connects(fd), ECONNREFUSED);
	cr_assert_eq(rsf_poll(fd), POLLOUT);
	cr_assert_eq(connects(fd), EINPROGRESS);
	cr_assert_eq(rsf_poll(fd), 0);
	fake_qp_event(rsf_qp(1), SAKER_EV_REJECTED, 0);
	rsf_until(rsf_poll(fd) == (POLLIN | POLLOUT));
	cr_assert_eq(rread(fd, &c, 1), -1);
	cr_assert_eq(errno, ECONNREFUSED);
	cr_assert_eq(rread(fd, &c, 1), -1);
	cr_assert_eq(errno, ENOTCONN);
	connects_now(fd);
}

Test(rsocket, a_socket_that_was_refused_keeps_the_port_to_which_it_is_bound)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0), other = rsocket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in in, name;
	socklen_t len = sizeof(name);

	memcpy(&in, fake_addr("192.0.2.1", 7500), sizeof(in));
	cr_assert_eq(rbind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(connect_that_ends(fd, SAKER_EV_REJECTED, 0), ECONNREFUSED);
	cr_assert_eq(rgetsockname(fd, (struct sockaddr *)&name, &len), 0);
	cr_assert_eq(name.sin_port, in.sin_port);
	cr_assert_eq(name.sin_addr.s_addr, in.sin_addr.s_addr);
	cr_assert_eq(rbind(other, (struct sockaddr *)&in, sizeof(in)), -1);
	cr_assert_eq(errno, EADDRINUSE);
	connects_now(fd);
}

/* The event that reports the same failure comes later. */
Test(rsocket, a_bound_socket_outlives_a_failure_to_resolve_an_address)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(7500)};
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	fake.no_falcon = true;
	cr_assert_eq(rbind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	setenv("SAKER_DEVICE", "falcon", 1);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(connects(fd), ENETUNREACH);
		/* The thread has received the event before it destroys a socket. */
		binds("0.0.0.0", 7501);
	}
	unsetenv("SAKER_DEVICE");
	cr_assert_eq(so_error(fd), 0);
	connects_now(fd);
}

Test(rsocket, a_peer_that_is_no_socket_of_saker_is_refused_on_both_sides)
{
	int fd = rsf_connecting();

	listener = rsf_listener(AF_INET);
	rsf_request("hello", 5);
	rsf_until(*(volatile unsigned *)&fake.rejects == 1);
	rsf_established(0, "world", 5);
	rsf_until((rsf_poll(fd) & POLLOUT) != 0);
	cr_assert_eq(so_error(fd), EPROTO);
	rclose(listener);
	connects_now(fd);
}

Test(rsocket, a_listener_is_readable_while_a_connection_waits)
{
	listener = rsf_listener(AF_INET);
	cr_assert_eq(rsf_poll(listener) & POLLIN, 0);
	rsf_connect(listener, fds);
	cr_assert_eq(rsf_poll(listener) & POLLIN, 0);
	cr_assert_eq(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	cr_assert_eq(raccept(listener, NULL, NULL), -1);
	cr_assert_eq(errno, EAGAIN);
}

static bool
is_readable(int fd)
{
	return (rsf_poll(fd) & POLLIN) != 0;
}

/* Accepts without waiting, while descriptors have numbers below `limit`. */
static int
accept_below(rlim_t limit)
{
	struct rlimit old, low;
	int fd, err;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){.rlim_cur = limit, .rlim_max = old.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	fd = raccept(listener, NULL, NULL);
	err = errno;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	errno = err;
	return fd;
}

/* As with accept(2): a server closes a descriptor and accepts again. */
Test(rsocket, a_connection_waits_until_there_is_a_descriptor_for_it)
{
	unsigned failures = 0;

	listener = rsf_listener(AF_INET);
	fds[0] = rsf_waiting();
	rsf_until(is_readable(listener));
	cr_assert_eq(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
	/* The limit rises until each of the descriptors that a socket has finds a number. */
	while ((fds[1] = accept_below(1 + failures)) < 0) {
		cr_assert_eq(errno, EMFILE, "%s", strerror(errno));
		cr_assert(is_readable(listener));
		failures++;
	}
	cr_assert_gt(failures, 0);
	cr_assert_not(is_readable(listener));
	transfer(fds[0], fds[1], 100000);
}

Test(rsocket, calls_in_a_wrong_state_fail_as_those_of_tcp)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	memcpy(&in, fake_addr("192.0.2.9", 7471), sizeof(in));
	connected();
	cr_assert_eq(rbind(fds[0], (struct sockaddr *)&in, len), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(rlisten(fds[0], 1), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(raccept(fds[0], NULL, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(rconnect(fds[0], (struct sockaddr *)&in, len), -1);
	cr_assert_eq(errno, EISCONN);
	cr_assert_eq(rconnect(listener, (struct sockaddr *)&in, len), -1);
	cr_assert_eq(errno, EISCONN);
}

Test(rsocket, a_socket_that_was_refused_has_no_peer)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);
	int fd = rsf_connecting();
	struct vb_rs *rs = vb_rs_get(fd);

	memcpy(&in, fake_addr("192.0.2.9", 7471), sizeof(in));
	cr_assert_eq(rconnect(fd, (struct sockaddr *)&in, len), -1);
	cr_assert_eq(errno, EALREADY);
	cr_assert_eq(raccept(fd, NULL, NULL), -1);
	cr_assert_eq(errno, EINVAL);
	fake_qp_event(rs->id->qp, SAKER_EV_REJECTED, 0);
	rsf_until((rsf_poll(fd) & POLLOUT) != 0);
	cr_assert_eq(so_error(fd), ECONNREFUSED);
	cr_assert_eq(rgetpeername(fd, (struct sockaddr *)&in, &len), -1);
	cr_assert_eq(errno, ENOTCONN);
	vb_rs_put(rs);
}

static void *
accepts(void *arg)
{
	return raccept(listener, NULL, NULL) == -1 && errno == EINVAL ? NULL : arg;
}

Test(rsocket, a_listener_that_is_shut_down_wakes_the_thread_that_accepts)
{
	struct vb_rs *rs;
	pthread_t thread;
	void *wrong;

	listener = rsf_listener(AF_INET);
	rs = vb_rs_get(listener);
	cr_assert_eq(rshutdown(listener, SHUT_WR), 0, "no effect");
	cr_assert_eq(pthread_create(&thread, NULL, accepts, &listener), 0);
	rsf_until(__atomic_load_n(&rs->waiting, __ATOMIC_RELAXED) == 1);
	cr_assert_eq(rshutdown(listener, SHUT_RD), 0);
	cr_assert_eq(pthread_join(thread, &wrong), 0);
	cr_assert_null(wrong);
	cr_assert_eq(rclose(listener), 0);
	vb_rs_put(rs);
}

Test(rsocket, names_have_the_family_of_the_socket)
{
	struct sockaddr_in6 a;
	struct sockaddr_in in;
	socklen_t len = sizeof(a);
	char text[64];

	listener = rsf_listener(AF_INET6);
	rsf_connect(listener, fds);
	cr_assert_eq(rgetpeername(fds[1], (struct sockaddr *)&a, &len), 0);
	cr_assert_eq(len, sizeof(a));
	cr_assert_str_eq(inet_ntop(AF_INET6, &a.sin6_addr, text, sizeof(text)), "::ffff:192.0.2.9");
	cr_assert_eq(ntohs(a.sin6_port), 4444);
	len = sizeof(in);
	cr_assert_eq(rgetpeername(fds[0], (struct sockaddr *)&in, &len), 0);
	cr_assert_eq(in.sin_family, AF_INET);
	cr_assert_eq(ntohs(in.sin_port), 7471);
}

Test(rsocket, a_socket_is_a_stream_of_ip)
{
	cr_assert_eq(rsocket(AF_INET, SOCK_DGRAM, 0), -1);
	cr_assert_eq(errno, EPROTONOSUPPORT);
	cr_assert_eq(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
	cr_assert_eq(errno, EAFNOSUPPORT);
}

Test(rsocket, options_are_kept_and_sizes_apply_to_the_next_connection)
{
	int v = 1, fd = rsocket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(v);

	cr_assert_eq(rsetsockopt(fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &v, sizeof(v)), 0);
	v = 0;
	cr_assert_eq(rgetsockopt(fd, IPPROTO_TCP, 1, &v, &len), 0);
	cr_assert_eq(v, 1);
	v = 64;
	cr_assert_eq(rsetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &v, sizeof(v)), 0);
	v = 0;
	cr_assert_eq(rgetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &v, &len), 0);
	cr_assert_eq(v, 64);
	cr_assert_eq(rsetsockopt(fd, SOL_RDMA, 99, &v, sizeof(v)), -1);
	cr_assert_eq(errno, ENOPROTOOPT);
}

/* ---- Mappings ---- */

Test(rsocket, a_write_goes_to_the_offset_of_the_mapping_of_the_peer)
{
	static uint8_t memory[30000], bytes[20000];
	int v = 2;
	char c;

	listener = rsf_listener(AF_INET);
	cr_assert_eq(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &v, sizeof(v)), 0);
	rsf_connect(listener, fds);
	memset(bytes, 'b', sizeof(bytes));
	cr_assert_eq(riomap(fds[0], memory, sizeof(memory), PROT_WRITE, 0, 1000), 1000);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(riowrite(fds[1], bytes, sizeof(bytes), 1000 + 5000, 0), sizeof(bytes));
	cr_assert_eq(memory[4999], 0);
	cr_assert_arr_eq(memory + 5000, bytes, sizeof(bytes));
	cr_assert_eq(memory[25000], 0);
	cr_assert_eq(riowrite(fds[1], bytes, 1, 31000, 0), (size_t)-1);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(riounmap(fds[0], memory, sizeof(memory)), 0);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(riowrite(fds[1], bytes, 1, 1000, 0), (size_t)-1);
	cr_assert_eq(rsf.writes, (sizeof(bytes) + RS_SLOT - 1) / RS_SLOT, "no refused write");
}

Test(rsocket, a_mapping_may_end_after_its_connection)
{
	static uint8_t memory[1000];
	int v = 1;

	listener = rsf_listener(AF_INET);
	cr_assert_eq(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &v, sizeof(v)), 0);
	rsf_connect(listener, fds);
	cr_assert_eq(riomap(fds[0], memory, sizeof(memory), PROT_WRITE, 0, 0), 0);
	fake_qp_event(rsf_qp(0), SAKER_EV_DISCONNECTED, 0);
	rsf_until((rsf_poll(fds[0]) & POLLHUP) != 0);
	cr_assert_eq(riounmap(fds[0], memory, sizeof(memory)), 0);
	cr_assert_eq(riounmap(fds[0], memory, sizeof(memory)), -1);
	cr_assert_eq(errno, EINVAL);
}

Test(rsocket, mappings_have_offsets_of_their_own_and_a_limit)
{
	static uint8_t memory[3][1000];
	int v = 2;

	listener = rsf_listener(AF_INET);
	cr_assert_eq(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &v, sizeof(v)), 0);
	rsf_connect(listener, fds);
	cr_assert_eq(riomap(fds[0], memory[0], 1000, PROT_WRITE, 0, -1), 0);
	cr_assert_eq(riomap(fds[0], memory[1], 1000, PROT_WRITE, 0, 999), -1);
	cr_assert_eq(errno, EEXIST);
	cr_assert_eq(riomap(fds[0], memory[1], 1000, PROT_WRITE, 0, -1), 1000);
	cr_assert_eq(riomap(fds[0], memory[2], 1000, PROT_WRITE, 0, -1), -1);
	cr_assert_eq(errno, ENOSPC);
}

/* ---- The end of a saker ---- */

/* Each saker has devices of its own, so that there are more of them than transports. */
Test(rsocket, a_listener_serves_connections_at_each_next_saker)
{
	listener = rsf_listener(AF_INET6);
	for (unsigned sakers = 1; sakers <= VB_NKINDS + 1; sakers++) {
		if (sakers > 1)
			rsf_restart();
		rsf_connect(listener, fds);
		transfer(fds[0], fds[1], 100000);
		vb_rs_put(rsf_destroyed(fds[0]));
		vb_rs_put(rsf_destroyed(fds[1]));
	}
	cr_assert_eq(fake.channels, 1);
}

Test(rsocket, a_completion_channel_that_cannot_be_watched_is_destroyed)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	fake.channels_unwatchable = true;
	cr_assert_eq(connects(fd), EBADF);
	cr_assert_eq(fake.channels, 0);
	fake.channels_unwatchable = false;
	connects_now(fd);
	cr_assert_eq(fake.channels, 1);
}

/* A listener at one address ends with the saker, as the connections do that wait at it. */
Test(rsocket, the_connections_that_wait_at_a_removed_listener_are_destroyed_with_it)
{
	listener = rsf_listener(AF_INET);
	fds[0] = rsf_waiting();
	rsf_until(is_readable(listener));
	fake_restart(-1);
	rsf_until((rsf_poll(listener) & POLLHUP) != 0);
	cr_assert_eq(fake.qps, 2);
	cr_assert_eq(rclose(fds[0]), 0);
	cr_assert_eq(rclose(listener), 0);
	rsf_until(*(volatile int *)&fake.qps == 0);
}
