"""Whether transformers' other Flax architectures, which are not in the corpus, are computed as JAX does.

python architectures.py [-tilewright PROGRAM] [NAME …]

Small models with random weights: predictions, and training steps with clipping by the norm
and AdamW. Their StableHLO is partitioned and executed by `tilewright run`.
"""

import argparse
import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import jax
import jax.numpy as jnp
import numpy as np
import optax
import transformers

from compare import executed

clip = jnp.clip
# Transformers 4 calls it by the names that JAX has dropped.
jnp.clip = lambda x, a_min=None, a_max=None: clip(x, a_min, a_max)

# Widths by the three sets of names that configurations have.
ENCODER = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, vocab_size=97)
DECODER = dict(n_embd=32, n_layer=2, n_head=4, vocab_size=97, n_positions=64)
PAIR = dict(
    d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
    encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=97, max_position_embeddings=64, pad_token_id=0,
    bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, forced_eos_token_id=2,
)
T5 = dict(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=97, decoder_start_token_id=0)
TEXT = dict(input_ids=(2, 16))
TEXTS = dict(input_ids=(2, 32), decoder_input_ids=(2, 12))
IMAGE = dict(pixel_values=(2, 3, 32, 32))
PATCHES = dict(image_size=32, patch_size=8, num_labels=5)

# Of each model the configuration, its arguments, the class, and the shapes of the inputs.
MODELS = {
    "albert": ("Albert", dict(ENCODER, embedding_size=16), "AlbertForMaskedLM", TEXT),
    "electra": ("Electra", dict(ENCODER, embedding_size=16), "ElectraForPreTraining", TEXT),
    "roformer": ("RoFormer", dict(ENCODER, embedding_size=32, max_position_embeddings=64), "RoFormerForQuestionAnswering", TEXT),
    "bigbird": ("BigBird", dict(ENCODER, max_position_embeddings=128, block_size=4, num_random_blocks=2), "BigBirdForMaskedLM", dict(input_ids=(2, 64))),
    "gpt2": ("GPT2", DECODER, "GPT2LMHeadModel", TEXT),
    "gptj": ("GPTJ", dict(DECODER, rotary_dim=4), "GPTJForCausalLM", TEXT),
    "bloom": ("Bloom", dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=97), "BloomForCausalLM", TEXT),
    "t5": ("T5", dict(T5, feed_forward_proj="gated-gelu"), "T5ForConditionalGeneration", TEXTS),
    "longt5": ("LongT5", dict(T5, local_radius=3, encoder_attention_type="transient-global", global_block_size=4), "LongT5ForConditionalGeneration", TEXTS),
    "bart": ("Bart", PAIR, "BartForConditionalGeneration", TEXTS),
    "marian": ("Marian", PAIR, "MarianMTModel", TEXTS),
    "pegasus": ("Pegasus", PAIR, "PegasusForConditionalGeneration", TEXTS),
    "beit": ("Beit", dict(ENCODER, **PATCHES, use_relative_position_bias=True), "BeitForImageClassification", IMAGE),
    "dinov2": ("Dinov2", dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, **PATCHES), "Dinov2ForImageClassification", IMAGE),
    "regnet": ("RegNet", dict(embedding_size=8, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1], groups_width=8, num_labels=5), "RegNetForImageClassification", IMAGE),
    "wav2vec2": (
        "Wav2Vec2",
        dict(
            ENCODER, conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 2), num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4, do_stable_layer_norm=True, feat_extract_norm="layer",
        ),
        "Wav2Vec2ForCTC",
        dict(input_values=(2, 1600)),
    ),
}
# A gradient that is zero but for rounding, as that of an attention's key bias, is noise: up to
# this much of it is compared with 1. Epsilon of AdamW is above it for the same reason.
NOISE = 2e-5
ALLOWED = 1e-4


def inputs(shapes):
    """Random tokens, pixels or sound."""
    random = np.random.default_rng(0)
    return {
        name: random.integers(3, 90, shape).astype(np.int32) if name.endswith("ids") else random.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def passes(model):
    """The prediction and the training step of a model, with the rest of their arguments."""

    def forward(params, given):
        return model(**given, params=params, return_dict=False)

    def loss(params, given):
        return sum(jnp.mean(jnp.tanh(x) ** 2) for x in jax.tree.leaves(forward(params, given)) if jnp.issubdtype(x.dtype, jnp.floating))

    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, eps=1e-3))

    def train(params, state, given):
        value, gradient = jax.value_and_grad(loss)(params, given)
        updates, state = optimiser.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    yield "forward", forward, ()
    yield "train", train, (optimiser.init(model.params),)


def difference(got, want):
    """The largest difference, relative to the largest element or to NOISE."""
    if got.shape != want.shape or not np.array_equal(np.isfinite(got), np.isfinite(want)):
        return np.inf
    got, want = (np.where(np.isfinite(want), x, 0).astype(np.float64) for x in (got, want))
    return float(np.max(np.abs(got - want), initial=0) / np.max(np.abs(want), initial=NOISE))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-tilewright", default="out/tilewright")
    parser.add_argument("name", nargs="*", help="models; all without")
    options = parser.parse_args()
    bad = 0
    for name in options.name or MODELS:
        config, widths, kind, shapes = MODELS[name]
        model = getattr(transformers, "Flax" + kind)(getattr(transformers, config + "Config")(**widths), seed=0)
        given = inputs(shapes)
        for which, function, state in passes(model):
            arguments = (model.params, *state, given)
            lowered = jax.jit(function, keep_unused=True).lower(*arguments)
            want = [np.asarray(x) for x in jax.tree.leaves(lowered.compile()(*arguments))]
            arrays = [np.asarray(x) for x in jax.tree.leaves(arguments)]
            off = max(map(difference, executed(options.tilewright, lowered.as_text(), arrays, len(want)), want))
            bad += not off <= ALLOWED
            print(f"{name}.{which}: largest difference {off:.2g}{'' if off <= ALLOWED else ' WRONG'}", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
