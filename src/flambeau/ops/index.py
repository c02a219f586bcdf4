"""Where families that load when used keep their names. Written by `python -m flambeau.testing.families`."""

FAMILIES = {
    "calculus": """
_adaptive_avg_pool2d _adaptive_avg_pool3d cumulative_trapezoid dsplit empty_permuted empty_strided gradient hsplit logspace
native_dropout_backward new_empty_strided relu6 tensordot trapezoid trapz vsplit
""",
    "copies": """
_chunk_cat _conj_copy _neg_view_copy alias_copy as_strided_copy as_strided_scatter detach_copy diagonal_copy diagonal_scatter expand_copy
lift_fresh_copy narrow_copy permute_copy select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy
unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy view_as_complex_copy view_as_real_copy view_copy
""",
    "fft": """
_fft_c2c _fft_c2r _fft_r2c fft_fft fft_fft2 fft_fftfreq fft_fftn fft_fftshift fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn
fft_ifftshift fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftfreq fft_rfftn
""",
    "foreach": """
_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul
_foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max
_foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_
_foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1
_foreach_expm1_ _foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma _foreach_lgamma_
_foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max
_foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ _foreach_norm
_foreach_pow _foreach_pow_ _foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_
_foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt
_foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_
_foreach_zero_
""",
    "fused": """
_fused_adagrad_ _fused_adam_ _fused_adamw_ _fused_sgd_ hash_tensor
""",
    "linalg": """
_cdist_backward _cdist_forward _linalg_check_errors _linalg_det _linalg_slogdet _linalg_solve_ex _lu_permutation _lu_with_info cdist
chain_matmul cholesky cholesky_inverse cholesky_solve cross det geqrf inverse linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det
linalg_diagonal linalg_householder_product linalg_inv linalg_inv_ex linalg_ldl_factor linalg_ldl_factor_ex linalg_ldl_solve linalg_lu
linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matmul linalg_matrix_exp linalg_matrix_power linalg_multi_dot linalg_qr
linalg_slogdet linalg_solve linalg_solve_ex linalg_solve_triangular linalg_tensorinv linalg_tensorsolve linalg_vander linalg_vecdot logdet
lu_solve lu_unpack matrix_exp matrix_power orgqr ormqr qr slogdet triangular_solve
""",
    "linalg_checks": """
""",
    "linalg_factors": """
""",
    "linalg_spectra": """
_linalg_eigh _linalg_svd frobenius_norm linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_lstsq linalg_matrix_norm
linalg_matrix_rank linalg_pinv linalg_svd linalg_svdvals nuclear_norm pinverse svd
""",
    "normalization": """
_batch_norm_with_update _native_batch_norm_legit _native_batch_norm_legit_no_training _unsafe_masked_index
_unsafe_masked_index_put_accumulate native_batch_norm native_group_norm
""",
    "sets": """
_histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _segment_ids _segment_others _segment_reduce_backward
_unique frexp histogram nonzero_static segment_reduce unique_dim_consecutive
""",
    "sparse": """
_coalesce _coalesced_ _indices _nnz _sparse_compressed_tensor_unsafe _sparse_constructor_values_backward
_sparse_coo_tensor_with_dims_and_tensors _sparse_mask _to_dense _to_dense_backward _to_sparse _to_sparse_backward _values _values_backward
ccol_indices coalesce col_indices crow_indices dense_dim embedding_sparse_backward indices is_coalesced row_indices sparse_dim sparse_mask
to_dense to_sparse to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr values
""",
    "sparse_arithmetic": """
_sparse_log_softmax _sparse_log_softmax_backward_data _sparse_softmax _sparse_softmax_backward_data _sparse_sum _sparse_sum_backward
""",
    "sparse_products": """
_left_gradient _masked_product _sparse_addmm _sparse_mm _sparse_mm_reduce_impl _sparse_mm_reduce_impl_backward _sparse_sparse_matmul hspmm
smm sparse_sampled_addmm sspaddmm
""",
    "sparse_shapes": """
resize_as_sparse_ sparse_resize_ sparse_resize_and_clear_
""",
    "special_functions": """
i0 igamma igammac mvlgamma polygamma special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
special_digamma special_erf special_erfc special_erfinv special_exp2 special_expit special_expm1 special_gammainc special_gammaincc
special_gammaln special_log1p special_log_softmax special_logit special_modified_bessel_i0 special_modified_bessel_i1
special_modified_bessel_k0 special_modified_bessel_k1 special_multigammaln special_ndtr special_polygamma special_psi special_round
special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_sinc special_softmax special_spherical_bessel_j0 special_xlogy
special_zeta
""",
    "special_polynomials": """
special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
special_shifted_chebyshev_polynomial_w
""",
    "windows": """
bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft
""",
}

EXPOSED = {
    "function": """
_batch_norm_with_update _cdist_backward _cdist_forward _chunk_cat _conj_copy _fft_c2c _fft_c2r _fft_r2c _foreach_abs _foreach_abs_
_foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_ _foreach_addcmul _foreach_addcmul_
_foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_ _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_
_foreach_clamp_min _foreach_clamp_min_ _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_
_foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor
_foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma _foreach_lgamma_ _foreach_log _foreach_log10
_foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_
_foreach_minimum _foreach_minimum_ _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_
_foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_ _foreach_sigmoid _foreach_sigmoid_
_foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub
_foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero_ _fused_adagrad_
_fused_adam_ _fused_adamw_ _fused_sgd_ _histogramdd_bin_edges _histogramdd_from_bin_cts _histogramdd_from_bin_tensors _lu_with_info
_native_batch_norm_legit _neg_view_copy _unique _unsafe_masked_index _unsafe_masked_index_put_accumulate alias_copy as_strided_copy
as_strided_scatter bartlett_window blackman_window cdist cholesky cholesky_inverse cholesky_solve cross cumulative_trapezoid det
detach_copy diagonal_copy diagonal_scatter dsplit empty_permuted empty_strided expand_copy frexp frobenius_norm geqrf gradient
hamming_window hann_window hash_tensor histogram hsplit hspmm i0 i0_ igamma igamma_ igammac igammac_ inverse istft kaiser_window
lift_fresh_copy logdet logspace lu_solve lu_unpack matrix_exp matrix_power mvlgamma mvlgamma_ narrow_copy native_batch_norm
native_dropout_backward native_group_norm nonzero_static nuclear_norm orgqr ormqr permute_copy pinverse polygamma qr segment_reduce
select_copy slice_copy slogdet smm split_copy split_with_sizes_copy squeeze_copy sspaddmm svd t_copy transpose_copy trapezoid trapz
triangular_solve unbind_copy unfold_copy unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze_copy view_as_complex_copy
view_as_real_copy view_copy vsplit
""",
    "method": """
_coalesced_ _indices _nnz _values as_strided_scatter ccol_indices cholesky cholesky_inverse cholesky_solve coalesce col_indices cross
crow_indices dense_dim det diagonal_scatter dsplit frexp geqrf hash_tensor histogram hsplit i0 i0_ igamma igamma_ igammac igammac_ indices
inverse is_coalesced istft logdet lu_solve matrix_exp matrix_power mvlgamma mvlgamma_ narrow_copy new_empty_strided nonzero_static orgqr
ormqr pinverse qr row_indices slogdet smm sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_ sspaddmm svd to_dense to_sparse
to_sparse_bsc to_sparse_bsr to_sparse_csc to_sparse_csr triangular_solve unsafe_chunk unsafe_split unsafe_split_with_sizes values vsplit
""",
}
