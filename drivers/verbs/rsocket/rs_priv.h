/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sockets over RDMA: the functions of <rdma/rsocket.h>. A stream is a reliable connection of
 * rdma_cm. Both sides post receives of one size; a message is a Send with a header of 8 bytes, and
 * credits grant the sender the receives that are free (stream.c).
 *
 * The descriptor of a socket is one end of a pair of Unix sockets. The library keeps the other end
 * and makes the program's end readable, writable or hung up as the stream is (ready.c). So poll(2),
 * select(2), epoll(7) and O_NONBLOCK work as on any descriptor. In another process, which has the
 * descriptor by fork(2), the pair carries the bytes (relay.c).
 *
 * A thread, named saker-sockets, receives the events of connections and completion queues. It alone
 * destroys connections (thread.c).
 *
 * Locks: the lock of a listener, the lock of another socket, the lock of the table of descriptors,
 * the lock of the thread's lists. A caller of vb_rs_get() holds a reference and no lock.
 */
#ifndef SAKER_RS_PRIV_H
#define SAKER_RS_PRIV_H

#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../verbs_priv.h"

#define RS_SLOT      8192 /* bytes of a message with its header */
#define RS_SLOT_MIN  512  /* the least that a peer may offer */
#define RS_SLOTS     32   /* messages of data that may wait at the receiver, by default */
#define RS_SLOTS_MIN 8
#define RS_SLOTS_MAX 1024
#define RS_CONTROL   8 /* further receives, for messages that take no credit */
#define RS_IOMAPS    128

enum rs_state {
	RS_NEW = 1 << 0,
	RS_BOUND = 1 << 1,
	RS_LISTENING = 1 << 2,
	RS_CONNECTING = 1 << 3,
	RS_ACCEPTING = 1 << 4, /* rdma_accept() was called and no event has come */
	RS_CONNECTED = 1 << 5,
	RS_CLOSED = 1 << 6, /* the connection has ended, or could not be accepted */
};

enum rs_type { RS_DATA = 1, RS_CREDIT, RS_SHUT, RS_MAP, RS_UNMAP };

/* The header of a message. */
struct rs_hdr {
	uint8_t type, zero;
	uint16_t credits; /* network order: receives that have become free */
	uint32_t len;     /* network order: bytes that follow */
};

/* The content of RS_MAP and RS_UNMAP, in network order. */
struct rs_map_msg {
	uint64_t offset, len, addr;
	uint32_t rkey, zero;
};

/* The private data of a request and its answer, in network order. */
struct rs_hello {
	uint32_t magic;
	uint16_t version, slots;
	uint32_t slot_bytes;
	uint16_t maps, zero; /* how many mappings of its peer a side remembers */
};
#define RS_MAGIC   0x536b5273 /* "SkRs" */
#define RS_VERSION 1

/* A part of memory that is mapped by riomap(): the program's own, or the peer's. */
struct rs_map {
	uint64_t offset, len, addr;
	uint32_t rkey;
	struct ibv_mr *mr; /* own; NULL: for local use alone */
};

/* A queue of slots, by number. */
struct rs_queue {
	uint16_t *slot;
	uint32_t size, head, count;
};

struct vb_rs {
	/* ---- Guarded by the lock of the table ---- */
	LIST_ENTRY(vb_rs) next; /* the sockets of the process */
	uint32_t refs;          /* the list, each descriptor, each call that uses it */
	uint32_t users;         /* descriptors of the program */
	/* ---- Guarded by the lock of the thread's lists ---- */
	STAILQ_ENTRY(vb_rs) next_closing;
	bool queued_closing, destroyed;
	STAILQ_ENTRY(vb_rs) next_failed;
	bool queued_failed;

	uint32_t epoch; /* vb_rs_epoch() of the process whose thread serves it */
	int domain;     /* AF_INET or AF_INET6 */

	pthread_mutex_t lock; /* guards the rest */
	/* The pair: `a` is a duplicate of the program's end. Negative: a connection that the
	 * program has not accepted yet. To close one of these three, or to set `b`, the lock of the
	 * table is needed, too, so that fork(2) may read them with that lock. */
	int a, b;
	int shadow;   /* a TCP socket of the kernel that keeps options; negative: none */
	bool in, out; /* the program's end is readable, writable */
	bool shown_eof, shown_end;
	bool shared; /* another process may have the descriptor */
	bool relay;  /* the pair carries the bytes */
	bool joined; /* in another process: the relay has begun */
	bool relay_ended;
	uint32_t waiting; /* threads that wait at `a` */
	uint32_t watched; /* the epoll(7) events for which the thread watches `b` */

