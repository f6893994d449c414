"""Facts of many modules in a store, and questions to it."""
