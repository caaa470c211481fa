// Plans on a GPU that is only a listener (fake_driver.c): what is launched, where and when, and every refusal.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <trireme.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>

#include "devices/arguments.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "devices/cuda/fake_process_for_test.hpp"
#include "plan/check.hpp"
#include "plan/devices.hpp"
#include "plan/run_counts_for_test.hpp"
#include "trireme/plan.hpp"

namespace trireme {
namespace {

// Memory that nobody reads.
template <typename T = std::byte>
T* somewhere(std::uint64_t k) {
  return reinterpret_cast<T*>((k + 1) << 32);
}

void set_all(const Plan& plan, Args& args) {
  for (std::size_t k = 0; k < plan.array_count(); ++k) {
    const Plan::Array array = plan.array(k);
    args[array.name] = View{somewhere(k), array.type};
  }
}

RowProgram rms_norm() { return RowProgram::named("rms_norm").value(); }
Device gpu(int k = 0) { return Device::cuda(k).value(); }

class CudaPlan : public FakeProcess {};

TEST_F(CudaPlan, LaunchesOnTheStreamAndLeavesTheContextAlone) {
  run("", [](const Fake& fake) {
    Plan plan = Plan::create(gpu(), {.program = rms_norm().differentiate().value(), .shape = {64, 4096}}).value();
    expect(plan.sku().device == "cuda" && plan.sku().kernel_hash.size() == 16, plan.describe());
    Args args = plan.args();
    set_all(plan, args);
    Workspace workspace = plan.make_workspace().value();
    int stream = 0;
    plan.run(args, {&stream}, workspace.span()).value();
    std::vector<FakeLaunch> launches = fake.launches();
    expect(launches.size() == 2, "two launches");
    expect(std::string(launches[0].name) == "rms_norm_backward", launches[0].name);
    expect(std::string(launches[1].name) == "rms_norm_backward_columns", launches[1].name);
    expect(launches[0].stream == &stream && launches[1].stream == &stream, "the caller's stream");
    expect(launches[0].first == 0 && launches[0].last == 64 && launches[0].total == 64, "all rows");
    expect(launches[0].grid[0] > 1 && launches[0].grid[1] == 1, "a grid along x");
    args["x"] = View{somewhere(77)};
    const Counts before = counts_now();
    Status first = plan.run(args, {&stream}, workspace.span()), second = plan.run(args, {&stream}, workspace.span());
    const Counts after = counts_now();
    expect(first && second && print(after) == print(before),
           "no allocation, lock or look-up: " + print(before) + ", then " + print(after));
    fake.launches();
    // fault 24: the legacy and the per-thread default stream are handles like others.
    for (std::uintptr_t handle : {0, 1, 2}) {
      plan.run(args, {reinterpret_cast<void*>(handle)}, workspace.span()).value();
      for (const FakeLaunch& each : fake.launches())
        expect(each.stream == reinterpret_cast<void*>(handle), "default streams");
    }
    // fault 23: a thread without a context, and one with another context.
    expect(fake.depth() == 0, "no context is left behind");
    int other = 0;
    void* current = nullptr;
    fake.get<int(void*)>("cuCtxPushCurrent_v2")(&other);
    plan.run(args, {}, workspace.span()).value();
    fake.get<int(void**)>("cuCtxGetCurrent")(&current);
    expect(current == &other && fake.depth() == 1, "the caller's context is current again");
    expect_refused(plan.run(args, {}, workspace.span().first(8)), Code::BufferTooSmall, "a workspace of");
  });
}

TEST_F(CudaPlan, fault_01_ZeroRowsLaunchOnlyWhatColumnResultsNeed) {
  run("", [](const Fake& fake) {
    Plan forward = Plan::create(gpu(), {.program = rms_norm(), .shape = {0, 100}}).value();
    Args args = forward.args();
    set_all(forward, args);
    forward.run(args).value();
    expect(fake.launches().empty(), "nothing to do");
    Plan backward = Plan::create(gpu(), {.program = rms_norm().differentiate().value(), .shape = {0, 100}}).value();
    Args back = backward.args();
    set_all(backward, back);
    backward.run(back).value();
    std::vector<FakeLaunch> launches = fake.launches();
    expect(launches.size() == 1 && std::string(launches[0].name) == "rms_norm_backward_columns", "columns alone");
    // A sum for each group of rows, of which there are none.
    Plan sums = Plan::create(gpu(), {.program = RowProgram::named("moe_sum").value(), .shape = {0, 33}}).value();
    Args none = sums.args();
    set_all(sums, none);
    sums.run(none).value();
    expect(fake.launches().empty(), "a result without entries");
  });
}

TEST_F(CudaPlan, fault_05_MoreRowsThanAGridHolds) {
  run("", [](const Fake& fake) {
    constexpr std::int64_t rows = (std::int64_t{1} << 40) + 3;
    Plan plan = Plan::create(gpu(), {.program = rms_norm(), .shape = {rows, 1}, .results = {{"rstd"}}}).value();
    Args args = plan.args();
    args["x"] = View{somewhere(1 << 12)}, args["gamma"] = View{somewhere(1)}, args["rstd"] = View{somewhere(1 << 13)};
    plan.run(args).value();
    std::int64_t at = 0;
    for (const FakeLaunch& each : fake.launches()) {
      expect(each.first == at && each.last > at && each.total == rows, "rows in order");
      expect(each.grid[0] > 0 && each.grid[0] < 1u << 31, "a grid of at most 2^31-1 blocks");
      at = each.last;
    }
    expect(at == rows, "all rows");
  });
}

TEST_F(CudaPlan, fault_25_UnpreparedCaptureIsRefused) {
  run("", [](const Fake& fake) {
    Plan plan = Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}, .types = {{"x", Type::BF16}}}).value();
    expect(fake.modules() == 1, "one module");
    Args args = plan.args();
    auto set = [&](std::uint64_t off) {
      for (const char* name : {"x", "gamma", "y"}) args[name] = View{somewhere(*name), Type::BF16};
      args["rstd"] = View{somewhere(7)};
      args["x"] = View{somewhere(1) + off, Type::BF16};
    };
    int stream = 0;
    auto begin = fake.get<int(void*, int)>("cuStreamBeginCapture_v2");
    auto end = fake.get<int(void*, void**)>("cuStreamEndCapture");
    void* graph = nullptr;
    begin(&stream, 1);
    set(0);
    expect(plan.run(args, {&stream}).has_value(), "what was loaded with the plan may be captured");
    set(2);
    expect_refused(plan.run(args, {&stream}), Code::InvalidArgument, "call prepare() before");
    end(&stream, &graph);
    plan.prepare().value();
    expect(fake.modules() == 2, "a second module");
    begin(&stream, 1);
    expect(plan.run(args, {&stream}).has_value(), "prepared");
    end(&stream, &graph);
    std::vector<FakeLaunch> launches = fake.launches();
    expect(launches.size() == 2 && launches[0].block[0] != 0, "two launches");
  });
}

