/* The rules by number, and their rows in the configuration. */
#include <string.h>
#include "data/fasta_impl.h"

/* What a note counts. Rules that only accept, or only refuse, count nothing. */
static const char *const counted[TTN_FASTA_CODES] = {
    [1] = "lines end in CR LF",
    [2] = "lines end in CR alone",
    [3] = "line ends of both kinds",
    [5] = "byte order mark taken off",
    [8] = "blank lines inside records",
    [13] = "headers of which only the first 4 KiB are kept",
    [16] = "blanks at ends of lines taken off",
    [17] = "blanks inside sequences taken off",
    [19] = "Ctrl-Z at the end taken off",
    [22] = "headers without an id, which got FILE:LINE",
    [23] = "headers with a blank behind '>'",
    [24] = "headers with blanks before '>'",
    [27] = "records without residues left out",
    [28] = "header without residues at the end of the file left out",
    [32] = "header bytes that are no UTF-8 replaced",
    [34] = "comment lines before the first record",
    [35] = "comment lines inside records",
    [39] = "letters that the vocabulary lacks, read as X or unknown",
    [40] = "lower-case residues",
    [41] = "stops at ends of sequences taken off",
    [42] = "stops inside sequences: split there, or read as X",
    [43] = "gaps '-' taken out",
    [44] = "gaps '.' taken out",
    [45] = "gaps '~' taken out",
    [46] = "read as A3M by its name",
    [47] = "read as A2M by its name",
    [49] = "digits taken out",
    [51] = "records that look like nucleotides, not proteins",
    [65] = "zero bytes behind the gzip data",
    [67] = "annotations in A3M, such as secondary structure, left out",
    [68] = "NUL bytes between alignments",
    [69] = "control characters in headers replaced",
};

const char *ttn_fasta_rule(int code)
{
    return code > 0 && code < TTN_FASTA_CODES ? counted[code] : NULL;
}

ttn_fasta_note_kind ttn_fasta_kind_of_note(int code)
{
    static const int repaired[] = {5, 13, 16, 17, 19, 22, 32, 39, 40, 41, 42, 43, 44, 45, 49, 69};
    if (code == 27 || code == 28 || code == 67) return TTN_NOTE_LEFT_OUT;
    for (size_t i = 0; i < sizeof repaired / sizeof *repaired; i++)
        if (repaired[i] == code) return TTN_NOTE_REPAIRED;
    return TTN_NOTE_ACCEPTED;
}

/* Of every code that a record is left out for: because of a fault (ttn_fasta_blame), or by a note that says so. */
static const char *const faults[TTN_FASTA_CODES] = {
    [2] = "CR alone where lines end in LF",
    [11] = "more residues than data.max_record",
    [18] = "control characters",
    [19] = "Ctrl-Z",
    [20] = "NUL bytes in the sequence",
    [21] = "NUL bytes in the header",
    [22] = "no id",
    [26] = "'>' inside a line of residues",
    [27] = "no residues",
    [28] = "no residues, at the end of the file",
    [29] = "an id that another record has",
    [33] = "a header that data.id_regex does not match",
    [35] = "';' inside a line of residues",
    [38] = "characters that are no residues",
    [40] = "lower-case residues",
    [42] = "'*' inside the sequence",
    [43] = "gaps '-'",
    [44] = "gaps '.'",
    [45] = "gaps '~'",
    [46] = "lower case and gaps '-', as in A3M",
    [47] = "lower case and gaps '.', as in A2M",
    [49] = "digits",
    [50] = "bytes beyond ASCII",
    [67] = "annotations, such as secondary structure",
    [70] = "words in the place of residues",
    [71] = "headers of PIR",
};

const char *ttn_fasta_fault(int code)
{
    return code > 0 && code < TTN_FASTA_CODES ? faults[code] : NULL;
}

/* ---- rows ---- */

/* In the order of their enums. */
static const char *const lowercase_choices[] = {"upper", "exclude-from-loss", "error", NULL};
static const char *const stop_choices[] = {"error", "split", "x", NULL};
static const char *const gaps_choices[] = {"error", "strip", NULL};
static const char *const format_choices[] = {"auto", "fasta", "a3m", "a3m-query", NULL};
static const char *const on_error_choices[] = {"stop", "skip-record", NULL};

