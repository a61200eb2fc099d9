/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsaker: what a client process links. Plain C, no EAL. Its words are those of verbs: a program
 * opens a saker, allocates a protection domain, registers memory, makes CQs and QPs, connects,
 * posts and polls.
 *
 * Functions that return int give 0 (or a count) or -errno; saker_error() has the engine's sentence
 * about the last failure of the calling thread. Posting and polling never block and make no system
 * call, but to wake an engine that sleeps. A QP may be posted to by one thread at a time, a CQ
 * polled by one thread at a time; everything else is safe between threads.
 *
 * After fork(2) every attachment is the parent's: in the child it counts as gone, and its
 * descriptors are closed. Registered memory that was the program's own is the child's own again,
 * with the content of the moment; memory from saker_alloc() it must not touch. It may exec, exit,
 * or open an attachment of its own.
 *
 * When the engine goes away (its socket ends, or it lets go of the client), SAKER_EV_ENGINE_GONE
 * comes once, commands and posts give -EPIPE, and destroying succeeds, since with the engine the
 * object is gone.
 */
#ifndef SAKER_H
#define SAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/addr.h"
#include "../rdma/rdma.h"
#include "../shm/shm.h"

struct saker;
struct saker_pd;
struct saker_mr;
struct saker_mw;
struct saker_cq;
struct saker_srq;
struct saker_qp;
struct saker_ah;
struct saker_xrcd;
struct saker_listener;

const char *saker_error(void);

/* ---- Attaching ---- */

/* Over the Unix socket of a running saker (NULL: $SAKER_SOCKET, then SHM_SOCKET_DEFAULT), or, in a
 * virtual machine, through the memory of an ivshmem device: "ivshmem:" takes the first that there
 * is, "ivshmem:0000:00:04.0" a certain one, "ivshmem:/PATH" a memory file. With NULL and no socket
 * the device is looked for, too. `name` is what the engine calls the program. Such an attachment
 * has a thread of its own for its heartbeat. */
int saker_open(const char *socket, const char *name, struct saker **out);
/* Whether somebody is where saker_open() would look; nothing is attached. 0 or -errno. */
int saker_look(const char *socket);
/* A flat region: `base` maps `size` bytes whose header the engine has written. No descriptors, no
 * wake-ups. `idle` (may be NULL) is called while a command waits for its reply: a program with the
 * engine in the same thread drives it there. */
int saker_open_flat(
	void *base, size_t size, void (*idle)(void *arg), void *arg, struct saker **out);
/* Destroys what is left. */
void saker_close(struct saker *s);
int saker_device(struct saker *s, struct shm_device *out);
/* Readable when an event or a CQ event may wait; -1 for a flat attachment, but for one through an
 * ivshmem device, whose own thread looks. */
int saker_fd(struct saker *s);

/* ---- Memory ---- */

/* Memory that can be registered: from the flat region, or from an arena that the engine maps (grown
 * as needed; huge pages where there are some). Zeroed, aligned to 4096. NULL: no memory or quota.
 */
void *saker_alloc(struct saker *s, size_t len);
void saker_free(struct saker *s, void *p, size_t len);

int saker_pd_create(struct saker *s, struct saker_pd **out);
int saker_pd_destroy(struct saker_pd *pd);
/*
 * Registers [addr, addr + len): memory from saker_alloc(), or any private memory of the program
 * (from malloc(3), mmap(2), static), which is then moved into shared memory where it stands, by
 * whole pages, without a second copy; other threads may write to it meanwhile. When the last
 * registration of a page ends, the page is private memory again, with its content. `access`: enum
 * rd_access.
 *
 * -EFAULT: no memory is there; -EOPNOTSUPP: memory that cannot move (a stack, MAP_SHARED,
 * MAP_HUGETLB, a file mapped for reading, the kernel's); -EACCES: not readable, or a right to write
 * to read-only memory; -EBUSY: it was registered and has been taken elsewhere by mremap(2);
 * -ENOMEM, -EDQUOT. A flat attachment registers memory from saker_alloc() only (-EFAULT).
 * doc/memory.md says more, also what a process may do without the right to use userfaultfd(2) in
 * full.
 */
