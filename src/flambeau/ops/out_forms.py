"""Names of operators whose out= forms are other than their kind's."""

from ..core.out_rules import EXACT, PRIVATE

# PyTorch's loops for these forms have one dtype, or are generated.
EXACT.update(
    """
    _upsample_bicubic2d_aa _upsample_bicubic2d_aa.vec _upsample_bilinear2d_aa _upsample_bilinear2d_aa.vec _upsample_nearest_exact1d
    _upsample_nearest_exact1d.vec _upsample_nearest_exact2d _upsample_nearest_exact2d.vec _upsample_nearest_exact3d _upsample_nearest_exact3d.vec
    absolute adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d affine_grid_generator argsort.stable binary_cross_entropy_with_logits
    bitwise_and.Scalar_Tensor bitwise_left_shift.Scalar_Tensor bitwise_not bitwise_or.Scalar_Tensor bitwise_right_shift.Scalar_Tensor
    bitwise_xor.Scalar_Tensor celu chain_matmul channel_shuffle clamp clamp_max clamp_min clip clone col2im copy count_nonzero
    count_nonzero.dim_IntList dist elu fft_ihfft fill.Scalar fill.Tensor fix float_power.Scalar frobenius_norm.dim grid_sampler_2d grid_sampler_3d
    hardsigmoid hardswish hardtanh im2col leaky_relu linalg_matmul masked_fill.Scalar masked_fill.Tensor max_unpool2d mish multi_margin_loss
    multilabel_margin_loss negative nll_loss nll_loss2d nuclear_norm nuclear_norm.dim pixel_shuffle pixel_unshuffle relu remainder.Scalar_Tensor
    repeat rot90 rsub.Scalar rsub.Tensor select_scatter silu soft_margin_loss upsample_bicubic2d upsample_bicubic2d.vec upsample_bilinear2d
    upsample_bilinear2d.vec upsample_linear1d upsample_linear1d.vec upsample_nearest1d upsample_nearest1d.vec upsample_nearest2d
    upsample_nearest2d.vec upsample_nearest3d upsample_nearest3d.vec upsample_trilinear3d upsample_trilinear3d.vec
    """.split()
)

PRIVATE.update(
    """
    _lu_with_info adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator alpha_dropout argsort argwhere as_strided_scatter avg_pool1d
    batch_norm bilinear binary_cross_entropy_with_logits celu channel_shuffle clone constant_pad_nd conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d convolution corrcoef cosine_embedding_loss cosine_similarity count_nonzero cov ctc_loss det diag_embed
    diagflat diagonal_scatter dist dropout embedding_bag empty_like feature_alpha_dropout feature_dropout fft_fftshift fft_ifftshift fill flip
    fliplr flipud full_like glu grid_sampler grid_sampler_2d grid_sampler_3d group_norm gru gru_cell hardsigmoid hardswish hinge_embedding_loss
    index_fill instance_norm isreal kl_div layer_norm leaky_relu linalg_vander logdet lstm lstm_cell margin_ranking_loss masked_fill matrix_exp
    max_pool1d max_pool1d_with_indices max_pool2d max_pool3d mish native_dropout native_layer_norm one_hot ones_like pairwise_distance pdist
    pinverse pixel_shuffle pixel_unshuffle poisson_nll_loss prelu put relu repeat_interleave rms_norm rnn_relu rnn_relu_cell rnn_tanh
    rnn_tanh_cell roll rot90 rrelu rsub scalar_tensor scaled_dot_product_attention segment_reduce select_scatter selu silu std_mean tile trace
    triplet_margin_loss var_mean zeros_like
    """.split()
)
