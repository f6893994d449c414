/* The state of reading, and the columns that it fills. */
#ifndef HLO_READER_H
#define HLO_READER_H

#include "interner.h"
#include "text.h"
#include "vector.h"

enum { MAX_ROLES = 64, MAX_WORD = 64, MAX_COLUMNS = 48 };

/* What becomes of the value of an attribute. Numbers from CALLEE on are roles of called computations. */
enum { KEPT = 0, METADATA = 1, LEFT_OUT = 2, CALLEE = 3 };

/* Flags of rows: the root; one that is an operand; one of whose operands is an element of a tuple, as `name#1`. */
enum { IS_ROOT = 1, IS_USED = 2, USES_ELEMENTS = 4 };

/* Flags of computations: the entry; one that calls a computation that no earlier line defines. */
enum { IS_ENTRY = 1, CALLS_AHEAD = 2 };

/* Results of reading. */
typedef enum {
    READ,       /* an item, or all of the text */
    INCOMPLETE, /* more text may decide it */
    REFUSED,    /* another reader has to read it */
    ENTRY_READ, /* the entry was read, after which other text may follow */
    NO_MEMORY
} Result;

/* A word that the caller names, and the role of an attribute of this name. */
typedef struct {
    char word[MAX_WORD];
    int32_t role;
} Word;

/* The columns. Those of rows have an item for each row; pointers are ends, the first begins at 0. */
typedef struct {
    Vector name_start, name_end;
    Vector head;         /* number of `shape opcode` */
    Vector tail_start;   /* the text after the opening parenthesis */
    Vector attributes;   /* where its attributes start */
    Vector line_end;     /* where it ends */
    Vector operand_end, operands;
    Vector call_end, callee, role;
    Vector attribute_form; /* number of the attributes without names and metadata */
    Vector metadata;       /* number of the metadata; NONE without */
    Vector row_flags;
    Vector row_class; /* rows of one have texts that differ in names and metadata only */
    /* those of computations */
    Vector computation_name, computation_line, first_row, root, first_line_start, first_line_end,
        computation_end, heads_form, computation_class;
    Vector computation_flags;
    /* rows by head, ascending: the rows of each head end at */
    Vector head_row_end, head_rows;
    Vector defined; /* the computation of each name of one; NONE without */
} Columns;

/* A computation before its last line. */
typedef struct {
    Span first_line;
    size_t first_row;
    int32_t name, root; /* NONE before a ROOT */
    int32_t next;       /* offset of the next line */
    int32_t lines;      /* before that */
} Open;

typedef struct {
    Columns columns;
    Interner heads, names, metadata, attribute_forms, heads_forms, classes;
    Vector form_bytes; /* of `attribute_forms` */
    Vector class_bytes; /* of `classes` */
    Vector form;       /* of the current row */
    Vector literal;    /* of each head: true if its parentheses hold no operands */
    Vector used_starts, used_lengths; /* the operands of the current computation */
    Slot *names_of_rows;              /* the names of the current computation */
    size_t names_room;
    Word roles[MAX_ROLES];
    int32_t role_count;
    Word literals[MAX_ROLES];
    int32_t literal_count;
    uint64_t seed;
    int32_t position; /* after the last computation that was read */
    int32_t line;     /* line ends before it */
    int32_t start, start_line; /* of the current computation, after blank lines */
    bool is_open;              /* the current computation is incomplete: more text continues it */
    Open open;
    size_t lengths[MAX_COLUMNS]; /* of the columns, before the current computation */
    int32_t flags;             /* of the current computation */
} Reader;

/* Read the row in a line, without its line end. */
Result read_row(Reader *reader, Text text, Span line);

/* Read the attributes from an offset to the end of the line. */
Result read_attributes(Reader *reader, Text text, int32_t at, int32_t end);

/* Read operands up to their closing parenthesis, and return the offset after it. NONE for operands that are no names. */
int32_t read_operands(Reader *reader, Text text, int32_t at, int32_t end, uint8_t *flags, Result *result);

/* Read the computation at the reader's start, or go on with it. */
Result read_computation(Reader *reader, Text text, bool is_final);

/* Find the rows that the operands of the current computation name. Refuse names without a row, or with two. */
Result resolve_operands(Reader *reader, Text text, size_t first_row);

/* Store the classes of the current computation and of its rows. */
Result classify(Reader *reader, Text text, size_t first_row, int32_t root);

#endif
