"""Patched models in others' training loops: transformers' Trainer, accelerate, PEFT, checkpointing, torch.compile before and after."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

import trireme.torch as tt

STEPS = 4


def small():
    config = transformers.LlamaConfig(vocab_size=160, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, pad_token_id=0, use_cache=False)
    torch.manual_seed(3)
    return transformers.LlamaForCausalLM(config)


def batches():
    generator = torch.Generator().manual_seed(4)
    tokens = torch.randint(1, 160, (2 * STEPS, 12), generator=generator)
    return [{"input_ids": each, "labels": each.clone()} for each in tokens]


def same(mine, theirs, bound=1e-3):
    """Weights of two models after the same steps of AdamW, which divides small differences of gradients by small gradients: most
    are equal to the bound, and none is a step away."""
    for (name, a), b in zip(theirs.state_dict().items(), mine.state_dict().values()):
        apart = (a - b).abs()
        assert apart.max() <= bound and (apart > bound / 100).float().mean() <= 0.01, (name, apart.max())


# ---- transformers' Trainer ----

def train(model, folder, **options):
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    arguments = transformers.TrainingArguments(
        output_dir=folder, max_steps=STEPS, per_device_train_batch_size=2, per_device_eval_batch_size=2, learning_rate=1e-3,
        lr_scheduler_type="constant", logging_steps=1, report_to=[], use_cpu=True, save_strategy="no", seed=1, disable_tqdm=True,
        dataloader_pin_memory=False, **options)
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=batches(), eval_dataset=batches()[:4])
    trainer.train()
    losses = [each["loss"] for each in trainer.state.log_history if "loss" in each]
    assert len(losses) == STEPS
    return losses, trainer.evaluate()["eval_loss"], trainer


@pytest.mark.parametrize("options", [{}, {"gradient_checkpointing": True}, {"gradient_accumulation_steps": 2}, {"bf16": True}],
                         ids=lambda each: "".join(each) or "plain")
def test_trainer(options, tmp_path):
    plain, patched = small(), small()
    report = tt.patch(patched)
    assert "linear_cross_entropy" in report[""] and not report.left, report
    wanted, evaluated, _ = train(plain, tmp_path / "plain", **options)
    found, also, _ = train(patched, tmp_path / "patched", **options)
    bound = 2e-2 if "bf16" in options else 1e-4
    assert found == pytest.approx(wanted, rel=bound) and also == pytest.approx(evaluated, rel=bound)
    assert wanted[-1] != wanted[0]
    if "bf16" not in options:
        same(patched, plain)


def test_trainer_saves_what_others_load(tmp_path):
    patched = small()
    tt.patch(patched)
    _, _, trainer = train(patched, tmp_path)
    trainer.save_model(tmp_path / "saved")
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "saved")
    assert type(loaded) is transformers.LlamaForCausalLM
    assert all(torch.equal(a, b) for a, b in zip(loaded.state_dict().values(), patched.state_dict().values()))


# ---- accelerate ----

def test_accelerate():
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed")
    plain, patched = small(), small()
    tt.patch(patched)
    for each in (plain, patched):
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        optimizer = torch.optim.AdamW(each.parameters(), 1e-3)
        loader = torch.utils.data.DataLoader(batches(), batch_size=2)
        model, optimizer, loader = accelerator.prepare(each.train(), optimizer, loader)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch).loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        assert accelerator.unwrap_model(model) is each
        accelerator.free_memory()
    same(patched, plain)


# ---- PEFT ----

def adapted(model, patch):
    """LoRA on every projection and the head, patched before or after the adapters come."""
    peft = pytest.importorskip("peft", reason="peft is not installed")
    report = tt.patch(model) if patch == "before" else None
    torch.manual_seed(6)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"],
                             init_lora_weights=False, task_type="CAUSAL_LM")
    made = peft.get_peft_model(model, config)
    report = tt.patch(made) if patch == "after" else report
    return made, report


@pytest.mark.parametrize("patch", ["before", "after"])
def test_peft(patch):
    plain, _ = adapted(small(), None)
    patched, report = adapted(small(), patch)
    kernels = ", ".join(report.values())
    assert all(each in kernels for each in ("rms_norm", "swiglu", "rope", "linear_cross_entropy")), report
    tokens = torch.stack([each["input_ids"] for each in batches()])
    for each in (plain, patched):
        optimizer = torch.optim.AdamW([p for p in each.parameters() if p.requires_grad], 1e-3)
        for _ in range(STEPS):
            loss = each.train()(input_ids=tokens, labels=tokens).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    same(patched, plain)
    assert sum(p.requires_grad for p in patched.parameters()) == sum("lora" in name for name, _ in patched.named_parameters())
    merged, whole = patched.merge_and_unload(), plain.merge_and_unload()
    with torch.no_grad():
        mine, theirs = (each.eval()(input_ids=tokens).logits for each in (merged, whole))
    torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-3)


# ---- torch.compile before and after ----

@pytest.mark.parametrize("how", ["patched then compiled", "compiled then patched", "compiled, called, then patched",
                                 "the compiled one patched", "compiled in place, then patched"])
def test_compile_before_and_after(how):
    plain, model = small(), small()
    tokens = torch.stack([each["input_ids"] for each in batches()])
    seen = set()  # operators of ours in what the compiler is given

    def backend(graph, inputs):
        nodes = [node for each in graph.modules() if isinstance(each, torch.fx.GraphModule) for node in each.graph.nodes]
        seen.update(str(node.target).split(".")[1] for node in nodes if str(node.target).startswith("trireme."))
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    torch._dynamo.reset()
    if how == "patched then compiled":
        report = tt.patch(model)
        compiled = torch.compile(model, backend=backend)
    elif how == "compiled in place, then patched":
        model.compile(backend=backend)
        compiled = model
        report = tt.patch(model)
    else:
        compiled = torch.compile(model, backend=backend)
        if "called" in how:
            compiled.train()(input_ids=tokens, labels=tokens).loss.backward()
            model.zero_grad()
        assert not seen
        report = tt.patch(compiled if how == "the compiled one patched" else model)
    assert "linear_cross_entropy" in ", ".join(report.values()) and not report.left, (str(report), report)
    for each in (plain, compiled):
        each.train()(input_ids=tokens, labels=tokens).loss.backward()
    for (name, a), b in zip(plain.named_parameters(), model.parameters()):
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-3, atol=1e-6, msg=lambda text: f"{name} {text}")
    kinds = ", ".join(sorted(seen))
    assert all(each in kinds for each in ("add_rms_norm_llama", "rms_norm_llama", "swiglu_llama", "rope")), kinds
