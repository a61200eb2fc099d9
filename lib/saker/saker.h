/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsaker: the interface of a client process to a Saker software RNIC. Plain C, usable from C++.
 * Objects and their names are those of verbs: a program opens a saker, allocates a protection
 * domain, registers memory, creates completion queues and queue pairs, connects, posts work
 * requests and polls for completions.
 *
 * Errors. A function that returns int returns 0, or a count, or -errno; saker_error() then has one
 * sentence about the failure. When the engine goes away (it closes its socket, or detaches the
 * client), SAKER_EV_ENGINE_GONE comes once; from then on commands and posts return -EPIPE, and
 * destroying an object succeeds, because the object ended with the engine.
 *
 * Blocking. Posting and polling never block and make no system call, except to wake an engine that
 * sleeps. All other functions are commands: they wait for the engine's reply, unless their comment
 * states otherwise.
 *
 * Threads. One thread at a time may post sends to a QP, one may post receives to it, and one may
 * poll a CQ. All other functions may be called by any thread at any time. pthread_cancel(3) takes
 * effect in saker_wait() only.
 *
 * Signals. A handler may call saker_post_send(), saker_post_recv(), saker_cq_poll() and
 * saker_cq_arm() for queues that the interrupted thread does not use at that moment, and
 * saker_post_srq(). It must not call any other function.
 *
 * fork(2). Attachments belong to the parent: in the child they count as gone, and their descriptors
 * are closed. Memory of the program that was registered is the child's own again, with its content
 * at the time of the fork; memory from saker_alloc() must not be used. The child may call exec,
 * exit, or open an attachment of its own.
 */
#ifndef SAKER_SAKER_H
#define SAKER_SAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "addr.h"
#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct saker; /* an attachment to an engine */
struct saker_pd;
struct saker_mr;
struct saker_mw;
struct saker_cq;
struct saker_srq;
struct saker_qp;
struct saker_ah;
struct saker_xrcd;
struct saker_listener;

enum saker_transport { SAKER_IWARP = 0, SAKER_FALCON = 1 };

/* The types of queue pairs. iWARP has SAKER_RC only. */
enum saker_qp_type {
	SAKER_RC = 0,   /* reliable connection */
	SAKER_UD,       /* datagrams: each request names its receiver */
	SAKER_XRC_SEND, /* each request names a shared receive queue of the peer's XRC domain */
	SAKER_XRC_RECV, /* the other end of SAKER_XRC_SEND: no queues of its own and no CQs */
};

/* ---- Errors and names ---- */

/* Returns the sentence about the last failure of a function of this library in the calling thread.
 * It is valid until the thread's next failure. */
const char *saker_error(void);

/* Returns the meaning of a completion's status (enum rd_status), such as "remote access error".
 * Never NULL: "unknown status" for other values. */
const char *saker_status_str(int status);

/* Returns the name of a transport's reason, such as "IW_DDP_T_BOUNDS", from rd_wc.vendor_err or
 * saker_async.code; "none" for 0. Never NULL: "unknown" for other values. The numbers belong to the
 * version of this library; an engine of another version may use others. */
const char *saker_reason_str(enum saker_transport transport, uint32_t code);

/* ---- Attaching ---- */

#define SAKER_SOCKET_DEFAULT "/run/saker/saker.sock"
#define SAKER_NAME_MAX       32 /* bytes of a device's name, with its NUL */

/*
 * Attaches to an engine. `socket` is one of:
 *
 *  - the path of the Unix socket of a running saker;
 *  - in a virtual machine, "ivshmem:" for the first ivshmem device, "ivshmem:0000:00:04.0" for a
 *    certain one, "ivshmem:/PATH" for a memory file;
 *  - NULL: $SAKER_SOCKET; without that, SAKER_SOCKET_DEFAULT, and where no saker listens there, the
 *    first ivshmem device.
 *
 * `name` (may be NULL) is the program's name in the engine's tables. An attachment through an
 * ivshmem device has a thread for its heartbeat. Returns 0 with *out, or -errno: -ENOENT or
 * -ECONNREFUSED when no saker is there.
 */
int saker_open(const char *socket, const char *name, struct saker **out);
/* Checks, without attaching, that saker_open() would find a saker or a device. Returns 0, or -errno
 * as saker_open() does. */
int saker_look(const char *socket);
/*
 * Attaches to a flat region: `base` maps `size` bytes whose header the engine has written. Such an
 * attachment has no descriptors and no wake-ups. `idle` (may be NULL) is called with `arg` while a
 * command waits for its reply, so that a program can run an engine in the same thread. Returns 0
 * with *out, or -errno: -EPROTO when the header is not that of an engine of this version; -ENOMEM.
 */
int saker_open_flat(
	void *base, size_t size, void (*idle)(void *arg), void *arg, struct saker **out);
/* Destroys all objects of the attachment, and the attachment. NULL is allowed. */
void saker_close(struct saker *s);
/* Returns whether the engine has gone: each further request fails with -EPIPE, and the program may
 * open another attachment at any time. Checks that, if it is not known yet. */
bool saker_gone(struct saker *s);
/* Returns how many objects the attachment has: those that were created and not destroyed. */
uint32_t saker_objects(const struct saker *s);

