/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets over RDMA: ports, connections, the end of a saker. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "rsocket_fake.h"

#include "../../../drivers/verbs/rsocket/rs_priv.h"

TestSuite(rsocket_connect, .init = rsf_reset, .fini = rsf_end, .timeout = 60);

static int fds[2]; /* [0] has connected, [1] was accepted */
static int listener;

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

Test(rsocket_connect,
	a_port_is_free_when_close_of_its_listener_returns_although_streams_end_before_it)
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

Test(rsocket_connect, a_port_is_free_when_close_of_a_listener_that_was_shut_down_returns)
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
Test(rsocket_connect,
	close_of_a_listener_returns_although_the_thread_waits_for_a_lock_of_the_caller)
{
	struct vb_rs *rs;

	listener = rsf_pair(fds);
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

Test(rsocket_connect, a_socket_that_connects_is_writable_when_the_outcome_is_there)
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
	rsf_transfer(fds[0], fds[1], 100000);
	rsf_transfer(fds[1], fds[0], 100000);
}

/* Programs repeat connect(2) until the server listens. */
Test(rsocket_connect, a_socket_that_was_refused_connects_when_the_server_listens)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(connect_that_ends(fd, SAKER_EV_REJECTED, 0), ECONNREFUSED);
	cr_assert_eq(connect_that_ends(fd, SAKER_EV_UNREACHABLE, -ETIMEDOUT), ETIMEDOUT);
	cr_assert_eq(connect_that_ends(fd, SAKER_EV_DISCONNECTED, 0), ECONNRESET);
	cr_assert_eq(so_error(fd), 0);
	connects_now(fd);
}

Test(rsocket_connect, a_socket_that_does_not_block_gets_the_error_of_an_attempt_once)
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

Test(rsocket_connect, a_socket_that_was_refused_keeps_the_port_to_which_it_is_bound)
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
Test(rsocket_connect, a_bound_socket_outlives_a_failure_to_resolve_an_address)
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

Test(rsocket_connect, a_peer_that_is_no_socket_of_saker_is_refused_on_both_sides)
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

Test(rsocket_connect, a_listener_is_readable_while_a_connection_waits)
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
Test(rsocket_connect, a_connection_waits_until_there_is_a_descriptor_for_it)
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
	rsf_transfer(fds[0], fds[1], 100000);
}

Test(rsocket_connect, calls_in_a_wrong_state_fail_as_those_of_tcp)
{
	struct sockaddr_in in;
	socklen_t len = sizeof(in);

	memcpy(&in, fake_addr("192.0.2.9", 7471), sizeof(in));
	listener = rsf_pair(fds);
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

Test(rsocket_connect, a_socket_that_was_refused_has_no_peer)
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

Test(rsocket_connect, a_listener_that_is_shut_down_wakes_the_thread_that_accepts)
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

Test(rsocket_connect, names_have_the_family_of_the_socket)
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

Test(rsocket_connect, a_socket_is_a_stream_of_ip)
{
	cr_assert_eq(rsocket(AF_INET, SOCK_DGRAM, 0), -1);
	cr_assert_eq(errno, EPROTONOSUPPORT);
	cr_assert_eq(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
	cr_assert_eq(errno, EAFNOSUPPORT);
}

Test(rsocket_connect, options_are_kept_and_sizes_apply_to_the_next_connection)
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

/* ---- The end of a saker ---- */

/* Each saker has devices of its own, so that there are more of them than transports. */
Test(rsocket_connect, a_listener_serves_connections_at_each_next_saker)
{
	listener = rsf_listener(AF_INET6);
	for (unsigned sakers = 1; sakers <= VB_NKINDS + 1; sakers++) {
		if (sakers > 1)
			rsf_restart();
		rsf_connect(listener, fds);
		rsf_transfer(fds[0], fds[1], 100000);
		vb_rs_put(rsf_destroyed(fds[0]));
		vb_rs_put(rsf_destroyed(fds[1]));
	}
	cr_assert_eq(fake.channels, 1);
}

Test(rsocket_connect, a_completion_channel_that_cannot_be_watched_is_destroyed)
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
Test(rsocket_connect, the_connections_that_wait_at_a_removed_listener_are_destroyed_with_it)
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