	enum rs_state state;
	int err;    /* SO_ERROR */
	int failed; /* RS_CONNECTING: the errno of the attempt, which the thread has to end; or 0 */
	struct rdma_cm_id *id;
	struct sockaddr_storage local, remote;
	bool v6only, abort, disconnecting;
	bool bound;                            /* rbind() or rlisten() took its port */
	bool was_connected;                    /* RS_CONNECTED is its state, or has been */
	uint32_t slots_rx, slots_tx, maps_max; /* as the program has set them */

	/* Of a listener: connections that wait for raccept(). */
	STAILQ_HEAD(rs_ready, vb_rs) ready;
	uint32_t nready, backlog;
	STAILQ_ENTRY(vb_rs) next_ready;
	struct vb_rs *listener; /* RS_ACCEPTING: it holds a reference */

	/* ---- The stream ---- */
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	size_t mem_len;
	uint32_t nrx, ntx;    /* slots with those for control */
	struct rs_queue rx;   /* received, in order */
	uint32_t *rx_len;     /* [nrx] bytes of the slot's message */
	uint32_t rx_off;      /* bytes of the first slot that the program has read */
	uint32_t credits_due; /* credits that the peer has not got yet */
	struct rs_queue tx_free, ctl_free;
	struct rs_queue tx; /* filled and not posted */
	uint32_t *tx_len;   /* [ntx] bytes of the slot's content */
	uint8_t *tx_type;   /* [ntx] */
	uint32_t credits, peer_slots, peer_bytes;
	bool rx_eof, rx_shut, tx_shut, shut_sent, broken;
	struct rs_map *maps, *peer_maps; /* riomap() here, and at the peer */
	uint32_t nmaps, npeer_maps, peer_maps_max;
};

static inline int
vb_rs_end(int err)
{
	if (err == 0)
		return 0;
	errno = err;
	return -1;
}

/* ---- System calls ---- */

/* The functions of libc are points of cancellation, where a thread can end while it holds a lock;
 * and socket programs reach those of sockets/ instead. */

static inline ssize_t
vb_rs_sys_recv(int fd, void *to, size_t len, int flags)
{
	return syscall(SYS_recvfrom, fd, to, len, flags, NULL, NULL);
}

static inline ssize_t
vb_rs_sys_send(int fd, const void *from, size_t len, int flags)
{
	return syscall(SYS_sendto, fd, from, len, flags | MSG_NOSIGNAL, NULL, 0);
}

/* Returns the poll(2) events that have no need of a wait; 0: none, or an error. */
static inline short
vb_rs_sys_poll(int fd)
{
	struct pollfd p = {.fd = fd};

	return syscall(SYS_poll, &p, 1, 0) == 1 ? p.revents : 0;
}

static inline void
vb_rs_sys_close(int fd)
{
	syscall(SYS_close, fd);
}

static inline void
vb_rs_sys_sleep(const struct timespec *t)
{
	syscall(SYS_nanosleep, t, NULL);
}

/* ---- table.c ---- */

/* Returns the number of fork(2) calls between the first process and this one. */
uint32_t vb_rs_epoch(void);
/* Returns whether this is a child of vfork(2), which has descriptors of its own and shares the
 * table with its parent: it must not change the table. */
bool vb_rs_foreign(void);
/* Creates a socket without a descriptor. NULL with errno. */
struct vb_rs *vb_rs_new(int domain);
/* Returns the socket of a descriptor with a reference, or NULL with EBADF. */
struct vb_rs *vb_rs_get(int fd);
/* Returns whether the descriptor is a socket of this library. Takes no lock. */
bool vb_rs_known(int fd);
/* Returns the first descriptor from `fd` on that is a socket of this library, or -1. */
int vb_rs_next(int fd);
void vb_rs_hold(struct vb_rs *rs);
void vb_rs_put(struct vb_rs *rs);
/* Makes `fd` a descriptor of the socket. Returns 0 or ENOMEM. */
int vb_rs_enter(int fd, struct vb_rs *rs);
/* Removes the descriptor from the table. Returns the socket, whose reference the caller gets, or
 * NULL. *last: it was its last descriptor. */
