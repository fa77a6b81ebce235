/* What stands in a sequence. Nearly all bytes of a file are residues and go through one loop of a table look-up a byte
 * (read_run); everything else takes its time. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "data/fasta_impl.h"

enum { FIRST_ROOM = 4096 }; /* residues */

/* Room for `more` residues. */
static ttn_status reserve(ttn_fasta *f, int64_t more)
{
    const int64_t wanted = f->n + more;
    if (wanted <= f->room) return TTN_OK;
    int64_t room = f->room > 0 ? f->room : FIRST_ROOM;
    while (room < wanted)
        room *= 2;
    uint8_t *token = realloc(f->token, (size_t)room);
    if (token) f->token = token;
    uint8_t *lower = token && f->rules.lowercase == TTN_LOWERCASE_EXCLUDE ? realloc(f->lower, (size_t)room) : NULL;
    if (lower) f->lower = lower;
    if (!token || (!lower && f->rules.lowercase == TTN_LOWERCASE_EXCLUDE))
        return TTN_FAIL(&f->failure, TTN_ENOMEM,
                        "%s:%" PRId64 ": out of memory for a record of more than %" PRId64 " residues", f->source->name,
                        f->line, f->n);
    f->room = room;
    return TTN_OK;
}

/* What is read here is longer than a record may be: said of the first residue too many, which w is. */
static ttn_status too_long(ttn_fasta *f, ttn_fasta_waiting w)
{
    char what[80];
    snprintf(what, sizeof what, "a record of more than %" PRId64 " residues", f->rules.most);
    f->n = f->rules.most;
    return ttn_fasta_blame(f, 11, w, what, "set data.max_record to more, if the file is right");
}

/* Bytes at hand that may be read as residues: no more than a record may have, and one, which shows that it is too long. */
static int64_t bytes_for_residues(const ttn_fasta *f)
{
    const int64_t at_hand = (int64_t)(f->end - f->at), wanted = f->rules.most - f->n + 1;
    return at_hand < wanted ? at_hand : wanted;
}

static ttn_status check_length(ttn_fasta *f)
{
    return f->n > f->rules.most ? too_long(f, ttn_fasta_here(f, ttn_fasta_offset(f) - 1)) : TTN_OK;
}

/* n residues of the record, whose room was reserved, stand behind the n that it has. */
static void add(ttn_fasta *f, int64_t n, int is_lower)
{
    if (f->lower) memset(f->lower + f->n, is_lower, (size_t)n);
    f->n += n;
}

/* ---- words ----
 *
 * A header that was wrapped, a title, a footer: their letters would be residues. A line is taken for words when
 *   - it has blanks between groups of letters which are not blocks (all of one width but the last, which may be shorter; of
 *     two or three groups the width is 1, 5 or 10), and has small letters, or one of B J O U X Z;
 *   - or all its letters are small, without a blank, and one is an o or a j;
 * and when the record has a line of capitals, in blocks or without blanks. So soft masks, records and files in small
 * letters, and blocks of ten pass. A line of three-letter codes (Met Lys Val) is refused wherever it stands.
 */

static int64_t column_of(const ttn_fasta *f)
{
    return ttn_fasta_offset(f) - f->line_offset + 1;
}

/* What is known of this line. */
static ttn_fasta_words *words_of(ttn_fasta *f)
{
    if (f->words.line != f->line) f->words = (ttn_fasta_words){.line = f->line, .begin = 1};
    return &f->words;
}

/* A group of letters has ended before column `end`, and another begins at `begin`. */
static void end_group(ttn_fasta_words *w, int64_t end, int64_t begin)
{
    const int64_t width = end - w->begin;
    if (width > 0) {
        if (w->n_group == 0)
            w->width = width;
        else
            w->is_uneven |= width != w->width;
        w->letters += width;
        w->n_group++;
    }
    w->begin = begin;
}

/* Of a line whose last group ends before column `end`. */
static int is_uneven(const ttn_fasta_words *w, int64_t end)
{
    const int64_t last = end - w->begin;
    if (w->n_group == 0 || last <= 0) return 0;
    return w->is_uneven || last > w->width || (w->n_group < 3 && w->width != 10 && w->width != 5 && w->width != 1);
}

