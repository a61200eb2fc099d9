/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages of the Unix socket (SOCK_SEQPACKET). */
#ifndef SAKER_SHM_SOCK_H
#define SAKER_SHM_SOCK_H

#include "shm.h"

/*
 * The socket attaches a client, passes memory regions and signals the end of either side. The
 * client sends HELLO. The engine replies WELCOME with the home region's memfd, a descriptor that
 * becomes readable to wake the client (a read returns 8 bytes for each wake-up, then EAGAIN), and
 * an eventfd that wakes the engine (a write of the number 1; the engine never reads it). The client
 * sends REGION with a memfd that is sealed against shrinking (F_SEAL_SHRINK); the engine replies
 * REGION_IS with the region's number. After a REFUSED HELLO the engine closes the connection; a
 * REFUSED REGION changes nothing. An engine that has no place for another connection sends REFUSED
 * without a HELLO, which the client then cannot send. When either end closes the socket, the client
 * is detached.
 */
enum shm_sock_op { SHM_HELLO = 1, SHM_WELCOME, SHM_REGION, SHM_REGION_IS, SHM_REFUSED };
struct shm_sock_msg {
	uint64_t magic;
	uint32_t version;
	uint32_t op;     /* enum shm_sock_op */
	uint64_t size;   /* bytes; WELCOME: of the home region; REGION: of the memfd */
	uint32_t region; /* REGION_IS */
	int32_t status;  /* REFUSED: -errno */
	char text[124];  /* HELLO: the program's name; REFUSED: one sentence */
	uint32_t flags;  /* REGION: enum shm_region_flags */
};
_Static_assert(sizeof(struct shm_sock_msg) == 160, "layout");
/* SHM_REGION_SPARSE: a memfd that consists mostly of holes, of at most SHM_SPARSE_MAX bytes. The
 * memory registered in it counts against the client's quota (each time that it is registered), not
 * the memfd's size.
 * SHM_REGION_OBJECT: memory that the program shares with others: a file on tmpfs (a memfd, POSIX or
 * System V shared memory) or on hugetlbfs, open for reading and writing. It needs no seal, is at
 * least `size` bytes long, in whole pages, and counts as a sparse memfd does. Both kinds of a
 * client together have at most SHM_OBJECT_MAX bytes: 128 clients then fit into half of an address
 * space. */
enum shm_region_flags { SHM_REGION_SPARSE = 1, SHM_REGION_OBJECT = 2 };
#define SHM_SPARSE_MAX     (4ull << 30)
#define SHM_OBJECT_MAX     (1ull << 39)
#define SHM_SOCKET_DEFAULT "/run/saker/saker.sock"

#endif