/* Limits are those of this client. */
struct saker_device {
	char name[SAKER_NAME_MAX];
	uint32_t max_qp, max_cq, max_mr, max_pd, max_srq;
	uint32_t max_sq_depth, max_rq_depth, max_cq_depth; /* entries */
	uint32_t max_send_sge, max_recv_sge;               /* elements of a work request */
	uint32_t max_inline;                               /* bytes */
	uint32_t max_ird, max_ord;                         /* Reads and Atomics in progress */
	uint32_t mtu; /* of the first port: bytes of an IP packet */
	uint64_t max_mr_size;
	uint8_t mac[6], naddrs;
	uint8_t falcon;          /* 1: QPs can be SAKER_FALCON */
	struct sk_addr addrs[8]; /* [naddrs] of its interfaces */
	uint32_t max_mw;
	uint32_t max_ah; /* 0: no datagrams and no XRC, because Falcon is not enabled */
	uint32_t max_xrcd;
	uint32_t speed; /* of the first port's link: Mb/s; 0: unknown */
};

/* Queries the engine for the device. */
int saker_device(struct saker *s, struct saker_device *out);

/* ---- Memory ---- */

/* Allocates memory that can be registered: from the flat region, or from an arena that the engine
 * maps (it grows as needed, on huge pages where there are some). Zeroed, aligned to 4096 bytes.
 * Returns NULL when memory or the quota is exhausted. */
void *saker_alloc(struct saker *s, size_t len);
/* Frees memory of saker_alloc(). `len` is the length that was allocated. NULL is allowed. */
void saker_free(struct saker *s, void *p, size_t len);

/* Creates a protection domain: QPs of it can access regions and windows of it. -EDQUOT: the client
 * or its user has as many as it may have; -ENOSPC: none is left for it; -ENOMEM. */
int saker_pd_create(struct saker *s, struct saker_pd **out);
/* Destroys a protection domain. -EBUSY: objects of the domain exist. */
int saker_pd_destroy(struct saker_pd *pd);
/*
 * Registers [addr, addr + len): memory from saker_alloc(), any private memory of the program (from
 * malloc(3), mmap(2), static), or memory that it shares with others. Private memory moves into
 * shared memory at the same addresses, in whole pages and without a second copy; other threads may
 * write to it meanwhile. When the last registration of a page ends, the page becomes private memory
 * again, with its content. The engine maps shared memory (a memfd, POSIX or System V shared memory,
 * a file on tmpfs or hugetlbfs) as it is. `access`: enum rd_access.
 *
 * -EFAULT: no memory is mapped there, or shared memory ends before the range does; -EOPNOTSUPP:
 * memory that cannot move (a stack, a read-only file mapping, the kernel's), or shared memory that
 * the process cannot open or that is on another file system; -EACCES: not readable, or a right to
 * write to read-only memory; -EBUSY: memory that was registered, and that mremap(2) took elsewhere,
 * still has its place; -ENOMEM, -EDQUOT. A flat attachment registers memory from saker_alloc() only
 * (-EFAULT). doc/memory.md describes the details, and the rights that userfaultfd(2) needs.
 */
int saker_mr_create(
	struct saker_pd *pd, void *addr, size_t len, uint32_t access, struct saker_mr **out);
/* The same, with `base` as the address of the first byte in work requests of both sides. */
int saker_mr_create_at(struct saker_pd *pd, void *addr, size_t len, uint64_t base, uint32_t access,
	struct saker_mr **out);
/* Registers a range in the place of *mr, which ends, and sets *mr to the new registration. The STag
 * stays, and peers that use it find the one region or the other. -EBUSY: a memory window is bound
 * to *mr, which then stays, as after any failure. */
int saker_mr_replace(struct saker_mr **mr, struct saker_pd *pd, void *addr, size_t len,
	uint64_t base, uint32_t access);
/* Ends a registration. -EBUSY: a memory window is bound to it. */
int saker_mr_destroy(struct saker_mr *mr);
/* Returns the STag, which is both lkey and rkey. */
uint32_t saker_mr_stag(const struct saker_mr *mr);

/* ---- Completion queues ---- */

/* Creates a queue for at least `depth` completions. Overflow destroys completions and raises
 * SAKER_EV_CQ_OVERFLOW. `user`: saker_cq_user() returns it. -EINVAL: a depth of 0, or above the
 * device's limit; -ENOMEM: memory or the client's home region is exhausted; -EDQUOT, -ENOSPC: as
 * saker_pd_create(). */
int saker_cq_create(struct saker *s, uint32_t depth, void *user, struct saker_cq **out);
/* Makes a queue hold at least `depth` completions. One that holds more stays as it is. The
 * completions in it keep their order. The caller does not poll the queue meanwhile. Returns 0, or
 * -errno, and the queue stays as it was: -EINVAL: a depth of 0, or above the device's limit;
 * -EBUSY: an earlier resize is under way; -ENOMEM: memory or the client's home region is
 * exhausted; -EPROTO: the engine's reply is invalid. */
int saker_cq_resize(struct saker_cq *cq, uint32_t depth);
/* Destroys a queue, with the completions in it. -EBUSY: a QP or an XRC receive queue uses it. */
int saker_cq_destroy(struct saker_cq *cq);
/* Returns `user` of saker_cq_create(). */
void *saker_cq_user(const struct saker_cq *cq);
/* Takes up to `n` completions out of the queue. Returns how many. After the engine has gone, the
 * completions that are in the queue still come, and then 0. */