/* The column behind the last letter of this line, of which blanks and stops may wait behind it. */
static int64_t end_of_letters(const ttn_fasta *f)
{
    const int64_t end = f->blanks.n > 0 ? f->blanks.column : column_of(f);
    return f->stops.n > 0 && f->stops.line == f->line && f->stops.column < end ? f->stops.column : end;
}

/* Is one of the last n residues none of the twenty? */
static int has_rare_residue(const ttn_fasta *f, int64_t n)
{
    for (int64_t i = n < f->n ? f->n - n : 0; i < f->n; i++)
        if (!ttn_alphabet_is_residue(f->rules.alphabet, f->token[i])) return 1;
    return 0;
}

/* Are the last n residues names of amino acids, in three letters each? */
static int are_three_letter_codes(const ttn_fasta *f, int64_t n)
{
    static const char codes[] = "ALA ARG ASN ASP CYS GLN GLU GLY HIS ILE LEU LYS MET PHE PRO SER THR TRP TYR VAL ";
    if (n < 6 || n % 3 != 0 || n > f->n) return 0;
    for (int64_t i = f->n - n; i < f->n; i += 3) {
        char code[5] = "    ";
        for (int k = 0; k < 3; k++)
            code[k] = ttn_alphabet_letter(f->rules.alphabet, f->token[i + k]);
        const char *found = strstr(codes, code);
        if (!found || (found - codes) % 4 != 0) return 0;
    }
    return 1;
}

/* w.n: the residue of the record that it would be. */
static ttn_status blame_words(ttn_fasta *f, ttn_fasta_waiting w)
{
    f->n = w.n - 1;
    w.n = 1;
    return ttn_fasta_blame(f, 70, w, "a line of words in a sequence",
                           "if it is the rest of the header, join it to the header's line; if it is a remark, take the "
                           "line out");
}

ttn_status ttn_fasta_judge_words(ttn_fasta *f)
{
    if (f->words.line == f->line) {
        const ttn_fasta_words *w = &f->words;
        const int64_t end = end_of_letters(f), letters = w->letters + end - w->begin;
        const int uneven = is_uneven(w, end) && !w->has_digits;
        const int is_words = (uneven && (w->small > 0 || has_rare_residue(f, letters))) ||
                             (w->n_group == 0 && w->small == letters && w->has_rare);
        const ttn_fasta_waiting here = {f->n > letters ? f->n - letters + 1 : 1, f->line, 1, f->line_offset};
        if (w->n_group > 0 && w->width == 3 && !w->is_uneven && end - w->begin == 3 &&
            are_three_letter_codes(f, letters)) {
            f->n = here.n - 1;
            return ttn_fasta_blame(f, 70, (ttn_fasta_waiting){1, f->line, 1, f->line_offset},
                                   "amino acids in three letters each", "write them in one letter each");
        }
        if (is_words && f->has_capital_line) return blame_words(f, here);
        if (is_words && f->suspect.n == 0) f->suspect = here;
        if (w->small > 0 || uneven) return TTN_OK;
    }
    f->has_capital_line = 1;
    return f->suspect.n > 0 ? blame_words(f, f->suspect) : TTN_OK;
}

/* Does the line that holds a fault look like words? From what was read of it, and what stands behind `at`. */
static int is_in_words(ttn_fasta *f)
{
    ttn_fasta_words w = *words_of(f);
    if (ttn_fasta_look_ahead(f, TTN_FASTA_LOOK) != TTN_OK) return 0;
    size_t n;
    ttn_fasta_line(f, &n);
    if (n > TTN_FASTA_LOOK) n = TTN_FASTA_LOOK;
    int64_t column = column_of(f), blank = f->blanks.n > 0 ? f->blanks.column : 0;
    for (size_t i = 0; i < n; i++, column++) {
        const uint8_t kind = f->table[f->chunk[f->at + i]];
        if (kind == TTN_BYTE_SPACE) {
            if (blank == 0) blank = column;
            continue;
        }
        if (blank > 0) end_group(&w, blank, column);
        blank = 0;
        w.small += kind == TTN_BYTE_LOWER;
    }
    return is_uneven(&w, blank > 0 ? blank : column) && w.small > 0 && !w.has_digits;
}

/* A fault of what stands here. Where the line looks like words, what to do about one character of it would make residues of
 * the others. */
