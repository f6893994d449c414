/* The columns as a list, for what treats all of them alike: cutting, copying, freeing. */
#ifndef HLO_COLUMNS_H
#define HLO_COLUMNS_H

#include "reader.h"

enum { MAX_COLUMNS = 48 };

typedef struct {
    size_t counts[MAX_COLUMNS];
} Lengths;

Lengths lengths_of(Reader *reader);

/* Remove what was added since `lengths`. */
void cut_columns(Reader *reader, const Lengths *lengths);

void free_columns(Reader *reader);

#endif
