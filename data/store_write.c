#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "core/hdf5_write.h"
#include "core/memory.h"
#include "data/store_write.h"

/* A list that grows, and is written at the end: one entry a file. */
typedef struct source_entry {
    ttn_store_source source;
    struct source_entry *before;
} source_entry;

typedef struct finding_entry {
    ttn_store_finding finding;
    struct finding_entry *before;
} finding_entry;

struct ttn_store_writer {
    ttn_hdf5 *file;
    ttn_store_kind kind;
    char letter[TTN_MAX_TOKENS];
    ttn_hdf5_column *tokens, *excluded, *offset, *id, *id_offset, *header, *header_offset, *hash, *cluster;
    ttn_store_clustering clustering;
    int64_t n, n_token, n_id, n_header; /* sequences, and bytes of the lists that offsets count */
    int64_t n_before;                   /* sequences of files that have ended */
    int64_t n_source;
    source_entry *source; /* the last one */
    int64_t n_finding, duplicates;
    finding_entry *finding; /* the last one */
    ttn_arena *texts;
    char *letters; /* (room) of one sequence */
    int64_t room;
};

/* ---- create ---- */

static ttn_hdf5_column *column(ttn_store_writer *w, const char *name, ttn_dtype type)
{
    return ttn_hdf5_column_create(w->file, name, type, w->kind.compressed);
}

ttn_status ttn_store_create(const char *path, const ttn_store_kind *kind, ttn_store_writer **ret, ttn_error *err)
{
    *ret = NULL;
    ttn_store_writer *w = ttn_alloc_or_say(1, sizeof *w, "a store to be written", err);
    if (!w) return TTN_ENOMEM;
    w->kind = *kind;
    ttn_alphabet_letters(kind->alphabet, w->letter);
    ttn_status status = ttn_arena_create(0, &w->texts, err);
    if (status == TTN_OK) status = ttn_hdf5_create(path, &w->file, err);
    if (status == TTN_OK) {
        const int64_t zero = 0;
        ttn_hdf5_note_text(w->file, "/", "format", TTN_STORE_FORMAT); /* the first: see ttn_info_store */
        ttn_hdf5_note_integer(w->file, "/", "format_version", TTN_STORE_VERSION);
        w->tokens = column(w, "tokens", TTN_U8);
        if (kind->has_excluded) w->excluded = column(w, "excluded", TTN_U8);
        w->offset = column(w, "offset", TTN_I64);
        w->id = column(w, "id", TTN_U8);
        w->id_offset = column(w, "id_offset", TTN_I64);
        w->header = column(w, "header", TTN_U8);
        w->header_offset = column(w, "header_offset", TTN_I64);
        w->hash = column(w, "hash", TTN_I64);
        ttn_hdf5_column_add(w->offset, 1, &zero);
        ttn_hdf5_column_add(w->id_offset, 1, &zero);
        ttn_hdf5_column_add(w->header_offset, 1, &zero);
        status = ttn_hdf5_status(w->file, err);
    }
    if (status == TTN_OK)
        *ret = w;
    else
        ttn_store_destroy(w);
    return status;
}

void ttn_store_destroy(ttn_store_writer *w)
{
    if (!w) return;
    ttn_hdf5_destroy(w->file);
    ttn_arena_destroy(w->texts);
    ttn_free(w->letters);
    ttn_free(w);
}

/* ---- records ---- */

int64_t ttn_store_hash_of(const char *letter, const uint8_t *token, int64_t n, char *room)
{
    for (int64_t i = 0; i < n; i++)
        room[i] = letter[token[i]];
    return (int64_t)ttn_hash64(room, (size_t)n, 0);
}

static ttn_status hash_of(ttn_store_writer *w, const uint8_t *token, int64_t n, int64_t *ret, ttn_error *err)
{
    if (n > w->room) {
        const int64_t room = n + n / 2;
        ttn_free(w->letters);
        w->room = 0;
        w->letters = ttn_alloc_or_say(room, 1, "the letters of a sequence", err);
        if (!w->letters) return TTN_ENOMEM;
        w->room = room;
    }
    *ret = ttn_store_hash_of(w->letter, token, n, w->letters);
    return TTN_OK;
}

/* A piece of a list of bytes, and where it ends. */
static void add_text(ttn_hdf5_column *bytes, ttn_hdf5_column *offset, int64_t *n_byte, const char *text)
{
    const size_t n = strlen(text);
    ttn_hdf5_column_add(bytes, (int64_t)n, text);
    *n_byte += (int64_t)n;
    ttn_hdf5_column_add(offset, 1, n_byte);
}