static ttn_status blame_here(ttn_fasta *f, int code, ttn_fasta_waiting w, const char *what, const char *hint)
{
    if (f->lone.n > 0 && f->lone.line >= f->record_line) {
        ttn_status status = ttn_fasta_check_cr(f);
        if (status != TTN_OK || f->is_skipped) return status;
    }
    const int in_words = is_in_words(f);
    if (f->failure.status != TTN_OK) return f->failure.status;
    w.n = f->n + 1;
    if (in_words) return blame_words(f, w);
    w.n = 1;
    return ttn_fasta_blame(f, code, w, what, hint);
}

/* ---- what waits ---- */

/* A stop inside a sequence: a residue follows. */
static ttn_status resolve_stops(ttn_fasta *f)
{
    const ttn_fasta_waiting w = f->stops;
    f->stops.n = 0;
    if (f->rules.stop == TTN_STOP_ERROR)
        return blame_here(f, 42, w, "'*' (a stop) inside a sequence",
                          "set data.stop=split or data.stop=x, or translate anew");
    ttn_fasta_count(f, 42, w);
    if (f->rules.stop == TTN_STOP_SPLIT) {
        if (f->n == 0) return TTN_OK; /* at the very beginning */
        f->is_split = 1;
        return ttn_fasta_complete(f);
    }
    if (w.n > f->rules.most - f->n) return too_long(f, w); /* no memory for what is refused */
    ttn_status status = reserve(f, w.n);
    if (status != TTN_OK) return status;
    memset(f->token + f->n, f->rules.alphabet->map['X'], (size_t)w.n);
    add(f, w.n, 0);
    return TTN_OK;
}

/* A residue follows: what waits was inside. */
static ttn_status resolve_waiting(ttn_fasta *f)
{
    if (f->blanks.n > 0) {
        ttn_fasta_count(f, 17, f->blanks);
        end_group(words_of(f), f->blanks.column, column_of(f));
    }
    if (f->blank_lines.n > 0) ttn_fasta_count(f, 8, f->blank_lines);
    f->blanks.n = 0;
    f->blank_lines.n = 0;
    return f->stops.n > 0 ? resolve_stops(f) : TTN_OK;
}

/* Tokens of the capital letters that n bytes begin with; returns how many they are. Eight at a time: that one is no residue
 * shows in the bit that tells a class from a token. (With `restrict` gcc joins the stores by shifts, which takes a sixth
 * longer; sixteen at a time take a third longer; compared and blended by letters, 32 at a time, as long.) */
static int64_t map_letters(const uint8_t *bytes, int64_t n, const uint8_t *table, uint8_t *to)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint8_t any = 0;
        for (int k = 0; k < 8; k++) {
            const uint8_t token = table[bytes[i + k]];
            to[i + k] = token;
            any |= token;
        }
        if (any < 0x80) continue;
        while (to[i] < 0x80)
            i++;
        return i;
    }
    while (i < n && table[bytes[i]] < 0x80) {
        to[i] = table[bytes[i]];
        i++;
    }
    return i;
}

/* Does a line end in LF at `at`, and does the next one begin with a capital letter? */
static int runs_on(const ttn_fasta *f)
{
    return f->at + 1 < f->end && f->chunk[f->at] == '\n' && f->table[f->chunk[f->at + 1]] < 0x80;
}

/* Capital letters, as many as come, in this line and the next ones. */
static ttn_status read_run(ttn_fasta *f)
{
    ttn_status status = reserve(f, (int64_t)(f->end - f->at));
    if (status != TTN_OK) return status;
    for (;;) {
        const int64_t n = map_letters(f->chunk + f->at, bytes_for_residues(f), f->table, f->token + f->n);
        add(f, n, 0);
        f->at += (size_t)n;
        status = check_length(f);
        if (status != TTN_OK || f->is_skipped) return status;
        if (!runs_on(f)) return TTN_OK;
        status = ttn_fasta_judge_line(f);
        if (status != TTN_OK || f->is_skipped) return status;
        ttn_fasta_end_line(f);
        f->where = TTN_IN_SEQUENCE;
    }
}

