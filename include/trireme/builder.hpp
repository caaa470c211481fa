// Row programs written in C++ instead of text; docs/language.md has the language.
//
//   ProgramBuilder build("rms_norm");
//   Expr x = build.operand("x[i,j]"), gamma = build.operand("gamma[j]", 1), eps = build.constant("eps", 1e-6);
//   build.result("y[i,j]"), build.result("rstd[i]");
//   Expr rstd = build.line("rstd", rsqrt(mean(x * x) + eps));
//   build.line("y", x * rstd * gamma);
//   RowProgram program = build.build().value();
//
// Nothing here throws or stops the process. The first mistake (a condition taken for a value, an unknown name, values
// of two builders in one expression, an Expr that was never made) is kept, and build() gives it back.
#pragma once
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trireme/export.hpp"
#include "trireme/program.hpp"
#include "trireme/result.hpp"

namespace trireme {

struct BuilderState;

// A value or condition of a program under construction; cheap to copy. It may outlive its builder.
class TRIREME_API Expr {
 public:
  Expr(const Expr&) = default;  // and no move, which would leave one behind that is nobody's
  Expr& operator=(const Expr&) = default;
  Expr() = default;                                              // none
  Expr(double number) : kind_(Kind::Number), number_(number) {}  // of whatever program uses it

 private:
  friend struct BuilderState;
  enum class Kind : std::uint8_t { None, Number, Node, Wrong };
  std::shared_ptr<BuilderState> state_;
  Kind kind_ = Kind::None;
  std::uint32_t node_ = 0;
  double number_ = 0;
};

// One builder makes one program, in one thread. Declarations are written as in the language: "x[i,j]",
// "gamma[i % groups, j / pixels]", "scale[]".
class TRIREME_API ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string_view name);
  ProgramBuilder(const ProgramBuilder&) = default;  // another handle of the same program
  ProgramBuilder& operator=(const ProgramBuilder&) = default;

  // In the order of the signature. Operands and constants with a default may be absent.
  Expr operand(std::string_view declaration);
  Expr operand(std::string_view declaration, Expr default_value);
  Expr constant(std::string_view name);
  Expr constant(std::string_view name, double default_value);
  // A default that reads what is declared after its operand, as those of a backward's saved results do.
  void default_value(std::string_view operand, Expr value);
  void result(std::string_view declaration);              // a line gives its value
  Expr result(std::string_view declaration, Expr value);  // both at once

  // `NAME = value`: the value of a result, or a name for readers. Gives the value back.
  Expr line(std::string_view name, Expr value);
  Expr operator[](std::string_view name) const;  // an operand, constant, line or result that has its value

  Expr i() const;  // the indices, as numbers
  Expr j() const;
  Expr n() const;  // the number of columns
  Expr number(double value) const;
  Expr largest(std::string_view operand_or_result) const;  // the largest finite value of its storage type

  Result<std::string> text() const;  // the program as the language writes it
  Result<RowProgram> build() const;  // that text, read; or the first mistake

 private:
  std::shared_ptr<BuilderState> state_;
};

TRIREME_API Expr operator+(const Expr& a, const Expr& b);
TRIREME_API Expr operator-(const Expr& a, const Expr& b);
TRIREME_API Expr operator*(const Expr& a, const Expr& b);
TRIREME_API Expr operator/(const Expr& a, const Expr& b);
TRIREME_API Expr operator-(const Expr& a);
TRIREME_API Expr operator%(const Expr& a, const Expr& b);  // of a group's index alone: sum(x, build.j() % 4)
TRIREME_API Expr operator<(const Expr& a, const Expr& b);
TRIREME_API Expr operator<=(const Expr& a, const Expr& b);
TRIREME_API Expr operator>(const Expr& a, const Expr& b);
TRIREME_API Expr operator>=(const Expr& a, const Expr& b);
TRIREME_API Expr operator==(const Expr& a, const Expr& b);
TRIREME_API Expr operator!=(const Expr& a, const Expr& b);
TRIREME_API Expr operator&&(const Expr& a, const Expr& b);  // C++ also spells these `and`, `or`, `not`
TRIREME_API Expr operator||(const Expr& a, const Expr& b);
TRIREME_API Expr operator!(const Expr& a);

