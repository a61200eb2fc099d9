/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of an id. The library applies the options about addresses and the traffic class. It
 * checks acknowledgement timeout and IB paths and ignores them: Saker's configuration sets these
 * for all connections of an interface.
 */
#include <string.h>

#include "cm_priv.h"

static int
take_int(const void *val, size_t len, int *out)
{
	if (val == NULL || len != sizeof(*out))
		return EINVAL;
	memcpy(out, val, len);
	return 0;
}

struct saker_class
vb_cm_class_of(const struct cm_id *id)
{
	return (struct saker_class){
		.set = id->tos_set ? SAKER_CLASS_TRAFFIC : 0, .traffic_class = id->tos};
}

/* Sets the traffic class of what the id connects or accepts later. */
static int
option_tos(struct cm_id *id, const void *val, size_t len)
{
	if (val == NULL || len != sizeof(id->tos))
		return EINVAL;
	memcpy(&id->tos, val, sizeof(id->tos));
	id->tos_set = true;
	/* rdma_listen() listens with the new value. */
	if (id->state == CM_BOUND)
		vb_cm_listen_end(id);
	return 0;
}

static int
option_id(struct cm_id *id, int name, const void *val, size_t len)
{
	int v, err;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		return option_tos(id, val, len);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (val == NULL || len != sizeof(uint8_t))
			return EINVAL;
		id->ack_timeout = *(const uint8_t *)val;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		err = take_int(val, len, &v);
		if (err == 0)
			err = vb_cm_check(id, CM_IDLE | CM_BOUND);
		if (err == 0)
			id->port.reuse = v != 0;
		if (err == 0 && id->port.reuse)
			vb_cm_listen_end(id);
		return err;
	case RDMA_OPTION_ID_AFONLY:
		err = take_int(val, len, &v);
		if (err == 0)
			err = vb_cm_check(id, CM_IDLE | CM_BOUND);
		if (err == 0 && id->port.afonly != (v != 0)) {
			/* rdma_listen() listens with the new value. */
			vb_cm_listen_end(id);
			id->port.afonly = v != 0;
		}
		return err;
	default:
		return ENOSYS;
	}
}

VB_EXPORT int
rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
	if (level == RDMA_OPTION_ID)
		return vb_cm_end(option_id(vb_cm_id_of(id), optname, optval, optlen));
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return vb_cm_end(
			optval != NULL && optlen > 0 && optlen % sizeof(struct ibv_path_data) == 0
				? 0
				: EINVAL);
	return vb_cm_end(ENOSYS);
}
