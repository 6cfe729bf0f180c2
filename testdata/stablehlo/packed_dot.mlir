module @packed_dot {
  func.func public @main(%a: tensor<100x72xf32>, %b: tensor<72x56xf32>) -> tensor<100x56xf32> {
    %zero = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<13x9x8x8xf32>
    %packed_a = linalg.pack %a padding_value(%zero : f32) inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %0 : tensor<100x72xf32> -> tensor<13x9x8x8xf32>
    %1 = tensor.empty() : tensor<4x9x16x8xf32>
    %packed_b = linalg.pack %b padding_value(%zero : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [16, 8] into %1 : tensor<72x56xf32> -> tensor<4x9x16x8xf32>
    %2 = stablehlo.dot_general %packed_a, %packed_b, contracting_dims = [1, 3] x [1, 3] : (tensor<13x9x8x8xf32>, tensor<4x9x16x8xf32>) -> tensor<13x8x4x16xf32>
    %3 = stablehlo.transpose %2, dims = [0, 2, 1, 3] : (tensor<13x8x4x16xf32>) -> tensor<13x4x8x16xf32>
    %4 = tensor.empty() : tensor<100x56xf32>
    %5 = linalg.unpack %3 inner_dims_pos = [0, 1] inner_tiles = [8, 16] into %4 : tensor<13x4x8x16xf32> -> tensor<100x56xf32>
    return %5 : tensor<100x56xf32>
  }
}
