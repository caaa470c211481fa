"""Tiny random models of transformers' architectures, and what patching one changes: nothing.

Run as a program it tries every architecture, in as many processes as there are cores, and prints what came of each.
"""
import copy
import inspect
import json
import os
import re
import signal
import sys
import warnings

import torch

# What stands for a size, wherever a configuration has it. Sub-configurations are shrunk alike.
SMALL = {
    **dict.fromkeys(["hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "d_embed", "hidden_dim",
                     "text_embed_dim", "vision_hidden_size", "emb_dim", "width", "encoder_hidden_size",
                     "cross_attention_hidden_size", "projection_dim", "output_hidden_size", "out_hidden_size",
                     "decoder_hidden_size", "lm_hidden_size", "encoder_hidden_dim", "block_dim", "lru_width",
                     "text_hidden_size"], 32),
    **dict.fromkeys(["intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner",
                     "ffn_hidden_size", "shared_expert_intermediate_size", "intermediate_dim", "mlp_dim",
                     "dense_intermediate_size", "encoder_intermediate_size", "shared_intermediate_size",
                     "intermediate_size_mlp", "expert_dim"], 48),
    **dict.fromkeys(["moe_intermediate_size", "expert_ffn_hidden_size", "moe_shared_expert_intermediate_size"], 16),
    **dict.fromkeys(["num_hidden_layers", "num_layers", "n_layer", "encoder_layers", "decoder_layers",
                     "num_decoder_layers", "num_encoder_layers", "depth", "n_layers", "num_blocks", "num_hidden_blocks",
                     "encoder_num_layers"], 2),
    **dict.fromkeys(["num_attention_heads", "num_heads", "n_head", "encoder_attention_heads", "decoder_attention_heads",
                     "n_heads", "attention_heads", "encoder_num_attention_heads", "decoder_num_attention_heads",
                     "num_attention_groups"], 4),
    **dict.fromkeys(["num_key_value_heads", "num_kv_heads", "n_kv_heads", "encoder_num_key_value_heads",
                     "decoder_num_key_value_heads", "num_global_key_value_heads", "swa_num_key_value_heads"], 2),
    **dict.fromkeys(["head_dim", "d_kv", "attention_head_dim", "kv_channels", "global_head_dim", "swa_head_dim",
                     "index_head_dim", "attention_head_size", "v_head_dim", "qk_nope_head_dim", "qk_rope_head_dim"], 8),
    **dict.fromkeys(["q_lora_rank", "kv_lora_rank", "o_lora_rank", "index_topk"], 16),
    **dict.fromkeys(["num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts"], 4),
    **dict.fromkeys(["num_experts_per_tok", "moe_topk", "moe_k", "num_selected_experts", "top_k_experts"], 2),
    **dict.fromkeys(["n_group", "topk_group", "n_shared_experts", "first_k_dense_replace", "moe_num_shared_experts"], 1),
    **dict.fromkeys(["vocab_size", "vocab_size_per_layer_input", "text_vocab_size", "decoder_vocab_size",
                     "input_vocab_size"], 96),
    **dict.fromkeys(["max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions",
                     "max_seq_len", "sliding_window", "n_ctx", "max_sequence_length", "attention_window_size"], 64),
    "hidden_size_per_layer_input": 8, "laurel_rank": 8, "num_kv_shared_layers": 0, "mamba_n_heads": 8, "mamba_d_head": 8,
    "mamba_d_state": 8, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_chunk_size": 8, "state_size": 8,
    "n_mamba_heads": 8, "mamba_headdim": 8, "mamba_ngroups": 1, "chunk_size": 8, "time_step_rank": 4, "adapter_rank": 4,
    "num_mem_blocks": 1, "image_size": 32, "patch_size": 8, "num_channels": 3, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "decoder_start_token_id": 1, "image_token_id": 90, "video_token_id": 91, "audio_token_id": 92,
    "rotary_dim": 8, "rotary_ndims": 8, "mamba_num_heads": 8, "mamba_head_dim": 8, "n_groups": 1, "ssm_state_size": 8,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
    "linear_num_heads": 4, "linear_head_dim": 8, "index_n_heads": 2, "num_mel_bins": 16, "type_vocab_size": 2,
    "window_size": 4, "num_nextn_predict_layers": 0,
}
LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "depth")
# What the rules above cannot know.
SPECIAL = {
    "mamba2": {"num_heads": 8, "head_dim": 8, "expand": 2, "n_groups": 1},
    "bamba": {"attn_layer_indices": [1]},
    "zamba2": {"attention_head_dim": 16, "num_query_groups": 4},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "falcon_h1": {"mamba_d_ssm": 64},
    "deepseek_v2": {"topk_method": "greedy"},
}

