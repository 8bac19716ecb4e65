/* Preloaded: makes CPython say that it is another version than it is. */
const char* Py_GetVersion(void) { return VERSION; }
