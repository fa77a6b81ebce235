/* titin fill MODEL SEQUENCE|FASTA: what a model thinks stands where something is hidden, by train/fill.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "core/machine.h"
#include "core/number.h"
#include "core/text.h"
#include "train/cli/command.h"
#include "train/cli/layout.h"
#include "train/cli/model_argument.h"
#include "train/fill.h"

/* Residues for each place, and how many a person can ask for: the letters of a vocabulary. */
enum { TOP = 5, MOST_TOP = 26 };

/* Residues that are shown on either side of a place. */
enum { ABOUT = 5 };

/* Columns of a residue and its probability: "L 0.093". */
enum { CELL = 7 };

typedef struct {
    const ttn_cli_call *call;
    ttn_filler *filler;
    const ttn_alphabet *alphabet;
    int top;
    int is_tsv;
    int64_t shown, passed_over; /* sequences */
} filling;

static ttn_status read_top(const ttn_cli_call *call, int *ret, ttn_error *err)
{
    const char *text = ttn_cli_value(call, "top");
    int64_t n = TOP;
    ttn_error why = {0};
    if (text) {
        ttn_status status = ttn_number_integer(text, TTN_UNIT_COUNT, &n, &why);
        if (status != TTN_OK) return TTN_FAIL(err, status, "--top: %s", why.text);
        if (n < 1 || n > MOST_TOP)
            return TTN_FAIL(err, TTN_EINVAL, "--top: '%s' is not a number from 1 to %d", text, MOST_TOP);
    }
    *ret = (int)n;
    return TTN_OK;
}

/* ---- rows for programs ---- */

/* A name holds no tab and no control character: it is one word of a header. */
static void print_rows(const filling *f, const ttn_masked *s)
{
    FILE *out = f->call->out.out;
    const char *guard = ttn_text_is_formula(s->name) ? "'" : "";
    for (int64_t k = 0; k < s->n_mask; k++) {
        ttn_guess guess[MOST_TOP];
        int64_t position;
        const int n = ttn_filler_guesses(f->filler, k, f->top, guess, &position);
        for (int i = 0; i < n; i++)
            fprintf(out, "%s%s\t%" PRId64 "\t%d\t%c\t%.6g\n", guard, s->name, position, i + 1, guess[i].letter,
                    guess[i].p);
    }
}

/* ---- a table for people ---- */

/* "KTAYI_QRQIS": what stands about residue `at`, counted from 0. text has 2 ABOUT + 2 bytes. */
static void tell_surroundings(const filling *f, const ttn_masked *s, int64_t at, char *text)
{
    const int64_t first = at > ABOUT ? at - ABOUT : 0, last = at + ABOUT < s->n - 1 ? at + ABOUT : s->n - 1;
    for (int64_t i = first; i <= last; i++) {
        const char letter = ttn_alphabet_letter(f->alphabet, s->token[i]);
        *text++ = letter ? letter : '_';
    }
    *text = 0;
}

static void print_table(const filling *f, const ttn_masked *s)
{
    const ttn_terminal *t = &f->call->out;
    FILE *out = t->out;
    const char *bold = ttn_terminal_style(t, TTN_STYLE_BOLD), *plain = ttn_terminal_plain(t);
    if (f->shown > 0) fputc('\n', out);
    fprintf(out, "%s%s%s%" PRId64 " residues, %" PRId64 " to fill in%s\n", bold, s->name, s->name[0] ? ": " : "", s->n,
            s->n_mask, plain);
    fprintf(out, "%s%10s  %-*s%s", bold, "position", 2 * ABOUT + 1, "in", plain);
    for (int i = 0; i < f->top; i++)
        fprintf(out, "  %s%-*d%s", bold, i + 1 < f->top ? CELL : 0, i + 1, plain);
    fputc('\n', out);
    for (int64_t k = 0; k < s->n_mask; k++) {
        ttn_guess guess[MOST_TOP];
        char about[2 * ABOUT + 2];
        int64_t position;
        const int n = ttn_filler_guesses(f->filler, k, f->top, guess, &position);
        tell_surroundings(f, s, position - 1, about);
        fprintf(out, "%10" PRId64 "  %-*s", position, 2 * ABOUT + 1, about);
        for (int i = 0; i < n; i++)
            fprintf(out, "  %c %.*f", guess[i].letter, CELL - 4, guess[i].p);
        fputc('\n', out);
    }
}

/* ---- sequences ---- */

/* A file's name, or the sequence itself: what is no file and looks like none. */
static int is_file(const char *word)
{
    struct stat about;
    return strcmp(word, "-") == 0 || stat(word, &about) == 0 || strchr(word, '/') || strchr(word, '.');
}

static ttn_status open_sequences(const char *word, ttn_source **ret, ttn_error *err)
{
    if (is_file(word)) return ttn_source_open(word, NULL, ret, err);
    return ttn_source_open_memory("sequence", word, strlen(word), 0, NULL, ret, err);
}

