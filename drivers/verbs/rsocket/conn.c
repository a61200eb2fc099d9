/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: rsocket() to rconnect(), the events of rdma_cm, and how a connection ends. */
#include <arpa/inet.h>
#include <string.h>

#include "rs_priv.h"

int
vb_rs_id_new(struct vb_rs *rs)
{
	int state = vb_cancel_off(), err = vb_rs_thread_start();

	if (err == 0 && rdma_create_id(vb_rs_cm_channel(), &rs->id, rs, RDMA_PS_TCP) != 0)
		err = errno;
	vb_cancel_back(state);
	return err;
}

void
vb_rs_drop(struct vb_rs *rs)
{
	if (rs->id != NULL)
		vb_rs_thread_close(rs);
	else
		vb_rs_unlist(rs);
}

VB_EXPORT int
rsocket(int domain, int type, int protocol)
{
	int flags = type & (SOCK_NONBLOCK | SOCK_CLOEXEC), kind = type & ~flags, fd, err;
	struct vb_rs *rs;

	if (domain != AF_INET && domain != AF_INET6)
		return vb_rs_end(vb_fail(EAFNOSUPPORT, "rsocket: no address family %d", domain));
	if (kind != SOCK_STREAM)
		return vb_rs_end(vb_fail(EPROTONOSUPPORT,
			"rsocket: sockets are streams (SOCK_STREAM), not of type %d", kind));
	if (protocol != 0 && protocol != IPPROTO_TCP)
		return vb_rs_end(vb_fail(EPROTONOSUPPORT, "rsocket: no protocol %d", protocol));
	rs = vb_rs_new(domain);
	if (rs == NULL)
		return -1;
	err = vb_rs_id_new(rs);
	fd = err == 0 ? vb_rs_pair(rs, -1, flags) : -err;
	if (fd >= 0)
		return fd;
	vb_rs_drop(rs);
	return vb_rs_end(-fd);
}

/* ---- Addresses ---- */

/* Copies an address of the socket's family. Returns 0 or errno. */
static int
address_take(const struct vb_rs *rs, const struct sockaddr *addr, socklen_t len,
	struct sockaddr_storage *to)
{
	socklen_t need =
		rs->domain == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	if (addr == NULL || len < sizeof(addr->sa_family))
		return EINVAL;
	if (addr->sa_family != rs->domain)
		return EAFNOSUPPORT;
	if (len < need)
		return EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, addr, need);
	return 0;
}

/* Stores an address of rdma_cm in the form of the socket's family. */
static void
address_note(const struct vb_rs *rs, const struct sockaddr *from, struct sockaddr_storage *to)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr_in in;

	if (from->sa_family == AF_INET6 || rs->domain == AF_INET) {
		memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(in6) : sizeof(in));
		return;
	}
	memcpy(&in, from, sizeof(in));
	in6.sin6_port = in.sin_port;
	in6.sin6_addr.s6_addr[10] = in6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&in6.sin6_addr.s6_addr[12], &in.sin_addr, 4);
	if (in.sin_addr.s_addr == 0)
		memset(&in6.sin6_addr, 0, sizeof(in6.sin6_addr));
	memcpy(to, &in6, sizeof(in6));
}

static void
addresses_note(struct vb_rs *rs)
{
	address_note(rs, rdma_get_local_addr(rs->id), &rs->local);
	if ((rs->state & (RS_BOUND | RS_LISTENING)) == 0)
		address_note(rs, rdma_get_peer_addr(rs->id), &rs->remote);
}

/* ---- The calls ---- */

/* Returns the errno of connect(2) for a socket that is not a new one. */
static int
connect_refusal(const struct vb_rs *rs)
{
	if (rs->state == RS_CONNECTING)
		return EALREADY;
	return (rs->state & (RS_CONNECTED | RS_ACCEPTING | RS_LISTENING)) != 0 ? EISCONN : EINVAL;
}

/* Returns the socket of a descriptor, locked and with a reference, if it is in one of the states
 * and this process serves it. NULL with errno: in another state that of `refusal`, or EINVAL. */