TEST_F(CudaPlan, fault_06_UnalignedArraysTakeOtherKernels) {
  run("", [](const Fake& fake) {
    Plan plan = Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}}).value();
    Args args = plan.args();
    set_all(plan, args);
    plan.run(args).value();
    expect(fake.modules() == 1, "vectors");
    args["y"] = View{somewhere(9) + 4};
    plan.run(args).value();
    plan.run(args).value();
    expect(fake.modules() == 2, "singles are made once");
    Plan odd = Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4095}}).value();
    Args odd_args = odd.args();
    set_all(odd, odd_args);
    odd_args["x"] = View{somewhere(9) + 4};
    odd.run(odd_args).value();
    expect(fake.modules() == 3, "odd columns never take vectors");
  });
}

TEST_F(CudaPlan, fault_22_ForkAfterUse) {
  run("", [](const Fake&) {
    Plan plan = Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}}).value();
    Args args = plan.args();
    set_all(plan, args);
    plan.run(args).value();
    pid_t child = fork();
    if (child == 0) {
      expect_refused(plan.run(args), Code::Driver, "this process was forked from one that had used CUDA");
      expect_refused(Device::cuda(), Code::NoDevice, "this process was forked");
      _exit(failures);
    }
    int status = 1;
    waitpid(child, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child is told why");
    plan.run(args).value();
  });
}

