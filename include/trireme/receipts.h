/* Receipts: what was computed, with digests of all arrays, checked on any device (docs/receipts.md). Of trireme.h. */
#ifndef TRIREME_RECEIPTS_H
#define TRIREME_RECEIPTS_H
#ifndef TRIREME_H
#error "include <trireme.h>, which includes this file"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of a block of an array that has `rows`. */
TRIREME_C_API int64_t trireme_block_rows(int64_t rows);

/* Room for the digests of any array's blocks. */
#define TRIREME_BLOCK_DIGESTS_BYTES 66626

/* Digests of an array in the host's memory, as receipts have them: hex digits, each ended by a newline, then a 0. First
 * that of the whole, then those of its blocks of rows. `axes`: the last so many axes make a row. `hash`: "xxh3-128"
 * where it is null, or "sha256". */
TRIREME_C_API trireme_status trireme_block_digests(const trireme_view* array, int32_t axes, const char* hash,
                                                   char* digests, size_t bytes);

typedef struct trireme_receipt trireme_receipt;
typedef struct trireme_receipt_report trireme_receipt_report;

/* Arrays are those of the host. */
typedef struct trireme_named_view {
  const char* name;
  const trireme_view* view;
} trireme_named_view;

typedef struct trireme_receipt_options {
  size_t struct_size;
  const char* hash; /* "xxh3-128" where it is null; "sha256" where the receipt is to be signed */
  const trireme_named_value* constants;
  size_t constant_count;
  int32_t axes; /* the last so many make a row; 0 is taken as 1 */
  int32_t reserved;
} trireme_receipt_options;

/* Of operands, and of results as they were computed of them: nothing runs. Operands that are not given are absent. A
 * derived program is taken as its own text says. `options`: null for none. */
TRIREME_C_API trireme_status trireme_receipt_make(const trireme_program* program, const trireme_named_view* arrays,
                                                  size_t array_count, const trireme_receipt_options* options,
                                                  trireme_receipt** receipt);
TRIREME_C_API trireme_status trireme_receipt_parse(const char* json, size_t bytes, trireme_receipt** receipt);
/* In canonical form; `signed_form`: without the signature, what one covers. Null where it is not wanted. */
TRIREME_C_API trireme_status trireme_receipt_print(const trireme_receipt* receipt, const char** json,
                                                   const char** signed_form);
/* The same receipt with a signature by Ed25519, made elsewhere: 64 and 128 hex digits. Nothing is verified. */
TRIREME_C_API trireme_status trireme_receipt_sign(const trireme_receipt* receipt, const char* key, const char* value,
                                                  trireme_receipt** with_signature);
TRIREME_C_API trireme_status trireme_receipt_destroy(trireme_receipt* receipt);

typedef struct trireme_receipt_check_options {
  size_t struct_size;
  const char* device; /* "cpu" where it is null */
  int64_t first_row;  /* and the one behind the last; both 0: all */
  int64_t last_row;
  int32_t threads; /* as in plans */
  int32_t reserved;
} trireme_receipt_check_options;

/* Computes again what the receipt says of these operands. Results may be given too: the first element that differs is
 * then known. What differs is no error: the report says it. */
TRIREME_C_API trireme_status trireme_receipt_check(const trireme_receipt* receipt, const trireme_named_view* arrays,
                                                   size_t array_count, const trireme_receipt_check_options* options,
                                                   trireme_receipt_report** report);
/* `json`: docs/json.md, 'trireme check'. */
TRIREME_C_API trireme_status trireme_receipt_report_get(const trireme_receipt_report* report, int32_t* passed,
                                                        const char** json);
TRIREME_C_API trireme_status trireme_receipt_report_destroy(trireme_receipt_report* report);

#ifdef __cplusplus
}
#endif
#endif
