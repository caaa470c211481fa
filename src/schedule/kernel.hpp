// The lowered kernel: structured code over virtual registers, the last form that all targets share.
//
// `lower` decides everything: which rows and columns a team works on, what is loaded where, how sums are combined. A
// target only spells each instruction in its own words, one to one; its register allocator does the rest.
//
// Two kinds of machine run it. A *simd* machine (x86, wasm) has one thread whose Lane registers hold `lanes` values;
// memory is read and written `lanes` consecutive elements at a time, and Index registers are scalars. A *thread*
// machine (PTX, the 32-lane interpreter) runs every instruction once per thread with scalar registers; which thread
// it is comes from ThreadLane, ThreadGroup and BlockIndex, and addresses already contain it.
//
// Registers are mutable. Entries: rows(args, first, last, total) and, where there are column results,
// columns(args, first, last). `args` is an array of 64-bit slots; Kernel::slots says what stands in each.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/node.hpp"
#include "layout/indexing.hpp"
#include "support/few.hpp"
#include "trireme/type.hpp"

namespace trireme {

enum class Bank : std::uint8_t {
  Lane,     // a value of the compute type, per lane
  Mask,     // a condition, per lane
  Index,    // a 64-bit integer: rows, columns, offsets; on a simd machine one for all lanes
  Pointer,  // an address in global memory
};

struct Reg {
  Bank bank = Bank::Lane;
  int id = -1;
  explicit operator bool() const { return id >= 0; }
  bool operator==(const Reg&) const = default;
};

// Global memory is addressed by a Pointer register, scratch by byte offsets: shared memory of a block on a thread
// machine, the memory behind slot Scratch on a simd machine.
enum class Space : std::uint8_t {
  Global,
  Scratch,
  Cluster,  // the scratch of block number d of this block's cluster; only sent to
};

// What a cache should make of an access.
enum class Hint : std::uint8_t { None, Streaming };

enum class Do : std::uint8_t {
  // Index registers. `b` may be absent: then `imm` takes its place.
  IndexConstant,    // dst = imm
  IndexSlot,        // dst = args[imm]
  IndexArgument,    // dst = first (imm 0), last (1) or total (2)
  ThreadLane,       // dst = this thread's lane in its group, 0 .. lanes-1      (thread machines)
  ThreadGroup,      // dst = this thread's group in its team, 0 .. groups-1    (thread machines)
  ThreadTeam,       // dst = this thread's team in its block, 0 .. teams-1     (thread machines)
  BlockIndex,       // dst = this block's number in the grid; blocks that share a row have the same
  BlockRank,        // dst = its number among those that share a row            (thread machines)
  IndexMove,        // dst = a
  IndexAdd,         // dst = a + b
  IndexSub,         // dst = a - b
  IndexMul,         // dst = a * b
  IndexMin,         // dst = min(a, b)
  IndexMax,         // dst = max(a, b)
  IndexAnd,         // dst = a & b
  IndexShiftRight,  // dst = a >> imm, a >= 0
  IndexDivide,      // dst = a / b, a >= 0, b > 0; `narrow`: both are below 2^32
  IndexRemainder,   // dst = a % b, the same
  IndexLoad,        // dst = the integer at a (a Pointer), b and imm as in Load of `type`, where the mask c lets it
  // Pointer registers
  PointerSlot,  // dst = args[imm]
  PointerAdd,   // dst = a + b * imm (b: Index; imm: bytes)
  // Memory. Global: a is a Pointer, b an optional Index scaled by the type's size, imm bytes more.
  // Scratch: a is an optional Index in bytes, b as above, imm bytes more. c is an optional Mask: absent lanes load 0
  // and store nothing.
  Load,      // values: one register of `lanes` consecutive elements (simd), or consecutive elements of a thread
  LoadOne,   // dst = the element at the address, in all lanes
  Store,     // values: as Load; on simd machines two registers are two vectors side by side, without a mask
             // Either may go `backwards` in global memory (simd machines): lane t, of two vectors counted on, is the
             // element t before the address.
  Prefetch,  // a hint: the line at the address will be read soon; it need not exist      (simd machines)
  StoreOne,  // simd: lane 0 of values[0]; thread machines: every thread that c lets through stores values[0]
  // Lane and Mask registers
  LaneConstant,   // dst = the f64 whose bits imm holds, exact in the compute type, in all lanes
  LaneSlot,       // dst = the value of the compute type at args[imm], in all lanes
  LaneFromIndex,  // dst = a, rounded once, in all lanes
  LaneColumn,     // dst = a + imm + lane (simd) or a + imm (threads), rounded once; without a: a constant
  Random,         // dst = philox::uniform(d, b, column, imm2); a, b, d: Index. The column is a + imm + lane (simd) or
                  // a + imm (threads); count = 1: a + imm in all lanes; count = 4: a is a multiple of 4 (threads)
  LaneMove,       // dst = a
  Primitive,      // dst = op(a, b, c); imm: a shift, type: RoundTo's; conditions are Mask registers
  ShuffleXor,     // dst = a of the lane whose number is this one's ^ imm (within the group)
  LaneBit,        // dst mask = (lane & imm) != 0                             (thread machines)
  MaskBelow,      // dst mask = a + imm (+ lane on simd machines) < b
  MaskEqual,      // dst mask = a + imm == b, on simd machines in all lanes
  // Order
  Barrier,         // all threads of the team's block meet; scratch written before is seen after
  ClusterBarrier,  // all threads of the cluster's blocks meet; orders the opening of mailboxes and no scratch
  // Mailboxes: 8 bytes of scratch that count what blocks of a cluster send each other, so that nobody waits for more
  // than the numbers themselves: a barrier of the cluster would also wait for all earlier stores to memory.
  OpenMailbox,  // at imm2 in scratch; a ClusterBarrier stands before the first Send
  Send,         // values[0] to the scratch of block d, at a and b and imm as in Store, where the mask c lets it, and
                // into its mailbox at a + imm2
  Receive,      // until the mailbox at a + imm2 got `count` values, for the b-th time (b: even 0, odd 1)
  CopyAsync,    // thread machines: `count` elements from global (a, b, imm as in Load of `type`) to scratch at d + imm2
                // bytes, where the mask c lets it; the bytes are 4, 8 or 16 and both addresses multiples of that
  CopyCommit,   // closes a batch of copies
  CopyWait,     // until at most imm batches are under way: this thread's own copies are then visible to it
  // Control; the condition is a < b on Index registers (b absent: imm) and the same for all threads of a block
  // wherever a Barrier stands inside.
  While,
  If,  // body, else other
  // For readers of listings; in emitted bytes they leave nothing, but for notes in PTX.
  Note,  // Kernel::notes[imm]
  Name,  // Kernel::names[imm]: registers hold a value that the program names
};

using Values = Few<Reg>;

struct Instr;

// What a While or If encloses. Kernels have thousands of instructions and few of these: to others it is one word.
class Block {
 public:
  Block() = default;
  Block(std::vector<Instr> code);
  Block(const Block& from);
  Block(Block&&) = default;
  Block& operator=(Block from) {
    std::swap(code_, from.code_);
    return *this;
  }
  ~Block();
  bool empty() const;
  operator const std::vector<Instr>&() const;

