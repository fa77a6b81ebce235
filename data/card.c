#include <stdlib.h>
#include <string.h>
#include "core/memory.h"
#include "data/card.h"
#include "data/seen.h"

enum { N_PAIRS = TTN_MAX_TOKENS << 8 };
static const int64_t most_in_pairs = (int64_t)1 << 32; /* so that no count of pairs overflows */

struct ttn_card {
    const ttn_alphabet *alphabet;
    ttn_card_totals total; /* residues by token: of the files that have ended */
    uint32_t *pair;   /* (N_PAIRS) of this file: two residues beside each other, by their tokens' bytes in one number */
    int64_t in_pairs; /* residues in them */
    int64_t *exact;   /* (TTN_CARD_EXACT) records of each length */
    ttn_seen *ids, *sequences;
    ttn_card_file *file; /* (n_file) */
    int n_file;
};

ttn_status ttn_card_create(const ttn_alphabet *alphabet, ttn_card **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_card *c = ttn_alloc_or_say(1, sizeof *c, "a data card", err);
    if (!c) return TTN_ENOMEM;
    c->alphabet = alphabet;
    c->exact = ttn_alloc_or_say(TTN_CARD_EXACT, sizeof *c->exact, "the lengths of a data card", err);
    c->pair = c->exact ? ttn_alloc_or_say(N_PAIRS, sizeof *c->pair, "the residues of a data card", err) : NULL;
    ttn_status status = c->pair ? TTN_OK : TTN_ENOMEM;
    if (status == TTN_OK) status = ttn_seen_create("the ids of a data card", &c->ids, err);
    if (status == TTN_OK) status = ttn_seen_create("the sequences of a data card", &c->sequences, err);
    if (status == TTN_OK)
        *ret = c;
    else
        ttn_card_destroy(c);
    return status;
}

void ttn_card_destroy(ttn_card *c)
{
    if (!c) return;
    for (int i = 0; i < c->n_file; i++) {
        free(c->file[i].name);
        free(c->file[i].link);
        free(c->file[i].failure);
        for (int k = 0; k < c->file[i].n_skipped; k++)
            free(c->file[i].skipped[k]);
    }
    free(c->file);
    ttn_free(c->exact);
    ttn_free(c->pair);
    ttn_seen_destroy(c->ids);
    ttn_seen_destroy(c->sequences);
    ttn_free(c);
}

/* ---- records ---- */

static int bucket_of(int64_t n)
{
    int bucket = 0;
    while (n > 1 && bucket < TTN_CARD_BUCKETS - 1) {
        n /= 2;
        bucket++;
    }
    return bucket;
}

/* Where a record stands, in one number: files below 2^20, lines below 2^43. */
enum { LINE_BITS = 43 };

static int64_t place_of(int file, int64_t line)
{
    return (int64_t)file << LINE_BITS | (line & (((int64_t)1 << LINE_BITS) - 1));
}

static ttn_status look_for(ttn_seen *seen, ttn_card_twice *twice, ttn_hash128 hash, int file, int64_t line,
                           ttn_error *err)
{
    int64_t *first;
    int is_new;
    ttn_status status = ttn_seen_add(seen, hash, place_of(file, line), &first, &is_new, err);
    if (status != TTN_OK || is_new) return status;
    twice->n++;
    if (twice->n_place == TTN_FASTA_PLACES) return TTN_OK;
    twice->place[twice->n_place].file = file;
    twice->place[twice->n_place].line = line;
    twice->place[twice->n_place].first_file = (int)(*first >> LINE_BITS);
    twice->place[twice->n_place].first_line = *first & (((int64_t)1 << LINE_BITS) - 1);
    twice->n_place++;
    return TTN_OK;
}

static void fold_tokens(ttn_card *c)
{
    if (c->in_pairs == 0) return;
    for (int high = 0; high < TTN_MAX_TOKENS; high++)
        for (int low = 0; low < TTN_MAX_TOKENS; low++) {
            const uint32_t n = c->pair[high << 8 | low];
            c->total.token[high] += n;
            c->total.token[low] += n;
        }
    memset(c->pair, 0, N_PAIRS * sizeof *c->pair);
    c->in_pairs = 0;
}

/* Residues two by two, eight at a load: one by one took twice as long, and a count waits for the one before it where
 * residues repeat. Which of a pair is the high byte is all the same. */
static void count_pairs(ttn_card *c, const uint8_t *token, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8) {
        uint64_t eight;
        memcpy(&eight, token + i, sizeof eight);
        c->pair[(uint16_t)eight]++;
        c->pair[(uint16_t)(eight >> 16)]++;
        c->pair[(uint16_t)(eight >> 32)]++;
        c->pair[(uint16_t)(eight >> 48)]++;
    }
    c->in_pairs += n;
}

