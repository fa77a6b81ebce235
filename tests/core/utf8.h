/* Is every byte of a text part of a whole UTF-8 character? For texts that were whole before something cut them. */
#ifndef TTN_TESTS_UTF8_H
#define TTN_TESTS_UTF8_H

/* One to four bytes a character. */
static const char *const utf8_characters[] = {"a", "\xC3\xA9", "\xE2\x88\x9E", "\xF0\x9F\xA7\xAC"};

static inline int is_whole(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        int follow = *c < 0x80 ? 0 : *c >= 0xF0 ? 3 : *c >= 0xE0 ? 2 : *c >= 0xC0 ? 1 : -1;
        if (follow < 0) return 0;
        c++;
        for (int i = 0; i < follow; i++) {
            if ((*c & 0xC0) != 0x80) return 0;
            c++;
        }
    }
    return 1;
}

/* `shift` bytes of ASCII, then one character of `size` bytes over and over, n bytes or a little less in all. */
static inline void fill_utf8(char *text, size_t n, size_t shift, size_t size)
{
    size_t at = 0;
    while (at < shift && at < n)
        text[at++] = '.';
    for (; at + size <= n; at += size)
        memcpy(text + at, utf8_characters[size - 1], size);
    text[at] = 0;
}

#endif
