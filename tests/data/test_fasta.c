/* The rules of FASTA, one row each: what comes out, what is counted, what is refused and where. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/builder.h"
#include "core/rng.h"
#include "data/fasta.h"
#include "tests/data/make_gzip.h"
#include "tests/harness/shim.h"
#include "tests/harness/test.h"

/* ---- one case ---- */

enum { MAX_NOTES = 4 };

typedef struct {
    int code;
    int64_t n, line, column; /* how many, and the place of the first */
} wanted_note;

typedef struct {
    int64_t rule; /* of the list that the row stands for */
    const char *what;
    const char *text; /* (n) */
    size_t n;
    const char *records; /* "id=RESIDUES;" of all that are given */
    wanted_note note[MAX_NOTES];
    int64_t failed; /* rule; 0: the file is accepted */
    int64_t line, column;
    const char *words; /* of the message */
    ttn_fasta_rules rules;
    const char *name; /* NULL: "in.fa" */
} row;

#define TEXT(literal) .text = (literal), .n = sizeof(literal) - 1

typedef struct {
    ttn_builder records;
    ttn_status status;
    ttn_error err;
    int failed;
    ttn_fasta_counts found;
    ttn_source_facts facts;
} outcome;

static void add_record(ttn_builder *b, const ttn_alphabet *a, const ttn_fasta_record *r)
{
    ttn_build(b, "%s=", r->id);
    char part[64];
    for (int64_t i = 0; i < r->n; i++) {
        const char letter = ttn_alphabet_letter(a, r->token[i]);
        part[i % 64] = (char)(!letter ? '?' : r->lower && r->lower[i] ? letter - 'A' + 'a' : letter);
        if (i % 64 == 63 || i + 1 == r->n) ttn_build_bytes(b, part, (size_t)(i % 64) + 1);
    }
    ttn_build(b, ";");
}

static outcome read_all(const char *name, const void *bytes, size_t n, size_t most, const ttn_fasta_rules *rules)
{
    outcome o = {0};
    ttn_source *source;
    ttn_fasta *f;
    const ttn_source_rules source_rules = {.allow_no_bgzf_eof = rules && rules->allow_no_bgzf_eof};
    assert_ok(ttn_source_open_memory(name, bytes, n, most, &source_rules, &source, &o.err), &o.err);
    assert_ok(ttn_fasta_open(source, rules, &f, &o.err), &o.err);
    const ttn_alphabet *a = rules && rules->alphabet ? rules->alphabet : ttn_alphabet_find("esm");
    const ttn_fasta_record *r;
    while ((o.status = ttn_fasta_next(f, &r, &o.err)) == TTN_OK) {
        assert_true(r->n > 0);
        add_record(&o.records, a, r);
    }
    ttn_error again = {0};
    assert_int_equal(ttn_fasta_next(f, &r, &again), o.status); /* the same for ever */
    assert_null(r);
    assert_string_equal(again.text, o.err.text);
    o.failed = ttn_fasta_failed_rule(f);
    o.found = *ttn_fasta_found(f);
    o.facts = *ttn_fasta_source(f);
    o.facts.link = NULL;
    ttn_fasta_close(f);
    return o;
}

/* "": nothing was built. */
static const char *text_of(const ttn_builder *b)
{
    return b->text ? b->text : "";
}

static const wanted_note *wanted_of(const row *w, int code)
{
    for (int i = 0; i < MAX_NOTES; i++)
        if (w->note[i].code == code && code != 0) return &w->note[i];
    return NULL;
}

static void check_notes(const row *w, const outcome *o)
{
    for (int code = 1; code < TTN_FASTA_CODES; code++) {
        const ttn_fasta_note *got = &o->found.note[code];
        const wanted_note *note = wanted_of(w, code);
        if (got->n != (note ? note->n : 0))
            fail_msg("FA%03d, %s: rule %d counted %" PRId64, (int)w->rule, w->what, code, got->n);
        if (!note) continue;
        assert_non_null(ttn_fasta_rule(code));
        if (got->place[0].line != note->line || got->place[0].column != note->column)
            fail_msg("FA%03d, %s: rule %d at %" PRId64 ":%" PRId64, (int)w->rule, w->what, code, got->place[0].line,
                     got->place[0].column);
    }
}

static void check_failure(const row *w, const outcome *o)
{
    if (o->status != TTN_EFORMAT || o->failed != w->failed)
        fail_msg("FA%03d, %s: status %d, rule %d: %s", (int)w->rule, w->what, o->status, o->failed, o->err.text);
    if (o->err.line != w->line || o->err.column != w->column)
        fail_msg("FA%03d, %s: at %" PRId64 ":%" PRId64 ": %s", (int)w->rule, w->what, o->err.line, o->err.column,
                 o->err.text);
    char place[64] = "", code[16];
    if (w->line > 0) snprintf(place, sizeof place, ":%" PRId64 ":%" PRId64 ": ", w->line, w->column);
    snprintf(code, sizeof code, "(FA%03d)", (int)w->failed);
    assert_contains(o->err.text, place);
    assert_contains(o->err.text, code);
    assert_contains(o->err.text, w->words ? w->words : "");
}

/* However the bytes come. */
static void check_row(const row *w)
{
    static const size_t most[] = {0, 1, 2, 7, 60};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        if (most[i] == 1 && w->n > 4000000) continue;
        outcome o = read_all(w->name ? w->name : "in.fa", w->text, w->n, most[i], &w->rules);
        const char *records = text_of(&o.records);
        if (w->records && strcmp(records, w->records) != 0)
            fail_msg("FA%03d, %s, reads of %zu: '%.300s'; %s", (int)w->rule, w->what, most[i], records, o.err.text);
        if (w->failed)
            check_failure(w, &o);
        else if (o.status != TTN_EOF)
            fail_msg("FA%03d, %s: %s", (int)w->rule, w->what, o.err.text);
        if (!w->failed) check_notes(w, &o);
        ttn_builder_drop(&o.records);
    }
}

static int same_notes(const ttn_fasta_note *a, const ttn_fasta_note *b)
{
    for (int code = 0; code < TTN_FASTA_CODES; code++) {
        if (a[code].n != b[code].n || a[code].n_place != b[code].n_place) return 0;
        for (int i = 0; i < a[code].n_place; i++)
            if (a[code].place[i].line != b[code].place[i].line || a[code].place[i].column != b[code].place[i].column)
                return 0;
    }
    return 1;
}

/* The first 512 bytes of a file are always looked at together. Behind as many blank lines every place where a read can end
 * is tried: all that is said must be the same, to the letter. */
static void check_parts(const row *w)
{
    enum { BLANK = 512 };
    static const size_t most[] = {1, 2, 3, 7};
    char *text = malloc(BLANK + w->n);
    assert_non_null(text);
    memset(text, '\n', BLANK);
    memcpy(text + BLANK, w->text, w->n);
    outcome whole = read_all(w->name ? w->name : "in.fa", text, BLANK + w->n, 0, &w->rules);
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        outcome o = read_all(w->name ? w->name : "in.fa", text, BLANK + w->n, most[i], &w->rules);
        const char *records = text_of(&o.records);
        const int is_same = o.status == whole.status && o.failed == whole.failed &&
                            strcmp(o.err.text, whole.err.text) == 0 && strcmp(records, text_of(&whole.records)) == 0 &&
                            same_notes(o.found.note, whole.found.note) && same_notes(o.found.fault, whole.found.fault);
        if (!is_same)
            fail_msg("FA%03d, %s, reads of %zu differ from one: '%.300s'; %s; %s", (int)w->rule, w->what, most[i],
                     records, o.err.text, whole.err.text);
        ttn_builder_drop(&o.records);
    }
    ttn_builder_drop(&whole.records);
    free(text);
}

static void check_rows(const row *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_row(&w[i]);
        check_parts(&w[i]);
    }
}

/* ---- the rows ---- */

