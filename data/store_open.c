/* Opening a store: what it says of itself is read and compared with what is there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/machine.h"
#include "core/memory.h"
#include "data/store_impl.h"

enum { MOST_SOURCES = 1 << 24, SHARE_OF_MEMORY = 4 };

ttn_status ttn_store_damaged(const ttn_store *s, const char *what, ttn_error *err)
{
    return TTN_FAIL(err, TTN_EFORMAT, "%s: is no whole store: %s", s->name, what);
}

ttn_status ttn_store_fail(const ttn_store *s, ttn_status status, const ttn_error *why, ttn_error *err)
{
    const size_t n = strlen(s->name);
    const int is_named = strncmp(why->text, s->name, n) == 0 && why->text[n] == ':';
    const char *advice = status != TTN_EFORMAT || !s->is_known ? ""
                         : s->facts.packed_for[0]              ? TTN_STORE_COPY_ADVICE
                                                               : "; pack it again";
    return TTN_FAIL(err, status, "%s%s%s%s", is_named ? "" : s->name, is_named ? "" : ": ", why->text, advice);
}

/* ---- options ---- */

const ttn_option ttn_store_options[] = {
    {.name = "data.cache",
     .type = TTN_OPTION_SIZE,
     .fallback = "0",
     .least = 0,
     .most = 0x1p50,
     .help = "tokens of a store that are kept in memory at most; 0: a quarter of the memory",
     .since = "0.1"},
};
const int ttn_store_n_options = sizeof ttn_store_options / sizeof *ttn_store_options;

ttn_status ttn_store_cache_of(const ttn_option_reader *o, int64_t *ret, ttn_error *err)
{
    return o->get_integer(o->self, ttn_store_options[0].name, 0, ret, err);
}

/* ---- open ---- */

static ttn_status check_format(ttn_store *s, ttn_error *err)
{
    const char *format;
    int64_t version;
    ttn_status status = ttn_hdf5_get_text(s->file, "format", &format, err);
    if (status != TTN_OK) return status;
    if (strcmp(format, TTN_STORE_FORMAT) != 0)
        return TTN_FAIL(err, TTN_EFORMAT, "%s: is no store of sequences, but '%.100s'", s->name, format);
    status = ttn_hdf5_get_integer(s->file, "format_version", &version, err);
    if (status != TTN_OK || version == TTN_STORE_VERSION) return status;
    return TTN_FAIL(err, TTN_EFORMAT,
                    "%s: is a store of version %" PRId64 ", and this titin reads version %d; %s (titin data pack)",
                    s->name, version, TTN_STORE_VERSION,
                    version > TTN_STORE_VERSION ? "use a newer titin, or pack it again" : "pack it again");
}

static ttn_status get_alphabet(ttn_store *s, ttn_error *err)
{
    const char *name;
    const char *const *token;
    int64_t n;
    ttn_status status = ttn_hdf5_get_text(s->file, "alphabet_name", &name, err);
    if (status == TTN_OK) status = ttn_hdf5_get_texts(s->file, "alphabet", TTN_MAX_TOKENS, &token, &n, err);
    if (status != TTN_OK) return status;
    s->facts.alphabet = &s->own_alphabet;
    status = ttn_alphabet_make(name, token, (int)n, &s->own_alphabet, err);
    const ttn_alphabet *known = ttn_alphabet_find(name);
    if (status != TTN_OK || !known) return status;
    if (!ttn_alphabet_same(known, &s->own_alphabet))
        return ttn_store_damaged(s, "its alphabet is not what titin knows under that name", err);
    s->facts.alphabet = known;
    return status;
}

/* A list of numbers that has n entries. */
static ttn_status open_list(ttn_store *s, const char *name, ttn_dtype type, int64_t n, ttn_hdf5_array **ret,
                            ttn_error *err)
{
    ttn_status status = ttn_hdf5_array_open(s->file, name, type, ret, err);
    if (status != TTN_OK || n < 0 || ttn_hdf5_array_count(*ret) == n) return status;
    return TTN_FAIL(err, TTN_EFORMAT, "%s: is no whole store: '%s' has %" PRId64 " entries, and should have %" PRId64,
                    s->name, name, ttn_hdf5_array_count(*ret), n);
}

enum { ANY_NUMBER = -1 };