TEST_F(CudaPlan, fault_26_StickyErrors) {
  run("", [](const Fake& fake) {
    Plan plan = Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}}).value();
    Args args = plan.args();
    set_all(plan, args);
    fake.get<void(int)>("fake_break")(700);
    expect_refused(plan.run(args), Code::Driver, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    expect_refused(plan.run(args), Code::Driver, "only a new process can use the GPU again");
  });
}

TEST_F(CudaPlan, fault_26_OldGpu) {
  run("-DMAJOR=7", [](const Fake&) {
    expect_refused(Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}}), Code::Unsupported,
                   "Fake GPU has compute capability 7.0; at least 8.0 is needed");
  });
}

TEST_F(CudaPlan, fault_26_UnknownNewerGpu) {
  run("-DMAJOR=19", [](const Fake&) {
    expect(Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}}).has_value(), "newer GPUs take older PTX");
  });
}

TEST_F(CudaPlan, fault_26_OldDriver) {
  run("-DVERSION=11040", [](const Fake&) {
    expect_refused(Device::cuda(), Code::NoDevice, "is the driver of CUDA 11.4; at least CUDA 11.8");
  });
}

TEST_F(CudaPlan, fault_23_29_DevicesAndTheirMemory) {
  run("", [](const Fake& fake) {
    expect(gpu(1).name() == "cuda:1" && gpu(0).name() == "cuda" && Device::named("cuda:0").value().name() == "cuda",
           "names");
    expect_refused(Device::cuda(2), Code::NoDevice, "they are numbered 0 to 1");
    expect_refused(Device::named("cuda:x"), Code::NoDevice, "no device named 'cuda:x'");
    Plan plan = Plan::create(gpu(), {.program = rms_norm(), .shape = {64, 4096}}).value();
    Args args = plan.args();
    set_all(plan, args);
    auto place = fake.get<void(std::uint64_t, std::uint64_t)>("fake_place");
    place(1ull << 32, 0);
    expect_refused(plan.run(args), Code::InvalidArgument, "x: the memory belongs to cuda:1, the plan to cuda:0");
    place(0, 2ull << 32);
    expect_refused(plan.check(args), Code::InvalidArgument, "gamma: the memory at 0x200000000 is none that CUDA knows");
    place(0, 0);
    plan.run(args).value();
    expect_refused(
        Plan::create(Device::cpu().value(), {.program = rms_norm(), .shape = {1, 1}}).value().run(args, {&args}),
        Code::InvalidArgument, "");
  });
}

TEST_F(CudaPlan, EveryOperatorIsPlannedAndLaunched) {
  run("", [](const Fake& fake) {
    for (const std::string& name : RowProgram::names())
      for (bool backward : {false, true}) {
        RowProgram program = RowProgram::named(name).value();
        if (backward) program = program.differentiate().value();
        PlanOptions options{.program = program, .shape = {6, 34}};
        for (const RowProgram::Parameter& each : program.signature())
          if (each.kind == RowProgram::Kind::Constant && !each.optional) options.constants[each.name] = 2;
        Result<Plan> plan = Plan::create(gpu(), options);
        if (!plan) {
          expect(false, plan.error().message);
          continue;
        }
        Args args = plan->args();
        set_all(*plan, args);
        Workspace workspace = plan->make_workspace().value();
        const Counts before = counts_now();
        Status status = plan->run(args, {}, workspace.span());
        const Counts after = counts_now();
        expect(bool(status), name + (status ? "" : status.error().message));
        expect(print(after) == print(before), name + ": " + print(before) + ", then " + print(after));
        std::vector<FakeLaunch> launches = fake.launches();
        const bool sums = backward && name == "group_norm";
        expect(launches.size() >= (sums ? 2u : 1u), name + ": too few launches");
      }
  });
}

