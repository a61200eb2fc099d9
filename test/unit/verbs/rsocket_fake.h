/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A data path for tests of sockets over RDMA, beside cm_fake.h: two queue pairs of the process that
 * are created one after the other are the two ends of a connection. A Send goes into the peer's
 * first receive, a Write into memory, and both complete at once.
 */
#ifndef TEST_RSOCKET_FAKE_H
#define TEST_RSOCKET_FAKE_H

#include <rdma/rsocket.h>
#include <unistd.h>

#include "cm_fake.h"

struct rsf {
	/* Sends that found no receive at the peer: a transport would end the connection. */
	unsigned overruns;
	unsigned sends, writes;
};
extern struct rsf rsf;

/* Resets the fakes and opens the device. The init function of a test suite. */
void rsf_reset(void);
/* Ends the connections. Its fini function. */
void rsf_end(void);
/* The saker goes, and another one takes its place. The test has closed its connections. */
void rsf_restart(void);
/* Waits until the condition holds, for at most a minute. */
#define rsf_until(condition)                                                                       \
	do {                                                                                       \
		unsigned tries = 60000;                                                            \
		while (!(condition) && --tries > 0)                                                \
			usleep(1000);                                                              \
		cr_assert(tries > 0, "never: %s", #condition);                                     \
	} while (0)

/* Returns the queue pair of the end that was created first (0), second (1) and so on. */
struct ibv_qp *rsf_qp(unsigned end);
/* Puts a message into the first receive of an end, as if its peer had sent it. */
void rsf_inject(unsigned end, const void *bytes, uint32_t len);
/* Returns a listener at 192.0.2.1 port 7471, of the family. */
int rsf_listener(int domain);
/* Starts to connect a new socket, which does not block, to 192.0.2.9 port 7471. */
int rsf_connecting(void);
/* Raises the request of rsf_connecting() at the listener, with this private data. */
void rsf_request(const void *hello, size_t len);
/* Raises SAKER_EV_ESTABLISHED for an end, with private data. */
void rsf_established(unsigned end, const void *hello, size_t len);
/* Makes a connection of a socket, which does not block and then does, to the listener, where it
 * waits for raccept(). */
void rsf_connect_to_listener(int fd);
/* Makes a connection to the listener, which waits there for raccept(). Returns the socket that has
 * connected; it blocks. */
int rsf_waiting(void);
/* Makes a connection: [0] connected, [1] was accepted by `listener`. Both block. */
void rsf_connect(int listener, int fds[2]);
/* Makes a listener of IPv4, and a connection to it as rsf_connect() does. Returns the listener. */
int rsf_pair(int fds[2]);
/* Writes and reads by turns without waiting, in pieces of odd sizes, and compares the bytes. */
void rsf_transfer(int from, int to, size_t bytes);
/* Ends the connection of a socket, closes the socket, and waits until the library has destroyed its
 * objects. The caller releases the result by vb_rs_put(). */
struct vb_rs *rsf_destroyed(int fd);
/* Returns the events of poll(2), without waiting. */
short rsf_poll(int fd);

#endif
