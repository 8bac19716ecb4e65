/* A library that says which of several it is: compiled with -DWHICH="...", perhaps -DNEEDS=f (a function it lacks), perhaps
 * -DTLS_BYTES=n of initial-exec storage. */
#ifdef NEEDS
void NEEDS(void);
void uses_it(void) {
    NEEDS();
}
#endif
#ifdef TLS_BYTES
static __thread char storage[TLS_BYTES] __attribute__((tls_model("initial-exec")));
char* own_storage(void) {
    return storage;
}
#endif
const char* which(void) {
    return WHICH;
}
