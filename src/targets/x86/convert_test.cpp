// Storage types: every pattern of the small ones, rounding at every midpoint, tails at guard pages.
#include <algorithm>
#include <random>

#include "targets/x86/emit_test.hpp"

namespace trireme::x86 {
namespace {

const Body identity = [](Builder&, const std::vector<Reg>& in) { return in[0]; };

std::vector<Type> storage_types(Type compute) {
  std::vector<Type> types;
  for (const TypeFacts& each : type_facts)
    if (!is_packed(each.type) && (each.type != Type::F64 || compute == Type::F64)) types.push_back(each.type);
  return types;
}

std::vector<std::uint8_t> encode(const std::vector<double>& values, Type type) {
  std::vector<std::uint8_t> out(values.size() * bytes(type));
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (type == Type::F64) std::memcpy(&out[k * 8], &values[k], 8);
    if (type == Type::F32) {
      float value = static_cast<float>(values[k]);
      std::memcpy(&out[k * 4], &value, 4);
    }
  }
  return out;
}

// Runs `kernel` (n, in, out) with both buffers at the given edges.
void run_guarded(const Kernel& kernel, Isa isa, const std::vector<std::uint8_t>& in, std::int64_t n,
                 std::vector<std::uint8_t>& out, Guarded::Edge edge = Guarded::Edge::End) {
  Guarded from(in.size(), edge), to(out.size(), edge);
  std::copy(in.begin(), in.end(), reinterpret_cast<std::uint8_t*>(from.data()));
  run(kernel, isa, {static_cast<std::uint64_t>(n), slot_of(from.data()), slot_of(to.data())});
  EXPECT_TRUE(from.intact() && to.intact());
  std::copy_n(reinterpret_cast<const std::uint8_t*>(to.data()), out.size(), out.begin());
}

std::vector<std::uint8_t> patterns(Type type) {
  std::vector<std::uint8_t> out;
  if (bytes(type) == 1)
    for (unsigned k = 0; k < 256; ++k) out.push_back(static_cast<std::uint8_t>(k));
  else if (bytes(type) == 2)
    for (unsigned k = 0; k < 65536; ++k)
      out.insert(out.end(), {static_cast<std::uint8_t>(k), static_cast<std::uint8_t>(k >> 8)});
  else {
    std::mt19937_64 random(7);
    out.resize(bytes(type) * 4099);
    for (std::uint8_t& each : out) each = static_cast<std::uint8_t>(random());
  }
  return out;
}

TEST(Convert, EveryPatternWidensAndComesBack) {
  on_each([](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      const std::vector<std::uint8_t> in = patterns(type);
      const std::size_t n = in.size() / bytes(type);
      std::vector<std::uint8_t> wide(n * bytes(compute)), back(in.size()), in_twos(in.size());
      run_guarded(elementwise(isa, compute, {type}, compute, identity), isa, in, n, wide);
      run_guarded(elementwise(isa, compute, {type}, type, identity), isa, in, n, back);
      run_guarded(elementwise(isa, compute, {type}, type, identity, Hint::None, true), isa, in, n, in_twos);
      EXPECT_EQ(in_twos, back);
      for (std::size_t k = 0; k < n; ++k) {
        const double value = element_value(&in[k * bytes(type)], type);
        const double want = rounded(value, compute);
        ASSERT_TRUE(same(element_value(&wide[k * bytes(compute)], compute), want)) << k << " " << value;
        ASSERT_TRUE(same(element_value(&back[k * bytes(type)], type), rounded(want, type))) << k << " " << value;
      }
    }
  });
}