int saker_cq_poll(struct saker_cq *cq, struct rd_wc *wc, int n);
/* Requests one event for the next completion, or, with `solicited_only`, for the next one that is
 * solicited or failed. The program polls once more afterwards: a completion that came before gives
 * no event. */
void saker_cq_arm(struct saker_cq *cq, bool solicited_only);
/* Takes the next event of any CQ. Returns 1 with *cq, or 0 when there is none. Does not block. */
int saker_cq_event(struct saker *s, struct saker_cq **cq);

/* ---- Shared receive queues ---- */

/* Creates a receive queue for at least `depth` receives of at most `max_sge` elements, which any
 * number of QPs can share. -EINVAL: a depth of 0, values above the device's limits, or only one of
 * `xrcd` and `cq`; -ENOMEM, -EDQUOT, -ENOSPC: as saker_cq_create(). */
int saker_srq_create(struct saker_pd *pd, uint32_t depth, uint32_t max_sge, struct saker_srq **out);

struct saker_srq_attr {
	uint32_t depth, max_sge; /* the call rounds them up */
	uint32_t limit;          /* see saker_srq_set_limit() */
	/* Both or neither. With them it is an XRC queue: senders name it by its number, and its
	 * receives complete in `cq`. Its protection domain also serves the memory that senders
	 * read and write through it. */
	struct saker_xrcd *xrcd;
	struct saker_cq *cq;
	void *user;
};

/* The same, with these attributes. */
int saker_srq_create_as(struct saker_pd *pd, struct saker_srq_attr *attr, struct saker_srq **out);
/* Destroys a queue. -EBUSY: a QP uses it. */
int saker_srq_destroy(struct saker_srq *srq);
/* Returns `user` of its attributes; NULL without. */
void *saker_srq_user(const struct saker_srq *srq);
/* Returns the number of an XRC queue, 24 bits; else 0. */
uint32_t saker_srq_num(const struct saker_srq *srq);
/* Requests one SAKER_EV_SRQ_LIMIT for the moment when fewer than `limit` receives are in the queue
 * (at once, when that is so already). 0: none. -EINVAL: more than its depth. */
int saker_srq_set_limit(struct saker_srq *srq, uint32_t limit);
/* Makes the queue hold at least `depth` receives. One that holds more stays as it is. Threads that
 * post to the queue wait meanwhile. Returns the depth, or -errno: -EINVAL: above the device's
 * limit; -EBUSY: a signal handler calls it within a post to the queue; -ENOMEM and -EPROTO: as
 * saker_cq_resize(). */
int saker_srq_resize(struct saker_srq *srq, uint32_t depth);

/* ---- XRC domains ---- */

/*
 * Opens an XRC domain. Processes of one user that name the same file (st_dev, st_ino) share a
 * domain: each XRC receive QP in it serves all XRC receive queues in it. `ino` 0: a domain that no
 * other process shares. `create`: the domain is created when it does not exist (else -ENOENT);
 * `exclusive`: it must not exist (-EEXIST). -EPROTONOSUPPORT: no enabled transport has XRC domains;
 * -ENOMEM, -EDQUOT, -ENOSPC: as saker_pd_create().
 */
int saker_xrcd_open(struct saker *s, uint64_t dev, uint64_t ino, bool create, bool exclusive,
	struct saker_xrcd **out);
/* Closes a domain. -EBUSY: QPs or receive queues of this process are in it. */
int saker_xrcd_close(struct saker_xrcd *x);

/* ---- Classes of packets ---- */

enum saker_class_set { SAKER_CLASS_TRAFFIC = 1, SAKER_CLASS_PRIORITY = 2, SAKER_CLASS_FLOW = 4 };

/*
 * The class of the packets that this side sends; the peer chooses that of its own. A member counts
 * if its bit is in `set`. The first of these that sets a member determines it: saker_connect(),
 * saker_accept() or saker_qp_move(); the QP; for saker_accept() the listener; the client's section
 * of the engine's configuration. doc/traffic-classes.md describes them.
 */
struct saker_class {
	uint8_t set; /* bits of enum saker_class_set */
	/* The DSCP in the upper six bits, in IPv4 and IPv6. The lower two bits (ECN) do not count:
	 * they belong to the transport. */
	uint8_t traffic_class;
	/* 0 to 7. The configuration maps it to the priority of the VLAN tag; packets without a tag
	 * have none. */
	uint8_t priority;
	/* IPv6, 20 bits; 0: the engine chooses one. The flows of a Falcon connection begin with it,
	 * and may change it. */
	uint32_t flow_label;
};

/* ---- Queue pairs ---- */

struct saker_qp_attr {
	struct saker_cq *send_cq, *recv_cq;
	struct saker_srq *srq; /* NULL: the QP has a receive queue of its own */
	/* Entries, elements and bytes; saker_qp_create() rounds them up in place. */
	uint32_t sq_depth, rq_depth, max_send_sge, max_recv_sge, max_inline;
	bool sig_all; /* each request has a completion */
	enum saker_transport transport;
	/* enum saker_qp_type. SAKER_XRC_SEND needs no recv_cq, SAKER_XRC_RECV neither CQ; the `pd`
	 * of the latter only names the attachment. */
	uint8_t type;
	struct saker_xrcd *xrcd; /* of SAKER_XRC_RECV only */
	uint32_t access;         /* remote rights that the QP grants: enum rd_access; 0: all */
	struct saker_class traffic;
	void *user;
};