enum {
    ALPHABET,
    TOKENS,
    LOWERCASE,
    STOP,
    GAPS,
    FORMAT,
    STRIP_DIGITS,
    ON_ERROR,
    MAX_SKIPPED,
    ALLOW_NUCLEOTIDE,
    ALLOW_NO_BGZF_EOF,
    ID_REGEX,
    MAX_RECORD,
    N_OPTIONS,
};

const ttn_option_condition ttn_when_packed[] = {TTN_WHEN_PACKED, {0}};
static const ttn_option_condition skips[] = {TTN_WHEN_PACKED, {"data.on_error", .is = "skip-record"}, {0}};

static const ttn_option_condition without_tokens[] = {{"data.tokens", .is = ""}, {0}};

const ttn_option ttn_fasta_options[] = {
    [ALPHABET] = {.name = "data.alphabet",
                  .type = TTN_OPTION_CHOICE,
                  .fallback = "esm",
                  .choices = ttn_alphabet_names,
                  .help = "the vocabulary: tokens of ESM-2 (33), of ProtBert (30) or of AMPLIFY (27)",
                  .since = "0.1",
                  .when = without_tokens,
                  .unread_is_error = 1},
    [TOKENS] = {.name = "data.tokens",
                .type = TTN_OPTION_TEXT,
                .fallback = "",
                .from_file = 1,
                .help =
                    "in the place of data.alphabet: a vocabulary's tokens in their order, blanks between them; @FILE: "
                    "the lines of a file, such as vocab.txt, which is not needed again",
                .since = "0.1"},
    [LOWERCASE] = {.name = "data.lowercase",
                   .type = TTN_OPTION_CHOICE,
                   .fallback = "upper",
                   .choices = lowercase_choices,
                   .help = "lower-case residues (soft masks): read as capitals, these and without a loss, or refused",
                   .since = "0.1",
                   .when = ttn_when_packed},
    [STOP] = {.name = "data.stop",
              .type = TTN_OPTION_CHOICE,
              .fallback = "error",
              .choices = stop_choices,
              .help = "'*' inside a sequence: refused, split into two records, or read as X; with the last two a "
                      "'.' is a stop as well (gffread writes it so)",
              .since = "0.1",
              .when = ttn_when_packed},
    [GAPS] = {.name = "data.gaps",
              .type = TTN_OPTION_CHOICE,
              .fallback = "error",
              .choices = gaps_choices,
              .help = "gaps (- . ~): refused, or taken out",
              .since = "0.1",
              .when = ttn_when_packed},
    [FORMAT] = {.name = "data.format",
                .type = TTN_OPTION_CHOICE,
                .fallback = "auto",
                .choices = format_choices,
                .help =
                    "auto: .a3m and .a2m are alignments, whose gaps are taken out; a3m-query keeps the first record",
                .since = "0.1",
                .when = ttn_when_packed},
    [STRIP_DIGITS] = {.name = "data.strip_digits",
                      .type = TTN_OPTION_BOOL,
                      .fallback = "no",
                      .help = "take the numbers out that stand at lines' beginnings or ends, as in GenBank",
                      .since = "0.1",
                      .when = ttn_when_packed},
    [ON_ERROR] = {.name = "data.on_error",
                  .type = TTN_OPTION_CHOICE,
                  .fallback = "stop",
                  .choices = on_error_choices,
                  .help = "a record with a fault in it ends the reading, or is left out and counted",
                  .since = "0.1",
                  .when = ttn_when_packed},
    [MAX_SKIPPED] = {.name = "data.max_skipped",
                     .type = TTN_OPTION_REAL,
                     .fallback = "0.001",
                     .least = 0,
                     .most = 1,
                     .help = "with skip-record: a file of which a larger part than this is left out is refused",
                     .since = "0.1",
                     .when = skips},
    [ALLOW_NUCLEOTIDE] = {.name = "data.allow_nucleotide",
                          .type = TTN_OPTION_BOOL,
                          .fallback = "no",
                          .help = "accept a file that looks like nucleotides (over 95 % A, C, G, T, U, N)",
                          .since = "0.1",
                          .when = ttn_when_packed},
    [ALLOW_NO_BGZF_EOF] = {.name = "data.allow_no_bgzf_eof",
                           .type = TTN_OPTION_BOOL,
                           .fallback = "no",
                           .help = "accept a BGZF file without the block that marks its end",
                           .since = "0.1",
                           .when = ttn_when_packed},
    [ID_REGEX] = {.name = "data.id_regex",
                  .type = TTN_OPTION_TEXT,
                  .fallback = "",
                  .help =
                      "what of a header is the id: the first group of this regular expression; empty: the first word",
                  .since = "0.1",
                  .when = ttn_when_packed},
    [MAX_RECORD] = {.name = "data.max_record",
                    .type = TTN_OPTION_INTEGER,
                    .fallback = "200M",
                    .least = 1,
                    .most = 1e12,
                    .unit = "residues",
                    .help = "a longer record is refused: it bounds the memory that reading takes",
                    .since = "0.1",
                    .when = ttn_when_packed},
};
const int ttn_fasta_n_options = N_OPTIONS;