static void count_tokens(ttn_card *c, const uint8_t *token, int64_t n)
{
    while (n >= 8) {
        if (c->in_pairs >= most_in_pairs) fold_tokens(c);
        const int64_t room = most_in_pairs - c->in_pairs;
        const int64_t part = (n < room ? n : room) / 8 * 8;
        count_pairs(c, token, part);
        token += part;
        n -= part;
    }
    for (int64_t i = 0; i < n; i++)
        c->total.token[token[i]]++;
}

ttn_status ttn_card_add(ttn_card *c, const ttn_fasta_record *r, ttn_error *err)
{
    ttn_card_totals *t = &c->total;
    const ttn_hash128 id = ttn_hash128_of(r->id, strlen(r->id)), sequence = ttn_hash128_of(r->token, (size_t)r->n);
    ttn_seen_expect(c->ids, id);
    ttn_seen_expect(c->sequences, sequence);
    t->records++;
    t->residues += r->n;
    if (t->shortest == 0 || r->n < t->shortest) t->shortest = r->n;
    if (r->n > t->longest) t->longest = r->n;
    t->length[bucket_of(r->n)]++;
    if (r->n < TTN_CARD_EXACT) c->exact[r->n]++;
    count_tokens(c, r->token, r->n);
    ttn_status status = look_for(c->ids, &t->id, id, c->n_file, r->line, err);
    return status == TTN_OK ? look_for(c->sequences, &t->sequence, sequence, c->n_file, r->line, err) : status;
}

/* ---- files ---- */

static ttn_status copy_text(const char *text, char **ret, ttn_error *err)
{
    *ret = text ? strdup(text) : NULL;
    if (text && !*ret) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a data card");
    return TTN_OK;
}

static ttn_status copy_found(ttn_card_file *file, const ttn_fasta *f, ttn_error *err)
{
    file->found = *ttn_fasta_found(f);
    file->source = *ttn_fasta_source(f);
    file->source.link = NULL;
    file->rule = ttn_fasta_failed_rule(f);
    ttn_status status = copy_text(ttn_fasta_source(f)->link, &file->link, err);
    for (int i = 0; status == TTN_OK && ttn_fasta_skipped(f, i); i++) {
        status = copy_text(ttn_fasta_skipped(f, i), &file->skipped[i], err);
        file->n_skipped += status == TTN_OK;
    }
    return status;
}

ttn_status ttn_card_end_file(ttn_card *c, const char *name, const ttn_fasta *f, ttn_status status,
                             const ttn_error *failure, ttn_error *err)
{
    ttn_card_file *longer = realloc(c->file, (size_t)(c->n_file + 1) * sizeof *longer);
    if (!longer) return TTN_FAIL(err, TTN_ENOMEM, "out of memory for a data card");
    c->file = longer;
    ttn_card_file *file = &c->file[c->n_file];
    *file = (ttn_card_file){.status = status};
    c->n_file++;
    fold_tokens(c);
    ttn_status copied = copy_text(f ? ttn_fasta_name(f) : name, &file->name, err);
    if (copied == TTN_OK && status != TTN_EOF && failure) copied = copy_text(failure->text, &file->failure, err);
    return copied == TTN_OK && f ? copy_found(file, f, err) : copied;
}

/* ---- answers ---- */

const ttn_alphabet *ttn_card_alphabet(const ttn_card *c)
{
    return c->alphabet;
}

const ttn_card_totals *ttn_card_total(const ttn_card *c)
{
    return &c->total;
}

int ttn_card_n_files(const ttn_card *c)
{
    return c->n_file;
}

const ttn_card_file *ttn_card_files(const ttn_card *c)
{
    return c->file;
}

int64_t ttn_card_quantile(const ttn_card *c, double part)
{
    if (c->total.records == 0) return 0;
    const double wanted = part * (double)c->total.records;
    int64_t below = 0;
    for (int64_t n = 1; n < TTN_CARD_EXACT; n++) {
        below += c->exact[n];
        if (below > 0 && (double)below >= wanted) return n;
    }
    for (int bucket = bucket_of(TTN_CARD_EXACT); bucket < TTN_CARD_BUCKETS; bucket++) {
        below += c->total.length[bucket];
        const int64_t most = ((int64_t)1 << (bucket + 1)) - 1;
        if ((double)below >= wanted) return most < c->total.longest ? most : c->total.longest;
    }
    return c->total.longest;
}

int64_t ttn_card_errors(const ttn_card *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->n_file; i++)
        n += (c->file[i].status != TTN_EOF) + c->file[i].found.skipped;
    return n;
}