/* Creates a QP, in the state RESET. -EINVAL: values above the device's limits, a missing CQ, an SRQ
 * or an XRC domain that the type does not have; -EPROTONOSUPPORT: the transport is not enabled;
 * -EOPNOTSUPP: it has no QPs of the type, or `srq` cannot serve the datagrams of `pd`; -ENOMEM,
 * -EDQUOT, -ENOSPC: as saker_cq_create(). */
int saker_qp_create(struct saker_pd *pd, struct saker_qp_attr *attr, struct saker_qp **out);
/* Creates `n` QPs with the same attributes in out[0..n), with several commands under way at a time.
 * Returns n, or the number of QPs in front of the first one that could not be created;
 * saker_error() then has the reason, and no later QP of the array exists. -errno: there is none. */
int saker_qp_create_many(
	struct saker_pd *pd, struct saker_qp_attr *attr, uint32_t n, struct saker_qp **out);
/* Destroys a QP, and ends its connection as saker_disconnect() does with `abortive`. */
int saker_qp_destroy(struct saker_qp *qp);
/* Returns `user` of its attributes. */
void *saker_qp_user(const struct saker_qp *qp);
/* Returns the QP's number, 24 bits. */
uint32_t saker_qp_num(const struct saker_qp *qp);
/* Returns the attachment's QP with this number, or NULL. Does not block. */
struct saker_qp *saker_qp_find(struct saker *s, uint32_t qpn);
/* Opens the XRC receive QP with this number, which another process created in the same domain, to
 * query its state and to receive its events. The QP belongs to the other process and ends with it;
 * destroying this handle closes the handle only. -ENOENT: the domain has no such QP; -ENOSPC: the
 * QP has as many handles as it may have, or as saker_pd_create(), as -ENOMEM and -EDQUOT. */
int saker_qp_open(struct saker_xrcd *x, uint32_t qpn, struct saker_qp **out);

struct saker_qp_info {
	uint8_t state;     /* enum rd_qp_state */
	uint8_t transport; /* enum saker_transport */
	uint8_t type;      /* enum saker_qp_type */
	uint8_t sig_all;
	uint32_t qpn;
	uint32_t stage; /* the engine stage that serves it, from 0 */
	uint32_t sq_depth, rq_depth, max_send_sge, max_recv_sge, max_inline;
	uint32_t access;   /* remote rights that it grants: enum rd_access; 0: all */
	uint32_t ird, ord; /* as negotiated */
	uint32_t qkey;     /* SAKER_UD: the Q_Key that its receives accept */
	/* In effect; before a connection, as the QP and the configuration determine it. */
	struct saker_class traffic;
};

/* Queries the engine for the QP's present state. */
int saker_qp_query(struct saker_qp *qp, struct saker_qp_info *out);

/* The ordering modes of a Falcon connection (RDMA over Falcon 6.2). */
enum saker_ordering {
	SAKER_ORDER_CONFIGURED = 0, /* as configured for the peer or the port */
	SAKER_ORDER_STRONG,         /* data and completions in order */
	SAKER_ORDER_WEAK,           /* completions in order */
	/* No order; Sends and Writes with Immediate have one MTU at most. Errors complete. */
	SAKER_ORDER_NONE,
	SAKER_ORDER_ANY, /* listeners and saker_accept(): the mode that the peer requests */
};
/* The effects of a failed request (6.3). */
enum saker_errors {
	SAKER_ERRORS_CONFIGURED = 0,
	SAKER_ERRORS_VERBS,    /* the QP fails */
	SAKER_ERRORS_COMPLETE, /* the request completes in error, and the QP continues */
	SAKER_ERRORS_ANY,      /* listeners and saker_accept(): the mode that the peer requests */
};
/* Protection of packets. */
enum saker_psp {
	SAKER_PSP_GCM128 = 1 << 0,
	SAKER_PSP_GCM256 = 1 << 1,
	SAKER_PSP_GMAC128 = 1 << 2, /* authentication only */
	SAKER_PSP_GMAC256 = 1 << 3, /* authentication only */
	SAKER_PSP_NONE = 1 << 15,
};

/*
 * The properties of a Falcon connection. Where a program chooses them, 0 stands for the value of
 * the listener (saker_accept()) or of the engine's configuration, which may depend on the peer and
 * the port; without an error mode, SAKER_ORDER_NONE implies SAKER_ERRORS_COMPLETE. Both sides must
 * choose the same ordering and error mode; of MTU and flows, the smaller value applies. iWARP
 * ignores all of them.
 */
struct saker_modes {
	uint8_t ordering; /* enum saker_ordering */
	uint8_t errors;   /* enum saker_errors */
	uint8_t flows;    /* paths through the network: 1 or 4 */
	/* Bits of enum saker_psp; a connection uses the strongest that both sides allow. Of these,
	 * the engine offers those that its configuration allows for this peer, and refuses a choice
	 * without any of them. */
	uint16_t psp;
	/* RDMA payload of a packet, bytes: a power of two within 256..8192, reduced if the MTU of
	 * the port requires it */
	uint16_t mtu;
};