int count(std::string_view text, std::string_view word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// Two vectors share the narrowing and the store; what the type holds is not rounded again.
TEST(Convert, TwoVectorsOfBf16AreStoredAsOne) {
  for (Isa isa : {Isa::Avx2, Isa::Avx512}) {
    SCOPED_TRACE(label(isa, Type::F32));
    const auto listing = [&](bool round) {
      Builder b(isa, Type::F32, 2);
      const Reg from = b.pointer_slot(0), to = b.pointer_slot(1);
      Reg low = b.load(Type::F32, from), high = b.load(Type::F32, from, {}, {}, 4 * b.width());
      if (round)
        for (Reg* each : {&low, &high}) *each = b.primitive(Op::RoundTo, *each, {}, {}, 0, Type::BF16);
      b.add({.code = Do::Store, .type = Type::BF16, .a = to, .values = {low, high}});
      return emit(b.kernel, isa, true).value().listing;
    };
    const std::string once = listing(false), exact = listing(true);
    EXPECT_EQ(count(once, "vcmpps"), 2);
    EXPECT_EQ(count(exact, "vcmpps"), 2) << exact;  // those of the roundings themselves
    for (const std::string& each : {once, exact}) {
      if (isa == Isa::Avx2) EXPECT_EQ(count(each, "vpackusdw"), 1) << each;
      EXPECT_EQ(count(each, "vmovups ["), 1) << each;
    }
  }
}

// Values where rounding can go wrong: each code's value, the midpoint to the next, and both sides of it.
std::vector<double> hard_values(Type type, Type compute) {
  std::vector<double> out = special_values();
  std::mt19937_64 random(11);
  if (!is_integer(type) && bytes(type) <= 2) {
    std::vector<std::uint8_t> codes = patterns(type);
    for (std::size_t at = 0; at + bytes(type) < codes.size(); at += bytes(type)) {
      const double a = element_value(&codes[at], type), b = element_value(&codes[at + bytes(type)], type);
      const double middle = a / 2 + b / 2;
      if (!std::isfinite(middle)) continue;
      if (compute == Type::F32) {
        const float m = static_cast<float>(middle);
        for (float x : {static_cast<float>(a), m, std::nextafterf(m, 0), std::nextafterf(m, INFINITY)})
          out.push_back(x);
      } else {
        for (double x : {a, middle, std::nextafter(middle, -INFINITY), std::nextafter(middle, INFINITY),
                         middle * (1 + 0x1p-40), middle * (1 - 0x1p-40)})
          out.push_back(x);
      }
    }
  }
  for (int k = 0; k < 20000; ++k) {
    if (compute == Type::F32) out.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    else out.push_back(std::bit_cast<double>(random()));
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 64) - 24);
    out.push_back(rounded((static_cast<double>(random() % 2000001) - 1000000) * 1e-6 * scale, compute));
    out.push_back((static_cast<double>(random() % 1025) - 512) * 0.5);
  }
  return out;
}

TEST(Convert, StoresRoundOnceToNearestEven) {
  on_each([](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      const std::vector<double> values = hard_values(type, compute);
      const std::vector<std::uint8_t> in = encode(values, compute);
      std::vector<std::uint8_t> out(values.size() * bytes(type)), in_twos(out.size()), again(in.size());
      std::vector<std::uint8_t> rounded_first(out.size());
      run_guarded(elementwise(isa, compute, {compute}, type, identity), isa, in, values.size(), out);
      run_guarded(elementwise(isa, compute, {compute}, type, identity, Hint::None, true), isa, in, values.size(),
                  in_twos);
      EXPECT_EQ(in_twos, out);
      const Body round_to = [&](Builder& b, const std::vector<Reg>& x) {
        return b.primitive(Op::RoundTo, x[0], {}, {}, 0, type);
      };
      run_guarded(elementwise(isa, compute, {compute}, compute, round_to), isa, in, values.size(), again);
      for (bool twos : {false, true}) {
        run_guarded(elementwise(isa, compute, {compute}, type, round_to, Hint::None, twos), isa, in, values.size(),
                    rounded_first);
        for (std::size_t at = 0; at < out.size(); at += bytes(type))
          ASSERT_TRUE(same(element_value(&rounded_first[at], type), element_value(&out[at], type)));
      }
      for (std::size_t k = 0; k < values.size(); ++k) {
        const double x = element_value(&in[k * bytes(compute)], compute), want = rounded(x, type);
        ASSERT_TRUE(same(element_value(&out[k * bytes(type)], type), want))
            << x << " got " << element_value(&out[k * bytes(type)], type) << " want " << want;
        ASSERT_TRUE(same(element_value(&again[k * bytes(compute)], compute), rounded(want, compute)));
      }
    }
  });
}

// 0 .. lanes elements: nothing but them is read or written.
TEST(Convert, TailsOfEveryLengthStayInside) {
  on_each([](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      const std::vector<std::uint8_t> codes = patterns(type);
      const Kernel kernel = elementwise(isa, compute, {type}, type, identity);
      for (int n = 0; n <= 2 * lanes(isa, compute); ++n)
        for (Guarded::Edge edge : {Guarded::Edge::Begin, Guarded::Edge::End}) {
          std::vector<std::uint8_t> in(codes.begin(), codes.begin() + n * bytes(type)), out(in.size());
          run_guarded(kernel, isa, in, n, out, edge);
          for (int k = 0; k < n; ++k)
            ASSERT_TRUE(same(element_value(&out[k * bytes(type)], type),
                             rounded(rounded(element_value(&in[k * bytes(type)], type), compute), type)))
                << n << " " << k;
        }
    }
  });
}

// Loads, stores or both from the last element to the first: full vectors (first two at a time, if wanted), then a
// masked tail.
struct Turned {
  bool load, store, in_twos;
  Hint hint;
};

