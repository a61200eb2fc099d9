/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests which files with keys and certificates saker uses, and the sentence for each that it
 * refuses. */
#include "../../../app/saker/identity.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../app/saker/sources.h"
#include "../../../lib/base/log.h"
#include "../../../lib/rof/exchange.h"
#include "../../../lib/wire/falcon.h"
#include "../rof/exchange_certs.h"

#define KEY  "000102030405060708090a0b0c0d0e0fF0"
#define KEY2 "00112233445566778899aabbccddeeff"

static struct settings s;
static char why[WHY_LEN];
static char dir[] = "/tmp/saker-test-XXXXXX";
static char logged[1024];

static const char *
path(const char *name)
{
	static char text[4][64];
	static unsigned i;

	i = (i + 1) % 4;
	snprintf(text[i], sizeof(text[i]), "%s/%s", dir, name);
	return text[i];
}

static void
file(const char *name, const char *contents, mode_t mode)
{
	FILE *f = fopen(path(name), "w");

	cr_assert_not_null(f);
	fputs(contents, f);
	fclose(f);
	cr_assert_eq(chmod(path(name), mode), 0);
}

static void
take_log(enum sk_log_level level, const char *line)
{
	if (level <= SK_LOG_WARNING)
		snprintf(logged, sizeof(logged), "%s", line);
}

static void
setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	settings_default(&s);
	s.eng.falcon.enabled = true;
	unsetenv("CREDENTIALS_DIRECTORY");
	sk_log_set(SK_LOG_INFO, take_log);
	logged[0] = '\0';
}

static void
teardown(void)
{
	static const char *const names[] = {"psk", "psk2", "link", "ca", "certificate", "key"};

	identity_free(&s);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path(names[i]));
	rmdir(dir);
}

TestSuite(app_identity, .init = setup, .fini = teardown);

static void
use_psk(const char *source)
{
	snprintf(s.identity.psk, sizeof(s.identity.psk), "%s", source);
}

/* Checks that the sentence names the key and the value, and ends with `end`. */
static void
refused(const char *end)
{
	char start[FILE_LEN + 32];

	cr_assert_eq(identity_load(&s, why), -EINVAL);
	snprintf(start, sizeof(start), "[falcon] psk = %s ", s.identity.psk);
	cr_assert_eq(strncmp(why, start, strlen(start)), 0, "%s", why);
	cr_assert_str_eq(why + strlen(start), end);
	cr_assert_null(s.eng.falcon.tls);
}

static unsigned
loads(void)
{
	struct rofx_tls_view v;

	rofx_tls_look(s.eng.falcon.tls, &v);
	return (unsigned)v.loads;
}

Test(app_identity, without_a_key_the_exchange_is_in_clear_and_the_log_warns)
{
	cr_assert_eq(identity_load(&s, why), 0);
	cr_assert_null(s.eng.falcon.tls);
	identity_warn(&s, 0);
	cr_assert_not_null(strstr(logged, "FALCON IS UNPROTECTED"), "%s", logged);
	logged[0] = '\0';
	s.eng.falcon.enabled = false;
	identity_warn(&s, 0);
	cr_assert_str_empty(logged);
}

Test(app_identity, a_key_comes_from_a_private_file)
{
	struct rofx_tls_view v;

	file("psk", KEY "\n", 0600);
	use_psk(path("psk"));
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	rofx_tls_look(s.eng.falcon.tls, &v);
	cr_assert_eq(v.others, ROFX_BY_PSK);
	identity_warn(&s, 0);
	cr_assert_str_empty(logged);
}

Test(app_identity, a_key_comes_from_a_credential)
{
	use_psk("credential:psk");
	refused("names a credential, but the service manager has passed none "
		"($CREDENTIALS_DIRECTORY is not set)");
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
	refused("cannot be read: No such file or directory");
	file("psk", KEY, 0400);
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	cr_assert_not_null(s.eng.falcon.tls);
}

Test(app_identity, a_key_that_others_can_read_or_write_is_refused)
{
	file("psk", KEY "\n", 0604);
	use_psk(path("psk"));
	refused("can be read by others: its mode is 0604 (chmod o-rwx)");
	file("psk", KEY "\n", 0644);
	refused("can be read by others: its mode is 0644 (chmod o-rwx)");
	file("psk", KEY "\n", 0620);
	refused("can be written by others: its mode is 0620 (chmod go-w)");
	file("psk", KEY "\n", 0602);
	refused("can be written by others: its mode is 0602 (chmod go-w)");
	/* A link is followed, and its own mode does not count. */
	cr_assert_eq(symlink("psk", path("link")), 0);
	use_psk(path("link"));
	refused("can be written by others: its mode is 0602 (chmod go-w)");
	file("psk", KEY "\n", 0600);
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
}

/* Root decides who is in the group of a file of root's. */
Test(app_identity, the_group_reads_files_of_root)
{
	if (geteuid() != 0)
		cr_skip_test("a file of root's needs root");
	file("psk", KEY "\n", 0640);
	use_psk(path("psk"));
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	identity_free(&s);
	cr_assert_eq(chown(path("psk"), 12345, 0), 0);
	refused("belongs to user 12345; only root's files and those of this process's user are "
		"trusted");
}