ttn_status ttn_store_add(ttn_store_writer *w, const ttn_fasta_record *r, const char *id, ttn_error *err)
{
    int64_t hash;
    assert(r->n > 0 && (!w->kind.has_excluded || r->lower) && !w->cluster);
    ttn_status status = hash_of(w, r->token, r->n, &hash, err);
    if (status != TTN_OK) return status;
    ttn_hdf5_column_add(w->tokens, r->n, r->token);
    if (w->kind.has_excluded) ttn_hdf5_column_add(w->excluded, r->n, r->lower);
    w->n_token += r->n;
    ttn_hdf5_column_add(w->offset, 1, &w->n_token);
    add_text(w->id, w->id_offset, &w->n_id, id ? id : r->id);
    add_text(w->header, w->header_offset, &w->n_header, r->header);
    ttn_hdf5_column_add(w->hash, 1, &hash);
    w->n++;
    return ttn_hdf5_status(w->file, err);
}

ttn_status ttn_store_end_source(ttn_store_writer *w, const ttn_store_source *source, ttn_error *err)
{
    source_entry *e = ttn_arena_alloc(w->texts, sizeof *e);
    if (e) {
        e->source = *source;
        e->source.name = ttn_arena_text(w->texts, "%s", source->name);
        e->source.link = ttn_arena_text(w->texts, "%s", source->link);
        e->source.hash = ttn_arena_text(w->texts, "%s", source->hash);
    }
    if (!e || !e->source.name || !e->source.link || !e->source.hash)
        return TTN_FAIL(err, TTN_ENOMEM, "no memory for the name %.300s", source->name);
    e->source.first = w->n_before;
    e->source.n = w->n - w->n_before;
    e->before = w->source;
    w->source = e;
    w->n_source++;
    w->n_before = w->n;
    return TTN_OK;
}

ttn_status ttn_store_add_finding(ttn_store_writer *w, const ttn_store_finding *finding, ttn_error *err)
{
    assert(w->n_source > 0 && finding->n > 0);
    finding_entry *e = ttn_arena_alloc(w->texts, sizeof *e);
    if (!e) return TTN_FAIL(err, TTN_ENOMEM, "no memory for what was found in a file");
    e->finding = *finding;
    e->finding.source = w->n_source - 1;
    e->before = w->finding;
    w->finding = e;
    w->n_finding++;
    return TTN_OK;
}

void ttn_store_set_duplicates(ttn_store_writer *w, int64_t n)
{
    w->duplicates = n;
}

/* ---- read again ---- */

int64_t ttn_store_added(const ttn_store_writer *w)
{
    return w->n;
}

ttn_status ttn_store_added_offsets(ttn_store_writer *w, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    ttn_hdf5_column_read(w->offset, first, n, into);
    return ttn_hdf5_status(w->file, err);
}

ttn_status ttn_store_added_tokens(ttn_store_writer *w, int64_t first, int64_t n, uint8_t *into, ttn_error *err)
{
    ttn_hdf5_column_read(w->tokens, first, n, into);
    return ttn_hdf5_status(w->file, err);
}

ttn_status ttn_store_added_hashes(ttn_store_writer *w, int64_t first, int64_t n, int64_t *into, ttn_error *err)
{
    ttn_hdf5_column_read(w->hash, first, n, into);
    return ttn_hdf5_status(w->file, err);
}

/* ---- the end ---- */

ttn_status ttn_store_set_clusters(ttn_store_writer *w, const ttn_store_clustering *how, const int64_t *key,
                                  ttn_error *err)
{
    assert(!w->cluster);
    w->clustering = *how;
    w->cluster = column(w, "cluster", TTN_I64);
    ttn_hdf5_column_add(w->cluster, w->n, key);
    return ttn_hdf5_status(w->file, err);
}

/* A number of every file, in their order. */
static void write_numbers(ttn_store_writer *w, const char *name, size_t member, int64_t *room)
{
    int64_t i = w->n_source;
    for (const source_entry *e = w->source; e; e = e->before) {
        i--;
        memcpy(&room[i], (const char *)&e->source + member, sizeof room[i]);
    }
    ttn_hdf5_column_add(ttn_hdf5_column_create(w->file, name, TTN_I64, 0), w->n_source, room);
}

static void write_texts(ttn_store_writer *w, const char *name, size_t member, const char **room)
{
    int64_t i = w->n_source;
    for (const source_entry *e = w->source; e; e = e->before) {
        i--;
        memcpy(&room[i], (const char *)&e->source + member, sizeof room[i]);
    }
    ttn_hdf5_texts(w->file, name, room, w->n_source);
}