/* A transition of a QP's state. Each field belongs to one transition, and others ignore it. */
struct saker_qp_move {
	enum rd_qp_state state; /* RESET, INIT, RTR, RTS or ERR */
	struct sk_addr remote;  /* RTR: the peer's GID as an address */
	uint32_t remote_qpn;    /* RTR */
	uint32_t qkey;          /* INIT, SAKER_UD */
	uint32_t access;        /* INIT: remote rights, enum rd_access */
	uint8_t ird;            /* RTR */
	uint8_t ord;            /* RTS */
	uint8_t rnr_retry;     /* RTS: how often the peer may send RNR NAKs in a row; 7: no limit */
	uint8_t retry;         /* RTS: how often `timeout` passes before the peer counts as lost */
	uint8_t min_rnr_timer; /* RTR: how long a peer waits after an RNR NAK: verbs' 5-bit code */
	uint8_t timeout;       /* RTS: 4.096 us * 2^timeout; 0: no limit */
	struct sk_addr local;  /* RTR: the address that the peer names; unspecified: by route */
	/* RTR. SAKER_UD: `ordering`, which applies to the completions of sends: strong and weak
	 * are in order (saker_ah_create_as() chooses the order of the data); and `errors`, the
	 * effect of faults that this end finds. */
	struct saker_modes modes;
	struct saker_class traffic; /* RTR, but not SAKER_UD, whose address handles have classes */
};

/*
 * Changes the state of a QP that the program connects by itself, as with ibv_modify_qp(): RESET,
 * INIT, RTR, RTS in this order; from each of them, and from ERR, to RESET and to ERR. RTR, too,
 * returns at once: the connection is made in the background.
 *
 * Falcon: from RTR on the QP accepts the connection of the peer that it named, and no other; from
 * RTS on it also starts one. Work requests that are posted earlier wait. When there is work and the
 * peer has not answered within the time that `timeout` and `retry` give, the first request
 * completes with RD_RETRY_EXC_ERR, the others are flushed, and SAKER_EV_QP_FATAL comes. Such a QP
 * gets neither SAKER_EV_ESTABLISHED nor SAKER_EV_DISCONNECTED: the loss of the peer shows when
 * something is sent.
 *
 * A QP that saker_connect() or saker_accept() connects may be moved, too, with `remote` unspecified
 * and remote_qpn 0, which changes nothing: to INIT before, to RTR and RTS meanwhile. RESET removes
 * all posted work without completions; the QP can then be connected again.
 *
 * -EINVAL: no such transition from its state, or values out of range; -EADDRNOTAVAIL; -EBUSY:
 * another transition or a connection attempt is in progress.
 */
int saker_qp_move(struct saker_qp *qp, const struct saker_qp_move *m);
/* Calls saker_qp_move() for a state that needs no other field: RD_QP_RESET, RD_QP_ERR. */
int saker_qp_modify(struct saker_qp *qp, enum rd_qp_state state);

/* ---- Address handles ---- */

/* Creates a handle for a host that datagrams of `pd` may go to. The engine connects the two hosts
 * in the background, for all QPs together; datagrams that are posted meanwhile wait, up to a limit,
 * and are lost beyond it. -EINVAL: a multicast or unspecified address; -EPROTONOSUPPORT: no
 * transport has datagrams; -EDQUOT, -ENOSPC, -ENOMEM. */
int saker_ah_create(struct saker_pd *pd, const struct sk_addr *remote, struct saker_ah **out);
/* The same, with an order of the data: with SAKER_ORDER_STRONG, datagrams sent with such handles
 * arrive at the host in the order in which they were sent, by a connection of their own; with
 * SAKER_ORDER_WEAK and SAKER_ORDER_NONE they arrive in any order. saker_ah_create() uses
 * SAKER_ORDER_CONFIGURED. */
int saker_ah_create_as(struct saker_pd *pd, const struct sk_addr *remote,
	enum saker_ordering ordering, struct saker_ah **out);
/* The same, with a class of packets. The datagrams between two hosts that have the same order,
 * traffic class and priority share a connection, and the peer answers with the same class. The flow
 * label has no effect. */
int saker_ah_create_class(struct saker_pd *pd, const struct sk_addr *remote,
	enum saker_ordering ordering, const struct saker_class *traffic, struct saker_ah **out);
/* Destroys a handle. Requests with it that the engine has not taken yet complete with
 * RD_LOC_QP_OP_ERR. */
int saker_ah_destroy(struct saker_ah *ah);

/* ---- Posting ---- */

/* A work request. A receive has wr_id, nsge and sge only. */
struct saker_wr {
	uint64_t wr_id; /* returned in the completion */
	uint8_t opcode; /* enum rd_opcode */
	uint8_t flags;  /* enum rd_wr_flags. RD_INLINE: the call copies the elements' bytes, and
			   ignores their lkeys */
	uint8_t nsge;
	uint32_t rkey;        /* STag at the peer */
	uint64_t remote_addr; /* Write, Read, Atomics */
	/* Immediate data in host byte order, or the STag to invalidate. iWARP sends all 64 bits
	 * (RFC 7306 6), big-endian; Falcon sends the lower 32. */
	uint64_t imm;
	/* Atomics: Fetch and Add adds `data`; Compare and Swap stores `data` when `compare`
	 * matches; the masks select bits (RFC 7306 5). */
	uint64_t data, data_mask, compare, compare_mask;
	const struct rd_sge *sge; /* [nsge], copied by the call */
	/* SAKER_UD: RD_SEND and RD_SEND_IMM of at most one RDMA MTU. The request succeeds when the
	 * datagram has left; its arrival is not guaranteed. */
	const struct saker_ah *ah;
	uint32_t remote_qpn, remote_qkey;
	uint32_t remote_srqn; /* SAKER_XRC_SEND: number of the peer's shared receive queue */
};

