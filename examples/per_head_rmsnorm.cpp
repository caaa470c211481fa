// A kernel written by hand with Trireme's PTX builder: RMSNorm of every head of a tensor of f32, as done to queries and
// keys before attention. per_head_rmsnorm(input, output, gamma): one warp a head, grid = heads, gamma shared by all.
//
//   per_head_rmsnorm [HEAD_DIM [EPSILON [ARCH]]]      prints the PTX
//
// It adds in the order of Trireme's contract, so its results are those of rms_norm, bit for bit:
// tests/examples/per_head_rmsnorm_test.cpp compares them.
#include <cstdio>
#include <cstdlib>
#include <trireme/ptx.hpp>
#include <vector>

struct PerHeadOptions {
  int head_dim = 128;  // 1 to 256: what a warp holds, and one stripe of the contract's sum
  float epsilon = 1e-6f;
  const char* arch = "sm_80";
};

trireme::Result<std::string> per_head_rmsnorm(const PerHeadOptions& options) {
  using namespace trireme::ptx;
  if (options.head_dim < 1 || options.head_dim > 256)
    return trireme::Error{trireme::Code::InvalidArgument, "per_head_rmsnorm: head_dim is 1 to 256"};
  Module module(options.arch);
  Kernel& k = module.kernel("per_head_rmsnorm", {.reqntid = {32}});
  U64 input = k.load(k.param<U64>("input")), output = k.load(k.param<U64>("output"));
  U64 gamma = k.load(k.param<U64>("gamma"));
  U32 lane = k.read(Special::TidX), head = k.read(Special::CtaidX);
  U64 own = k.mul_wide_u(lane, 4);  // bytes: a lane has the columns lane, lane + 32, ...
  U64 place = k.add(k.mul_wide_u(head, 4 * options.head_dim), own);
  Global x{k.add(input, place)}, y{k.add(output, place)}, weight{k.add(gamma, own)};

  const int count = (options.head_dim + 31) / 32;
  std::vector<Pred> inside(count);
  std::vector<F32> value(count), term(count);
  for (int c = 0; c < count; ++c) {
    inside[c] = k.setp(IntCompare::Lt, lane, options.head_dim - 32 * c);
    value[c] = k.constant<F32>(0.0f);
    k.when(inside[c], [&] { k.load<F32>(Global{x.base, 128 * c}, {}, into(value[c])); });
    term[c] = k.selp(k.mul(value[c], value[c]), k.constant<F32>(-0.0f), inside[c]);  // -0.0 adds nothing
  }
  for (int half = 4; half >= 1; half /= 2)  // the stripe's halving tree: within a lane, then between lanes
    for (int c = 0; c < half && c + half < count; ++c) term[c] = k.add(term[c], term[c + half]);
  for (int lanes = 16; lanes >= 1; lanes /= 2) term[0] = k.add(term[0], k.shfl(Shuffle::Bfly, term[0], lanes));

  F32 mean = k.div(term[0], static_cast<float>(options.head_dim));
  F32 rstd = k.rcp(k.sqrt(k.add(mean, options.epsilon)));
  for (int c = 0; c < count; ++c)
    k.when(inside[c], [&] {
      F32 scale = k.load<F32>(Global{weight.base, 128 * c});
      k.store(Global{y.base, 128 * c}, k.mul(k.mul(value[c], rstd), scale));
    });
  return module.text();
}

int main(int argc, char** argv) {
  PerHeadOptions options;
  if (argc > 1) options.head_dim = std::atoi(argv[1]);
  if (argc > 2) options.epsilon = std::strtof(argv[2], nullptr);
  if (argc > 3) options.arch = argv[3];
  trireme::Result<std::string> text = per_head_rmsnorm(options);
  if (!text) return std::fprintf(stderr, "%s\n", text.error().message.c_str()), 2;
  std::fputs(text->c_str(), stdout);
  return 0;
}