static ttn_status open_lists(ttn_store *s, ttn_error *err)
{
    const int64_t n = s->facts.sequences;
    s->id.name = "the ids of a store";
    s->header.name = "the headers of a store";
    ttn_status status = open_list(s, "tokens", TTN_U8, s->facts.residues, &s->tokens, err);
    if (status == TTN_OK && ttn_hdf5_has_array(s->file, "excluded"))
        status = open_list(s, "excluded", TTN_U8, s->facts.residues, &s->excluded, err);
    if (status == TTN_OK) status = open_list(s, "id", TTN_U8, ANY_NUMBER, &s->id.bytes, err);
    if (status == TTN_OK) status = open_list(s, "id_offset", TTN_I64, n + 1, &s->id.offset, err);
    if (status == TTN_OK) status = open_list(s, "header", TTN_U8, ANY_NUMBER, &s->header.bytes, err);
    if (status == TTN_OK) status = open_list(s, "header_offset", TTN_I64, n + 1, &s->header.offset, err);
    if (status == TTN_OK) status = open_list(s, "hash", TTN_I64, n, &s->hash, err);
    if (status == TTN_OK && ttn_hdf5_has_array(s->file, "cluster"))
        status = open_list(s, "cluster", TTN_I64, n, &s->cluster, err);
    s->facts.has_excluded = s->excluded != NULL;
    s->facts.has_clusters = s->cluster != NULL;
    return status;
}

static ttn_status get_offsets(ttn_store *s, ttn_error *err)
{
    const int64_t n = s->facts.sequences;
    ttn_hdf5_array *list = NULL;
    ttn_status status = open_list(s, "offset", TTN_I64, n + 1, &list, err);
    if (status == TTN_OK) {
        s->offset = ttn_alloc_or_say(n + 1, sizeof *s->offset, "the offsets of a store", err);
        if (!s->offset) status = TTN_ENOMEM;
    }
    if (status == TTN_OK) status = ttn_hdf5_array_read(list, 0, n + 1, s->offset, err);
    ttn_hdf5_array_close(list);
    if (status != TTN_OK) return status;
    if (s->offset[0] != 0 || s->offset[n] != s->facts.residues)
        return ttn_store_damaged(s, "the offsets do not reach from the first token to the last", err);
    int64_t shortest = INT64_MAX, longest = 0;
    for (int64_t i = 0; i < n; i++) {
        /* Each is at least the one before it, and so none is negative: no difference can overflow. */
        if (s->offset[i + 1] <= s->offset[i]) return ttn_store_damaged(s, "the offsets do not ascend", err);
        const int64_t residues = s->offset[i + 1] - s->offset[i];
        shortest = residues < shortest ? residues : shortest;
        longest = residues > longest ? residues : longest;
    }
    s->facts.shortest = shortest;
    s->facts.longest = longest;
    return TTN_OK;
}

/* A number of every source, to a member of them. */
static ttn_status get_numbers(ttn_store *s, const char *name, size_t member, int64_t *room, ttn_error *err)
{
    ttn_hdf5_array *list = NULL;
    ttn_status status = open_list(s, name, TTN_I64, s->facts.n_source, &list, err);
    if (status == TTN_OK) status = ttn_hdf5_array_read(list, 0, s->facts.n_source, room, err);
    for (int64_t i = 0; status == TTN_OK && i < s->facts.n_source; i++) {
        if (room[i] < 0) status = ttn_store_damaged(s, "a count of its files is negative", err);
        memcpy((char *)&s->source[i] + member, &room[i], sizeof room[i]);
    }
    ttn_hdf5_array_close(list);
    return status;
}

static ttn_status get_source_borders(ttn_store *s, int64_t *room, ttn_error *err)
{
    const int64_t n = s->facts.n_source;
    ttn_hdf5_array *list = NULL;
    ttn_status status = open_list(s, "source_first", TTN_I64, n + 1, &list, err);
    if (status == TTN_OK) status = ttn_hdf5_array_read(list, 0, n + 1, room, err);
    ttn_hdf5_array_close(list);
    if (status != TTN_OK) return status;
    if (room[0] != 0 || room[n] != s->facts.sequences)
        return ttn_store_damaged(s, "its files do not cover its sequences", err);
    for (int64_t i = 0; i < n; i++) {
        if (room[i + 1] < room[i]) return ttn_store_damaged(s, "its files are not in order", err);
        s->source[i].first = room[i];
        s->source[i].n = room[i + 1] - room[i];
    }
    return TTN_OK;
}