static void warn_of_letters(const filling *f, const ttn_masked *s)
{
    if (s->n_replaced == 0) return;
    const char become = ttn_alphabet_letter(f->alphabet, f->alphabet->map[(unsigned char)s->replaced]);
    char as[16] = "unknown";
    if (become) snprintf(as, sizeof as, "%c", become);
    fprintf(f->call->err.out,
            "warning: %s%s%" PRId64
            " letter%s that the vocabulary '%s' lacks, read as %s; the first is %c at position %" PRId64 "\n",
            s->name, s->name[0] ? ": " : "", s->n_replaced, ttn_text_plural(s->n_replaced), f->alphabet->name, as,
            s->replaced, s->replaced_position);
}

static ttn_status fill_one(filling *f, const ttn_masked *s, ttn_error *err)
{
    if (s->n_mask == 0) {
        f->passed_over++;
        return TTN_OK;
    }
    warn_of_letters(f, s);
    ttn_status status = ttn_filler_run(f->filler, s, err);
    if (status != TTN_OK) return status;
    if (f->is_tsv)
        print_rows(f, s);
    else
        print_table(f, s);
    f->shown++;
    return TTN_OK;
}

static ttn_status fill_all(filling *f, const char *word, ttn_error *err)
{
    ttn_source *source;
    ttn_masked_reader *reader = NULL;
    const ttn_masked *s;
    ttn_status status = open_sequences(word, &source, err);
    if (status == TTN_OK) status = ttn_masked_open(source, f->alphabet, &reader, err);
    if (status == TTN_OK && f->is_tsv) fputs("sequence\tposition\trank\tresidue\tprobability\n", f->call->out.out);
    while (status == TTN_OK) {
        status = ttn_masked_next(reader, &s, err);
        if (status == TTN_OK) status = fill_one(f, s, err);
    }
    ttn_masked_close(reader);
    if (status != TTN_EOF) return status;
    if (f->shown == 0)
        return TTN_FAIL(err, TTN_EINVAL, "there is nothing to fill in: write _ or <mask> in the places of residues");
    if (f->passed_over > 0)
        fprintf(f->call->err.out, "warning: %" PRId64 " sequence%s without a mask %s passed over\n", f->passed_over,
                ttn_text_plural(f->passed_over), f->passed_over == 1 ? "was" : "were");
    return TTN_OK;
}

static ttn_status run(const ttn_cli_call *call, ttn_error *err)
{
    ttn_model_argument a;
    ttn_machine machine;
    filling f = {.call = call, .is_tsv = ttn_cli_given(call, "tsv")};
    ttn_model_argument_begin(&a);
    ttn_machine_look("", &machine);
    ttn_status status = read_top(call, &f.top, err);
    if (status == TTN_OK) status = ttn_model_argument_open(call, &a, err);
    if (status == TTN_OK) {
        const ttn_filler_options options = {
            .model = a.model,
            .device = a.device,
            .memory = (size_t)machine.ram.usable,
            .n_thread = a.n_thread,
        };
        f.alphabet = a.model->alphabet;
        status = ttn_filler_create(&options, &f.filler, err);
    }
    if (status == TTN_OK) status = fill_all(&f, call->argument[1], err);
    ttn_filler_destroy(f.filler);
    ttn_model_argument_close(&a);
    return status;
}

static const ttn_cli_argument arguments[] = {
    TTN_MODEL_ARGUMENT,
    {.name = "SEQUENCE|FASTA",
     .least = 1,
     .most = 1,
     .word = TTN_WORD_FILE,
     .help =
         "a protein with _ or <mask> where residues are to be filled in, or a file of such (\"-\": standard input)"},
    {0},
};

static const ttn_cli_option options[] = {
    {.name = "top", .value = "N", .help = "so many residues for each place; by default 5"},
    {.name = "tsv",
     .help = "one row for each place and residue, with tabs between columns; a name that begins with = + - @ gets a ' "
             "before it, since spreadsheets would compute it"},
    TTN_MODEL_CONFIG_OPTION,
    {0},
};

static const ttn_cli_example examples[] = {
    {"titin fill run/quickstart MKTAYIAKQR_ISFVKSHFSRQ", "which residue may stand there?"},
    {"titin fill run/a masked.fasta --tsv --top 20", "for a script: every residue at every place"},
    {"sed '/^>/!s/C/_/g' a.fa | titin fill run/a -", "does it know where cysteines are?"},
    {0},
};

static const ttn_exit exits[] = {TTN_EXIT_DATA, TTN_EXIT_CHECKPOINT, TTN_EXIT_NUMERIC, TTN_EXIT_OK};

const ttn_command ttn_cmd_fill = {
    .name = "fill",
    .group = "models",
    .purpose = "residues that a model would put where something is hidden",
    .description =
        "For each _ or <mask> in a protein, the most probable residues with their probabilities (of all tokens of the "
        "vocabulary) and its position, counted from 1. All places of a sequence are hidden at once. Sequences are "
        "never cut; in a file those without a mask are passed over. A letter that the vocabulary lacks is read as X, "
        "and "
        "that is said.",
    .arguments = arguments,
    .options = options,
    .examples = examples,
    .exits = exits,
    .run = run,
};
