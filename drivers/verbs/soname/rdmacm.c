/* SPDX-License-Identifier: BSD-3-Clause */
/* librdmacm.so.1 for programs that load it by its name: see ibverbs.c. It has no function of its
 * own. */
extern void rdma_freeaddrinfo(void *info);
extern void (*const verbs_dependency)(void *info);
/* The linker keeps the dependency on a library that is used. */
void (*const verbs_dependency)(void *info) = rdma_freeaddrinfo;