static struct vb_rs *
socket_lock(int fd, unsigned in, int (*refusal)(const struct vb_rs *rs))
{
	struct vb_rs *rs = vb_rs_get(fd);
	int err = 0;

	if (rs == NULL)
		return NULL;
	pthread_mutex_lock(&rs->lock);
	if (rs->epoch != vb_rs_epoch())
		err = vb_fail(EOPNOTSUPP, "the socket belongs to the parent process");
	else if ((rs->state & in) == 0)
		err = refusal != NULL ? refusal(rs) : EINVAL;
	if (err == 0)
		return rs;
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	errno = err;
	return NULL;
}

static int
socket_unlock(struct vb_rs *rs, int err)
{
	pthread_mutex_unlock(&rs->lock);
	vb_rs_put(rs);
	return vb_rs_end(err);
}

static int
bind_locked(struct vb_rs *rs, struct sockaddr_storage *ss)
{
	int on = 1;

	if (rs->v6only && rdma_set_option(rs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on,
				  sizeof(on)) != 0)
		return errno;
	if (rdma_bind_addr(rs->id, (struct sockaddr *)ss) != 0)
		return errno;
	rs->state = RS_BOUND;
	rs->bound = true;
	addresses_note(rs);
	return 0;
}

VB_EXPORT int
rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct vb_rs *rs = socket_lock(socket, RS_NEW, NULL);
	struct sockaddr_storage ss;
	int err, state;

	if (rs == NULL)
		return -1;
	state = vb_cancel_off();
	err = address_take(rs, addr, addrlen, &ss);
	err = socket_unlock(rs, err != 0 ? err : bind_locked(rs, &ss));
	vb_cancel_back(state);
	return err;
}

VB_EXPORT int
rlisten(int socket, int backlog)
{
	struct vb_rs *rs = socket_lock(socket, RS_NEW | RS_BOUND | RS_LISTENING, NULL);
	struct sockaddr_storage any = {0};
	int err = 0, state;

	if (rs == NULL)
		return -1;
	state = vb_cancel_off();
	any.ss_family = (sa_family_t)rs->domain;
	if (rs->state == RS_NEW)
		err = bind_locked(rs, &any);
	rs->backlog = backlog > 0 ? (uint32_t)backlog : 1;
	if (err == 0 && rs->state == RS_BOUND) {
		if (rdma_listen(rs->id, 0) != 0)
			err = errno;
		else
			rs->state = RS_LISTENING;
		addresses_note(rs);
	}
	vb_rs_show(rs);
	err = socket_unlock(rs, err);
	vb_cancel_back(state);
	return err;
}

/* Sends the request. Returns 0 or errno. */
static int
connect_request(struct vb_rs *rs)
{
	struct rdma_conn_param p = {.retry_count = 7, .rnr_retry_count = 7};
	struct rs_hello hello;
	int err = vb_rs_stream_new(rs, vb_rs_comp_channel(rs->id->verbs));

	if (err != 0)
		return err;
	vb_rs_hello_fill(rs, &hello);
	p.private_data = &hello;
	p.private_data_len = sizeof(hello);
	return rdma_connect(rs->id, &p) == 0 ? 0 : errno;
}

/* Starts to connect. Returns 0 when an outcome follows, or errno. */
static int
connect_begin(struct vb_rs *rs, struct sockaddr_storage *ss)
{
	int err;

	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)ss, 2000) != 0)
		return errno;
	/* The address is resolved when the call returns, or an event has the reason. */
	if (rdma_resolve_route(rs->id, 2000) != 0)
		return ENETUNREACH;
	rs->state = RS_CONNECTING;
	address_note(rs, (struct sockaddr *)ss, &rs->remote);
	err = connect_request(rs);
	if (err != 0)
		vb_rs_connect_fail(rs, err);
	return 0;
}

void
vb_rs_connect_fail(struct vb_rs *rs, int err)
{
	if (rs->failed == 0)
		rs->failed = err;
	vb_rs_thread_failed(rs);
}

/* Binds the new id of a socket to the port of the old one, as the program expects of TCP. */
static void
bind_again(struct vb_rs *rs)
{
	struct sockaddr_storage local = rs->local;

	rs->bound = bind_locked(rs, &local) == 0;
	if (!rs->bound)
		memset(&rs->local, 0, sizeof(rs->local));
}