struct vb_rs *vb_rs_leave(int fd, bool *last);
/* Removes a socket from the list of the process. */
void vb_rs_unlist(struct vb_rs *rs);
/* Calls `each` for every socket of the process, with the lock of the table. */
void vb_rs_each(void (*each)(struct vb_rs *rs));
/* Sets the library's end of the pair of a new socket. */
void vb_rs_end_set(struct vb_rs *rs, int b);
/* Closes a descriptor of the library's, `a`, `b` or `shadow` of the socket, unless it is negative,
 * and makes it negative. The thread no longer watches it. */
void vb_rs_fd_close(struct vb_rs *rs, int *fd);
/* Calls vb_rs_thread_watch() with the lock of the table. */
void vb_rs_watch(struct vb_rs *rs, uint32_t events);

/* ---- pair.c ---- */

/* Creates the pair of a socket. The program's end gets the number `at`, or a free one when `at` is
 * negative; `flags`: SOCK_NONBLOCK, SOCK_CLOEXEC. Returns the number, or -errno. */
int vb_rs_pair(struct vb_rs *rs, int at, int flags);
/* Moves a descriptor of the library's to a high number. */
int vb_rs_high(int fd);
/* Returns the kernel's socket that keeps the options, or -1 with errno. */
int vb_rs_shadow(struct vb_rs *rs);
/* Makes a TCP socket of the kernel, which has no address yet, a socket of this library: it keeps
 * its number, flags and options. Returns 0 or errno. */
int vb_rs_convert(int fd);
void vb_rs_fds_close(struct vb_rs *rs);

/* ---- ready.c: call with the socket's lock held ---- */

/* Makes the program's end readable, writable or hung up as the socket now is. */
void vb_rs_show(struct vb_rs *rs);
/* Takes everything out of the pair that vb_rs_show() put there. */
void vb_rs_show_nothing(struct vb_rs *rs);
/* Waits, without the lock, until the program's end has one of the poll(2) events: it polls for a
 * short time and then sleeps, where the program may cancel the thread: that puts the caller's
 * reference. Returns 0; or EAGAIN when the socket does not block or a time limit (SO_RCVTIMEO,
 * SO_SNDTIMEO) has passed; or EINTR. */
int vb_rs_wait(struct vb_rs *rs, short events, int flags);

/* ---- stream.c: call with the socket's lock held ---- */

/* Creates the queue pair, its memory and receives for the socket's id. Returns 0 or errno. */
int vb_rs_stream_new(struct vb_rs *rs, struct ibv_comp_channel *channel);
void vb_rs_stream_free(struct vb_rs *rs);
void vb_rs_hello_fill(const struct vb_rs *rs, struct rs_hello *h);
/* Stores the sizes and credits of the peer's private data. Returns 0, or EPROTO. */
int vb_rs_hello_take(struct vb_rs *rs, const void *data, size_t len);
/* Processes completions and sends what can be sent. Returns how many completions there were. */
unsigned vb_rs_progress(struct vb_rs *rs);
void vb_rs_flush(struct vb_rs *rs);
/* Ends a connection that cannot go on. */
void vb_rs_break(struct vb_rs *rs, int err);
/* Returns whether everything that the program has written was sent, with the end of the stream. */
bool vb_rs_flushed(const struct vb_rs *rs);
/* Copies received bytes to the program, from the byte `skip` on; `to` NULL: only counts them.
 * `peek`: they stay. Returns the number of bytes. */
size_t vb_rs_take(struct vb_rs *rs, uint8_t *to, size_t len, bool peek, size_t skip);
/* Drops what was received. */
void vb_rs_discard(struct vb_rs *rs);
/* Queues bytes to send; returns how many. */
size_t vb_rs_give(struct vb_rs *rs, const uint8_t *from, size_t len);
/* Returns the bytes that vb_rs_take() could copy. */
size_t vb_rs_available(const struct vb_rs *rs);
bool vb_rs_writable(const struct vb_rs *rs);
/* Takes a slot; -1: there is none. */
int vb_rs_slot_take(struct vb_rs *rs);
void vb_rs_slot_give_back(struct vb_rs *rs, uint32_t slot);
uint8_t *vb_rs_slot_at(struct vb_rs *rs, uint32_t slot);
/* Queues a message of `type` whose content the slot holds. */
void vb_rs_slot_queue(struct vb_rs *rs, uint32_t slot, enum rs_type type, uint32_t len);
/* Writes a slot's content, of `len` bytes, to the peer's memory. Returns 0 or errno. */
int vb_rs_slot_write(struct vb_rs *rs, uint32_t slot, uint32_t len, uint64_t addr, uint32_t rkey);

