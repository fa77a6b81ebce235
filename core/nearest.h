/* "Did you mean": the known word nearest to one that somebody typed. */
#ifndef TTN_NEAREST_H
#define TTN_NEAREST_H

/* Edits (a byte more, less, another, or two neighbours swapped) that make b of a: the restricted Damerau-Levenshtein
 * distance. Words of more than TTN_NEAREST_WORD bytes are farther than any (TTN_NEAREST_FAR). */
enum { TTN_NEAREST_WORD = 64, TTN_NEAREST_FAR = 1000 };
int ttn_edits(const char *a, const char *b);

/* Of name[0] to name[n - 1] (NULL entries are passed over) the one that fewest edits make of word, the first of several;
 * NULL when it would take more than a third of the word's bytes, and more than one, for then it is another word. */
const char *ttn_nearest(const char *word, const char *const *name, int n);

/* Would ttn_nearest call a word near that is so many edits away? For callers with names in a form of their own. */
int ttn_is_near(const char *word, int edits);

#endif