/* An id connects once. */
void
vb_rs_connect_failed(struct vb_rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	if (rs->state == RS_CONNECTING && rs->failed != 0) {
		rs->err = rs->failed;
		rs->failed = 0;
		vb_rs_stream_free(rs);
		rdma_destroy_id(rs->id);
		rs->id = NULL;
		rs->state = vb_rs_id_new(rs) == 0 ? RS_NEW : RS_CLOSED;
		if (rs->state == RS_NEW && rs->bound)
			bind_again(rs);
		vb_rs_show(rs);
	}
	pthread_mutex_unlock(&rs->lock);
}

/* Waits for the outcome of connect_begin(). Returns 0 or errno. */
static int
connect_wait(struct vb_rs *rs)
{
	int err = 0;

	while (rs->state == RS_CONNECTING && err == 0) {
		err = vb_rs_wait(rs, POLLOUT, 0);
		if (err == EAGAIN)
			err = EINPROGRESS;
	}
	if (rs->state == RS_CONNECTED || err != 0)
		return err;
	err = vb_rs_error_take(rs);
	return err != 0 ? err : ECONNABORTED;
}

VB_EXPORT int
rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	struct vb_rs *rs = socket_lock(socket, RS_NEW | RS_BOUND, connect_refusal);
	struct sockaddr_storage ss;
	int err, state;

	if (rs == NULL)
		return -1;
	state = vb_cancel_off();
	err = address_take(rs, addr, addrlen, &ss);
	/* The outcome of an attempt before, if the program has not got it yet. */
	if (err == 0)
		err = vb_rs_error_take(rs);
	if (err == 0)
		err = connect_begin(rs, &ss);
	vb_rs_show(rs);
	vb_cancel_back(state);
	return socket_unlock(rs, err != 0 ? err : connect_wait(rs));
}

/* Writes an address to the caller's place, as accept(2) does. */
static void
address_give(const struct sockaddr_storage *ss, struct sockaddr *addr, socklen_t *len)
{
	socklen_t have = ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in);

	if (addr == NULL || len == NULL)
		return;
	memcpy(addr, ss, *len < have ? *len : have);
	*len = have;
}

/* Waits for a connection of a listener. Returns 0 or errno. */
static int
accept_wait(struct vb_rs *rs)
{
	int err = 0;

	while (rs->nready == 0 && rs->state == RS_LISTENING && err == 0)
		err = vb_rs_wait(rs, POLLIN, 0);
	if (rs->state != RS_LISTENING)
		return rs->err != 0 ? rs->err : EINVAL;
	return rs->nready == 0 ? err : 0;
}

/* Gives the first connection of a listener a descriptor. Without a free one the connection stays
 * the first, as with accept(2). Returns the descriptor, or -errno. */
static int
accept_first(struct vb_rs *rs, struct sockaddr *addr, socklen_t *addrlen, int flags)
{
	struct vb_rs *new = STAILQ_FIRST(&rs->ready);
	int fd;

	pthread_mutex_lock(&new->lock);
	fd = vb_rs_pair(new, -1, flags);
	if (fd >= 0) {
		address_give(&new->remote, addr, addrlen);
		vb_rs_progress(new);
		vb_rs_show(new);
	}
	pthread_mutex_unlock(&new->lock);
	if (fd < 0)
		return fd;
	STAILQ_REMOVE_HEAD(&rs->ready, next_ready);
	rs->nready--;
	vb_rs_show(rs);
	return fd;
}

int
vb_rs_accept(int socket, struct sockaddr *addr, socklen_t *addrlen, int flags)
{
	struct vb_rs *rs = socket_lock(socket, RS_LISTENING, NULL);
	int err, fd = -1;

	if (rs == NULL)
		return -1;
	err = accept_wait(rs);
	if (err == 0) {
		fd = accept_first(rs, addr, addrlen, flags);
		err = fd < 0 ? -fd : 0;
	}
	return socket_unlock(rs, err) == 0 ? fd : -1;
}