Test(app_identity, the_group_reads_no_file_of_another_user)
{
	bool root = geteuid() == 0;

	file("psk", KEY "\n", 0640);
	use_psk(path("psk"));
	if (root) {
		cr_assert_eq(chmod(dir, 0755), 0);
		cr_assert_eq(chown(path("psk"), 12345, 0), 0);
		cr_assert_eq(seteuid(12345), 0);
	}
	refused("can be read by its group: its mode is 0640 (chmod g-rwx)");
	if (root)
		cr_assert_eq(seteuid(0), 0);
}

Test(app_identity, what_is_no_key_is_refused_and_not_repeated)
{
	use_psk(dir);
	refused("is not a regular file");
	use_psk(path("psk"));
	refused("cannot be read: No such file or directory");
	file("psk", "", 0600);
	refused("has 0 hexadecimal digits in its first line; a key of 16 to 64 bytes has 32 to "
		"128");
	file("psk", "c0ffee\n", 0600);
	refused("has 6 hexadecimal digits in its first line; a key of 16 to 64 bytes has 32 to "
		"128");
	file("psk", KEY "x\n", 0600);
	refused("does not begin with a line of hexadecimal digits");
}

Test(app_identity, each_peer_has_a_key_of_its_own)
{
	struct rofx_tls_view v;
	struct peer_setting *p = &s.peers[7];

	file("psk", KEY "\n", 0600);
	file("psk2", KEY2 "\n", 0644);
	use_psk(path("psk"));
	p->present = true;
	p->address.len = 32;
	cr_assert_eq(sk_addr_parse("10.0.0.7", &p->address.addr), 0);
	snprintf(p->psk, sizeof(p->psk), "%s", path("psk2"));
	cr_assert_eq(identity_load(&s, why), -EINVAL);
	cr_assert_eq(strncmp(why, "[peer 7] psk = /tmp/", 20), 0, "%s", why);
	cr_assert_eq(chmod(p->psk, 0600), 0);
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	rofx_tls_look(s.eng.falcon.tls, &v);
	cr_assert_eq(v.psk_peers, 1);
	cr_assert_eq(v.others, ROFX_BY_PSK);
}

static void
certify(struct xp_ca *ca, const struct xp_cert *c)
{
	file("ca", xp_ca_pem(ca), 0644);
	file("certificate", c->certificate, 0644);
	file("key", c->private_key, 0600);
	snprintf(s.identity.ca, FILE_LEN, "%s", path("ca"));
	snprintf(s.identity.certificate, FILE_LEN, "%s", path("certificate"));
	snprintf(s.identity.key, FILE_LEN, "%s", path("key"));
}

Test(app_identity, certificates_may_be_public_and_their_key_may_not)
{
	struct xp_ca *ca = xp_ca_new();
	struct rofx_tls_view v;
	struct xp_cert c;

	xp_ca_issue(ca, &c, "IP:10.0.0.1");
	certify(ca, &c);
	cr_assert_eq(chmod(path("key"), 0644), 0);
	cr_assert_eq(identity_load(&s, why), -EINVAL);
	cr_assert_eq(strncmp(why, "[falcon] key = /tmp/", 20), 0, "%s", why);
	cr_assert_eq(chmod(path("key"), 0600), 0);
	cr_assert_eq(chmod(path("ca"), 0666), 0);
	cr_assert_eq(identity_load(&s, why), -EINVAL);
	cr_assert_not_null(strstr(why, "can be written by others"), "%s", why);
	cr_assert_eq(chmod(path("ca"), 0644), 0);
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	rofx_tls_look(s.eng.falcon.tls, &v);
	cr_assert_eq(v.others, ROFX_BY_CERTIFICATE);
	cr_assert_not_null(strstr(v.subject, "CN=node"));
	identity_warn(&s, 1000000000);
	cr_assert_str_empty(logged);
	identity_warn(&s, v.not_after - 1000);
	cr_assert_not_null(strstr(logged, "expires at 9999-12-31 23:59:59 UTC"), "%s", logged);
	identity_warn(&s, v.not_after);
	cr_assert_not_null(strstr(logged, "expired at 9999-12-31"), "%s", logged);
	identity_warn(&s, -5);
	cr_assert_not_null(strstr(logged, "not valid before 1970-01-01"), "%s", logged);
	xp_cert_free(&c);
	xp_ca_free(ca);
}

Test(app_identity, a_reload_takes_the_files_as_they_are_now)
{
	const struct rofx_tls *first;

	file("psk", KEY "\n", 0600);
	use_psk(path("psk"));
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	first = s.eng.falcon.tls;
	file("psk", "nonsense\n", 0600);
	cr_assert_eq(identity_load(&s, why), -EINVAL);
	cr_assert_not_null(strstr(why, "hexadecimal"), "%s", why);
	cr_assert_eq(loads(), 1);
	file("psk", KEY2 "\n", 0600);
	cr_assert_eq(identity_load(&s, why), 0, "%s", why);
	cr_assert_eq(loads(), 2);
	cr_assert_eq(s.eng.falcon.tls, first, "the engines hold this pointer");
}
