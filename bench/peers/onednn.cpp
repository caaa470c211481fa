// oneDNN's layer_norm and softmax: prints OPERATOR TYPE DIRECTION SECONDS a line. Built and run by bench/peers_cpu.py.
//   onednn ROWS COLUMNS SECONDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <oneapi/dnnl/dnnl.hpp>

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

int main(int, char** argv) {
  const memory::dim rows = std::atoll(argv[1]), columns = std::atoll(argv[2]);
  const double seconds = std::atof(argv[3]);
  engine cpu(engine::kind::cpu, 0);
  stream queue(cpu);
  auto array = [&](memory::dims dims, Kind kind) {
    memory made({dims, kind, dims.size() == 2 ? memory::format_tag::ab : memory::format_tag::a}, cpu);
    for (memory::dim k = 0, n = made.get_desc().get_size() / 4; k < n; ++k)
      static_cast<float*>(made.get_data_handle())[k] = 0.5f;
    return made;
  };
  for (auto [kind, name] : {std::pair{Kind::f32, "f32"}, {Kind::bf16, "bf16"}}) {
    memory x = array({rows, columns}, kind), y = array({rows, columns}, kind), dx = array({rows, columns}, kind);
    memory gamma = array({columns}, Kind::f32), beta = array({columns}, Kind::f32),
           dgamma = array({columns}, Kind::f32), dbeta = array({columns}, Kind::f32), mean = array({rows}, Kind::f32),
           variance = array({rows}, Kind::f32);
    const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
    const memory::desc shape = x.get_desc();
    layer_normalization_forward::primitive_desc norm({prop_kind::forward_training, shape, 1e-5f, flags}, cpu);
    layer_normalization_backward::primitive_desc norm_back({prop_kind::backward, shape, shape, 1e-5f, flags}, cpu,
                                                           norm);
    layer_normalization_forward forward(norm);
    layer_normalization_backward backward(norm_back);
    auto timed = [&](const char* program, const char* direction, const std::function<void()>& work) {
      std::printf("%s %s %s %.9f\n", program, name, direction, best(seconds, work));
    };
    timed("layer_norm", "forward", [&] {
      forward.execute(queue, {{DNNL_ARG_SRC, x},
                              {DNNL_ARG_DST, y},
                              {DNNL_ARG_SCALE, gamma},
                              {DNNL_ARG_SHIFT, beta},
                              {DNNL_ARG_MEAN, mean},
                              {DNNL_ARG_VARIANCE, variance}});
      queue.wait();
    });
    timed("layer_norm", "backward", [&] {
      backward.execute(queue, {{DNNL_ARG_SRC, x},
                               {DNNL_ARG_DIFF_DST, y},
                               {DNNL_ARG_DIFF_SRC, dx},
                               {DNNL_ARG_SCALE, gamma},
                               {DNNL_ARG_SHIFT, beta},
                               {DNNL_ARG_DIFF_SCALE, dgamma},
                               {DNNL_ARG_DIFF_SHIFT, dbeta},
                               {DNNL_ARG_MEAN, mean},
                               {DNNL_ARG_VARIANCE, variance}});
      queue.wait();
    });
    softmax_forward::primitive_desc soft({prop_kind::forward_training, shape, 1}, cpu);
    softmax_backward::primitive_desc soft_back({shape, shape, 1}, cpu, soft);
    softmax_forward softmax(soft);
    softmax_backward softmax_back(soft_back);
    timed("softmax", "forward", [&] {
      softmax.execute(queue, {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}});
      queue.wait();
    });
    timed("softmax", "backward", [&] {
      softmax_back.execute(queue, {{DNNL_ARG_DST, y}, {DNNL_ARG_DIFF_DST, x}, {DNNL_ARG_DIFF_SRC, dx}});
      queue.wait();
    });
  }
}
