/* Any bytes as FASTA or as an alignment, unpacked or not: a record has residues of the alphabet and an id in UTF-8, a refusal
 * has a place and a rule, and how the bytes come makes no difference. The first two bytes choose the rules. */
#include <stdlib.h>
#include <string.h>
#include "core/text.h"
#include "data/card.h"
#include "data/fasta.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i < n;) {
        const int length = ttn_text_character(text + i, n - i, NULL);
        check(length > 0);
        i += (size_t)length;
    }
}

typedef struct {
    ttn_status status;
    int rule;
    int64_t line, column;
    int64_t given, residues;
    uint64_t hash;
} outcome;

static outcome read_all(const char *name, const uint8_t *data, size_t bytes, size_t most, const ttn_fasta_rules *rules,
                        int with_card)
{
    ttn_source *source;
    ttn_fasta *f;
    ttn_error err = {0}, card_err = {0};
    outcome o = {.status = ttn_source_open_memory(name, data, bytes, most, NULL, &source, &err)};
    check(o.status == TTN_OK);
    check(ttn_fasta_open(source, rules, &f, &err) == TTN_OK);
    const ttn_alphabet *a = rules->alphabet;
    ttn_card *card = NULL;
    if (with_card) check(ttn_card_create(a, &card, &card_err) == TTN_OK);
    const ttn_fasta_record *r;
    int64_t before = -1;
    while ((o.status = ttn_fasta_next(f, &r, &err)) == TTN_OK) {
        check(r->n > 0 && r->n <= rules->most);
        check(r->offset >= before);
        before = r->offset;
        check_text(r->id);
        check_text(r->header);
        check(r->id[0] != 0);
        for (int64_t i = 0; i < r->n; i++)
            check(r->token[i] < a->n);
        o.hash = ttn_hash64(r->token, (size_t)r->n, o.hash);
        o.hash = ttn_hash64(r->id, strlen(r->id), o.hash);
        if (card) check(ttn_card_add(card, r, &card_err) == TTN_OK);
    }
    const ttn_fasta_counts *found = ttn_fasta_found(f);
    if (card) {
        check(ttn_card_end_file(card, name, f, o.status, &err, &card_err) == TTN_OK);
        check(found->residues == ttn_card_total(card)->residues && found->given == ttn_card_total(card)->records);
    }
    o.rule = ttn_fasta_failed_rule(f);
    if (o.status != TTN_EOF) check(o.status == TTN_EFORMAT && o.rule > 0 && o.rule < TTN_FASTA_CODES && err.text[0]);
    o.line = err.line;
    o.column = err.column;
    o.given = found->given;
    o.residues = found->residues;
    ttn_card_destroy(card);
    ttn_fasta_close(f);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const names[] = {"it", "it.a3m", "it.a2m", "it.fasta.gz"};
    if (bytes < 2) return 0;
    const int choice = data[0], more = data[1];
    data += 2;
    bytes -= 2;
    const char *name = names[more & 3];
    const ttn_fasta_rules rules = {
        .alphabet = ttn_alphabet_find(choice & 1 ? "amplify" : "esm"),
        .lowercase = more & 16    ? TTN_LOWERCASE_ERROR
                     : choice & 2 ? TTN_LOWERCASE_EXCLUDE
                                  : TTN_LOWERCASE_UPPER,
        .format = (ttn_fasta_format)(more >> 2 & 3),
        .allow_no_bgzf_eof = more >> 5 & 1,
        .id_regex = more >> 6 & 1 ? "\\|([A-Z0-9]+)\\|" : NULL,
        .stop = (ttn_fasta_stop)(choice / 4 % 3),
        .strip_gaps = choice >> 4 & 1,
        .strip_digits = choice >> 4 & 1,
        .skip_records = choice >> 5 & 1,
        .max_skipped = 0.9,
        .allow_nucleotide = choice >> 6 & 1,
        .ids = choice >> 7 & 1 ? TTN_IDS_SUFFIX : TTN_IDS_ANY,
        .most = bytes % 4 == 0 ? 20 : 1 << 16,
    };
    /* The first 512 bytes are always looked at together: behind as many blank lines the reads of the parts show. */
    const size_t n_blank = bytes % 2 ? 512 : 0;
    const size_t n = n_blank + bytes;
    uint8_t *text = malloc(n + 1);
    check(text != NULL);
    memset(text, '\n', n_blank);
    if (bytes > 0) memcpy(text + n_blank, data, bytes);
    const outcome whole = read_all(name, text, n, 0, &rules, bytes % 16 == 0);
    const outcome parts = read_all(name, text, n, 3, &rules, 0);
    free(text);
    check(whole.status == parts.status && whole.rule == parts.rule && whole.given == parts.given &&
          whole.residues == parts.residues && whole.hash == parts.hash);
    check(whole.line == parts.line && whole.column == parts.column);
    return 0;
}
