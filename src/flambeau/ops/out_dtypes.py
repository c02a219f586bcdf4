"""Overloads whose out= has the result's dtype, though others of their kind cast: PyTorch's loops for these forms have one dtype, or are generated."""

from ..core.out_rules import EXACT

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