int saker_mr_create(
	struct saker_pd *pd, void *addr, size_t len, uint32_t access, struct saker_mr **out);
/* The same with `base` as the address of its first byte in requests, its own and peers'. */
int saker_mr_create_at(struct saker_pd *pd, void *addr, size_t len, uint64_t base, uint32_t access,
	struct saker_mr **out);
/* -EBUSY while a window is bound to it. */
int saker_mr_destroy(struct saker_mr *mr);
uint32_t saker_mr_stag(const struct saker_mr *mr); /* lkey and rkey */

/* ---- Memory windows ---- */

/*
 * A window gives peers part of a region, with rights of its own, from the moment when a QP of its
 * protection domain executes a bind; it needs no command, and has no lkey. Type 1: each bind takes
 * the place of the one before, and one of no bytes takes it away; any QP of the domain serves the
 * peers. Type 2: it serves the QP that bound it, and must be invalidated before it is bound again:
 * by RD_LOCAL_INV on that QP (imm: the STag) or by the peer's RD_SEND_INV. Without its QP it can
 * but be freed.
 */
int saker_mw_alloc(struct saker_pd *pd, enum rd_mw_type type, struct saker_mw **out);
/* Also while it is bound. */
int saker_mw_free(struct saker_mw *mw);
/* The rkey of the bind that was posted last; it holds when that bind is executed. */
uint32_t saker_mw_stag(const struct saker_mw *mw);

struct saker_mw_bind {
	uint64_t wr_id;
	uint8_t flags; /* RD_SIGNALED, RD_FENCE */
	uint8_t key;   /* type 2: the new STag's low 8 bits; type 1 counts them up by one */
	const struct saker_mr *mr; /* with RD_ACC_MW_BIND; NULL with len 0 */
	uint64_t addr, len;        /* within it */
	uint32_t access; /* remote rights; write and atomic need local write on `mr`. Type 2:
			    RD_ACC_ZERO_BASED makes the peer's addresses count from 0 */
};

/* Posts RD_BIND_MW: requests of `qp` behind it find the window bound. 0, -ENOMEM (the queue is
 * full), -EPIPE. What is wrong with it shows in the completion, RD_MW_BIND_ERR, and takes the QP to
 * the error state; so does a local invalidation that may not be (RD_LOC_PROT_ERR). A program that
 * keeps account of keys itself may post the request as such: rkey is the window's STag with the
 * new key, imm the region's STag, remote_addr and data the range, compare the rights. A window is
 * bound by one thread at a time. */
int saker_mw_bind(struct saker_qp *qp, struct saker_mw *mw, const struct saker_mw_bind *b);

/* ---- Completion queues ---- */

int saker_cq_create(struct saker *s, uint32_t depth, void *user, struct saker_cq **out);
int saker_cq_destroy(struct saker_cq *cq);
void *saker_cq_user(const struct saker_cq *cq);
/* Up to `n` completions; returns how many. */
int saker_cq_poll(struct saker_cq *cq, struct rd_wc *wc, int n);
/* Ask for one event for the next completion (or the next solicited one or error). Poll once more
 * afterwards. */
void saker_cq_arm(struct saker_cq *cq, bool solicited_only);
/* Takes the next CQ event: 1 with *cq, 0 when there is none. */
int saker_cq_event(struct saker *s, struct saker_cq **cq);
/* Sleeps until something may have come, at most `timeout_ms` (-1: no bound); a flat attachment
 * polls in naps. 1: look, 0: time is up. */
int saker_wait(struct saker *s, int timeout_ms);

/* ---- Queue pairs ---- */

struct saker_qp_attr {
	struct saker_cq *send_cq, *recv_cq;
	struct saker_srq *srq; /* NULL: own receive queue */
	/* Rounded up in place. */
	uint32_t sq_depth, rq_depth, max_send_sge, max_recv_sge, max_inline;
	bool sig_all;
	enum shm_transport transport;
	/* enum shm_qp_type. SHM_XRC_SEND needs no recv_cq, SHM_XRC_RECV neither CQ, and its `pd`
	 * serves nothing but to name the attachment. */
	uint8_t type;
	struct saker_xrcd *xrcd; /* of SHM_XRC_RECV alone */
	uint32_t access;         /* remote rights that the QP grants: enum rd_access; 0: all */
	void *user;
};