VB_EXPORT int
raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return vb_rs_accept(socket, addr, addrlen, 0);
}

static int
name_of(int fd, bool peer, struct sockaddr *addr, socklen_t *len)
{
	struct vb_rs *rs = vb_rs_get(fd);
	int err = 0;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (addr == NULL || len == NULL)
		err = EFAULT;
	else if (peer && !rs->was_connected)
		err = ENOTCONN;
	if (rs->local.ss_family == 0)
		rs->local.ss_family = (sa_family_t)rs->domain;
	if (err == 0)
		address_give(peer ? &rs->remote : &rs->local, addr, len);
	return socket_unlock(rs, err);
}

VB_EXPORT int
rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name_of(socket, true, addr, addrlen);
}

VB_EXPORT int
rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return name_of(socket, false, addr, addrlen);
}

/* ---- Events ---- */

/* Creates the socket of a request and accepts it. Returns 0, or errno when it is to be rejected. */
static int
request_accept(struct vb_rs *listener, struct rdma_cm_event *ev, struct vb_rs **out)
{
	const struct rdma_conn_param *got = &ev->param.conn;
	struct rdma_conn_param p = {.rnr_retry_count = 7};
	struct vb_rs *rs = vb_rs_new(listener->domain);
	struct rs_hello hello;
	int err;

	if (rs == NULL)
		return ENOMEM;
	*out = rs;
	rs->id = ev->id;
	rs->id->context = rs;
	rs->slots_rx = listener->slots_rx;
	rs->slots_tx = listener->slots_tx;
	rs->maps_max = listener->maps_max;
	err = vb_rs_hello_take(rs, got->private_data, got->private_data_len);
	if (err == 0)
		err = vb_rs_stream_new(rs, vb_rs_comp_channel(rs->id->verbs));
	if (err != 0)
		return err;
	vb_rs_hold(listener);
	rs->listener = listener;
	rs->state = RS_ACCEPTING;
	addresses_note(rs);
	vb_rs_hello_fill(rs, &hello);
	p.private_data = &hello;
	p.private_data_len = sizeof(hello);
	return rdma_accept(rs->id, &p) == 0 ? 0 : errno;
}

static void
on_request(struct vb_rs *listener, struct rdma_cm_event *ev)
{
	struct vb_rs *rs = NULL;
	bool full;
	int err;

	pthread_mutex_lock(&listener->lock);
	full = listener->state != RS_LISTENING || listener->nready >= listener->backlog;
	pthread_mutex_unlock(&listener->lock);
	err = full ? ECONNREFUSED : request_accept(listener, ev, &rs);
	if (err == 0)
		return;
	rdma_reject(ev->id, NULL, 0);
	if (rs == NULL)
		rdma_destroy_id(ev->id);
	else
		vb_rs_thread_close(rs);
}

/* Gives an accepted connection to its listener. Call without locks. */
static void
ready_push(struct vb_rs *listener, struct vb_rs *rs)
{
	bool taken = false;

	pthread_mutex_lock(&listener->lock);
	if (listener->state == RS_LISTENING) {
		STAILQ_INSERT_TAIL(&listener->ready, rs, next_ready);
		listener->nready++;
		taken = true;
		vb_rs_show(listener);
	}
	pthread_mutex_unlock(&listener->lock);
	vb_rs_put(listener);
	if (!taken)
		vb_rs_thread_close(rs);
}