static ttn_status get_sources(ttn_store *s, ttn_error *err)
{
    const char *const *name, *const *link, *const *hash;
    int64_t n, n_link, n_hash;
    ttn_status status = ttn_hdf5_get_texts(s->file, "source", MOST_SOURCES, &name, &n, err);
    if (status == TTN_OK) status = ttn_hdf5_get_texts(s->file, "source_link", n, &link, &n_link, err);
    if (status == TTN_OK) status = ttn_hdf5_get_texts(s->file, "source_xxh128", n, &hash, &n_hash, err);
    if (status != TTN_OK) return status;
    if (n < 1 || n_link != n || n_hash != n) return ttn_store_damaged(s, "it does not name its files", err);
    s->facts.n_source = n;
    s->source = ttn_alloc_or_say(n, sizeof *s->source, "the files of a store", err);
    int64_t *room = ttn_alloc_or_say(n + 1, sizeof *room, "the files of a store", err);
    s->facts.source = s->source;
    status = s->source && room ? TTN_OK : TTN_ENOMEM;
    for (int64_t i = 0; status == TTN_OK && i < n; i++)
        s->source[i] = (ttn_store_source){.name = name[i], .link = link[i], .hash = hash[i]};
    static const struct {
        const char *name;
        size_t member;
    } numbers[] = {
        {"source_bytes", offsetof(ttn_store_source, bytes)},
        {"source_unpacked", offsetof(ttn_store_source, unpacked)},
        {"source_records", offsetof(ttn_store_source, records)},
        {"source_skipped", offsetof(ttn_store_source, skipped)},
        {"source_dropped", offsetof(ttn_store_source, dropped)},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == TTN_OK; i++)
        status = get_numbers(s, numbers[i].name, numbers[i].member, room, err);
    if (status == TTN_OK) status = get_source_borders(s, room, err);
    ttn_free(room);
    return status;
}

/* A number of every finding, to a member of them. */
static ttn_status get_finding_numbers(ttn_store *s, const char *name, size_t member, int64_t *room, ttn_error *err)
{
    ttn_hdf5_array *list = NULL;
    ttn_status status = open_list(s, name, TTN_I64, s->facts.n_finding, &list, err);
    if (status == TTN_OK) status = ttn_hdf5_array_read(list, 0, s->facts.n_finding, room, err);
    for (int64_t i = 0; status == TTN_OK && i < s->facts.n_finding; i++)
        memcpy((char *)&s->finding[i] + member, &room[i], sizeof room[i]);
    ttn_hdf5_array_close(list);
    return status;
}

static int is_finding(const ttn_store *s, const ttn_store_finding *f)
{
    return f->source >= 0 && f->source < s->facts.n_source && f->rule > 0 && f->rule <= TTN_STORE_MOST_RULE &&
           (f->is_fault == 0 || f->is_fault == 1) && f->n > 0 && f->line >= 0 && f->column >= 0;
}

static ttn_status get_findings(ttn_store *s, ttn_error *err)
{
    static const struct {
        const char *name;
        size_t member;
    } numbers[] = {
        {"found_source", offsetof(ttn_store_finding, source)},
        {"found_rule", offsetof(ttn_store_finding, rule)},
        {"found_is_fault", offsetof(ttn_store_finding, is_fault)},
        {"found_n", offsetof(ttn_store_finding, n)},
        {"found_line", offsetof(ttn_store_finding, line)},
        {"found_column", offsetof(ttn_store_finding, column)},
    };
    ttn_store_facts *f = &s->facts;
    f->has_findings = ttn_hdf5_has_note(s->file, "found");
    if (!f->has_findings) return TTN_OK;
    ttn_status status = ttn_hdf5_get_integer(s->file, "found", &f->n_finding, err);
    if (status == TTN_OK) status = ttn_hdf5_get_integer(s->file, "duplicate_sequences", &f->duplicates, err);
    if (status != TTN_OK) return status;
    if (f->n_finding < 0 || f->n_finding > 2 * TTN_STORE_MOST_RULE * f->n_source)
        return ttn_store_damaged(s, "it counts too much that was found in its files", err);
    if (f->duplicates < 0 || f->duplicates >= f->sequences)
        return ttn_store_damaged(s, "it counts more equal sequences than there are", err);
    if (f->n_finding == 0) return TTN_OK;
    /* The first list is opened before memory is taken for as many as the note says. */
    ttn_hdf5_array *list = NULL;
    status = open_list(s, numbers[0].name, TTN_I64, f->n_finding, &list, err);
    ttn_hdf5_array_close(list);
    if (status != TTN_OK) return status;
    s->finding = ttn_alloc_or_say(f->n_finding, sizeof *s->finding, "what was found in the files of a store", err);
    int64_t *room = ttn_alloc_or_say(f->n_finding, sizeof *room, "what was found in the files of a store", err);
    status = s->finding && room ? TTN_OK : TTN_ENOMEM;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == TTN_OK; i++)
        status = get_finding_numbers(s, numbers[i].name, numbers[i].member, room, err);
    ttn_free(room);
    for (int64_t i = 0; status == TTN_OK && i < f->n_finding; i++)
        if (!is_finding(s, &s->finding[i])) status = ttn_store_damaged(s, "what was found in its files cannot be", err);
    f->finding = s->finding;
    return status;
}