TEST_F(CudaPlan, TheKernelHashIsOfEverythingThatRuns) {
  run("", [](const Fake&) {
    auto hash = [](const std::string& spread) {
      std::string text = "sums(x[i,j]) -> (y[i,j], s" + spread + ")\n    y = x * x\n    s = colsum(y)\n";
      Plan plan = Plan::create(gpu(), {.program = RowProgram::parse(text).value(), .shape = {64, 512}}).value();
      return plan.sku().kernel_hash;
    };
    expect(hash("[i % 4, j]").size() == 16 && hash("[i % 4, j]") == hash("[i % 4, j]"), "one program, one hash");
    expect(hash("[i % 4, j]") != hash("[i % 4, j / 2]"), "columns that share an entry are summed first");
    expect(hash("[i % 4, j]") != hash("[]"), "a sum over everything");
  });
}

TEST_F(CudaPlan, TimesGraphsAndCopiesInTurn) {
  run("", [](const Fake& fake) {
    for (const char* line : {"rms_norm 64x256", "rms_norm_heads 64x256 heads=4 backward"}) {
      Prepared prepared = prepare_problem(parse_problem(line).value()).value();
      auto executable =
          find_device("cuda")->compile(prepared.program, facts_of(prepared.program, prepared.view())).value();
      Timing timing =
          executable->time(executable->place(prepared.view()).value(), {.seconds = 0, .bytes = 1 << 16}).value();
      expect(timing.runs.size() == 3 && timing.host.size() == 3, "three rounds");
      expect(timing.copies.size() == 1 && timing.copies[0].seconds.size() == 3, "a copy beside each");
      expect(std::abs(timing.runs[0] - 1.5e-3) < 1e-9, "the fake's events are 1.5 ms apart, for one run a graph");
    }
    expect(fake.depth() == 0, "no context is left behind");
  });
}

TEST_F(CudaPlan, FromC) {
  run("", [](const Fake& fake) {
    trireme_program* program = nullptr;
    trireme_plan* plan = nullptr;
    trireme_args* args = nullptr;
    std::int64_t shape[] = {64, 4096};
    trireme_plan_options options = {};
    options.struct_size = sizeof options, options.shape = shape, options.rank = 2;
    expect(trireme_program_named("swiglu", &program) == TRIREME_OK, trireme_last_error());
    expect(trireme_plan_create("cuda:1", program, &options, &plan) == TRIREME_OK, trireme_last_error());
    expect(trireme_args_create(plan, &args) == TRIREME_OK, trireme_last_error());
    std::uint64_t foreign = 1;
    for (const char* name : {"x", "gate", "y"}) {
      trireme_view view = {sizeof view, somewhere(foreign++), TRIREME_F32, 0, nullptr, nullptr, TRIREME_UNKNOWN_BYTES};
      expect(trireme_args_set(args, name, &view) == TRIREME_OK, trireme_last_error());
    }
    int stream = 0;
    expect(trireme_plan_run(plan, args, &stream, nullptr, 0) == TRIREME_INVALID_ARGUMENT, "memory of cuda:0");
    expect(trireme_plan_destroy(plan) == TRIREME_OK && trireme_args_destroy(args) == TRIREME_OK, "");
    expect(trireme_plan_create("cuda", program, &options, &plan) == TRIREME_OK, trireme_last_error());
    expect(trireme_args_create(plan, &args) == TRIREME_OK, trireme_last_error());
    for (const char* name : {"x", "gate", "y"}) {
      trireme_view view = {sizeof view, somewhere(foreign++), TRIREME_F32, 0, nullptr, nullptr, TRIREME_UNKNOWN_BYTES};
      expect(trireme_args_set(args, name, &view) == TRIREME_OK, trireme_last_error());
    }
    expect(trireme_plan_prepare(plan) == TRIREME_OK, trireme_last_error());
    expect(trireme_plan_run(plan, args, &stream, nullptr, 0) == TRIREME_OK, trireme_last_error());
    std::vector<FakeLaunch> launches = fake.launches();
    expect(launches.size() == 1 && launches[0].stream == &stream, "one launch on the stream");
  });
}

}  // namespace
}  // namespace trireme
