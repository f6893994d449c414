/* The text, and every read of it.

   The text comes from anywhere. All reads go through `byte_at`, for one byte, or `bytes_of`, for many: both check their bounds.
   Offsets are 32 bits wide, and `MAX_TEXT` leaves room for sums of an offset and a small number. */
#ifndef HLO_TEXT_H
#define HLO_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_TEXT = 1 << 30 };

/* The answer of functions that find no offset, and of `byte_at` outside the text. */
enum { NONE = -1 };

typedef struct {
    const uint8_t *bytes;
    int32_t size;
} Text;

typedef struct {
    int32_t start;
    int32_t length;
} Span;

/* Classes of bytes. A byte of no class, as of a control character or of UTF-8, is refused wherever it stands. */
enum {
    LETTER = 1,     /* the first of a name */
    NAME = 2,       /* the others of a name */
    OPCODE = 4,     /* of an opcode */
    LOWER = 8,      /* the first of an opcode or an array shape */
    PLAIN = 16,     /* in a value: neither a bracket nor a quote, a comma, a blank, a slash or a backslash */
    IN_STRING = 32, /* in a string: neither its end nor a backslash */
    DIGIT = 64
};

extern const uint8_t CLASSES[256];

static inline bool is_inside(Text text, int32_t start, int32_t length) {
    return start >= 0 && length >= 0 && start <= text.size && length <= text.size - start;
}

/* Return the byte at an offset, or NONE outside the text. */
static inline int byte_at(Text text, int32_t at) { return is_inside(text, at, 1) ? text.bytes[at] : NONE; }

/* Return the bytes of an extent, or NULL if a part of it is outside the text. */
static inline const uint8_t *bytes_of(Text text, Span span) {
    return is_inside(text, span.start, span.length) ? text.bytes + span.start : NULL;
}

/* Return true if the byte at an offset is of the class. No byte outside the text is. */
static inline bool is_of(Text text, int32_t at, int class) {
    int byte = byte_at(text, at);
    return byte != NONE && (CLASSES[byte] & class) != 0;
}

static inline Span between(int32_t start, int32_t end) {
    Span span = {start, end - start};
    return span;
}

/* Return the offset after the bytes of a class that start at `at`, at most `end`. */
int32_t skip_class(Text text, int32_t at, int32_t end, int class);

/* Return the offset of the next line end, or NONE. */
int32_t line_end(Text text, int32_t at);

/* Return true if these characters are at an offset. */
bool starts_with(Text text, int32_t at, const char *word);

/* Return true if two extents of one text hold the same bytes. */
bool same_bytes(Text text, Span left, Span right);

#endif