/* Posts wr[0] to wr[n - 1], with one doorbell. Returns how many were posted (fewer than `n`: the
 * queue is full, or the next request exceeds the QP's capabilities), -EINVAL when wr[0] exceeds
 * them, or -EPIPE. An entry of the queue is free again when the engine has copied the request: at
 * the latest with its completion. A Compare and Swap with masks uses two entries if max_send_sge is
 * 1 and max_inline at most 24. */
int saker_post_send(struct saker_qp *qp, const struct saker_wr *wr, int n);
/* Returns whether the send queue has `n` free entries. */
bool saker_send_fits(struct saker_qp *qp, uint32_t n);
/* Posts receives; the results are those of saker_post_send(). */
int saker_post_recv(struct saker_qp *qp, const struct saker_wr *wr, int n);
/* The same for a shared receive queue, which any number of threads may post to. Returns -EBUSY in a
 * signal handler that interrupted its thread within this function for the same queue. */
int saker_post_srq(struct saker_srq *srq, const struct saker_wr *wr, int n);

/* ---- Memory windows ---- */

/*
 * Allocates a memory window. A window grants peers access to a part of a region, with rights of its
 * own, from the moment when a QP of its protection domain executes a bind. A bind is a work
 * request, not a command. A window has no lkey. Type 1: each bind replaces the one before, a bind
 * of no bytes removes it, and any QP of the domain serves the peers. Type 2: the window serves the
 * QP that bound it, and must be invalidated before the next bind, by RD_LOCAL_INV on that QP or by
 * the peer's RD_SEND_INV; after the end of that QP it can only be freed. -EINVAL: there is no such
 * type; -ENOSPC: all STags are in use, or as saker_pd_create(), as -ENOMEM and -EDQUOT.
 */
int saker_mw_alloc(struct saker_pd *pd, enum rd_mw_type type, struct saker_mw **out);
/* Frees a window, bound or not. */
int saker_mw_free(struct saker_mw *mw);
/* Returns the rkey of the bind that was posted last, which is valid once that bind is executed. */
uint32_t saker_mw_stag(const struct saker_mw *mw);

struct saker_mw_bind {
	uint64_t wr_id;
	uint8_t flags;             /* RD_SIGNALED, RD_FENCE */
	uint8_t key;               /* type 2: low 8 bits of the new STag; type 1 increments them */
	const struct saker_mr *mr; /* with RD_ACC_MW_BIND; NULL with len 0 */
	uint64_t addr, len;        /* range within `mr` */
	uint32_t access; /* remote rights; write and atomic need RD_ACC_LOCAL_WRITE on `mr`. Type 2:
			    RD_ACC_ZERO_BASED makes the peer's addresses start at 0 */
};

/*
 * Posts RD_BIND_MW; later requests of `qp` find the window bound. Returns 0, -ENOMEM when the queue
 * is full, or -EPIPE. An invalid bind completes with RD_MW_BIND_ERR and moves the QP to the error
 * state; so does an invalid local invalidate, with RD_LOC_PROT_ERR. One thread at a time may bind a
 * window.
 *
 * A program that counts keys itself may post the request with saker_post_send(): rkey is the
 * window's STag with the new key, imm the region's STag, remote_addr and data the range, compare
 * the rights.
 */
int saker_mw_bind(struct saker_qp *qp, struct saker_mw *mw, const struct saker_mw_bind *b);

/* ---- Connections ---- */

#define SAKER_PRIVATE_MAX 512    /* bytes of private data */
#define SAKER_DEPTH_AUTO  0x3fff /* an IRD or ORD that is not negotiated (RFC 6581 9.1) */

/* Ready-to-receive messages of the peer-to-peer model (RFC 6581 9.2). */
enum saker_rtr {
	SAKER_RTR_ANY = 0, /* all that the revision allows */
	SAKER_RTR_SEND = 1,
	SAKER_RTR_WRITE = 2,
	SAKER_RTR_READ = 4,
	SAKER_RTR_NONE = 8, /* client-server model: the side that connected sends first */
};

/* How a connection attempt treats a peer that implements MPA revision 1 only (RFC 6581 10). */
enum saker_enhanced {
	SAKER_ENHANCED_CONFIGURED = 0, /* as the engine's configuration states */
	SAKER_ENHANCED_ONLY = 1,       /* the attempt fails */
	SAKER_ENHANCED_TRY = 2, /* a second attempt uses revision 1: no depths are negotiated,
				   and the side that connected sends first */
};

/* The Atomics of an iWARP connection. Both sides must use the same. */
enum saker_dialect {
	SAKER_DIALECT_CONFIGURED = 0,
	SAKER_DIALECT_RFC7306 = 1,
	SAKER_DIALECT_DRAFT = 2, /* draft-ietf-storm-rdmap-ext-00: with Swap */
};

