/* SPDX-License-Identifier: BSD-3-Clause */
/* Several messages in one call: sendmmsg(2) and recvmmsg(2). On a stream, a message is the buffers
 * of its vector. An error behind the first message ends the call, which returns the number of
 * messages. */
#include <limits.h>
#include <time.h>

#include "sockets_priv.h"

#define NS_PER_S 1000000000L

static unsigned
messages_most(unsigned n)
{
	return n < IOV_MAX ? n : IOV_MAX;
}

static size_t
message_bytes(const struct msghdr *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->msg_iovlen; i++)
		n += m->msg_iov[i].iov_len;
	return n;
}

VB_EXPORT int
sendmmsg(int fd, struct mmsghdr *v, unsigned n, int flags)
{
	unsigned done = 0;
	ssize_t bytes = 0;

	if (!vb_rs_known(fd))
		return vb_so_genuine()->sendmmsg(fd, v, n, flags);
	n = messages_most(n);
	while (done < n) {
		bytes = sendmsg(fd, &v[done].msg_hdr, flags);
		if (bytes < 0)
			break;
		v[done].msg_len = (unsigned)bytes;
		/* The next message would come into the middle of this one. */
		if ((size_t)bytes < message_bytes(&v[done++].msg_hdr))
			break;
	}
	return done > 0 || bytes >= 0 ? (int)done : -1;
}

/* Returns the time from now on until `until`, or 0 when it has passed. */
static struct timespec
time_left(const struct timespec *until)
{
	struct timespec now, left = {0};
	int64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = (until->tv_sec - now.tv_sec) * NS_PER_S + until->tv_nsec - now.tv_nsec;
	if (ns > 0)
		left = (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
	return left;
}

/* Receives messages until the time, if there is one, has passed: the call checks that behind each
 * message, as the kernel does. Returns the number, or -1. */
static int
messages_receive(int fd, struct mmsghdr *v, unsigned n, int flags, const struct timespec *until)
{
	unsigned done = 0;

	while (done < n) {
		const int once = done > 0 && (flags & MSG_WAITFORONE) != 0 ? MSG_DONTWAIT : 0;
		ssize_t bytes = recvmsg(fd, &v[done].msg_hdr, (flags & ~MSG_WAITFORONE) | once);
		struct timespec left;

		if (bytes < 0 && done == 0)
			return -1;
		if (bytes < 0) {
			if (errno != EAGAIN && errno != EINTR)
				vb_rs_error_back(fd, errno);
			break;
		}
		v[done++].msg_len = (unsigned)bytes;
		if (until == NULL)
			continue;
		left = time_left(until);
		if (left.tv_sec == 0 && left.tv_nsec == 0)
			break;
	}
	return (int)done;
}

VB_EXPORT int
recvmmsg(int fd, struct mmsghdr *v, unsigned n, int flags, struct timespec *timeout)
{
	struct timespec until;
	int done;

	if (!vb_rs_known(fd))
		return vb_so_genuine()->recvmmsg(fd, v, n, flags, timeout);
	n = messages_most(n);
	if (timeout == NULL)
		return messages_receive(fd, v, n, flags, NULL);
	if (timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= NS_PER_S)
		return vb_rs_end(EINVAL);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout->tv_sec;
	until.tv_nsec += timeout->tv_nsec;
	done = messages_receive(fd, v, n, flags, &until);
	if (done > 0)
		*timeout = time_left(&until);
	return done;
}
