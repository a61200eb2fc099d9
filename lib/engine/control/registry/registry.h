/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry: the objects that clients create by commands, and their handles. */
#ifndef SAKER_ENGINE_REGISTRY_H
#define SAKER_ENGINE_REGISTRY_H

#include "../core/conn.h"
#include "../core/core.h"

struct ctl_pd {
	struct rd_pd rd;
	uint32_t handle;
	/* The engine stage of its datagram QPs and address handles, which must have the same: each
	 * of these QPs may use each of these handles. -1: there has been neither. */
	int stage;
};

/* A retired object: it is in no table any more, but a stage may have found it by its STag just
 * before. It is freed when every loop has passed a quiet point. */
struct ctl_retired {
	TAILQ_ENTRY(ctl_retired) next;
	struct ctl_client *client;
	struct ctl_op *op; /* the command that destroys the object, or NULL */
	uint64_t token;    /* of rte_rcu_qsbr, for the quiet point that the object waits for */
	void (*free)(struct eng_control *c, struct ctl_retired *r);
};

struct ctl_mr {
	struct ctl_retired end; /* must be the first member */
	struct rd_mr rd;
	uint32_t handle;
	uint32_t regions[SHM_MAX_EXTENTS]; /* number of the region that has each extent */
	struct rd_extent extents[];
};

struct ctl_mw {
	struct ctl_retired end; /* must be the first member */
	struct rd_mw rd;
	uint32_t handle;
};

_Static_assert(ENG_MAX_STAGES <= 64, "ctl_cq.stages has a bit for each stage");

/* Aligned to a cache line. */
struct ctl_cq {
	uint32_t piece, depth, nsubs;
	uint64_t stages; /* bit i: stage i has a sub-ring */
	/* Pieces of the sub-rings that replaced smaller ones. Each is for all that there were. */
	uint32_t moved[CTL_CQ_MOVES], nmoved;
	bool moving; /* the stages are about to use the last one */
	bool dying;
	struct rd_cq eng; /* must be the last member: it ends with the parts of the stages */
};

struct ctl_srq {
	struct rd_srq eng;
	uint32_t piece;
	/* The ring to which the queue can move; larger == HEAP_NONE: there is none. */
	uint32_t larger;
	struct shm_ring_at larger_at;
	bool moving;               /* the stage is about to use it */
	struct ctl_xrcd_ref *xrcd; /* XRC: its domain, as the client has opened it; else NULL */
	uint32_t slot;             /* XRC: number in c->xrc_srqs */
	bool dying;
};

struct ctl_xrcd {
	struct eng_xrcd eng;
	LIST_ENTRY(ctl_xrcd) bucket; /* in c->xrcds, if it has a file */
	uint64_t tenant, dev, ino;   /* the clients' tenant, and the file; ino 0: no file */
	uint32_t opens;              /* clients' references (struct ctl_xrcd_ref) */
};

/* An XRC domain, as one client has opened it. */
struct ctl_xrcd_ref {
	struct ctl_xrcd *domain;
	uint32_t handle;
	uint32_t users; /* the client's QPs and shared receive queues in the domain */
};

/* The object of a client's QP handle: a QP that the client owns (struct ctl_qp), or a QP of another
 * client that it has opened (struct ctl_opened). */
struct ctl_qp_ref {
	bool opened;
	uint32_t handle;
};

struct ctl_qp {
	struct ctl_qp_ref ref; /* must be the first member */
	struct eng_qp eng;
	struct cm_conn conn;
	uint32_t piece;            /* number of its piece of the heap */
	bool added;                /* the engine stage has answered ENG_CE_QP_ADD */
	struct ctl_xrcd_ref *xrcd; /* SHM_XRC_RECV: its domain; else NULL */
	LIST_HEAD(, ctl_opened) openers;
	uint32_t nopeners;
};

/* The XRC receive QP of another client, which a client has opened by SHM_QP_OPEN. */
struct ctl_opened {
	struct ctl_qp_ref ref; /* must be the first member */
	struct ctl_client *client;
	struct ctl_qp *target; /* NULL: its owner has destroyed it */
	struct ctl_xrcd_ref *xrcd;
	LIST_ENTRY(ctl_opened) next; /* of target->openers */
};

