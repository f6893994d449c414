/* Strings, brackets and values within one line. Each function returns the offset after what it read, or NONE. */
#ifndef HLO_SCAN_H
#define HLO_SCAN_H

#include "text.h"

/* Read a string in double quotes. */
int32_t string_end(Text text, int32_t at, int32_t end);

/* Read a bracket and all that it holds, with brackets that fit. */
int32_t bracket_end(Text text, int32_t at, int32_t end);

/* Read a comment such as an index of the printer. */
int32_t comment_end(Text text, int32_t at, int32_t end);

/* Read a shape: an array with its layout, or a tuple. It ends before a blank. */
int32_t shape_end(Text text, int32_t at, int32_t end);

/* Read the value of an attribute. It ends before a comma, or at `end`. */
int32_t value_end(Text text, int32_t at, int32_t end);

/* Read a name without its mark. */
int32_t name_end(Text text, int32_t at, int32_t end);

#endif
