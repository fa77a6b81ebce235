/* What is this, when it is no FASTA? Told from the first bytes, so that the message can name it. */
#include <string.h>
#include "data/fasta_impl.h"

#define SHELL(program) "unpack it on the way: " program " -dc FILE | titin data check -"

/* Formats that begin with these bytes. */
static const struct {
    const char *begins;
    size_t n;
    int code;
    const char *what;
} magic[] = {
#define BEGINS(text) (text), sizeof(text) - 1
    {BEGINS("\xff\xfe"), 6, "is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
    {BEGINS("\xfe\xff"), 6, "is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
    {BEGINS("\0\0\xfe\xff"), 6, "is UTF-32; convert it: iconv -f UTF-32 -t UTF-8"},
    {BEGINS("\x1f\x8b"), 60, "is gzip inside gzip; unpack it once: zcat FILE > NEW.fasta.gz"},
    {BEGINS("\x28\xb5\x2f\xfd"), 59, "is compressed by zstd; " SHELL("zstd")},
    {BEGINS("\xfd"
            "7zXZ"),
     59, "is compressed by xz; " SHELL("xz")},
    {BEGINS("BZh"), 59, "is compressed by bzip2; " SHELL("bzip2")},
    {BEGINS("\x04\x22\x4d\x18"), 59, "is compressed by lz4; " SHELL("lz4")},
    {BEGINS("\x1f\x9d"), 59, "is compressed by compress; " SHELL("gzip")},
    {BEGINS("7z\xbc\xaf\x27\x1c"), 59, "is a 7z archive; unpack it on the way: 7z x -so FILE | titin data check -"},
    {BEGINS("\x89HDF\r\n\x1a\n"), 58, "is HDF5; a store of titin's is read where a store is asked for"},
    {BEGINS("PK\3\4"), 58, "is a zip archive (or .npz, .docx); unpack it first: unzip FILE"},
    {BEGINS("\x7f"
            "ELF"),
     58, "is a program (ELF)"},
    {BEGINS("\x93NUMPY"), 58, "is a NumPy array (.npy)"},
    {BEGINS("SQLite format 3"), 58, "is an SQLite database"},
    {BEGINS("%PDF"), 58, "is a PDF"},
    {BEGINS("\x89PNG"), 58, "is a picture (PNG)"},
    {BEGINS("version https://git-lfs."), 55, "is a Git LFS pointer, not the file itself; run git lfs pull"},
    {BEGINS("LOCUS  "), 54, "looks like GenBank; export it as FASTA"},
    {BEGINS("ID   "), 54, "looks like EMBL or UniProt's flat files; export it as FASTA"},
    {BEGINS("HEADER    "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("ATOM  "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("data_"), 54, "looks like mmCIF; get the sequences as FASTA"},
    {BEGINS("# STOCKHOLM"), 54, "looks like Stockholm; convert it: esl-reformat fasta FILE"},
    {BEGINS("CLUSTAL"), 54, "looks like Clustal; convert it to FASTA"},
    {BEGINS("#NEXUS"), 54, "looks like NEXUS; convert it to FASTA"},
    {BEGINS("@HD\t"), 54, "looks like SAM; convert it: samtools fasta FILE"},
    {BEGINS("@SQ\t"), 54, "looks like SAM; convert it: samtools fasta FILE"},
    {BEGINS("{"), 54, "looks like JSON"},
    {BEGINS("["), 54, "looks like JSON"},
};

static int begins_with(const unsigned char *bytes, size_t n, const char *text, size_t n_text)
{
    return n >= n_text && memcmp(bytes, text, n_text) == 0;
}

/* The word stands in the bytes, in capitals or small. */
static int contains_word(const unsigned char *bytes, size_t n, const char *word)
{
    const size_t length = strlen(word);
    for (size_t at = 0; at + length <= n; at++) {
        size_t same = 0;
        while (same < length && (bytes[at + same] | 0x20) == word[same])
            same++;
        if (same == length) return 1;
    }
    return 0;
}

/* Every second byte of the first 32 is NUL, as in UTF-16 of ASCII without its mark. */
static int has_nul_every_second(const unsigned char *bytes, size_t n)
{
    if (n < 4) return 0;
    if (n > 32) n = 32;
    int even = 0, odd = 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        even += bytes[i] == 0;
        odd += bytes[i + 1] == 0;
    }
    const int pairs = (int)(n / 2);
    return (even == pairs && odd == 0) || (odd == pairs && even == 0);
}

static size_t count_in(const unsigned char *bytes, size_t n, int wanted)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += bytes[i] == wanted;
    return count;
}

/* Two lines with the same number (at least one) of this separator. */
static int is_table(const unsigned char *bytes, size_t n, int separator)
{
    const unsigned char *end = memchr(bytes, '\n', n);
    if (!end) return 0;
    const size_t first = (size_t)(end - bytes);
    const size_t rest = n - first - 1;
    const unsigned char *next_end = memchr(end + 1, '\n', rest);
    const size_t second = next_end ? (size_t)(next_end - end - 1) : rest;
    const size_t count = count_in(bytes, first, separator);
    return count > 0 && count == count_in(end + 1, second, separator);
}

static ttn_fasta_look sniff_text(const unsigned char *bytes, size_t n)
{
    if (bytes[0] == '<') {
        if (contains_word(bytes, n, "<!doctype html") || contains_word(bytes, n, "<html"))
            return (ttn_fasta_look){
                53, "looks like HTML, perhaps a page that says that the file was not found; look into it, "
                    "and download it again"};
        return (ttn_fasta_look){53, "looks like XML; get the sequences as FASTA"};
    }
    if (bytes[0] == '@')
        return (ttn_fasta_look){52,
                                "looks like FASTQ, which holds reads of nucleotides; convert and translate it first"};
    if (bytes[0] != '>' && bytes[0] != ';' && bytes[0] != '#' && bytes[0] != '!') {
        if (is_table(bytes, n, ','))
            return (ttn_fasta_look){54, "looks like a table (CSV); write its sequences as FASTA"};
        if (is_table(bytes, n, '\t'))
            return (ttn_fasta_look){54, "looks like a table (TSV); write its sequences as FASTA"};
    }
    return (ttn_fasta_look){0};
}

ttn_fasta_look ttn_fasta_sniff(const unsigned char *bytes, size_t n)
{
    if (n == 0) return (ttn_fasta_look){0};
    for (size_t i = 0; i < sizeof magic / sizeof *magic; i++)
        if (begins_with(bytes, n, magic[i].begins, magic[i].n)) return (ttn_fasta_look){magic[i].code, magic[i].what};
    if (n > 262 && memcmp(bytes + 257, "ustar", 5) == 0)
        return (ttn_fasta_look){58, "is a tar archive; unpack it on the way: tar -xOf FILE | titin data check -"};
    if (has_nul_every_second(bytes, n)) return (ttn_fasta_look){6, "is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"};
    return sniff_text(bytes, n);
}

int ttn_fasta_is_called(const char *name, const char *extension)
{
    size_t n = strlen(name);
    if (n > 3 && strcmp(name + n - 3, ".gz") == 0) n -= 3;
    const size_t length = strlen(extension);
    return n > length && memcmp(name + n - length, extension, length) == 0;
}