static ttn_status write_sources(ttn_store_writer *w, ttn_error *err)
{
    int64_t *number = ttn_arena_array(w->texts, w->n_source + 1, sizeof *number);
    const char **text = ttn_arena_array(w->texts, w->n_source + 1, sizeof *text);
    if (!number || !text) return TTN_FAIL(err, TTN_ENOMEM, "no memory for the names of files");
    write_texts(w, "source", offsetof(ttn_store_source, name), text);
    write_texts(w, "source_link", offsetof(ttn_store_source, link), text);
    write_texts(w, "source_xxh128", offsetof(ttn_store_source, hash), text);
    write_numbers(w, "source_bytes", offsetof(ttn_store_source, bytes), number);
    write_numbers(w, "source_unpacked", offsetof(ttn_store_source, unpacked), number);
    write_numbers(w, "source_records", offsetof(ttn_store_source, records), number);
    write_numbers(w, "source_skipped", offsetof(ttn_store_source, skipped), number);
    write_numbers(w, "source_dropped", offsetof(ttn_store_source, dropped), number);
    int64_t i = w->n_source;
    number[i] = w->n;
    for (const source_entry *e = w->source; e; e = e->before) {
        i--;
        number[i] = e->source.first;
    }
    ttn_hdf5_column_add(ttn_hdf5_column_create(w->file, "source_first", TTN_I64, 0), w->n_source + 1, number);
    return TTN_OK;
}

/* A number of every finding, in their order. */
static void write_finding_numbers(ttn_store_writer *w, const char *name, size_t member, int64_t *room)
{
    int64_t i = w->n_finding;
    for (const finding_entry *e = w->finding; e; e = e->before) {
        i--;
        memcpy(&room[i], (const char *)&e->finding + member, sizeof room[i]);
    }
    ttn_hdf5_column_add(ttn_hdf5_column_create(w->file, name, TTN_I64, 0), w->n_finding, room);
}

static ttn_status write_findings(ttn_store_writer *w, ttn_error *err)
{
    ttn_hdf5_note_integer(w->file, "/", "duplicate_sequences", w->duplicates);
    ttn_hdf5_note_integer(w->file, "/", "found", w->n_finding);
    if (w->n_finding == 0) return TTN_OK;
    int64_t *number = ttn_arena_array(w->texts, w->n_finding, sizeof *number);
    if (!number) return TTN_FAIL(err, TTN_ENOMEM, "no memory for what was found in files");
    write_finding_numbers(w, "found_source", offsetof(ttn_store_finding, source), number);
    write_finding_numbers(w, "found_rule", offsetof(ttn_store_finding, rule), number);
    write_finding_numbers(w, "found_is_fault", offsetof(ttn_store_finding, is_fault), number);
    write_finding_numbers(w, "found_n", offsetof(ttn_store_finding, n), number);
    write_finding_numbers(w, "found_line", offsetof(ttn_store_finding, line), number);
    write_finding_numbers(w, "found_column", offsetof(ttn_store_finding, column), number);
    return TTN_OK;
}

static void note_checksum(ttn_store_writer *w, const char *key, const ttn_hdf5_column *c)
{
    char text[TTN_HASH_TEXT];
    if (c) ttn_hdf5_note_text(w->file, "/", key, ttn_hash_print(ttn_hdf5_column_hash(c), text));
}

static void write_notes(ttn_store_writer *w)
{
    ttn_hdf5 *h = w->file;
    ttn_hdf5_note_text(h, "/", "titin_version", w->kind.titin_version);
    if (w->kind.packed_for && w->kind.packed_for[0]) ttn_hdf5_note_text(h, "/", "packed_for", w->kind.packed_for);
    ttn_hdf5_note_text(h, "/", "alphabet_name", w->kind.alphabet->name);
    ttn_hdf5_note_integer(h, "/", "sequences", w->n);
    ttn_hdf5_note_integer(h, "/", "residues", w->n_token);
    note_checksum(w, "tokens_xxh128", w->tokens);
    note_checksum(w, "excluded_xxh128", w->excluded);
    note_checksum(w, "offset_xxh128", w->offset);
    note_checksum(w, "id_xxh128", w->id);
    note_checksum(w, "id_offset_xxh128", w->id_offset);
    note_checksum(w, "header_xxh128", w->header);
    note_checksum(w, "header_offset_xxh128", w->header_offset);
    note_checksum(w, "hash_xxh128", w->hash);
    note_checksum(w, "cluster_xxh128", w->cluster);
    if (!w->cluster) return;
    ttn_hdf5_note_integer(h, "/", "cluster_k", w->clustering.k);
    ttn_hdf5_note_integer(h, "/", "cluster_kmers", w->clustering.kmers);
    ttn_hdf5_note_integer(h, "/", "cluster_seed", w->clustering.seed);
    ttn_hdf5_note_integer(h, "/", "clusters", w->clustering.n);
}

ttn_status ttn_store_commit(ttn_store_writer *w, ttn_error *err)
{
    if (w->n == 0) return TTN_FAIL(err, TTN_EFORMAT, "there is no sequence to be stored: all records were left out");
    assert(w->n_before == w->n);
    ttn_hdf5_texts(w->file, "alphabet", w->kind.alphabet->token, w->kind.alphabet->n);
    ttn_status status = write_sources(w, err);
    if (status == TTN_OK) status = write_findings(w, err);
    if (status != TTN_OK) return status;
    write_notes(w);
    return ttn_hdf5_commit(w->file, err);
}
