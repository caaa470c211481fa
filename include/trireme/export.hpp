// What libtrireme.so shows; everything else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define TRIREME_API __attribute__((visibility("default")))
#else
#define TRIREME_API
#endif