Kernel turned(Isa isa, Type compute, Type from_type, Type to_type, const Turned& how) {
  Builder b(isa, compute, 3);
  Reg n = b.index_slot(0), j = b.index_constant(0), zero = b.index_constant(0), from = b.pointer_slot(1),
      to = b.pointer_slot(2);
  const auto size = static_cast<std::int64_t>(bytes(from_type));
  auto index = [&](bool backwards) { return backwards ? b.index_op(Do::IndexSub, zero, j) : j; };
  auto load = [&](Reg mask, std::int64_t more) {
    Reg value = b.lane();
    b.add({.code = Do::Load,
           .type = from_type,
           .backwards = how.load,
           .a = from,
           .b = index(how.load),
           .c = mask,
           .imm = (how.load ? -more : more) * size,
           .values = {value}});
    return value;
  };
  auto step = [&](Values values, Reg mask) {
    b.add({.code = Do::Store,
           .type = to_type,
           .hint = how.hint,
           .backwards = how.store,
           .a = to,
           .b = index(how.store),
           .c = mask,
           .values = values});
    b.add({.code = Do::IndexAdd, .dst = j, .a = j, .imm = static_cast<std::int64_t>(values.size()) * b.width()});
  };
  if (how.in_twos)
    b.inside({.code = Do::While, .a = j, .b = b.index_op(Do::IndexAnd, n, {}, -2 * b.width())}, [&] {
      Reg low = load({}, 0), high = load({}, b.width());
      step({low, high}, {});
    });
  b.inside({.code = Do::While, .a = j, .b = b.index_op(Do::IndexAnd, n, {}, -b.width())},
           [&] { step({load({}, 0)}, {}); });
  Reg mask = b.mask_below(j, n);
  step({load(mask, 0)}, mask);
  return b.kernel;
}

// As the same elements the other way round: every type, tails of every length between pages that nobody may touch.
TEST(Convert, Backwards) {
  on_each([](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      const std::vector<std::uint8_t> hard = encode(hard_values(type, compute), compute), codes = patterns(type);
      auto check = [&](Type from_type, Type to_type, const std::vector<std::uint8_t>& all, std::size_t n,
                       const Turned& how, Guarded::Edge edge) {
        const std::size_t in_size = bytes(from_type), out_size = bytes(to_type);
        std::vector<std::uint8_t> in(all.begin(), all.begin() + n * in_size), wanted(n * out_size);
        run_guarded(elementwise(isa, compute, {from_type}, to_type, identity), isa, in, n, wanted);
        Guarded from(in.size(), edge), to(wanted.size(), edge);
        std::copy(in.begin(), in.end(), from.data());
        run(turned(isa, compute, from_type, to_type, how), isa,
            {n, slot_of(from.data()) + (how.load ? (n - 1) * in_size : 0),
             slot_of(to.data()) + (how.store ? (n - 1) * out_size : 0)});
        ASSERT_TRUE(from.intact() && to.intact());
        for (std::size_t k = 0; k < n; ++k)
          ASSERT_EQ(std::memcmp(to.data() + (how.store ? n - 1 - k : k) * out_size,
                                &wanted[(how.load ? n - 1 - k : k) * out_size], out_size),
                    0)
              << n << " elements, " << k << ": load " << how.load << " store " << how.store << " twos " << how.in_twos;
      };
      for (Turned way : {Turned{true, false}, Turned{false, true}, Turned{true, true}})
        for (bool in_twos : {false, true})
          for (Hint hint : {Hint::None, Hint::Streaming}) {
            way.in_twos = in_twos, way.hint = hint;
            check(type, compute, codes, std::min<std::size_t>(codes.size() / bytes(type), 5003), way,
                  Guarded::Edge::End);
            check(compute, type, hard, std::min<std::size_t>(hard.size() / bytes(compute), 5003), way,
                  Guarded::Edge::Begin);
            if (hint == Hint::Streaming) continue;
            for (int n = 0; n <= 3 * lanes(isa, compute); n += 1 + in_twos)
              for (Guarded::Edge edge : {Guarded::Edge::Begin, Guarded::Edge::End})
                check(type, type, codes, n, way, edge);
          }
    }
  });
}

