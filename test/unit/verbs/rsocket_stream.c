/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets over RDMA: the thread, the stream, what poll(2) shows, mappings. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "rsocket_fake.h"

#include "../../../drivers/verbs/rsocket/rs_priv.h"

TestSuite(rsocket_stream, .init = rsf_reset, .fini = rsf_end, .timeout = 60);

static int fds[2]; /* [0] has connected, [1] was accepted */
static int listener;

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

Test(rsocket_stream, the_thread_takes_faults_and_no_other_signals)
{
	uint64_t mask;

	listener = rsf_pair(fds);
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
Test(rsocket_stream, a_socket_without_the_thread_leaves_nothing_behind)
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

Test(rsocket_stream, bytes_arrive_whole_and_in_order_in_both_directions)
{
	listener = rsf_pair(fds);
	rsf_transfer(fds[0], fds[1], 3000000);
	rsf_transfer(fds[1], fds[0], 3000000);
	cr_assert_eq(rsf.overruns, 0);
}

Test(rsocket_stream, a_sender_stops_when_its_peer_does_not_read_and_goes_on_when_it_does)
{
	static uint8_t bytes[100000], back[100000];
	size_t sent = 0, got = 0;
	ssize_t n;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, small_writes_that_wait_for_credits_share_a_message)
{
	char back[4000];
	size_t got = 0;

	listener = rsf_pair(fds);
	for (unsigned i = 0; i < 4000; i++)
		cr_assert_eq(rsend(fds[0], "a", 1, MSG_DONTWAIT), 1);
	cr_assert_eq(rsf.sends, RS_SLOTS);
	while (got < sizeof(back))
		got += (size_t)rrecv(fds[1], back + got, sizeof(back) - got, 0);
	cr_assert_lt(rsf.sends, 2 * RS_SLOTS);
	cr_assert_eq(rsf.overruns, 0);
}

Test(rsocket_stream, peeked_bytes_stay_and_waitall_fills_the_buffer)
{
	char a[16] = {0}, b[8] = {0};
	struct iovec v[2] = {{a, 4}, {b, 8}};

	listener = rsf_pair(fds);
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

Test(rsocket_stream, msg_trunc_discards_the_bytes_and_needs_no_buffer_tcp_7)
{
	char bytes[8] = "........";
	struct iovec v[2] = {{bytes, 3}, {bytes + 3, 2}};
	struct msghdr msg = {.msg_iov = v, .msg_iovlen = 2};

	listener = rsf_pair(fds);
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

Test(rsocket_stream, discarded_bytes_give_their_credits_back)
{
	const size_t all = 1000000;
	size_t sent = 0, got = 0;
	ssize_t n;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, a_shut_direction_ends_and_the_other_goes_on)
{
	char c;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, a_closed_socket_sends_what_was_written_and_then_disconnects)
{
	static uint8_t bytes[400000];
	char back[5000];
	size_t got = 0;
	ssize_t n, sent;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, close_waits_no_longer_than_so_linger_and_the_bytes_arrive_socket_7)
{
	const struct linger second = {.l_onoff = 1, .l_linger = 1};
	static uint8_t bytes[400000], back[400000];
	ssize_t sent;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, a_thread_that_reads_ends_when_another_one_closes)
{
	struct vb_rs *rs;
	pthread_t thread;
	void *wrong;
	char c;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, a_read_goes_on_after_a_handler_with_SA_RESTART_and_no_other)
{
	listener = rsf_pair(fds);
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

Test(rsocket_stream, a_thread_that_is_cancelled_holds_no_lock_and_no_socket)
{
	struct vb_rs *rs;
	pthread_t thread;
	uint32_t refs;
	void *end;

	listener = rsf_pair(fds);
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
	rsf_transfer(fds[0], fds[1], 100000);
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

Test(rsocket_stream, a_thread_that_is_cancelled_closes_its_socket_to_the_end)
{
	struct vb_rs *rs;
	pthread_t thread;
	void *end;

	listener = rsf_pair(fds);
	rs = vb_rs_get(fds[0]);
	cr_assert_eq(pthread_create(&thread, NULL, cancelled_closes, &fds[0]), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(rs->refs, 2, "those of the test and of the list");
	vb_rs_put(rs);
}

Test(rsocket_stream, the_connection_lasts_as_long_as_one_of_its_descriptors)
{
	char c = 0;
	int other;

	listener = rsf_pair(fds);
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

	listener = rsf_pair(fds);
	memcpy(m.content, content, bytes);
	rsf_inject(1, &m, (uint32_t)sizeof(m.h) + bytes);
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EPROTO);
	cr_assert_eq(rwrite(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EPIPE);
	cr_assert_eq(fake.disconnects, 1);
}

Test(rsocket_stream, more_credits_than_receives_end_the_connection)
{
	breaks(RS_CREDIT, 1, 0, "", 0);
}

Test(rsocket_stream, a_length_that_is_not_the_message_s_ends_the_connection)
{
	breaks(RS_DATA, 0, 9, "12345678", 8);
}

Test(rsocket_stream, a_message_without_data_ends_the_connection)
{
	breaks(RS_DATA, 0, 0, "", 0);
}

Test(rsocket_stream, an_unknown_message_ends_the_connection)
{
	breaks(77, 0, 0, "", 0);
}

Test(rsocket_stream, a_mapping_beyond_the_permitted_number_ends_the_connection)
{
	struct rs_map_msg m = {.len = htobe64(1)};

	breaks(RS_MAP, 0, sizeof(m), &m, sizeof(m));
}

Test(rsocket_stream, the_end_of_a_mapping_that_does_not_exist_ends_the_connection)
{
	struct rs_map_msg m = {.len = htobe64(1)};

	breaks(RS_UNMAP, 0, sizeof(m), &m, sizeof(m));
}

/* ---- What poll(2) and epoll(7) show ---- */

Test(rsocket_stream, poll_shows_data_and_its_end)
{
	char c;

	listener = rsf_pair(fds);
	cr_assert_eq(rsf_poll(fds[1]), POLLOUT);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	rsf_until(rsf_poll(fds[1]) == (POLLIN | POLLOUT));
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rsf_poll(fds[1]), POLLOUT);
	cr_assert_eq(rshutdown(fds[0], SHUT_WR), 0);
	rsf_until(rsf_poll(fds[1]) == (POLLIN | POLLOUT | POLLRDHUP));
	cr_assert_eq(rread(fds[1], &c, 1), 0);
}

Test(rsocket_stream, a_peer_that_has_closed_in_order_hangs_up_when_this_side_ends_too)
{
	char c;

	listener = rsf_pair(fds);
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

Test(rsocket_stream, an_edge_comes_for_each_arrival_after_the_socket_was_empty)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(0);
	char c;

	listener = rsf_pair(fds);
	cr_assert_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fds[1], &ev), 0);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(epoll_wait(ep, &ev, 1, 0), 0);
		cr_assert_eq(rwrite(fds[0], "x", 1), 1);
		cr_assert_eq(epoll_wait(ep, &ev, 1, 60000), 1);
		cr_assert_eq(rread(fds[1], &c, 1), 1);
	}
}

Test(rsocket_stream, a_lost_connection_gives_what_came_before_and_then_the_error_once)
{
	char c;

	listener = rsf_pair(fds);
	cr_assert_eq(rwrite(fds[0], "x", 1), 1);
	fake_qp_event(rsf_qp(1), SAKER_EV_DISCONNECTED, 0);
	rsf_until((rsf_poll(fds[1]) & POLLHUP) != 0);
	cr_assert_eq(rread(fds[1], &c, 1), 1);
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, ECONNRESET);
	cr_assert_eq(rread(fds[1], &c, 1), 0);
}

Test(rsocket_stream, a_call_waits_no_longer_than_the_time_limit)
{
	struct timeval tv = {.tv_usec = 20000};
	char c;

	listener = rsf_pair(fds);
	cr_assert_eq(rsetsockopt(fds[1], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	cr_assert_eq(rread(fds[1], &c, 1), -1);
	cr_assert_eq(errno, EAGAIN);
}

/* ---- Mappings ---- */

Test(rsocket_stream, a_write_goes_to_the_offset_of_the_mapping_of_the_peer)
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

Test(rsocket_stream, a_mapping_may_end_after_its_connection)
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

Test(rsocket_stream, mappings_have_offsets_of_their_own_and_a_limit)
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
