/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of libsaker-verbs lives as long as the process and must be whole in both after fork(2): each
 * part takes its locks before, lets go of them in the parent, and begins anew in the child.
 */
#ifndef SAKER_VERBS_PROCESS_PRIV_H
#define SAKER_VERBS_PROCESS_PRIV_H

void vb_contexts_fork_prepare(void);
void vb_contexts_fork_parent(void);
void vb_contexts_fork_child(void);

void vb_dispatch_fork_prepare(void);
void vb_dispatch_fork_parent(void);
void vb_dispatch_fork_child(void);

#endif
