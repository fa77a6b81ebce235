/* Files as sources: what the system may do to a reader, and that it is said (row 66). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "data/fasta.h"
#include "data/source.h"
#include "tests/data/make_gzip.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

static const char text[] = ">a\nMKVLA\n>b\nMKK\n";
enum { N_TEXT = sizeof text - 1, MOST = 16384 };

static const char *in_folder(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", ttn_test_folder(), name);
    return path;
}

static const char *write_file(const char *name, const void *bytes, size_t n)
{
    const char *path = in_folder(name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* All of it, in parts of `room` bytes: the status, and what was read. */
static ttn_status read_to_end(ttn_source *s, size_t room, made_bytes *ret, ttn_error *err)
{
    unsigned char part[MOST];
    size_t got = 1;
    ttn_status status = TTN_OK;
    *ret = (made_bytes){0};
    while (status == TTN_OK && got > 0) {
        status = s->read(s, part, room, &got, err);
        if (status == TTN_OK && got > 0) made_append(ret, part, got);
    }
    return status;
}

static ttn_status read_path(const char *path, made_bytes *ret, ttn_error *err)
{
    ttn_source *s;
    *ret = (made_bytes){0};
    ttn_status status = ttn_source_open(path, NULL, &s, err);
    if (status == TTN_OK) status = read_to_end(s, MOST, ret, err);
    ttn_source_close(s);
    return status;
}

static void assert_reads_as_text(const char *path)
{
    made_bytes got;
    ttn_error err = {0};
    assert_ok(read_path(path, &got, &err), &err);
    assert_int_equal(got.n, N_TEXT);
    assert_same_bits(got.bytes, text, N_TEXT);
    free(got.bytes);
}

/* Row 62: what a file is called says nothing. */
static void files_are_read_whatever_their_name(void **state)
{
    (void)state;
    assert_reads_as_text(write_file("plain.gz", text, N_TEXT));
    const made_bytes m = made_members(text, N_TEXT, 5);
    assert_reads_as_text(write_file("packed.fasta", m.bytes, m.n));
    free(m.bytes);
}

static void what_is_no_file_is_said(void **state)
{
    (void)state;
    made_bytes got;
    ttn_error err = {0};
    assert_fails(read_path(ttn_test_folder(), &got, &err), TTN_EINVAL, &err, "is a folder");
    err = (ttn_error){0};
    assert_fails(read_path(in_folder("nothing.fa"), &got, &err), TTN_EINVAL, &err, "No such file");
    assert_int_equal(symlink("gone.fa", in_folder("dangling.fa")), 0);
    err = (ttn_error){0};
    assert_fails(read_path(in_folder("dangling.fa"), &got, &err), TTN_EINVAL, &err, "symbolic link to gone.fa");
    assert_contains(err.text, "(FA066)");
    err = (ttn_error){0};
    assert_fails(read_path("", &got, &err), TTN_EINVAL, &err, "cannot be opened");
}

/* Tests may run as root, for whom every file is readable. */
static void an_unreadable_file_is_said(void **state)
{
    (void)state;
    const char *path = write_file("secret.fa", text, N_TEXT);
    made_bytes got;
    ttn_error err = {0};
    shim_arm(SHIM_OPEN, 1, SHIM_FAIL, EACCES, 0);
    ttn_status status = read_path(path, &got, &err);
    shim_disarm();
    assert_fails(status, TTN_EIO, &err, "Permission denied; ask its owner");
}

static void links_are_followed_and_recorded(void **state)
{
    (void)state;
    char *target = realpath(write_file("real.fa", text, N_TEXT), NULL);
    assert_int_equal(symlink("real.fa", in_folder("link.fa")), 0);
    assert_reads_as_text(in_folder("link.fa"));
    ttn_source *s;
    ttn_error err = {0};
    assert_ok(ttn_source_open(in_folder("link.fa"), NULL, &s, &err), &err);
    assert_string_equal(s->facts.link, target);
    ttn_source_close(s);
    assert_ok(ttn_source_open(target, NULL, &s, &err), &err);
    assert_null(s->facts.link);
    ttn_source_close(s);
    free(target);
}

/* A writer at the other end of a pipe; returns its process. */
static pid_t write_slowly(const char *path, int fd)
{
    pid_t child = fork();
    if (child != 0) return child;
    if (fd < 0) fd = open(path, O_WRONLY);
    for (int i = 0; i < N_TEXT; i++) {
        if (write(fd, text + i, 1) != 1) _exit(1);
        if (i == 4) usleep(20000);
    }
    _exit(0);
}

