"""A small language model and its tokenizer, called like those of Hugging Face transformers. Nothing to complete here.

    tokenizer = CharTokenizer()
    model = CausalLM.from_pretrained("checkpoint")
    inputs = tokenizer("17+25", return_tensors="pt").to(model.device)
    logits = model(**inputs).logits
    tokens = model.generate(**inputs, do_sample=True, max_new_tokens=24)
    text = tokenizer.batch_decode(tokens, skip_special_tokens=True)

A model of transformers can take this one's place, and this one's place only: the assignment uses no call that
the two do not share.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, EOS, USER, ASSISTANT = "<pad>", "<eos>", "<user>", "<assistant>"
SPECIAL_TOKENS = (PAD, EOS, USER, ASSISTANT)
CHARACTERS = "0123456789+=,"
CONFIG_NAME, WEIGHTS_NAME = "config.json", "model.safetensors"

Message = Mapping[str, str]
Cache = list[tuple[Tensor, Tensor]]


class Encoding(dict[str, Any]):
    """What a tokenizer returns: `input_ids` and `attention_mask`, by key or as attributes."""

    def __getattr__(self, name: str) -> Any:
        """Return the entry of this name."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def to(self, device: torch.device | str) -> Encoding:
        """Return the same tensors on another device."""
        return Encoding({name: value.to(device) for name, value in self.items()})


class CharTokenizer:
    """One token per character, and four special tokens: padding, end, and whose turn it is to speak."""

    pad_token, eos_token = PAD, EOS
    pad_token_id, eos_token_id = SPECIAL_TOKENS.index(PAD), SPECIAL_TOKENS.index(EOS)

    def __init__(self) -> None:
        """Number the tokens: special ones first."""
        self._tokens = (*SPECIAL_TOKENS, *CHARACTERS)
        self._ids = {token: index for index, token in enumerate(self._tokens)}

    def __len__(self) -> int:
        """Return how many tokens there are."""
        return len(self._tokens)

    def __call__(
        self,
        text: str | Sequence[str],
        *,
        return_tensors: str | None = None,
        padding: bool = False,
        padding_side: str = "right",
        add_special_tokens: bool = True,
    ) -> Encoding:
        """Return the token ids of one text or of several, and which of them are no padding.

        padding            fill shorter texts with the padding token, at the left or at the right
        return_tensors     "pt" for tensors int[batch pos]; None for lists
        add_special_tokens   accepted and without effect: this tokenizer adds none
        raises   ValueError   a character that has no token; texts of several lengths, as tensors, without padding
        """
        texts = [text] if isinstance(text, str) else list(text)
        rows = [self._encode(one) for one in texts]
        width = max(len(row) for row in rows)
        ids, mask = [], []
        for row in rows:
            gap = width - len(row) if padding else 0
            fill, ones = [self.pad_token_id] * gap, [1] * len(row)
            left = padding_side == "left"
            ids.append(fill + row if left else row + fill)
            mask.append([0] * gap + ones if left else ones + [0] * gap)
        if return_tensors is None:
            return Encoding(
                input_ids=ids[0] if isinstance(text, str) else ids,
                attention_mask=mask[0] if isinstance(text, str) else mask,
            )
        if len({len(row) for row in ids}) > 1:
            raise ValueError("The texts have several lengths: tensors need padding=True.")
        return Encoding(input_ids=torch.tensor(ids), attention_mask=torch.tensor(mask))

    def apply_chat_template(
        self,
        conversation: Sequence[Message],
        *,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        return_tensors: str | None = None,
        return_dict: bool = True,
    ) -> Any:
        """Return the conversation as one text, or as its tokens; with `add_generation_prompt` it is the model's turn.

        conversation   messages with `role` ("user" or "assistant") and `content`
        """
        text = "".join(self._turn(message) for message in conversation)
        text += ASSISTANT if add_generation_prompt else ""
        if not tokenize:
            return text
        encoding = self(text, return_tensors=return_tensors)
        return encoding if return_dict else encoding.input_ids

    def decode(self, token_ids: Tensor | Sequence[int], skip_special_tokens: bool = False) -> str:
        """Return the text of these tokens."""
        ids = token_ids.tolist() if isinstance(token_ids, Tensor) else token_ids
        tokens = [self._tokens[index] for index in ids]
        return "".join(token for token in tokens if not (skip_special_tokens and token in SPECIAL_TOKENS))

    def batch_decode(self, sequences: Iterable[Any], skip_special_tokens: bool = False) -> list[str]:
        """Return one text per sequence."""
        return [self.decode(sequence, skip_special_tokens) for sequence in sequences]

    def _turn(self, message: Message) -> str:
        if message["role"] == "user":
            return f"{USER}{message['content']}"
        return f"{ASSISTANT}{message['content']}{EOS}"

    def _encode(self, text: str) -> list[int]:
        ids, rest = [], text
        while rest:
            token = next((special for special in SPECIAL_TOKENS if rest.startswith(special)), rest[0])
            if token not in self._ids:
                raise ValueError(f"The tokenizer has no token for {token!r} in {text!r}.")
            ids.append(self._ids[token])
            rest = rest[len(token) :]
        return ids


@dataclass(frozen=True)
class CausalLMConfig:
    """The sizes of a model, and its special tokens."""

    vocab_size: int = len(SPECIAL_TOKENS) + len(CHARACTERS)
    hidden_size: int = 96
    num_layers: int = 3
    num_heads: int = 4
    pad_token_id: int = CharTokenizer.pad_token_id
    eos_token_id: int = CharTokenizer.eos_token_id


@dataclass(frozen=True)
class CausalLMOutput:
    """What a forward pass returns.

    logits            float[batch pos vocab]   logits[:, i] predict the token at position i + 1
    past_key_values   of every layer, if they were asked for
    """

    logits: Tensor
    past_key_values: Cache | None = None


