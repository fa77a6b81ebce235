/* What is written to a terminal, and what to a file: with a pseudo-terminal in the place of the first. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "tests/harness/test.h"
#include "train/cli/status_line.h"
#include "train/cli/terminal.h"

/* A window of so many columns: `out` is what programs write to, and window_read tells what arrived. */
typedef struct {
    int master;
    FILE *out;
    char seen[65536];
} window;

static void resize(const window *w, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    assert_int_equal(ioctl(w->master, TIOCSWINSZ, &size), 0);
}

static void window_open(window *w, int columns)
{
    int slave;
    struct termios raw;
    assert_int_equal(openpty(&w->master, &slave, NULL, NULL, NULL), 0);
    assert_int_equal(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw); /* a line end stays one byte */
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    w->out = fdopen(slave, "w");
    assert_non_null(w->out);
    resize(w, columns);
}

static void window_close(window *w)
{
    fclose(w->out);
    close(w->master);
}

/* What has arrived since the last call. */
static const char *window_read(window *w)
{
    size_t used = 0;
    fflush(w->out);
    struct pollfd ready = {.fd = w->master, .events = POLLIN};
    while (used < sizeof w->seen - 1 && poll(&ready, 1, 0) == 1) {
        ssize_t n = read(w->master, w->seen + used, sizeof w->seen - 1 - used);
        if (n <= 0) break;
        used += (size_t)n;
    }
    w->seen[used] = 0;
    return w->seen;
}

/* A usual terminal. */
static void set_environment(const char *term, const char *no_color, const char *columns)
{
    const char *const pairs[][2] = {{"TERM", term}, {"NO_COLOR", no_color}, {"COLUMNS", columns}};
    for (int i = 0; i < 3; i++) {
        if (pairs[i][1])
            setenv(pairs[i][0], pairs[i][1], 1);
        else
            unsetenv(pairs[i][0]);
    }
}

static int to_usual(void **state)
{
    (void)state;
    set_environment("xterm-256color", NULL, NULL);
    return 0;
}

/* ---- what stands at the other end ---- */

static void colours_need_a_terminal_that_obeys(void **state)
{
    (void)state;
    static const struct {
        const char *term, *no_color;
        int has_colours, redraws;
    } cases[] = {
        {"xterm", NULL, 1, 1}, {"xterm", "", 1, 1}, /* no-color.org: not when it is empty */
        {"xterm", "1", 0, 1},  {"dumb", NULL, 0, 0}, {"", NULL, 0, 0}, {NULL, NULL, 0, 0},
    };
    window w;
    window_open(&w, 80);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i].term, cases[i].no_color, NULL);
        ttn_terminal t = ttn_terminal_of(w.out);
        assert_int_equal(t.is_terminal, 1);
        assert_int_equal(t.has_colours, cases[i].has_colours);
        assert_int_equal(t.redraws, cases[i].redraws);
        assert_int_equal(ttn_terminal_style(&t, TTN_STYLE_RED)[0] != 0, cases[i].has_colours);
        assert_int_equal(ttn_terminal_plain(&t)[0] != 0, cases[i].has_colours);
    }
    window_close(&w);
}

static void a_file_has_no_colours_and_80_columns(void **state)
{
    (void)state;
    FILE *f = tmpfile();
    assert_non_null(f);
    ttn_terminal t = ttn_terminal_of(f);
    assert_false(t.is_terminal || t.has_colours || t.redraws);
    assert_string_equal(ttn_terminal_style(&t, TTN_STYLE_BOLD), "");
    assert_int_equal(ttn_terminal_width(&t), 80);
    fclose(f);
}

static void the_width_is_asked_anew(void **state)
{
    (void)state;
    window w;
    window_open(&w, 80);
    ttn_terminal t = ttn_terminal_of(w.out);
    assert_int_equal(ttn_terminal_width(&t), 80);
    resize(&w, 133);
    assert_int_equal(ttn_terminal_width(&t), 133);
    resize(&w, 5);
    assert_int_equal(ttn_terminal_width(&t), TTN_NARROWEST);
    resize(&w, 0); /* it does not know */
    assert_int_equal(ttn_terminal_width(&t), 80);
    resize(&w, 200);
    assert_int_equal(ttn_terminal_prose_width(&t), TTN_PROSE_WIDTH);
    window_close(&w);
}

static void columns_of_the_environment_win_when_they_are_a_number(void **state)
{
    (void)state;
    static const struct {
        const char *columns;
        int width, line_width;
    } cases[] = {{"40", 40, 40}, {"200", 200, 90}, {"", 90, 90},     {"0", 90, 90},
                 {"-3", 90, 90}, {"4x", 90, 90},   {"1001", 90, 90}, {"99999999999999999999", 90, 90}};
    window w;
    window_open(&w, 90);
    ttn_terminal t = ttn_terminal_of(w.out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment("xterm", NULL, cases[i].columns);
        assert_int_equal(ttn_terminal_width(&t), cases[i].width);
        assert_int_equal(ttn_terminal_line_width(&t), cases[i].line_width);
    }
    window_close(&w);
}

/* ---- the line that is drawn again ---- */

static void a_line_is_drawn_in_its_place(void **state)
{
    (void)state;
    window w;
    window_open(&w, 80);
    ttn_status_line l;
    ttn_status_line_begin(&l, w.out, NULL);
    assert_string_equal(window_read(&w), "");
    ttn_status_line_show(&l, "step 1");
    assert_string_equal(window_read(&w), "step 1");
    ttn_status_line_show(&l, "step 2");
    assert_string_equal(window_read(&w), "\r\033[Kstep 2");
    ttn_status_line_end(&l);
    assert_string_equal(window_read(&w), "\r\033[K");
    window_close(&w);
}