/* Returns the QP of a connection. The connection must not be a host connection. */
static inline struct ctl_qp *
ctl_qp_of(const struct cm_conn *conn)
{
	return SK_CONTAINER(conn, struct ctl_qp, conn);
}

/* The handlers of clients' commands. */
ctl_handler ctl_pd_create, ctl_pd_destroy, ctl_mr_create, ctl_mr_destroy, ctl_mw_create,
	ctl_mw_destroy, ctl_cq_create, ctl_cq_resize, ctl_cq_destroy, ctl_srq_create,
	ctl_srq_destroy, ctl_srq_modify, ctl_srq_resize, ctl_xrcd_open, ctl_xrcd_close, ctl_qp_open,
	ctl_qp_create, ctl_qp_query, ctl_qp_destroy;

/* Determines the engine stage of the domain's datagram QPs and address handles: `stage`, or the
 * least loaded one if `stage` is below 0. The domain has none yet, or it has this one. Returns 0,
 * or -ENOMEM with a refusal in `m`. */
int ctl_pd_settle(struct eng_control *c, struct ctl_client *cl, struct ctl_pd *pd, int stage,
	struct shm_msg *m);

/* Return the object with the client's handle, or NULL when no object has it or the object is being
 * destroyed. ctl_qp_find() does not return a QP that the client has only opened. */
struct ctl_pd *ctl_pd_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_cq *ctl_cq_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_srq *ctl_srq_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_xrcd_ref *ctl_xrcd_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_qp *ctl_qp_find(const struct ctl_client *cl, uint32_t handle);
/* Returns the connection of the QP with that QP number, of any client, or NULL. */
struct cm_conn *ctl_conn_of_qpn(const struct eng_control *c, uint32_t qpn);

/* Begin to destroy an object. `op` sends the reply at the end; it may be quiet. */
void ctl_qp_delete(struct eng_control *c, struct ctl_qp *q, struct ctl_op *op);
void ctl_cq_delete(struct eng_control *c, struct ctl_cq *cq, struct ctl_op *op);
void ctl_srq_delete(struct eng_control *c, struct ctl_srq *s, struct ctl_op *op);
/* Free an object. No message about it may be in a ring. */
void ctl_qp_free(struct eng_control *c, struct ctl_qp *q);
void ctl_pd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_pd *pd);
void ctl_xrcd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_xrcd_ref *ref);
void ctl_opened_free(struct ctl_opened *o);
/* Sends SHM_EV_QP_FATAL to the clients that have opened the QP. `code` is a reason of the
 * transport, `reason` its name. */
void ctl_qp_notify_openers(struct eng_control *c, struct ctl_qp *q, int code, const char *reason);
/* Detaches the clients that have opened the QP, which is about to be freed. */
void ctl_qp_leave_openers(struct eng_control *c, struct ctl_qp *q);
/* Remove a memory region or a memory window from the table of STags and retire it. */
void ctl_mr_retire(struct eng_control *c, struct ctl_mr *mr);
void ctl_mw_retire(struct eng_control *c, struct ctl_mw *mw);

/* Enters a region or a window into the table of STags. The key of the STag is unpredictable.
 * Returns 0, or -ENOSPC when all STags are in use. */
int ctl_stag_add(struct eng_control *c, struct rd_mr *mr);
/* Frees the object, which is in no table any more, when all loops have passed a quiet point. */
void ctl_retire(struct eng_control *c, struct ctl_client *cl, struct ctl_retired *r);
/* Frees the retired objects whose quiet point has passed. Returns whether there were any. */
bool ctl_retire_poll(struct eng_control *c);
/* Frees all retired objects. No loop may be running. */
void ctl_retire_all(struct eng_control *c);
/* Returns the engine stage with the fewest QPs. */
uint8_t ctl_least_loaded(const struct eng_control *c);
/* Returns the description of a ring of 2^log2_count entries of `stride` bytes. `entries` and `cons`
 * (the consumer's index) are offsets in bytes from the start of the home region. */
/* Makes the sub-ring of a CQ for a stage, unless it exists. Returns 0, or -ENOMEM when the home
 * region has no room. */
int ctl_cq_sub(struct ctl_client *cl, struct ctl_cq *cq, uint32_t stage);
struct shm_ring_at ctl_ring_at(
	uint64_t entries, uint64_t cons, uint16_t stride, uint8_t log2_count);

#endif
