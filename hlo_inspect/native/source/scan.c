/* Strings, brackets and values within one line. */
#include "scan.h"

/* Deepest nesting of brackets that is read. */
enum { MAX_DEPTH = 64 };

int32_t string_end(Text text, int32_t at, int32_t end) {
    at++;
    while (at < end) {
        at = skip_class(text, at, end, IN_STRING);
        int byte = at < end ? byte_at(text, at) : NONE;
        if (byte == '"') return at + 1;
        /* A backslash takes the next byte with it, a quote included. */
        if (byte != '\\' || at + 1 >= end) return NONE;
        int escaped = byte_at(text, at + 1);
        if (escaped != '"' && escaped != '\\' && !is_of(text, at + 1, IN_STRING)) return NONE;
        at += 2;
    }
    return NONE;
}

/* Read a word in single quotes. Nothing in it may mean something to readers for which these are no quotes. */
static int32_t quoted_end(Text text, int32_t at, int32_t end) {
    at = skip_class(text, at + 1, end, PLAIN);
    return at < end && byte_at(text, at) == '\'' ? at + 1 : NONE;
}

int32_t comment_end(Text text, int32_t at, int32_t end) {
    if (!starts_with(text, at, "/*")) return NONE;
    at += 2;
    while (at < end && (is_of(text, at, NAME) || byte_at(text, at) == '=')) at++;
    return at + 2 <= end && starts_with(text, at, "*/") ? at + 2 : NONE;
}

static int closer_of(int opener) { return opener == '(' ? ')' : opener == '[' ? ']' : opener == '{' ? '}' : 0; }

int32_t bracket_end(Text text, int32_t at, int32_t end) {
    char closers[MAX_DEPTH];
    int depth = 0;
    while (at != NONE && at < end) {
        at = skip_class(text, at, end, PLAIN);
        if (at >= end) return NONE;
        int byte = byte_at(text, at), closer = closer_of(byte);
        if (closer != 0) {
            if (depth == MAX_DEPTH) return NONE;
            closers[depth++] = (char)closer;
            at++;
        } else if (byte == ',' || byte == ' ') {
            at++;
        } else if (byte == '"') {
            at = string_end(text, at, end);
        } else if (byte == '\'') {
            at = quoted_end(text, at, end);
        } else if (byte == '/') {
            at = comment_end(text, at, end);
        } else {
            if (depth == 0 || closers[depth - 1] != byte) return NONE;
            at++;
            if (--depth == 0) return at;
        }
    }
    return NONE;
}

/* Read plain bytes, strings and brackets up to a blank, a comma or an unexpected byte. Empty text gives NONE. */
static int32_t chunk_end(Text text, int32_t at, int32_t end) {
    int32_t start = at;
    while (at < end) {
        at = skip_class(text, at, end, PLAIN);
        int byte = at < end ? byte_at(text, at) : NONE;
        if (closer_of(byte) != 0) {
            at = bracket_end(text, at, end);
        } else if (byte == '"') {
            at = string_end(text, at, end);
        } else if (byte == '\'') {
            at = quoted_end(text, at, end);
        } else {
            break;
        }
        if (at == NONE) return NONE;
    }
    return at > start ? at : NONE;
}

int32_t value_end(Text text, int32_t at, int32_t end) {
    at = chunk_end(text, at, end);
    /* Behind a blank a bracket continues the value, as in `mesh['a'=2] {'a'}`. */
    while (at != NONE && at < end && byte_at(text, at) == ' ') {
        int next = byte_at(text, at + 1);
        if (next != '{' && next != '[') return NONE;
        at = chunk_end(text, at + 1, end);
    }
    return at == NONE || at == end || byte_at(text, at) == ',' ? at : NONE;
}

int32_t shape_end(Text text, int32_t at, int32_t end) {
    if (byte_at(text, at) == '(') return bracket_end(text, at, end);
    if (!is_of(text, at, LOWER)) return NONE;
    int32_t brackets = skip_class(text, at, end, NAME);
    if (brackets >= end || byte_at(text, brackets) != '[') return NONE;
    return chunk_end(text, at, end);
}

int32_t name_end(Text text, int32_t at, int32_t end) {
    return at < end && is_of(text, at, LETTER) ? skip_class(text, at, end, NAME) : NONE;
}
