/* SPDX-License-Identifier: BSD-3-Clause */
/* The registry: the objects that clients create by commands and name by handles. */
#ifndef SAKER_ENGINE_REGISTRY_H
#define SAKER_ENGINE_REGISTRY_H

#include "../core/conn.h"
#include "../core/core.h"

struct ctl_pd {
	struct rd_pd rd;
	uint32_t handle;
};

/* An object that a stage may have looked up by STag: freed when every loop has passed a quiet
 * point. */
struct ctl_retired {
	TAILQ_ENTRY(ctl_retired) next;
	struct ctl_client *client;
	struct ctl_op *op; /* the command that destroys it, or NULL */
	uint64_t token;    /* of the quiescent state that it waits for */
	void (*free)(struct eng_control *c, struct ctl_retired *r);
};

struct ctl_mr {
	struct ctl_retired end; /* first */
	struct rd_mr rd;
	uint32_t handle;
	uint32_t regions[SHM_MAX_EXTENTS]; /* region of each extent, as counted */
	struct rd_extent extents[];
};

struct ctl_mw {
	struct ctl_retired end; /* first */
	struct rd_mw rd;
	uint32_t handle;
};

struct ctl_cq {
	struct rd_cq eng; /* first: CQs are cache-line aligned */
	uint32_t piece, depth;
	bool dying;
};

struct ctl_srq {
	struct rd_srq eng;
	uint32_t piece;
	struct ctl_xrcd_ref *xrcd; /* XRC: as its client opened it */
	uint32_t slot;             /* XRC: in c->xrc_srqs */
	bool dying;
};

struct ctl_xrcd {
	struct eng_xrcd eng;
	TAILQ_ENTRY(ctl_xrcd) all;
	uint64_t tenant, dev, ino;
	uint32_t opens;
};

/* An XRC domain, as one client has opened it. */
struct ctl_xrcd_ref {
	struct ctl_xrcd *domain;
	uint32_t handle;
	uint32_t users; /* the client's QPs and receive queues in it */
};

/* What a client's QP handle leads to: a QP of its own (struct ctl_qp), or one of another client
 * that it has opened (struct ctl_opened). */
struct ctl_qp_ref {
	bool opened;
	uint32_t handle;
};

struct ctl_qp {
	struct ctl_qp_ref ref; /* first */
	struct eng_qp eng;
	struct cm_conn conn;
	uint32_t piece;            /* of the heap */
	bool added;                /* the engine stage has it */
	struct ctl_xrcd_ref *xrcd; /* SHM_XRC_RECV */
	LIST_HEAD(, ctl_opened) openers;
};

/* SHM_QP_OPEN: a client's handle for another client's XRC receive QP. */
struct ctl_opened {
	struct ctl_qp_ref ref; /* first */
	struct ctl_client *client;
	struct ctl_qp *target; /* NULL: it was destroyed */
	struct ctl_xrcd_ref *xrcd;
	LIST_ENTRY(ctl_opened) next; /* of target->openers */
};

/* Returns the QP of a connection that a client has. */
static inline struct ctl_qp *
ctl_qp_of(const struct cm_conn *conn)
{
	return SK_CONTAINER(conn, struct ctl_qp, conn);
}

/* Handlers of clients' commands. */
ctl_handler ctl_pd_create, ctl_pd_destroy, ctl_mr_create, ctl_mr_destroy, ctl_mw_create,
	ctl_mw_destroy, ctl_cq_create, ctl_cq_destroy, ctl_srq_create, ctl_srq_destroy,
	ctl_srq_modify, ctl_xrcd_open, ctl_xrcd_close, ctl_qp_open, ctl_qp_create, ctl_qp_query,
	ctl_qp_destroy;

/* Find an object by its client's handle. They return NULL when there is none, or it is being
 * destroyed. ctl_qp_find() does not return a QP that the client has only opened. */
struct ctl_pd *ctl_pd_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_cq *ctl_cq_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_srq *ctl_srq_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_xrcd_ref *ctl_xrcd_find(const struct ctl_client *cl, uint32_t handle);
struct ctl_qp *ctl_qp_find(const struct ctl_client *cl, uint32_t handle);
/* Returns the connection of the QP with that number, of any client, or NULL. */
struct cm_conn *ctl_conn_of_qpn(const struct eng_control *c, uint32_t qpn);

/* Start the end of an object; `op` may be quiet. */
void ctl_qp_delete(struct eng_control *c, struct ctl_qp *q, struct ctl_op *op);
void ctl_cq_delete(struct eng_control *c, struct ctl_cq *cq, struct ctl_op *op);
void ctl_srq_delete(struct eng_control *c, struct ctl_srq *s, struct ctl_op *op);
/* Free an object of which nothing is in flight. */
void ctl_qp_free(struct eng_control *c, struct ctl_qp *q);
void ctl_pd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_pd *pd);
void ctl_xrcd_free(struct eng_control *c, struct ctl_client *cl, struct ctl_xrcd_ref *ref);
void ctl_opened_free(struct ctl_opened *o);
/* Sends the clients that have opened the QP its error (`code`: a reason of the transport, `reason`
 * its name). */
void ctl_qp_notify_openers(struct eng_control *c, struct ctl_qp *q, int code, const char *reason);
/* Detaches the clients that have opened the QP, which is about to be freed. */
void ctl_qp_leave_openers(struct eng_control *c, struct ctl_qp *q);
/* Takes a region or a window out of the table of STags and retires it. */
void ctl_mr_retire(struct eng_control *c, struct ctl_mr *mr);
void ctl_mw_retire(struct eng_control *c, struct ctl_mw *mw);

/* Enters a region or a window under an STag that cannot be predicted. Returns 0 or -ENOSPC. */
int ctl_stag_add(struct eng_control *c, struct rd_mr *mr);
/* The object is in no table any more: frees it at the next quiet point of all loops. */
void ctl_retire(struct eng_control *c, struct ctl_client *cl, struct ctl_retired *r);
/* Frees the objects for which quiescence has come. Returns whether there were any. */
bool ctl_retire_poll(struct eng_control *c);
/* Frees all of them: no loop runs. */
void ctl_retire_all(struct eng_control *c);
/* Returns the engine stage with the fewest QPs. */
uint8_t ctl_least_loaded(const struct eng_control *c);
/* Returns a ring of 2^log2_count entries at `entries`, bytes from the home region's start. */
struct shm_ring_at ctl_ring_at(
	uint64_t entries, uint64_t cons, uint16_t stride, uint8_t log2_count);

#endif
