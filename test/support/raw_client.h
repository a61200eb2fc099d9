/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of saker without libsaker, for programs that do what libsaker never does. It exchanges
 * the socket's messages, or claims a slot of a machine's shared memory, and writes the rings
 * itself.
 *
 * All functions that return int return 0 or -errno, and print what failed on stderr unless a
 * comment states otherwise. A client belongs to one thread.
 */
#ifndef TEST_RAW_CLIENT_H
#define TEST_RAW_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../../lib/shm/shm_bar.h"
#include "../../lib/shm/shm_msg.h"
#include "../../lib/shm/shm_ring.h"
#include "../../lib/shm/shm_sock.h"

#define RAW_EVENTS 64 /* events that wait while a command waits for its reply */
/* A client's memory begins at this address of its own invention, which is not 0. */
#define RAW_BASE (1ull << 32)

struct raw_client {
	int fd, home_fd, wake_fd, bell_fd; /* -1: none */
	uint64_t size;                     /* of the home region, bytes */
	uint8_t *home;
	struct shm_header h; /* a copy */
	struct shm_prod cmd, doorbell[SHM_MAX_STAGES];
	struct shm_take evt;
	uint64_t tag;
	struct shm_msg events[RAW_EVENTS];
	unsigned event_first, event_end; /* counted without end */
	/* A machine's program: its memory, and its slot in it. */
	uint8_t *bar;
	uint64_t bar_size;
	struct shm_bar_slot *slot;
	uint64_t mem_used; /* bytes of the home region's memory in use */
};

/* Connects to the socket, and does nothing else. Returns a descriptor or -errno. Prints nothing. */
int raw_dial(const char *path);
/* Sends one message with the descriptor `pass`, or without one if it is -1. Prints nothing. */
int raw_socket_send(int fd, const struct shm_sock_msg *m, int pass);
/* Receives one message and up to three descriptors (-1: not sent). Prints nothing. `flags` are
 * those of recvmsg(). Returns -EPIPE when saker has closed the connection. */
int raw_socket_receive(int fd, struct shm_sock_msg *m, int fds[3], int flags);

/* Attaches a client at `where`: the path of a socket, or "bar:PATH:SLOT", the memory of a machine
 * and the number of a slot. Prints nothing if `quiet`. */
int raw_attach(struct raw_client *c, const char *where, bool quiet);
/* Detaches the client and frees all that belongs to it. */
void raw_detach(struct raw_client *c);
/* Shows saker that a machine's program lives. A program calls it every SHM_BAR_BEAT_MS; it does
 * nothing for a client at the socket. */
void raw_beat(struct raw_client *c);

/* Rings the doorbell of a stage: a QP's handle or SHM_RING_MAILBOX. Returns false if the ring is
 * full. */
bool raw_ring(struct raw_client *c, unsigned stage, uint32_t what);
/* Wakes saker if it sleeps. */
void raw_wake(struct raw_client *c);
/* Writes a command into the mailbox and rings. Returns false if the mailbox is full. */
bool raw_post(struct raw_client *c, struct shm_msg *m, enum shm_op op);
/* Takes the next message out of the mailbox, or returns false if there is none. */
bool raw_take(struct raw_client *c, struct shm_msg *m);
/* Sends a command and waits for its reply, which replaces *m. Events are kept for raw_event().
 * Returns the reply's status, and prints nothing. */
int raw_try(struct raw_client *c, struct shm_msg *m, enum shm_op op);
int raw_command(struct raw_client *c, struct shm_msg *m, enum shm_op op);
/* Takes the next event, or returns false if there is none. */
bool raw_event(struct raw_client *c, struct shm_msg *m);

/* ---- Objects ---- */

struct raw_cq {
	struct shm_cq_info i;
	struct shm_cq *shared;
	struct shm_take sub[SHM_MAX_STAGES];
	uint32_t nsubs, max_subs;
	uint8_t *home;
};
struct raw_qp {
	struct shm_qp_info i;
	struct shm_qp *shared;
	struct shm_prod sq, rq;
};
struct raw_mem {
	uint8_t *at;   /* where this process has mapped it */
	uint64_t base; /* the address that saker uses */
	uint64_t len;  /* 0: there is no memory */
	uint32_t stag;
	uint32_t mr;
	int fd; /* memfd, or -1 */
};

int raw_pd(struct raw_client *c, uint32_t *pd);
int raw_cq(struct raw_client *c, uint32_t depth, struct raw_cq *cq);
/* Creates a QP of one element for each request, whose completions go to `cq`. `transport` is an
 * enum shm_transport. */
int raw_qp(struct raw_client *c, uint32_t pd, const struct raw_cq *cq, uint32_t depth,
	uint8_t transport, struct raw_qp *qp);
/* Destroys an object. Returns the reply's status, and prints nothing. */
int raw_destroy(struct raw_client *c, enum shm_op op, uint32_t handle);
/* Registers memory with all rights: a memfd with the flags `memfd_flags`, which the client brings;
 * or, for a machine's program, a part of the home region. */
int raw_memory(
	struct raw_client *c, uint32_t pd, uint64_t len, unsigned memfd_flags, struct raw_mem *m);
/* Unmaps and closes what raw_memory() has made; there is nothing in an *m of zeros. */
void raw_memory_free(struct raw_mem *m);
/* Creates a memfd of `len` bytes that is sealed against shrinking. Returns it or -errno. Prints
 * nothing. */
int raw_memfd(uint64_t len, unsigned flags);
/* Passes a memfd to saker and returns the region's number, or -errno. Prints nothing. */
int raw_region(struct raw_client *c, int memfd, uint64_t size);

int raw_listen(struct raw_client *c, uint16_t port);
/* A connection between the QPs of two clients, or of one, through an address of saker's and a
 * listener of `server`. */
struct raw_link {
	struct raw_client *client, *server;
	const struct raw_qp *from, *to;
	const char *addr;
	uint16_t port;
	const char *why; /* filled in by raw_join() on failure */
};
/* Waits for at most `patience` ns. Returns -ETIMEDOUT after that. Prints nothing. */
int raw_join(struct raw_link *l, uint64_t patience);

/* ---- Requests ---- */

/* Posts one request with at most one element, or returns false if the queue is full. */
bool raw_request(struct raw_client *c, struct raw_qp *qp, enum rd_opcode op, uint8_t flags,
	const struct rd_sge *sge, uint64_t remote, uint32_t rkey);
bool raw_recv(struct raw_qp *qp, const struct rd_sge *sge);
/* Takes one completion, or returns false if there is none. */
bool raw_poll(struct raw_cq *cq, struct shm_cqe *out);

/* Sleeps for some microseconds, or calls raw_napper(us) instead if it is not NULL. */
void raw_nap(unsigned us);
extern void (*raw_napper)(unsigned us);

#endif
