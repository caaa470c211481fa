// Prints the best seconds of oneDNN's layer_norm or softmax. Built and run by bench/cpu.py --peers.
//   onednn layer_norm|softmax f32|bf16 forward|backward ROWS COLUMNS SECONDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>

using namespace dnnl;
using Kind = memory::data_type;

static double best(double seconds, const std::function<void()>& work) {
  work();
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  for (int k = 0; k < 3 || spent < seconds; ++k) {
    auto start = std::chrono::steady_clock::now();
    work();
    double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (took < least) least = took;
    spent += took;
  }
  return least;
}

int main(int count, char** words) {
  if (count != 7) return 2;
  const std::string_view wanted = words[1], type = words[2], direction = words[3];
  const memory::dim rows = std::atoll(words[4]), columns = std::atoll(words[5]);
  const double seconds = std::atof(words[6]);
  const Kind kind = type == "f32" ? Kind::f32 : Kind::bf16;
  const bool backward = direction == "backward";
  engine cpu(engine::kind::cpu, 0);
  stream queue(cpu);
  auto array = [&](memory::dims dims, Kind of) {
    memory made({dims, of, dims.size() == 2 ? memory::format_tag::ab : memory::format_tag::a}, cpu);
    for (memory::dim k = 0, n = made.get_desc().get_size() / 4; k < n; ++k)
      static_cast<float*>(made.get_data_handle())[k] = 0.5f;
    return made;
  };
  auto timed = [&](const primitive& work, const std::unordered_map<int, memory>& arguments) {
    std::printf("%.9f\n", best(seconds, [&] {
                  work.execute(queue, arguments);
                  queue.wait();
                }));
  };
  memory x = array({rows, columns}, kind), y = array({rows, columns}, kind), dx = array({rows, columns}, kind);
  const memory::desc shape = x.get_desc();
  if (wanted == "softmax") {
    const softmax_forward::primitive_desc forward({prop_kind::forward_training, shape, 1}, cpu);
    if (!backward) timed(softmax_forward(forward), {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
    else
      timed(softmax_backward({{shape, shape, 1}, cpu, forward}),
            {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, x}, {DNNL_ARG_DIFF_SRC, dx}});
    return 0;
  }
  memory gamma = array({columns}, Kind::f32), beta = array({columns}, Kind::f32), dgamma = array({columns}, Kind::f32),
         dbeta = array({columns}, Kind::f32), mean = array({rows}, Kind::f32), variance = array({rows}, Kind::f32);
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  const layer_normalization_forward::primitive_desc forward({prop_kind::forward_training, shape, 1e-5f, flags}, cpu);
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, x},
                                               {DNNL_ARG_SCALE, gamma},
                                               {DNNL_ARG_SHIFT, beta},
                                               {DNNL_ARG_MEAN, mean},
                                               {DNNL_ARG_VARIANCE, variance}};
  if (!backward) {
    arguments[DNNL_ARG_DST] = y;
    timed(layer_normalization_forward(forward), arguments);
    return 0;
  }
  arguments[DNNL_ARG_DIFF_DST] = y;
  arguments[DNNL_ARG_DIFF_SRC] = dx;
  arguments[DNNL_ARG_DIFF_SCALE] = dgamma;
  arguments[DNNL_ARG_DIFF_SHIFT] = dbeta;
  timed(layer_normalization_backward({{prop_kind::backward, shape, shape, 1e-5f, flags}, cpu, forward}), arguments);
}