// Any mask, not only a tail's: lanes where x < 0 are stored over a canary, and read as 0 elsewhere.
void check_any_mask(bool backwards) {
  on_each([&](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      Builder b(isa, compute, 4);
      Reg zero = b.constant(0), seen = b.pointer_slot(2);
      Reg choice = b.load(compute, b.pointer_slot(0));
      Reg mask = b.primitive(Op::Less, choice, zero);
      Reg value = b.load(type, b.pointer_slot(1), {}, mask);
      b.kernel.body.back().backwards = backwards;
      b.store(compute, value, seen);
      b.store(type, value, b.pointer_slot(3), {}, mask);
      b.kernel.body.back().backwards = backwards;
      const int n = lanes(isa, compute);
      for (int pattern = 0; pattern < 64; ++pattern) {
        Guarded choices(n * bytes(compute), Guarded::Edge::End), in(n * bytes(type), Guarded::Edge::End),
            values(n * bytes(compute), Guarded::Edge::End), out(n * bytes(type), Guarded::Edge::End);
        std::vector<double> chosen;
        for (int k = 0; k < n; ++k) chosen.push_back((pattern * 0x9E3779B1u >> (k + 8) & 1) ? -1 : 1);
        std::memcpy(choices.data(), encode(chosen, compute).data(), choices.bytes());
        const std::vector<std::uint8_t> codes = patterns(type);
        std::memcpy(in.data(), codes.data() + codes.size() / 4, in.bytes());
        auto at = [&](Guarded& array, int lane) {
          return array.data() + (backwards ? n - 1 - lane : lane) * bytes(type);
        };
        run(b.kernel, isa, {slot_of(choices.data()), slot_of(at(in, 0)), slot_of(values.data()), slot_of(at(out, 0))});
        for (int k = 0; k < n; ++k) {
          const double x = rounded(element_value(at(in, k), type), compute);
          ASSERT_TRUE(same(element_value(values.data() + k * bytes(compute), compute), chosen[k] < 0 ? x : 0));
          if (chosen[k] < 0) ASSERT_TRUE(same(element_value(at(out, k), type), rounded(x, type)));
          else ASSERT_EQ(*at(out, k), Guarded::canary);
        }
      }
    }
  });
}

TEST(Convert, AnyMask) { check_any_mask(false); }
TEST(Convert, AnyMaskBackwards) { check_any_mask(true); }

TEST(Convert, OneElementAtAPagesEdge) {
  on_each([](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      for (bool masked : {false, true})
        for (std::int64_t last : {0, 1, 2}) {
          Builder b(isa, compute, 3);
          Reg mask = b.mask_below(b.index_constant(0), b.add({.code = Do::IndexArgument, .dst = b.index(), .imm = 1}));
          Reg value = b.lane(), none = Reg{Bank::Mask, -1};
          b.add({.code = Do::LoadOne, .type = type, .dst = value, .a = b.pointer_slot(0), .c = masked ? mask : none});
          b.store(compute, value, b.pointer_slot(1));
          b.add({.code = Do::StoreOne,
                 .type = type,
                 .a = b.pointer_slot(2),
                 .c = masked ? mask : none,
                 .values = {value}});
          const int n = lanes(isa, compute);
          Guarded in(bytes(type), Guarded::Edge::End), all(n * bytes(compute), Guarded::Edge::End),
              out(bytes(type), Guarded::Edge::End);
          const std::vector<std::uint8_t> codes = patterns(type);
          std::memcpy(in.data(), codes.data() + codes.size() / 4 + bytes(type), bytes(type));
          const bool nothing = masked && last == 0;  // then the addresses may be anything
          run(b.kernel, isa, {nothing ? 8 : slot_of(in.data()), slot_of(all.data()), nothing ? 8 : slot_of(out.data())},
              0, last);
          EXPECT_TRUE(all.intact() && out.intact());
          const double x = rounded(element_value(in.data(), type), compute);
          for (int k = 0; k < n; ++k)
            ASSERT_TRUE(same(element_value(all.data() + k * bytes(compute), compute), masked && k >= last ? 0 : x));
          if (!nothing) {
            EXPECT_TRUE(same(element_value(out.data(), type), rounded(x, type)));
          }
        }
    }
  });
}

TEST(Convert, StreamingStoresWhateverTheAlignment) {
  on_each([](Isa isa, Type compute) {
    for (Type type : storage_types(compute)) {
      SCOPED_TRACE(name(type));
      const std::vector<std::uint8_t> codes = patterns(type);
      const int n = 5 * lanes(isa, compute) + 1;
      for (std::size_t shift : {std::size_t{0}, bytes(type), std::size_t{16}, std::size_t{32}, std::size_t{64}}) {
        const Kernel kernel = elementwise(isa, compute, {type}, type, identity, Hint::Streaming, shift % 32 == 0);
        Guarded in(n * bytes(type), Guarded::Edge::End), out(n * bytes(type), Guarded::Edge::Begin, shift);
        std::memcpy(in.data(), codes.data(), std::min(in.bytes(), codes.size()));
        run(kernel, isa, {static_cast<std::uint64_t>(n), slot_of(in.data()), slot_of(out.data())});
        EXPECT_TRUE(out.intact());
        for (int k = 0; k < n; ++k)
          ASSERT_TRUE(same(element_value(out.data() + k * bytes(type), type),
                           rounded(rounded(element_value(in.data() + k * bytes(type), type), compute), type)));
      }
    }
  });
}

}  // namespace
}  // namespace trireme::x86