/* Returns the errno of a connection that could not be made. */
static int
failure_of(const struct rdma_cm_event *ev)
{
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	if (ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENETDOWN;
	return ev->status < 0 ? -ev->status : ETIMEDOUT;
}

static void
on_established(struct vb_rs *rs, const struct rdma_cm_event *ev)
{
	const struct rdma_conn_param *p = &ev->param.conn;

	if (rs->state == RS_CONNECTING && rs->failed == 0)
		rs->failed = vb_rs_hello_take(rs, p->private_data, p->private_data_len);
	if (rs->failed != 0)
		return;
	rs->state = RS_CONNECTED;
	rs->was_connected = true;
	addresses_note(rs);
	vb_rs_progress(rs);
}

/* The connection has ended; the program can still read the received bytes. */
static void
on_disconnected(struct vb_rs *rs)
{
	vb_rs_progress(rs);
	if (!rs->rx_eof && rs->err == 0 && !rs->disconnecting && rs->state == RS_CONNECTED)
		rs->err = ECONNRESET;
	rs->state = RS_CLOSED;
	rs->broken = true;
}

/* Returns whether an event is none about the end of a connection. connect() has returned the reason
 * of RDMA_CM_EVENT_ADDR_ERROR. */
static bool
is_no_end(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_ADDR_RESOLVED || type == RDMA_CM_EVENT_ADDR_ERROR ||
	       type == RDMA_CM_EVENT_ROUTE_RESOLVED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT;
}

/* Applies an event other than a request. A failed attempt to connect leaves its errno in
 * rs->failed. */
static void
event_apply(struct vb_rs *rs, const struct rdma_cm_event *ev)
{
	const bool removal = ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL;

	if (is_no_end(ev->event))
		return;
	if (ev->event == RDMA_CM_EVENT_ESTABLISHED) {
		on_established(rs, ev);
	} else if (ev->event == RDMA_CM_EVENT_DISCONNECTED ||
		   (removal && rs->state == RS_CONNECTED)) {
		on_disconnected(rs);
	} else if (rs->state == RS_CONNECTING) {
		rs->failed = failure_of(ev);
	} else {
		rs->err = failure_of(ev);
		rs->state = RS_CLOSED;
	}
}

void
vb_rs_cm_event(struct rdma_cm_event *ev)
{
	struct vb_rs *rs = ev->id->context, *listener = NULL;

	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		on_request(ev->listen_id->context, ev);
		rdma_ack_cm_event(ev);
		return;
	}
	pthread_mutex_lock(&rs->lock);
	event_apply(rs, ev);
	if ((rs->state & (RS_CONNECTED | RS_CLOSED)) != 0) {
		listener = rs->listener;
		rs->listener = NULL;
	}
	if (rs->relay)
		vb_rs_relay_turn(rs);
	vb_rs_show(rs);
	pthread_mutex_unlock(&rs->lock);
	rdma_ack_cm_event(ev);
	vb_rs_connect_failed(rs);
	if (listener != NULL)
		ready_push(listener, rs);
}

/* ---- The end ---- */

/* Ends the connections that wait at a listener, which may have been removed. */
static void
ready_drop(struct vb_rs *rs)
{
	struct vb_rs *c;

	while ((c = STAILQ_FIRST(&rs->ready)) != NULL) {
		STAILQ_REMOVE_HEAD(&rs->ready, next_ready);
		vb_rs_thread_close(c);
	}
	rs->nready = 0;
}

void
vb_rs_listen_end(struct vb_rs *rs)
{
	rs->state = RS_CLOSED;
	ready_drop(rs);
}

bool
vb_rs_closing(struct vb_rs *rs)
{
	if (rs->relay && !rs->relay_ended && rs->state == RS_CONNECTED)
		return false; /* another process uses the connection */
	if (rs->state != RS_CONNECTED || rs->abort)
		return true;
	rs->tx_shut = true;
	vb_rs_progress(rs);
	/* The program reads no more. Received bytes are dropped, so that the peer gets its credits
	 * back and can send until it detects the end. */
	rs->rx_shut = true;
	vb_rs_discard(rs);
	vb_rs_flush(rs);
	if (!vb_rs_flushed(rs) || rs->disconnecting || rs->broken)
		return false;
	rs->disconnecting = true;
	return rdma_disconnect(rs->id) != 0;
}

void
vb_rs_destroy(struct vb_rs *rs)
{
	struct vb_rs *listener;

	pthread_mutex_lock(&rs->lock);
	ready_drop(rs);
	vb_rs_stream_free(rs);
	if (rs->id != NULL)
		rdma_destroy_id(rs->id);
	rs->id = NULL;
	rs->state = RS_CLOSED;
	vb_rs_fds_close(rs);
	listener = rs->listener;
	rs->listener = NULL;
	pthread_mutex_unlock(&rs->lock);
	if (listener != NULL)
		vb_rs_put(listener);
}