/* Port spaces: connections and datagram services have separate ports. */
enum saker_space { SAKER_SPACE_TCP = 0, SAKER_SPACE_UDP = 1 };

struct saker_conn_param {
	/* Reads and Atomics that the peer may have in progress here (ird), and this side there
	 * (ord): at most the device's limits. SAKER_DEPTH_AUTO: not negotiated, the device's limit
	 * applies. With an ORD of 0 a Read or an Atomic completes with RD_LOC_QP_OP_ERR. */
	uint16_t ird, ord;
	uint8_t revision; /* MPA revision, 1 or 2; 0: as configured */
	/* MPA: 0: no, 1: yes, 2: as configured. Either side can require a CRC: 0 leaves the choice
	 * to the peer, even if the configuration requires one. */
	uint8_t crc, markers;
	uint8_t rtr;      /* enum saker_rtr: the messages that this side offers */
	uint8_t enhanced; /* saker_connect(): enum saker_enhanced */
	uint16_t lport;   /* saker_connect(): the local port, host order; 0: the engine chooses */
	uint8_t dialect;  /* enum saker_dialect. RD_SWAP needs SAKER_DIALECT_DRAFT on both sides,
			     and completes with RD_LOC_QP_OP_ERR otherwise */
	/* saker_connect(), saker_accept(): return without waiting for the engine's reply, so that
	 * many connections may be under way. When the engine refuses the command,
	 * SAKER_EV_UNREACHABLE comes with the status and, in the thread that takes the event, the
	 * sentence of saker_error(). */
	bool no_wait;
	struct saker_modes modes; /* Falcon */
	struct saker_class traffic;
	const void *private_data; /* [private_len], copied by the call */
	uint16_t private_len; /* at most SAKER_PRIVATE_MAX bytes; MPA revision 2 and Falcon: 508 */
};

/* The parameters of a connection in an event. */
struct saker_conn_info {
	struct sk_addr local, remote;
	uint16_t lport, rport;       /* host order */
	uint16_t ird, ord;           /* in effect; of a request: if it is accepted with the most
					that the device allows */
	uint16_t peer_ird, peer_ord; /* as the peer stated them (RFC 6581 9.1); SAKER_DEPTH_AUTO
					also when the peer stated none */
	uint8_t revision;            /* of MPA */
	uint8_t crc, markers;        /* 1: in use */
	uint8_t rtr;                 /* the one message in use, enum saker_rtr */
	uint8_t enhanced;            /* 1: an enhanced exchange (RFC 6581) */
	uint8_t dialect;             /* enum saker_dialect */
	uint8_t transport;           /* of a request: enum saker_transport of the QP that can
					accept it */
	uint8_t space;               /* of a request: enum saker_space */
	uint8_t type;                /* of a request: enum saker_qp_type of that QP */
	struct saker_modes modes;    /* Falcon: in use; of a request: as the peer requests them */
	uint32_t remote_qpn, remote_qkey; /* the result of saker_ud_resolve() */
	uint16_t private_len;             /* bytes */
	uint8_t private_data[SAKER_PRIVATE_MAX];
};

/* Listens for connections to a port. `addr` NULL or ::: every address of every interface; 0.0.0.0:
 * every IPv4 address; `port` 0: the engine chooses. Requests come as SAKER_EV_CONNECT_REQUEST; at
 * most `backlog` wait for an answer, and the engine rejects one that is not answered within 10 s.
 * `user`: saker_listener_user() returns it. -EADDRINUSE: the port is in use, or no port is free;
 * -EADDRNOTAVAIL: `addr` is not an address of the device; -EDQUOT, -ENOSPC, -ENOMEM. */
int saker_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out);
/* The same, with a revision (1: enhanced requests are refused, as by a peer that implements
 * revision 1 only), CRC, markers, ready-to-receive messages, modes of Falcon and a class other than
 * the configuration's. The other members of *p are ignored: they belong to saker_accept(). -EINVAL:
 * a member of *p has a value that does not exist. */
int saker_listen_as(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out);
/* The same, on every IPv6 address and no IPv4 address. `space`: SAKER_SPACE_UDP listens as
 * saker_ud_listen() does. -EPROTONOSUPPORT: SAKER_SPACE_UDP, and no transport has datagrams. */
int saker_listen_v6only(struct saker *s, enum saker_space space, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out);
/* Ends a listener, and rejects the requests that wait for an answer. The engine itself closes a
 * listener whose address is removed from the configuration: no event reports that, and the program
 * still has to end it. */
int saker_unlisten(struct saker_listener *l);
/* Returns `user` of saker_listen(). */
void *saker_listener_user(const struct saker_listener *l);
/* Returns the port, in host order. */
uint16_t saker_listener_port(const struct saker_listener *l);
/* Starts to connect a QP; SAKER_EV_ESTABLISHED, _REJECTED or _UNREACHABLE follows. `local` NULL:
 * the engine chooses by route; `p` NULL: the device's limits, the rest as configured.
 *
 * -EISCONN: the QP is connecting or connected; -EINVAL: the QP was connected before or is in the
 * error state, `remote` and `port` are not the address of a peer, or a value of *p does not exist;
 * -EPROTOTYPE: a QP of this type does not connect; -EADDRNOTAVAIL: `local` is not an address of the
 * device; -EAFNOSUPPORT: `local` and `remote` are of different families; -EACCES: the configuration
 * allows none of p->modes.psp for this peer; -EMSGSIZE: too much private data for the transport.
 * SAKER_EV_UNREACHABLE has the status -EADDRINUSE when p->lport has, or had until lately, a
 * connection with that peer and port. */