static const row lines[] = {
    {1, "CR LF", TEXT(">a\r\nMKV\r\nLA\r\n"), "a=MKVLA;", {{1, 3, 1, 3}}},
    {1, "columns behind CR LF", TEXT(">a\r\nMK?\r\n"), "", .failed = 38, .line = 2, .column = 3},
    {2, "CR alone", TEXT(">a\rMKV\rLA\r>b\rW\r"), "a=MKVLA;b=W;", {{2, 5, 1, 3}}},
    {2, "CR alone, the last one missing", TEXT(">a\rMKV"), "a=MKV;", {{2, 1, 1, 3}}},
    {2, "CR alone where lines end in LF, in a header", TEXT(">a desc\rEXTRA\nMKT\n>b\nMKT\n"), "", .failed = 2,
     .line = 1, .column = 8, .words = "whose lines end in LF"},
    {2, "the same behind other records", TEXT(">b\nMKT\n>a desc\rEXTRA\nMKT\n"), "b=MKT;", .failed = 2, .line = 3,
     .column = 8},
    {2, "in the last record", TEXT(">b\nMKT\n>a\nMK\rVL"), "b=MKT;", .failed = 2, .line = 4, .column = 3},
    {2, "where lines end in CR LF", TEXT(">b\r\nMKT\r\n>a\r\nMK\rVL\r\n"), "b=MKT;", .failed = 2, .line = 4,
     .column = 3},
    {2, "before what is no residue", TEXT(">b\nMKT\n>a x\ry (z)\nMK\n"), "b=MKT;", .failed = 2, .line = 3, .column = 5},
    {2, "files of both kinds joined", TEXT(">a\rMKV\r>b\nMKT\n"), "a=MKV;", .failed = 2, .line = 1, .column = 3},
    {2, "CR doubled before LF", TEXT(">a\r\r\nMKV\r\r\n"), "a=MKV;", {{1, 2, 2, 1}, {2, 2, 1, 3}, {8, 1, 2, 1}}},
    {2,
     "left out on request",
     TEXT(">b\nMKT\n>a x\rEXTRA\nMKT\n>c\nMKV\n"),
     "b=MKT;c=MKV;",
     {{2, 1, 3, 5}},
     .rules = {.skip_records = 1, .max_skipped = 0.5}},
    {3, "mixed", TEXT(">a\r\nMKV\nLA\r\n"), "a=MKVLA;", {{1, 2, 1, 3}, {3, 1, 1, 3}}},
    {4, "no final line end", TEXT(">a\nMKV"), "a=MKV;"},
    {5, "byte order mark", TEXT("\xef\xbb\xbf>a\nMKV\n>b\nW\n"), "a=MKV;b=W;", {{5, 1, 1, 1}}},
    {5, "a mark before a later header", TEXT(">a\nMKV\n\xef\xbb\xbf>b\nW\n"), .failed = 5, .line = 3, .column = 1},
    {5, "a mark in a sequence", TEXT(">a\nMKV\xef\xbb\xbfW\n"), .failed = 5, .line = 2, .column = 4, .words = "joined"},
    {5, "a mark in a header", TEXT(">a \xef\xbb\xbfx\nMKV\n"), .failed = 5, .line = 1, .column = 4},
    {6, "UTF-16", TEXT("\xff\xfe>\0a\0\n\0M\0K\0"), .failed = 6, .line = 1, .column = 1, .words = "iconv -f UTF-16"},
    {6, "UTF-16 without a mark", TEXT("\0>\0a\0\n\0M\0K"), .failed = 6, .line = 1, .column = 1, .words = "UTF-16"},
    {7, "leading blank lines", TEXT("\n\n  \n>a\nMKV\n"), "a=MKV;"},
    {8, "blank lines inside", TEXT(">a\nMKV\n\n \nLA\n"), "a=MKVLA;", {{8, 2, 3, 1}}},
    {8, "a blank line behind the header", TEXT(">a\n\nMKV\n"), "a=MKV;", {{8, 1, 2, 1}}},
    {9, "blank lines behind", TEXT(">a\nMKV\n\n\n>b\nW\n\n   \n"), "a=MKV;b=W;"},
    {10, "ragged", TEXT(">a\nMKVLA\nM\nKVL\n"), "a=MKVLAMKVL;"},
    {14, "tab", TEXT(">a\tb c\nMKV\n"), "a=MKV;"},
    {15, "Ctrl-A", TEXT(">a x\001b y\nMKV\n>c\001d\nW\n"), "a=MKV;c=W;"},
    {16, "blanks behind", TEXT(">a\nMKV \nLA\t \nW "), "a=MKVLAW;", {{16, 4, 2, 4}}},
    {17, "blanks inside", TEXT(">a\nMK V\n L\tA\n"), "a=MKVLA;", {{17, 3, 2, 3}}},
    {18, "form feed", TEXT(">a\nMK\fV\n"), "", .failed = 18, .line = 2, .column = 3, .words = "byte 0x0c"},
    {18, "vertical tab", TEXT(">a\nMKV\n\vMK\n"), "", .failed = 18, .line = 3, .column = 1,
     .words = "control character"},
    {19, "Ctrl-Z", TEXT(">a\nMKV\n\x1a"), "a=MKV;", {{19, 1, 3, 1}}},
    {19, "Ctrl-Z behind residues", TEXT(">a\nMKV\x1a"), "a=MKV;", {{19, 1, 2, 4}}},
    {19, "Ctrl-Z inside", TEXT(">a\nMKV\x1aW\n"), "", .failed = 19, .line = 2, .column = 4},
    {20, "NUL", TEXT(">a\nMK\0V\n"), "", .failed = 20, .line = 2, .column = 3, .words = "record a, residue 3; byte 5"},
    {20, "NUL between records", TEXT(">a\nMK\n\0>b\nMKV\n"), "", .failed = 20, .line = 3, .column = 1,
     .words = "set data.format=a3m"},
    {21, "NUL in a header", TEXT(">a\nMK\n>b\0c\nMKV\n"), "a=MK;", .failed = 21, .line = 3, .column = 3},
};

static const row headers[] = {
    {22, "no id", TEXT(">a\nMKV\n>\nLA\n> \t\nW\n"), "a=MKV;in.fa:3=LA;in.fa:5=W;", {{22, 2, 3, 1}}},
    {22, "no id, where ids matter", TEXT(">a\nMKV\n>\nLA\n"), .failed = 22, .line = 3, .column = 1,
     .rules = {.ids = TTN_IDS_UNIQUE}},
    {23, "a blank behind >", TEXT("> a b\nMKV\n"), "a=MKV;", {{23, 1, 1, 1}}},
    {24, "blanks before >", TEXT(">a\nMKV\n \t>b\nLA\n"), "a=MKV;b=LA;", {{24, 2, 3, 1}}},
    {25, "> in a header", TEXT(">a b>c >d\nMKV\n"), "a=MKV;"},
    {26, "> in a sequence", TEXT(">a\nMKV>b\nMKK\n"), "", .failed = 26, .line = 2, .column = 4,
     .words = "a line end is missing"},
    {27, "an empty one of few", TEXT(">a\nMKV\n>b\n>c\nW\n>d\n>e\nW\n"), "a=MKV;c=W;e=W;", .failed = 27, .line = 3,
     .column = 1,
     .words = "2 of 5 records have no residues, and more than 1 in 100 is too many to be chance; the first is 'b'"},
    {28, "a header at the end", TEXT(">a\nMKV\n>b"), "a=MKV;", .failed = 27, .line = 3, .column = 1,
     .words = "1 of 2 records has no residues"},
    {27,
     "left out on request",
     TEXT(">a\nMKV\n>b\n>c\nW\n"),
     "a=MKV;c=W;",
     {{27, 1, 3, 1}},
     .rules = {.skip_records = 1, .max_skipped = 0.34}},
    {28,
     "at the end, on request",
     TEXT(">a\nMKV\n>c\nW\n>b\n"),
     "a=MKV;c=W;",
     {{28, 1, 5, 1}},
     .rules = {.skip_records = 1, .max_skipped = 0.34}},
    {27, "not without a request", TEXT(">a\nMKV\n>b\n>c\nW\n"), "a=MKV;c=W;", .failed = 27, .line = 3, .column = 1,
     .words = "data.on_error=skip-record data.max_skipped=0.34", .rules = {.max_skipped = 0.5}},
    {29, "an id twice", TEXT(">a\nMKV\n>a\nLA\n"), "a=MKV;a=LA;"},
    {29, "an id twice, where ids matter", TEXT(">a x\nMKV\n>a\nLA\n"), "a=MKV;", .failed = 29, .line = 3, .column = 1,
     .words = "that of line 1", .rules = {.ids = TTN_IDS_UNIQUE}},
    {29, "with suffixes", TEXT(">a\nM\n>a\nK\n>a_2\nV\n>a\nL\n>a\nW\n"), "a=M;a_2=K;a_2_2=V;a_3=L;a_4=W;",
     .rules = {.ids = TTN_IDS_SUFFIX}},
    {30, "a sequence twice", TEXT(">a\nMKV\n>b\nMKV\n"), "a=MKV;b=MKV;"},
    {31, "UTF-8", TEXT(">\xce\xb1-tubulin \xe2\x88\x9e\nMKV\n"), "\xce\xb1-tubulin=MKV;"},
    {32, "Latin-1", TEXT(">a\xe9z caf\xe9\nMKV\n"), "a\xef\xbf\xbdz=MKV;", {{32, 2, 1, 3}}},
    {69,
     "control characters",
     TEXT(">\x1b[31ma\x7f\xc2\x9b \x07t\nMKV\n"),
     "\xef\xbf\xbd[31ma\xef\xbf\xbd\xef\xbf\xbd=MKV;",
     {{69, 4, 1, 2}}},
    {69, "a tab and Ctrl-A are none", TEXT(">a\tb\001c\nMKV\n"), "a=MKV;"},
    {67, "an annotation in FASTA", TEXT(">a\nMKV\n>ss_pred x\nCCHHH\n"), "a=MKV;", .failed = 67, .line = 3, .column = 1,
     .words = "data.format=a3m"},
    {67, "one with digits", TEXT(">ss_conf\n90123\n"), "", .failed = 67, .line = 1, .column = 1},
    {67, "of the PDB's ss.txt", TEXT(">1A:A:sequence\nMKV\n>1A:A:secstr\n  HHH\n"), "1A:A:sequence=MKV;", .failed = 67,
     .line = 3, .column = 1},
    {67, "names that only begin so", TEXT(">ss_prediction\nMKV\n>ssrA\nMKV\n>x_consensus\nMKV\n"),
     "ss_prediction=MKV;ssrA=MKV;x_consensus=MKV;"},
    {71, "PIR", TEXT(">P1;INS\nhuman insulin\nMKTAYI*\n"), "", .failed = 71, .line = 1, .column = 1,
     .words = "the line below it is a description"},
    {71, "PIR without words", TEXT(">a\nMKV\n>F1;INS\n\nMKTAYI*\n"), "a=MKV;", .failed = 71, .line = 3, .column = 1},
    {71, "a semicolon elsewhere", TEXT(">P12;a\nMKV\n>AB;c\nMKV\n"), "P12;a=MKV;AB;c=MKV;"},
    {33, "pipes", TEXT(">sp|P12345|X_HUMAN text\nMKV\n>gi|1|ref\nW\n"), "sp|P12345|X_HUMAN=MKV;gi|1|ref=W;"},
    {33, "pipes cut", TEXT(">sp|P12345|X_HUMAN text\nMKV\n"), "P12345=MKV;",
     .rules = {.id_regex = "\\|([A-Z0-9]+)\\|"}},
    {33, "an expression without a group", TEXT(">sp|P12345|X GN=AB\nMKV\n"), "GN=AB=MKV;",
     .rules = {.id_regex = "GN=[A-Z]+"}},
    {33, "an expression that does not match", TEXT(">sp|P12345|X_HUMAN\nMKV\n>x\nW\n"), .failed = 33, .line = 3,
     .column = 1, .rules = {.id_regex = "\\|([A-Z0-9]+)\\|"}},
    {34, "comments above", TEXT("; one\n# two\n!three\n>a\nMKV\n"), "a=MKV;", {{34, 3, 1, 1}}},
    {35, "a comment inside", TEXT(">a\nMKV\n; here > \nLA\n"), "a=MKVLA;", {{35, 1, 3, 1}}},
    {35, "; behind residues", TEXT(">a\nMKV;here\n"), "", .failed = 35, .line = 2, .column = 4},
    {36, "; for >", TEXT(";a protein\nMKV\n"), "", .failed = 36, .line = 2, .column = 1, .words = "has ';' for '>'"},
    {37, "text above", TEXT("A list of proteins:\n>a\nMKV\n"), "", .failed = 37, .line = 1, .column = 1,
     .words = "text before the first header"},
};