# Those that Liger has patches for (August 2026), by the names of their configurations; parts of them (qwen2_vl_text) are in the whole.
LIGER = (
    "deepseek_v4", "qwen3_5_moe_text", "llama", "mistral", "mixtral", "ministral", "ministral3", "nemotron", "pixtral", "gemma", "gemma2", "gemma3_text", "gemma3",
    "gemma4_text", "gemma4", "paligemma", "qwen2", "qwen2_vl", "qwen2_5_vl", "qwen3", "qwen3_moe", "qwen3_next", "qwen3_5_text",
    "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe", "phi3", "granite", "olmo2", "olmo3", "glm4", "glm4v", "glm4v_moe", "smollm3",
    "smolvlm", "internvl", "hunyuan_v1_dense", "hunyuan_v1_moe", "gpt_oss", "exaone4", "falcon_h1", "llava", "mllama", "llama4_text",
    "llama4")


class NotMade(Exception):
    """Why there is no tiny model of an architecture."""


def shrunk(defaults, name=""):
    """Parameters of a configuration for those of the default one."""
    found = {}
    layers = next((defaults[key] for key in LAYERS if isinstance(defaults.get(key), int) and defaults[key] > 1), None)
    by_layer = {key: value for key, value in defaults.items() if isinstance(value, (list, tuple)) and len(value) == layers}
    # Of each kind of layer the first, whatever lists tell them apart; at most four.
    kept = list({json.dumps([value[k] for value in by_layer.values()]): k for k in reversed(range(layers or 0))}.values())
    kept = sorted(kept)[:4] if len(kept) > 1 else [0, 1]
    for key, value in defaults.items():
        if isinstance(value, dict) and value and (key.endswith("config") or key in ("encoder", "decoder")):
            found[key] = shrunk(value, value.get("model_type", ""))
            if "model_type" in value:
                found[key]["model_type"] = value["model_type"]
        elif key in by_layer:
            found[key] = [shrunk({key: value[k]}).get(key, value[k]) for k in kept]
        elif by_layer and key in LAYERS:
            found[key] = len(kept)
        elif key in SMALL and isinstance(value, (int, float)) and not isinstance(value, bool) and value:
            found[key] = min(SMALL[key], value) if "token_id" not in key and value > 0 else SMALL[key]
        elif key == "head_dim" and value is None:  # some read it without asking
            found[key] = SMALL[key]
        elif key == "image_size" and isinstance(value, (list, tuple)):
            found[key] = [SMALL[key]] * len(value)
        elif "dropout" in key and isinstance(value, float):
            found[key] = 0.1
    heads = defaults.get("num_attention_heads")
    if heads and defaults.get("num_key_value_heads") in (heads, None) and "num_key_value_heads" in defaults:
        found["num_key_value_heads"] = found.get("num_attention_heads", heads)
    for key in ("rope_parameters", "rope_scaling"):  # sections of a head's rotated half
        if isinstance(defaults.get(key), dict) and ("mrope_section" in defaults[key] or _has_sections(name)):
            share = defaults[key].get("partial_rotary_factor", defaults.get("partial_rotary_factor") or 1.0)
            half = int(found.get("head_dim", 8) * share) // 2
            found[key] = {**defaults[key], "mrope_section": [half - 2 * (half // 3), half // 3, half // 3]}
    return {**found, **SPECIAL.get(name, {})}


def _has_sections(name):
    """Whether models of that configuration read sections that it does not show."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return name in CONFIG_MAPPING and "mrope_section" in getattr(CONFIG_MAPPING[name], "ignore_keys_at_rope_validation", ())


def tiny(name):
    """A model of that architecture, with random weights, and inputs for it."""
    import transformers
    from transformers.models.auto import modeling_auto

    transformers.logging.set_verbosity_error()
    try:
        defaults = transformers.AutoConfig.for_model(name)
        config = type(defaults)(**shrunk(defaults.to_dict(), name))
    except Exception as error:
        raise NotMade(f"configuration: {type(error).__name__}: {str(error)[:150]}") from error
    mappings = (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING, modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING,
                modeling_auto.MODEL_FOR_MASKED_LM_MAPPING, modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING,
                modeling_auto.MODEL_MAPPING)
    kinds = [kind for each in mappings if type(config) in each
             for kind in (each[type(config)] if isinstance(each[type(config)], (list, tuple)) else [each[type(config)]])[:1]]
    error = NotMade("no model")
    for kind in dict.fromkeys(kinds):  # of images and texts some name the text's model first, and it takes another configuration
        try:
            return _made(kind, copy.deepcopy(config))
        except NotMade as why:
            error = why
    raise error


def _made(kind, config):
    torch.manual_seed(5)
    try:
        for each in [config, *(getattr(config, key) for key in dir(config) if key.endswith("_config"))]:
            if hasattr(each, "_attn_implementation"):
                each._attn_implementation = "eager"
        with torch.device("meta"):
            size = sum(each.numel() for each in kind(config).parameters())
        if size > 2e7:
            raise NotMade(f"{size / 1e6:.0f} million parameters")
        model = kind(config).float()
    except NotMade:
        raise
    except Exception as error:
        raise NotMade(f"model: {type(error).__name__}: {str(error)[:150]}") from error
    return model.eval(), inputs_of(model, config)


@torch.no_grad()
def grow(model):
    """Weights as training leaves them: what is 0 or 1 at first hides what is done with it, small gates meet no clamp."""
    generator = torch.Generator().manual_seed(13)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 and parameter.is_floating_point():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
        if re.search(r"(gate|up|gate_up)_proj\.weight$", name):
            parameter.mul_(60)


def inputs_of(model, config):
    names = inspect.signature(model.forward).parameters
    generator = torch.Generator().manual_seed(7)
    size = getattr(config, "vocab_size", None) or getattr(getattr(config, "text_config", None), "vocab_size", None) or 90
    tokens = torch.randint(3, min(size, 90), (2, 12), generator=generator)
    found = {}
    if "input_ids" in names and model.main_input_name == "input_ids":
        found["input_ids"] = tokens
    elif "pixel_values" in names and model.main_input_name == "pixel_values":
        image = getattr(config, "image_size", 32)
        image = image[0] if isinstance(image, (list, tuple)) else image
        found["pixel_values"] = torch.randn(2, getattr(config, "num_channels", 3), image, image, generator=generator)
    if "decoder_input_ids" in names:
        found["decoder_input_ids"] = tokens[:, :8]
    if "labels" in names and found.keys() == {"input_ids"}:
        found["labels"] = tokens
    if "use_cache" in names:
        found["use_cache"] = False
    return found


def run(model, inputs, training):
    """Outputs, the loss, and gradients of all parameters by name. Dropout draws the same numbers every time."""
    model.train(training)
    model.zero_grad(set_to_none=True)
    torch.manual_seed(11)
    made = model(**inputs)
    outputs = [made[key] for key in ("logits", "last_hidden_state", "hidden_states", "pooler_output") if key in made] or \
        [each for each in made.to_tuple()]
    outputs = [each for each in outputs if isinstance(each, torch.Tensor) and each.is_floating_point()]
    loss = made["loss"] if "loss" in made and made["loss"] is not None else sum((each.float() * torch.randn(
        each.shape, generator=torch.Generator().manual_seed(3))).mean() for each in outputs)
    if loss.requires_grad:
        loss.backward()
    return outputs, loss.detach(), {name: each.grad for name, each in model.named_parameters() if each.grad is not None}


def difference(mine, theirs, least=1e-6):
    """The largest difference, as a share of the largest value (or of `least`, if that is larger)."""
    scale = float(theirs.detach().abs().max()) if theirs.numel() else 0.0
    if not torch.isfinite(theirs).all():
        return 0.0 if torch.equal(mine.isfinite(), theirs.isfinite()) else float("inf")
    return float((mine - theirs).detach().abs().max()) / max(scale, least) if theirs.numel() else 0.0


def compare(model, patched, inputs):
    """The largest difference of outputs, loss and gradients between two models, in evaluation and in training."""
    worst = 0.0, "nothing"
    for training in (False, True):
        theirs, mine = run(model, inputs, training), run(patched, inputs, training)
        assert theirs[2].keys() == mine[2].keys(), "gradients of other parameters"
        pairs = [*((f"output {k}", *pair) for k, pair in enumerate(zip(mine[0], theirs[0]))), ("loss", mine[1], theirs[1]),
                 *((f"gradient of {name}", mine[2][name], theirs[2][name]) for name in theirs[2])]
        # A gradient that is nothing but roundings (a bias before softmax) is measured by the others.
        least = 1e-4 * max((float(each.abs().max()) for each in theirs[2].values() if each.numel()), default=0.0)
        for what, a, b in pairs:
            share = difference(a, b, max(least, 1e-6) if what.startswith("gradient") else 1e-6)
            worst = max(worst, (share, f"{what}, {'training' if training else 'evaluation'}"))
    return worst


BOUND = 2e-3  # of the largest value: f32 sums in another order, through a few layers, in random models


def check(name):
    """(status, words, number of patched modules, number of modules left alone) of one architecture."""
    import trireme.torch as tt

    warnings.simplefilter("ignore")
    try:
        model, inputs = tiny(name)
    except NotMade as why:
        return "not made", str(why), 0, 0
    patched = copy.deepcopy(model)
    report = tt.patch(patched)
    counts = len(report), len(getattr(report, "left", {}))
    grow(model)
    grow(patched)
    try:
        run(copy.deepcopy(model), inputs, False)
        runs = compare(copy.deepcopy(model), copy.deepcopy(model), inputs)[0] < 1e-5  # else it differs from itself
    except Exception:
        runs = False
    try:
        worst, what = compare(model, patched, inputs) if runs else compare_modules(model, patched, report)
    except Exception as error:
        return "BROKEN", f"{type(error).__name__}: {str(error)[:300]}", *counts
    return "same" if worst <= BOUND else "DIFFERS", f"{worst:.1e}, {what}" + ("" if runs else ", module by module"), *counts


def compare_modules(model, patched, names):
    """As compare, of each patched norm and gated unit by itself: for models that want inputs of a kind of their own."""
    from trireme.torch._recognise import projections

    worst = 0.0, "nothing"
    for name in names:
        theirs, mine = model.get_submodule(name), patched.get_submodule(name)
        if theirs._modules and not projections(theirs):  # attention, a layer, the model
            continue
        weight = theirs.weight if isinstance(getattr(theirs, "weight", None), torch.Tensor) else None
        first = getattr(theirs, "gate_proj", getattr(theirs, "gate_up_proj", None))
        first = first and next(each for each in first.modules() if hasattr(each, "in_features"))
        shape = getattr(theirs, "normalized_shape", None) or (
            (first.in_features,) if first is not None else tuple(weight.shape) if weight is not None else (64,))
        for training in (False, True):
            found = []
            for module in (mine, theirs):
                x = (torch.randn((2, 5, *shape), generator=torch.Generator().manual_seed(1)) * 5).requires_grad_()
                gates = [torch.randn(x.shape, requires_grad=True, generator=torch.Generator().manual_seed(4))] * hasattr(mine, "_trireme_gate")
                torch.manual_seed(11)
                y = module.train(training)(x, *gates)
                dy = torch.randn(y.shape, generator=torch.Generator().manual_seed(2))
                leaves = [x, *gates, *(each for each in module.parameters() if each.requires_grad)]
                found.append((y, *torch.autograd.grad(y, leaves, dy, allow_unused=True)))
            for k, (a, b) in enumerate(zip(*found)):
                if a is not None or b is not None:
                    worst = max(worst, (difference(a, b), f"{name}, {'gradient' if k else 'output'}"))
    return worst


class OutOfTime(BaseException):
    """Not an Exception: nobody on the way takes it for a failure of his."""


def _check_in_time(name, seconds=60):
    def stop(*_):
        raise OutOfTime(f"{seconds} s were not enough")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return name, *check(name)
    except (Exception, OutOfTime) as error:
        return name, "not made", f"{type(error).__name__}: {str(error)[:150]}", 0, 0
    finally:
        signal.alarm(0)


def main(names):
    import collections
    import multiprocessing
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    names = names or list(CONFIG_MAPPING_NAMES)
    torch.set_num_threads(1)
    counts, bad, patched = collections.Counter(), [], 0
    with multiprocessing.get_context("spawn").Pool(min(os.cpu_count(), len(names)), torch.set_num_threads, (1,),
                                                   maxtasksperchild=60) as pool:
        for name, status, words, count, left in pool.imap_unordered(_check_in_time, names):
            counts[status] += 1
            patched += status == "same" and count > 0
            print(json.dumps([name, status, words, count, left]), flush=True)
            if status.isupper():
                bad.append(name)
    print(f"{counts['same']} architectures same ({patched} of them patched), " +
          ", ".join(f"{count} {status}" for status, count in counts.items() if status != "same") + f"; bad: {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
