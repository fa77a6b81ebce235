/* What every public header is wrapped in: C linkage, and the only symbols that libtitin.so exports
 * (the library is built with -fvisibility=hidden). */
#ifndef TTN_API_H
#define TTN_API_H

#ifdef __cplusplus
#define TTN_EXTERN_C_BEGIN extern "C" {
#define TTN_EXTERN_C_END   }
#else
#define TTN_EXTERN_C_BEGIN
#define TTN_EXTERN_C_END
#endif

#define TTN_API_BEGIN TTN_EXTERN_C_BEGIN _Pragma("GCC visibility push(default)")
#define TTN_API_END   _Pragma("GCC visibility pop") TTN_EXTERN_C_END

/* A status that nobody looks at is a fault that nobody sees. */
#define TTN_MUST_USE __attribute__((warn_unused_result))

#define TTN_PRINTF(text, args) __attribute__((format(printf, text, args)))

#endif