#define TWENTY "ACDEFGHIKLMNPQRSTVWY"

static const row residues[] = {
    {38, "the twenty", TEXT(">a\n" TWENTY "\n"), "a=" TWENTY ";"},
    {38, "what is no letter", TEXT(">a\nMK\nM?V\n"), "", .failed = 38, .line = 3, .column = 2,
     .words = "character '?' (0x3f)"},
    {38, "two chains", TEXT(">a\nMKTA:MKLV\n"), "", .failed = 38, .line = 2, .column = 5,
     .words = "make a record of each"},
    {38, "an unknown residue", TEXT(">a\nMK?V\n"), "", .failed = 38, .line = 2, .column = 3, .words = "write X"},
    {39, "the ambiguous", TEXT(">a\nMXBZUOK\n"), "a=MXBZUOK;"},
    {39, "J is X", TEXT(">a\nMJKJ\n"), "a=MXKX;", {{39, 2, 2, 2}}},
    {39, "what AMPLIFY lacks", TEXT(">a\nMXBU\n"), "a=M?B?;", {{39, 2, 2, 2}}, .rules = {.alphabet = NULL}},
    {40, "lower case", TEXT(">a\nMkvLa\n"), "a=MKVLA;", {{40, 3, 2, 2}}},
    {40,
     "lower case apart",
     TEXT(">a\nMkvLa\nW\n"),
     "a=MkvLaW;",
     {{40, 3, 2, 2}},
     .rules = {.lowercase = TTN_LOWERCASE_EXCLUDE}},
    {40, "lower case refused", TEXT(">a\nMkv\n"), "", .failed = 40, .line = 2, .column = 2,
     .rules = {.lowercase = TTN_LOWERCASE_ERROR}},
    {41, "* at the end", TEXT(">a\nMKV*\n>b\nLA\n*\n"), "a=MKV;b=LA;", {{41, 2, 2, 4}}},
    {42, "* inside", TEXT(">a\nMK*V\n"), "", .failed = 42, .line = 2, .column = 3, .words = "data.stop=split"},
    {42, "* inside, seen later", TEXT(">a\nMK*\n\nV\n"), "", .failed = 42, .line = 2, .column = 3},
    {42,
     "split",
     TEXT(">a b\n*MK*V\nL**A*\n>b\nW\n"),
     "a/1=MK;a/2=VL;a/3=A;b=W;",
     {{42, 4, 2, 1}, {41, 1, 3, 5}},
     .rules = {.stop = TTN_STOP_SPLIT}},
    {42, "as X", TEXT(">a\nMK*V**L*\n"), "a=MKXVXXL;", {{42, 3, 2, 3}, {41, 1, 2, 8}}, .rules = {.stop = TTN_STOP_X}},
    {42,
     "'.' is a stop where stops are read",
     TEXT(">a\nMK.V\nL.\n"),
     "a/1=MK;a/2=VL;",
     {{42, 1, 2, 3}, {41, 1, 3, 2}},
     .rules = {.stop = TTN_STOP_SPLIT}},
    {42,
     "and X in its place",
     TEXT(">a\nMK.V.\n"),
     "a=MKXV;",
     {{42, 1, 2, 3}, {41, 1, 2, 5}},
     .rules = {.stop = TTN_STOP_X}},
    {42,
     "but a gap where gaps are taken out",
     TEXT(">a\nMK.V\n"),
     "a=MKV;",
     {{44, 1, 2, 3}},
     .rules = {.stop = TTN_STOP_X, .strip_gaps = 1}},
    {44, "'.' alone may be a stop", TEXT(">a\nMKV.\n"), "", .failed = 44, .line = 2, .column = 4,
     .words = "set data.stop=split or data.stop=x"},
    {44, "'.' in a row is none", TEXT(">a\nM..KV\n"), "", .failed = 44, .line = 2, .column = 2,
     .words = "data.gaps=strip"},
    {43, "-", TEXT(">a\nMK-V\n"), "", .failed = 43, .line = 2, .column = 3, .words = "data.gaps=strip"},
    {43, "- taken out", TEXT(">a\n-MK--V\n"), "a=MKV;", {{43, 3, 2, 1}}, .rules = {.strip_gaps = 1}},
    {44, ".", TEXT(">a\nMK.V\n"), "", .failed = 44, .line = 2, .column = 3},
    {44, ". taken out", TEXT(">a\nMK.V\n"), "a=MKV;", {{44, 1, 2, 3}}, .rules = {.strip_gaps = 1}},
    {45, "~", TEXT(">a\nMK~V\n"), "", .failed = 45, .line = 2, .column = 3},
    {45, "~ taken out", TEXT(">a\nMK~V\n"), "a=MKV;", {{45, 1, 2, 3}}, .rules = {.strip_gaps = 1}},
    {46,
     "A3M by its name",
     TEXT("#A3M#\n>a\nMKV\n>b\nM-laV\n"),
     "a=MKV;b=MLAV;",
     {{46, 1, 1, 1}, {34, 1, 1, 1}, {43, 1, 5, 2}, {40, 2, 5, 3}},
     .name = "x.a3m.gz"},
    {46,
     "A3M by the rule",
     TEXT(">a\nMKV\n>b\nM-laV\n"),
     "a=MKV;b=MLAV;",
     {{43, 1, 4, 2}, {40, 2, 4, 3}},
     .rules = {.format = TTN_FORMAT_A3M}},
    {46,
     "A3M, the query alone",
     TEXT(">a\nMKV\n>b\nM-laV\n"),
     "a=MKV;",
     {{43, 1, 4, 2}, {40, 2, 4, 3}},
     .rules = {.format = TTN_FORMAT_A3M_QUERY}},
    {46, "A3M not told", TEXT(">a\nMKV\n>b\nMlaV-\n"), "a=MKV;", .failed = 46, .line = 4, .column = 5,
     .words = "data.format=a3m"},
    {67,
     "annotations in A3M",
     TEXT(">ss_dssp\nCC-HH\n>ss_pred "
          "P\nCCHHH\n>ss_conf\n99012\n>Consensus\nmxvla\n>q\nMKV\n>h\nMlKV\n>x_consensus\nMKV\n"),
     "q=MKV;",
     {{67, 5, 1, 1}, {40, 1, 12, 2}},
     .rules = {.format = TTN_FORMAT_A3M_QUERY}},
    {67,
     "all of it",
     TEXT(">sa_dssp\nABC\n>q\nMKV\n>aa_pred\nMKV\n>h\nM-V\n"),
     "q=MKV;h=MV;",
     {{46, 1, 1, 1}, {67, 2, 1, 1}, {43, 1, 8, 2}},
     .name = "x.a3m"},
    {68,
     "NUL behind alignments",
     TEXT(">101\nMKV\n>h\nM-V\n\0>102\nMKK\n>h\nMK-\n\0"),
     "101=MKV;h=MV;102=MKK;h=MK;",
     {{46, 1, 1, 1}, {68, 2, 5, 1}, {43, 2, 4, 2}},
     .name = "x.a3m"},
    {68,
     "the query of each",
     TEXT(">101\nMKV\n>h\nM-V\n\0>ss_pred\nCCC\n>102\nMKK\n>h\nMK-\n\0\n"),
     "101=MKV;102=MKK;",
     {{67, 1, 5, 2}, {68, 2, 5, 1}, {43, 2, 4, 2}},
     .rules = {.format = TTN_FORMAT_A3M_QUERY}},
    {20, "NUL inside a row of A3M", TEXT(">101\nMK\0V\n"), "", .failed = 20, .line = 2, .column = 3, .name = "x.a3m"},
    {46,
     "ColabFold's lengths",
     TEXT("#3\t1\n>101\nMKV\n\0#3\t1\n>102\nMKK\n"),
     "101=MKV;102=MKK;",
     {{34, 2, 1, 1}, {68, 1, 4, 1}},
     .rules = {.format = TTN_FORMAT_A3M_QUERY}},
    {46, "several chains side by side", TEXT("#60,40\t1,1\n>101\t102\nMKV\n"), "", .failed = 46, .line = 1, .column = 1,
     .words = "2 chains side by side", .name = "x.a3m"},
    {47, "A2M by its name", TEXT(">a\nM.KV\n"), "a=MKV;", {{47, 1, 1, 1}, {44, 1, 2, 2}}, .name = "x.a2m"},
    {47, "A2M not told", TEXT(">a\nMla.V\n"), "", .failed = 47, .line = 2, .column = 4, .words = "A2M"},
    {48, "aligned", TEXT(">a\nMK-V\n>b\nM-KV\n"), "", .failed = 43, .line = 2, .column = 3,
     .words = "if this is an alignment, set data.gaps=strip"},
    {49, "digits", TEXT(">a\n   1 MKV LA\n"), "", .failed = 49, .line = 2, .column = 4,
     .words = "data.strip_digits=yes"},
    {49,
     "digits taken out",
     TEXT(">a\n  10 MKV LA\n"),
     "a=MKVLA;",
     {{49, 2, 2, 3}, {17, 4, 2, 1}},
     .rules = {.strip_digits = 1}},
    {49,
     "numbers at both ends, without blanks",
     TEXT(">a\n10MKVLA20\n"),
     "a=MKVLA;",
     {{49, 4, 2, 1}},
     .rules = {.strip_digits = 1}},
    {49, "numbers behind lines", TEXT(">a\nMKV LA 60\n"), "", .failed = 49, .line = 2, .column = 8,
     .words = "data.strip_digits=yes"},
    {49, "a digit in the place of a residue", TEXT(">a\nMVLSEG0WQL\n"), "", .failed = 49, .line = 2, .column = 7,
     .words = "write X"},
    {49, "is not taken out", TEXT(">a\nMVLSEG0WQL\n"), "", .failed = 49, .line = 2, .column = 7, .words = "write X",
     .rules = {.strip_digits = 1}},
    {50, "not ASCII", TEXT(">a\nMK\xc3\xa9V\n"), "", .failed = 50, .line = 2, .column = 3, .words = "byte 0xc3"},
    {51, "nucleotides", TEXT(">a\nACGTACGTACGTNNNNacgu\n>b\nACGTACGTACGT\n"), .failed = 51,
     .words = "100.0 % of the 32 residues"},
    {51, "nucleotides allowed", TEXT(">a\nACGTACGTACGTACGT\n"), "a=ACGTACGTACGTACGT;",
     .rules = {.allow_nucleotide = 1}},
    {51, "nucleotides among proteins",
     TEXT(">a\nMKVLAWW\n>b\nACGTTGCATNACGTACGTAC\n>c\nGGGGGAGGGGAGGGGTTTGG\n>d\nacguacguacgu\n>e\n" TWENTY TWENTY TWENTY
              TWENTY "\n"),
     .note = {{51, 2, 3, 1}, {40, 12, 8, 1}}},
    {51, "a short peptide", TEXT(">a\nACGTACGTACG\n"), "a=ACGTACGTACG;"},
    {51, "a protein of mostly these", TEXT(">a\nACGTACGTACGTACGTACGM\n"), "a=ACGTACGTACGTACGTACGM;"},
};

