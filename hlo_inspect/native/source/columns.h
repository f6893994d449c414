/* The columns as a list, for what treats all of them alike: cutting, copying, freeing. */
#ifndef HLO_COLUMNS_H
#define HLO_COLUMNS_H

#include "reader.h"

/* Remember where the current computation begins in the columns. */
void save_lengths(Reader *reader);

/* Remove what the current computation added to the columns. */
void drop_open(Reader *reader);

void free_columns(Reader *reader);

#endif
