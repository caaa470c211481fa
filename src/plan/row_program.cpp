#include "language/parse.hpp"
#include "language/print.hpp"
#include "language/print_expression.hpp"
#include "math/reductions.hpp"
#include "passes/absent.hpp"
#include "passes/passes.hpp"
#include "plan/check.hpp"
#include "plan/ops.hpp"
#include "support/out_of_memory.hpp"
#include "trireme/builder.hpp"
#include "trireme/program.hpp"

namespace trireme {

Result<RowProgram> RowProgram::parse(std::string_view text) {
  return or_out_of_memory([&]() -> Result<RowProgram> {
    TRIREME_TRY(program, trireme::parse(text));
    auto shared = std::make_shared<const Program>(std::move(program));
    return RowProgram(shared, shared);
  });
}

Result<RowProgram> RowProgram::named(std::string_view name) {
  return or_out_of_memory([&]() -> Result<RowProgram> {
    TRIREME_TRY(program, find_program(name));
    auto shared = std::make_shared<const Program>(std::move(program));
    return RowProgram(shared, shared);
  });
}

std::vector<std::string> RowProgram::names() {
  std::vector<std::string> names;
  for (const OperatorText& each : operator_texts()) names.emplace_back(each.name);
  return names;
}

Result<RowProgram> RowProgram::differentiate(const DifferentiateOptions& options) const {
  return or_out_of_memory([&]() -> Result<RowProgram> {
    if (!program_) return Error{Code::InvalidArgument, "there is no program to differentiate"};
    TRIREME_TRY(backward, trireme::differentiate(*program_, options));
    return RowProgram(program_, std::make_shared<const Program>(std::move(backward)));
  });
}

// What it makes goes through its text, so that it is no other program than the language could say.
Result<RowProgram> RowProgram::without(const std::set<std::string>& absent) const {
  return or_out_of_memory([&]() -> Result<RowProgram> {
    if (!program_) return Error{Code::InvalidArgument, "there is no program whose operands could be absent"};
    auto wrong = [&](const std::string& what) { return Error{Code::InvalidArgument, program_->name + what}; };
    if (is_backward()) return wrong(" is a backward: take that of the program without the operands");
    for (const std::string& name : absent) {
      const std::optional<std::size_t> k = program_->find_operand(name);
      if (!k || program_->operands[*k].constant)
        return wrong(" has no operand '" + name + "' in memory that could be absent");
      if (program_->operands[*k].fallback == no_node)
        return wrong(": '" + name + "' has no default, and is not absent");
    }
    return RowProgram::parse(trireme::print(without_absent(*program_, absent)));
  });
}

Result<RowProgram> RowProgram::compose() const {
  return or_out_of_memory([&]() -> Result<RowProgram> {
    if (!program_) return Error{Code::InvalidArgument, "there is no program to compose"};
    auto made = std::make_shared<const Program>(trireme::compose(*program_));
    return RowProgram(made, made);
  });
}

Result<std::vector<RowProgram::Phase>> RowProgram::split() const {
  return or_out_of_memory([&]() -> Result<std::vector<Phase>> {
    if (!program_) return Error{Code::InvalidArgument, "there is no program to split"};
    TRIREME_TRY(stages, trireme::split(*program_));
    auto shared = [](Program program) {
      auto made = std::make_shared<const Program>(std::move(program));
      return RowProgram(made, made);
    };
    std::vector<Phase> phases;
    for (SplitStage& stage : stages) {
      phases.push_back({shared(std::move(stage.program))});
      Phase& phase = phases.back();
      phase.groups = std::move(stage.groups);
      for (const trireme::Exchange& each : stage.exchanges) {
        const bool folds = each.op == Op::Fold;
        Exchange made{.reduction = std::string(folds ? fold_name(each.fold) : facts(each.op).name),
                      .names = {each.name},
                      .combine = shared(combine_program(each))};
        if (folds) made.names.push_back(each.second);
        phase.exchanges.push_back(std::move(made));
      }
    }
    return phases;
  });
}

std::string print(const std::vector<RowProgram::Phase>& phases) {
  std::string text;
  for (std::size_t k = 0; k < phases.size(); ++k) {
    text += "# phase " + std::to_string(k + 1) + " of " + std::to_string(phases.size()) +
            ": each machine, on its own columns";
    for (std::size_t g = 0; g < phases[k].groups.size(); ++g)
      text += (g ? ", " : ", whole groups of ") + phases[k].groups[g];
    text += "\n" + phases[k].program.print();
    for (const RowProgram::Exchange& each : phases[k].exchanges) {
      std::string names;
      for (const std::string& name : each.names) names += (names.empty() ? "" : ", ") + name;
      text += "# exchange " + names + ": " + each.reduction + "\n";
      std::string combine = each.combine.print();
      for (std::size_t at = 0; at < combine.size(); at = combine.find('\n', at) + 1)
        combine.insert(at, "#   "), at += 4;
      text += combine;
    }
  }
  return text;
}

// What was built goes through its text, so that it is no other program than the language could say.
Result<RowProgram> ProgramBuilder::build() const {
  return or_out_of_memory([&]() -> Result<RowProgram> {
    TRIREME_TRY(written, text());
    return RowProgram::parse(written);
  });
}

namespace {
const Program none;  // what a RowProgram that was never made shows
}

RowProgram::RowProgram(std::shared_ptr<const Program> forward, std::shared_ptr<const Program> program)
    : forward_(std::move(forward)), program_(std::move(program)) {}

const Program& RowProgram::graph() const { return program_ ? *program_ : none; }
const Program& RowProgram::forward() const { return forward_ ? *forward_ : none; }
const std::string& RowProgram::name() const { return graph().name; }
std::string RowProgram::print() const { return program_ ? trireme::print(*program_) : ""; }

std::vector<RowProgram::Parameter> RowProgram::signature() const {
  std::vector<Parameter> parameters;
  const Program& program = graph();
  for (const Operand& each : program.operands) {
    Parameter parameter{each.name, each.constant ? Kind::Constant : Kind::Operand,
                        each.constant ? "" : spread_text(program, each.spread), each.fallback != no_node};
    if (parameter.optional) parameter.fallback = default_number(program, each);
    parameters.push_back(std::move(parameter));
  }
  for (const Output& each : program.results)
    parameters.push_back({each.name, Kind::Result, spread_text(program, each.spread)});
  return parameters;
}

}  // namespace trireme