/* ---- Shared receive queues ---- */

int saker_srq_create(struct saker_pd *pd, uint32_t depth, uint32_t max_sge, struct saker_srq **out);

struct saker_srq_attr {
	uint32_t depth, max_sge; /* rounded up in place */
	uint32_t limit;          /* as saker_srq_set_limit() */
	/* Both or neither: an XRC queue, which senders name by its number, and where its receives
	 * complete. Its memory is that of its protection domain, and so is what senders read and
	 * write when they name it. */
	struct saker_xrcd *xrcd;
	struct saker_cq *cq;
	void *user;
};

int saker_srq_create_as(struct saker_pd *pd, struct saker_srq_attr *attr, struct saker_srq **out);
int saker_srq_destroy(struct saker_srq *srq);
void *saker_srq_user(const struct saker_srq *srq);
uint32_t saker_srq_num(const struct saker_srq *srq); /* XRC; else 0 */
/* SAKER_EV_SRQ_LIMIT comes once when fewer than `limit` receives are left, or are there now; 0:
 * never. -EINVAL: more than its depth. */
int saker_srq_set_limit(struct saker_srq *srq, uint32_t limit);

/* ---- XRC domains ---- */

/*
 * Processes of one user that name the same file (st_dev, st_ino) share a domain: any of their XRC
 * receive QPs serves all of their XRC receive queues. `ino` 0: a domain that is nobody else's.
 * `create`: it may be made; `exclusive`: it must be (-EEXIST). -ENOENT without `create`, -EDQUOT.
 */
int saker_xrcd_open(struct saker *s, uint64_t dev, uint64_t ino, bool create, bool exclusive,
	struct saker_xrcd **out);
/* -EBUSY: QPs or receive queues of this process are in it. */
int saker_xrcd_close(struct saker_xrcd *x);

/* ---- Address handles ---- */

/* Names a host that datagrams of `pd` may go to. What connects the two hosts is made in the
 * background and shared by all; datagrams that are posted meanwhile wait, up to a bound, and beyond
 * it are lost. -EINVAL: multicast, or nobody's address; -ENETUNREACH, -EDQUOT. */
int saker_ah_create(struct saker_pd *pd, const struct sk_addr *remote, struct saker_ah **out);
/* Requests that name it complete RD_LOC_QP_OP_ERR from here on, unless the engine has taken them.
 */
int saker_ah_destroy(struct saker_ah *ah);

int saker_qp_create(struct saker_pd *pd, struct saker_qp_attr *attr, struct saker_qp **out);
int saker_qp_destroy(struct saker_qp *qp);
void *saker_qp_user(const struct saker_qp *qp);
uint32_t saker_qp_num(const struct saker_qp *qp);
struct saker_qp *saker_qp_find(struct saker *s, uint32_t qpn); /* NULL: none */
/* The XRC receive QP of this number, which another process made in the same domain: to be asked
 * about, and to hear of its end. It is the other's: it goes with it, and destroying this handle
 * only closes it. -ENOENT. */
int saker_qp_open(struct saker_xrcd *x, uint32_t qpn, struct saker_qp **out);
/* The engine's word on its state, ird, ord. */
int saker_qp_query(struct saker_qp *qp, struct shm_qp_info *out);
/* saker_qp_move() to a state that needs nothing else: RD_QP_RESET, RD_QP_ERR. */
int saker_qp_modify(struct saker_qp *qp, enum rd_qp_state state);

/* As struct shm_qp_move says. The move to RTR, too, returns at once: the connection is made in the
 * background, patiently. */
