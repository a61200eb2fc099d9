/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs.so.1 for programs that load it by its name (dlopen), or that link with libraries which
 * do. It has the symbol versions of the genuine library; its functions are those of
 * libsaker-verbs.so, on which it depends. The functions here are those that the genuine library has
 * for the providers of rdma-core, which some programs load as well: no device needs them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *folder, const char *file, char *to, size_t size);

/* The linker keeps the dependency on a library that is used. */
extern int ibv_fork_init(void);
extern int (*const verbs_dependency)(void);
int (*const verbs_dependency)(void) = ibv_fork_init;

#define REFUSED(name)                                                                              \
	int name(void);                                                                            \
	int name(void)                                                                             \
	{                                                                                          \
		return EOPNOTSUPP;                                                                 \
	}
#define NOTHING(name)                                                                              \
	void *name(void);                                                                          \
	void *name(void)                                                                           \
	{                                                                                          \
		return NULL;                                                                       \
	}

NOTHING(_verbs_init_and_alloc_context)
NOTHING(verbs_open_device)
NOTHING(verbs_register_driver_34)
NOTHING(verbs_set_ops)
NOTHING(ibv_register_driver)
NOTHING(verbs_uninit_context)
NOTHING(__verbs_log)
NOTHING(__ioctl_final_num_attrs)
REFUSED(verbs_init_cq)
REFUSED(execute_ioctl)
REFUSED(ibv_read_ibdev_sysfs_file)
REFUSED(ibv_cmd_advise_mr)
REFUSED(ibv_cmd_alloc_dm)
REFUSED(ibv_cmd_alloc_mw)
REFUSED(ibv_cmd_alloc_pd)
REFUSED(ibv_cmd_attach_mcast)
REFUSED(ibv_cmd_close_xrcd)
REFUSED(ibv_cmd_create_ah)
REFUSED(ibv_cmd_create_counters)
REFUSED(ibv_cmd_create_cq)
REFUSED(ibv_cmd_create_cq_ex)
REFUSED(ibv_cmd_create_flow)
REFUSED(ibv_cmd_create_flow_action_esp)
REFUSED(ibv_cmd_create_qp)
REFUSED(ibv_cmd_create_qp_ex)
REFUSED(ibv_cmd_create_qp_ex2)
REFUSED(ibv_cmd_create_rwq_ind_table)
REFUSED(ibv_cmd_create_srq)
REFUSED(ibv_cmd_create_srq_ex)
REFUSED(ibv_cmd_create_wq)
REFUSED(ibv_cmd_dealloc_mw)
REFUSED(ibv_cmd_dealloc_pd)
REFUSED(ibv_cmd_dereg_mr)
REFUSED(ibv_cmd_destroy_ah)
REFUSED(ibv_cmd_destroy_counters)
REFUSED(ibv_cmd_destroy_cq)
REFUSED(ibv_cmd_destroy_flow)
REFUSED(ibv_cmd_destroy_flow_action)
REFUSED(ibv_cmd_destroy_qp)
REFUSED(ibv_cmd_destroy_rwq_ind_table)
REFUSED(ibv_cmd_destroy_srq)
REFUSED(ibv_cmd_destroy_wq)
REFUSED(ibv_cmd_detach_mcast)
REFUSED(ibv_cmd_free_dm)
REFUSED(ibv_cmd_get_context)
REFUSED(ibv_cmd_modify_cq)
REFUSED(ibv_cmd_modify_flow_action_esp)
REFUSED(ibv_cmd_modify_qp)
REFUSED(ibv_cmd_modify_qp_ex)
REFUSED(ibv_cmd_modify_srq)
REFUSED(ibv_cmd_modify_wq)
REFUSED(ibv_cmd_open_qp)
REFUSED(ibv_cmd_open_xrcd)
REFUSED(ibv_cmd_poll_cq)
REFUSED(ibv_cmd_post_recv)
REFUSED(ibv_cmd_post_send)
REFUSED(ibv_cmd_post_srq_recv)
REFUSED(ibv_cmd_query_context)
REFUSED(ibv_cmd_query_device_any)
REFUSED(ibv_cmd_query_mr)
REFUSED(ibv_cmd_query_port)
REFUSED(ibv_cmd_query_qp)
REFUSED(ibv_cmd_query_srq)
REFUSED(ibv_cmd_read_counters)
REFUSED(ibv_cmd_reg_dm_mr)
REFUSED(ibv_cmd_reg_dmabuf_mr)
REFUSED(ibv_cmd_reg_mr)
REFUSED(ibv_cmd_req_notify_cq)
REFUSED(ibv_cmd_rereg_mr)
REFUSED(ibv_cmd_resize_cq)

extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

const char *
ibv_get_sysfs_path(void)
{
	return "/sys";
}

int
ibv_read_sysfs_file(const char *folder, const char *file, char *to, size_t size)
{
	char path[1024];
	ssize_t n = -1;
	int fd = -1;

	if (size > 0 && snprintf(path, sizeof(path), "%s/%s", folder, file) < (int)sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, to, size - 1);
	close(fd);
	if (n > 0 && to[n - 1] == '\n')
		n--;
	if (n >= 0)
		to[n] = '\0';
	return (int)n;
}