static void log_lines_stand_above_it(void **state)
{
    (void)state;
    window w;
    window_open(&w, 80);
    ttn_status_line l;
    ttn_status_line_begin(&l, w.out, NULL);
    const ttn_log log = {.say = ttn_status_line_say, .ctx = &l, .from = TTN_LOG_INFO};
    ttn_log_say(&log, TTN_LOG_INFO, "begins");
    assert_string_equal(window_read(&w), "begins\n");
    ttn_status_line_show(&l, "step 1");
    window_read(&w);
    ttn_log_say(&log, TTN_LOG_WARNING, "loss rises");
    assert_string_equal(window_read(&w), "\r\033[K\033[33mwarning:\033[0m loss rises\nstep 1");
    ttn_status_line_end(&l);
    window_close(&w);
}

static void it_is_cut_to_the_window_at_a_whole_character(void **state)
{
    (void)state;
    window w;
    window_open(&w, 21);
    ttn_status_line l;
    ttn_status_line_begin(&l, w.out, NULL);
    ttn_status_line_show(&l, "0123456789012345678\u00e9\u00e9\u00e9");
    assert_string_equal(window_read(&w), "0123456789012345678\u00e9"); /* one column stays free */
    ttn_status_line_show(&l, "0123456789012345678\u6f22\u5b57");       /* two columns each */
    assert_string_equal(window_read(&w), "\r\033[K0123456789012345678");
    ttn_status_line_show(&l, "a\nb\033[2J\tc");
    assert_string_equal(window_read(&w), "\r\033[Ka?b?[2J?c");
    ttn_status_line_end(&l);
    window_close(&w);
}

/* Going up would wipe a log line in terminals that cut off what no longer fits. */
static void a_window_made_narrower_loses_no_line(void **state)
{
    (void)state;
    window w;
    window_open(&w, 80);
    ttn_status_line l;
    ttn_status_line_begin(&l, w.out, NULL);
    char wide[61];
    memset(wide, 'x', 60);
    wide[60] = 0;
    ttn_status_line_show(&l, wide);
    window_read(&w);
    resize(&w, 40);
    ttn_status_line_show(&l, wide);
    char expected[64];
    snprintf(expected, sizeof expected, "\n%.39s", wide);
    assert_string_equal(window_read(&w), expected);
    resize(&w, 100);
    ttn_status_line_show(&l, "y");
    assert_string_equal(window_read(&w), "\r\033[Ky");
    ttn_status_line_end(&l);
    window_close(&w);
}

static double read_hand(void *ctx)
{
    return *(double *)ctx;
}

/* The file's contents so far. */
static const char *contents(FILE *f, char *text, size_t room)
{
    fflush(f);
    rewind(f);
    size_t n = fread(text, 1, room - 1, f);
    text[n] = 0;
    fseek(f, 0, SEEK_END);
    return text;
}

static void a_file_gets_plain_lines_and_not_too_many(void **state)
{
    (void)state;
    char text[1024];
    double now = 100;
    const ttn_clock clock = {.now = read_hand, .ctx = &now};
    FILE *f = tmpfile();
    assert_non_null(f);
    ttn_status_line l;
    ttn_status_line_begin(&l, f, &clock);
    ttn_status_line_show(&l, "step 1");
    now += TTN_STATUS_EVERY - 0.001;
    ttn_status_line_show(&l, "step 2");
    ttn_status_line_say(&l, TTN_LOG_ERROR, "a log line");
    ttn_status_line_say(&l, TTN_LOG_INFO, "another");
    now += 0.001;
    ttn_status_line_show(&l, "step 3");
    ttn_status_line_show(&l, "step 4");
    ttn_status_line_end(&l);
    assert_string_equal(contents(f, text, sizeof text), "step 1\nerror: a log line\nanother\nstep 3\n");
    fclose(f);
}

static void a_dumb_terminal_gets_plain_lines(void **state)
{
    (void)state;
    set_environment("dumb", NULL, NULL);
    window w;
    window_open(&w, 80);
    ttn_status_line l;
    ttn_status_line_begin(&l, w.out, NULL);
    ttn_status_line_show(&l, "step 1");
    ttn_status_line_say(&l, TTN_LOG_WARNING, "look");
    ttn_status_line_end(&l);
    assert_string_equal(window_read(&w), "step 1\nwarning: look\n");
    window_close(&w);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(colours_need_a_terminal_that_obeys, to_usual),
        cmocka_unit_test_setup(a_file_has_no_colours_and_80_columns, to_usual),
        cmocka_unit_test_setup(the_width_is_asked_anew, to_usual),
        cmocka_unit_test_setup(columns_of_the_environment_win_when_they_are_a_number, to_usual),
        cmocka_unit_test_setup(a_line_is_drawn_in_its_place, to_usual),
        cmocka_unit_test_setup(log_lines_stand_above_it, to_usual),
        cmocka_unit_test_setup(it_is_cut_to_the_window_at_a_whole_character, to_usual),
        cmocka_unit_test_setup(a_window_made_narrower_loses_no_line, to_usual),
        cmocka_unit_test_setup(a_file_gets_plain_lines_and_not_too_many, to_usual),
        cmocka_unit_test_setup(a_dumb_terminal_gets_plain_lines, to_usual),
    };
    return ttn_test_run(tests);
}
