#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "core/hash.h"
#include "train/card_facts.h"

/* Notes that a user should look at, and not only know of. */
static const int worth_a_warning[] = {2, 19, 22, 23, 24, 27, 28, 35, 51, 65, 67, 69};

static void tell_totals(const ttn_card *c, ttn_facts *f)
{
    const ttn_card_totals *t = ttn_card_total(c);
    ttn_facts_integer(f, "files", ttn_card_n_files(c));
    ttn_facts_integer(f, "records", t->records);
    ttn_facts_integer(f, "residues", t->residues);
    ttn_facts_integer(f, "errors", ttn_card_errors(c));
    ttn_facts_text(f, "alphabet", "%s", ttn_card_alphabet(c)->name);
    if (t->records == 0) return;
    ttn_facts_integer(f, "shortest", t->shortest);
    ttn_facts_integer(f, "median", ttn_card_quantile(c, 0.5));
    ttn_facts_real(f, "mean", (double)t->residues / (double)t->records);
    ttn_facts_integer(f, "longest", t->longest);
    ttn_facts_integer(f, "duplicate_ids", t->id.n);
    ttn_facts_integer(f, "duplicate_sequences", t->sequence.n);
}

static void tell_files(const ttn_card *c, ttn_facts *f)
{
    ttn_facts_open_list(f, "file");
    for (int i = 0; i < ttn_card_n_files(c); i++) {
        const ttn_card_file *file = &ttn_card_files(c)[i];
        char hash[TTN_HASH_TEXT];
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "name", "%s", file->name);
        if (file->link) ttn_facts_text(f, "link_to", "%s", file->link);
        ttn_facts_text(f, "state", "%s", file->status == TTN_EOF ? "good" : "refused");
        ttn_facts_text(f, "packed", "%s", file->source.is_bgzf ? "bgzf" : file->source.is_gzip ? "gzip" : "no");
        ttn_facts_integer(f, "members", file->source.members);
        ttn_facts_bytes(f, "bytes", file->source.bytes);
        ttn_facts_bytes(f, "unpacked", file->found.bytes);
        ttn_facts_integer(f, "records", file->found.given);
        ttn_facts_integer(f, "residues", file->found.residues);
        if (file->status == TTN_EOF)
            ttn_facts_text(f, "xxh128", "%s", ttn_hash_print(file->found.hash, hash));
        else
            ttn_facts_none(f, "xxh128");
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static void tell_lengths(const ttn_card_totals *t, ttn_facts *f)
{
    ttn_facts_open_list(f, "length");
    for (int i = 0; i < TTN_CARD_BUCKETS; i++) {
        if (t->length[i] == 0) continue;
        ttn_facts_open(f, NULL);
        ttn_facts_integer(f, "from", (int64_t)1 << i);
        ttn_facts_integer(f, "to", ((int64_t)2 << i) - 1);
        ttn_facts_integer(f, "records", t->length[i]);
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

static void tell_composition(const ttn_card *c, ttn_facts *f)
{
    const ttn_card_totals *t = ttn_card_total(c);
    const ttn_alphabet *a = ttn_card_alphabet(c);
    ttn_facts_open_list(f, "residue");
    for (int v = 0; v < a->n; v++) {
        if (t->token[v] == 0) continue;
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "letter", "%s", a->token[v]);
        ttn_facts_integer(f, "n", t->token[v]);
        ttn_facts_real(f, "percent", 100.0 * (double)t->token[v] / (double)t->residues);
        ttn_facts_flag(f, "standard", ttn_alphabet_is_residue(a, v));
        ttn_facts_close(f);
    }
    ttn_facts_close(f);
}

/* "3:5 7:1": the first places. */
static void print_places(const ttn_fasta_note *note, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < note->n_place && note->place[i].line > 0 && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%" PRId64 ":%" PRId64, i > 0 ? " " : "",
                                 note->place[i].line, note->place[i].column);
}

int ttn_card_warns_of(int code)
{
    for (size_t i = 0; i < sizeof worth_a_warning / sizeof *worth_a_warning; i++)
        if (worth_a_warning[i] == code) return 1;
    return 0;
}

void ttn_card_tell_notes(const ttn_card *c, ttn_facts *f)
{
    enum { PLACES = TTN_FASTA_PLACES * 42 };
    ttn_facts_open_list(f, "found");
    for (int i = 0; i < ttn_card_n_files(c); i++)
        for (int code = 1; code < TTN_FASTA_CODES; code++) {
            const ttn_card_file *file = &ttn_card_files(c)[i];
            const ttn_fasta_note *note = &file->found.note[code];
            char places[PLACES];
            if (note->n == 0) continue;
            print_places(note, places, sizeof places);
            ttn_facts_open(f, NULL);
            ttn_facts_text(f, "rule", "FA%03d", code);
            ttn_facts_integer(f, "n", note->n);
            ttn_facts_text(f, "what", "%s", ttn_fasta_rule(code));
            ttn_facts_text(f, "file", "%s", file->name);
            ttn_facts_text(f, "first", "%s", places);
            ttn_facts_close(f);
            if (ttn_card_warns_of(code))
                ttn_facts_warn(f, "%s: %" PRId64 " %s (FA%03d)", file->name, note->n, ttn_fasta_rule(code), code);
        }
    ttn_facts_close(f);
}

static void tell_twice(const ttn_card *c, const ttn_card_twice *twice, const char *what, ttn_facts *f)
{
    for (int i = 0; i < twice->n_place; i++) {
        ttn_facts_open(f, NULL);
        ttn_facts_text(f, "what", "%s", what);
        ttn_facts_text(f, "first", "%s:%" PRId64, ttn_card_files(c)[twice->place[i].first_file].name,
                       twice->place[i].first_line);
        ttn_facts_text(f, "again", "%s:%" PRId64, ttn_card_files(c)[twice->place[i].file].name, twice->place[i].line);
        ttn_facts_close(f);
    }
}

static void tell_errors(const ttn_card *c, ttn_facts *f)
{
    ttn_facts_open_list(f, "error");
    for (int i = 0; i < ttn_card_n_files(c); i++) {
        const ttn_card_file *file = &ttn_card_files(c)[i];
        for (int k = 0; k < file->n_skipped; k++)
            ttn_facts_text(f, NULL, "%s", file->skipped[k]);
        if (file->failure) ttn_facts_text(f, NULL, "%s", file->failure);
    }
    ttn_facts_close(f);
}

void ttn_card_tell(const ttn_card *c, ttn_facts *f)
{
    const ttn_card_totals *t = ttn_card_total(c);
    tell_totals(c, f);
    tell_files(c, f);
    tell_lengths(t, f);
    tell_composition(c, f);
    ttn_card_tell_notes(c, f);
    ttn_facts_open_list(f, "twice");
    tell_twice(c, &t->id, "id", f);
    tell_twice(c, &t->sequence, "sequence", f);
    ttn_facts_close(f);
    tell_errors(c, f);
}
