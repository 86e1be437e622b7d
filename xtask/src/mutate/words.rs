//! Words the pinned llama.cpp knows: architectures, tokenizers and keys a header may carry. Data for
//! mutations; nothing here decides.

/// Values of `general.architecture`.
pub(super) const ARCHITECTURES: &str = "
    clip llama llama4 deci falcon grok gpt2 gptj gptneox mpt baichuan starcoder refact bert
    modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 eurobert bloom
    stablelm qwen qwen2 qwen2moe qwen2vl qwen3 qwen3moe qwen3next qwen3vl qwen3vlmoe qwen35
    qwen35moe clef qwen4exp phi2 phi3 phimoe plamo plamo2 plamo3 codeshell orion internlm2
    minicpm minicpm3 gemma gemma2 gemma3 gemma3n gemma4 gemma4-assistant gemma-embedding
    starcoder2 mamba mamba2 maple jamba falcon-h1 xverse command-r cohere2 cohere2moe dbrx olmo
    olmo2 olmoe muse-glimmer openelm arctic deepseek deepseek2 deepseek2-ocr deepseek32
    deepseek4 chatglm glm4 glm4moe glm-dsa bitnet t5 t5encoder jais jais2 nemotron nemotron_h
    nemotron_h_moe exaone exaone4 exaone-moe rwkv6 rwkv6qwen2 rwkv7 arwkv7 granite granitemoe
    granitehybrid graniteswitch granite_swa chameleon wavtokenizer-dec plm bailingmoe
    bailingmoe2 bailingmoe3 dots1 dots3note arcee afmoe laguna ernie4_5 ernie4_5-moe hunyuan-moe
    hunyuan-dense hunyuan_vl hy_v3 hy_v4 smollm3 gpt-oss lfm2 lfm2moe dream smallthinker llada
    llada-moe seed_oss grovemoe apertus minimax-01 hrm_text minimax-m2 minimax-m3 cogvlm rnd1
    pangu-embedded mistral3 eagle3 dflash mistral4 paddleocr mimo2 step35 spark2_5 llama-embed
    maincoder kimi-linear kimi-k3 glm5-next talkie mellum nanbeige qwen3tts pockettts
";

/// Values of `tokenizer.ggml.model`.
pub(super) const TOKENIZERS: &str = "
    bert gemma4 gpt2 hybriddna llama no_vocab none plamo2 rwkv t5 test whitespace unheard-of
";

/// Values of `tokenizer.ggml.pre`.
pub(super) const PRE_TOKENIZERS: &str = "
    a.x-4.0 afmoe bailingmoe bailingmoe2 bloom chameleon chatglm-bpe codeshell cohere2moe
    command-r dbrx deepseek-coder deepseek-llm deepseek-r1-qwen deepseek-v3 default exaone
    exaone-moe exaone4 f2llmv2 falcon falcon-h1 falcon3 gemma4 gigachat glm4 glm5 gpt-2 gpt-4o
    gpt3-finnish granite-docling granite-embed-multi-311m granite-embed-multi-97m grok-2 hunyuan
    hunyuan-dense hy_v4 jais jais-2 jina-de jina-es jina-v1-en jina-v2-code jina-v2-de
    jina-v2-es jina-v5-nano joyai-llm kanana2 kimi-k2 kormo laguna lfm2 llada-moe llama-bpe
    llama-v3 llama3 llama4 megrez mellum mellum2 midm-2.0 minerva-7b minicpm5 minimax-m2 mmbert
    modern-bert mpt olmo phi-2 pixtral poro-chat qwen2 qwen35 refact roberta-bpe sarvam-moe
    seed-coder smaug-bpe smollm solar-open spark2_5 stablelm2 starcoder superbpe talkie tekken
    tiny_aya trillion ufakzeka viking whitespace youtu unheard-of
";