/* The note NAME_xxh128. */
static ttn_status get_checksum(ttn_store *s, const char *name, ttn_hash128 *ret, ttn_error *err)
{
    char key[64];
    const char *text;
    snprintf(key, sizeof key, "%s_xxh128", name);
    ttn_status status = ttn_hdf5_get_text(s->file, key, &text, err);
    if (status != TTN_OK) return status;
    return ttn_hash_parse(text, ret) ? TTN_OK : ttn_store_damaged(s, "a checksum is none", err);
}

static ttn_status get_identity(ttn_store *s, ttn_error *err)
{
    ttn_hash128 part[2];
    ttn_status status = get_checksum(s, "tokens", &part[0], err);
    if (status == TTN_OK) status = get_checksum(s, "offset", &part[1], err);
    if (status == TTN_OK) s->facts.identity = ttn_hash128_of(part, sizeof part);
    return status;
}

static ttn_status get_clustering(ttn_store *s, ttn_error *err)
{
    if (!s->cluster) return TTN_OK;
    ttn_status status = ttn_hdf5_get_integer(s->file, "clusters", &s->facts.clusters, err);
    if (status == TTN_OK) status = ttn_hdf5_get_integer(s->file, "cluster_k", &s->facts.cluster_k, err);
    if (status == TTN_OK) status = ttn_hdf5_get_integer(s->file, "cluster_kmers", &s->facts.cluster_kmers, err);
    if (status == TTN_OK) status = ttn_hdf5_get_integer(s->file, "cluster_seed", &s->facts.cluster_seed, err);
    if (status == TTN_OK && (s->facts.clusters < 0 || s->facts.clusters > s->facts.sequences))
        status = ttn_store_damaged(s, "its number of clusters is negative, or above that of its sequences", err);
    return status;
}

static ttn_status read_notes(ttn_store *s, ttn_error *err)
{
    s->facts.packed_for = "";
    ttn_status status = check_format(s, err);
    s->is_known = status == TTN_OK;
    if (status == TTN_OK && ttn_hdf5_has_note(s->file, "packed_for"))
        status = ttn_hdf5_get_text(s->file, "packed_for", &s->facts.packed_for, err);
    if (status == TTN_OK) status = ttn_hdf5_get_text(s->file, "titin_version", &s->facts.titin_version, err);
    if (status == TTN_OK) status = ttn_hdf5_get_integer(s->file, "sequences", &s->facts.sequences, err);
    if (status == TTN_OK) status = ttn_hdf5_get_integer(s->file, "residues", &s->facts.residues, err);
    if (status == TTN_OK && (s->facts.sequences < 1 || s->facts.residues < s->facts.sequences))
        status = ttn_store_damaged(s, "it counts less than one sequence, or less than one residue in each", err);
    /* Not more than the file has bytes for, as its lists show; but what is added to it before that must not overflow. */
    if (status == TTN_OK && s->facts.residues == INT64_MAX)
        status = ttn_store_damaged(s, "it counts more residues than there can be", err);
    return status;
}

static int64_t usual_cache(void)
{
    ttn_machine machine;
    ttn_machine_look("", &machine);
    return machine.ram.usable / SHARE_OF_MEMORY;
}

static ttn_status open_store(ttn_store *s, const char *path, ttn_error *err)
{
    s->has_lock = pthread_mutex_init(&s->lock, NULL) == 0;
    ttn_status status = s->has_lock ? TTN_OK : TTN_FAIL(err, TTN_ENOMEM, "no memory for a lock");
    if (status == TTN_OK) status = ttn_hdf5_open(path, "a store of sequences", &s->file, err);
    if (status == TTN_OK) status = read_notes(s, err);
    if (status == TTN_OK) status = get_alphabet(s, err);
    if (status == TTN_OK) status = open_lists(s, err);
    if (status == TTN_OK) status = get_offsets(s, err);
    if (status == TTN_OK) status = get_sources(s, err);
    if (status == TTN_OK) status = get_findings(s, err);
    if (status == TTN_OK) status = get_clustering(s, err);
    if (status == TTN_OK) status = get_identity(s, err);
    if (status != TTN_OK) return status;
    const int fits = s->facts.residues <= s->cache / ttn_store_bytes_a_token(s);
    return fits ? ttn_store_keep_all(s, err) : ttn_store_plan_blocks(s, err);
}