static const row wrong_files[] = {
    {52, "FASTQ", TEXT("@r1 d\nACGT\n+\nIIII\n"), "", .failed = 52, .line = 1, .column = 1, .words = "FASTQ"},
    {53, "HTML", TEXT("<!DOCTYPE html>\n<html><title>404</title>"), "", .failed = 53, .line = 1, .column = 1,
     .words = "HTML"},
    {53, "XML", TEXT("<?xml version=\"1.0\"?>\n<uniprot>"), "", .failed = 53, .line = 1, .column = 1, .words = "XML"},
    {54, "GenBank", TEXT("LOCUS       SCU49845 5028 bp\n"), "", .failed = 54, .line = 1, .column = 1,
     .words = "GenBank"},
    {54, "EMBL", TEXT("ID   P12345 Reviewed;\nAC   P12345;\n"), "", .failed = 54, .line = 1, .column = 1,
     .words = "EMBL"},
    {54, "PDB", TEXT("HEADER    HYDROLASE\n"), "", .failed = 54, .line = 1, .column = 1, .words = "PDB"},
    {54, "mmCIF", TEXT("data_1ABC\n#\n"), "", .failed = 54, .line = 1, .column = 1, .words = "mmCIF"},
    {54, "Stockholm", TEXT("# STOCKHOLM 1.0\n#=GF ID x\n"), "", .failed = 54, .line = 1, .column = 1,
     .words = "Stockholm"},
    {54, "Clustal", TEXT("CLUSTAL W (1.83)\n\na MKV\n"), "", .failed = 54, .line = 1, .column = 1, .words = "Clustal"},
    {54, "CSV", TEXT("id,sequence\na,MKV\n"), "", .failed = 54, .line = 1, .column = 1, .words = "CSV"},
    {54, "TSV", TEXT("id\tsequence\na\tMKV\n"), "", .failed = 54, .line = 1, .column = 1, .words = "TSV"},
    {54, "JSON", TEXT("{\"id\": \"a\"}\n"), "", .failed = 54, .line = 1, .column = 1, .words = "JSON"},
    {54, "SAM", TEXT("@HD\tVN:1.6\n"), "", .failed = 54, .line = 1, .column = 1, .words = "SAM"},
    {55, "Git LFS", TEXT("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "", .failed = 55, .line = 1,
     .column = 1, .words = "git lfs pull"},
    {56, "text", TEXT("Dear Sir or Madam,\nthis is text.\n"), "", .failed = 56, .line = 1, .column = 1},
    {56, "one word", TEXT("Hello\n"), "", .failed = 56, .line = 1, .column = 1},
    {57, "residues first", TEXT("MKVLA\n>a\nMKV\n"), "", .failed = 57, .line = 1, .column = 1,
     .words = "before the first header"},
    {57, "a sequence a line", TEXT("MKTAYIAKQR\nMKLVINGKTL\n"), "", .failed = 57, .line = 1, .column = 1,
     .words = "awk '{print \">\" NR \"\\n\" $0}' FILE"},
    {57, "MMseqs2", TEXT("MKTAYIAKQR\n\0MKLVINGKTL\n\0"), "", .failed = 57, .line = 1, .column = 1,
     .words = "mmseqs convert2fasta"},
    {57, "residues alone", TEXT("\n MKVLA*\n"), "", .failed = 57, .line = 2, .column = 2},
    {58, "HDF5", TEXT("\x89HDF\r\n\x1a\n\0\0\0"), "", .failed = 58, .line = 1, .column = 1, .words = "HDF5"},
    {58, "zip", TEXT("PK\3\4\0\0"), "", .failed = 58, .line = 1, .column = 1, .words = "zip"},
    {58, "ELF",
     TEXT("\x7f"
          "ELF\2\1"),
     "", .failed = 58, .line = 1, .column = 1, .words = "ELF"},
    {58, "NumPy", TEXT("\x93NUMPY\1\0"), "", .failed = 58, .line = 1, .column = 1, .words = "NumPy"},
    {58, "unknown", TEXT("\1\2\3\4\5"), "", .failed = 58, .line = 1, .column = 1},
    {59, "zstd", TEXT("\x28\xb5\x2f\xfd\4\0"), "", .failed = 59, .line = 1, .column = 1, .words = "zstd -dc"},
    {59, "xz",
     TEXT("\xfd"
          "7zXZ\0\0"),
     "", .failed = 59, .line = 1, .column = 1, .words = "xz -dc"},
    {59, "bzip2", TEXT("BZh91AY&SY"), "", .failed = 59, .line = 1, .column = 1, .words = "bzip2 -dc"},
    {59, "lz4", TEXT("\x04\x22\x4d\x18\x64"), "", .failed = 59, .line = 1, .column = 1, .words = "lz4 -dc"},
    {61, "nothing", TEXT(""), "", .failed = 61, .words = "nothing in it"},
    {61, "blanks", TEXT("\n  \n\n"), "", .failed = 61, .words = "no record"},
    {61, "comments", TEXT("# a\n; b\n"), "", .failed = 61, .words = "no record"},
};

/* What else people download; each is named, and what to do with it. */
static const struct {
    const char *text;
    size_t n;
    int failed;
    const char *words;
} kinds[] = {
#define NAMED(literal) (literal), sizeof(literal) - 1
    {NAMED("\xff\xfe\0\0>\0\0\0"), 6, "iconv -f UTF-32"},
    {NAMED("\x5d\0\0\x80\0"), 59, "xz -dc"},
    {NAMED("LZIP\1"), 59, "lzip -dc"},
    {NAMED("\x50\x2a\x4d\x18\4\0"), 59, "zstd -dc"},
    {NAMED("7z\xbc\xaf\x27\x1c"), 59, "7z x -so FILE"},
    {NAMED("Rar!\x1a\x07\1\0"), 59, "unrar p -inul FILE"},
    {NAMED("PAR1\x15\4"), 54, "is Parquet; write its sequences as FASTA"},
    {NAMED("ARROW1\0\0\xff"), 54, "Arrow (Feather)"},
    {NAMED("FEA1\0"), 54, "Feather"},
    {NAMED("ORC\n\0"), 54, "ORC"},
    {NAMED("Obj\1\4"), 54, "Avro"},
    {NAMED("SQLite format 3\0"), 54, "SQLite"},
    {NAMED("\x80\x04\x95\1\0"), 58, "pickle; opening one runs code"},
    {NAMED("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0arr_0.npy\x93NUMPY"), 58, "(.npz)"},
    {NAMED("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x13\0\0\0[Content_Types].xml<"), 58, "Word, Excel"},
    {NAMED("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\0\0archive/data.pkl\x80"), 58, "PyTorch"},
    {NAMED("PK\3\4\x14\0\0\0\0\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\0\0\0a.fasta>a"), 58, "unzip -p FILE"},
    {NAMED("PK\5\6\0\0"), 58, "nothing in it"},
    {NAMED("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0"), 58, "old file of Word or Excel"},
    {NAMED("{\\rtf1\\ansi x}"), 54, "RTF"},
    {NAMED("%PDF-1.4"), 58, "PDF"},
    {NAMED("\xff\xd8\xff\xe0"), 58, "JPEG"},
    {NAMED("\x89PNG\r\n"), 58, "PNG"},
    {NAMED("GGUF\3\0\0\0"), 58, "GGUF"},
    {NAMED("MZ\x90\0\3"), 58, "Windows"},
    {NAMED("\x10\0\0\0\0\0\0\0{\"a\":{}}"), 58, "safetensors"},
    {NAMED("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xde\xc0\xef\xbe\1\0"), 54, "LMDB"},
    {NAMED("\1\2\3\4\5\6\7\x08"
           "DUCK\x40\0\0\0"),
     54, "DuckDB"},
    {NAMED("\x83\xa7"
           "encoder\xa3mol\xaa"
           "dataBlocks\x91"),
     54, "BinaryCIF"},
    {NAMED("\x8b\xabmmtfVersion\xa5"
           "1.0.0"),
     54, "MMTF"},
    {NAMED("ATOM      1  N   MET A   1\n"), 54, "PDB"},
    {NAMED("REMARK   1 x\n"), 54, "PDB"},
    {NAMED("MUSCLE (3.8) multiple\n"), 54, "Clustal"},
    {NAMED("!!AA_MULTIPLE_ALIGNMENT 1.0\n"), 54, "MSF"},
    {NAMED("HMMER3/f [3.3]\n"), 54, "HMMER"},
    {NAMED("HHsearch 1.5\n"), 54, "HHM"},
    {NAMED("##gff-version 3\n"), 54, "gffread"},
    {NAMED("##fileformat=VCFv4.2\n"), 54, "VCF"},
    {NAMED("BAM\1\0"), 54, "BAM"},
    {NAMED("{\"id\":\"a\"}\n{\"id\":\"b\"}\n"), 54, "JSON Lines; write its sequences as FASTA: jq"},
    {NAMED("{\n\"id\":\"a\"}\n"), 54, "JSON; write"},
    {NAMED("[{\"id\":\"a\"}]\n"), 54, "JSON; write"},
};

static void files_of_other_kinds_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const row w = {
            kinds[i].failed, kinds[i].words, kinds[i].text,          kinds[i].n, "", .failed = kinds[i].failed,
            .line = 1,       .column = 1,    .words = kinds[i].words};
        check_row(&w);
    }
}