struct saker_qp_move {
	enum rd_qp_state state;
	struct sk_addr remote; /* the peer's GID as an address */
	uint32_t remote_qpn;
	uint32_t qkey;
	uint32_t access; /* enum rd_access */
	uint8_t ird, ord, rnr_retry, retry, min_rnr_timer, timeout;
	struct sk_addr local; /* ours, as the peer names us; unspecified: by the route */
};

/*
 * Moves a QP as a program does that connects it by itself: RESET, INIT, RTR, RTS in this order;
 * from each of them, and from ERR, to RESET and to ERR.
 *
 * Falcon: from RTR on the QP takes the connection of the peer that it named, and of no other; from
 * RTS on it also begins one. Work that is posted meanwhile waits. When there is work and the peer
 * has not shown itself for as long as timeout and retry say, the first request completes
 * RD_RETRY_EXC_ERR, the others are flushed, and SAKER_EV_QP_FATAL comes. A QP moved by hand hears
 * of no ESTABLISHED or DISCONNECTED: a peer that is gone is noticed when something is sent to it.
 *
 * A QP that the connection manager connects may be moved, too, which changes nothing: INIT before,
 * RTR and RTS during that. RESET takes what was posted away without completions; the QP can be
 * connected again.
 *
 * -EINVAL: no such move from its state, or values that cannot be. -EADDRNOTAVAIL, -EBUSY
 * (another move is not over, or it is connecting by the connection manager).
 */
int saker_qp_move(struct saker_qp *qp, const struct saker_qp_move *m);

struct saker_wr {
	uint64_t wr_id;
	uint8_t opcode; /* enum rd_opcode */
	uint8_t flags;  /* enum rd_wr_flags; RD_INLINE copies the elements' bytes at once, lkeys are
			   not looked at */
	uint8_t nsge;
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t imm; /* or the STag to invalidate */
	uint64_t data, data_mask, compare, compare_mask;
	const struct rd_sge *sge;
	/* SHM_UD: RD_SEND and RD_SEND_IMM of at most one RDMA MTU. It succeeds when it has left:
	 * nobody promises that it arrives. */
	const struct saker_ah *ah;
	uint32_t remote_qpn, remote_qkey;
	uint32_t remote_srqn; /* SHM_XRC_SEND */
};

/* Posts wr[0..n) and rings once. Returns how many were taken (fewer: -ENOMEM would follow, the
 * queue is full), or -EINVAL when wr[0] exceeds the QP's capabilities. A place in the queue is free
 * again when the engine has copied the request: at the latest when its completion is there. */
int saker_post_send(struct saker_qp *qp, const struct saker_wr *wr, int n);
/* Whether its send queue has room for `n` requests now. */
bool saker_send_fits(struct saker_qp *qp, uint32_t n);
int saker_post_recv(struct saker_qp *qp, const struct saker_wr *wr, int n); /* wr_id, nsge, sge */
int saker_post_srq(struct saker_srq *srq, const struct saker_wr *wr, int n);

/* ---- Connections ---- */

struct saker_conn_param {
	/* Reads and Atomics that the peer may have outstanding here, and we there: at most what the
	 * device says. SHM_DEPTH_AUTO: not negotiated, the device's limit holds. With an ORD of 0 a
	 * Read or Atomic completes as RD_LOC_QP_OP_ERR. */
	uint16_t ird, ord;
	uint8_t revision; /* MPA revision; 0: the configuration's */
	/* 0, 1, or 2: the configuration's. A CRC is used when either side asks for it: 0 leaves it
	 * to the peer, whatever the configuration prefers. */
	uint8_t crc, markers;
	uint8_t rtr;      /* enum shm_rtr: what may announce us, or what we let announce the peer */
	uint8_t enhanced; /* connecting: enum shm_enhanced */
	uint16_t lport;   /* connecting: the local port, host order; 0: chosen */
	uint8_t dialect;  /* enum shm_dialect: RD_SWAP needs SHM_DIALECT_DRAFT on both sides, and
			     completes as RD_LOC_QP_OP_ERR otherwise */
	const void *private_data;
	uint16_t private_len; /* at most SHM_PRIVATE_MAX (508 with revision 2) */
};