ttn_status ttn_store_open(const char *path, int64_t cache, ttn_store **ret, ttn_error *err)
{
    char shown[TTN_TAIL_ROOM];
    ttn_error why = {0};
    *ret = NULL;
    ttn_text_tail(path, shown);
    ttn_store *s = ttn_alloc(sizeof *s);
    if (!s) return TTN_FAIL(err, TTN_ENOMEM, "%s: no memory to read it; end other programs", shown);
    memcpy(s->name, shown, sizeof s->name);
    s->cache = cache > 0 ? cache : usual_cache();
    ttn_status status = open_store(s, path, &why);
    if (status == TTN_OK) {
        *ret = s;
        return TTN_OK;
    }
    status = ttn_store_fail(s, status, &why, err);
    ttn_store_close(s);
    return status;
}

static void close_texts(ttn_store_texts *l)
{
    ttn_hdf5_array_close(l->bytes);
    ttn_hdf5_array_close(l->offset);
    ttn_free(l->text);
}

void ttn_store_close(ttn_store *s)
{
    if (!s) return;
    close_texts(&s->id);
    close_texts(&s->header);
    ttn_hdf5_array_close(s->tokens);
    ttn_hdf5_array_close(s->excluded);
    ttn_hdf5_array_close(s->hash);
    ttn_hdf5_array_close(s->cluster);
    ttn_hdf5_close(s->file);
    for (int64_t b = 0; s->block && b < s->n_block; b++)
        ttn_free(s->block[b].token);
    ttn_free(s->block);
    ttn_free(s->block_first);
    ttn_free(s->all);
    ttn_free(s->offset);
    ttn_free(s->source);
    ttn_free(s->finding);
    if (s->has_lock) pthread_mutex_destroy(&s->lock);
    ttn_free(s);
}

/* ---- verify ---- */

static ttn_status verify_list(ttn_store *s, const char *name, ttn_dtype type, ttn_hash *hash, uint8_t *piece,
                              ttn_error *err)
{
    ttn_hdf5_array *list = NULL;
    ttn_hash128 expected;
    ttn_status status = get_checksum(s, name, &expected, err);
    if (status == TTN_OK) status = ttn_hdf5_array_open(s->file, name, type, &list, err);
    const int64_t n = status == TTN_OK ? ttn_hdf5_array_count(list) : 0;
    const int64_t size = (int64_t)ttn_dtype_size(type), part = TTN_STORE_PIECE / size;
    ttn_hash_reset(hash);
    for (int64_t at = 0; at < n && status == TTN_OK; at += part) {
        const int64_t now = n - at < part ? n - at : part;
        status = ttn_hdf5_array_read(list, at, now, piece, err);
        if (status == TTN_OK) ttn_hash_update(hash, piece, (size_t)(now * size));
        if (status == TTN_OK && strcmp(name, "tokens") == 0) status = ttn_store_check_tokens(s, piece, now, err);
    }
    ttn_hdf5_array_close(list);
    if (status != TTN_OK || ttn_hash_same(ttn_hash_final(hash), expected)) return status;
    return TTN_FAIL(err, TTN_EFORMAT, "%s: '%s' is not what was packed: its checksum differs", s->name, name);
}

ttn_status ttn_store_verify(ttn_store *s, ttn_error *err)
{
    static const struct {
        const char *name;
        ttn_dtype type;
    } lists[] = {
        {"tokens", TTN_U8},     {"excluded", TTN_U8}, {"offset", TTN_I64},        {"id", TTN_U8},
        {"id_offset", TTN_I64}, {"header", TTN_U8},   {"header_offset", TTN_I64}, {"hash", TTN_I64},
        {"cluster", TTN_I64},
    };
    ttn_error why = {0};
    uint8_t *piece = ttn_alloc_or_say(TTN_STORE_PIECE, 1, "a piece of a store", &why);
    ttn_hash *hash = NULL;
    ttn_status status = piece ? ttn_hash_create(&hash, &why) : TTN_ENOMEM;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < sizeof lists / sizeof *lists && status == TTN_OK; i++)
        if (ttn_hdf5_has_array(s->file, lists[i].name))
            status = verify_list(s, lists[i].name, lists[i].type, hash, piece, &why);
    if (status == TTN_OK) status = ttn_store_check_texts(s, &why);
    pthread_mutex_unlock(&s->lock);
    ttn_hash_destroy(hash);
    ttn_free(piece);
    return status == TTN_OK ? TTN_OK : ttn_store_fail(s, status, &why, err);
}