static int is_small_letter(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static ttn_status read_lower(ttn_fasta *f)
{
    ttn_fasta_waiting w = ttn_fasta_here(f, ttn_fasta_offset(f));
    if (f->rules.lowercase == TTN_LOWERCASE_ERROR)
        return ttn_fasta_blame(f, 40, w, "a lower-case residue", "set data.lowercase=upper if this is a soft mask");
    const uint8_t *bytes = f->chunk + f->at;
    const int64_t n = bytes_for_residues(f);
    ttn_status status = reserve(f, n);
    if (status != TTN_OK) return status;
    int64_t i = 0;
    ttn_fasta_words *words = words_of(f);
    while (i < n && is_small_letter(bytes[i])) {
        const uint8_t capital = (uint8_t)(bytes[i] - 'a' + 'A');
        words->has_rare |= bytes[i] == 'o' || bytes[i] == 'j';
        f->token[f->n + i] = f->rules.alphabet->map[capital];
        if (f->table[capital] == TTN_BYTE_SUBSTITUTE)
            ttn_fasta_count(f, 39, ttn_fasta_here(f, ttn_fasta_offset(f) + i));
        i++;
    }
    words->small += i;
    w.n = i;
    if (w.offset == f->lower_end)
        f->found.note[40].n += i; /* the bytes came in two parts: one place */
    else
        ttn_fasta_count(f, 40, w);
    f->lower_end = w.offset + i;
    f->lower_case += i;
    add(f, i, 1);
    f->at += (size_t)i;
    return check_length(f);
}

static ttn_status read_substitute(ttn_fasta *f)
{
    ttn_status status = reserve(f, 1);
    if (status != TTN_OK) return status;
    ttn_fasta_count(f, 39, ttn_fasta_here(f, ttn_fasta_offset(f)));
    f->token[f->n] = f->rules.alphabet->map[f->chunk[f->at]];
    add(f, 1, 0);
    f->at++;
    return check_length(f);
}

static ttn_status read_gap(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    const ttn_fasta_waiting w = ttn_fasta_here(f, ttn_fasta_offset(f));
    const int code = c == '-' ? 43 : c == '.' ? 44 : 45;
    if (f->is_alignment || f->rules.strip_gaps) {
        ttn_fasta_count(f, code, w);
        f->at++;
        return TTN_OK;
    }
    if (c == '.' && f->rules.stop != TTN_STOP_ERROR) {
        ttn_fasta_wait(f, &f->stops);
        f->at++;
        return TTN_OK;
    }
    ttn_status status = ttn_fasta_look_ahead(f, 2);
    if (status != TTN_OK) return status;
    const uint8_t next = f->at + 1 < f->end ? f->chunk[f->at + 1] : '\n';
    const int is_alone = f->table[next] != TTN_BYTE_GAP;
    char what[40];
    snprintf(what, sizeof what, "'%c' (a gap) in a sequence", c);
    if (f->lower_case > 0 && c == '-')
        return blame_here(f, 46, w, what, "looks like A3M, an alignment: set data.format=a3m or a3m-query");
    if (f->lower_case > 0 && c == '.')
        return blame_here(f, 47, w, what, "looks like A2M, an alignment: set data.format=a3m");
    if (c == '.' && is_alone)
        return blame_here(f, 44, w, "'.' (a stop, or a gap) in a sequence",
                          "if it is a stop, as gffread writes them, set data.stop=split or data.stop=x; if this is an "
                          "alignment, see data.gaps and data.format");
    return blame_here(f, code, w, what,
                      "if this is an alignment, set data.gaps=strip to take the gaps out; else write X for a residue "
                      "that is not known");
}

/* How many digits stand at `at` (0: too many for a number of residues), and whether a letter stands right before and right
 * behind them. */
static ttn_status look_at_digits(ttn_fasta *f, int64_t *ret_n, int *ret_is_inside, int *ret_is_number)
{
    enum { MOST = 20 };
    ttn_status status = ttn_fasta_look_ahead(f, MOST + 1);
    if (status != TTN_OK) return status;
    int64_t n = 0;
    while (n < MOST && f->at + (size_t)n < f->end && f->table[f->chunk[f->at + (size_t)n]] == TTN_BYTE_DIGIT)
        n++;
    const size_t behind = f->at + (size_t)n;
    const uint8_t next = behind < f->end ? f->table[f->chunk[behind]] : TTN_BYTE_LINE;
    const int is_first = f->blanks.n > 0 ? f->blanks.column == 1 : column_of(f) == 1;
    const int is_last = next == TTN_BYTE_LINE || next == TTN_BYTE_SPACE;
    *ret_n = n < MOST ? n : 0;
    *ret_is_inside = f->blanks.n == 0 && !is_first && !is_last;
    *ret_is_number = (is_first && next == TTN_BYTE_SPACE) || (f->blanks.n > 0 && next == TTN_BYTE_LINE);
    return TTN_OK;
}

static ttn_status read_digit(ttn_fasta *f)
{
    int64_t n;
    int is_inside, is_number;
    ttn_status status = look_at_digits(f, &n, &is_inside, &is_number);
    if (status != TTN_OK) return status;
    ttn_fasta_waiting w = ttn_fasta_here(f, ttn_fasta_offset(f));
    if (f->rules.strip_digits && n > 0 && !is_inside) {
        w.n = n;
        ttn_fasta_count(f, 49, w);
        words_of(f)->has_digits = 1;
        f->at += (size_t)n;
        return TTN_OK;
    }
    char what[60];
    const uint8_t c = f->chunk[f->at];
    snprintf(what, sizeof what, "character '%c' (0x%02x) is not an amino acid", c, (unsigned)c);
    if (is_number) return ttn_fasta_blame(f, 49, w, what, "looks like GenBank's numbering: set data.strip_digits=yes");
    return blame_here(f, 49, w, what,
                      "write X if it stands for a residue that is not known, or leave the record out "
                      "(data.on_error=skip-record)");
}

ttn_status ttn_fasta_refuse_text(ttn_fasta *f)
{
    ttn_status status = ttn_fasta_look_ahead(f, TTN_FASTA_LOOK);
    if (status != TTN_OK) return status;
    const uint8_t *bytes = f->chunk + f->at;
    const size_t rest = f->end - f->at < TTN_FASTA_LOOK ? f->end - f->at : TTN_FASTA_LOOK;
    size_t n;
    ttn_fasta_line(f, &n);
    if (n > rest) n = rest;
    int small = 0, capitals = 0, others = 0, controls = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t kind = f->table[bytes[i]];
        controls += bytes[i] < 9;
        if (kind == TTN_BYTE_LOWER)
            small++;
        else if (kind < 0x80 || kind == TTN_BYTE_SUBSTITUTE || kind == TTN_BYTE_STOP)
            capitals++;
        else
            others++;
    }
    const int64_t column = ttn_fasta_offset(f) - f->line_offset + 1;
    if (controls > 0)
        return ttn_fasta_refuse(f, 58, f->line, column, "this is no text file, and of no kind that is known");
    if (others == 0 && (small == 0 || capitals == 0)) {
        if (f->has_comment)
            return ttn_fasta_refuse(
                f, 36, f->line, column,
                "residues before the first '>', and a ';' above them: this is the old format that has ';' for '>'; "
                "replace the first ';' of every record");
        size_t next = n; /* is there another line? */
        while (next < rest && f->table[bytes[next]] >= TTN_BYTE_LINE && f->table[bytes[next]] <= TTN_BYTE_SPACE)
            next++;
        if (memchr(bytes, 0, rest))
            return ttn_fasta_refuse(f, 57, f->line, column,
                                    "residues without headers, and NUL bytes: looks like a database of MMseqs2; write "
                                    "it as FASTA: mmseqs convert2fasta DB NEW.fasta");
        if (next == rest || bytes[next] == '>')
            return ttn_fasta_refuse(f, 57, f->line, column,
                                    "residues before the first header: put a line '>NAME' above them");
        return ttn_fasta_refuse(f, 57, f->line, column,
                                "residues, and no header above them; if each line is a sequence: "
                                "awk '{print \">\" NR \"\\n\" $0}' FILE > NEW.fasta; if all lines are one, put a line "
                                "'>NAME' above the first");
    }
    for (size_t i = n; i + 1 < rest; i++)
        if ((bytes[i] == '\n' || bytes[i] == '\r') && bytes[i + 1] == '>')
            return ttn_fasta_refuse(f, 37, f->line, column,
                                    "text before the first header; take it out, or put ';' before it");
    return ttn_fasta_refuse(f, 56, f->line, column, "this is no FASTA file: it begins with text, and not with '>'");
}

