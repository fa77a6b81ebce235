/* What is this, when it is no FASTA? Told from the first bytes, so that the message can name it. */
#include <string.h>
#include "data/fasta_impl.h"

#define SHELL(program) "unpack it on the way: " program " -dc FILE | titin data check -"
#define AS_FASTA       "; write its sequences as FASTA"

/* Formats that begin with these bytes; the first that fits. */
static const struct {
    const char *begins;
    size_t n;
    int code;
    const char *what;
} magic[] = {
#define BEGINS(text) (text), sizeof(text) - 1
    {BEGINS("\xff\xfe\0\0"), 6, "is UTF-32; convert it: iconv -f UTF-32 -t UTF-8"},
    {BEGINS("\xff\xfe"), 6, "is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
    {BEGINS("\xfe\xff"), 6, "is UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
    {BEGINS("\0\0\xfe\xff"), 6, "is UTF-32; convert it: iconv -f UTF-32 -t UTF-8"},

    {BEGINS("\x1f\x8b"), 60, "is gzip inside gzip; unpack it once: zcat FILE > NEW.fasta.gz"},
    {BEGINS("\x28\xb5\x2f\xfd"), 59, "is compressed by zstd; " SHELL("zstd")},
    {BEGINS("\x50\x2a\x4d\x18"), 59, "is compressed by zstd; " SHELL("zstd")},
    {BEGINS("\xfd"
            "7zXZ"),
     59, "is compressed by xz; " SHELL("xz")},
    {BEGINS("\x5d\0\0"), 59, "is compressed by lzma; " SHELL("xz")},
    {BEGINS("LZIP\1"), 59, "is compressed by lzip; " SHELL("lzip")},
    {BEGINS("BZh"), 59, "is compressed by bzip2; " SHELL("bzip2")},
    {BEGINS("\x04\x22\x4d\x18"), 59, "is compressed by lz4; " SHELL("lz4")},
    {BEGINS("\x1f\x9d"), 59, "is compressed by compress; " SHELL("gzip")},
    {BEGINS("7z\xbc\xaf\x27\x1c"), 59, "is a 7z archive; unpack it on the way: 7z x -so FILE | titin data check -"},
    {BEGINS("Rar!\x1a\x07"), 59, "is a RAR archive; unpack it on the way: unrar p -inul FILE | titin data check -"},

    {BEGINS("\x89HDF\r\n\x1a\n"), 58,
     "is HDF5; a store of titin's is read by titin data info and titin data export; if it is another file, write its "
     "sequences as FASTA"},
    {BEGINS("PAR1"), 54, "is Parquet" AS_FASTA " (pandas, polars and DuckDB read it)"},
    {BEGINS("ARROW1\0\0"), 54, "is Arrow (Feather)" AS_FASTA " (pandas and pyarrow read it)"},
    {BEGINS("FEA1"), 54, "is Feather" AS_FASTA " (pandas reads it)"},
    {BEGINS("ORC\x0a"), 54, "is ORC" AS_FASTA " (pandas reads it)"},
    {BEGINS("Obj\1"), 54, "is Avro" AS_FASTA},
    {BEGINS("SQLite format 3"), 54, "is an SQLite database" AS_FASTA " (sqlite3 FILE, .schema shows its tables)"},
    {BEGINS("\x80\x02"), 58,
     "is a Python pickle; opening one runs code in it, so do that only if you trust it" AS_FASTA},
    {BEGINS("\x80\x03"), 58,
     "is a Python pickle; opening one runs code in it, so do that only if you trust it" AS_FASTA},
    {BEGINS("\x80\x04"), 58,
     "is a Python pickle; opening one runs code in it, so do that only if you trust it" AS_FASTA},
    {BEGINS("\x80\x05"), 58,
     "is a Python pickle; opening one runs code in it, so do that only if you trust it" AS_FASTA},
    {BEGINS("\x93NUMPY"), 58, "is a NumPy array (.npy)" AS_FASTA},
    {BEGINS("GGUF"), 58, "is a model (GGUF), and no sequences"},
    {BEGINS("\x7f"
            "ELF"),
     58, "is a program (ELF), and no sequences"},
    {BEGINS("MZ\x90\0"), 58, "is a program of Windows, and no sequences"},
    {BEGINS("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), 58,
     "is an old file of Word or Excel; save it as plain text, or as CSV, and make FASTA of that"},
    {BEGINS("{\\rtf"), 54, "is formatted text (RTF); save it as plain text"},
    {BEGINS("%PDF"), 58, "is a PDF; get the sequences as FASTA from where it came"},
    {BEGINS("\x89PNG"), 58, "is a picture (PNG), and no sequences"},
    {BEGINS("\xff\xd8\xff"), 58, "is a picture (JPEG), and no sequences"},

    {BEGINS("version https://git-lfs."), 55, "is a Git LFS pointer, not the file itself; run git lfs pull"},
    {BEGINS("LOCUS  "), 54, "looks like GenBank; export it as FASTA"},
    {BEGINS("ID   "), 54, "looks like EMBL or UniProt's flat files; export it as FASTA"},
    {BEGINS("HEADER    "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("TITLE     "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("REMARK  "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("CRYST1"), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("MODEL   "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("ATOM  "), 54, "looks like PDB; get the sequences as FASTA"},
    {BEGINS("data_"), 54, "looks like mmCIF; get the sequences as FASTA"},
    {BEGINS("# STOCKHOLM"), 54, "looks like Stockholm; convert it: esl-reformat fasta FILE"},
    {BEGINS("CLUSTAL"), 54, "looks like Clustal; convert it to FASTA"},
    {BEGINS("MUSCLE ("), 54, "looks like Clustal, from MUSCLE; convert it to FASTA"},
    {BEGINS("!!AA_"), 54, "looks like GCG (MSF); convert it to FASTA (seqret does it)"},
    {BEGINS("PileUp"), 54, "looks like GCG (MSF); convert it to FASTA (seqret does it)"},
    {BEGINS("#NEXUS"), 54, "looks like NEXUS; convert it to FASTA"},
    {BEGINS("HMMER3/"), 54, "is a profile of HMMER, and no sequences; hmmemit -c FILE writes its consensus"},
    {BEGINS("HHsearch "), 54, "is a profile of HH-suite (HHM); take the alignment (A3M) that it was made of"},
    {BEGINS("##gff-version"), 54,
     "looks like GFF: places of genes, and no sequences; gffread -y NEW.fasta -g GENOME FILE writes the proteins"},
    {BEGINS("##fileformat=VCF"), 54, "looks like VCF: variants, and no sequences"},
    {BEGINS("BAM\1"), 54, "is BAM: reads of nucleotides; convert it (samtools fasta FILE), and translate it"},
    {BEGINS("CRAM\3"), 54, "is CRAM: reads of nucleotides; convert it (samtools fasta FILE), and translate it"},
    {BEGINS("@HD\t"), 54, "looks like SAM; convert it: samtools fasta FILE"},
    {BEGINS("@SQ\t"), 54, "looks like SAM; convert it: samtools fasta FILE"},
    {BEGINS("["), 54, "looks like JSON" AS_FASTA " (jq does it)"},
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

/* These bytes stand somewhere in the first n. */
static int contains(const unsigned char *bytes, size_t n, const char *text)
{
    return memmem(bytes, n, text, strlen(text)) != NULL;
}

/* What a zip archive holds shows in the name of its first file, and of others that are near. */
static ttn_fasta_look sniff_zip(const unsigned char *bytes, size_t n)
{
    enum { NAME_LENGTH = 26, NAME = 30 };
    const size_t length = n > NAME ? bytes[NAME_LENGTH] | (size_t)bytes[NAME_LENGTH + 1] << 8 : 0;
    const unsigned char *name = bytes + NAME;
    const size_t n_name = length < n - NAME ? length : n - NAME;
    if (n <= NAME) return (ttn_fasta_look){58, "is a zip archive; unpack it first: unzip FILE"};
    if (n_name > 4 && memcmp(name + n_name - 4, ".npy", 4) == 0)
        return (ttn_fasta_look){58, "holds NumPy arrays (.npz)" AS_FASTA};
    if (contains(name, n_name, "data.pkl")) return (ttn_fasta_look){58, "is a file of PyTorch (.pt), and no sequences"};
    if (contains(name, n_name, "[Content_Types].xml") || contains(name, n_name, "_rels/") ||
        contains(name, n_name, "docProps/") || contains(name, n_name, "mimetype"))
        return (ttn_fasta_look){58, "is a file of Word, Excel or another office program; save it as plain text, or as "
                                    "CSV, and make FASTA of that"};
    return (ttn_fasta_look){58, "is a zip archive; unpack it on the way: unzip -p FILE | titin data check -"};
}

/* What does not show in the very first bytes. */
static ttn_fasta_look sniff_binary(const unsigned char *bytes, size_t n)
{
    static const unsigned char lmdb[] = {0xde, 0xc0, 0xef, 0xbe};
    if (begins_with(bytes, n, "PK\3\4", 4)) return sniff_zip(bytes, n);
    if (begins_with(bytes, n, "PK\5\6", 4)) return (ttn_fasta_look){58, "is a zip archive with nothing in it"};
    if (n > 262 && memcmp(bytes + 257, "ustar", 5) == 0)
        return (ttn_fasta_look){58, "is a tar archive; unpack it on the way: tar -xOf FILE | titin data check -"};
    if (n > 20 && memcmp(bytes + 16, lmdb, sizeof lmdb) == 0)
        return (ttn_fasta_look){54, "is an LMDB database" AS_FASTA};
    if (n > 14 && memcmp(bytes + 8, "DUCK", 4) == 0 && bytes[13] == 0)
        return (ttn_fasta_look){54, "is a DuckDB database" AS_FASTA};
    if (n > 10 && memcmp(bytes + 4, "\0\0\0\0{\"", 6) == 0)
        return (ttn_fasta_look){58, "is a model (safetensors), and no sequences"};
    /* MessagePack: a small map whose first key is one of these. */
    if ((bytes[0] & 0xf0) == 0x80 && contains(bytes, n < 64 ? n : 64, "mmtfVersion"))
        return (ttn_fasta_look){54, "is MMTF, a structure; get the sequences as FASTA"};
    if ((bytes[0] & 0xf0) == 0x80 && (contains(bytes, n, "encoder") || contains(bytes, n, "dataBlocks")))
        return (ttn_fasta_look){54, "is BinaryCIF, a structure; get the sequences as FASTA"};
    return (ttn_fasta_look){0};
}

static ttn_fasta_look sniff_json(const unsigned char *bytes, size_t n)
{
    const unsigned char *end = memchr(bytes, '\n', n);
    const size_t rest = end ? n - (size_t)(end - bytes) - 1 : 0;
    if (end && end > bytes && end[-1] == '}' && (rest == 0 || end[1] == '{'))
        return (ttn_fasta_look){54, "looks like JSON Lines" AS_FASTA
                                    ": jq -r '\">\" + .ID + \"\\n\" + .SEQUENCE' FILE, with the names of its keys"};
    return (ttn_fasta_look){54, "looks like JSON" AS_FASTA " (jq does it)"};
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
    const ttn_fasta_look look = sniff_binary(bytes, n);
    if (look.code) return look;
    if (bytes[0] == '{') return sniff_json(bytes, n);
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