/// Keys below the architecture's name.
pub(super) const KEYS: &str = "
    vocab_size context_length embedding_length embedding_length_out
    embedding_length_per_layer_input features_length block_count leading_dense_block_count
    attn_res.block_size activation.situ_beta activation.situ_linear_beta feed_forward_length
    expert_feed_forward_length expert_shared_feed_forward_length
    expert_chunk_feed_forward_length swiglu_clamp_exp swiglu_clamp_shexp use_parallel_residual
    tensor_data_layout expert_count expert_used_count expert_shared_count expert_group_count
    expert_group_used_count expert_weights_scale expert_weights_norm expert_latent_length
    expert_gating_func expert_group_scale experts_per_group moe_every_n_layers moe_latent_size
    nextn_predict_layers n_deepstack_layers deepstack_mapping hidden_activation pooling_type
    logit_scale decoder_start_token_id decoder_block_count attn_logit_softcapping
    router_logit_softcapping final_logit_softcapping swin_norm rescale_every_n_layers
    time_mix_extra_dim time_decay_extra_dim residual_scale embedding_scale adapters.count
    adapters.token_ids_activate adapters.token_ids_substitute adapters.lora_rank
    adapters.router_gain token_shift_count interleave_moe_layer_step full_attention_interval
    num_loops skip_loop_final_norm hrm.layers_per_stack hrm.h_cycles hrm.l_cycles hrm.prefix_lm
    attention.head_count attention.head_count_kv attention.max_alibi_bias attention.clamp_kqv
    attention.key_length attention.value_length attention.layer_norm_epsilon
    attention.layer_norm_rms_epsilon attention.group_norm_epsilon attention.group_norm_groups
    attention.causal attention.q_lora_rank attention.kv_lora_rank attention.decay_lora_rank
    attention.iclr_lora_rank attention.value_residual_mix_lora_rank attention.gate_lora_rank
    attention.relative_buckets_count attention.sliding_window attention.sliding_window_pattern
    attention.rope_pattern attention.scale attention.output_scale attention.value_scale
    attention.temperature_length attention.temperature_scale attention.key_length_mla
    attention.value_length_mla attention.key_length_swa attention.value_length_swa
    attention.key_length_mla_swa attention.value_length_mla_swa attention.kv_lora_rank_swa
    attention.indexer.head_count attention.indexer.key_length attention.indexer.top_k
    attention.indexer.block_size attention.indexer.local_blocks attention.indexer.types
    attention.indexer.kpool attention.indexer.kpool_select_tail attention.output_group_count
    attention.output_lora_rank attention.compress_rope_freq_base attention.compress_ratios
    attention.shared_kv_layers attention.recurrent_layers hyper_connection.count
    hyper_connection.sinkhorn_iterations hyper_connection.epsilon hyper_connection.magnitude
    hyper_connection.low_rank ple.layers ple.ngram_size ple.heads_per_ngram ple.conv_kernel
    ple.layer_multipliers ple.head_offsets ple.head_vocab_sizes ple.eos_token_id
    ple.image_token_id hash_layer_count rope.dimension_count rope.dimension_count_swa
    rope.dimension_sections rope.freq_base rope.freq_base_swa rope.scale_linear
    rope.scaling.type rope.scaling.factor rope.scaling.alpha rope.scaling.attn_factor
    rope.scaling.original_context_length rope.scaling.finetuned rope.scaling.yarn_log_multiplier
    rope.scaling.yarn_ext_factor rope.scaling.yarn_attn_factor rope.scaling.yarn_beta_fast
    rope.scaling.yarn_beta_slow ssm.conv_kernel ssm.inner_size ssm.state_size ssm.time_step_rank
    ssm.group_count ssm.dt_b_c_rms kda.head_dim kda.safe_gate kda.gate_lower_bound wkv.head_size
    posnet.embedding_length posnet.block_count convnext.embedding_length convnext.block_count
    classifier.output_labels classifier.pooling_type decision.block_count
    decision.routing_block_count decision.head_count target_layers target_hidden_size
    norm_before_residual norm_before_fc block_size conv_kernel_size conv_group_size
    selector_rank selector_top_k shortconv.l_cache dense_2_feat_in dense_2_feat_out
    dense_3_feat_in dense_3_feat_out
";

/// Keys of the tokenizer.
pub(super) const TOKENIZER_KEYS: &str = "
    tokenizer.ggml.model tokenizer.ggml.pre tokenizer.ggml.tokens tokenizer.ggml.token_type
    tokenizer.ggml.token_type_count tokenizer.ggml.scores tokenizer.ggml.merges
    tokenizer.ggml.bos_token_id tokenizer.ggml.eos_token_id tokenizer.ggml.eot_token_id
    tokenizer.ggml.eom_token_id tokenizer.ggml.unknown_token_id
    tokenizer.ggml.seperator_token_id tokenizer.ggml.padding_token_id
    tokenizer.ggml.cls_token_id tokenizer.ggml.mask_token_id tokenizer.ggml.add_bos_token
    tokenizer.ggml.add_eos_token tokenizer.ggml.add_sep_token tokenizer.ggml.add_space_prefix
    tokenizer.ggml.remove_extra_whitespaces tokenizer.ggml.precompiled_charsmap
    tokenizer.huggingface.json tokenizer.rwkv.world tokenizer.chat_template
    tokenizer.ggml.normalizer.lowercase tokenizer.ggml.normalizer.strip_accents
    tokenizer.ggml.fim_pre_token_id tokenizer.ggml.fim_suf_token_id
    tokenizer.ggml.fim_mid_token_id tokenizer.ggml.fim_pad_token_id
    tokenizer.ggml.fim_rep_token_id tokenizer.ggml.fim_sep_token_id
    tokenizer.ggml.suppress_tokens tokenizer.ggml.prefix_token_id tokenizer.ggml.suffix_token_id
    tokenizer.ggml.middle_token_id
";

/// One of `words`.
pub(super) fn one_of(random: &mut fastrand::Rng, words: &'static str) -> &'static str {
    random.choice(words.split_whitespace().collect::<Vec<_>>()).expect("a list has words")
}
