"""Where families that load when used keep their names. Written by `python -m flambeau.testing.families`."""

FAMILIES = {
    "affine.fake": """
_fake_quantize_per_tensor_affine_cachemask_tensor_qparams fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask
fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask
""",
    "affine.from_codes": """
_empty_affine_quantized _empty_per_channel_affine_quantized _make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor
""",
    "affine.quantization": """
quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
""",
    "affine.reading": """
dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
""",
    "creation.spaced": """
logspace
""",
    "creation.strided_memory": """
empty_permuted empty_strided new_empty_strided
""",
    "indexing.data_dependent": """
_unique2 argwhere bincount masked_scatter masked_select nonzero nonzero_numpy unique_consecutive unique_dim
""",
    "indexing.histograms_and_segments": """
_histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _segment_ids _segment_others _segment_reduce_backward
_unique frexp histogram nonzero_static segment_reduce unique_dim_consecutive
""",
    "indexing.index_writes": """
index_copy index_fill index_reduce put scatter_reduce take type_as
""",
    "indexing.masked": """
_unsafe_masked_index _unsafe_masked_index_put_accumulate
""",
    "indexing.searching": """
bucketize histc isin searchsorted
""",
    "linear_algebra.chains": """
chain_matmul linalg_multi_dot
""",
    "linear_algebra.cholesky": """
cholesky linalg_cholesky linalg_cholesky_ex
""",
    "linear_algebra.determinants": """
_linalg_det _linalg_slogdet det inverse linalg_det linalg_inv linalg_inv_ex linalg_slogdet logdet slogdet
""",
    "linear_algebra.distances": """
_cdist_backward _cdist_forward cdist
""",
    "linear_algebra.eigenvalues": """
_linalg_eigh _linalg_eigvals linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
""",
    "linear_algebra.failures": """
_linalg_check_errors
""",
    "linear_algebra.ldl": """
linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve
""",
    "linear_algebra.least_squares": """
linalg_lstsq linalg_matrix_rank linalg_pinv pinverse
""",
    "linear_algebra.lu": """
_lu_permutation _lu_with_info linalg_lu linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve lu_solve lu_unpack
""",
    "linear_algebra.matrix_functions": """
linalg_matrix_exp linalg_matrix_power matrix_exp matrix_power
""",
    "linear_algebra.matrix_norms": """
frobenius_norm linalg_cond linalg_matrix_norm nuclear_norm
""",
    "linear_algebra.prepacked": """
_mm_prepacked _prepack
""",
    "linear_algebra.qr": """
geqrf linalg_householder_product linalg_qr orgqr ormqr qr
""",
    "linear_algebra.scaled": """
_scaled_mm
""",
    "linear_algebra.singular_values": """
_linalg_svd linalg_svd linalg_svdvals svd
""",
    "linear_algebra.systems": """
_linalg_solve_ex cholesky_inverse cholesky_solve linalg_solve linalg_solve_ex linalg_solve_triangular linalg_tensorinv linalg_tensorsolve
triangular_solve
""",
    "linear_algebra.tensordot": """
tensordot
""",
    "linear_algebra.vectors": """
cross linalg_cross linalg_diagonal linalg_matmul linalg_vander linalg_vecdot
""",
    "linear_algebra.weight_only": """
_convert_weight_to_int4pack_for_cpu _weight_int4pack_mm_for_cpu _weight_int8pack_mm
""",
    "lists.foreach": """
_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul
_foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max
_foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_copy _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh
_foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_
_foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma
_foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_
_foreach_max _foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_
_foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt
_foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_
_foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc
_foreach_trunc_ _foreach_zero_
""",
    "lists.optimizer_steps": """
_fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_sgd_ hash_tensor
""",
    "neural.activation": """
_prelu_kernel celu elu elu_backward gelu gelu_backward glu hardshrink hardsigmoid hardsigmoid_backward hardswish hardswish_backward
hardtanh hardtanh_backward leaky_relu leaky_relu_backward log_sigmoid mish mish_backward prelu relu rrelu selu silu silu_backward softplus
softplus_backward softshrink threshold threshold_backward
""",
    "neural.adaptive_pooling": """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
""",
    "neural.attention": """
_kept_bits _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward _streamed_attention
_streamed_attention_backward
""",
    "neural.average_pooling": """
_window_sums _window_sums_backward avg_pool1d avg_pool2d avg_pool3d
""",
    "neural.batch_norm_statistics": """
_batch_norm_no_update _batch_norm_with_update _native_batch_norm_legit _native_batch_norm_legit_functional
_native_batch_norm_legit_no_training native_batch_norm native_batch_norm_backward native_group_norm
""",
    "neural.classification_losses": """
binary_cross_entropy binary_cross_entropy_backward binary_cross_entropy_with_logits cross_entropy_loss nll_loss nll_loss2d
nll_loss2d_backward nll_loss2d_forward nll_loss_backward nll_loss_forward nll_loss_nd
""",
    "neural.convolution": """
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution convolution_backward
""",
    "neural.ctc_loss": """
_ctc_each _ctc_each_backward ctc_loss
""",
    "neural.dropout": """
alpha_dropout dropout feature_alpha_dropout feature_dropout native_dropout
""",
    "neural.embedding_bag": """
_embedding_bag_forward_only _refuse_nonzero embedding_bag
""",
    "neural.folding": """
channel_shuffle col2im im2col pixel_unshuffle
""",
    "neural.fractional_pooling": """
fractional_max_pool2d fractional_max_pool3d
""",
    "neural.library_names": """
_adaptive_avg_pool2d _adaptive_avg_pool3d native_dropout_backward relu6
""",
    "neural.margin_losses": """
_label_margins _label_margins_backward cosine_embedding_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss
multilabel_margin_loss soft_margin_loss triplet_margin_loss
""",
    "neural.max_pooling": """
max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d max_pool3d_with_indices
max_pool3d_with_indices_backward max_unpool2d max_unpool3d
""",
    "neural.normalization": """
batch_norm group_norm instance_norm layer_norm native_layer_norm native_layer_norm_backward rms_norm
""",
    "neural.recurrence": """
_recurrence _recurrence_backward
""",
    "neural.recurrent": """
gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
""",
    "neural.regression_losses": """
huber_loss huber_loss_backward kl_div l1_loss mse_loss poisson_nll_loss smooth_l1_loss smooth_l1_loss_backward
""",
    "neural.resampling": """
_grid_sample _upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d
affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d upsample_bicubic2d upsample_bilinear2d upsample_linear1d
upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d
""",
    "neural.scaled_dot_product": """
scaled_dot_product_attention
""",
    "neural.similarity": """
_pdist_forward bilinear cosine_similarity pairwise_distance pdist
""",
    "neural.softmax": """
_log_softmax _log_softmax_backward_data _softmax _softmax_backward_data log_softmax softmax
""",
    "pointwise.clamping": """
clamp clamp_max clamp_min clip
""",
    "pointwise.complex_numbers": """
_conj _conj_physical _neg_view adjoint angle complex conj conj_physical isreal polar resolve_conj resolve_neg sgn
""",
    "pointwise.orthogonal_polynomials": """
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
special_shifted_chebyshev_polynomial_w
""",
    "pointwise.range_checks": """
_check_between
""",
    "pointwise.real_functions": """
_nan_to_num _nextafter _nextafter_narrow _trigamma absolute absolute_ acos acosh arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh
arcsinh_ arctan arctan_ arctanh arctanh_ asin asinh atan atan2 atanh bitwise_left_shift bitwise_right_shift copysign cosh deg2rad digamma
erfc erfinv fix fix_ float_power fmax fmin frac gcd heaviside hypot isneginf isposinf lcm ldexp lgamma logaddexp logaddexp2 logit
logit_backward nan_to_num negative negative_ nextafter positive rad2deg signbit sinc sinh special_entr special_erfcx special_i0
special_i0e special_i1 special_i1e special_log_ndtr special_ndtri special_xlog1py xlogy
""",
    "pointwise.special_functions": """
i0 igamma igammac mvlgamma polygamma special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
special_digamma special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1 special_gammainc special_gammaincc
special_gammaln special_log1p special_log_softmax special_logit special_modified_bessel_i0 special_modified_bessel_i1
special_modified_bessel_k0 special_modified_bessel_k1 special_multigammaln special_ndtr special_polygamma special_psi special_round
special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_sinc special_softmax special_spherical_bessel_j0 special_xlogy
special_zeta
""",
    "random.distributions": """
_dirichlet_grad _sample_dirichlet _standard_gamma _standard_gamma_grad binomial poisson
""",
    "reductions.order_statistics": """
cummax cummin logcumsumexp median mode nanmedian nanquantile quantile renorm
""",
    "reductions.scans_and_sorting": """
argsort cumprod cumsum flip kthvalue msort sort topk
""",
    "reductions.statistics": """
_safe_softmax _without_nan aminmax corrcoef count_nonzero cov diff dist linalg_norm linalg_vector_norm nanmean nansum norm
special_logsumexp std std_mean trace var_mean
""",
    "shapes.inplace_views": """
as_strided_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_
""",
    "shapes.resizing": """
resize_ resize_as_ set_
""",
    "shapes.splitting": """
dsplit hsplit vsplit
""",
    "shapes.strided": """
_as_strided _as_strided_gather _as_strided_scatter as_strided
""",
    "shapes.view_copies": """
_chunk_cat _conj_copy _neg_view_copy alias_copy as_strided_copy as_strided_scatter detach_copy diagonal_copy diagonal_scatter expand_copy
fill_diagonal_ lift_fresh_copy narrow_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy
transpose_copy unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy view_as_complex_copy
view_as_real_copy view_copy
""",
    "signal.calculus": """
cumulative_trapezoid gradient trapezoid trapz
""",
    "signal.fft": """
_fft_c2c _fft_c2r _fft_r2c fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn
""",
    "signal.windows": """
bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft
""",
    "sparse.arithmetic": """
_sparse_log_softmax _sparse_log_softmax_backward_data _sparse_softmax _sparse_softmax_backward_data _sparse_sum _sparse_sum_backward
""",
    "sparse.construction": """
_coalesce _coalesced_ _indices _nnz _sparse_compressed_tensor_unsafe _sparse_constructor_values_backward
_sparse_coo_tensor_with_dims_and_tensors _sparse_mask _to_dense _to_dense_backward _to_sparse _to_sparse_backward _values _values_backward
ccol_indices coalesce col_indices crow_indices dense_dim embedding_sparse_backward indices is_coalesced row_indices sparse_dim sparse_mask
to_dense to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr values
""",
    "sparse.products": """
_left_gradient _masked_product _sparse_addmm _sparse_mm _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward _sparse_sparse_matmul hspmm
smm sparse_sampled_addmm sspaddmm
""",
    "sparse.shapes": """
resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_
""",
}