class CausalLM(nn.Module):
    """A decoder-only transformer with rotary positions, so that padding at the left changes nothing.

    config   a CausalLMConfig
    """

    def __init__(self, config: CausalLMConfig | None = None) -> None:
        """Draw the initial weights from torch's global generator."""
        super().__init__()
        self.config = config or CausalLMConfig()
        size = self.config.hidden_size
        self.embedding = nn.Embedding(self.config.vocab_size, size)
        self.layers = nn.ModuleList(Layer(size, self.config.num_heads) for _ in range(self.config.num_layers))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, self.config.vocab_size, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=1 / math.sqrt(size) if parameter.shape[-1] == size else 0.02)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.weight.device

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        use_cache: bool = False,
    ) -> CausalLMOutput:
        """Return the logits of every position.

        input_ids         int[batch pos]
        attention_mask    int[batch pos]   0 where a token is padding; with a cache, of all positions so far
        past_key_values   of an earlier pass over the positions before these
        """
        batch, length = input_ids.shape
        start = past_key_values[0][0].shape[2] if past_key_values else 0
        positions = torch.arange(start + length, device=input_ids.device)
        rotation = _rotation(positions[start:], self.config.hidden_size // self.config.num_heads)
        causal = positions[start:, None] >= positions  # query key
        if attention_mask is None:
            attention_mask = torch.ones(batch, start + length, device=input_ids.device)
        itself = positions[start:, None] == positions  # padding sees itself: no row of weights is empty
        allowed = ((attention_mask[:, None, None, :] != 0) & causal) | itself  # batch 1 query key
        hidden = self.embedding(input_ids)  # batch pos size
        cache: Cache = []
        for index, layer in enumerate(self.layers):
            hidden, keys_and_values = layer(hidden, allowed, rotation, past_key_values and past_key_values[index])
            cache.append(keys_and_values)
        return CausalLMOutput(self.head(self.norm(hidden)), cache if use_cache else None)

    @torch.no_grad()
    def generate(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        *,
        max_new_tokens: int = 20,
        do_sample: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        num_return_sequences: int = 1,
        pad_token_id: int | None = None,
        eos_token_id: int | None = None,
    ) -> Tensor:
        """Return the prompts with their continuations, int[batch * num_return_sequences, pos].

        The continuations of one prompt stand next to each other. After a sequence's end token, there is padding.
        top_k, top_p   accepted at the values that switch them off, and at no others
        """
        if top_k != 0 or top_p != 1.0:
            raise ValueError("This model samples from the whole distribution: top_k=0 and top_p=1.0.")
        pad = self.config.pad_token_id if pad_token_id is None else pad_token_id
        eos = self.config.eos_token_id if eos_token_id is None else eos_token_id
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        tokens = input_ids.repeat_interleave(num_return_sequences, dim=0)
        mask = mask.repeat_interleave(num_return_sequences, dim=0)
        ended = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        cache, step = None, tokens
        for _ in range(max_new_tokens):
            output = self(step, attention_mask=mask, past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            step = _next_token(output.logits[:, -1], do_sample, temperature).masked_fill(ended, pad)[:, None]
            tokens = torch.cat([tokens, step], dim=1)
            mask = torch.cat([mask, (~ended[:, None]).to(mask)], dim=1)
            ended |= step[:, 0] == eos
            if ended.all():
                break
        return tokens

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the weights, in half precision, and the configuration into `folder`."""
        from safetensors.torch import save

        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG_NAME).write_text(json.dumps(asdict(self.config), indent=1) + "\n", encoding="utf-8")
        weights = {name: value.detach().cpu().half().contiguous() for name, value in self.state_dict().items()}
        (folder / WEIGHTS_NAME).write_bytes(save(weights))

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> CausalLM:
        """Return the model that `save_pretrained` wrote, in evaluation mode."""
        from safetensors.torch import load_file

        config = json.loads((Path(folder) / CONFIG_NAME).read_text(encoding="utf-8"))
        model = cls(CausalLMConfig(**config))
        model.load_state_dict({n: w.float() for n, w in load_file(str(Path(folder) / WEIGHTS_NAME)).items()})
        return model.eval()


class Layer(nn.Module):
    """Attention over earlier positions, then a small network at each position."""

    def __init__(self, size: int, num_heads: int) -> None:
        """Make the layer's parameters."""
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm, self.network_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)
        self.network = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(
        self, hidden: Tensor, allowed: Tensor, rotation: Tensor, past: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Return what the next layer reads, and this layer's keys and values."""
        mixed = self.query_key_value(self.attention_norm(hidden)).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = mixed.permute(2, 0, 3, 1, 4)  # batch head pos dim
        query, key = _rotated(query, rotation), _rotated(key, rotation)
        if past is not None:
            key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        hidden = hidden + self.output(attended.transpose(1, 2).flatten(-2))
        return hidden + self.network(self.network_norm(hidden)), (key, value)


def _rotation(positions: Tensor, size: int) -> Tensor:
    frequencies = 100.0 ** (-torch.arange(0, size, 2, device=positions.device) / size)
    angles = positions[:, None] * frequencies
    return torch.stack([angles.cos(), angles.sin()])  # 2 pos dim/2


def _rotated(heads: Tensor, rotation: Tensor) -> Tensor:
    first, second = heads.chunk(2, dim=-1)
    cos, sin = rotation.to(heads.dtype)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def _next_token(logits: Tensor, do_sample: bool, temperature: float) -> Tensor:
    if not do_sample:
        return logits.argmax(dim=-1)
    return torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1)[:, 0]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch dropout off for a while, and leave the model as it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)
