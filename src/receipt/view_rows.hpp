// A lent array, wherever its elements lie, read as rows without gaps.
#pragma once
#include "receipt/array_digests.hpp"
#include "trireme/view.hpp"

namespace trireme::receipts {

// `axes`: the last so many make a row.
struct ViewRows {
  Type type = Type::F32;
  std::int64_t rows = 1, columns = 1;
  ReadRows read;  // of memory that the view lends
};
Result<ViewRows> rows_of(const View& view, int axes);

// The same of an array that a receipt says; an error if the view has another type or number of entries.
Result<ReadRows> reader_of(const View& view, const ArrayDigests& array);

}  // namespace trireme::receipts