enum saker_event_type {
	/* cm.peer_ird and cm.peer_ord are what the peer stated (RFC 6581 9.1), cm.ird and cm.ord
	 * what holds, or would. */
	SAKER_EV_CONNECT_REQUEST, /* listener, request, cm */
	SAKER_EV_ESTABLISHED,     /* qp, cm: also which revision and ready-to-receive message */
	SAKER_EV_REJECTED,        /* qp, cm (private data, and which depths the peer asks for) */
	/* qp, status. Of MPA's start-up: -ENOBUFS the peer reads deeper than our IRD, -EOPNOTSUPP
	 * no common ready-to-receive message, -EPROTO another fault of the peer's. */
	SAKER_EV_UNREACHABLE,
	SAKER_EV_DISCONNECTED, /* qp */
	SAKER_EV_QP_FATAL,     /* qp, async */
	SAKER_EV_CQ_OVERFLOW,  /* cq, async */
	SAKER_EV_SRQ_LIMIT,    /* srq */
	SAKER_EV_ENGINE_GONE,  /* the saker went away: nothing works any more */
};

struct saker_event {
	enum saker_event_type type;
	int status;
	struct saker_qp *qp;
	struct saker_cq *cq;
	struct saker_srq *srq;
	struct saker_listener *listener;
	uint32_t request;
	struct shm_cm cm;
	struct shm_async async;
};

/* 1 with *ev, 0: none waits. */
int saker_event(struct saker *s, struct saker_event *ev);

/* `addr` NULL: every address of every interface. */
int saker_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out);
/* The same with a revision (1: enhanced requests are refused, as by a peer that does not know
 * them), CRC, markers and ready-to-receive messages other than the configuration's. The rest of *p
 * is not looked at: it belongs to the acceptance. */
int saker_listen_as(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	const struct saker_conn_param *p, void *user, struct saker_listener **out);
int saker_unlisten(struct saker_listener *l);
void *saker_listener_user(const struct saker_listener *l);
uint16_t saker_listener_port(const struct saker_listener *l);
/* The reply says only that the attempt began; ESTABLISHED, REJECTED or UNREACHABLE follows
 * (-EADDRINUSE: p->lport has a connection with that peer and port, or had one lately). `local` may
 * be NULL. */
int saker_connect(struct saker_qp *qp, const struct sk_addr *local, const struct sk_addr *remote,
	uint16_t port, const struct saker_conn_param *p);
/* ESTABLISHED follows. */
int saker_accept(
	struct saker *s, uint32_t request, struct saker_qp *qp, const struct saker_conn_param *p);
int saker_reject(struct saker *s, uint32_t request, const void *private_data, size_t len);
/* The same, telling which depths would have been needed (RFC 6581 9.1): p->ird, p->ord. */
int saker_reject_as(struct saker *s, uint32_t request, const struct saker_conn_param *p);
/* Orderly: posted work that the engine has taken goes out first. DISCONNECTED follows. */
int saker_disconnect(struct saker_qp *qp, bool abortive);

/* ---- Datagram services ---- */

/*
 * Which datagram QP serves a port? Datagram services have a port space of their own. The listener
 * hears of each question by SAKER_EV_CONNECT_REQUEST (cm.space is SHM_SPACE_UDP, with the asker's
 * address and private data) and answers with saker_accept() naming one of its datagram QPs, whose
 * number and Q_Key the asker gets (of *p, which may not be NULL, only the private data counts), or
 * with saker_reject(). Nothing stays between the two: there is no end to be told.
 */
int saker_ud_listen(struct saker *s, const struct sk_addr *addr, uint16_t port, uint32_t backlog,
	void *user, struct saker_listener **out);
/* Asks on behalf of `qp`, a datagram QP, one question at a time (-EISCONN). SAKER_EV_ESTABLISHED
 * with cm.remote_qpn, cm.remote_qkey and private data, REJECTED (private data) or UNREACHABLE
 * follows. */
int saker_ud_resolve(struct saker_qp *qp, const struct sk_addr *remote, uint16_t port,
	const void *private_data, size_t len);

#endif