// Any function of the language by its name; those below are the same.
TRIREME_API Expr call(std::string_view function, std::span<const Expr> args);
inline Expr call(std::string_view function, std::initializer_list<Expr> args) {
  return call(function, std::span<const Expr>(args.begin(), args.size()));
}
// `a` rounded to the storage type of an operand or result.
TRIREME_API Expr cast(const Expr& a, std::string_view operand_or_result);
// The same, up or down by chance: `random` in [0, 1) is what is left of the way to the next value.
TRIREME_API Expr cast_stochastic(const Expr& a, std::string_view operand_or_result, const Expr& random);
// Uniform in [0, 1), for each element its own; `seed` is an operand with one value, i64, and each use has its stream.
TRIREME_API Expr random(const Expr& seed, std::uint32_t stream);
// The same for a part of a whole, whose row 0 and column 0 are these of it: of constants and numbers.
TRIREME_API Expr random(const Expr& seed, std::uint32_t stream, const Expr& first_row, const Expr& first_column);

inline Expr abs(const Expr& a) { return call("abs", {a}); }
inline Expr sqrt(const Expr& a) { return call("sqrt", {a}); }
inline Expr rsqrt(const Expr& a) { return call("rsqrt", {a}); }
inline Expr min(const Expr& a, const Expr& b) { return call("min", {a, b}); }
inline Expr max(const Expr& a, const Expr& b) { return call("max", {a, b}); }
inline Expr fma(const Expr& a, const Expr& b, const Expr& c) { return call("fma", {a, b, c}); }
inline Expr floor(const Expr& a) { return call("floor", {a}); }
inline Expr round(const Expr& a) { return call("round", {a}); }  // ties to even
inline Expr select(const Expr& condition, const Expr& a, const Expr& b) { return call("select", {condition, a, b}); }
inline Expr exp(const Expr& a) { return call("exp", {a}); }
inline Expr log(const Expr& a) { return call("log", {a}); }
inline Expr expm1(const Expr& a) { return call("expm1", {a}); }
inline Expr log1p(const Expr& a) { return call("log1p", {a}); }
inline Expr tanh(const Expr& a) { return call("tanh", {a}); }
inline Expr sigmoid(const Expr& a) { return call("sigmoid", {a}); }
inline Expr erf(const Expr& a) { return call("erf", {a}); }
inline Expr silu(const Expr& a) { return call("silu", {a}); }
inline Expr gelu(const Expr& a) { return call("gelu", {a}); }
inline Expr gelu_tanh(const Expr& a) { return call("gelu_tanh", {a}); }
inline Expr gelu_slope(const Expr& a) { return call("gelu_slope", {a}); }  // the derivative of gelu
inline Expr relu(const Expr& a) { return call("relu", {a}); }
inline Expr softplus(const Expr& a) { return call("softplus", {a}); }
inline Expr square(const Expr& a) { return call("square", {a}); }
inline Expr sign(const Expr& a) { return call("sign", {a}); }
inline Expr clamp(const Expr& a, const Expr& low, const Expr& high) { return call("clamp", {a, low, high}); }
inline Expr exponent_ceil(const Expr& a) { return call("exponent_ceil", {a}); }    // a power of two, not below |a|
inline Expr exponent_floor(const Expr& a) { return call("exponent_floor", {a}); }  // not above
inline Expr sum(const Expr& a) { return call("sum", {a}); }                        // of a row
inline Expr mean(const Expr& a) { return call("mean", {a}); }
inline Expr amax(const Expr& a) { return call("amax", {a}); }
inline Expr variance(const Expr& a) { return call("variance", {a}); }
inline Expr logsumexp(const Expr& a) { return call("logsumexp", {a}); }
inline Expr softmax(const Expr& a) { return call("softmax", {a}); }
inline Expr amin(const Expr& a) { return call("amin", {a}); }
// Inside groups of columns, build.j() / 32 or build.j() % 4.
inline Expr sum(const Expr& a, const Expr& group) { return call("sum", {a, group}); }
inline Expr mean(const Expr& a, const Expr& group) { return call("mean", {a, group}); }
inline Expr amax(const Expr& a, const Expr& group) { return call("amax", {a, group}); }
inline Expr amin(const Expr& a, const Expr& group) { return call("amin", {a, group}); }
// What sum, mean, amax and amin run over: once over each group's value.
inline Expr entries(const Expr& a, const Expr& group) { return call("entries", {a, group}); }
inline Expr colsum(const Expr& a) { return call("colsum", {a}); }  // the whole value of a result
inline Expr colmax(const Expr& a) { return call("colmax", {a}); }  // the same
inline Expr rotate(const Expr& a, const Expr& columns) { return call("rotate", {a, columns}); }
inline Expr stop_gradient(const Expr& a) { return call("stop_gradient", {a}); }

}  // namespace trireme
