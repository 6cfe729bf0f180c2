"""The models of the corpus: library definitions where a library has them.

Each entry of MODELS makes a Model: a function of (parameters, inputs) and the
abstract shapes of both. Nothing here allocates a weight: jax.eval_shape makes
the shapes, and make.py lowers with them. `small` makes the same program with
small widths, which run.py executes.
"""

import dataclasses
import functools
import math
from typing import Any, Callable

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from transformers.models.gemma import modeling_flax_gemma
from transformers.models.llama import modeling_flax_llama
from transformers.models.mistral import modeling_flax_mistral

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32


def array(shape, dtype=F32):
    """The abstract shape of an array."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype)


@dataclasses.dataclass
class Model:
    """A model as functions of arrays, with the abstract shapes of its arguments.

    forward(params, *inputs) is the prediction; loss(params, *inputs) is what
    training minimises; the other state (running means) is among the params.
    source says where the definition comes from.
    """

    source: str
    params: Any
    inputs: tuple
    forward: Callable
    loss: Callable = None

    def train(self):
        """A training step with Adam, and the shapes of its arguments."""
        optimiser = optax.adam(1e-4)
        loss = self.loss or (lambda p, *x: jnp.mean(jnp.square(self.forward(p, *x).astype(F32))))

        def step(params, state, *inputs):
            value, gradient = jax.value_and_grad(loss)(params, *inputs)
            updates, state = optimiser.update(gradient, state, params)
            return value, optax.apply_updates(params, updates), state

        return step, (self.params, jax.eval_shape(optimiser.init, self.params), *self.inputs)


def shapes(module, *inputs, **more):
    """The abstract variables of a Flax module."""
    return jax.eval_shape(lambda *x: module.init(jax.random.key(0), *x, **more), *inputs)


def cross_entropy(logits, labels):
    """The mean loss of integer labels."""
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(F32), labels).mean()


# Decoders of transformers (its Flax definitions, which release 5 removed).


def causal_lm(module, source, batch, length, dtype=F32, layers=("params",)):
    """A causal language model of transformers: tokens to logits; next-token loss."""
    tokens = array((batch, length), I32)
    mask = array((batch, length), I32)

    def forward(params, tokens, mask):
        positions = jnp.broadcast_to(jnp.arange(length), (batch, length))
        return module.apply(params, tokens, mask, positions, return_dict=False)[0]

    def loss(params, tokens, mask):
        return cross_entropy(forward(params, tokens, mask)[:, :-1], tokens[:, 1:])

    params = shapes(module, tokens, mask, tokens, return_dict=False)
    params = jax.tree.map(lambda x: array(x.shape, dtype), params)
    return Model(source, params, (tokens, mask), forward, loss)


def rotary_table(positions, width):
    """Sines and cosines of rotary embeddings, computed.

    It takes the place of a NumPy table, which transformers makes a constant of a
    megabyte of the module.
    """
    angle = jnp.arange(positions)[:, None] * 10000 ** (-jnp.arange(0, width, 2) / width)
    angle = jnp.concatenate([angle, angle], axis=-1)[:, None]
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


modeling_flax_llama.create_sinusoidal_positions = rotary_table
modeling_flax_gemma.create_sinusoidal_positions = rotary_table
modeling_flax_mistral.create_sinusoidal_positions = rotary_table


LAYERS = 2  # of Llama; make.py -layers 32 is all of Llama 3 8B


def llama_widths(small, length):
    """Llama 3 8B with LAYERS layers; its vocabulary is 128256."""
    from transformers import LlamaConfig

    widths = dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256)
    if small:
        widths = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, vocab_size=128)
    return LlamaConfig(num_hidden_layers=LAYERS, max_position_embeddings=length, rms_norm_eps=1e-5, **widths)


def llama_block(small):
    from transformers.models.llama.modeling_flax_llama import FlaxLlamaDecoderLayer

    length = 16 if small else 128
    config = llama_widths(small, length)
    module = FlaxLlamaDecoderLayer(config)
    hidden = array((1, length, config.hidden_size))
    mask = array((1, length), I32)

    def forward(params, hidden, mask):
        return module.apply(params, hidden, mask, jnp.arange(length)[None])[0]

    return Model("transformers FlaxLlamaDecoderLayer", shapes(module, hidden, mask, mask), (hidden, mask), forward)


def llama3(small):
    from transformers.models.llama.modeling_flax_llama import FlaxLlamaForCausalLMModule

    length = 16 if small else 128
    dtype = F32 if small else BF16
    module = FlaxLlamaForCausalLMModule(llama_widths(small, length), dtype=dtype)
    return causal_lm(module, "transformers FlaxLlamaForCausalLM", 1, length, dtype)


def gemma(small):
    from transformers import GemmaConfig
    from transformers.models.gemma.modeling_flax_gemma import FlaxGemmaForCausalLMModule

    length = 16 if small else 128
    widths = dict(hidden_size=2048, intermediate_size=16384, num_attention_heads=8, num_key_value_heads=1, head_dim=256, vocab_size=256000)
    if small:
        widths = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=1, head_dim=16, vocab_size=128)
    config = GemmaConfig(num_hidden_layers=2, max_position_embeddings=length, **widths)
    dtype = F32 if small else BF16
    module = FlaxGemmaForCausalLMModule(config, dtype=dtype)
    return causal_lm(module, "transformers FlaxGemmaForCausalLM (2B)", 1, length, dtype)


class MixtureOfExperts(nn.Module):
    """Mixtral's sparse block: a router, the best two experts a token, SwiGLU experts.

    Tokens are dispatched to a buffer for each expert by one-hot products, as
    GShard and MaxText do it.
    """

    experts: int
    width: int
    hidden: int
    top: int = 2
    capacity: float = 1.25

    @nn.compact
    def __call__(self, x):
        n, e = x.shape[0], self.experts
        slots = int(math.ceil(self.capacity * n * self.top / e))
        weight, expert = jax.lax.top_k(nn.Dense(e, use_bias=False, name="gate")(x), self.top)
        weight = jax.nn.softmax(weight.astype(F32), axis=-1).astype(x.dtype)
        chosen = jax.nn.one_hot(expert, e, dtype=I32)
        order = jnp.cumsum(chosen.reshape(n * self.top, e), axis=0).reshape(n, self.top, e) * chosen - 1
        slot = jax.nn.one_hot(order, slots, dtype=x.dtype)
        send = jnp.einsum("nkec->nec", slot)
        combine = jnp.einsum("nk,nkec->nec", weight, slot)
        init = nn.initializers.normal(0.02)
        w1 = self.param("w1", init, (e, self.width, self.hidden))
        w3 = self.param("w3", init, (e, self.width, self.hidden))
        w2 = self.param("w2", init, (e, self.hidden, self.width))
        y = jnp.einsum("nec,nd->ecd", send, x)
        y = jax.nn.silu(jnp.einsum("ecd,edh->ech", y, w1)) * jnp.einsum("ecd,edh->ech", y, w3)
        return jnp.einsum("nec,ecd->nd", combine, jnp.einsum("ech,ehd->ecd", y, w2))


def mixtral(small):
    from transformers import MistralConfig
    from transformers.models.mistral.modeling_flax_mistral import FlaxMistralAttention, FlaxMistralRMSNorm

    length, hidden, experts = (16, 96, 4) if small else (128, 14336, 8)
    widths = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2) if small else dict(hidden_size=4096, num_attention_heads=32, num_key_value_heads=8)
    config = MistralConfig(intermediate_size=hidden, max_position_embeddings=length, sliding_window=length, **widths)

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            positions = jnp.arange(length)[None]
            mask = jnp.ones((1, length), I32)
            h = FlaxMistralRMSNorm(config)(x)
            x = x + FlaxMistralAttention(config)(h, mask, positions)[0]
            h = FlaxMistralRMSNorm(config)(x)
            return x + MixtureOfExperts(experts, config.hidden_size, hidden)(h[0])[None]

    module = Block()
    x = array((1, length, config.hidden_size))
    return Model(
        "attention and norm of transformers FlaxMistral; the mixture of experts is written here in Flax",
        shapes(module, x), (x,), module.apply,
    )


# Encoders of transformers.


def bert(small):
    from transformers import BertConfig
    from transformers.models.bert.modeling_flax_bert import FlaxBertForMaskedLMModule

    batch, length = (2, 16) if small else (8, 128)
    widths = dict(hidden_size=64, num_attention_heads=4, intermediate_size=96, vocab_size=128) if small else {}
    config = BertConfig(num_hidden_layers=2, **widths)
    module = FlaxBertForMaskedLMModule(config)
    tokens = array((batch, length), I32)

    def apply(params, tokens, mask, **more):
        types, positions = jnp.zeros_like(tokens), jnp.broadcast_to(jnp.arange(length), tokens.shape)
        return module.apply(params, tokens, mask, types, positions, None, return_dict=False, **more)[0]

    def loss(params, tokens, mask):
        seed = jax.random.fold_in(jax.random.key(0), tokens[0, 0])
        return cross_entropy(apply(params, tokens, mask, deterministic=small, rngs={"dropout": seed}), tokens)

    params = shapes(module, tokens, tokens, tokens, tokens, None, return_dict=False)
    return Model("transformers FlaxBertForMaskedLM (base)", params, (tokens, tokens), apply, loss)


def vit(small):
    from transformers import ViTConfig
    from transformers.models.vit.modeling_flax_vit import FlaxViTForImageClassificationModule

    batch, widths = 8, dict(num_labels=1000)
    if small:
        batch, widths = 2, dict(hidden_size=64, num_attention_heads=4, intermediate_size=96, image_size=32, patch_size=8, num_labels=10)
    config = ViTConfig(num_hidden_layers=2, **widths)
    module = FlaxViTForImageClassificationModule(config)
    pixels, labels = array((batch, config.image_size, config.image_size, 3)), array((batch,), I32)

    def forward(params, pixels, labels):
        return module.apply(params, pixels, return_dict=False)[0]

    def loss(params, pixels, labels):
        return cross_entropy(forward(params, pixels, labels), labels)

    params = shapes(module, pixels, return_dict=False)
    return Model("transformers FlaxViTForImageClassification (base, 16x16)", params, (pixels, labels), forward, loss)


def whisper(small):
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_flax_whisper import FlaxWhisperEncoder

    widths = dict(d_model=512, encoder_attention_heads=8, encoder_ffn_dim=2048)
    if small:
        widths = dict(d_model=64, encoder_attention_heads=4, encoder_ffn_dim=96, num_mel_bins=8, max_source_positions=16)
    config = WhisperConfig(encoder_layers=2, **widths)
    module = FlaxWhisperEncoder(config)
    sound = array((1, config.num_mel_bins, 2 * config.max_source_positions))

    def forward(params, sound):
        return module.apply(params, sound, return_dict=False)[0]

    return Model("transformers FlaxWhisperEncoder (base)", shapes(module, sound, return_dict=False), (sound,), forward)


# Images.


def resnet50(small):
    from transformers import ResNetConfig
    from transformers.models.resnet.modeling_flax_resnet import FlaxResNetForImageClassificationModule

    batch, size, widths = 1, 224, dict(num_labels=1000)
    if small:
        batch, size, widths = 2, 32, dict(embedding_size=8, hidden_sizes=[16, 32], depths=[1, 2], num_labels=10)
    module = FlaxResNetForImageClassificationModule(ResNetConfig(**widths))
    pixels, labels = array((batch, size, size, 3)), array((batch,), I32)
    variables = shapes(module, pixels, return_dict=False)

    def forward(variables, pixels, labels):
        return module.apply(variables, pixels, return_dict=False)[0]

    def loss(params, state, pixels, labels):
        out, state = module.apply(
            {"params": params, **state}, pixels, deterministic=False, return_dict=False, mutable=["batch_stats"],
        )
        return cross_entropy(out[0], labels), state

    model = Model("transformers FlaxResNetForImageClassification (50)", variables, (pixels, labels), forward)
    model.train = lambda: train_with_state(loss, variables, model.inputs)
    return model


def train_with_state(loss, variables, inputs):
    """A training step of a model that has running statistics."""
    optimiser = optax.adam(1e-4)
    params, rest = variables["params"], {"batch_stats": variables["batch_stats"]}

    def step(params, rest, state, *inputs):
        (value, rest), gradient = jax.value_and_grad(loss, has_aux=True)(params, rest, *inputs)
        updates, state = optimiser.update(gradient, state, params)
        return value, optax.apply_updates(params, updates), rest, state

    return step, (params, rest, jax.eval_shape(optimiser.init, params), *inputs)


def unet(small):
    from diffusers import FlaxUNet2DConditionModel

    size, words, widths = 32, (1, 77, 768), dict(block_out_channels=(320, 640), cross_attention_dim=768)
    if small:
        size, words, widths = 8, (1, 5, 16), dict(block_out_channels=(32, 64), cross_attention_dim=16, attention_head_dim=2)
    module = FlaxUNet2DConditionModel(
        sample_size=size, layers_per_block=1, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **widths,
    )
    inputs = (array((1, 4, size, size)), array((1,), I32), array(words))

    def forward(params, sample, time, words):
        return module.apply(params, sample, time, words, return_dict=False)[0]

    return Model("diffusers FlaxUNet2DConditionModel (widths of Stable Diffusion 1, two levels)", shapes(module, *inputs), inputs, forward)


class DiTBlock(nn.Module):
    """A block of a diffusion transformer with adaLN-Zero (Peebles and Xie, 2023)."""

    width: int
    heads: int

    @nn.compact
    def __call__(self, x, condition):
        change = nn.Dense(6 * self.width)(jax.nn.silu(condition))[:, None]
        shift1, scale1, gate1, shift2, scale2, gate2 = jnp.split(change, 6, axis=-1)
        norm = functools.partial(nn.LayerNorm, use_bias=False, use_scale=False, epsilon=1e-6)
        h = norm()(x) * (1 + scale1) + shift1
        x = x + gate1 * nn.MultiHeadDotProductAttention(self.heads)(h)
        h = norm()(x) * (1 + scale2) + shift2
        return x + gate2 * nn.Dense(self.width)(jax.nn.gelu(nn.Dense(4 * self.width)(h)))


class DiT(nn.Module):
    """A diffusion transformer: patches, timestep and class condition, blocks, noise."""

    width: int
    heads: int
    patch: int = 2
    classes: int = 1000

    @nn.compact
    def __call__(self, image, time, label):
        x = nn.Conv(self.width, (self.patch, self.patch), (self.patch, self.patch))(image)
        b, h, w, _ = x.shape
        x = x.reshape(b, h * w, self.width) + self.param("position", nn.initializers.normal(0.02), (1, h * w, self.width))
        frequency = jnp.exp(-math.log(10000) * jnp.arange(128) / 128)
        angle = time[:, None] * frequency
        c = nn.Dense(self.width)(jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=-1))
        c = nn.Dense(self.width)(jax.nn.silu(c)) + nn.Embed(self.classes + 1, self.width)(label)
        for _ in range(2):
            x = DiTBlock(self.width, self.heads)(x, c)
        x = nn.Dense(self.patch**2 * image.shape[-1])(nn.LayerNorm()(x))
        x = x.reshape(b, h, w, self.patch, self.patch, -1)
        return jnp.einsum("bhwpqc->bhpwqc", x).reshape(image.shape)


def dit(small):
    module = DiT(64, 4, classes=10) if small else DiT(1152, 16)
    size, batch = (8, 2) if small else (32, 2)
    inputs = (array((batch, size, size, 4)), array((batch,)), array((batch,), I32))
    return Model("written here in Flax: DiT-XL/2 with two blocks", shapes(module, *inputs), inputs, module.apply)


# Sequences.


class MambaBlock(nn.Module):
    """Mamba's block (Gu and Dao, 2023): convolution, selective scan, gate.

    The scan is a loop over time, or with `parallel` an associative scan.
    """

    width: int
    parallel: bool
    state: int = 16

    @nn.compact
    def __call__(self, u):
        inner, rank, n = 2 * self.width, max(self.width // 16, 1), self.state
        x, gate = jnp.split(nn.Dense(2 * inner, use_bias=False)(u), 2, axis=-1)
        x = jax.nn.silu(nn.Conv(inner, (4,), padding=((3, 0),), feature_group_count=inner)(x))
        step, b, c = jnp.split(nn.Dense(rank + 2 * n, use_bias=False)(x), [rank, rank + n], axis=-1)
        step = jax.nn.softplus(nn.Dense(inner)(step))
        a = -jnp.exp(self.param("A_log", nn.initializers.zeros, (inner, n)))
        decay = jnp.exp(step[..., None] * a)
        drive = (step * x)[..., None] * b[:, :, None]
        h = self.scan(decay, drive)
        y = jnp.einsum("blin,bln->bli", h, c) + x * self.param("D", nn.initializers.ones, (inner,))
        return nn.Dense(self.width, use_bias=False)(y * jax.nn.silu(gate))

    def scan(self, decay, drive):
        if self.parallel:
            def combine(p, q):
                return p[0] * q[0], q[0] * p[1] + q[1]
            return jax.lax.associative_scan(combine, (decay, drive), axis=1)[1]

        def body(h, t):
            h = t[0] * h + t[1]
            return h, h

        over = (jnp.moveaxis(decay, 1, 0), jnp.moveaxis(drive, 1, 0))
        return jnp.moveaxis(jax.lax.scan(body, jnp.zeros_like(drive[:, 0]), over)[1], 0, 1)


class Mamba(nn.Module):
    """Two residual Mamba blocks."""

    width: int
    parallel: bool

    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = x + MambaBlock(self.width, self.parallel)(nn.RMSNorm()(x))
        return x


def mamba(small, parallel=False):
    module = Mamba(32 if small else 768, parallel)
    x = array((1, 8, 32) if small else (1, 128, 768))
    return Model(f"written here in Flax: widths of Mamba 130M, {'an associative' if parallel else 'a sequential'} scan", shapes(module, x), (x,), module.apply)


def lstm(small):
    batch, length, width = (2, 4, 16) if small else (32, 64, 512)

    class Stack(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(2):
                x = nn.RNN(nn.OptimizedLSTMCell(width))(x)
            return x

    module = Stack()
    x = array((batch, length, width))
    return Model("flax nn.RNN of nn.OptimizedLSTMCell, two layers", shapes(module, x), (x,), module.apply)


# Graphs and tables.


def gnn(small):
    import jraph

    nodes, edges, features, hidden, classes = (20, 50, 12, 8, 4) if small else (2708, 10556, 1433, 64, 7)

    class Network(nn.Module):
        @nn.compact
        def __call__(self, x, senders, receivers):
            graph = jraph.GraphsTuple(
                nodes=x, edges=None, senders=senders, receivers=receivers, globals=None,
                n_node=jnp.array([nodes]), n_edge=jnp.array([edges]),
            )
            for width in (hidden, classes):
                graph = jraph.GraphConvolution(nn.Dense(width), add_self_edges=True)(graph)
                if width != classes:
                    graph = graph._replace(nodes=jax.nn.relu(graph.nodes))
            return graph.nodes

    module = Network()
    inputs = (array((nodes, features)), array((edges,), I32), array((edges,), I32))
    return Model("jraph GraphConvolution, two layers, sizes of Cora", shapes(module, *inputs), inputs, module.apply)


class DLRM(nn.Module):
    """A recommender (Naumov et al., 2019): tables, two perceptrons, pairwise products."""

    rows: int
    width: int
    bottom: tuple
    top: tuple

    @nn.compact
    def __call__(self, dense, sparse):
        for n in self.bottom:
            dense = jax.nn.relu(nn.Dense(n)(dense))
        vectors = [dense] + [nn.Embed(self.rows, self.width)(sparse[:, k]) for k in range(sparse.shape[1])]
        v = jnp.stack(vectors, axis=1)
        products = jnp.einsum("bfd,bgd->bfg", v, v)
        row, column = jnp.tril_indices(v.shape[1], -1)
        x = jnp.concatenate([dense, products[:, row, column]], axis=-1)
        for n in self.top:
            x = jax.nn.relu(nn.Dense(n)(x))
        return nn.Dense(1)(x)


def dlrm(small):
    module = DLRM(50, 8, (16, 8), (16,)) if small else DLRM(100_000, 128, (512, 256, 128), (1024, 1024, 512, 256))
    batch, tables = (4, 3) if small else (128, 26)
    inputs = (array((batch, 13)), array((batch, tables), I32))
    return Model("written here in Flax: DLRM with the widths of MLPerf, tables of 100000 rows", shapes(module, *inputs), inputs, module.apply)


MODELS = {
    "llama_block": llama_block, "llama3": llama3, "gemma": gemma, "mixtral": mixtral, "bert": bert, "vit": vit,
    "resnet50": resnet50, "unet": unet, "dit": dit, "mamba": mamba,
    "mamba_parallel": functools.partial(mamba, parallel=True),
    "gnn": gnn, "dlrm": dlrm, "lstm": lstm, "whisper": whisper,
}