static ttn_status read_illegal(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    if (c == TTN_BYTE_MARK) {
        ttn_status status = ttn_fasta_look_ahead(f, TTN_FASTA_MARK);
        if (status != TTN_OK) return status;
    }
    const ttn_fasta_waiting w = ttn_fasta_here(f, ttn_fasta_offset(f));
    char what[80];
    if (c > ' ' && c < 0x7f)
        snprintf(what, sizeof what, "character '%c' (0x%02x) is not an amino acid", c, (unsigned)c);
    else
        snprintf(what, sizeof what, "byte 0x%02x is not an amino acid", (unsigned)c);
    if (c == '>' && ttn_fasta_offset(f) == f->fused) return ttn_fasta_refuse_fused(f);
    if (c == '>')
        return blame_here(f, 26, w, "'>' inside a line of residues", "a line end is missing before it; put it there");
    if (c == ';') return blame_here(f, 35, w, "';' inside a line of residues", "a comment stands on a line of its own");
    if (c == 0 && w.column == 1)
        return ttn_fasta_blame(f, 20, w, "a NUL byte in a sequence",
                               "servers write one behind each alignment: if the file is A3M, set data.format=a3m or "
                               "a3m-query; else it is damaged");
    if (c == 0)
        return ttn_fasta_blame(f, 20, w, "a NUL byte in a sequence", "the file is damaged, or no text; get it again");
    if (c == 0x1a) { /* the end of a file under DOS; whether it is the last byte shows with the next */
        f->ctrl_z = w;
        f->at++;
        return TTN_OK;
    }
    if (c < ' ' || c == 0x7f) return ttn_fasta_blame(f, 18, w, what, "it is a control character; take it out");
    if (ttn_fasta_is_mark(f))
        return ttn_fasta_refuse(f, 5, w.line, w.column,
                                "a byte order mark inside the file: files were joined; take it out");
    if (f->found.records == 0) return ttn_fasta_refuse_text(f);
    if (c >= 0x80)
        return blame_here(f, 50, w, what,
                          "residues are letters of ASCII: write the one that is meant, X if it is not known, or leave "
                          "the record out (data.on_error=skip-record)");
    if (c == ':' || c == '/' || c == '|')
        return blame_here(f, 38, w, what,
                          "if it stands between two chains, make a record of each; residues are letters A to Z");
    return blame_here(f, 38, w, what,
                      "residues are letters A to Z: write X for one that is not known, or leave the record out "
                      "(data.on_error=skip-record)");
}