EXPOSED = {
    "function": """
_chunk_cat _conj_copy _convert_weight_to_int4pack_for_cpu _dirichlet_grad _embedding_bag_forward_only _empty_affine_quantized
_empty_per_channel_affine_quantized _fft_c2c _fft_c2r _fft_r2c _foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add
_foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan
_foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_copy_
_foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_
_foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp
_foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2
_foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_
_foreach_neg _foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round
_foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_
_foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh
_foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero_ _fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_sgd_ _histogramdd_bin_edges
_histogramdd_from_bin_cts _histogramdd_from_bin_tensors _kept_bits _lu_with_info _make_per_channel_quantized_tensor
_make_per_tensor_quantized_tensor _native_batch_norm_legit _neg_view_copy _sample_dirichlet _scaled_mm _standard_gamma
_standard_gamma_grad _unique _unsafe_masked_index _unsafe_masked_index_put_accumulate _weight_int4pack_mm_for_cpu _weight_int8pack_mm
absolute acos acos_ acosh acosh_ adaptive_avg_pool1d adaptive_max_pool1d adjoint affine_grid_generator alias_copy alpha_dropout aminmax
angle arccos arccosh arcsin arcsinh arctan arctanh argsort argwhere as_strided as_strided_ as_strided_copy as_strided_scatter asin asin_
asinh asinh_ atan atan2 atan_ atanh atanh_ avg_pool1d bartlett_window batch_norm bilinear binary_cross_entropy_with_logits bincount
binomial bitwise_left_shift bitwise_right_shift blackman_window bucketize cdist celu celu_ channel_shuffle cholesky cholesky_inverse
cholesky_solve clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip complex conj conj_physical conj_physical_ conv1d conv2d conv3d
conv_transpose1d conv_transpose2d conv_transpose3d convolution copysign corrcoef cosh cosh_ cosine_embedding_loss cosine_similarity
count_nonzero cov cross ctc_loss cummax cummin cumprod cumsum cumulative_trapezoid deg2rad deg2rad_ dequantize det detach_copy
diagonal_copy diagonal_scatter diff digamma dist dropout dsplit embedding_bag empty_permuted empty_strided erfc erfc_ erfinv expand_copy
fake_quantize_per_channel_affine fake_quantize_per_tensor_affine feature_alpha_dropout feature_dropout fix flip float_power fmax fmin frac
frac_ frexp frobenius_norm gcd gcd_ geqrf gradient grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell hamming_window
hann_window hardshrink hash_tensor heaviside hinge_embedding_loss histc histogram hsplit hspmm hypot i0 i0_ igamma igammac index_copy
index_fill index_reduce instance_norm int_repr inverse isin isneginf isposinf isreal istft kaiser_window kl_div kthvalue layer_norm lcm
lcm_ ldexp ldexp_ lgamma log_softmax logaddexp logaddexp2 logcumsumexp logdet logit logit_ logspace lstm lstm_cell lu_solve lu_unpack
margin_ranking_loss masked_scatter masked_select matrix_exp matrix_power max_pool1d max_pool1d_with_indices max_pool2d max_pool3d median
mode msort mvlgamma nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow_copy native_batch_norm native_dropout
native_group_norm native_layer_norm negative nextafter nonzero nonzero_static norm nuclear_norm orgqr ormqr pairwise_distance pdist
permute_copy pinverse pixel_unshuffle poisson poisson_nll_loss polar polygamma positive prelu put q_per_channel_axis q_per_channel_scales
q_per_channel_zero_points q_scale q_zero_point qr quantile quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic rad2deg
rad2deg_ relu relu_ renorm resolve_conj resolve_neg rms_norm rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell rrelu scatter_reduce
searchsorted segment_reduce select_copy selu selu_ sgn signbit sinc sinc_ sinh sinh_ slice_copy slogdet smm softmax sort split_copy
split_with_sizes_copy squeeze_copy sspaddmm std std_mean svd t_copy take threshold threshold_ topk trace transpose_copy trapezoid trapz
triangular_solve triplet_margin_loss unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy var_mean
view_as_complex_copy view_as_real_copy view_copy vsplit xlogy xlogy_
""",
    "method": """
_coalesced_ _indices _nnz _values absolute acos acos_ acosh acosh_ adjoint aminmax angle arccos arccosh arcsin arcsinh arctan arctanh
argsort argwhere as_strided as_strided_ as_strided_scatter asin asin_ asinh asinh_ atan atan2 atan2_ atan_ atanh atanh_ bincount
bitwise_left_shift bitwise_left_shift_ bitwise_right_shift bitwise_right_shift_ ccol_indices cholesky cholesky_inverse cholesky_solve
clamp clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip coalesce col_indices conj conj_physical conj_physical_ copysign copysign_
corrcoef cosh cosh_ count_nonzero cov cross crow_indices cummax cummin cumprod cumprod_ cumsum cumsum_ deg2rad deg2rad_ dense_dim
dequantize det diagonal_scatter diff digamma digamma_ dist dsplit erfc erfc_ erfinv erfinv_ fill_diagonal_ fix flip float_power
float_power_ fmax fmin frac frac_ frexp gcd gcd_ geqrf hardshrink hash_tensor heaviside heaviside_ histc histogram hsplit hypot hypot_ i0
i0_ igamma igamma_ igammac igammac_ index_copy index_copy_ index_fill index_fill_ index_reduce index_reduce_ indices int_repr inverse
is_coalesced isneginf isposinf isreal istft kthvalue lcm lcm_ ldexp ldexp_ lgamma lgamma_ log_softmax logaddexp logaddexp2 logcumsumexp
logdet logit logit_ lu_solve masked_scatter masked_scatter_ masked_select matrix_exp matrix_power median mode msort mvlgamma mvlgamma_
nan_to_num nan_to_num_ nanmean nanmedian nanquantile nansum narrow_copy negative new_empty_strided nextafter nextafter_ nonzero
nonzero_static norm orgqr ormqr pinverse positive prelu put put_ q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
q_zero_point qr quantile rad2deg rad2deg_ relu relu_ renorm renorm_ resolve_conj resolve_neg row_indices scatter_reduce scatter_reduce_
sgn sgn_ signbit sinc sinc_ sinh sinh_ slogdet smm softmax sort sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ squeeze_
sspaddmm std svd swapaxes_ swapdims_ t_ take to_dense to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr topk trace
transpose_ triangular_solve type_as unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_ values vsplit xlogy xlogy_
""",
    "nn": """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d avg_pool1d avg_pool2d avg_pool3d celu channel_shuffle conv1d conv2d conv3d
conv_transpose1d conv_transpose2d conv_transpose3d elu gelu glu hardshrink hardsigmoid hardswish hardtanh layer_norm leaky_relu
log_sigmoid max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices mish pixel_unshuffle relu scaled_dot_product_attention
selu silu softplus softshrink
""",
    "special": """
entr=special_entr erfcx=special_erfcx i0=special_i0 i0e=special_i0e i1=special_i1 i1e=special_i1e log_ndtr=special_log_ndtr
logsumexp=special_logsumexp ndtri=special_ndtri xlog1py=special_xlog1py
""",
    "linalg": """
norm=linalg_norm vector_norm=linalg_vector_norm
""",
}
