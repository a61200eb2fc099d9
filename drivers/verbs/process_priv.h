/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handlers of fork(2) for the state of libsaker-verbs that lives as long as the process. Each
 * part takes its locks before the fork, so that its state is consistent in both processes. It
 * releases the locks in the parent and starts afresh in the child.
 */
#ifndef SAKER_VERBS_PROCESS_PRIV_H
#define SAKER_VERBS_PROCESS_PRIV_H

struct vb_attachment;
struct vb_context;

/* Destroys the engine's objects of a closed context. Call with the events' lock held. */
void vb_owned_end(struct vb_context *c);

void vb_contexts_fork_prepare(void);
void vb_contexts_fork_parent(void);
void vb_contexts_fork_child(void);

void vb_devices_fork_prepare(void);
void vb_devices_fork_parent(void);
void vb_devices_fork_child(void);

void vb_objects_fork_prepare(void);
void vb_objects_fork_parent(void);
void vb_objects_fork_child(void);

void vb_dispatch_fork_prepare(void);
void vb_dispatch_fork_parent(void);
/* `a`: the attachment of the parent, or NULL. */
void vb_dispatch_fork_child(struct vb_attachment *a);

#endif