static ttn_status choice(const ttn_option_reader *o, int row, int *ret, ttn_error *err)
{
    const char *text;
    ttn_status status = o->get_text(o->self, ttn_fasta_options[row].name, 0, &text, err);
    if (status != TTN_OK) return status;
    *ret = 0;
    while (strcmp(ttn_fasta_options[row].choices[*ret], text) != 0)
        (*ret)++;
    return TTN_OK;
}

static ttn_status yes_or_no(const ttn_option_reader *o, int row, int *ret, ttn_error *err)
{
    return o->get_bool(o->self, ttn_fasta_options[row].name, 0, ret, err);
}

/* *ret: that of data.tokens, made in `own`, or that of data.alphabet. */
static ttn_status alphabet_of(const ttn_option_reader *o, ttn_own_alphabet *own, const ttn_alphabet **ret,
                              ttn_error *err)
{
    int named = 0;
    const char *tokens = NULL;
    ttn_status status = choice(o, ALPHABET, &named, err);
    if (status == TTN_OK) status = o->get_text(o->self, ttn_fasta_options[TOKENS].name, 0, &tokens, err);
    if (status != TTN_OK) return status;
    *ret = ttn_alphabet_find(ttn_alphabet_names[named]);
    if (!tokens[0]) return TTN_OK;
    *ret = &own->alphabet;
    ttn_error why = {0};
    if (ttn_alphabet_read(tokens, own, &why) == TTN_OK) return TTN_OK;
    return TTN_FAIL(err, TTN_EINVAL, "%s", why.text);
}

ttn_status ttn_fasta_rules_of(const ttn_option_reader *o, ttn_own_alphabet *own, ttn_fasta_rules *ret, ttn_error *err)
{
    int lowercase = 0, stop = 0, format = 0;
    ttn_fasta_rules r = {0};
    ttn_status status = alphabet_of(o, own, &r.alphabet, err);
    if (status == TTN_OK) status = choice(o, LOWERCASE, &lowercase, err);
    if (status == TTN_OK) status = choice(o, STOP, &stop, err);
    if (status == TTN_OK) status = choice(o, GAPS, &r.strip_gaps, err);
    if (status == TTN_OK) status = choice(o, FORMAT, &format, err);
    if (status == TTN_OK) status = yes_or_no(o, STRIP_DIGITS, &r.strip_digits, err);
    if (status == TTN_OK) status = choice(o, ON_ERROR, &r.skip_records, err);
    if (status == TTN_OK) status = o->get_real(o->self, ttn_fasta_options[MAX_SKIPPED].name, 0, &r.max_skipped, err);
    if (status == TTN_OK) status = yes_or_no(o, ALLOW_NUCLEOTIDE, &r.allow_nucleotide, err);
    if (status == TTN_OK) status = yes_or_no(o, ALLOW_NO_BGZF_EOF, &r.allow_no_bgzf_eof, err);
    if (status == TTN_OK) status = o->get_text(o->self, ttn_fasta_options[ID_REGEX].name, 0, &r.id_regex, err);
    if (status == TTN_OK) status = o->get_integer(o->self, ttn_fasta_options[MAX_RECORD].name, 0, &r.most, err);
    if (status != TTN_OK) return status;
    r.lowercase = (ttn_fasta_lowercase)lowercase;
    r.stop = (ttn_fasta_stop)stop;
    r.format = (ttn_fasta_format)format;
    if (!r.id_regex[0]) r.id_regex = NULL;
    if (r.max_skipped == 0) r.max_skipped = -1; /* 0 stands for the default there */
    *ret = r;
    return TTN_OK;
}
