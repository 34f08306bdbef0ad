"""The practice loop with models of Hugging Face, made from a configuration, and the memory that the text states.

An optional extra: `pip install -e '.[huggingface]'`. Nothing is downloaded.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from places import KIT
from real_model import INSTRUCTION

from autograder.grading.assignment import find_assignment

pytest.importorskip("transformers", reason="an optional extra: pip install -e '.[huggingface]'")
pytestmark = pytest.mark.filterwarnings("ignore")

FOLDER = find_assignment(KIT, "grpo_in_practice").solution
TOKENS = ["<pad>", "<eos>", "<user>", "<assistant>", *"0123456789+->;}", "\\boxed{"]


def small_model(family: str, **options: Any) -> Any:
    import transformers

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1}
    special = {"pad_token_id": 0, "eos_token_id": 1, "bos_token_id": None}
    settings = {"vocab_size": len(TOKENS), **sizes, **heads, **special, **options}
    config = getattr(transformers, f"{family}Config")(**settings)
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config)


def weights_of(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])


# The command, with a folder as one that was downloaded


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Qwen2 in bfloat16, with settings for chatting, and a tokenizer of bytes with a chat template."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    folder = tmp_path_factory.mktemp("saved")
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator([INSTRUCTION] * 20, trainer)
    chat = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    marks = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, chat_template=chat, **marks)
    model = small_model("Qwen2", vocab_size=len(tokenizer), eos_token_id=tokenizer.eos_token_id)
    model.generation_config.update(temperature=0.7, top_p=0.8, top_k=20, repetition_penalty=1.05, do_sample=True)
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    "options",
    [[], ["--bf16"], ["--gradient-checkpointing", "--parts", "3"], ["--bf16", "--gradient-checkpointing"]],
    ids=["plain", "bf16", "recomputed", "both"],
)
def test_the_command_trains_a_saved_model_and_saves_it(saved: Path, tmp_path: Path, options: list[str]) -> None:
    import transformers

    sizes = ["--steps", "2", "--responses", "2", "--length", "6", "--device", "cpu"]
    command = [sys.executable, "real_model.py", "--model", str(saved), *sizes, "--out", str(tmp_path), *options]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["before:", "step", "step", "after:"]
    trained = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert {parameter.dtype for parameter in trained.parameters()} == {torch.float32}
    assert bool(weights_of(trained).isfinite().all())
    assert transformers.AutoTokenizer.from_pretrained(tmp_path).chat_template