int saker_connect(struct saker_qp *qp, const struct sk_addr *local, const struct sk_addr *remote,
	uint16_t port, const struct saker_conn_param *p);
/* Accepts a request with `qp`; SAKER_EV_ESTABLISHED follows. `p` may be NULL. -ECONNRESET: there is
 * no such request: its peer has left, or it was not answered in time; -EPROTOTYPE: the request
 * requires a QP of another transport or type; -EISCONN, -EINVAL, -EACCES, -EMSGSIZE: as
 * saker_connect(). */
int saker_accept(
	struct saker *s, uint32_t request, struct saker_qp *qp, const struct saker_conn_param *p);
/* Rejects a request, with private data for the peer, copied by the call. -ECONNRESET: as
 * saker_accept(); -EINVAL: more private data than SAKER_PRIVATE_MAX; -EMSGSIZE: more than the
 * transport carries. */
int saker_reject(struct saker *s, uint32_t request, const void *private_data, size_t len);
/* The same, reporting the depths that this side requires (RFC 6581 9.1): p->ird, p->ord. */
int saker_reject_as(struct saker *s, uint32_t request, const struct saker_conn_param *p);
/* Ends a connection; SAKER_EV_DISCONNECTED follows. Requests that the engine has taken are sent
 * first, unless `abortive`. After an abortive end over iWARP, the peer still gets the messages of
 * completed requests, unless other requests are posted or the peer waits for a response. -ENOTCONN:
 * the QP is not connected. */
int saker_disconnect(struct saker_qp *qp, bool abortive);

/* ---- Datagram services ---- */

/*
 * Listens for lookups of the datagram QP that serves a port. Each lookup comes as
 * SAKER_EV_CONNECT_REQUEST (cm.space is SAKER_SPACE_UDP) with the sender's address and private
 * data. saker_accept() with a datagram QP answers with the QP's number and Q_Key (of *p, which may
 * not be NULL, the private data counts only), saker_reject() refuses. No connection results, so no
 * end of one is reported. Errors are those of saker_listen(), and -EPROTONOSUPPORT when no
 * transport has datagrams.
 */
int saker_ud_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out);
/* Looks up a port on behalf of `qp`, a datagram QP, one lookup at a time (-EISCONN).
 * SAKER_EV_ESTABLISHED with cm.remote_qpn, cm.remote_qkey and private data, SAKER_EV_REJECTED with
 * private data, or SAKER_EV_UNREACHABLE follows. */
int saker_ud_resolve(struct saker_qp *qp, const struct sk_addr *remote, uint16_t port,
	const void *private_data, size_t len);

/* ---- Events ---- */

enum saker_event_type {
	SAKER_EV_CONNECT_REQUEST, /* listener, request, cm */
	SAKER_EV_ESTABLISHED,     /* qp, cm */
	SAKER_EV_REJECTED,        /* qp, cm: private data, and the depths that the peer requires */
	/* qp, status. During MPA's start-up: -ENOBUFS: the peer's ORD exceeds the IRD here;
	 * -EOPNOTSUPP: no common ready-to-receive message; -EPROTO: another fault of the peer. */
	SAKER_EV_UNREACHABLE,
	SAKER_EV_DISCONNECTED, /* qp */
	SAKER_EV_QP_FATAL,     /* qp, async: the QP is in the error state */
	SAKER_EV_CQ_OVERFLOW,  /* cq, async */
	SAKER_EV_SRQ_LIMIT,    /* srq */
	SAKER_EV_ENGINE_GONE,  /* the attachment can only be closed */
};

/* Why an object failed. */
struct saker_async {
	uint32_t code;   /* a reason of the transport; 0: an orderly end */
	char reason[64]; /* its name, from the engine */
};

struct saker_event {
	enum saker_event_type type;
	int status; /* 0 or -errno */
	/* The object: the others are NULL. */
	struct saker_qp *qp;
	struct saker_cq *cq;
	struct saker_srq *srq;
	struct saker_listener *listener;
	uint32_t request; /* for saker_accept() and saker_reject() */
	struct saker_conn_info cm;
	struct saker_async async;
};

/* Takes the next event. Returns 1 with *ev, or 0 when there is none. Does not block. */
int saker_event(struct saker *s, struct saker_event *ev);
/* Returns the name of an event type, such as "connect request". Never NULL. */
const char *saker_event_str(enum saker_event_type type);
/* Sleeps until an event or a CQ event may be there, for at most `timeout_ms` ms (-1: no limit); a
 * flat attachment polls with short sleeps. Returns 1 when there may be one, 0 after the timeout, or
 * -EPIPE after SAKER_EV_ENGINE_GONE was taken. */
int saker_wait(struct saker *s, int timeout_ms);
/* Returns a descriptor for poll(2), owned by the attachment, that is readable when an event or a CQ
 * event may be there. The program takes events until there are none. Returns -1 for a flat
 * attachment, except behind an ivshmem device. */
int saker_fd(struct saker *s);

#ifdef __cplusplus
}
#endif

#endif
