/* The mark of the functions that the library has for its callers. */
#ifndef HLO_EXPORTED_H
#define HLO_EXPORTED_H

#if defined(__GNUC__)
#define EXPORTED __attribute__((visibility("default")))
#else
#define EXPORTED
#endif

#endif
