/* SPDX-License-Identifier: BSD-3-Clause */
/* Formatted output to a descriptor. The C library writes it by system calls of its own. */
#include <stdlib.h>
#include <unistd.h>

#include "sockets_priv.h"

int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list ap);
int __vasprintf_chk(char **text, int flag, const char *format, va_list ap);

/* Writes a text and frees it. Returns its length, or -1. */
static int
text_write(int fd, char *text, int len)
{
	int done = 0;

	while (done < len) {
		ssize_t n = write(fd, text + done, (size_t)(len - done));

		if (n < 0)
			break;
		done += (int)n;
	}
	free(text);
	return done == len ? len : -1;
}

VB_EXPORT int
vdprintf(int fd, const char *format, va_list ap)
{
	char *text;
	int len;

	if (!vb_rs_known(fd))
		return vb_so_genuine()->vdprintf(fd, format, ap);
	len = vasprintf(&text, format, ap);
	return len < 0 ? -1 : text_write(fd, text, len);
}

VB_EXPORT int
dprintf(int fd, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vdprintf(fd, format, ap);
	va_end(ap);
	return n;
}

/* ---- Programs that were compiled with _FORTIFY_SOURCE ---- */

VB_EXPORT int
__vdprintf_chk(int fd, int flag, const char *format, va_list ap)
{
	char *text;
	int len;

	if (!vb_rs_known(fd))
		return vb_so_genuine()->__vdprintf_chk(fd, flag, format, ap);
	len = __vasprintf_chk(&text, flag, format, ap);
	return len < 0 ? -1 : text_write(fd, text, len);
}

VB_EXPORT int
__dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = __vdprintf_chk(fd, flag, format, ap);
	va_end(ap);
	return n;
}