 private:
  std::unique_ptr<std::vector<Instr>> code_;
};

struct Instr {
  Do code;
  Op op = Op::Number;
  Type type = Type::F32;
  Space space = Space::Global;
  Hint hint = Hint::None;
  bool backwards = false;
  bool narrow = false;
  Reg dst, a, b, c, d;
  std::int64_t imm = 0;
  std::int64_t imm2 = 0;
  int count = 0;
  Values values;
  Block body, other;
};

inline Block::Block(std::vector<Instr> code)
    : code_(code.empty() ? nullptr : std::make_unique<std::vector<Instr>>(std::move(code))) {}
inline Block::Block(const Block& from) : Block(static_cast<const std::vector<Instr>&>(from)) {}
inline Block::~Block() = default;
inline bool Block::empty() const { return !code_; }
inline Block::operator const std::vector<Instr>&() const {
  static const std::vector<Instr> none;
  return code_ ? *code_ : none;
}

// What stands in a slot of `args`: something of an array, or a number of the problem.
struct Slot {
  enum class What : std::uint8_t {
    // Of `array`
    Pointer,
    Stride,        // elements from row to row; of partial sums from one block's to the next's
    ColumnStride,  // elements from column to column, where that is not 1
    Every,         // entries between two jumps; `which` says which
    Jump,          // elements more
    Rows,          // of a table whose rows an operand picks
    Value,         // of a constant: bits of the compute type
    // Of the problem
    Columns,  // n
    // Of column sums; `array`: the class
    RowBlock,   // rows a team takes one after the other; the contract's row_block where there are column sums
    Blocks,     // row blocks in all
    SumNumber,  // which: of the class's numbers, a SumNumber
  };
  What what;
  int array = 0;  // as Program::array counts them, or one of the workspace below
  int which = 0;  // jumps of rows from 0 on, of columns from first_column_jump on
  bool operator==(const Slot&) const = default;
};
// The workspace's arrays, which no program names, count down.
inline constexpr int scratch_array = -1;  // simd machines: memory of this thread alone
inline constexpr int terms_array = -2;    // thread machines: [row block][Launch::terms][columns] of the compute type
// Of a class of column sums: [column sum][block][Stride] values of the compute type; over everything, Stride counts
// from one result's row sums to the next one's.
constexpr int partials_array(int sums) { return -3 - sums; }
constexpr bool is_partials(int array) { return array <= partials_array(0); }
constexpr int class_of_partials(int array) { return -3 - array; }

inline constexpr int first_column_jump = 8;

// Of column sums whose entries have rows of their own, or all rows: what their walk depends on.
enum class SumNumber : std::uint8_t {
  RowBlock,  // of entries of kind 0 (Shares::kind)
  RowBlock1,
  RowBlock2,
  Blocks,  // of an entry of kind 0
  Blocks1,
  Blocks2,
  LargestBlock,  // of RowBlock
  MostBlocks,    // of an entry: blocks are numbered entry * MostBlocks + block
  AllBlocks,     // of all entries
  Entries,       // rows of them
  Boundary,      // Shares::boundary
  Rows,
};
inline constexpr std::array<std::string_view, 12> sum_number_names = {
    "row_block",     "row_block_1", "row_block_2", "blocks",  "blocks_1", "blocks_2",
    "largest_block", "most_blocks", "all_blocks",  "entries", "boundary", "rows"};

// How a thread machine launches the kernel. Rows: grid = ceil(row blocks / teams) * cluster. Columns: ceil(entries /
// covered), where each row of entries is filled up to whole blocks.
struct Launch {
  int lanes = 1;                     // lanes a group (simd width, or threads up to 32)
  int groups = 1;                    // groups a team: what works on one row together
  int cluster = 1;                   // blocks that share a row; neighbours in the grid
  bool meets = false;                // they send each other sums: the machine has to run them side by side
  int resident = 0;                  // blocks that a processor is to hold at once; 0: unsaid
  int rows = 1;                      // rows a team takes, where no column sums say so
  int teams = 1;                     // teams a block
  std::int64_t columns_covered = 0;  // of a columns kernel: entries a block covers
  int terms = 0;                     // rows of terms that a row block keeps in the workspace
  int sums = -1;                     // the class whose row blocks it walks, or whose partial sums it adds up
  int threads() const { return lanes * groups * teams; }
};

struct Kernel {
  struct Named {
    std::string name;  // in the program
    Values registers;
  };
  std::string name;
  bool simd = true;
  Type compute = Type::F32;
  Launch launch;
  std::vector<Slot> slots;
  int operands = 0;  // of the program: arrays from here on are results
  int lane_count = 0, mask_count = 0, index_count = 0, pointer_count = 0;  // registers per bank
  std::int64_t scratch_bytes = 0;                                          // fixed part
  std::int64_t scratch_bytes_per_stripe = 0;  // simd machines: what grows with the number of columns
  std::vector<Instr> body;
  std::vector<std::string> notes;
  bool with_names = false;  // else Name is left out
  std::vector<Named> names;

