/* The functions of the library that read; those for graphs are in `flow.h`, `marks.h` and `order.h`.

   A caller makes a reader, gives it the text from the first line of a computation on, copies the columns and ends the reader.
   While reading is INCOMPLETE it may give a longer text, which begins with the former one, at another address. */
#ifndef HLO_LIBRARY_H
#define HLO_LIBRARY_H

#include "exported.h"
#include "reader.h"

/* Version of the columns and functions. A caller of another version does not use the library. */
enum { VERSION = 4 };
EXPORTED int32_t hlo_version(void);

/* Make a reader. Each list has words separated by commas: opcodes whose parentheses hold no operands; attributes with metadata;
   those whose values are left out of forms; those that name computations, whose roles are their indices. `seed` is a random
   number. NULL without memory, or for too many words. */
EXPORTED Reader *hlo_reader_begin(
    uint64_t seed, const char *literals, const char *metadata, const char *left_out, const char *callees);

EXPORTED void hlo_reader_end(Reader *reader);

/* Read computations from the text, up to one that is INCOMPLETE or REFUSED, or to the end of the entry. */
EXPORTED Result hlo_read(Reader *reader, const uint8_t *bytes, int64_t size, int is_final);

/* Return the number of computations that were read, the offset after the last one, and the number of line ends before that. */
EXPORTED int32_t hlo_computations(const Reader *reader);
EXPORTED int32_t hlo_position(const Reader *reader);

/* Return the number of columns, the name of one, and the bytes of each of its items. */
EXPORTED int32_t hlo_column_count(void);
EXPORTED const char *hlo_column_name(int32_t index);
EXPORTED int32_t hlo_column_width(int32_t index);

/* Fill the number of items of each column. Return NO_MEMORY or READ. */
EXPORTED int32_t hlo_lengths(Reader *reader, int64_t *counts);

/* Let the text begin at `distance` of another one: add that to all offsets. Nothing can be read afterwards. */
EXPORTED int32_t hlo_move(Reader *reader, int64_t distance);

/* Copy all columns to buffers of these lengths, and free them. */
EXPORTED void hlo_take(Reader *reader, void *const *destinations);

#endif