static void pipes_are_read_once_from_front_to_end(void **state)
{
    (void)state;
    const char *path = in_folder("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    pid_t child = write_slowly(path, -1);
    assert_reads_as_text(path);
    waitpid(child, NULL, 0);
}

/* Also one that somebody has made non-blocking. */
static void standard_input_is_called_minus(void **state)
{
    (void)state;
    for (int flags = 0; flags < 2; flags++) {
        int ends[2];
        assert_int_equal(pipe2(ends, flags ? O_NONBLOCK : 0), 0);
        const int before = dup(STDIN_FILENO);
        dup2(ends[0], STDIN_FILENO);
        fcntl(ends[1], F_SETFL, 0);
        pid_t child = write_slowly("", ends[1]);
        close(ends[1]);
        assert_reads_as_text("-");
        waitpid(child, NULL, 0);
        dup2(before, STDIN_FILENO);
        close(before);
        close(ends[0]);
    }
}

/* ---- a file that changes ---- */

typedef enum { GROWS, SHRINKS, REPLACED, REMOVED, TOUCHED, N_CHANGES } change;

static void do_change(change how, const char *path)
{
    char other[4200];
    snprintf(other, sizeof other, "%s.new", path);
    FILE *f;
    switch (how) {
    case GROWS:
        f = fopen(path, "ab");
        fputs(">c\nM\n", f);
        fclose(f);
        break;
    case SHRINKS:
        assert_int_equal(truncate(path, 8), 0);
        break;
    case REPLACED:
        f = fopen(other, "wb");
        fputs(text, f);
        fclose(f);
        assert_int_equal(rename(other, path), 0);
        break;
    case REMOVED:
        assert_int_equal(unlink(path), 0);
        break;
    default:
        assert_int_equal(utimensat(AT_FDCWD, path, (const struct timespec[]){{1, 0}, {1, 0}}, 0), 0);
    }
}

static void a_file_that_changes_while_it_is_read_is_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"changed while", "changed while", "was replaced", "went away", "changed while"};
    for (change how = 0; how < N_CHANGES; how++) {
        char path[4096];
        snprintf(path, sizeof path, "%s", write_file("changing.fa", text, N_TEXT));
        ttn_source *s;
        ttn_error err = {0};
        made_bytes got;
        assert_ok(ttn_source_open(path, NULL, &s, &err), &err);
        do_change(how, path);
        assert_fails(read_to_end(s, 16, &got, &err), TTN_EIO, &err, words[how]);
        assert_contains(err.text, "(FA066)");
        size_t n;
        ttn_error again = {0};
        assert_int_equal(s->read(s, (char[4]){0}, 4, &n, &again), TTN_EIO);
        assert_string_equal(again.text, err.text);
        ttn_source_close(s);
        free(got.bytes);
    }
}

/* ---- a system that fails ---- */

static void a_read_that_fails_reaches_the_user(void **state)
{
    (void)state;
    static const int error[] = {EIO, ESTALE};
    const made_bytes m = made_members(text, N_TEXT, 5);
    for (int packed = 0; packed < 2; packed++)
        for (int e = 0; e < 2; e++)
            for (int nth = 1; nth <= 2; nth++) {
                const char *path = packed ? write_file("fails.gz", m.bytes, m.n) : write_file("fails.fa", text, N_TEXT);
                ttn_fasta *f = NULL;
                const ttn_fasta_record *r;
                ttn_error err = {0};
                shim_arm(SHIM_STREAM, nth, SHIM_FAIL, error[e], 1);
                ttn_status status = ttn_fasta_open_path(path, NULL, &f, &err);
                while (status == TTN_OK)
                    status = ttn_fasta_next(f, &r, &err);
                assert_true(shim_was_hit());
                shim_disarm();
                assert_fails(status, TTN_EIO, &err, strerror(error[e]));
                assert_contains(err.text, "reading failed at byte");
                if (f) assert_int_equal(ttn_fasta_failed_rule(f), 66);
                ttn_fasta_close(f);
            }
    free(m.bytes);
}

static void short_reads_and_interrupted_ones_are_no_end(void **state)
{
    (void)state;
    /* More than is asked for at once. */
    const size_t n = 1 << 20;
    made_bytes long_text = {0}, got;
    made_bytes part = {0};
    for (int i = 0; i < 1000; i++)
        made_append(&part, text, N_TEXT);
    while (long_text.n < n)
        made_append(&long_text, part.bytes, part.n);
    free(part.bytes);
    const char *long_path = write_file("long.fa", long_text.bytes, long_text.n);
    ttn_error err = {0};
    shim_arm(SHIM_STREAM, 1, SHIM_SHORT, 0, 1);
    assert_ok(read_path(long_path, &got, &err), &err);
    assert_true(shim_was_hit());
    assert_int_equal(got.n, long_text.n);
    assert_same_bits(got.bytes, long_text.bytes, got.n);
    free(got.bytes);
    free(long_text.bytes);

    const char *path = write_file("short.fa", text, N_TEXT);
    shim_arm(SHIM_STREAM, 1, SHIM_SHORT, 0, 1);
    assert_reads_as_text(path);
    assert_true(shim_was_hit());
    shim_arm(SHIM_STREAM, 1, SHIM_FAIL, EINTR, 0);
    assert_reads_as_text(path);
    assert_true(shim_was_hit());
    shim_disarm();
}

static void descriptors_are_given_back(void **state)
{
    (void)state;
    const char *path = write_file("many.fa", text, N_TEXT);
    const int before = dup(0);
    close(before);
    for (int i = 0; i < 50; i++)
        assert_reads_as_text(path);
    made_bytes got;
    for (int i = 0; i < 50; i++)
        assert_int_equal(read_path(ttn_test_folder(), &got, NULL), TTN_EINVAL);
    const int after = dup(0);
    close(after);
    assert_int_equal(before, after);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_read_whatever_their_name),
        cmocka_unit_test(what_is_no_file_is_said),
        cmocka_unit_test(an_unreadable_file_is_said),
        cmocka_unit_test(links_are_followed_and_recorded),
        cmocka_unit_test(pipes_are_read_once_from_front_to_end),
        cmocka_unit_test(standard_input_is_called_minus),
        cmocka_unit_test(a_file_that_changes_while_it_is_read_is_refused),
        cmocka_unit_test(a_read_that_fails_reaches_the_user),
        cmocka_unit_test(short_reads_and_interrupted_ones_are_no_end),
        cmocka_unit_test(descriptors_are_given_back),
    };
    return ttn_test_run(tests);
}