/* ---- iomap.c ---- */

/* Processes RS_MAP and RS_UNMAP. Returns 0 or EPROTO. */
int vb_rs_map_received(struct vb_rs *rs, enum rs_type type, const uint8_t *data, uint32_t len);
void vb_rs_maps_free(struct vb_rs *rs);

/* ---- conn.c ---- */

/* Processes an event of rdma_cm; the thread calls it. */
void vb_rs_cm_event(struct rdma_cm_event *ev);
/* Creates the id of a socket. Returns 0 or errno. */
int vb_rs_id_new(struct vb_rs *rs);
/* Lets the thread end an attempt to connect. Call with the socket's lock held. */
void vb_rs_connect_fail(struct vb_rs *rs, int err);
/* Makes a socket whose attempt to connect has failed a new one, with the errno as its error and the
 * port to which the program has bound it. The thread calls it, without a lock or an event of the
 * socket that it has not acknowledged. */
void vb_rs_connect_failed(struct vb_rs *rs);
/* Ends a new socket to which no descriptor of the program leads. Without an id there is nothing for
 * the thread to end, which may not run. */
void vb_rs_drop(struct vb_rs *rs);
/* Lets a listener listen no longer: it refuses connections, and those that wait at it end. Call
 * with the socket's lock held. */
void vb_rs_listen_end(struct vb_rs *rs);
/* Performs the next step towards the end of a socket without a descriptor. Returns whether the
 * socket can be destroyed. Call with the socket's lock held. */
bool vb_rs_closing(struct vb_rs *rs);
/* Destroys the connection; the socket stays in the list of the process. The thread calls it,
 * without a lock. */
void vb_rs_destroy(struct vb_rs *rs);
/* raccept() with the flags of accept4(2). */
int vb_rs_accept(int socket, struct sockaddr *addr, socklen_t *addrlen, int flags);

/* ---- io.c ---- */

/* Returns the error of the socket once, or else 0. Call with the socket's lock held. */
int vb_rs_error_take(struct vb_rs *rs);
/* Sets the error that the next call returns. */
void vb_rs_error_back(int fd, int err);
/* Returns how many bytes wait to be read. */
int vb_rs_unread(int fd, int *n);
/* Lets the pair carry the bytes and takes the descriptor out of the table: whoever has it uses it
 * as a descriptor of the kernel's. Returns 0 or -1. */
int vb_rs_give_away(int fd);
/* Closes a descriptor of a socket. */
int vb_rs_close(int fd);
/* Takes from its socket a descriptor whose number now is another file's. */
void vb_rs_replaced(int fd);
/* Makes `fd`, which duplicates a socket's descriptor, one of its own. Returns fd, or -1. */
int vb_rs_dup(int of, int fd);

/* ---- relay.c ---- */

/* Returns true when the pair carries the bytes, so that the caller uses the descriptor as it is.
 * In another process it waits until that is so. Sets *err when the socket cannot be used here. */
bool vb_rs_raw(struct vb_rs *rs, int fd, int *err);
/* Lets the pair carry the bytes from now on. Call with the socket's lock held. */
void vb_rs_relay_begin(struct vb_rs *rs);
/* Carries bytes both ways. The thread calls it with the socket's lock held. */
void vb_rs_relay_turn(struct vb_rs *rs);
/* Looks for the request of another process. Call with the socket's lock held. */
void vb_rs_relay_asked(struct vb_rs *rs);

/* ---- thread.c ---- */

/* Starts the thread. Returns 0 or errno. */
int vb_rs_thread_start(void);
struct rdma_event_channel *vb_rs_cm_channel(void);
/* Returns the completion channel for the queues of a context, or NULL with errno. */
struct ibv_comp_channel *vb_rs_comp_channel(struct ibv_context *verbs);
/* Gives the thread a socket to end. */
void vb_rs_thread_close(struct vb_rs *rs);
/* Does the same for a socket that ends at once, before all others, and waits until it has been
 * destroyed. The caller holds a reference and no lock. */
void vb_rs_thread_close_now(struct vb_rs *rs);
/* Gives the thread a socket for vb_rs_connect_failed(). The caller holds a reference. */
void vb_rs_thread_failed(struct vb_rs *rs);
/* Lets the thread watch the library's end of the pair for these epoll(7) events; 0: no longer. Call
 * with the lock of the table held, in the process that serves the socket. */
void vb_rs_thread_watch(struct vb_rs *rs, uint32_t events);
void vb_rs_thread_fork_child(void);

#endif
