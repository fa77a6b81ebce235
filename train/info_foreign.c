#include <string.h>
#include "core/text.h"
#include "train/info_foreign.h"

/* Bytes at a place of the file, and what a file that has them there is. */
static const struct {
    size_t at;
    const char *bytes;
    size_t n;
    const char *name, *advice;
} magics[] = {
#define AT(at, text) (at), (text), sizeof(text) - 1
    {AT(0, "\x1F\x8B"), "a gzip file", "see what is in it with `zcat FILE | head`"},
    {AT(0, "\x28\xB5\x2F\xFD"), "a zstd file", "unpack it with `unzstd FILE`"},
    {AT(0, "\xFD"
           "7zXZ"),
     "an xz file", "unpack it with `unxz FILE`"},
    {AT(0, "BZh"), "a bzip2 file", "unpack it with `bunzip2 FILE`"},
    {AT(0, "\x89HDF\r\n\x1A\n"), "an HDF5 file", "see what is in it with `h5ls -r FILE`"},
    {AT(0, "PK\x03\x04"), "a zip archive (PyTorch's .pt and .bin are such, with a pickle inside)",
     "weights in a pickle run code when they are loaded: have the program that wrote it save safetensors"},
    {AT(0, "\x80\x02"), "a Python pickle (as older PyTorch wrote)",
     "a pickle runs code when it is loaded: have the program that wrote it save safetensors"},
    {AT(0, "\x80\x03"), "a Python pickle", "a pickle runs code when it is loaded; save it in another format"},
    {AT(0, "\x80\x04"), "a Python pickle", "a pickle runs code when it is loaded; save it in another format"},
    {AT(0, "\x80\x05"), "a Python pickle", "a pickle runs code when it is loaded; save it in another format"},
    {AT(0, "\x93NUMPY"), "a NumPy array (.npy)", "read it with numpy.load"},
    {AT(0, "\x89PNG\r\n\x1A\n"), "a PNG picture", "open it with a picture viewer"},
    {AT(0, "\xFF\xD8\xFF"), "a JPEG picture", "open it with a picture viewer"},
    {AT(0, "%PDF-"), "a PDF document", "open it with a document viewer"},
    {AT(0, "\x7F"
           "ELF"),
     "a program or a library", "it holds no data"},
    {AT(257, "ustar"), "a tar archive", "unpack it with `tar xf FILE`"},
    {AT(0, "GGUF"), "a GGUF model", "titin reads safetensors; take the model in that format"},
    {AT(0, "SQLite format 3"), "an SQLite database", "open it with sqlite3"},
    {AT(0, "LOCUS  "), "a GenBank record", "have its sequences written as FASTA"},
    {AT(0, "#!"), "a script", "it holds no data"},
#undef AT
};

/* Text all through, as far as the head goes: no NUL, no control characters but those of lines. */
static int is_text(const ttn_info_subject *s)
{
    for (size_t i = 0; i < s->n_head; i++)
        if (s->head[i] == 0x7F || (s->head[i] < ' ' && !strchr("\t\n\r\f", s->head[i])) || s->head[i] == 0) return 0;
    return 1;
}

/* The first byte that is no blank and no line end; 0: none. */
static int first_mark(const ttn_info_subject *s)
{
    for (size_t i = 0; i < s->n_head; i++)
        if (!strchr(" \t\r\n", s->head[i]) || s->head[i] == 0) return s->head[i];
    return 0;
}

static int has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

static void looks_like_text(const ttn_info_subject *s, const char **ret_name, const char **ret_advice)
{
    *ret_name = "a text";
    *ret_advice = "a configuration of titin has the name's ending .yaml";
    switch (first_mark(s)) {
    case '>':
        *ret_name = "a FASTA file of sequences";
        *ret_advice = "count its sequences with `grep -c '^>' FILE`";
        break;
    case '@':
        *ret_name = "a FASTQ file of sequencing reads, or a SAM file";
        *ret_advice = "titin learns from protein sequences, in FASTA";
        break;
    case '{':
    case '[':
        *ret_name = "a JSON file";
        *ret_advice = "if it belongs to a model, name the model's folder";
        break;
    case '<':
        *ret_name = "an XML or HTML file";
        *ret_advice = "if it was downloaded, it may be the server's error message: look at it";
        break;
    default:
        break;
    }
    if (has_suffix(s->path, ".fai") || has_suffix(s->path, ".tsv") || has_suffix(s->path, ".csv")) {
        *ret_name = "a table";
        *ret_advice = "look at it with `column -t FILE | less -S`";
    }
}

void ttn_info_looks_like(const ttn_info_subject *s, const char **ret_name, const char **ret_advice)
{
    *ret_name = NULL;
    *ret_advice = NULL;
    if (s->is_folder || s->n_head == 0) return;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        if (s->n_head < magics[i].at + magics[i].n) continue;
        if (memcmp(s->head + magics[i].at, magics[i].bytes, magics[i].n) != 0) continue;
        *ret_name = magics[i].name;
        *ret_advice = magics[i].advice;
        return;
    }
    if (is_text(s)) looks_like_text(s, ret_name, ret_advice);
}

static int recognise(const ttn_info_subject *s)
{
    (void)s;
    return 1;
}

static ttn_status describe(const ttn_info_subject *s, int verify, ttn_facts *f, ttn_error *err)
{
    (void)verify;
    char path[TTN_TAIL_ROOM];
    ttn_text_tail(s->path, path);
    if (s->is_folder) {
        ttn_facts_text(f, "looks_like", "a folder");
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: is a folder, and holds nothing by which titin would know it; name a file in it", path);
    }
    if (s->bytes == 0) {
        ttn_facts_text(f, "looks_like", "an empty file");
        return TTN_FAIL(err, TTN_ECHECKPOINT,
                        "%s: is empty; whoever should have written it has failed, or has not begun", path);
    }
    const char *name, *advice;
    ttn_info_looks_like(s, &name, &advice);
    if (!name) {
        ttn_facts_text(f, "looks_like", "bytes of no format known here");
        return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: is of no kind that titin knows; `file FILE` knows more of them",
                        path);
    }
    ttn_facts_text(f, "looks_like", "%s", name);
    return TTN_FAIL(err, TTN_ECHECKPOINT, "%s: is of no kind that titin reads, but looks like %s; %s", path, name,
                    advice);
}

const ttn_info_kind ttn_info_foreign = {
    .name = "unknown",
    .what = "a file that titin has no use for",
    .recognise = recognise,
    .describe = describe,
};