static ttn_status end_line(ttn_fasta *f)
{
    ttn_status status = ttn_fasta_judge_line(f);
    if (status != TTN_OK || f->is_skipped) return status;
    if (f->blanks.n > 0) ttn_fasta_count(f, 16, f->blanks);
    ttn_fasta_end_line(f);
    return TTN_OK;
}

ttn_status ttn_fasta_read_sequence(ttn_fasta *f)
{
    const uint8_t c = f->chunk[f->at];
    const uint8_t kind = f->table[c];
    const int is_residue = kind < 0x80 || kind == TTN_BYTE_SUBSTITUTE || kind == TTN_BYTE_LOWER;
    if (is_residue && (f->blanks.n > 0 || f->blank_lines.n > 0 || f->stops.n > 0)) {
        ttn_status status = resolve_waiting(f);
        if (status != TTN_OK || f->is_ready || f->is_skipped) return status;
    }
    if (kind < 0x80) return read_run(f);
    switch (kind) {
    case TTN_BYTE_SUBSTITUTE:
        return read_substitute(f);
    case TTN_BYTE_LOWER:
        return read_lower(f);
    case TTN_BYTE_LINE:
        return end_line(f);
    case TTN_BYTE_SPACE:
        ttn_fasta_wait(f, &f->blanks);
        f->at++;
        return TTN_OK;
    case TTN_BYTE_STOP:
        ttn_fasta_wait(f, &f->stops);
        f->at++;
        return TTN_OK;
    case TTN_BYTE_GAP:
        return read_gap(f);
    case TTN_BYTE_DIGIT:
        return read_digit(f);
    default:
        return read_illegal(f);
    }
}
