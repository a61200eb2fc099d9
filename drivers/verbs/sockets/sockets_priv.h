/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Socket programs: the functions of the C library for sockets, with those of rsocket/ in the place
 * of TCP. libsaker-sockets.so contains this folder and all of libsaker-verbs; a program preloads
 * it.
 *
 * A socket begins as a TCP socket of the kernel. It becomes one of Saker when the program binds,
 * connects or listens, unless the address is a loopback address, or one to bind to that no
 * interface of the saker has. All other descriptors are the kernel's.
 */
#ifndef SAKER_SOCKETS_PRIV_H
#define SAKER_SOCKETS_PRIV_H

#include <stdarg.h>
#include <stdio.h>

#include "../rsocket/rs_priv.h"

/* The functions of the C library that this folder replaces. */
struct so_genuine {
	int (*bind)(int, const struct sockaddr *, socklen_t);
	int (*listen)(int, int);
	int (*connect)(int, const struct sockaddr *, socklen_t);
	int (*accept)(int, struct sockaddr *, socklen_t *);
	int (*accept4)(int, struct sockaddr *, socklen_t *, int);
	int (*shutdown)(int, int);
	int (*getpeername)(int, struct sockaddr *, socklen_t *);
	int (*getsockname)(int, struct sockaddr *, socklen_t *);
	int (*setsockopt)(int, int, int, const void *, socklen_t);
	int (*getsockopt)(int, int, int, void *, socklen_t *);
	int (*sockatmark)(int);
	ssize_t (*recv)(int, void *, size_t, int);
	ssize_t (*recvfrom)(int, void *, size_t, int, struct sockaddr *, socklen_t *);
	ssize_t (*recvmsg)(int, struct msghdr *, int);
	ssize_t (*send)(int, const void *, size_t, int);
	ssize_t (*sendto)(int, const void *, size_t, int, const struct sockaddr *, socklen_t);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*readv)(int, const struct iovec *, int);
	ssize_t (*write)(int, const void *, size_t);
	ssize_t (*writev)(int, const struct iovec *, int);
	ssize_t (*preadv2)(int, const struct iovec *, int, off_t, int);
	ssize_t (*pwritev2)(int, const struct iovec *, int, off_t, int);
	int (*recvmmsg)(int, struct mmsghdr *, unsigned, int, struct timespec *);
	int (*sendmmsg)(int, struct mmsghdr *, unsigned, int);
	ssize_t (*sendfile)(int, int, off_t *, size_t);
	ssize_t (*splice)(int, off64_t *, int, off64_t *, size_t, unsigned);
	int (*vdprintf)(int, const char *, va_list);
	int (*__vdprintf_chk)(int, int, const char *, va_list);
	int (*close)(int);
	int (*close_range)(unsigned, unsigned, int);
	void (*closefrom)(int);
	int (*dup)(int);
	int (*dup2)(int, int);
	int (*dup3)(int, int, int);
	int (*fcntl)(int, int, ...);
	int (*ioctl)(int, unsigned long, ...);
	FILE *(*fdopen)(int, const char *);
};

const struct so_genuine *vb_so_genuine(void);

#endif