  int slot(Slot wanted) const {
    for (std::size_t k = 0; k < slots.size(); ++k)
      if (slots[k] == wanted) return static_cast<int>(k);
    return -1;
  }
};

// Column sums, or maxima, whose entries share the same rows and are as many (schedule/sum_classes.hpp).
struct SumClass {
  Indexing where;
  Op op = Op::Sum;                // or Amax: how two values become one
  bool of_groups = false;         // of columns, summed inside the row first
  std::vector<int> results = {};  // in order of their partials
  std::int64_t row_block = 0;     // other rows of a block than the contract's
  bool in_teams = false;          // thread machines: a team takes all blocks of an entry, and no partial sums are kept

  bool over_everything() const { return !where.row.present && !where.column.present; }
  bool by_blocks() const { return !over_everything(); }  // of rows
};

// What `lower` makes of a program: all kernels share one layout of slots.
struct Kernels {
  Kernel rows;
  // Thread machines walk one class's row blocks a kernel: these, which store nothing but partial sums, run before
  // `rows`, which may write over what they read.
  std::vector<Kernel> before;
  std::vector<Kernel> columns;  // simd machines: none or one, for all classes in turn; thread machines: one a class
  std::vector<SumClass> sums;   // those by blocks first
};

// A listing: launch, slots, then one instruction a line. f: Lane registers, m: Mask, x: Index, p: Pointer.
std::string print(const Kernel& kernel);

// One line of it; of While and If their head. The kernel says which machine is meant.
std::string print(const Instr& instr, const Kernel& kernel);

}  // namespace trireme