/* Rule 70: lines that are words of a header or of a text, and lines that only look a little like it. */
static const row words[] = {
    {70, "a header that goes on", TEXT(">a Homo sapiens\ndescription continues here\nMKTAYIAKQR\n"), "", .failed = 70,
     .line = 2, .column = 1, .words = "[record a, residue 1; byte 16]; if it is the rest of the header, join it"},
    {70, "two words", TEXT(">b\nMKV\n>a\nhuman insulin\nMKTAYI\n"), "b=MKV;", .failed = 70, .line = 4, .column = 1},
    {70, "the second one shorter", TEXT(">a\nprotein kinase\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 1},
    {70, "with a capital", TEXT(">a\nHuman insulin chain\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 1},
    {70, "in capitals", TEXT(">a\nHUMAN INSULIN\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 1},
    {70, "one word", TEXT(">a\ndescription\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 1},
    {70, "behind residues", TEXT(">a\nMKTAYI\nthe end of this\n"), "", .failed = 70, .line = 3, .column = 1,
     .words = "residue 7"},
    {70, "without a line end", TEXT(">a\nMKTAYI\nthe end of this"), "", .failed = 70, .line = 3, .column = 1},
    {70, "residues at the very end", TEXT(">a\nthe start of this\nMKTAYI"), "", .failed = 70, .line = 2, .column = 1},
    {70, "above blocks of ten", TEXT(">a\nthe start of this\nMKTAYIAKQR MKTAYIAKQR MK\n"), "", .failed = 70, .line = 2,
     .column = 1},
    {70, "with what is no residue", TEXT(">a x\ny (human) kinase\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 3},
    {70, "with a gap", TEXT(">a x\nan ATP-binding protein\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 7},
    {70, "with a stop", TEXT(">a x\nof Homo sapiens. It\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 16},
    {70, "with digits", TEXT(">a x\nisoform 2 of it\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 9},
    {70, "words of one length", TEXT(">a x\nthe end was\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 1},
    {70, "three-letter codes", TEXT(">a\nMet Lys Val\nLeu Ala\n"), "", .failed = 70, .line = 2, .column = 1,
     .words = "one letter each"},
    {70, "three-letter codes in capitals", TEXT(">a\nMET LYS VAL\n"), "", .failed = 70, .line = 2, .column = 1},
    {17, "groups of three that are none", TEXT(">a\nMKV LAA MET\n"), "a=MKVLAAMET;", {{17, 2, 2, 4}}},
    {70, "with '='", TEXT(">a x\nOS=Homo sapiens GN=INS\nMKTAYI\n"), "", .failed = 70, .line = 2, .column = 3},
    {70,
     "left out on request",
     TEXT(">a\nMKV\n>b x\nthe rest of it\nMKTAYI\nMKT\n>c\nMKV\n"),
     "a=MKV;c=MKV;",
     {{40, 11, 4, 1}, {17, 3, 4, 4}},
     .rules = {.skip_records = 1, .max_skipped = 0.5}},

    {40, "soft masks", TEXT(">a\nmkvlamkvlaMKVLA\nmkvla\nMKVLA\n"), "a=MKVLAMKVLAMKVLAMKVLAMKVLA;", {{40, 15, 2, 1}}},
    {40, "a first line in small letters", TEXT(">a\nmkkllavla\nAQTVPMKV\n"), "a=MKKLLAVLAAQTVPMKV;", {{40, 9, 2, 1}}},
    {40,
     "small letters alone, with blanks",
     TEXT(">a\nmkv la\nw kkkk\n"),
     "a=MKVLAWKKKK;",
     {{40, 10, 2, 1}, {17, 2, 2, 4}}},
    {40,
     "blocks of ten in both",
     TEXT(">a\nmkvlamkvla mkvlamkvla mkv\nMKVLAMKVLA MKVLAMKVLA MKVLA\n"),
     "a=MKVLAMKVLAMKVLAMKVLAMKVMKVLAMKVLAMKVLAMKVLAMKVLA;",
     {{40, 23, 2, 1}, {17, 4, 2, 11}}},
    {40,
     "two blocks of ten",
     TEXT(">a\nmkvlamkvla mkv\nMKVLAMKVLA MKVLAM\n"),
     "a=MKVLAMKVLAMKVMKVLAMKVLAMKVLAM;",
     {{40, 13, 2, 1}, {17, 2, 2, 11}}},
    {40,
     "letter by letter",
     TEXT(">a\nm k v l a\nM K V L A\nMKVL\n"),
     "a=MKVLAMKVLAMKVL;",
     {{40, 5, 2, 1}, {17, 8, 2, 2}}},
    {17,
     "blocks of ten, an X in the last one, and a stop",
     TEXT(">a\nMKVLAMKVLA MKVLAMKVLA\nMKVLAMKVLA MKVLAMKVLX*\n"),
     "a=MKVLAMKVLAMKVLAMKVLAMKVLAMKVLAMKVLAMKVLX;",
     {{17, 2, 2, 11}, {41, 1, 3, 22}}},
    {40,
     "the same in small letters, and a blank behind the stop",
     TEXT(">a\nMKVLAMKVLA MKVLAMKVLA\nmkvlamkvla mkvlamkvla* \n"),
     "a=MKVLAMKVLAMKVLAMKVLAMKVLAMKVLAMKVLAMKVLA;",
     {{17, 2, 2, 11}, {40, 20, 3, 1}, {41, 1, 3, 22}, {16, 1, 3, 23}}},
    {49,
     "GenBank's lines",
     TEXT(">a\n        1 mkvlamkvla mkvlamkvla\n       21 mkv\nMKV\n"),
     "a=MKVLAMKVLAMKVLAMKVLAMKVMKV;",
     {{40, 23, 2, 11}, {49, 3, 2, 9}, {17, 18, 2, 1}},
     .rules = {.strip_digits = 1}},
    {17, "capitals with blanks", TEXT(">a\nMKV LAKK M\nMKVLA\n"), "a=MKVLAKKMMKVLA;", {{17, 2, 2, 4}}},
    {17,
     "an X among them, and blanks in all lines",
     TEXT(">a\nMKV LAKX M\nMKV LA\n"),
     "a=MKVLAKXMMKVLA;",
     {{17, 3, 2, 4}}},
};

#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof *(rows))

static void lines_rows_1_to_21(void **state)
{
    (void)state;
    CHECK_ROWS(lines);
}

static void headers_rows_22_to_37(void **state)
{
    (void)state;
    CHECK_ROWS(headers);
}

static void residues_rows_38_to_51(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof residues / sizeof *residues; i++) {
        row w = residues[i];
        if (strstr(w.what, "AMPLIFY")) w.rules.alphabet = ttn_alphabet_find("amplify");
        check_rows(&w, 1);
    }
}

static void wrong_files_rows_52_to_61(void **state)
{
    (void)state;
    CHECK_ROWS(wrong_files);
}

static void words_are_no_residues_row_70(void **state)
{
    (void)state;
    CHECK_ROWS(words);
}

/* ---- rows that are too long to be written down ---- */

static char *repeated(const char *head, char c, size_t n, const char *tail, size_t *ret_n)
{
    const size_t n_head = strlen(head), n_tail = strlen(tail);
    char *text = malloc(n_head + n + n_tail + 1);
    assert_non_null(text);
    memcpy(text, head, n_head + 1);
    memset(text + n_head, c, n);
    memcpy(text + n_head + n, tail, n_tail + 1);
    *ret_n = n_head + n + n_tail;
    return text;
}

/* Row 11: a line of 100 MB (a tenth of that where loops are cut), and row 12: a record as long as titin. */
static void long_lines_and_records_rows_11_and_12(void **state)
{
    (void)state;
    const size_t lengths[] = {35213, (size_t)ttn_scaled(ttn_test_long() ? 100000000 : 10000000, 1000000)};
    for (int i = 0; i < 2; i++) {
        size_t n;
        char *text = repeated(">a\n", 'W', lengths[i], "\n>b\nM", &n);
        ttn_source *source;
        ttn_fasta *f;
        const ttn_fasta_record *r;
        ttn_error err = {0};
        assert_ok(ttn_source_open_memory("in.fa", text, n, 65536, NULL, &source, &err), &err);
        assert_ok(ttn_fasta_open(source, NULL, &f, &err), &err);
        assert_ok(ttn_fasta_next(f, &r, &err), &err);
        assert_int_equal(r->n, lengths[i]);
        assert_ok(ttn_fasta_next(f, &r, &err), &err);
        assert_int_equal(r->n, 1);
        assert_int_equal(ttn_fasta_next(f, &r, &err), TTN_EOF);
        ttn_fasta_close(f);
        free(text);
    }
    static const row bounded[] = {
        {11, "a record beyond the limit", TEXT(">a\nMKV\nLAWWW\n"), "", .failed = 11, .line = 3, .column = 2,
         .words = "more than 4 residues [record a, residue 5; byte 8]", .rules = {.most = 4}},
        {11, "as long as may be", TEXT(">a\nMKV\nL\n"), "a=MKVL;", .rules = {.most = 4}},
        {11, "in small letters", TEXT(">a\nMk\nvlaw\n"), "", .failed = 11, .line = 3, .column = 3,
         .words = "residue 5; byte 8", .rules = {.most = 4}},
        {11, "what becomes X", TEXT(">a\nMK*\n**V\n"), "", .failed = 11, .line = 2, .column = 3, .words = "residue 5",
         .rules = {.most = 4, .stop = TTN_STOP_X}},
    };
    CHECK_ROWS(bounded);
}

/* Row 13. */
static void long_headers_are_cut_and_longer_ones_refused(void **state)
{
    (void)state;
    size_t n;
    char *text = repeated(">a ", 'x', 300000, "\nMKV\n", &n);
    check_row(&(row){13, "300 kB", text, n, "a=MKV;", {{13, 1, 1, 1}}, .failed = 0});
    free(text);
    text = repeated(">a ", 'x', 1 << 20, "\nMKV\n", &n);
    check_row(&(row){13, "1 MiB and more", text, n, "", .failed = 13, .line = 1, .column = 1});
    free(text);

    /* The header keeps whole characters. */
    text = repeated(">", 'x', TTN_FASTA_HEADER - 1, "\xc3\xa9 tail\nMKV\n", &n);
    ttn_source *source;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    assert_ok(ttn_source_open_memory("in.fa", text, n, 0, NULL, &source, &err), &err);
    assert_ok(ttn_fasta_open(source, NULL, &f, &err), &err);
    assert_ok(ttn_fasta_next(f, &r, &err), &err);
    assert_int_equal(strlen(r->header), TTN_FASTA_HEADER - 1);
    assert_int_equal(ttn_fasta_found(f)->note[32].n, 0);
    ttn_fasta_close(f);
    free(text);
}

/* Rows 27 and 28: one in a hundred may have no residues. */
static void few_empty_records_are_left_out(void **state)
{
    (void)state;
    for (int n_full = 98; n_full <= 99; n_full++)
        for (int is_last = 0; is_last < 2; is_last++) {
            ttn_builder b = {0};
            for (int i = 0; i < n_full; i++) {
                if (i == 3 && !is_last) ttn_build(&b, ">empty\n");
                ttn_build(&b, ">a%d\nW\n", i);
            }
            if (is_last) ttn_build(&b, ">empty\n\n");
            outcome o = read_all("in.fa", b.text, b.n, 0, NULL);
            assert_int_equal(o.found.records, n_full + 1);
            assert_int_equal(o.found.given, n_full);
            assert_int_equal(o.found.note[27].n, !is_last);
            assert_int_equal(o.found.note[28].n, is_last);
            assert_int_equal(o.status, n_full == 99 ? TTN_EOF : TTN_EFORMAT);
            assert_int_equal(o.failed, n_full == 99 ? 0 : 27);
            ttn_builder_drop(&o.records);
            ttn_builder_drop(&b);
        }
}

/* Row 51: after a thousand records, not at the end. */
static void nucleotides_are_told_by_the_first_thousand_records(void **state)
{
    (void)state;
    ttn_builder b = {0};
    for (int i = 0; i < 3000; i++)
        ttn_build(&b, ">a%d\n%s\n", i, i < 1000 ? "ACGTACGT" : "MKVLAWWW");
    outcome o = read_all("in.fa", b.text, b.n, 0, NULL);
    assert_fails(o.status, TTN_EFORMAT, &o.err, "in the first 1000 records");
    assert_int_equal(o.failed, 51);
    assert_true(o.found.records <= 1001);
    ttn_builder_drop(&o.records);
    ttn_builder_drop(&b);
    for (int i = 0; i < 3000; i++)
        ttn_build(&b, ">a%d\n%s\n", i, i >= 1000 ? "ACGTACGT" : "MKVLAWWW");
    o = read_all("in.fa", b.text, b.n, 0, NULL);
    assert_int_equal(o.status, TTN_EOF);
    ttn_builder_drop(&o.records);
    ttn_builder_drop(&b);
}

/* ---- records that are left out ---- */

static void faulty_records_are_left_out_on_request(void **state)
{
    (void)state;
    static const char text[] = ">a\nMKV\n>b\nM5K\nWWW\n;c\n >c\nLA\n>d\0e\nMMM\n>f\nM\x1aK\n>g\nMK*V\nA\n>h\nW\n";
    const ttn_fasta_rules rules = {.skip_records = 1, .max_skipped = 0.6};
    outcome o = read_all("in.fa", text, sizeof text - 1, 0, &rules);
    assert_int_equal(o.status, TTN_EOF);
    assert_string_equal(o.records.text, "a=MKV;c=LA;h=W;");
    assert_int_equal(o.found.records, 7);
    assert_int_equal(o.found.skipped, 4);
    static const int code[] = {49, 21, 19, 42};
    static const int64_t line[] = {4, 9, 12, 14}, column[] = {2, 3, 2, 3};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(o.found.fault[code[i]].n, 1);
        assert_int_equal(o.found.fault[code[i]].place[0].line, line[i]);
        assert_int_equal(o.found.fault[code[i]].place[0].column, column[i]);
    }
    ttn_builder_drop(&o.records);

    o = read_all("in.fa", text, sizeof text - 1, 1, &(ttn_fasta_rules){.skip_records = 1, .max_skipped = 0.5});
    assert_fails(o.status, TTN_EFORMAT, &o.err, "4 of 7 records had a fault");
    ttn_builder_drop(&o.records);
    o = read_all("in.fa", ">a\nMKV\n>b\nM?\n", 14, 1, &(ttn_fasta_rules){.skip_records = 1, .max_skipped = -1});
    assert_fails(o.status, TTN_EFORMAT, &o.err, "1 of 2 records had a fault");
    ttn_builder_drop(&o.records);
}

/* The message names the value that lets a small file pass, and that value does. */
static void the_message_names_the_value_of_max_skipped(void **state)
{
    (void)state;
    for (int n = 1; n <= 1300; n = n < 70 ? n + 1 : n + 97)
        for (int faulty = 1; faulty <= n && faulty <= 3; faulty++)
            for (int is_empty = 0; is_empty < 2; is_empty++) {
                ttn_builder b = {0};
                for (int i = 0; i < n; i++)
                    ttn_build(&b, ">a%d\n%s\n", i, i >= faulty ? "MKV" : is_empty ? "" : "MK?V");
                ttn_fasta_rules rules = {.skip_records = 1};
                outcome o = read_all("in.fa", b.text, b.n, 0, &rules);
                ttn_builder_drop(&o.records);
                if (o.status != TTN_EOF) {
                    const char *named = strstr(o.err.text, "set data.max_skipped=");
                    if (!named) named = strstr(o.err.text, "skip-record data.max_skipped=");
                    assert_non_null(named);
                    rules.max_skipped = strtod(strchr(named, '=') + 1, NULL);
                    assert_true(rules.max_skipped > 0 && rules.max_skipped <= 1);
                    assert_true(rules.max_skipped * n < 1.1 * faulty + 1e-9);
                    o = read_all("in.fa", b.text, b.n, 0, &rules);
                    assert_int_equal(o.status, TTN_EOF);
                    assert_int_equal(o.found.given, n - faulty);
                    ttn_builder_drop(&o.records);
                }
                ttn_builder_drop(&b);
            }
}

/* A record without a name in a file of any name: its id is one word, without what a terminal obeys. */
static void an_id_made_of_the_file_s_name_is_one_word(void **state)
{
    (void)state;
    outcome o = read_all("my \x1b]0;\n f\xe9.fa", ">\nMKV\n", 6, 0, NULL);
    assert_int_equal(o.status, TTN_EOF);
    assert_string_equal(o.records.text, "my_\xef\xbf\xbd]0;\xef\xbf\xbd_f\xef\xbf\xbd.fa:1=MKV;");
    ttn_builder_drop(&o.records);
}

/* Damage to the stream, or to what the file is, is never passed over. */
static void what_concerns_the_file_is_never_skipped(void **state)
{
    (void)state;
    const ttn_fasta_rules rules = {.skip_records = 1, .max_skipped = 1};
    static const struct {
        const char *text;
        int failed;
    } known[] = {
        {"MKV\n", 57}, {">a\nM\n\xef\xbb\xbf>b\nM\n", 5}, {"", 61}, {"@a\nA\n", 52}, {">a\nACGTACGTACGT\n", 51}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        outcome o = read_all("in.fa", known[i].text, strlen(known[i].text), 0, &rules);
        assert_int_equal(o.status, TTN_EFORMAT);
        assert_int_equal(o.failed, known[i].failed);
        ttn_builder_drop(&o.records);
    }
}

/* ---- what a record says of itself ---- */

static void records_know_their_place_and_header(void **state)
{
    (void)state;
    static const char text[] = "; top\r\n>a  one two \r\nMK\r\n\r\n  >b\tx\r\nV";
    ttn_source *source;
    ttn_fasta *f;
    const ttn_fasta_record *r;
    ttn_error err = {0};
    assert_ok(ttn_source_open_memory("in.fa", text, sizeof text - 1, 3, NULL, &source, &err), &err);
    assert_ok(ttn_fasta_open(source, NULL, &f, &err), &err);
    assert_ok(ttn_fasta_next(f, &r, &err), &err);
    assert_string_equal(r->header, "a  one two");
    assert_int_equal(r->line, 2);
    assert_int_equal(r->offset, 7);
    assert_ok(ttn_fasta_next(f, &r, &err), &err);
    assert_string_equal(r->header, "b\tx");
    assert_int_equal(r->line, 5);
    assert_int_equal(r->offset, 29);
    assert_int_equal(ttn_fasta_next(f, &r, &err), TTN_EOF);
    const ttn_fasta_counts *found = ttn_fasta_found(f);
    assert_int_equal(found->bytes, sizeof text - 1);
    assert_int_equal(found->residues, 3);
    assert_true(ttn_hash_same(found->hash, ttn_hash128_of(text, sizeof text - 1)));
    assert_string_equal(ttn_fasta_name(f), "in.fa");
    assert_null(ttn_fasta_skipped(f, 0));
    ttn_fasta_close(f);
}

static void five_places_are_kept_and_all_are_counted(void **state)
{
    (void)state;
    static const char text[] = ">a\nM K\nM K\nM K\nM K\nM K\nM K\nM K\n";
    outcome o = read_all("in.fa", text, sizeof text - 1, 0, NULL);
    const ttn_fasta_note *n = &o.found.note[17];
    assert_int_equal(n->n, 7);
    assert_int_equal(n->n_place, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(n->place[i].line, 2 + i);
        assert_int_equal(n->place[i].column, 2);
    }
    ttn_builder_drop(&o.records);
}

/* Of small letters beside each other the first, also where a read ends between them; and no more of them than it takes to
 * see that a record is too long. */
static void small_letters_are_noted_by_the_run(void **state)
{
    (void)state;
    const row w = {40,
                   "small letters",
                   TEXT(">a\r\nMKvlaWK\n>b\nmkvlaMKVL\nwww\n>c\nMMMmmmmMMmmm\n>d\nMKVLAmkvlamkvla\n"),
                   "a=MKVLAWK;b=MKVLAMKVLWWW;c=MMMMMMMMMMMM;",
                   {{1, 1, 1, 3}, {3, 1, 1, 3}, {40, 18 + 8, 2, 3}},
                   .rules = {.skip_records = 1, .max_skipped = 1, .most = 12}};
    check_rows(&w, 1);
    outcome o = read_all("in.fa", w.text, w.n, 0, &w.rules);
    assert_int_equal(o.found.note[40].n_place, TTN_FASTA_PLACES);
    assert_int_equal(o.found.note[40].place[1].line, 4);
    assert_int_equal(o.found.note[40].place[2].line, 5);
    assert_int_equal(o.found.fault[11].n, 1);
    ttn_builder_drop(&o.records);
}

/* ---- options ---- */

static void rules_come_from_the_options(void **state)
{
    (void)state;
    ttn_error err = {0};
    ttn_values *v;
    assert_ok(ttn_options_check(ttn_fasta_options, ttn_fasta_n_options, &err), &err);
    assert_ok(ttn_values_create(ttn_fasta_options, ttn_fasta_n_options, &v, &err), &err);
    static ttn_own_alphabet own;
    ttn_fasta_rules r;
    ttn_option_reader reader = ttn_values_reader(v);
    assert_ok(ttn_fasta_rules_of(&reader, &own, &r, &err), &err);
    assert_string_equal(r.alphabet->name, "esm");
    assert_int_equal(r.lowercase, TTN_LOWERCASE_UPPER);
    assert_int_equal(r.stop, TTN_STOP_ERROR);
    assert_int_equal(r.format, TTN_FORMAT_AUTO);
    assert_int_equal(r.strip_gaps + r.strip_digits + r.skip_records + r.allow_nucleotide + r.allow_no_bgzf_eof, 0);
    assert_true(r.max_skipped == 0.001);
    assert_int_equal(r.most, 200000000);
    assert_null(r.id_regex);

    static const char *const given[] = {"bert",        "",  "error", "x",   "strip", "a3m-query", "yes",
                                        "skip-record", "0", "yes",   "yes", "(.)",   "7"};
    for (int i = 0; i < ttn_fasta_n_options; i++) {
        ttn_scalar s;
        assert_ok(ttn_option_read(&ttn_fasta_options[i], given[i], &s, &err), &err);
        assert_ok(ttn_values_set(v, i, &s, 1, (ttn_origin){TTN_FROM_COMMAND_LINE, "it"}, &err), &err);
    }
    assert_ok(ttn_fasta_rules_of(&reader, &own, &r, &err), &err);
    assert_string_equal(r.alphabet->name, "bert");
    assert_int_equal(r.lowercase, TTN_LOWERCASE_ERROR);
    assert_int_equal(r.stop, TTN_STOP_X);
    assert_int_equal(r.format, TTN_FORMAT_A3M_QUERY);
    assert_int_equal(r.strip_gaps + r.strip_digits + r.skip_records + r.allow_nucleotide + r.allow_no_bgzf_eof, 5);
    assert_true(r.max_skipped < 0);
    assert_int_equal(r.most, 7);

    ttn_scalar s = {.text = "<unk> <mask> Y W V T S R Q P N M L K I H G F E D C A"};
    assert_ok(ttn_values_set(v, 1, &s, 1, (ttn_origin){TTN_FROM_COMMAND_LINE, "it"}, &err), &err);
    assert_ok(ttn_fasta_rules_of(&reader, &own, &r, &err), &err);
    assert_ptr_equal(r.alphabet, &own.alphabet);
    assert_true(r.alphabet->n == 22 && r.alphabet->map['A'] == 21 && r.alphabet->mask == 1);
    s.text = "<unk> A";
    assert_ok(ttn_values_set(v, 1, &s, 1, (ttn_origin){TTN_FROM_COMMAND_LINE, "it"}, &err), &err);
    assert_fails(ttn_fasta_rules_of(&reader, &own, &r, &err), TTN_EINVAL, &err,
                 "data.tokens: the vocabulary has no token 'C'");
    assert_string_equal(r.id_regex, "(.)");
    ttn_values_destroy(v);
}

static ttn_status open_with_regex(const char *regex, ttn_error *err)
{
    ttn_source *source;
    ttn_fasta *f;
    *err = (ttn_error){0};
    assert_ok(ttn_source_open_memory("in.fa", ">a\nM\n", 5, 0, NULL, &source, err), err);
    const ttn_status status = ttn_fasta_open(source, &(ttn_fasta_rules){.id_regex = regex}, &f, err);
    assert_true((f != NULL) == (status == TTN_OK));
    ttn_fasta_close(f);
    return status;
}

static void an_expression_that_is_none_is_refused(void **state)
{
    (void)state;
    ttn_error err;
    assert_fails(open_with_regex("(a", &err), TTN_EINVAL, &err, "data.id_regex");
}

/* The C library's stack would end at 20,000 parentheses, and 3.5 GB go into 255 times 255 times 255. */
static void an_expression_has_bounds(void **state)
{
    (void)state;
    static char deep[40002];
    ttn_error err;
    memset(deep, '(', 20000);
    deep[20000] = 'a';
    memset(deep + 20001, ')', 20000);
    assert_fails(open_with_regex(deep, &err), TTN_EINVAL, &err, "has 40001 characters, at most 1000 are allowed");
    static const char *const large[] = {"((a{255}){255}){255}", "a{1001}", "a{1,99999999999999999999}", "a{40}b{,26}c",
                                        "(((((a{9}){9}){9}){9}){9})"};
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        assert_fails(open_with_regex(large[i], &err), TTN_EINVAL, &err, "repeats too much");
    static const char *const good[] = {"[OPQ][0-9][A-Z0-9]{3}[0-9]|[A-NR-Z][0-9]([A-Z][A-Z0-9]{2}[0-9]){1,2}",
                                       "a{1000}", "(((a+)*)+)*", "a{0}b{1}c{1,}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_ok(open_with_regex(good[i], &err), &err);
}

/* ---- dressings ---- */

typedef enum {
    UNWRAPPED,
    WRAPPED,
    CR_LF,
    CR_ALONE,
    WITH_MARK,
    BLANK_LINES,
    BLANKS_BEHIND,
    NO_LAST_END,
    LOWER_CASE,
    COMMENTS,
    GZIP,
    MEMBERS,
    BGZF,
    N_DRESSINGS,
} dressing;

enum { MOST_RECORDS = 6, MOST_RESIDUES = 300 };

typedef struct {
    int n;
    char sequence[MOST_RECORDS][MOST_RESIDUES + 1];
} record_set;

static uint64_t draw(uint64_t set, uint64_t *i, uint64_t bound)
{
    return ttn_rng_below(ttn_test_seed(), set, (*i)++, bound);
}

static record_set random_set(uint64_t number)
{
    static const char letters[] = TWENTY "XBZUO";
    uint64_t i = 0;
    record_set s = {.n = 1 + (int)draw(number, &i, MOST_RECORDS)};
    for (int r = 0; r < s.n; r++) {
        const uint64_t n = 1 + draw(number, &i, MOST_RESIDUES);
        for (uint64_t k = 0; k < n; k++)
            s.sequence[r][k] = letters[draw(number, &i, sizeof letters - 1)];
    }
    s.sequence[0][0] = 'W'; /* no nucleotide, however short it is */
    return s;
}

static void dress(ttn_builder *b, const record_set *s, dressing how)
{
    const char *end = how == CR_LF ? "\r\n" : how == CR_ALONE ? "\r" : "\n";
    const size_t width = how == UNWRAPPED ? MOST_RESIDUES : 60;
    if (how == WITH_MARK) ttn_build(b, "\xef\xbb\xbf");
    if (how == COMMENTS) ttn_build(b, "# made by a test%s", end);
    for (int r = 0; r < s->n; r++) {
        ttn_build(b, ">r%d text%s%s", r, how == BLANKS_BEHIND ? "  " : "", end);
        if (how == COMMENTS) ttn_build(b, ";inside > it%s", end);
        const size_t n = strlen(s->sequence[r]);
        for (size_t at = 0; at < n; at += width) {
            const size_t part = n - at < width ? n - at : width;
            char line[MOST_RESIDUES];
            for (size_t k = 0; k < part; k++)
                line[k] = (char)(s->sequence[r][at + k] | (how == LOWER_CASE ? 0x20 : 0));
            ttn_build_bytes(b, line, part);
            if (how == BLANKS_BEHIND) ttn_build(b, " \t");
            if (how != NO_LAST_END || r + 1 < s->n || at + part < n) ttn_build(b, "%s", end);
            if (how == BLANK_LINES) ttn_build(b, " %s", end);
        }
    }
}

/* The bytes of the set in that dressing, to be freed. */
static made_bytes dressed(const record_set *s, dressing how, uint64_t number)
{
    ttn_builder b = {0};
    dress(&b, s, how);
    assert_false(b.failed);
    uint64_t i = 1 << 20;
    const size_t each = 1 + draw(number, &i, b.n);
    made_bytes m = {0};
    if (how == GZIP) m = made_members(b.text, b.n, b.n);
    if (how == MEMBERS) m = made_members(b.text, b.n, each);
    if (how == BGZF) m = made_bgzf(b.text, b.n, each, 1);
    if (!m.bytes) made_append(&m, b.text, b.n);
    ttn_builder_drop(&b);
    return m;
}

static void the_same_records_in_any_dressing(void **state)
{
    (void)state;
    const int64_t n = ttn_scaled(10000, 100);
    for (int64_t i = 0; i < n; i++) {
        const record_set s = random_set((uint64_t)i);
        ttn_builder wanted = {0};
        for (int r = 0; r < s.n; r++)
            ttn_build(&wanted, "r%d=%s;", r, s.sequence[r]);
        for (dressing how = 0; how < N_DRESSINGS; how++) {
            const made_bytes m = dressed(&s, how, (uint64_t)i);
            outcome o = read_all("in.fa", m.bytes, m.n, i % 3 == 0 ? 17 : 0, NULL);
            if (o.status != TTN_EOF || !o.records.text || !wanted.text || strcmp(o.records.text, wanted.text) != 0)
                fail_msg("set %" PRId64 ", dressing %d: %s", i, how, o.err.text);
            ttn_builder_drop(&o.records);
            free(m.bytes);
        }
        ttn_builder_drop(&wanted);
    }
}

/* A source that fails at every allocation in turn: a message, and nothing left behind (the sanitizers look). */
static void no_memory_is_said(void **state)
{
    (void)state;
    static const char text[] = ">a\nMKV\n>b\nMK\n";
    const made_bytes m = made_members(text, sizeof text - 1, 9);
    int64_t calls = 1;
    for (int64_t nth = 1; nth <= calls; nth++) {
        ttn_source *source;
        ttn_fasta *f = NULL;
        const ttn_fasta_record *r;
        ttn_error err = {0};
        shim_arm(SHIM_ALLOC, nth, SHIM_FAIL, ENOMEM, 0);
        ttn_status status = ttn_source_open_memory("in.fa", m.bytes, m.n, 0, NULL, &source, &err);
        if (status == TTN_OK)
            status = ttn_fasta_open(
                source, &(ttn_fasta_rules){.ids = TTN_IDS_UNIQUE, .lowercase = TTN_LOWERCASE_EXCLUDE}, &f, &err);
        while (status == TTN_OK)
            status = ttn_fasta_next(f, &r, &err);
        ttn_fasta_close(f);
        const int hit = shim_was_hit();
        calls = shim_disarm() + 1;
        if (!hit) {
            assert_int_equal(status, TTN_EOF);
            break;
        }
        assert_fails(status, TTN_ENOMEM, &err, "");
    }
    free(m.bytes);
}

int main(int argc, char **argv)
{
    ttn_test_start(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_rows_1_to_21),
        cmocka_unit_test(headers_rows_22_to_37),
        cmocka_unit_test(residues_rows_38_to_51),
        cmocka_unit_test(wrong_files_rows_52_to_61),
        cmocka_unit_test(files_of_other_kinds_are_named),
        cmocka_unit_test(words_are_no_residues_row_70),
        cmocka_unit_test(long_lines_and_records_rows_11_and_12),
        cmocka_unit_test(long_headers_are_cut_and_longer_ones_refused),
        cmocka_unit_test(few_empty_records_are_left_out),
        cmocka_unit_test(nucleotides_are_told_by_the_first_thousand_records),
        cmocka_unit_test(faulty_records_are_left_out_on_request),
        cmocka_unit_test(the_message_names_the_value_of_max_skipped),
        cmocka_unit_test(an_id_made_of_the_file_s_name_is_one_word),
        cmocka_unit_test(what_concerns_the_file_is_never_skipped),
        cmocka_unit_test(records_know_their_place_and_header),
        cmocka_unit_test(five_places_are_kept_and_all_are_counted),
        cmocka_unit_test(small_letters_are_noted_by_the_run),
        cmocka_unit_test(rules_come_from_the_options),
        cmocka_unit_test(an_expression_that_is_none_is_refused),
        cmocka_unit_test(an_expression_has_bounds),
        cmocka_unit_test(the_same_records_in_any_dressing),
        cmocka_unit_test(no_memory_is_said),
    };
    return ttn_test_run(tests);
}
